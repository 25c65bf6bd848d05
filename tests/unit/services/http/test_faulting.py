"""What a fault leaves behind when it is told to end while its server is away."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import VerificationError
from boardcluster.services.http import faulting
from boardcluster.services.http.result import read_fault


def ended(*_: object) -> None:
    """Do what SIGTERM does."""
    sys.exit(0)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """A server that has had enough requests at once, and a fault of the kind given."""
    monkeypatch.setattr(faulting, "requests_of", lambda *_: 0)
    command = tmp_path / "command.json"
    command.write_text('["nginx"]')

    def make(kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "after": -10,
            "delay_seconds": 0,
            "down_seconds": 3600,
            "steady_seconds": 0,
            "status": "",
            "pattern": "",
            "patience_seconds": 2,
            "pid_file": "nginx.pid",
            "command": str(command),
            "log": "log",
            "device": "eth0",
            "record": str(tmp_path / "fault.json"),
        }

    return make


def sleeping(monkeypatch: pytest.MonkeyPatch, last: Callable[[], None]) -> None:
    """Have no wait take time; the one of the fault does what is given."""
    monkeypatch.setattr(time, "sleep", lambda seconds: last() if seconds > 100 else None)


def test_a_killed_server_is_not_started_by_a_fault_that_is_ended(
    asked: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(faulting, "kill", done.append)
    monkeypatch.setattr(faulting, "start", lambda *_: done.append("started"))
    sleeping(monkeypatch, ended)

    with pytest.raises(SystemExit):
        faulting.main(asked("kill"))
    assert done == ["nginx.pid"]

    sleeping(monkeypatch, lambda: None)
    done.clear()
    faulting.main(asked("kill"))
    assert done == ["nginx.pid", "started"]
    assert set(json.loads(Path(asked("kill")["record"]).read_text())) == {
        *("down_unix", "up_unix", "answers_unix")
    }


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


def test_a_fault_that_fails_writes_down_why(
    asked: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    request = asked("link") | {"command": str(tmp_path / "none.json")}
    argv = [sys.executable, faulting.__file__, json.dumps(request)]

    assert subprocess.run(argv, capture_output=True, check=False).returncode != 0

    with pytest.raises(VerificationError, match=r"the fault failed: .*none\.json"):
        read_fault((tmp_path / "fault.json").read_text())


def test_a_server_that_answers_and_is_away_again_is_not_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So does a database whose link is back, until it finds that the group has dropped it."""
    answers = [5, 5, -1, *[5] * 50]
    clock = iter(range(100))
    monkeypatch.setattr(faulting, "requests_of", lambda *_: answers.pop(0))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    asked = {"status": "", "pattern": "", "patience_seconds": 2, "steady_seconds": 5.0}

    since = faulting.await_answers(asked)

    assert since > 2  # that it was away is not counted as an answer
    assert len(answers) < 48
