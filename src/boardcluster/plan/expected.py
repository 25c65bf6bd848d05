"""Each measured cell beside what is predicted without it, and the nearest untried ones. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.fingerprints import OF_NODES
from boardcluster.analysis.statistics import Interval
from boardcluster.plan.asking import OwnNodes, predict_question
from boardcluster.plan.observations import RunObservation
from boardcluster.plan.own_runs import conditions_of, observation_of, own_groups
from boardcluster.plan.question import Question
from boardcluster.records import ClusterSpec, ProbeRun, Result

__all__ = ["ExpectedRun", "expected_runs"]

_CELLS_MOST = 60
"""Cells of a report that are predicted; each is learned anew without its own runs."""
_DEFAULT_COPIES = 2
"""Copies of each block where a trial does not say it: those of the profile ``default``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRun:
    """A configuration with its prediction."""

    question: Question
    """The configuration."""
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
    """The runs of one configuration."""

    question: Question
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class _OtherRuns:
    """Some results and probes, read as a store is."""

    results: Sequence[Result]
    probes: Sequence[ProbeRun]

    def recent(
        self, workload: str, engine: str, *, most: int, without: Collection[str] = ()
    ) -> tuple[Result, ...]:
        """The runs of a workload on an engine."""
        found = [
            row
            for row in self.results
            if (row.trial.workload, row.trial.engine.value) == (workload, engine)
            and row.trial.campaign_id not in without
        ]
        return tuple(found[-most:])

    def probe_runs(self, *, node: str = "", probe: str = "") -> tuple[ProbeRun, ...]:
        """Runs of a probe."""
        return tuple(
            row for row in self.probes if probe in {"", row.probe} and node in {"", row.node}
        )


def expected_runs(
    cells: Iterable[Cell], cluster: ClusterSpec | None, probes: Sequence[ProbeRun] = ()
) -> tuple[ExpectedRun, ...]:
    """Predict each measured cell from the others, and the nearest configurations untried.

    A cell's prediction uses no run of its own. Of a group of comparable cells, one
    worker more, twice the workers and twice the largest size are predicted from all of them.

    Args:
        cells: of the report.
        cluster: for cores and memory of own nodes; None where it is not known.
        probes: runs of probes on the cluster's nodes.
    """
    smallest = min(
        cluster.workers if cluster else (), key=lambda node: node.memory_bytes, default=None
    )
    nodes = OwnNodes(memory_bytes=smallest.memory_bytes, cores=smallest.cores) if smallest else None
    found: list[ExpectedRun] = []
    for tried in _groups(cells):
        if len(tried) < 2 or len(found) + len(tried) > _CELLS_MOST:
            continue
        every = _OtherRuns([row for one in tried for row in one.results], probes)
        beyond = [
            _expected(_Tried(question=question, results=()), every, nodes)
            for question in _untried(tried)
            if cluster is None or question.workers <= cluster.capabilities.nodes_max
        ]
        # Hardware that cannot be compared with any gives no answer with fewer runs, either.
        if any(row.seconds is not None for row in beyond):
            for one in tried:
                others = [row for other in tried if other is not one for row in other.results]
                found.append(_expected(one, _OtherRuns(others, probes), nodes))
        found += beyond
    return tuple(found)


def _groups(cells: Iterable[Cell]) -> Iterator[list[_Tried]]:
    """Return comparable configurations together: they differ in size, workers and replication."""
    observed: dict[int, Result] = {}
    alike: dict[tuple[object, ...], list[RunObservation]] = {}
    for cell in cells:
        if not cell.engine.on_yarn or cell.concurrency != 1 or not cell.size_bytes:
            continue
        # What follows from the number of workers is another one in other cells of the same setup.
        setup = tuple((name, said) for name, said in cell.setup if name not in OF_NODES)
        for result in cell.results:
            run = observation_of(result, replication=_DEFAULT_COPIES, defaults={})
            if run is not None:
                observed[id(run)] = result
                alike.setdefault((cell.workload, cell.engine, setup), []).append(run)
    for runs in alike.values():
        for group in own_groups(runs):
            tried: dict[tuple[int, int, int], list[Result]] = {}
            questions: dict[tuple[int, int, int], Question] = {}
            for run in group.runs:
                trial = observed[id(run)].trial
                place = (trial.size_bytes, run.workers, run.replication)
                tried.setdefault(place, []).append(observed[id(run)])
                questions[place] = Question(
                    workload=run.workload,
                    engine=run.engine,
                    size_bytes=trial.size_bytes,
                    workers=run.workers,
                    board=run.board,
                    medium=run.medium,
                    replication=run.replication,
                    link_bits_per_second=run.link_bits_per_second,
                    parameters={**trial.parameters, **conditions_of(trial)},
                    settings=dict(trial.settings),
                    profile=trial.profile,
                    engines=run.engines,
                    security=run.security,
                )
            yield [
                _Tried(question=questions[place], results=tuple(tried[place]))
                for place in sorted(tried)
            ]


def _untried(tried: Sequence[_Tried]) -> Iterator[Question]:
    """Return the nearest configurations beyond those tried: more workers, and more data."""
    places = {(one.question.size_bytes, one.question.workers) for one in tried}
    most = max(tried, key=lambda one: (one.question.size_bytes, one.question.workers))
    widest = max(tried, key=lambda one: (one.question.workers, one.question.size_bytes))
    size_bytes, workers = widest.question.size_bytes, widest.question.workers
    for one, place in (
        (widest, (size_bytes, workers + 1)),
        (widest, (size_bytes, 2 * workers)),
        (most, (2 * most.question.size_bytes, most.question.workers)),
    ):
        if place not in places:
            places.add(place)
            yield replace(
                one.question,
                size_bytes=place[0],
                workers=place[1],
                replication=one.results[0].trial.replication or min(_DEFAULT_COPIES, place[1]),
            )


def _expected(asked: _Tried, archive: _OtherRuns, nodes: OwnNodes | None) -> ExpectedRun:
    answer = predict_question(asked.question, archive, nodes=nodes, copies=_DEFAULT_COPIES)
    measured = [
        row.measurement.duration_seconds for row in asked.results if row.measurement is not None
    ]
    return ExpectedRun(
        question=asked.question,
        measured_seconds=median(measured) if measured else None,
        runs=len(measured),
        seconds=answer.seconds.median if answer.seconds else None,
        interval=answer.seconds.interval if answer.seconds else None,
        unknown="; ".join(row.words for row in answer.unknown),
    )
