"""Verdicts in per cent of the result: how much of a run's time a disturbance explains at most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_measurement, make_result
from tests.unit.analysis.telemetry import NAN, Column, node, times, when, world

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.trust import Expectations, Judgement, judge, precision_reached
from boardcluster.records import (
    Disturbance,
    NodeSamples,
    Telemetry,
    Verdict,
    in_cell,
)

AT = times()
EXACT = np.arange(-1.0, 61.5)
"""Ends of intervals that begin and end with the run."""
FOUR = 4
NOMINAL = {"pi": 1.5e9}


def cpu(used_cores: float, *, cores: int = FOUR, taken_cores: float = 0.0) -> dict[str, Column]:
    """A machine on which the run uses so many cores all the time, and others so many."""
    return {
        "cpu_user_seconds": used_cores + taken_cores,
        "cpu_system_seconds": 0.0,
        "cpu_irq_seconds": 0.0,
        "cpu_iowait_seconds": 0.0,
        "cpu_idle_seconds": cores - used_cores - taken_cores,
        "cpu_steal_seconds": 0.0,
        "foreign_cpu_seconds": taken_cores,
        "pressure_cpu_seconds": NAN,
        "clock_measured_hertz": 1.5e9,
    }


def machine(used_cores: float, /, *, taken_cores: float = 0.0, **columns: Column) -> NodeSamples:
    """A node of four cores."""
    usual = cpu(used_cores, taken_cores=taken_cores)
    return node("pi", cores=FOUR, seconds=EXACT, columns={**usual, **columns})


def judged(*nodes: NodeSamples, **settings: Any) -> Judgement:
    names = tuple(row.node for row in nodes)
    return judge(world(*nodes), expectations=Expectations(nodes=names, **settings))


def shares(found: Judgement) -> dict[str, float]:
    return {row.cause: row.share for row in found.disturbances}


# What the rules that counted shares of the machine got wrong


def test_little_steal_is_much_of_a_job_that_uses_little() -> None:
    """1.9 % of four cores is 0.076 cores: 9.5 % of the CPU time of a job that uses 0.8."""
    found = judged(machine(0.8, cpu_steal_seconds=0.019 * FOUR))
    assert found.verdict is Verdict.TAINTED
    assert shares(found)["steal"] == pytest.approx(0.076)
    [reason] = found.reasons
    assert reason.endswith("; explains at most 7.6 % of the time")


def test_the_same_steal_is_little_of_a_job_that_uses_every_core() -> None:
    found = judged(machine(3.9, cpu_steal_seconds=0.019 * FOUR))
    assert found.verdict is Verdict.VALID
    assert shares(found)["steal"] == pytest.approx(0.076 / 3.976)


def test_foreign_load_beside_idle_cores_is_harmless() -> None:
    found = judged(machine(0.5, taken_cores=0.06 * FOUR))
    assert (found.verdict, found.disturbances) == (Verdict.VALID, ())


def test_the_same_foreign_load_where_no_core_is_left_taints() -> None:
    found = judged(machine(FOUR * 0.94, taken_cores=0.06 * FOUR))
    assert found.verdict is Verdict.TAINTED
    assert shares(found)["foreign load"] == pytest.approx(0.06)


def test_foreign_load_cost_no_more_than_the_kernel_saw_programs_wait_for_a_cpu() -> None:
    busy = machine(FOUR * 0.94, taken_cores=0.06 * FOUR, pressure_cpu_seconds=0.01)
    assert shares(judged(busy)) == {"foreign load": pytest.approx(0.01)}


@pytest.mark.parametrize("used_cores", [1.0, 2.0, 3.0])
def test_a_board_below_half_its_clock_is_found_however_many_cores_are_busy(
    used_cores: float,
) -> None:
    """The firmware lowers the clock, and the kernel still reports the full one."""
    slow = machine(
        used_cores,
        clock_measured_hertz=when(EXACT, 0.6e9, outside=1.5e9, start_seconds=30),
        **{"clock_hertz/cpu0": 1.5e9, "clock_nominal_hertz": 1.5e9},
    )
    found = judged(slow, nominal_hertz=NOMINAL)
    assert found.verdict is Verdict.TAINTED
    assert shares(found) == {"slow clock": pytest.approx(0.5 * 0.6)}
    assert not in_cell(measured(found))


def test_two_of_four_busy_cores_are_enough_where_the_kernel_reports_no_clock() -> None:
    slow = when(EXACT, 0.6e9, outside=1.5e9, start_seconds=30)
    found = judged(machine(2.0, clock_measured_hertz=slow), nominal_hertz=NOMINAL)
    assert shares(found) == {"slow clock": pytest.approx(0.3)}


def test_a_governor_may_lower_the_clock_of_a_board_that_has_little_to_do() -> None:
    lowered = machine(
        1.0,
        clock_measured_hertz=0.6e9,
        **{"clock_hertz/cpu0": 0.6e9, "clock_nominal_hertz": 1.5e9},
    )
    assert judged(lowered, nominal_hertz=NOMINAL).disturbances == ()


def demo(**columns: Column) -> NodeSamples:
    """The machine below a demo of 61 s that keeps its two cores busy."""
    usual = cpu(1.9, cores=2)
    return node("host", cores=2, columns={**usual, **columns})


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ({"cpu_steal_seconds": 0.058 * 2}, "steal"),
        (
            {
                "clock_measured_hertz": when(
                    AT, 2.0e9, outside=3.0e9, start_seconds=20, end_seconds=23
                )
            },
            "slow clock",
        ),
    ],
    ids=["5.8 % of steal", "three seconds at a lower clock"],
)
def test_no_run_of_a_demo_is_dropped_for_a_little(columns: dict[str, Column], cause: str) -> None:
    found = judged(demo(**columns))
    assert cause in shares(found)
    assert in_cell(measured(found))


def test_a_clock_above_the_nominal_one_is_named() -> None:
    fast = machine(2.0, clock_measured_hertz=when(EXACT, 1.8e9, outside=1.5e9, start_seconds=30))
    found = judged(fast, nominal_hertz=NOMINAL)
    assert found.verdict is Verdict.TAINTED
    assert shares(found) == {"fast clock": pytest.approx(0.5 * 0.2)}
    [reason] = found.reasons
    assert reason == (
        "pi: ran at 1.80 GHz for 30 s of 60 s (from 30 s on), faster than its nominal clock of"
        " 1.50 GHz; explains at most 10 % of the time"
    )


def test_a_clock_above_the_nominal_one_is_named_however_often_it_was_there() -> None:
    fast, slow = (machine(3.0, clock_measured_hertz=hertz) for hertz in (1.8e9, 1.5e9))
    usual = {"nominal_hertz": NOMINAL, "best_hertz": {"pi": 1.8e9}}
    assert shares(judged(fast, **usual)) == {"fast clock": pytest.approx(0.2)}
    found = judged(slow, **usual)
    assert shares(found) == {"slow clock": pytest.approx(1 / 6)}
    assert "its own best was 1.80 GHz" in found.reasons[0]


def test_a_board_is_held_against_its_own_best_of_earlier_runs() -> None:
    slow = machine(3.0, clock_measured_hertz=1.2e9)
    assert judged(slow).verdict is Verdict.VALID
    found = judged(slow, best_hertz={"pi": 1.5e9})
    assert shares(found) == {"slow clock": pytest.approx(0.2)}


# Bounds


def measured(found: Judgement, **changes: Any) -> Any:
    return make_measurement(
        60.0,
        verdict=found.verdict,
        verdict_reasons=found.reasons,
        disturbances=found.disturbances,
        tolerated_share=found.tolerated_share,
        **changes,
    )


def test_steal_of_a_serial_phase_counts_in_full_and_of_a_parallel_one_by_core() -> None:
    """Twenty seconds on four cores lose a quarter of what is stolen, twenty on one all of it."""
    used = when(EXACT, 1.0, outside=3.8, start_seconds=30)
    stolen = when(EXACT, 0.2, outside=0.2, start_seconds=0)
    row = machine(0.0, cpu_user_seconds=used, cpu_steal_seconds=stolen)
    assert shares(judged(row))["steal"] == pytest.approx((30 * 0.2 / 4 + 30 * 0.2 / 1.2) / 60)


def test_a_disturbance_never_explains_more_than_the_time_there_was() -> None:
    found = judged(machine(1.0, cpu_steal_seconds=40.0))
    assert shares(found) == {"steal": pytest.approx(40 / 41)}
    swapped = judged(machine(1.0, swap_in_bytes=1e9, pressure_memory_seconds=7.0))
    assert shares(swapped) == {"swap": 1.0}


def test_swap_explains_no_more_than_the_kernel_saw_programs_wait_for_memory() -> None:
    found = judged(machine(1.0, swap_in_bytes=1e9, pressure_memory_seconds=0.03))
    assert found.verdict is Verdict.VALID
    assert shares(found) == {"swap": pytest.approx(0.03)}


def test_throttled_time_counts_as_spent_at_the_lowest_clock() -> None:
    bits = when(EXACT, 4.0, outside=0.0, start_seconds=48)
    known = judged(
        machine(3.0, throttle_bits=bits), nominal_hertz=NOMINAL, least_hertz={"pi": 0.6e9}
    )
    assert shares(known) == {"throttled": pytest.approx(12 / 60 * 0.6)}
    unknown = judged(machine(3.0, throttle_bits=bits))
    assert shares(unknown) == {"throttled": pytest.approx(12 / 60)}
    idle = judged(machine(0.01, throttle_bits=bits))
    assert shares(idle) == {"throttled": pytest.approx(12 / 60 * 0.01)}


def test_time_is_not_counted_as_throttled_and_as_slow() -> None:
    bits = when(EXACT, 4.0, outside=0.0, start_seconds=30)
    clock = when(EXACT, 0.6e9, outside=1.5e9, start_seconds=30)
    found = judged(
        machine(3.0, throttle_bits=bits, clock_measured_hertz=clock),
        nominal_hertz=NOMINAL,
        least_hertz={"pi": 0.6e9},
    )
    assert shares(found) == {"throttled": pytest.approx(0.3)}


def test_nodes_that_are_disturbed_at_once_hold_a_run_up_once() -> None:
    def stolen(start_seconds: float) -> Column:
        return when(
            EXACT, 0.5, outside=0.0, start_seconds=start_seconds, end_seconds=start_seconds + 10
        )

    one = machine(1.0, cpu_steal_seconds=stolen(10))
    same = replace(machine(1.0, cpu_steal_seconds=stolen(10)), node="pi2")
    later = replace(machine(1.0, cpu_steal_seconds=stolen(30)), node="pi2")
    alone = shares(judged(one))["steal"]
    assert alone == pytest.approx(10 / 60 * 0.5 / 1.5)
    assert shares(judged(one, same))["steal"] == pytest.approx(alone)
    assert shares(judged(one, later))["steal"] == pytest.approx(2 * alone)


def test_only_what_is_timed_counts() -> None:
    """Between two jobs one after the other nobody's clock runs."""
    steal = when(EXACT, 0.5, outside=0.0, start_seconds=20, end_seconds=40)
    row = machine(1.0, cpu_steal_seconds=steal)
    telemetry = Telemetry(
        duration_seconds=60.0,
        nodes=(row,),
        phases={"1-grep": (0.0, 20.0), "1-grep/map": (0.0, 50.0), "2-sort": (40.0, 60.0)},
    )
    assert judge(telemetry, expectations=Expectations(nodes=("pi",))).disturbances == ()


