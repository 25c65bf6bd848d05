"""The node-side program as a whole: changes, repeats, kills at every point, uninstall."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.provision.board import COMMAND_LINE, Board, KilledError

from boardcluster.services.provision.resources import (
    File,
    Firewall,
    Folder,
    Hosts,
    Packages,
    Resource,
    Service,
    Symlink,
    Sysctl,
    Tree,
    User,
    Word,
    tree_of,
)

FIREWALL = Firewall(path="/etc/boardcluster/firewall.nft", content="tcp dport SSH_PORT accept\n")
GUARD = "boardcluster-firewall.service"
DATA = Folder(
    path="/var/lib/deep/boardcluster", owner="boardcluster", mode=0o750, own=("data*",), data=True
)
JAVA = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")


def wanted() -> list[Resource]:
    return [
        Packages(wanted=(("python3",), ("rsync",), ("nftables",), JAVA)),
        User(name="boardcluster"),
        Folder(path="/opt/boardcluster"),
        DATA,
        Symlink(path="/opt/boardcluster/java", targets=("/no/java", "/var/lib")),
        Hosts(rows=(("198.18.44.10", "pi0"), ("198.18.44.11", "pi1"))),
        Sysctl(path="/etc/sysctl.d/60-boardcluster.conf", values={"vm.swappiness": "1"}),
        Word(
            paths=("/boot/firmware/cmdline.txt", "/boot/cmdline.txt"), word="cgroup_enable=memory"
        ),
        FIREWALL,
        File(path=f"/etc/systemd/system/{GUARD}", content="[Unit]\n"),
        Service(names=(GUARD,)),
        Service(names=("chrony.service", "systemd-timesyncd.service")),
    ]


@pytest.fixture
def booted(board: Board) -> Board:
    """A board with systemd, and with a time service that is there but off."""
    (board.root / "run/systemd/system").mkdir(parents=True)
    board.units["systemd-timesyncd.service"] = ["loaded", "disabled", "inactive"]
    return board


def test_a_bare_board_gets_all_that_is_wanted_and_a_second_run_changes_nothing(
    booted: Board,
) -> None:
    before = booted.snapshot()
    planned = booted.words("plan", wanted())
    assert booted.snapshot() == before

    assert booted.words("apply", wanted()) == planned
    assert planned == [
        (
            "installs rsync, nftables, openjdk-17-jre-headless or openjdk-21-jre-headless "
            "and their dependencies"
        ),
        "creates the system user boardcluster: no password, no shell, no home, no sudo",
        "creates /opt/boardcluster for root",
        "creates /var/lib/deep/boardcluster for boardcluster",
        "links /opt/boardcluster/java to /var/lib",
        "changes /etc/hosts",
        "sets vm.swappiness = 1",
        "adds cgroup_enable=memory to /boot/firmware/cmdline.txt",
        (
            "loads the firewall: others reach SSH only; of this board's accounts only root and"
            " boardcluster reach the cluster"
        ),
        f"writes /etc/systemd/system/{GUARD}",
        f"enables and starts {GUARD}",
        "enables and starts systemd-timesyncd.service",
    ]
    assert {name for name, state in booted.dpkg.items() if state == "installed"} == {
        *("python3", "libc6", "rsync", "libpopt0", "nftables"),
        *("openjdk-21-jre-headless", "ca-certificates-java"),
    }
    user = booted.users["boardcluster"]
    assert user.pw_shell == "/usr/sbin/nologin"
    folder = (booted.root / "var/lib/deep/boardcluster").stat()
    assert (folder.st_uid, folder.st_mode & 0o777) == (user.pw_uid, 0o750)
    assert booted.table == "tcp dport 2222 accept\n"
    assert booted.units[GUARD] == ["loaded", "enabled", "active"]
    assert (booted.root / "proc/sys/vm/swappiness").read_text() == "1"

    after = booted.snapshot()
    booted.commands.clear()
    assert booted.words("apply", wanted()) == []
    assert booted.snapshot() == after
    assert not [words for words in booted.commands if words[0] in ("apt-get", "dpkg")]


def test_uninstall_restores_exactly_what_was_there(booted: Board) -> None:
    before = booted.snapshot()
    done = booted.words("apply", wanted())
    data = booted.root / "var/lib/deep/boardcluster/data"
    data.mkdir()
    (data / "block").write_text("x")

    planned = booted.words("plan_uninstall", keep_data=False)
    assert booted.words("uninstall", keep_data=False) == planned
    assert len(planned) == len(done)
    after = booted.snapshot()
    after["proc/sys/vm/swappiness"] = (after["proc/sys/vm/swappiness"][0], b"60\n")  # the kernel's
    assert after == before
    assert booted.words("uninstall", keep_data=False) == []


def test_data_can_be_kept_and_taken_later(booted: Board) -> None:
    before = booted.snapshot()
    booted.words("apply", wanted())
    (booted.root / "var/lib/deep/boardcluster/data").mkdir()

    booted.words("uninstall", keep_data=True)
    assert (booted.root / "var/lib/deep/boardcluster/data").is_dir()
    assert list(booted.users) == ["boardcluster"]
    assert booted.table == ""
    assert "rsync" not in booted.dpkg

    booted.words("apply", wanted())
    assert booted.words("uninstall", keep_data=True)
    assert booted.words("uninstall", keep_data=False) == [
        "removes /var/lib/deep/boardcluster and everything in it",
        "removes the user boardcluster",
    ]
    assert set(booted.snapshot()) == set(before)


def test_a_run_killed_at_any_point_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill the program before each of its changes, once in a run and once in undoing it."""

    def fresh(name: str) -> Board:
        root = tmp_path / name
        (root / "run/systemd/system").mkdir(parents=True)
        made = Board(root)
        made.units["systemd-timesyncd.service"] = ["loaded", "disabled", "inactive"]
        made.install(monkeypatch)
        return made

    def killed_at(board: Board, point: int, verb: str) -> bool:
        board.steps.taken, board.steps.end_at = 0, point
        try:
            with board.counting(monkeypatch):
                board.words(verb, wanted(), keep_data=False)
        except KilledError:
            return True
        finally:
            board.steps.end_at = -1
        return False

    whole = fresh("whole")
    original = whole.snapshot()
    whole.words("apply", wanted())
    complete = whole.snapshot()
    record = "etc/boardcluster/manifest.json"
    del complete[record]

    point = 0
    while True:
        board = fresh(f"{point}")
        if not killed_at(board, point, "apply"):
            break
        board.words("apply", wanted())
        assert board.words("apply", wanted()) == [], point
        reached = board.snapshot()
        del reached[record]
        reached.pop(f"{record}.boardcluster-new", None)  # written anew by the next change
        assert {**reached, "units": ""} == {**complete, "units": ""}, point
        assert board.units == whole.units, point

        assert killed_at(board, point, "uninstall") or point > 20
        board.words("uninstall", keep_data=False)
        restored = board.snapshot()
        for name in ("proc/sys/vm/swappiness", "units"):
            restored[name] = original[name]
        assert restored == original, point
        point += 1
    assert point > 60, "too few points to prove anything"


