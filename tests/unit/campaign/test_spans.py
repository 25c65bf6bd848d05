"""The engine's phases on the driver's clock, whatever the clocks of the nodes say."""

from __future__ import annotations

import pytest

from boardcluster.campaign.spans import (
    MOST_PARTS,
    EngineSpans,
    Span,
    engine_tasks,
    printed_spans,
    with_engine_phases,
)
from boardcluster.records import TaskRecord

BEGAN_WALL = 1_760_000_000.0
SORT = {"sort": (100.0, 130.0)}
"""A submission on the driver's monotonic clock; it began at ``BEGAN_WALL`` by its wall clock."""


def spans(parts: dict[str, Span], node: str = "master") -> dict[str, EngineSpans]:
    wall = {name: (BEGAN_WALL + begin, BEGAN_WALL + end) for name, (begin, end) in parts.items()}
    return {"sort": EngineSpans(began_wall_seconds=BEGAN_WALL, parts={node: wall})}


def test_what_a_program_dates_itself_is_read_among_all_else_it_prints() -> None:
    text = (
        "[host] some warning\n"
        "boardcluster phase core 1760000001.000000100 1760000009.500000000\n"
        "boardcluster phase core 1760000020.250000000 1760000030.750000000\n"
        "boardcluster phase core 17 \n"
    )
    assert printed_spans(text) == {"core": (1760000020.25, 1760000030.75)}
    assert printed_spans("nothing of the kind") == {}


def test_a_phase_lies_as_far_from_the_start_of_its_submission_as_the_engine_says() -> None:
    found = with_engine_phases(
        SORT, spans({"map": (3.0, 20.0), "start": (1.5, 3.0)}), ahead_seconds={}
    )

    assert list(found) == ["sort", "sort/start", "sort/map"]  # in order of time
    assert found["sort"] == SORT["sort"]
    assert found["sort/start"] == pytest.approx((101.5, 103.0))
    assert found["sort/map"] == pytest.approx((103.0, 120.0))


@pytest.mark.parametrize("ahead", [-7200.0, 0.25, 86400.0])
def test_a_clock_that_is_wrong_moves_no_phase(ahead: float) -> None:
    engine = spans({"map": (3.0 + ahead, 20.0 + ahead)}, node="worker3")

    found = with_engine_phases(SORT, engine, ahead_seconds={"worker3": ahead, "master": 5.0})

    assert found["sort/map"] == pytest.approx((103.0, 120.0), abs=1e-3)


def test_a_phase_is_cut_to_its_submission_and_left_out_if_nothing_is_left() -> None:
    parts = {"early": (-0.5, 2.0), "late": (29.0, 31.0), "after": (31.0, 40.0), "none": (5.0, 5.0)}

    found = with_engine_phases(SORT, spans(parts), ahead_seconds={})

    assert set(found) == {"sort", "sort/early", "sort/late"}
    assert found["sort/early"] == pytest.approx((100.0, 102.0))
    assert found["sort/late"] == pytest.approx((129.0, 130.0))


def test_phases_that_overlap_are_each_kept() -> None:
    parts = {"stage 0: map": (1.0, 9.0), "stage 1: collect": (4.0, 6.0)}

    found = with_engine_phases(SORT, spans(parts), ahead_seconds={})

    assert list(found) == ["sort", "sort/stage 0: map", "sort/stage 1: collect"]


def test_several_submissions_and_applications_keep_apart() -> None:
    both = {"sort": (100.0, 130.0), "check": (140.0, 150.0)}
    first = spans({"map": (1.0, 2.0)})["sort"]
    second = EngineSpans(
        began_wall_seconds=BEGAN_WALL + 40,
        parts={
            "worker1": {"job 1: map": (BEGAN_WALL + 42, BEGAN_WALL + 43)},
            "worker2": {"job 2: map": (BEGAN_WALL + 54, BEGAN_WALL + 55)},
        },
    )

    found = with_engine_phases(
        both, {"sort": first, "check": second}, ahead_seconds={"worker2": 10.0}
    )

    assert list(found) == ["sort", "sort/map", "check", "check/job 1: map", "check/job 2: map"]
    assert found["check/job 1: map"] == pytest.approx((142.0, 143.0))
    assert found["check/job 2: map"] == pytest.approx((144.0, 145.0))


def test_of_very_many_phases_the_longest_are_kept() -> None:
    parts = {
        f"stage {number}: step": (number * 0.1, number * 0.1 + 0.001 * (number + 1))
        for number in range(MOST_PARTS + 50)
    }

    found = list(with_engine_phases(SORT, spans(parts), ahead_seconds={}))

    assert len(found) == 1 + MOST_PARTS
    assert found[1:] == [f"sort/stage {number}: step" for number in range(50, MOST_PARTS + 50)]


def test_a_submission_that_the_engine_says_nothing_of_stays_as_it_is() -> None:
    assert with_engine_phases(SORT, {}, ahead_seconds={"master": 3.0}) == SORT


@pytest.mark.parametrize("ahead", [-7200.0, 0.25, 86400.0])
def test_tasks_lie_as_far_from_the_start_as_phases_whatever_the_clock_says(ahead: float) -> None:
    def task(begin: float, end: float) -> TaskRecord:
        return TaskRecord(
            node="worker1",
            begin_seconds=BEGAN_WALL + ahead + begin,
            end_seconds=BEGAN_WALL + ahead + end,
            cpu_seconds=1.0,
        )

    rows = (task(5.0, 31.0), task(2.0, 4.0), task(31.0, 40.0))
    engine = {"sort": EngineSpans(began_wall_seconds=BEGAN_WALL, tasks={"worker3": rows})}

    found = engine_tasks(SORT, engine, ahead_seconds={"worker3": ahead})

    assert [row.begin_seconds for row in found] == pytest.approx([102.0, 105.0], abs=1e-3)
    # The second is cut to its submission.
    assert [row.end_seconds for row in found] == pytest.approx([104.0, 130.0], abs=1e-3)
    assert engine_tasks(SORT, {}, ahead_seconds={}) == ()
