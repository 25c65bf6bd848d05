"""What is recorded as alive, and the lock of the one driver."""

import errno
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_daemon, make_live_node, make_state

from boardcluster.cluster.state import (
    LiveState,
    boot_id,
    load_state,
    remove_state,
    save_state,
)
from boardcluster.errors import ClusterError, DriverSpaceError, HostError
from boardcluster.fetch.cache import write_atomically
from boardcluster.records import DiskLimits, NodeLimits
from boardcluster.remote.base import ProcessRef

STATE = make_state(
    make_live_node("master", address="198.18.0.1", pid=10, start_ticks=20, folder="/m"),
    make_live_node("worker1", address="198.18.0.2", pid=11, start_ticks=21, folder="/w"),
    own_user=True,
    host_link="bc12345678",
    daemons=(make_daemon(process=ProcessRef(5, 6), url="http://x"),),
    config_sha256="ab",
    spec_sha256="cd",
    java="Maker 17",
)
BOARDS = make_state(
    make_live_node(
        "pi0",
        address="10.0.0.1",
        pid=0,
        start_ticks=0,
        folder="/var/lib/boardcluster",
        host="pi@pi0",
        boot_id="0f3c7a52",
    ),
    subnet="10.0.0.0/24",
    kind="boards",
)
TWINS = make_state(
    dilation=4.5,
    limits=(
        NodeLimits(
            node="worker1",
            cpu_cores=0.35,
            memory_bytes=8 << 30,
            disk=DiskLimits(
                size_bytes=8 << 30,
                read_bytes_per_second=100_000_000,
                write_bytes_per_second=80_000_000,
                read_iops=900,
                write_iops=700,
                unwritten_bytes=800 << 20,
            ),
            link_bits_per_second=85_000_000,
        ),
        NodeLimits(
            node="worker2",
            cpu_cores=0.2,
            memory_bytes=1 << 30,
            disk=None,
            link_bits_per_second=10_000_000,
        ),
    ),
)
BARE = make_state(phase="starting")


@pytest.mark.parametrize("state", [STATE, BOARDS, TWINS, BARE])
def test_round_trip(state: LiveState, tmp_path: Path) -> None:
    save_state(tmp_path, state)

    assert load_state(tmp_path) == state


def test_a_state_of_before_there_were_boards_is_of_emulated_nodes(tmp_path: Path) -> None:
    save_state(tmp_path, STATE)
    path = tmp_path / "state.json"
    raw = json.loads(path.read_text())
    del raw["kind"], raw["limits"], raw["dilation"]
    for node in raw["nodes"]:
        del node["host"], node["boot_id"]
    path.write_text(json.dumps(raw))

    assert load_state(tmp_path) == STATE
    assert STATE.kind == "emulated"


def test_a_state_of_before_unwritten_data_was_limited_has_no_such_limit(tmp_path: Path) -> None:
    save_state(tmp_path, TWINS)
    path = tmp_path / "state.json"
    raw = json.loads(path.read_text())
    del raw["limits"][0]["disk"]["unwritten_bytes"]
    path.write_text(json.dumps(raw))

    state = load_state(tmp_path)
    assert state is not None
    assert [row.disk and row.disk.unwritten_bytes for row in state.limits] == [None, None]


def test_nothing_recorded_is_nothing_alive(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    save_state(tmp_path, BARE)
    remove_state(tmp_path)
    remove_state(tmp_path)  # safe to repeat

    assert load_state(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_daemons_are_added_in_start_order() -> None:
    other = replace(STATE.daemons[0], name="datanode")

    assert STATE.with_daemon(other).daemons == (STATE.daemons[0], other)
    assert len(STATE.daemons) == 1


def test_saving_leaves_one_file(tmp_path: Path) -> None:
    save_state(tmp_path, BARE)
    save_state(tmp_path, STATE)

    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_crash_while_writing_keeps_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_state(tmp_path, BARE)

    def crash(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        save_state(tmp_path, STATE)

    assert load_state(tmp_path) == BARE


def test_the_content_is_on_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    seen: list[str] = []
    monkeypatch.setattr("os.fsync", lambda _: seen.append(target.read_text()))

    write_atomically(target, "new")

    assert seen == ["old"]
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DriverSpaceError),
        (errno.EDQUOT, DriverSpaceError),
        (errno.EROFS, HostError),
        (errno.EIO, HostError),
    ],
)
def test_a_disk_that_refuses_is_no_defect_and_keeps_the_old_state(
    number: int, kind: type[HostError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_state(tmp_path, BARE)

    def refuse(_: int) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(HostError, match=r"state\.json") as caught:
        save_state(tmp_path, STATE)

    assert type(caught.value) is kind
    assert load_state(tmp_path) == BARE
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_an_unreadable_record_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "state.json").mkdir()

    with pytest.raises(HostError, match=r"cannot read .*state\.json"):
        load_state(tmp_path)


def test_nothing_lives_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    assert load_state(tmp_path / "home") is None


GOOD = {
    "identity": "1",
    "boot_id": "b",
    "phase": "up",
    "own_user": False,
    "subnet": "198.18.0.0/24",
    "nodes": [],
    "daemons": [],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "{}",
        json.dumps({**GOOD, "identity": None})[:-20],
        json.dumps({**GOOD, "unknown": 1}),
        json.dumps({**GOOD, "nodes": [{"name": "master"}]}),
        json.dumps({**GOOD, "nodes": 5}),
        json.dumps({**GOOD, "limits": [{"node": "worker1"}]}),
        json.dumps({**GOOD, "limits": [{"disk": {"size_bytes": 1}}]}),
        json.dumps({**GOOD, "daemons": [{"name": "namenode"}]}),
        json.dumps({**GOOD, "daemons": [{"process": {"pid": 1}}]}),
    ],
)
def test_a_damaged_file_is_named_with_the_way_out(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)

    with pytest.raises(ClusterError, match=r"state\.json is damaged") as caught:
        load_state(tmp_path)

    assert "remove the file" in caught.value.hint


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ClusterError, match="damaged"):
        load_state(tmp_path)


def test_the_good_file_of_the_damage_test_is_good(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(GOOD))

    assert load_state(tmp_path) is not None


def test_boot_id_is_the_same_for_every_process_of_a_boot() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from boardcluster.cluster.state import boot_id; print(boot_id())"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert boot_id() == done.stdout.strip()
    assert len(boot_id()) == 36
