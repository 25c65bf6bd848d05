"""From a question to its answer: which stored runs are read, and what is learned from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from boardcluster.plan.answer import answer_question
from boardcluster.plan.hardware import (
    OWN_HARDWARE,
    BoardRates,
    MediumRates,
    board_rates,
    medium_rates,
)
from boardcluster.plan.learning import learn, own_hardware
from boardcluster.plan.model import RuntimeModel
from boardcluster.plan.observations import NodesOfRun, RunObservation, published_observations
from boardcluster.plan.own_runs import chosen_group, observation_of, own_groups, own_rates
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.plan.question import Question
from boardcluster.records import Engine, ProbeRun, Result

__all__ = [
    "RUNS_MOST",
    "OwnNodes",
    "RunArchive",
    "is_published",
    "model_for",
    "predict_question",
]

RUNS_MOST = 200
"""Of one workload and engine the newest runs are learned from; older ones change nothing."""


_UNRATED = "hardware without a rating of 7-zip or an HDFS write probe, which compare with no other"


class RunArchive(Protocol):
    """What is read of a store."""

    def recent(
        self, workload: str, engine: str, *, most: int, without: Collection[str] = ()
    ) -> tuple[Result, ...]:
        """The newest ok runs of a workload on an engine, without those of some campaigns."""
        ...

    def probe_runs(self, *, node: str = "", probe: str = "") -> tuple[ProbeRun, ...]:
        """Runs of a probe, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNodes:
    """What a declaration says of one's own workers."""

    memory_bytes: int
    """Memory of the smallest."""
    cores: int
    """Its cores."""


def predict_question(
    question: Question,
    archive: RunArchive | None,
    *,
    nodes: OwnNodes | None = None,
    searches: Collection[str] = (),
    defaults: Mapping[str, str] | None = None,
    copies: int | None = None,
    mixed: bool = False,
    tainted: bool = False,
) -> RuntimePrediction:
    """Predict one run.

    Args:
        question: what is asked.
        archive: own runs and probes; None for none.
        nodes: one's own workers; needed where the question is about them.
        searches: campaigns whose runs are in no cell.
        defaults: what parameters are where a run does not set them.
        copies: how many copies of a block own runs kept that do not say it, if they had workers
            enough; None takes the question's.
        mixed: learn also from runs of other engine versions, security modes and settings.
        tainted: learn also from tainted runs.

    Raises:
        UsageError: it names a board or medium that is not in the catalog; the nearest is offered.
        SpecError: a file of a board or medium is missing or wrong.
    """
    question = replace(question, parameters={**(defaults or {}), **question.parameters})
    if question.engine is Engine.MPI:
        from boardcluster.plan.message_passing import answer_mpi  # noqa: PLC0415  other models

        runs = _recent(question, archive, searches)
        return answer_mpi(question, runs, _rates(question, archive, nodes, searches)[0])
    model = model_for(
        [question],
        archive,
        nodes=nodes,
        searches=searches,
        defaults=defaults,
        copies=copies,
        mixed=mixed,
        tainted=tainted,
    )
    return answer_question(model, question)


def model_for(
    questions: Sequence[Question],
    archive: RunArchive | None,
    *,
    nodes: OwnNodes | None = None,
    searches: Collection[str] = (),
    defaults: Mapping[str, str] | None = None,
    copies: int | None = None,
    mixed: bool = False,
    tainted: bool = False,
) -> RuntimeModel:
    """Learn what questions need that are on the same hardware, the first one's.

    Of each workload and engine one group of runs is learned from, that of the first question.
    """
    chosen: dict[tuple[str, Engine], tuple[tuple[RunObservation, ...], tuple[str, ...]]] = {}
    for question in questions:
        key = question.workload, question.engine
        if key not in chosen:
            chosen[key] = _own_runs(
                question,
                _recent(question, archive, searches),
                defaults=defaults or {},
                copies=question.replication if copies is None else copies,
                mixed=mixed,
                tainted=tainted,
            )
    every = [run for runs, _ in chosen.values() for run in runs if run.medium == OWN_HARDWARE]
    newest = max(every, key=lambda run: run.started_utc, default=None)
    rates = partial(
        _rates,
        archive=archive,
        nodes=nodes,
        searches=searches,
        measured_on=newest.nodes if newest else None,
    )
    asked = questions[0]
    board, medium = rates(asked)
    boards: dict[str, BoardRates] = {board.name: board}
    media: dict[str, MediumRates] = {medium.name: medium}
    own: dict[tuple[str, Engine], tuple[RunObservation, ...]] = {}
    said: dict[tuple[str, Engine], tuple[str, ...]] = {}
    for key, (runs, words) in chosen.items():
        for run in runs:
            if run.board not in boards:
                boards[run.board] = rates(replace(asked, board=run.board))[0]
            if run.medium not in media:
                media[run.medium] = rates(replace(asked, medium=run.medium))[1]
        own[key] = tuple(
            run
            for run in runs
            if _comparable(boards[run.board], board) and _alike(media[run.medium], medium)
        )
        lost = len(runs) - len(own[key])
        said[key] = (*words, f"left out: {lost} own runs on {_UNRATED}") if lost else words
    keys = [
        (question.workload, question.engine)
        for question in questions
        if is_published(question, defaults or {})
    ]
    return learn(
        boards.values(),
        media.values(),
        own={key: runs for key, runs in own.items() if runs},
        said=said,
        keys=keys,
    )


