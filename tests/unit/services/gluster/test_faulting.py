"""A fault on a worker, without one: what it waits for, what it leaves when it is told to end."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.asleep import asleep

from boardcluster.services.gluster import faulting

HEALED = """
<brick hostUuid="a"><name>a:/b</name><status>{}</status>
<totalNumberOfEntries>{}</totalNumberOfEntries>
<numberOfEntriesInSplitBrain>0</numberOfEntriesInSplitBrain></brick>
"""


def ended(*_: object) -> None:
    """Do what SIGTERM does."""
    sys.exit(0)


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """A brick that holds enough at once, and a volume that is healed, for a fault of a kind."""
    brick = tmp_path / "brick-0"
    brick.mkdir()
    (brick / "file").write_bytes(b"x" * 8192)
    seen = tmp_path / "seen"
    seen.write_text(HEALED.format("Connected", 0))

    def make(kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "folders": [str(brick)],
            "after_bytes": 4096,
            "down_seconds": 3600,
            "command": ["env", "SERVER=7", "glusterd"],
            "log": "log",
            "variable": "SERVER",
            "device": "eth0",
            "look": ["cat", str(seen)],
            "heal": ["true"],
            "limit_seconds": 0,
            "connect_seconds": 0,
            "record": str(tmp_path / "fault.json"),
        }

    return make


def sleeping(monkeypatch: pytest.MonkeyPatch, last: Callable[[], None]) -> None:
    """Have no wait take time; the one of the fault does what is given."""
    monkeypatch.setattr(time, "sleep", lambda seconds: last() if seconds > 100 else None)


def test_a_killed_daemon_is_not_started_by_a_fault_that_is_ended(
    asked: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def kill(mark: str) -> int:
        done.append(mark)
        return 3

    monkeypatch.setattr(faulting, "kill_marked", kill)
    monkeypatch.setattr(faulting, "start", lambda argv, _: done.append(argv[-1]))
    sleeping(monkeypatch, ended)

    with pytest.raises(SystemExit):
        faulting.main(asked("kill"))
    assert done == ["SERVER=7"]

    sleeping(monkeypatch, lambda: None)
    done.clear()
    faulting.main(asked("kill"))
    assert done == ["SERVER=7", "glusterd"]
    record = json.loads(Path(asked("kill")["record"]).read_text())
    assert record["ended"] == 3
    assert record["healed"]
    assert record["down_unix"] <= record["up_unix"] <= record["healed_unix"]


@pytest.mark.parametrize("when", ["going down", "down"])
def test_a_link_comes_up_again_whenever_the_fault_is_ended(
    asked: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    states: list[tuple[str, bool]] = []

    def link(_: str, state: str) -> None:
        states.append((state, signal.getsignal(signal.SIGTERM) is signal.SIG_IGN))
        if (state, when) == ("down", "going down"):
            ended()

    former = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(faulting, "link", link)
    sleeping(monkeypatch, ended)

    with pytest.raises(SystemExit):
        faulting.main(asked("link"))

    assert states == [("down", False), ("up", True)]
    assert signal.getsignal(signal.SIGTERM) == former


def test_only_processes_with_the_mark_are_killed() -> None:
    with asleep(SERVER="mine") as mine, asleep(SERVER="other") as other:
        assert faulting.kill_marked("SERVER=mine") == 1
        assert mine.wait(60) == -signal.SIGKILL
        assert other.poll() is None


def test_gluster_s_own_records_are_not_bytes_of_files(tmp_path: Path) -> None:
    (tmp_path / ".glusterfs").mkdir()
    (tmp_path / ".glusterfs" / "link").write_bytes(b"x" * 100_000)
    assert faulting.held_bytes([str(tmp_path)]) == 0
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    assert faulting.held_bytes([str(tmp_path)]) >= 100_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),  # nobody answered
        (HEALED.format("Connected", 0), True),
        (HEALED.format("Connected", 0) + HEALED.format("Connected", 2), False),
        (HEALED.format("Transport endpoint is not connected", "-"), False),
    ],
)
def test_a_volume_is_healed_when_every_brick_is_there_and_none_has_an_entry(
    text: str, expected: bool
) -> None:
    assert faulting.healed(text)[0] is expected


def test_a_volume_that_never_heals_is_said_to_be_so(
    asked: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    wanted = asked("none")
    (tmp_path / "seen").write_text(HEALED.format("Connected", 5))

    faulting.main(wanted)

    record = json.loads((tmp_path / "fault.json").read_text())
    assert not record["healed"]
    assert record["seen"] == "bricks Connected; to heal 5; split brain 0"


def test_a_brick_that_has_vanished_is_given_up_before_one_that_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def waited_seconds(text: str) -> float:
        now[0] = 0.0
        seen = tmp_path / "seen"
        seen.write_text(text)
        found = faulting.await_healed(["cat", str(seen)], ["true"], 40, 10)
        assert not found["healed"]
        return now[0]

    assert 10 < waited_seconds(HEALED.format("Transport endpoint is not connected", "-")) < 13
    assert 40 < waited_seconds(HEALED.format("Connected", 5)) < 43
