"""What a fault leaves behind when it is told to end while its server is away."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boardcluster.services.http import faulting


def ended(*_: object) -> None:
    """Do what SIGTERM does."""
    sys.exit(0)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """A server that has had enough requests at once, and a fault of the kind given."""
    monkeypatch.setattr(faulting, "requests_of", lambda _: 0)
    command = tmp_path / "command.json"
    command.write_text('["nginx"]')

    def make(kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "after": -10,
            "delay_seconds": 0,
            "down_seconds": 3600,
            "status": "",
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