def test_without_systemd_the_firewall_is_loaded_with_a_remark(board: Board) -> None:
    answer = board.ask("apply", [FIREWALL])
    assert (
        answer["changes"][0]["remark"] == "without systemd it is not loaded again after a restart"
    )


def test_what_is_no_longer_wanted_goes_but_not_what_is_only_no_longer_missing(
    booted: Board,
) -> None:
    drop_in = "/etc/systemd/system/nftables.service.d/boardcluster.conf"
    booted.words("apply", [*wanted(), File(path=drop_in, content="[Service]\n")])
    guards = (Firewall, File, Service)
    less = [row for row in wanted() if not isinstance(row, (*guards, Word, Packages))]
    time = wanted()[-1]
    assert booted.words("apply", [*less, time]) == [
        f"removes {drop_in}",
        f"restores the former state of {GUARD}",
        f"removes /etc/systemd/system/{GUARD}",
        "removes the firewall",
    ]
    assert booted.table == ""
    assert not (booted.root / "etc/boardcluster/firewall.nft").exists()
    assert booted.dpkg["rsync"] == "installed"
    assert "cgroup_enable" in (booted.root / "boot/firmware/cmdline.txt").read_text()
    assert booted.words("apply", [*less, time]) == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[:-40], "JSONDecodeError"),
        (lambda text: text.replace("/opt/boardcluster", "/opt/somewhere"), "digest"),
        (lambda text: text.replace('"format": 1', '"format": 9'), "format is 9"),
        (lambda text: "[]", "TypeError"),
    ],
    ids=["cut", "edited", "newer", "other"],
)
@pytest.mark.parametrize("verb", ["plan", "apply", "uninstall", "plan_uninstall", "unmounted"])
def test_a_damaged_record_stops_everything_and_nothing_is_lost(
    board: Board, verb: str, damage: object, says: str
) -> None:
    board.words("apply", [Folder(path="/opt/boardcluster")])
    record = board.root / "etc/boardcluster/manifest.json"
    assert callable(damage)
    record.write_text(damage(record.read_text()))
    before = board.snapshot()
    message = board.error(verb, wanted(), keep_data=False)
    assert says in message
    assert "nothing was changed" in message
    assert board.snapshot() == before