def _own_runs(
    question: Question,
    stored: Sequence[Result],
    *,
    defaults: Mapping[str, str],
    copies: int,
    mixed: bool,
    tainted: bool,
) -> tuple[tuple[RunObservation, ...], tuple[str, ...]]:
    """Return the stored runs to learn from, and what is said of the others."""
    found = [
        row
        for result in stored
        if (
            row := observation_of(
                result,
                replication=copies,
                defaults=defaults,
                tainted=tainted,
                files=_own_files(question),
            )
        )
    ]
    asked = _without_defaults(question, defaults)
    runs, words = chosen_group(own_groups(found), asked, mixed=mixed)
    if len(found) < len(stored):
        words = (*words, f"left out: {len(stored) - len(found)} disturbed own runs (--tainted)")
    return runs, words


def _own_files(question: Question) -> Mapping[str, str]:
    """Return the files of the user's own among what is asked about, by kind."""
    named = {"boards": question.board, "media": question.medium}
    return {kind: name for kind, name in named.items() if name.endswith(".toml")}


def _without_defaults(question: Question, defaults: Mapping[str, str]) -> Question:
    """Return a question as runs are kept: with the parameters that are not what they are anyway."""
    parameters = {
        name: value for name, value in question.parameters.items() if defaults.get(name) != value
    }
    return replace(question, parameters=parameters)


def is_published(question: Question, defaults: Mapping[str, str]) -> bool:
    """Say whether the published runs of a workload had the question's parameters."""
    asked = {**defaults, **question.parameters}
    programs = {
        run.program
        for run in published_observations()
        if (run.workload, run.engine) == (question.workload, question.engine) and run.program
    }
    wanted = dict(part.split("=", 1) for program in programs for part in program.split())
    return all(asked.get(name, value) == value for name, value in wanted.items())


def _recent(
    question: Question, archive: RunArchive | None, searches: Collection[str]
) -> tuple[Result, ...]:
    if archive is None:
        return ()
    return archive.recent(question.workload, question.engine, most=RUNS_MOST, without=searches)


def _comparable(one: BoardRates, other: BoardRates) -> bool:
    return one.name == other.name or None not in {one.cpu_rate, other.cpu_rate}


def _alike(one: MediumRates, other: MediumRates) -> bool:
    return one.name == other.name or None not in {one.slowness, other.slowness}


def _rates(
    question: Question,
    archive: RunArchive | None,
    nodes: OwnNodes | None,
    searches: Collection[str],
    measured_on: NodesOfRun | None = None,
) -> tuple[BoardRates, MediumRates]:
    """Return what is known of a question's hardware.

    Of own nodes the writes count that were measured on those named (``own_runs.nodes_of``).
    """
    if OWN_HARDWARE not in {question.board, question.medium}:
        return board_rates(question.board), medium_rates(question.medium)
    probes = archive.probe_runs(probe="seven-zip") if archive else ()
    writes = (
        archive.recent("dfsio", Engine.MAPREDUCE, most=RUNS_MOST, without=searches)
        if archive
        else ()
    )
    own_board, own_medium = own_hardware(
        own_rates(probes, writes, nodes=measured_on),
        memory_bytes=nodes.memory_bytes if nodes else 0,
        cores=nodes.cores if nodes else 1,
    )
    return (
        own_board if question.board == OWN_HARDWARE else board_rates(question.board),
        own_medium if question.medium == OWN_HARDWARE else medium_rates(question.medium),
    )