def test_a_slower_link_explains_what_it_carried_and_the_time_in_which_it_changed() -> None:
    columns: dict[str, Any] = {
        "link_bits_per_second/eth0": when(EXACT, 1e8, outside=1e9, start_seconds=30),
        "net_received_bytes/eth0": 1e6,
        "net_sent_bytes/eth0": 0.0,
    }
    found = judged(machine(1.0, **columns))
    # 29 s carry 8 Mbit each at 100 Mbit/s, of which nine tenths were lost; one second it changed.
    assert shares(found) == {"link": pytest.approx((29 * 0.08 * 0.9 + 1) / 60)}


# From a bound to a verdict


def test_what_explains_less_than_the_cell_can_tell_from_noise_is_valid() -> None:
    telemetry = world(machine(0.8, cpu_steal_seconds=0.076))
    expectations = Expectations(nodes=("pi",))
    for tolerated, verdict in ((0.05, Verdict.TAINTED), (0.08, Verdict.VALID)):
        found = judge(telemetry, expectations=expectations, tolerated_share=tolerated)
        assert (found.verdict, found.tolerated_share) == (verdict, tolerated)
        assert shares(found)["steal"] == pytest.approx(0.076)


def test_small_disturbances_add_up() -> None:
    row = machine(0.8, cpu_steal_seconds=0.03, swap_in_bytes=1e9, pressure_memory_seconds=0.03)
    found = judged(row)
    assert found.verdict is Verdict.TAINTED
    assert found.reasons[-1] == "together this explains at most 6.0 % of the time"
    assert in_cell(measured(found))  # of what cannot be adjusted for there is 3 %


