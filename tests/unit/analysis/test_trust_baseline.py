"""What nodes are like before a run, on synthetic samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.analysis.telemetry import NAN, Column, node, world
from tests.unit.cluster.recordings import PI_5

from boardcluster.analysis.trust import Expectations, judge_before
from boardcluster.cluster.facts import parse_facts
from boardcluster.records import NodeFacts, NodeSamples

BEFORE = np.arange(-5.0, 0.0)
PLENTY = {"pi": 100 * 2**30}


def board(**changes: Any) -> NodeFacts:
    """A Raspberry Pi 5 as it should be."""
    folder = "/var/lib/boardcluster"
    raw = {**PI_5.raw(), "folder": folder}
    found = parse_facts(raw, folder=folder, asked_seconds=0.0, answered_seconds=0.5)
    good = {"governor": "performance", "clock_synchronised": True}
    return replace(found, **{**good, **changes})


def quiet(name: str = "pi", /, **columns: Column) -> NodeSamples:
    still: dict[str, Column] = {
        "cpu_user_seconds": 0.02,
        "cpu_idle_seconds": 3.97,
        "temperature_celsius": 41.0,
        "throttle_bits": 0.0,
        "clock_nominal_hertz": 2.4e9,
    }
    return node(name, seconds=BEFORE, cores=4, columns={**still, **columns})


def looked(
    *nodes: NodeSamples, free_bytes: dict[str, int] | None = None, **facts: Any
) -> tuple[str, ...]:
    return judge_before(
        world(*nodes, duration_seconds=5),
        facts={"pi": board(**facts)},
        free_bytes=PLENTY if free_bytes is None else free_bytes,
        expectations=Expectations(nodes=("pi",), nominal_hertz={"pi": 2.4e9}),
    )


def test_a_quiet_board_gives_no_remark() -> None:
    assert looked(quiet()) == ()


def test_a_quiet_emulated_cluster_gives_no_remark() -> None:
    found = judge_before(
        world(quiet("worker1"), quiet("host"), duration_seconds=5),
        facts={},
        free_bytes={"host": 50 * 2**30},
        expectations=Expectations(nodes=("worker1", "host")),
    )
    assert found == ()


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (1.0, "under-voltage (bit 0): its power supply or cable is too weak"),
        (2.0, "clock capped (bit 1): by the firmware"),
        (4.0, "throttled (bit 2): it is too hot or has too little power"),
        (8.0, "slowed at the soft temperature limit (bit 3): it is too hot"),
    ],
)
def test_a_throttle_bit_is_a_remark(bits: float, words: str) -> None:
    """Whether it lasted into the run, and what that cost, the run's own samples show."""
    assert looked(quiet(throttle_bits=bits)) == (f"before the run: pi: {words}",)


def test_since_boot_is_not_now() -> None:
    assert looked(quiet(throttle_bits=float(0xF0000))) == ()


def test_a_clock_that_is_not_reached_is_a_remark() -> None:
    slow = quiet(clock_measured_hertz=1.5e9)
    words = "before the run: pi: reaches only 1.50 GHz; its nominal clock is 2.40 GHz, governor"
    assert looked(slow) == (f"{words} performance",)
    assert looked(slow, governor="ondemand") == (
        f"{words} ondemand",
        "before the run: pi: governor ondemand, not performance: its clock rises only after load",
    )


def test_the_best_of_the_measured_clocks_counts() -> None:
    rising = quiet(clock_measured_hertz=[0.6e9, 1.0e9, 1.5e9, 2.2e9, 2.39e9])
    assert looked(rising) == ()
    assert looked(quiet(clock_measured_hertz=NAN)) == ()


@pytest.mark.parametrize(
    ("columns", "facts", "remark"),
    [
        (
            {"temperature_celsius": [60.0, 65.0, 70.0, 72.0, NAN]},
            {},
            (
                "pi: 72 °C, which leaves little margin: a Raspberry Pi lowers its clock from 80 °C"
                " on"
            ),
        ),
        (
            {"foreign_cpu_seconds": 1.0},
            {},
            "pi: other programs used 25 % of the machine (all the time)",
        ),
        (
            {"cpu_steal_seconds": 0.4},
            {},
            "pi: the hypervisor took 10 % of the CPU time, 1.6 s (all the time)",
        ),
        ({}, {"clock_synchronised": False}, "pi: no time service synchronises its clock"),
        (
            {},
            {"governor": "ondemand,performance"},
            "pi: governor ondemand,performance, not performance: its clock rises only after load",
        ),
    ],
)
def test_a_remark_only(columns: dict[str, Column], facts: dict[str, Any], remark: str) -> None:
    assert looked(quiet(**columns), **facts) == (f"before the run: {remark}",)


@pytest.mark.parametrize("facts", [{"clock_synchronised": None}, {"governor": ""}])
def test_what_is_not_known_is_not_remarked_on(facts: dict[str, Any]) -> None:
    assert looked(quiet(), **facts) == ()


def test_seventy_degrees_are_still_well() -> None:
    assert looked(quiet(temperature_celsius=70.0)) == ()


def test_little_free_space() -> None:
    free = {"pi": 2 * 2**30 - 1, "elsewhere": 2 * 2**30}
    (remark,) = looked(quiet(), free_bytes=free)
    assert remark == (
        "before the run: pi: only 2.15 GB free; YARN drops a node whose disk is 90 % full"
    )


def test_a_tenth_of_the_file_system_is_little() -> None:
    found = board()
    mount = found.mount(found.folder_mount)
    assert mount is not None
    assert mount.size_bytes
    tenth = mount.size_bytes // 10
    assert looked(quiet(), free_bytes={"pi": tenth + 1}) == ()
    assert len(looked(quiet(), free_bytes={"pi": tenth - 1})) == 1


@pytest.mark.parametrize("seconds", [np.array([]), np.array([NAN])])
def test_samples_without_a_time_say_nothing(seconds: np.ndarray[Any, Any]) -> None:
    assert looked(node("pi", seconds=seconds)) == ()


def test_no_samples_are_a_remark() -> None:
    assert looked() == ("before the run: pi: no samples before the run",)
