"""Data of hours: what copies, counts and sorts waits for it, and not for an hour."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError
from boardcluster.fetch import cache
from boardcluster.remote import ssh
from boardcluster.remote.gate import Completed, pipe
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import HttpAnswer, http
from boardcluster.remote.ssh import SshRemote
from boardcluster.remote.ssh_route import SshRoute
from boardcluster.waiting import DATA_SECONDS_MOST

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


class Disk:
    """Stands for a node's programs; its disk has so much room."""

    def __init__(self, free_bytes: int) -> None:
        self._free_bytes = free_bytes
        self.ran: list[str] = []

    def __call__(self, argv: Sequence[str], **_: Any) -> Completed:
        self.ran.append(argv[0])
        shown = f"Avail\n{self._free_bytes}\n" if argv[0] == "df" else ""
        return Completed(
            argv=tuple(argv),
            returncode=0,
            stdout=shown.encode(),
            stderr=b"",
            duration_seconds=0.0,
        )


@pytest.mark.parametrize(
    ("size_bytes", "free_bytes", "fits"),
    [(10**9, 2 * 10**9, True), (10**9, 14 * 10**8, False), (1000, 0, True)],
)
def test_a_large_file_is_not_sent_to_a_disk_that_cannot_hold_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size_bytes: int,
    free_bytes: int,
    fits: bool,
) -> None:
    text = tmp_path / "text"
    with text.open("wb") as stream:
        stream.truncate(size_bytes)
    node = SshRemote(
        "pi0", SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    )
    disk, sent = Disk(free_bytes), Patience()
    monkeypatch.setattr(node, "run", disk)
    monkeypatch.setattr(ssh, "run_program", sent)

    if fits:
        with node.temporary_upload(text):
            assert sent.seconds > 0
    else:
        with pytest.raises(CapacityError, match="pi0: text has 1,000,000,000 bytes"):
            node.temporary_upload(text).__enter__()
        assert sent.seconds == 0
    assert disk.ran[-1] == "rm"


def test_a_disk_that_fills_during_a_copy_is_a_lack_of_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("a text")
    full = Completed(
        argv=(),
        returncode=11,
        stdout=b"",
        stderr=b"rsync: [receiver] write failed: No space left on device (28)\n",
        duration_seconds=0.0,
    )
    monkeypatch.setattr(ssh, "run_program", lambda *_, **__: full)
    route = SshRoute(host="pi0", known_hosts=tmp_path / "known", control=Path("/tmp"))
    with pytest.raises(CapacityError, match=r"pi0: .*a disk is full: rsync: .*No space left"):
        SshRemote("pi0", route).put(tmp_path / "text", "/data/text")


def test_who_waits_for_a_count_of_another_process_has_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    @contextlib.contextmanager
    def hold_lock(_: Path, *, purpose: str, timeout_seconds: float) -> Iterator[None]:
        seen.append(timeout_seconds)
        yield

    monkeypatch.setattr(cache, "hold_lock", hold_lock)
    cache.made_once(tmp_path / "count", Path.touch, purpose="counting words")
    assert seen == [DATA_SECONDS_MOST]


def test_whoever_counts_and_sorts_has_as_long() -> None:
    default = inspect.signature(pipe).parameters["timeout_seconds"].default
    assert default == DATA_SECONDS_MOST > TERABYTE / LINK_BYTES_PER_SECOND
