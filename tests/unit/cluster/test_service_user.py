"""The user of daemons and jobs of root's emulated nodes."""

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from boardcluster.cluster.kinds.emulated import service_user
from boardcluster.cluster.kinds.emulated.service_user import (
    choose_number,
    close_folder,
    exposing,
    give_folder,
    require_readable,
    with_user,
)
from boardcluster.errors import HostError
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote


def taken(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    rows = [SimpleNamespace(pw_uid=number) for number in numbers]
    monkeypatch.setattr(pwd, "getpwall", lambda: rows)


def test_the_number_is_one_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    taken(monkeypatch, 0, 61000, 61001)
    assert choose_number() == 61002
    taken(monkeypatch, *range(61000, 61184))
    with pytest.raises(HostError, match="every number from 61000 to 61183"):
        choose_number()


@pytest.mark.parametrize(
    ("name", "own"),
    [
        (
            "passwd",
            "boardcluster:x:61000:61000:daemons and jobs:/nonexistent:/usr/sbin/nologin",
        ),
        ("group", "boardcluster:x:61000:"),
    ],
)
def test_nodes_know_the_user_whatever_this_machine_calls_so(
    name: str, own: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text("root:x:0:0::/root:/bin/sh\nboardcluster:x:999:999::/var/lib:/bin/sh\n")
    assert with_user(61000, file) == f"root:x:0:0::/root:/bin/sh\n{own}\n"


def test_a_nodes_folder_stays_roots_and_what_is_in_it_becomes_the_users(tmp_path: Path) -> None:
    for name in ("data", "disk", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "disk.img").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    *others, first, second = give_folder(61000, tmp_path)

    assert first == ["chown", "root:61000", str(tmp_path)]
    assert second == ["chmod", "1775", str(tmp_path)]
    changed = {row[-1].rpartition("/")[2]: row[:-1] for row in others}
    owned = ["chown", "-R", "--no-dereference", "61000:61000"]
    assert {name: changed[name] for name in ("data", "link", "mine")} == dict.fromkeys(
        ("data", "link", "mine"), owned
    )
    assert not changed.keys() & {"disk", "disk.img"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_closed_folder_keeps_nothing_that_a_job_put_in_the_place_of_roots(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk.img").symlink_to("/etc/passwd")
    for name in ("disk.device", "data"):
        (tmp_path / name).write_text("")
    for name in ("disk.img", "disk.device", "data"):
        os.lchown(tmp_path / name, 61000, 61000)
    first, second, *others = close_folder(tmp_path)

    assert first == ["chown", "root:root", str(tmp_path)]
    assert second == ["chmod", "755", str(tmp_path)]
    assert others == [
        ["rm", "-rf", "--", str(tmp_path / name)] for name in ("disk.device", "disk.img")
    ]


def test_folders_below_closed_ones_are_shown_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name in ("open/cache", "closed/home/node", "closed/home/other", "closed/cache"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    needed = [tmp_path / name for name in ("open/cache", "closed/home/node", "closed/cache")]
    # pytest's own folders may be closed, too: then there is one more cover, and no other.
    covers = [folder for folder in reversed(needed[1].parents) if not folder.stat().st_mode & 1]
    script = exposing(needed).splitlines()

    mounts = [row.split()[-1] for row in script if row.startswith("mount -t tmpfs")]
    assert mounts == [str(covers[0])]
    shown = {row.split()[-1] for row in script if "--rbind" in row}
    assert {str(tmp_path / name) for name in ("closed/home/node", "closed/cache")} <= shown
    assert str(tmp_path / "closed/home/other") not in shown
    assert script.index(f"mount -t tmpfs -o mode=755,size=1m boardcluster {covers[0]}") > max(
        place for place, row in enumerate(script) if row.startswith("exec ")
    )
    assert exposing([Path("/usr/bin")]) == "set -e\numask 022"


def test_a_folder_behind_a_link_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where /home is one: a shell like dash has seven descriptors to give."""
    names = ("node", "cache", "java", "jar")
    for name in names:
        (tmp_path / "disk" / "me" / name).mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    # Pytest's own folders may be closed, too; here only this one counts.
    monkeypatch.setattr(
        service_user,
        "_first_closed",
        lambda path: next(folder for folder in path.parents if folder.name == "me"),
    )

    script = exposing([tmp_path / "home" / "me" / name for name in names]).splitlines()

    me = tmp_path / "disk" / "me"
    opened = [row.split()[-1] for row in script if row.startswith("exec ")]
    assert opened == sorted(str(me / name) for name in names)
    assert [row.split()[-1] for row in script if row.startswith("mount -t tmpfs")] == [str(me)]


def test_what_the_user_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "jar").write_text("")
    (tmp_path / "sources").symlink_to("/nowhere/at/all")
    require_readable(LocalRemote(), [tmp_path])
    with pytest.raises(HostError, match=r"cannot read .*absent") as caught:
        require_readable(LocalRemote(), [tmp_path / "absent"])
    assert "chmod -R a+rX" in caught.value.hint
    if os.geteuid() != 0:  # root reads everything
        (tmp_path / "jar").chmod(0)
        with pytest.raises(HostError, match=r"cannot read .*jar"):
            require_readable(LocalRemote(), [tmp_path])


@pytest.mark.parametrize(("closed", "named"), [("", "pair"), ("engines", "engines"), (".", ".")])
def test_the_hint_opens_the_outermost_closed_folder_of_the_cache(
    closed: str, named: str, tmp_path: Path
) -> None:
    cache = tmp_path / "closed" / "cache"
    pair = cache / "engines" / "pair"
    pair.mkdir(parents=True)
    for folder in (tmp_path / "closed", *([cache / closed] if closed else [])):
        folder.chmod(0o700)  # nodes see an empty folder in place of one above the cache
    remote = FakeRemote()
    remote.tell("sh", "-c", "python3 -c 0")
    look = ("-ignore_readdir_race", "!", "-type", "l", "!", "-readable", "-print", "-quit")
    remote.tell("find", f"{pair}/", *look, returncode=1)

    with pytest.raises(HostError) as caught:
        require_readable(remote, [cache, pair])

    expected = pair if named == "pair" else cache / named
    assert caught.value.hint == f"let others read it: chmod -R a+rX {expected}"


def test_of_a_folder_that_holds_others_only_those_are_read() -> None:
    """Another command's unfinished work in the cache is closed to others, and nobody's concern."""
    remote = FakeRemote()
    remote.tell("sh", "-c", "python3 -c 0")
    look = ("-ignore_readdir_race", "!", "-type", "l", "!", "-readable", "-print", "-quit")
    remote.tell("find", "/cache/engines/pair/", *look)
    remote.tell("find", "/java/", *look)

    require_readable(remote, [Path("/cache"), Path("/cache/engines/pair"), Path("/java")])

    assert len(remote.calls) == 3