def test_a_full_disk_is_refused_before_anything_is_changed(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(source=tmp_path, path="/opt/boardcluster/big", files={"a": (10**15, "0" * 64)})
    before = board.snapshot()
    answer = board.ask("apply", [Folder(path="/opt/boardcluster"), tree])
    assert answer["error"]["kind"] == "capacity"
    assert (
        "1,000,000,000 MB are to be copied to /opt/boardcluster/big" in answer["error"]["message"]
    )
    assert board.snapshot() == before


def test_what_the_system_refuses_is_said_with_what_was_being_done(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/opt")

    monkeypatch.setattr(os, "fchmod", full)
    message = board.error("apply", [Folder(path="/opt/boardcluster")])
    assert message == "creates /opt/boardcluster for root: /opt: No space left on device"
    monkeypatch.undo()
    assert json.loads((board.root / "etc/boardcluster/manifest.json").read_text())["entries"]


def test_nothing_is_recorded_where_nothing_had_to_be_changed(board: Board) -> None:
    (board.root / "opt/boardcluster").mkdir()
    before = board.snapshot()
    assert board.words("apply", [Folder(path="/opt/boardcluster")]) == []
    assert board.snapshot() == before


def test_it_refuses_to_work_as_anybody_but_root(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    answer = board.ask("plan", [], root="")
    assert answer["error"]["kind"] == "login"


def test_uninstall_waits_for_the_daemons_to_be_ended(booted: Board) -> None:
    booted.words("apply", wanted())
    daemon = booted.root / "proc" / "77"
    daemon.mkdir()
    os.chown(daemon, booted.users["boardcluster"].pw_uid, -1)
    before = booted.snapshot()

    error = booted.ask("uninstall", keep_data=False)["error"]

    assert "processes of the user boardcluster still run, such as 77" in error["message"]
    # `boardcluster down` ends nothing where no cluster is recorded.
    for way in ("`boardcluster uninstall --take-over`", "`sudo pkill -KILL -u boardcluster`"):
        assert way in error["hint"]
    assert booted.snapshot() == before
    daemon.rmdir()
    assert booted.words("uninstall", keep_data=False)


def test_a_tree_is_recorded_then_copied_then_confirmed(board: Board, tmp_path: Path) -> None:
    source = tmp_path / "engine"
    (source / "jars").mkdir(parents=True)
    (source / "jars/a.jar").write_bytes(b"jar")
    (source / "run.sh").write_bytes(b"#!/bin/sh\n")
    (source / "run.sh").chmod(0o700)
    tree = tree_of(source, "/opt/engine")
    answer = board.ask("apply", [tree])
    assert answer["copies"] == ["/opt/engine"]
    assert answer["changes"][0]["words"] == "copies /opt/engine from this machine (2 files, 0.0 MB)"

    target = board.root / "opt/engine"
    (target / "jars").mkdir(parents=True)
    (target / "run.sh").write_bytes(b"#!/bin/sh\n")
    (target / "run.sh").chmod(0o700)
    assert "1 files differ, the first is" in board.error("confirm", [tree])
    assert board.ask("apply", [tree])["copies"] == ["/opt/engine"]

    (target / "jars/a.jar").write_bytes(b"jar")
    (target / "jars/a.jar").chmod(0o666)
    assert board.words("confirm", [tree]) == []
    assert board.words("plan", [tree]) == []
    assert (target / "jars/a.jar").stat().st_mode & 0o777 == 0o644
    assert (target / "run.sh").stat().st_mode & 0o777 == 0o755

    (source / "jars/a.jar").write_bytes(b"new")
    newer = tree_of(source, "/opt/engine")
    assert board.ask("plan", [newer])["changes"]  # of the same size, but not the same
    (target / "jars/left").write_bytes(b"")
    assert board.ask("plan", [tree])["changes"]
    assert board.words("uninstall", keep_data=False) == ["removes /opt/engine"]
    assert not target.exists()


def test_a_deep_look_finds_a_file_of_the_right_size_with_the_wrong_bytes(
    board: Board, tmp_path: Path
) -> None:
    source = tmp_path / "jobs.jar"
    source.write_bytes(b"right")
    tree = tree_of(source, "/opt/jobs.jar")
    board.ask("apply", [tree])
    target = board.root / "opt/jobs.jar"
    target.write_bytes(b"right")
    board.words("confirm", [tree])
    target.write_bytes(b"wrong")
    assert board.words("plan", [tree]) == []

    from boardcluster.services.provision.node import program
    from boardcluster.services.provision.resources import request_of

    request = {"root": str(board.root), "resources": [request_of(tree, deep=True)]}
    assert program.answer({"do": "plan", **request})["changes"]
    assert program.answer({"do": "apply", **request})["copies"] == ["/opt/jobs.jar"]
    assert not target.exists(), "rsync would take it for the same file"


def test_a_tree_that_was_there_before_is_left(board: Board, tmp_path: Path) -> None:
    source = tmp_path / "jobs.jar"
    source.write_bytes(b"right")
    (board.root / "opt/jobs.jar").write_bytes(b"right")
    tree = tree_of(source, "/opt/jobs.jar")
    board.ask("apply", [tree])
    board.words("confirm", [tree])
    assert board.words("uninstall", keep_data=False) == [
        "leaves /opt/jobs.jar, which existed before"
    ]
    assert (board.root / "opt/jobs.jar").exists()


def test_the_word_is_added_once_and_only_where_the_file_is(board: Board) -> None:
    word = Word(paths=("/boot/firmware/cmdline.txt", "/boot/cmdline.txt"), word="x=1")
    answer = board.ask("apply", [word])
    assert answer["changes"][0]["remark"] == "takes effect when the node has been restarted"
    line = (board.root / "boot/firmware/cmdline.txt").read_text()
    assert line == COMMAND_LINE.replace("\n", " x=1\n")
    assert board.words("apply", [word]) == []
    assert board.words("apply", [replace(word, paths=("/boot/nowhere",))]) == []
