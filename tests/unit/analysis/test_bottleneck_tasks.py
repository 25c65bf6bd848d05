"""What bound boards of four cores whose tasks wait, against simulated queues of known truth."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.closed_queue import Workload, board_result, simulate, true_gain
from tests.unit.analysis.test_bottleneck import check

from boardcluster.analysis.bottleneck import Bound, PhaseDiagnosis, diagnose
from boardcluster.analysis.bottleneck.tasks import covered, task_load
from boardcluster.records import TaskRecord

CARD = Workload(cpu=30, storage=20)
"""Four tasks on four cores that queue at an SD card: faster storage brings 1.69 in the long run."""
SSD = Workload(cpu=30, storage=70, disk_servers=32)
"""The same where nobody waits for others: 100 ms become 65 ms, which is 1.54."""


def of(load: Workload, *, without: tuple[str, ...] = (), counted: bool = True) -> PhaseDiagnosis:
    telemetry = simulate(load).telemetry
    nodes = tuple(
        replace(
            node,
            columns={name: row for name, row in node.columns.items() if name not in without},
        )
        for node in telemetry.nodes
    )
    tasks = telemetry.tasks if counted else ()
    found = diagnose(board_result(load), replace(telemetry, nodes=nodes, tasks=tasks)).run
    check(found)
    return found


@pytest.mark.parametrize("counted", [True, False], ids=["tasks known", "samples alone"])
def test_tasks_that_queue_at_a_card_are_bound_by_it_though_each_second_someone_computes(
    counted: bool,
) -> None:
    found = of(CARD, counted=counted)
    assert found.first is Bound.STORAGE
    assert found.gains[Bound.STORAGE] == pytest.approx(1.69, rel=0.1)
    low, high = found.gain_bounds[Bound.STORAGE]
    assert (1.4 if counted else 1.0) < low < 1.64
    assert 1.69 < high < 2.0
    assert found.gains[Bound.CPU] == pytest.approx(1.045, rel=0.05)
    assert found.shares[Bound.CPU] < 0.4


@pytest.mark.parametrize("counted", [True, False], ids=["tasks known", "samples alone"])
def test_an_ssd_that_serves_all_at_once_shortens_waiting_by_no_queue(counted: bool) -> None:
    found = of(SSD, counted=counted)
    assert found.first is Bound.STORAGE
    assert found.gains[Bound.STORAGE] == pytest.approx(1.54, rel=0.1)
    low, high = found.gain_bounds[Bound.STORAGE]
    assert low < 1.54 < high


def test_a_run_from_before_tasks_were_recorded_keeps_its_number_and_says_what_it_hides() -> None:
    telemetry = replace(simulate(CARD).telemetry, tasks=None)
    found = diagnose(board_result(CARD), telemetry).run
    check(found)
    assert found.gains[Bound.STORAGE] == pytest.approx(1.0, abs=0.01)
    low, high = found.gain_bounds[Bound.STORAGE]
    assert low < 1.69 < high
    assert any("the run predates these records" in words for words in found.missing)


def test_where_the_medium_is_not_known_both_kinds_are_within_the_bounds() -> None:
    telemetry = simulate(SSD).telemetry
    result = board_result(SSD)
    assert result.attempt is not None
    setup = replace(result.attempt.fingerprint, hardware=())
    unknown = replace(result, attempt=replace(result.attempt, fingerprint=setup))
    low, high = diagnose(unknown, telemetry).run.gain_bounds[Bound.STORAGE]
    assert low < 1.54 < high


GRID: Mapping[str, Workload] = {
    "card": CARD,
    "ssd": SSD,
    "cpu alone": Workload(cpu=40),
    "more tasks than cores": Workload(cpu=40, storage=12, tasks=8),
    "link": Workload(cpu=20, network=12),
    "card and link": Workload(cpu=20, storage=25, network=6, nodes=2),
    "memory": Workload(cpu=40, memory=25),
    "steal": Workload(cpu=40, storage=12, steal=0.2, tasks=2),
    "steal and more tasks than cores": Workload(cpu=40, other=3, steal=0.1, tasks=8),
    "long start": Workload(cpu=40, storage=6, start_seconds=30),
    "waiting in tasks": Workload(cpu=10, other=25),
    "one task": Workload(cpu=40, storage=25, tasks=1),
    "constant times": Workload(cpu=20, storage=12, tasks=6, spread="constant"),
    "written later": Workload(cpu=20, written=12),
    "written later, tasks held up": Workload(cpu=40, written=50, tasks=2),
}


def test_predictions_are_near_the_truth_and_nearer_than_those_that_look_at_nothing() -> None:
    errors, nothing, ratio = [], [], []
    for name, load in GRID.items():
        short = replace(load, seconds=20.0)
        found = of(short)
        truths = {Bound(kind): true_gain(short, kind) for kind in _kinds(short)}
        for bound, truth in truths.items():
            errors.append(abs(found.gains[bound] / truth - 1))
            nothing.append(abs(1 / truth - 1))
            ratio.append(abs((2 if bound is Bound.CPU else 1) / truth - 1))
        saved = {
            bound: (1 - 1 / gain) / (2 if bound is Bound.MEMORY else 1)
            for bound, gain in truths.items()
        }
        assert found.first is not None, name
        assert saved.get(found.first, 0.0) > max(saved.values()) - 0.02, (name, truths)
    assert statistics.median(errors) <= 0.05
    assert statistics.median(errors) < min(statistics.median(nothing), statistics.median(ratio)) / 3
    assert max(errors) < 0.2


def _kinds(load: Workload) -> list[str]:
    every = ("cpu", "storage", "network", "memory", "start-up")
    return [kind for kind in every if load.uses(kind)]


def test_time_that_a_hypervisor_kept_is_the_cpus() -> None:
    load = Workload(cpu=40, storage=12, steal=0.3, tasks=2)
    found = of(load)
    blind = of(load, without=("cpu_steal_seconds",))
    assert found.gains[Bound.CPU] == pytest.approx(true_gain(load, "cpu"), rel=0.05)
    assert blind.gains[Bound.CPU] < 0.9 * found.gains[Bound.CPU]


def test_a_disk_can_be_what_limits_though_no_task_waits_for_it() -> None:
    """Written in the background: the disk is busy for 80 % of the time, and tasks compute."""
    load = Workload(cpu=50, written=10, tasks=4)
    found = of(load)
    assert found.first is Bound.CPU
    assert found.gains[Bound.CPU] == pytest.approx(true_gain(load, "cpu"), rel=0.1)
    assert found.gains[Bound.CPU] < 1.35


def test_waiting_for_none_of_the_resources_is_no_cpu_time() -> None:
    found = of(Workload(cpu=10, other=30))
    assert found.first is Bound.START_UP
    assert found.shares[Bound.CPU] == pytest.approx(0.25, abs=0.03)
    assert "tasks" in found.evidence[0]


def test_samples_alone_leave_wide_bounds_where_tasks_may_have_waited_unseen() -> None:
    load = Workload(cpu=10, other=12)
    low, high = of(load, counted=False).gain_bounds[Bound.CPU]
    assert low < true_gain(load, "cpu") < high


def test_the_bounds_hold_what_is_true() -> None:
    for load in (CARD, SSD, GRID["link"], GRID["constant times"]):
        found = of(load)
        for kind in ("storage", "network"):
            if load.uses(kind):
                low, high = found.gain_bounds[Bound(kind)]
                assert low / 1.02 < true_gain(load, kind) < high * 1.02


def task(begin: float, end: float, *, cpu: float = 0.0, fetch: float = 0.0) -> TaskRecord:
    return TaskRecord(
        node="pi1",
        begin_seconds=begin,
        end_seconds=end,
        cpu_seconds=cpu,
        fetch_wait_seconds=fetch,
    )


def test_tasks_are_spread_over_their_time() -> None:
    edges = np.arange(0.0, 5.0)
    tasks = [task(0.5, 2.5, cpu=1.0), task(2.0, 4.0, fetch=0.5)]
    found = task_load([*tasks, task(3.0, 3.0)], edges)
    assert list(found.in_flight) == pytest.approx([0.5, 1.0, 1.5, 1.0])
    assert list(found.own_cpu) == pytest.approx([0.25, 0.5, 0.25, 0.0])
    assert list(found.fetching) == pytest.approx([0.0, 0.0, 0.25, 0.25])
    assert list(covered(tasks, edges)) == pytest.approx([0.5, 1.0, 1.0, 1.0])
    assert list(covered([task(1.0, 1.5), task(3.5, 9.0)], edges)) == pytest.approx([0, 0.5, 0, 0.5])
    assert not task_load([], edges).in_flight.any()
    assert not covered([], edges).any()


def test_tasks_of_nodes_without_samples_do_no_harm() -> None:
    telemetry = simulate(replace(CARD, seconds=10.0)).telemetry
    lost = tuple(replace(row, node="elsewhere") for row in telemetry.tasks or ())
    found = diagnose(board_result(CARD), replace(telemetry, tasks=lost)).run
    check(found)
