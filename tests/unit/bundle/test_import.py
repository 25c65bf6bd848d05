"""What is imported is what was exported; what was changed, or is no bundle, is refused whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.bundle.laboratory import changed, copy_fixture, entries, rewritten

import boardcluster as bc
from boardcluster.api import WrittenBundle
from boardcluster.errors import CapacityError, HostError, InputError, UsageError
from boardcluster.store import Store

RECORD = "store/attempts/20260901-a-000/1/attempt.json"
POWER = "store/attempts/20260901-a-000/1/power.json"


def refused(bundle: Path, words: str, error: type[BaseException] = InputError) -> str:
    """Import a bundle, which must be refused, and leave nothing."""
    target = bundle.parent / "target"
    before = sorted(path.name for path in bundle.parent.iterdir())
    with pytest.raises(error, match=words) as caught:
        bc.import_bundle(bundle, home=target)
    assert sorted(path.name for path in bundle.parent.iterdir()) == before
    return str(caught.value)


def test_what_is_imported_is_what_was_exported(shelf: WrittenBundle, tmp_path: Path) -> None:
    found = bc.import_bundle(shelf.path, home=tmp_path / "theirs")
    assert not found.already
    assert found.sha256 == shelf.sha256
    with (
        Store.open(shelf.path.parent / "home", read_only=True) as mine,
        Store.open(tmp_path / "theirs") as theirs,
    ):
        assert theirs.campaigns() == mine.campaigns()
        assert theirs.results(all_attempts=True) == mine.results(all_attempts=True)
        assert theirs.probe_runs() == mine.probe_runs()
        for row in mine.results():
            if row.attempt is None:
                continue
            one, other = mine.telemetry(row.attempt), theirs.telemetry(row.attempt)
            assert (one is None) == (other is None)
            assert len(theirs.power_samples(row.attempt)) == len(mine.power_samples(row.attempt))


def test_a_second_import_does_nothing(copied: Path) -> None:
    home = copied.parent / "theirs"
    bc.import_bundle(copied, home=home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    again = bc.import_bundle(copied, home=home)
    assert again.already
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_an_import_of_an_import_is_the_same(shelf: WrittenBundle, tmp_path: Path) -> None:
    bc.import_bundle(shelf.path, home=tmp_path / "theirs")
    again = bc.export_bundle(
        tmp_path / "again.zip",
        home=tmp_path / "theirs",
        authors=("Ada Lovelace 0000-0001-2345-6789", "Grace Hopper"),
        licence="CC-BY-4.0",
    )
    assert again.sha256 == shelf.sha256


def test_an_empty_folder_is_taken(copied: Path) -> None:
    home = copied.parent / "theirs"
    home.mkdir()
    assert not bc.import_bundle(copied, home=home).already


def test_a_store_with_other_results_is_left_alone(copied: Path) -> None:
    home = copy_fixture(copied.parent / "mine")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="holds something else"):
        bc.import_bundle(copied, home=home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_another_bundle_is_not_put_on_top(copied: Path) -> None:
    home = copied.parent / "theirs"
    bc.import_bundle(copied, home=home)
    one = bc.export_bundle(copied.parent / "one.zip", home=home, campaign="20260910-1")
    with pytest.raises(UsageError, match="holds another bundle"):
        bc.import_bundle(one.path, home=home)


def test_an_import_that_is_stopped_leaves_nothing(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt("stopped")

    monkeypatch.setattr(os, "sync", interrupted)  # the last step before the new name
    refused(copied, "stopped", KeyboardInterrupt)
    monkeypatch.undo()
    assert not bc.import_bundle(copied, home=copied.parent / "target").already


@pytest.mark.parametrize(
    "name",
    [RECORD, "report/report.md", "README.md", "store/attempts/20260901-a-000/1/telemetry.npz"],
)
def test_a_changed_file_is_named_with_both_digests(name: str, copied: Path) -> None:
    was = entries(copied)[name]
    bad = changed(copied, name, lambda content: content[:-1] + b"!")
    said = refused(bad, f"was changed: {name} has the SHA-256")
    assert hashlib.sha256(was).hexdigest() in said
    assert hashlib.sha256(was[:-1] + b"!").hexdigest() in said


def test_a_damaged_archive_is_said(copied: Path) -> None:
    content = bytearray(copied.read_bytes())
    content[len(content) // 2] ^= 0xFF
    copied.write_bytes(bytes(content))
    refused(copied, "damaged|was changed")


def test_a_missing_and_an_added_file_are_named(copied: Path) -> None:
    files = entries(copied)
    del files[RECORD]
    bad = rewritten(copied, copied.with_name("less.zip"), files, manifest=False)
    refused(bad, f"{RECORD} is in manifest-sha256.txt, but not there")
    files = {**entries(copied), "store/attempts/x/1/attempt.json": b"{}"}
    bad = rewritten(copied, copied.with_name("more.zip"), files, manifest=False)
    refused(bad, "store/attempts/x/1/attempt.json is not in manifest-sha256.txt")


@pytest.mark.parametrize("name", ["state.json", "cluster.toml", "known_hosts", "nodes/a/b", "x"])
def test_what_a_running_cluster_records_is_not_taken_from_others(copied: Path, name: str) -> None:
    """`down` would believe it, and delete what it names."""
    files = {**entries(copied), f"store/{name}": b"{}"}
    bad = rewritten(copied, copied.with_name("planted.zip"), files, manifest=True)
    refused(bad, f"store/{name} is not part of results")


def test_a_bundle_of_a_newer_version_is_refused_before_anything_else(copied: Path) -> None:
    def newer(content: bytes) -> bytes:
        return content.replace(b'"format": 1', b'"format": 2').replace(b'"0.1.0"', b'"9.9.0"')

    bad = changed(copied, "bundle.json", newer)
    said = refused(bad, "is from a newer version: its format is 2, written by boardcluster 9.9.0")
    assert "install that version" in said


def test_a_record_of_a_newer_version_is_refused(copied: Path) -> None:
    bad = changed(
        copied,
        RECORD,
        lambda content: content.replace(b'"format": 7', b'"format": 99'),
        manifest=True,
    )
    refused(bad, "only 19 of 20 runs")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bundle.json", "bundle.json is not JSON"),
        (RECORD, "only 19 of 20 runs"),
    ],
)
def test_text_that_is_nested_too_deeply_is_no_record(name: str, words: str, copied: Path) -> None:
    refused(changed(copied, name, lambda _: b"[" * 200_000, manifest=True), words)


def test_another_bundle_than_the_published_one_is_refused(copied: Path) -> None:
    with pytest.raises(InputError, match="is another bundle"):
        bc.import_bundle(copied, home=copied.parent / "target", sha256="00" * 32)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../evil", "points outside the bundle"),
        ("store/../../evil", "points outside the bundle"),
        ("/etc/evil", "points outside the bundle"),
        ("store//evil", "points outside the bundle"),
        ("store\\evil", "is not a usable path"),
        ("C:/evil", "is not a usable path"),
        ("store/\x1b[2Jevil", "is not a usable path"),
        ("README.md/evil", "is a file and a folder"),
        ("../evil/", "points outside the bundle"),
        ("store/evil/", "is a folder with content"),
    ],
)
def test_a_path_that_leads_out_is_refused(name: str, words: str, copied: Path) -> None:
    files = {**entries(copied), name: b"evil"}
    bad = rewritten(copied, copied.with_name("bad.zip"), files, manifest=True)
    refused(bad, words)


def test_a_bundle_that_was_packed_again_with_its_folders_is_taken(copied: Path) -> None:
    files = {"store/": b"", "report/data/": b"", **entries(copied)}
    again = rewritten(copied, copied.with_name("again.zip"), files, manifest=False)
    imported = bc.import_bundle(again, home=copied.parent / "target")
    assert imported.sha256 == bc.import_bundle(copied, home=copied.parent / "other").sha256


def _link(row: zipfile.ZipInfo) -> None:
    row.external_attr = (stat.S_IFLNK | 0o777) << 16


def _huge(row: zipfile.ZipInfo) -> None:
    row.file_size = 1 << 40


def _elsewhere(row: zipfile.ZipInfo) -> None:
    row.header_offset = 1 << 62


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_link, "is a link or a device"),
        (_huge, "is too large"),
        (_elsewhere, "lies outside the file"),
    ],
)
def test_links_and_endless_files_are_refused(
    change: Callable[[zipfile.ZipInfo], None], words: str, copied: Path
) -> None:
    bad = copied.with_name("bad.zip")
    files = entries(copied)
    with zipfile.ZipFile(bad, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        change(archive.getinfo(RECORD))
    refused(bad, words)


@pytest.mark.parametrize("name", [RECORD, POWER, "store/campaigns/20260901-a.json", "bundle.json"])
def test_what_is_read_whole_has_a_bound(name: str, copied: Path) -> None:
    """Gigabytes of spaces take megabytes in a bundle."""
    bad = copied.with_name("bad.zip")
    files = {**entries(copied), POWER: b"{}"}
    with zipfile.ZipFile(bad, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.getinfo(name).file_size = 257 << 20
    words = f"{name} has {257 << 20} bytes, more than any such file"
    refused(bad, words)
    with pytest.raises(InputError, match=words):
        bc.recompute(bad)


def test_a_file_that_is_there_twice_is_refused(copied: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(copied, "a") as archive:
        archive.writestr(RECORD, b"{}")
    refused(copied, "appears twice")


def test_what_is_no_bundle_is_said(tmp_path: Path) -> None:
    refused(tmp_path / "none.zip", "no such file")
    (tmp_path / "text.zip").write_text("a text")
    refused(tmp_path / "text.zip", "is not a bundle")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    refused(tmp_path / "other.zip", "it has no bundle.json")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "Is a directory")


def test_a_name_that_is_no_text_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "name.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("\N{LATIN SMALL LETTER E WITH ACUTE}", b"")
    path.write_bytes(path.read_bytes().replace(b"\xc3\xa9", b"\xff\xfe"))
    refused(path, "not a bundle, or is damaged")


def test_a_disk_that_cannot_hold_it_is_said(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(copied.parent)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    refused(copied, "the bundle needs .* which has 1 KB", CapacityError)


def test_a_disk_that_cannot_hold_what_is_compared_is_said(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = copied.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    free = shutil.disk_usage(copied.parent)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    needs = "the bundle needs .* which has 1 KB"
    with pytest.raises(CapacityError, match=needs) as compared:
        bc.compare(f"bundle:{copied}", "published:lee-park-2026-table-11")
    assert "TMPDIR" in (compared.value.hint or "")
    with pytest.raises(CapacityError, match=needs):
        bc.recompute(copied)
    assert not list(temporary.iterdir())


def test_a_disk_that_becomes_full_in_a_comparison_is_said(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("boardcluster.bundle.take._copy", full)
    with pytest.raises(CapacityError, match="the disk became full while writing"):
        bc.compare(f"bundle:{copied}", f"bundle:{copied}")


def test_a_folder_that_cannot_be_written_is_said(copied: Path) -> None:
    (copied.parent / "file").write_text("not a folder")
    with pytest.raises(HostError, match=r"cannot write .*/file/target: File exists"):
        bc.import_bundle(copied, home=copied.parent / "file" / "target")


def test_an_imported_home_is_no_cluster_to_bring_up(copied: Path) -> None:
    home = copied.parent / "theirs"
    bc.import_bundle(copied, home=home)
    with pytest.raises(bc.BoardclusterError, match=r"no such file|there is no cluster"):
        bc.open(home=home).up()
