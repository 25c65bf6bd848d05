"""What runs on a node while somebody looks, and who reads it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from boardcluster.remote.base import StreamingRemote
from boardcluster.remote.gate import Piped, streaming
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import node_program
from boardcluster.telemetry import agent, relay, streams
from boardcluster.telemetry.collector import Target
from boardcluster.telemetry.streams import NodeStreams, RelayOrder


class Heard:
    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []

    def __call__(self, node: str, letter: str, text: str) -> None:
        self.rows.append((node, letter, text))

    def of(self, letter: str) -> list[str]:
        return [text for _, found, text in self.rows if found == letter]


def order(folder: Path, **changes: Any) -> RelayOrder:
    target = Target(
        remote=LocalRemote("here"),
        request={"scope": "machine", "groups": {}},
        folder=str(folder),
        cores=1,
    )
    return RelayOrder(target=target, **changes)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def listening(order: RelayOrder, heard: Heard) -> NodeStreams:
    found = NodeStreams({"here": order}, heard, interval_seconds=0.1)
    found.start()
    return found


def own_ticks() -> int:
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


def test_both_programs_name_the_process_alike() -> None:
    assert agent.RELAY == streams._COMM
    assert len(agent.RELAY) < 16, "the kernel cuts what is longer"


def test_own_samples_come_while_no_run_takes_any(tmp_path: Path, heard: Heard) -> None:
    found = listening(order(tmp_path), heard)
    try:
        wait_until(lambda: len(heard.of("T")) > 3, "samples")
    finally:
        found.close()
    assert heard.of("S") == ["own"]
    columns = json.loads(heard.of("T")[0])["columns"]
    assert "cpu_user_seconds" in {name for name, _, _ in columns}
    assert len(heard.of("T")[1].split(" ")) == len(columns) + 2


def test_samples_of_a_run_are_passed_on_and_none_are_taken(tmp_path: Path, heard: Heard) -> None:
    file = tmp_path / "telemetry-abc.txt"
    file.write_text('{"columns": []}\n1 2\n')
    found = listening(order(tmp_path), heard)
    try:
        wait_until(lambda: heard.of("T"), "samples")
        with file.open("a") as stream:
            stream.write("3 4\n5 ")
        wait_until(lambda: "3 4" in heard.of("T"), "what was added")
        assert heard.of("S") == ["run"]
        assert heard.of("T") == ['{"columns": []}', "1 2", "3 4"]
        file.unlink()
        wait_until(lambda: heard.of("S") == ["run", "own"], "own samples")
    finally:
        found.close()


def test_a_file_that_was_left_behind_is_not_a_run(tmp_path: Path, heard: Heard) -> None:
    file = tmp_path / "telemetry-abc.txt"
    file.write_text("1 2\n")
    os.utime(file, (time.time() - 60,) * 2)
    found = listening(order(tmp_path), heard)
    try:
        wait_until(lambda: heard.of("S"), "samples")
    finally:
        found.close()
    assert heard.of("S") == ["own"]


def test_the_folder_of_runs_can_change(tmp_path: Path, heard: Heard) -> None:
    found = listening(order(tmp_path), heard)
    try:
        wait_until(lambda: heard.of("S") == ["own"], "own samples")
        (tmp_path / "next").mkdir()
        (tmp_path / "next" / "telemetry-x.txt").write_text("7 8\n")
        found.look_in("here", str(tmp_path / "next"))
        wait_until(lambda: "7 8" in heard.of("T"), "samples of the run")
    finally:
        found.close()


def test_a_folder_that_is_named_while_a_relay_starts_is_looked_in(
    tmp_path: Path, heard: Heard
) -> None:
    starting, named = threading.Event(), threading.Event()

    class Slow(LocalRemote):
        def streaming(
            self, argv: Sequence[str], *, stdin: bytes = b""
        ) -> AbstractContextManager[Piped]:
            starting.set()
            assert named.wait(10)
            return super().streaming(argv, stdin=stdin)

    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "telemetry-x.txt").write_text("7 8\n")
    asked = order(tmp_path)
    slow = replace(asked, target=replace(asked.target, remote=Slow("here")))
    found = listening(slow, heard)
    try:
        assert starting.wait(10)
        found.look_in("here", str(tmp_path / "next"))
        named.set()
        wait_until(lambda: "7 8" in heard.of("T"), "samples of the run")
    finally:
        found.close()


LOADER = "import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"


def test_a_relay_that_is_loaded_from_its_input_sees_what_came_with_it(
    tmp_path: Path, heard: Heard
) -> None:
    """As over SSH, where program and request are one input, and later words may be in it, too."""
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "telemetry-x.txt").write_text("7 8\n")
    words = f"{json.dumps({'folder': str(tmp_path / 'next')})}\n".encode()

    class Loading(LocalRemote):
        def streaming(
            self, argv: Sequence[str], *, stdin: bytes = b""
        ) -> AbstractContextManager[Piped]:
            program = argv[-1].encode()
            data = b"%d\n" % len(program) + program + stdin + words
            return super().streaming([*argv[:-1], LOADER], stdin=data)

    asked = order(tmp_path)
    found = listening(replace(asked, target=replace(asked.target, remote=Loading("here"))), heard)
    try:
        wait_until(lambda: "7 8" in heard.of("T"), "samples of the run")
    finally:
        found.close()


def test_daemons_that_do_not_run_are_named(tmp_path: Path, heard: Heard) -> None:
    daemons = [("alive", os.getpid(), own_ticks()), ("reused", os.getpid(), 1), ("gone", 2**22, 1)]
    found = listening(order(tmp_path, daemons=daemons), heard)
    try:
        wait_until(lambda: heard.of("D"), "a sign of life")
    finally:
        found.close()
    assert json.loads(heard.of("D")[0]) == ["reused", "gone"]


def test_lines_of_new_logs_are_passed_on_if_they_match(tmp_path: Path, heard: Heard) -> None:
    old, new = tmp_path / "a-log", tmp_path / "b-log"
    old.write_text("Starting task of long ago\n")
    os.utime(old, (time.time() - 3600,) * 2)
    new.write_text("Starting task \N{SNOWMAN}\nsomething else\n")
    logs = order(tmp_path, logs=[f"{tmp_path}/*-log"], match="Starting|Finished")
    found = listening(logs, heard)
    try:
        wait_until(lambda: heard.of("L"), "lines")
    finally:
        found.close()
    assert [json.loads(row) for row in heard.of("L")] == [[str(new), "Starting task \N{SNOWMAN}"]]


def test_a_log_that_was_quiet_is_passed_on_once_it_goes_on(tmp_path: Path, heard: Heard) -> None:
    """As that of a job whose tasks all take minutes on slow boards."""
    log = tmp_path / "a-log"
    log.write_text("Starting task 1\n")
    os.utime(log, (time.time() - 3600,) * 2)
    found = listening(order(tmp_path, logs=[str(log)], match="Starting|Finished"), heard)
    try:
        wait_until(lambda: heard.of("S"), "samples")
        assert not heard.of("L")
        with log.open("a") as stream:
            stream.write("Finished task 1\n")
        wait_until(lambda: len(heard.of("L")) == 2, "both lines")
    finally:
        found.close()


def test_a_node_that_cannot_be_reached_is_said(tmp_path: Path, heard: Heard) -> None:
    class Nowhere(LocalRemote):
        def _wrap(self, argv: Any, cwd: Any) -> list[str]:
            return ["false"]

    target = Target(remote=Nowhere("x"), request={}, folder=str(tmp_path), cores=1)
    found = listening(RelayOrder(target=target), heard)
    try:
        wait_until(lambda: heard.of("X"), "the loss")
    finally:
        found.close()


def test_a_relay_ends_with_its_input() -> None:
    request = {
        "agent": node_program("agent", package="boardcluster.telemetry"),
        "sample": {"scope": "machine", "groups": {}},
        "folder": "/nonexistent",
        "own": True,
        "interval_seconds": 60.0,
        "daemons": [],
        "logs": [],
        "match": "",
        "comm": "boardcl-relay",
    }
    program = node_program("relay", package="boardcluster.telemetry")
    words = [sys.executable, "-I", "-S", "-c", program]
    began = time.monotonic()
    with streaming(words, stdin=f"{json.dumps(request)}\n".encode()) as piped:
        wait_until(lambda: _read(piped.output), "its first words")
    assert time.monotonic() - began < 5


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def test_a_long_file_is_read_from_near_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "FIRST_BYTES", 40)
    file = tmp_path / "telemetry-abc.txt"
    file.write_text("head\n" + "".join(f"line {number:03}\n" for number in range(100)))
    assert relay.Tail(str(file), keep_head=True).lines() == [
        "head",
        *(f"line {number:03}" for number in range(96, 100)),
    ]


def test_nodes_of_every_kind_can_stream() -> None:
    assert isinstance(LocalRemote("here"), StreamingRemote)
