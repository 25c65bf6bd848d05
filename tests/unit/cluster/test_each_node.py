"""Ctrl-C while something is done for many nodes: nothing more begins, and clean-ups end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.waiting import wait_until

from boardcluster.cluster.each_node import each_node
from boardcluster.errors import RemoteError
from boardcluster.remote import gate
from boardcluster.remote.gate import cleaning_up, run_program


def interrupted(
    names: Sequence[str], one: Callable[[str], object], *, after: Callable[[], object]
) -> float:
    """Do something for each node; Ctrl-C when it is time; return how many seconds all took."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("interrupts are not for us here")

    def interrupt() -> None:
        wait_until(after, "the program")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    breaker = threading.Thread(target=interrupt)
    started_seconds = time.monotonic()
    breaker.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            each_node(names, one)
    finally:
        breaker.join()
    return time.monotonic() - started_seconds


def test_an_interrupt_ends_what_is_asked_of_nodes_and_asks_no_more() -> None:
    names = [f"pi{number}" for number in range(40)]
    begun: list[str] = []
    failed: list[str] = []

    def one(name: str) -> None:
        begun.append(name)
        try:
            run_program(["sleep", "30"])
        except RemoteError as error:
            failed.append(error.message)
            raise

    seconds = interrupted(names, one, after=lambda: len(gate._running) >= 16)

    assert seconds < 10
    assert len(begun) == 16
    assert len(failed) == 16
    assert all(f"status {-signal.SIGTERM}" in message for message in failed)
    assert gate._running == {}


def test_what_waits_for_another_program_is_ended_when_it_begins() -> None:
    copying = threading.Semaphore(1)
    begun: list[str] = []

    def one(name: str) -> None:
        with copying:
            begun.append(name)
            run_program(["sleep", "20"])

    seconds = interrupted(["pi0", "pi1", "pi2"], one, after=lambda: begun)

    assert len(begun) == 3
    assert seconds < 15


def test_clean_ups_are_waited_for(tmp_path: Path) -> None:
    begun, cleaned = tmp_path / "begun", tmp_path / "cleaned"

    def one(_: str) -> None:
        try:
            run_program(["sh", "-c", 'touch "$0"; exec sleep 20', str(begun)])
        except RemoteError:
            with cleaning_up():
                run_program(["sh", "-c", 'sleep 0.7; touch "$0"', str(cleaned)])
            raise

    seconds = interrupted(["pi0"], one, after=begun.exists)

    assert cleaned.exists()
    assert seconds < 15