def test_what_only_together_is_too_much_is_said_together() -> None:
    """One cause on two nodes, one after the other: neither line says why the run is tainted."""

    def stolen(start_seconds: float) -> Any:
        end_seconds = start_seconds + 10
        return when(EXACT, 0.25, outside=0.0, start_seconds=start_seconds, end_seconds=end_seconds)

    one = machine(1.0, cpu_steal_seconds=stolen(10))
    later = replace(machine(1.0, cpu_steal_seconds=stolen(30)), node="pi2")
    found = judged(one, later)
    assert found.verdict is Verdict.TAINTED
    assert [line.rpartition("at most ")[2] for line in found.reasons] == [
        "3.3 % of the time",
        "3.3 % of the time",
        "6.7 % of the time",
    ]


def disturbed(*rows: tuple[str, float, bool], tolerated_share: float = 0.05) -> Any:
    return make_measurement(
        60.0,
        verdict=Verdict.TAINTED,
        disturbances=tuple(
            Disturbance(cause=cause, node="pi", share=share, adjustable=adjustable)
            for cause, share, adjustable in rows
        ),
        tolerated_share=tolerated_share,
    )


@pytest.mark.parametrize(
    ("found", "inside"),
    [
        (disturbed(("steal", 0.2, True)), True),
        (disturbed(("steal", 0.2, True), ("foreign load", 0.04, True)), True),
        (disturbed(("steal", 0.2, True), ("foreign load", 0.06, True)), False),
        (disturbed(("steal", 0.26, True)), False),
        (disturbed(("throttled", 0.06, False)), False),
        (disturbed(("throttled", 0.06, False), tolerated_share=0.07), True),
        (disturbed(("steal", 0.2, True), ("throttled", 0.04, False)), True),
        (disturbed(("link", 0.03, False), ("throttled", 0.03, False)), False),
        (disturbed(), False),  # a taint of earlier versions
        (make_measurement(1.0, verdict=Verdict.VALID), True),
        (make_measurement(1.0, verdict=Verdict.UNJUDGED), True),
        (make_measurement(1.0, verdict=Verdict.INVALID), False),
    ],
)
def test_what_can_be_adjusted_for_stays_in_the_cell(found: Any, inside: bool) -> None:
    assert in_cell(found) is inside


