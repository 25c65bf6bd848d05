"""Measured cells beside what is predicted without them, and configurations untried."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.builders import make_cluster, make_fingerprint, make_node, make_result

from boardcluster.analysis.cells import Cell, summarise
from boardcluster.plan.asking import predict_question
from boardcluster.plan.expected import expected_runs
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.plan.question import Question
from boardcluster.records import Engine, MasterPlacement, Result, Role

GIGABYTE = 10**9
TWIN = "5 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb"


def seconds(gigabytes: int, workers: int) -> float:
    return 20 + 60 * gigabytes / workers


def make_results(
    *,
    broken: tuple[int, int] | None = None,
    master: MasterPlacement = MasterPlacement.DECLARED,
    first: int = 0,
    **setup: Any,
) -> list[Result]:
    """Runs of three sizes on one to four workers; a broken one takes three times as long."""
    measured_on = make_fingerprint(**{"twin": TWIN, **setup})
    return [
        make_result(
            seconds(*place) * (3 if place == broken else 1) * noise,
            workload="terasort",
            engine=Engine.SPARK,
            size_bytes=place[0] * GIGABYTE,
            workers=place[1],
            repetition=repetition,
            position=first + position,
            setup=measured_on,
            master=master,
        )
        for position, (place, (repetition, noise)) in enumerate(
            itertools.product(
                itertools.product((1, 2, 4), (1, 2, 4)), enumerate((0.99, 1.0, 1.02), start=1)
            )
        )
    ]


def make_cells(**changes: Any) -> tuple[Cell, ...]:
    return summarise(make_results(**changes))


def test_each_cell_is_predicted_from_the_others() -> None:
    rows = [row for row in expected_runs(make_cells(), make_cluster()) if row.runs]
    assert len(rows) == 9
    for row in rows:
        true = seconds(row.question.size_bytes // GIGABYTE, row.question.workers)
        assert row.measured_seconds == pytest.approx(true, rel=0.02)
        assert row.seconds == pytest.approx(true, rel=0.2)


def test_what_no_other_cell_explains_differs_from_its_prediction() -> None:
    """The prediction has not seen the cell: a run that took three times as long stands out."""
    rows = [row for row in expected_runs(make_cells(broken=(2, 2)), make_cluster()) if row.runs]
    worst = max(rows, key=lambda row: (row.measured_seconds or 0) / (row.seconds or 1))
    assert (worst.question.size_bytes, worst.question.workers) == (2 * GIGABYTE, 2)
    assert (worst.measured_seconds or 0) > 1.8 * (worst.seconds or 0)


def test_a_kind_of_one_node_is_not_asked_for_more_workers() -> None:
    cells = [cell for cell in make_cells() if cell.workers == 1]
    alone = make_cluster(make_node("here", Role.MASTER, Role.WORKER), kind="local")
    asked = {
        spec.kind: {row.question.workers for row in expected_runs(cells, spec) if not row.runs}
        for spec in (alone, make_cluster())
    }
    assert asked == {"local": {1}, "emulated": {1, 2}}


def test_the_nearest_untried_configurations_are_predicted() -> None:
    rows = [row for row in expected_runs(make_cells(), make_cluster()) if not row.runs]
    assert {(row.question.size_bytes // GIGABYTE, row.question.workers) for row in rows} == {
        (4, 5),
        (4, 8),
        (8, 4),
    }
    for row in rows:
        true = seconds(row.question.size_bytes // GIGABYTE, row.question.workers)
        assert row.seconds == pytest.approx(true, rel=0.25)
        assert row.interval is not None
        assert row.interval.low < (row.seconds or 0) < row.interval.high


@pytest.mark.parametrize("other", [{"kernel": "6.1.0 x86_64"}, {"node_memory_bytes": 10**9}])
def test_runs_on_another_setup_are_predicted_by_themselves(other: dict[str, Any]) -> None:
    """A newer kernel may take another time, and so may nodes with less memory."""
    every = [*make_results(), *make_results(first=100, **other)]
    rows = [row for row in expected_runs(summarise(every), make_cluster()) if row.runs]
    assert [row.runs for row in rows] == [3] * 18


def test_block_copies_are_as_many_as_the_workers_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about one worker, which has one disk, says nothing of runs on several."""
    copies: list[int | None] = []

    def note(question: Question, *parts: Any, **how: Any) -> RuntimePrediction:
        copies.append(how.get("copies"))
        return predict_question(question, *parts, **how)

    monkeypatch.setattr("boardcluster.plan.expected.predict_question", note)
    alone = [cell for cell in make_cells() if cell.workers == 1]
    rows = expected_runs(alone, make_cluster())
    assert {row.question.workers: row.question.replication for row in rows} == {1: 1, 2: 2}
    assert set(copies) == {2}


def test_one_cell_alone_is_not_predicted() -> None:
    assert expected_runs(make_cells()[:1], make_cluster()) == ()


@pytest.mark.parametrize("master", [MasterPlacement.DECLARED, MasterPlacement.SEPARATE])
def test_own_nodes_without_probes_are_compared_with_themselves(master: MasterPlacement) -> None:
    rows = expected_runs(make_cells(twin="", master=master), make_cluster())
    assert len(rows) == 12
    assert all(row.seconds is not None for row in rows)
