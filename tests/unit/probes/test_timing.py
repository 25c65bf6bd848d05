"""Timing on the node, and answers that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boardcluster.errors import ProbeOutputError, RemoteError, RemoteTimeoutError
from boardcluster.probes.timing import time_program
from boardcluster.remote.gate import Completed
from boardcluster.remote.local import LocalRemote


class Answering(LocalRemote):
    """A node that says what it is told to say."""

    def __init__(self, words: str) -> None:
        super().__init__("pi1")
        self.words = words

    def run(self, argv: object, **_: object) -> Completed:
        return Completed(
            argv=(), returncode=0, stdout=self.words.encode(), stderr=b"", duration_seconds=1.0
        )


def timed(remote: LocalRemote, *argv: str, folder: Path) -> float:
    return time_program(remote, argv, folder=str(folder), timeout_seconds=10)


def test_a_run_is_timed_in_its_folder(tmp_path: Path) -> None:
    assert 0.1 <= timed(LocalRemote(), "sleep", "0.1", folder=tmp_path) < 2
    timed(LocalRemote(), "touch", "made", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match=r"ls ended with status 2: .*no-such-file"):
        timed(LocalRemote("pi1"), "ls", "no-such-file", folder=tmp_path)


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no-such-program"):
        timed(LocalRemote("pi1"), "no-such-program", folder=tmp_path)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(RemoteTimeoutError):
        time_program(LocalRemote(), ["sleep", "60"], folder=str(tmp_path), timeout_seconds=0.5)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "welcome to pi1",
        "{}",
        '{"seconds": [3], "statuses": [0], "words": ""}',
        json.dumps({"seconds": 0.5, "statuses": [], "words": ""}),
        json.dumps({"seconds": 0, "statuses": [0], "words": ""}),
        '{"seconds": NaN, "statuses": [0], "words": ""}',
    ],
)
def test_an_answer_that_is_none_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(ProbeOutputError):
        timed(Answering(words), "lame", folder=tmp_path)
