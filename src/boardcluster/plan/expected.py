"""Each measured cell beside what is predicted without it, and the nearest untried ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from boardcluster.analysis import Cell
from boardcluster.analysis.statistics import Interval
from boardcluster.plan.hardware import BoardRates, MediumRates, board_rates, medium_rates
from boardcluster.plan.learning import learn, own_hardware
from boardcluster.plan.model import RuntimeModel, predict_many
from boardcluster.plan.observations import RunObservation
from boardcluster.plan.own_runs import OWN_HARDWARE, OwnRates, observation_of, own_groups
from boardcluster.plan.question import QuestionBatch
from boardcluster.records import ClusterSpec, Engine

__all__ = ["ExpectedRun", "expected_runs"]

_CELLS_MOST = 60
"""Cells of a report that are predicted; each is learned anew without its own runs."""
_DEFAULT_COPIES = 2
"""Copies of each block where a trial does not say it: those of the profile ``default``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRun:
    """A configuration with its prediction."""

    workload: str
    """Name of the workload."""
    engine: Engine
    """The engine."""
    conditions: str
    """What else its runs have in common, in words."""
    size_bytes: int
    """Input size."""
    workers: int
    """Number of workers."""
    measured_seconds: float | None
    """Median of its runs; None where it was not tried."""
    runs: int
    """How many."""
    seconds: float | None
    """Predicted time; None where nothing can be said."""
    interval: Interval | None
    """Holds 90 % of runs; None likewise."""
    unknown: str
    """Why the prediction is not to be believed; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """One cell as observations."""

    size_bytes: int
    workers: int
    replication: int
    runs: tuple[RunObservation, ...]

    @property
    def place(self) -> tuple[int, int]:
        """Where it lies among the cells of its group."""
        return self.size_bytes, self.workers


def expected_runs(cells: Iterable[Cell], cluster: ClusterSpec | None) -> tuple[ExpectedRun, ...]:
    """Predict each measured cell from the others, and the nearest configurations untried.

    A cell's prediction uses no run of its own. Of a group of comparable cells, twice the workers
    and twice the largest size are predicted from all of them.

    Args:
        cells: of the report.
        cluster: for cores and memory of own nodes; None where it is not known.
    """
    found: list[ExpectedRun] = []
    for words, tried in _groups(cells):
        if len(tried) < 2 or len(found) + len(tried) > _CELLS_MOST:
            continue
        for one in tried:
            others = [run for other in tried if other is not one for run in other.runs]
            model = _learned(others, cluster)
            found.append(_expected(model, words, one, is_measured=True))
        every = [run for one in tried for run in one.runs]
        model = _learned(every, cluster)
        found += [_expected(model, words, one, is_measured=False) for one in _untried(tried)]
    return tuple(found)


def _groups(cells: Iterable[Cell]) -> Iterator[tuple[str, list[_Tried]]]:
    """Return comparable cells together: of one workload, engine, program, settings and nodes."""
    observed: list[tuple[Cell, RunObservation]] = []
    for cell in cells:
        if cell.engine is Engine.MPI or cell.concurrency != 1 or "+" in cell.workload:
            continue
        for result in cell.results:
            run = observation_of(result, replication=_DEFAULT_COPIES)
            if run is not None:
                observed.append((cell, run))
    keys = dict.fromkeys((run.workload, run.engine) for _, run in observed)
    for key in keys:
        mine = [(cell, run) for cell, run in observed if (run.workload, run.engine) == key]
        for group in own_groups([run for _, run in mine]):
            members = set(map(id, group.runs))
            by_place: dict[tuple[int, int, int], list[RunObservation]] = {}
            for cell, run in mine:
                if id(run) in members:
                    place = (cell.size_bytes, cell.workers, run.replication)
                    by_place.setdefault(place, []).append(run)
            yield (
                group.words,
                [
                    _Tried(
                        size_bytes=size_bytes,
                        workers=workers,
                        replication=replication,
                        runs=tuple(runs),
                    )
                    for (size_bytes, workers, replication), runs in sorted(by_place.items())
                ],
            )


def _untried(tried: Sequence[_Tried]) -> Iterator[_Tried]:
    """Return the nearest configurations beyond those tried: more workers, and more data."""
    places = {one.place for one in tried}
    most = max(tried, key=lambda one: (one.size_bytes, one.workers))
    widest = max(tried, key=lambda one: (one.workers, one.size_bytes))
    for one in (
        replace(widest, workers=widest.workers + 1),
        replace(widest, workers=2 * widest.workers),
        replace(most, size_bytes=2 * most.size_bytes),
    ):
        if one.place not in places:
            places.add(one.place)
            yield one


def _learned(runs: Sequence[RunObservation], cluster: ClusterSpec | None) -> RuntimeModel:
    smallest = min(
        cluster.workers if cluster else (), key=lambda node: node.memory_bytes, default=None
    )
    board, medium = own_hardware(
        OwnRates(seven_zip_mips=None, hdfs_write_mebibytes_per_second=None),
        memory_bytes=smallest.memory_bytes if smallest else 0,
        cores=smallest.cores if smallest else 1,
    )
    boards: list[BoardRates] = [board]
    boards += [board_rates(name) for name in {run.board for run in runs} - {OWN_HARDWARE}]
    media: list[MediumRates] = [medium]
    media += [medium_rates(name) for name in {run.medium for run in runs} - {OWN_HARDWARE}]
    own: dict[tuple[str, Engine], list[RunObservation]] = {}
    for run in runs:
        own.setdefault((run.workload, run.engine), []).append(run)
    return learn(boards, media, own=own)


def _expected(model: RuntimeModel, words: str, asked: _Tried, *, is_measured: bool) -> ExpectedRun:
    run = asked.runs[0]
    answer = predict_many(
        model,
        QuestionBatch(
            workload=run.workload,
            engine=run.engine,
            boards=(run.board,),
            media=(run.medium,),
            size_bytes=np.array([float(asked.size_bytes)]),
            workers=np.array([float(asked.workers)]),
            board=np.zeros(1, dtype=np.intp),
            medium=np.zeros(1, dtype=np.intp),
            replication=np.array([float(asked.replication)]),
            link_bits_per_second=np.array([run.link_bits_per_second]),
            slots=np.zeros(1),
        ),
    )
    seconds = float(answer.median_seconds[0])
    is_number = not np.isnan(seconds)
    interval = Interval(low=float(answer.low_seconds[0]), high=float(answer.high_seconds[0]))
    measured = [row.seconds for row in asked.runs] if is_measured else []
    return ExpectedRun(
        workload=run.workload,
        engine=run.engine,
        conditions=words,
        size_bytes=asked.size_bytes,
        workers=asked.workers,
        measured_seconds=median(measured) if measured else None,
        runs=len(measured),
        seconds=seconds if is_number else None,
        interval=interval if is_number else None,
        unknown=str(answer.reason[0]),
    )