def test_a_cell_keeps_what_can_be_adjusted_for() -> None:
    runs = [make_result(20.0, position=place, repetition=place + 1) for place in range(3)]
    steal = disturbed(("steal", 0.2, True))
    slow = disturbed(("throttled", 0.2, False))
    runs = [
        runs[0],
        replace(runs[1], measurement=replace(steal, duration_seconds=24.0)),
        replace(runs[2], measurement=replace(slow, duration_seconds=29.0)),
    ]
    [cell] = summarise(runs)
    assert sorted(cell.durations_seconds) == [20.0, 24.0]
    assert [row.measurement for row in cell.left_out] == [runs[2].measurement]
    [everything] = summarise(runs, tainted=True)
    assert sorted(everything.durations_seconds) == [20.0, 24.0, 29.0]


def test_the_precision_of_a_cell_is_that_of_its_interval() -> None:
    assert precision_reached([]) == precision_reached([60.0, 70.0]) == 0.05
    # s = 2, t(0.975, 3) = 3.1824: 3.1824 * 2 / sqrt(4) / 100
    assert precision_reached([98.0, 98.0, 102.0, 102.0]) == pytest.approx(
        3.182446 * np.std([98, 98, 102, 102], ddof=1) / 2 / 100
    )
    assert precision_reached([100.0, 100.0, 100.0]) == 0.01
    assert precision_reached([50.0, 100.0, 150.0]) == 0.25
