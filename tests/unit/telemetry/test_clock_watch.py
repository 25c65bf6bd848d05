"""Clocks that do not go on together are found, and say what happened."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests.builders import make_samples

from boardcluster.remote import node_clock
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.node_clock import compare_clocks, slept_seconds
from boardcluster.telemetry.clock_watch import ClockWatch, clock_steps
from boardcluster.telemetry.samples import Alignment


def alignment(offset: float, error: float = 0.1) -> Alignment:
    return Alignment(monotonic_offset_seconds=offset, wall_offset_seconds=0.0, error_seconds=error)


def sleep(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let this machine have been suspended: only this clock counts that."""
    real = time.clock_gettime
    monkeypatch.setattr(
        time,
        "clock_gettime",
        lambda which: real(which) + seconds * (which == time.CLOCK_BOOTTIME),
    )


def test_a_machine_that_stays_awake_says_nothing() -> None:
    watch = ClockWatch()
    watch.begin("worker1", "boot", alignment(5000.0))
    watch.end("worker1", "boot", alignment(5000.3))
    assert watch.faults() == ()


def test_a_machine_that_slept_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ClockWatch()
    before = slept_seconds()
    sleep(monkeypatch, 90.0)
    assert slept_seconds() - before == pytest.approx(90.0, abs=0.1)
    assert watch.faults() == ("this machine slept for 1 min 30 s",)


@pytest.mark.parametrize(("end", "which"), [(5090.0, "more"), (4910.0, "less")])
def test_a_driver_or_board_that_stood_still_is_seen_by_the_other(end: float, which: str) -> None:
    watch = ClockWatch()
    watch.begin("worker1", "boot", alignment(5000.0))
    watch.end("worker1", "boot", alignment(end))
    assert watch.faults() == (f"worker1: 1 min 30 s {which} passed there than on this machine",)


def test_a_board_that_was_restarted_is_not_a_matter_of_clocks() -> None:
    watch = ClockWatch()
    watch.begin("worker1", "boot", alignment(5000.0))
    watch.end("worker1", "another", alignment(-20.0))
    assert watch.faults() == ()


def test_a_clock_that_nobody_knows_is_refused() -> None:
    watch = ClockWatch()
    watch.begin("worker1", "boot", alignment(0.0, error=5.0))
    (words,) = watch.faults()
    assert words.startswith("worker1: its clock is known only to within 5 s")


def test_a_wall_clock_that_was_set_is_named() -> None:
    columns: dict[str, Any] = {"clock_step_seconds": [np.nan, 0.2, -30.0, 0.1]}
    at = [1.0, 2.0, 3.0, 4.0]
    set_back = make_samples("worker1", seconds=at, columns=columns)
    columns = {"clock_step_seconds": [np.nan, 0.2, -0.3, 0.1]}
    smooth = make_samples("worker2", seconds=at, columns=columns)
    assert clock_steps({"worker1": set_back, "worker2": smooth}) == (
        "worker1: its wall clock was set back by 30 s",
    )


@pytest.mark.parametrize(
    ("own_boot", "round_trips", "error_seconds"), [("", 3, 0.04), ("other", 3, 0.04), ("b", 1, 5.0)]
)
def test_of_several_round_trips_the_shortest_counts(
    monkeypatch: pytest.MonkeyPatch, own_boot: str, round_trips: int, error_seconds: float
) -> None:
    """Half of the first one, of 10 s, would hide that the clock is 4 s ahead.

    Clocks of the driver's own kernel are asked for once, however long that takes.
    """
    took = iter([10.0, 3.0, 0.08, 10.0, 10.0])
    now = [0.0]
    asked: list[dict[str, Any]] = []

    def answer(_: object, request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        now[0] += next(took)
        clocks = {"monotonic_seconds": now[0] + 700.0, "wall_seconds": now[0] + 4.0}
        return {**clocks, "boot_id": "b", "free_bytes": 7}

    monkeypatch.setattr(node_clock, "rpc", answer)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    found = compare_clocks(FakeRemote("worker1"), own_boot=own_boot)
    assert len(asked) == round_trips
    assert found.error_seconds == pytest.approx(error_seconds)
    assert found.wall_offset_seconds == pytest.approx(4 + error_seconds)
    assert found.monotonic_offset_seconds == pytest.approx(700 + error_seconds)


@pytest.mark.parametrize(("boot", "ahead"), [("other", 96.0), ("b", 0.0)])
def test_a_nodes_clock_is_held_against_anothers(
    monkeypatch: pytest.MonkeyPatch, boot: str, ahead: float
) -> None:
    """Nodes that share a kernel share its clocks."""

    def answer(remote: Any, _: object) -> dict[str, Any]:
        wall, kernel = {"worker1": (100.0, "b"), "master": (4.0, boot)}[remote.name]
        return {
            "monotonic_seconds": 0.0,
            "wall_seconds": 1000.0 + wall,
            "boot_id": kernel,
            "free_bytes": 7,
        }

    monkeypatch.setattr(node_clock, "rpc", answer)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    monkeypatch.setattr(time, "time", lambda: 1000.0)

    found = node_clock.ahead_seconds(FakeRemote("worker1"), FakeRemote("master"))

    assert found == pytest.approx(ahead)
