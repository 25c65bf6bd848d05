"""Data of hours: what copies, counts and sorts waits for it, and not for an hour."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from boardcluster.remote import ssh
from boardcluster.remote.gate import DATA_SECONDS_MOST, Completed, pipe
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import HttpAnswer, http
from boardcluster.remote.ssh import SshRemote
from boardcluster.remote.ssh_route import SshRoute

TERABYTE, LINK_BYTES_PER_SECOND = 10**12, 100e6 / 8 * 0.95


class Patience:
    """Stands for programs; remembers how long the last one might take."""

    def __init__(self, answer: bytes = b"") -> None:
        self.seconds = 0.0
        self._answer = answer

    def __call__(self, *_: Any, timeout_seconds: float, **__: Any) -> Completed:
        self.seconds = timeout_seconds
        return Completed(
            argv=(), returncode=0, stdout=self._answer, stderr=b"", duration_seconds=0.0
        )


def test_a_terabyte_can_be_copied_over_a_link_of_100_mbit_to_a_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("a text")
    rsync = Patience()
    monkeypatch.setattr(ssh, "run_program", rsync)
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))

    SshRemote("pi0", route).put(tmp_path / "text", "/data/text")

    assert rsync.seconds > TERABYTE / LINK_BYTES_PER_SECOND


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_terabyte_can_be_sent_to_hdfs_and_read_from_it(
    monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    answer = HttpAnswer(status=200, body="", location="")
    agent = Patience(json.dumps([dataclasses.asdict(answer)]).encode())
    here = LocalRemote("here")
    monkeypatch.setattr(here, "run", agent)

    named: dict[str, Any] = {side: "/data/text"}
    http(here, "PUT", "http://here/", timeout_seconds=300, **named)

    assert agent.seconds > TERABYTE / LINK_BYTES_PER_SECOND


def test_whoever_counts_and_sorts_has_as_long() -> None:
    default = inspect.signature(pipe).parameters["timeout_seconds"].default
    assert default == DATA_SECONDS_MOST > TERABYTE / LINK_BYTES_PER_SECOND
