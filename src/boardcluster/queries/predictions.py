"""Predictions from a cluster's own runs, its declaration, and the catalog; starts no work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster.errors import UsageError
from boardcluster.plan.asking import OwnNodes, RunArchive, predict_question
from boardcluster.plan.hardware import OWN_HARDWARE, board_of, board_rates, medium_of
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.plan.question import Question, read_input_size
from boardcluster.records import CampaignKind, ClusterSpec, Engine
from boardcluster.store import Store
from boardcluster.store.files import DATABASE_NAME

__all__ = [
    "AskedRun",
    "choose_engine",
    "own_nodes",
    "predict_run",
    "question_of",
    "reading_archive",
    "require_size",
]

_LINK_BITS_PER_SECOND = 1e9
"""A worker's link, where nothing else is known."""
_REPLICATION = 3
"""``dfs.replication`` of hdfs-default.xml, where nothing else is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRun:
    """A run as it was asked for; what is None is taken from the cluster."""

    workload: str
    """Name of the workload, or ``submit``."""
    engine: Engine
    """The engine."""
    size_bytes: int = 0
    """Input size; 0 where there is none."""
    workers: int | None = None
    """Number of workers."""
    workers_least: int = 1
    """Fewest workers that the workload runs on."""
    board: str | None = None
    """A board of the catalog, or the path of a TOML file."""
    medium: str | None = None
    """A medium, likewise."""
    replication: int | None = None
    """Copies of each HDFS block."""
    link_bits_per_second: int | None = None
    """Rate of a worker's link."""
    profile: str = ""
    """The engine configuration; empty for that of most own runs."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """``workload.parameter`` to value."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Properties of the engines."""
    arguments: tuple[str, ...] = ()
    """The user's own program and its arguments."""


def choose_engine(workload: str, engine: Engine | None, engines: Sequence[Engine]) -> Engine:
    """Return the engine that is meant: the named one, or the only one.

    Raises:
        UsageError: the workload has several, or not that one.
    """
    if engine is None and len(engines) != 1:
        raise UsageError(
            f"{workload} runs on {' and '.join(engines)}", hint="name one with --engine"
        )
    chosen = engine or engines[0]
    if chosen not in engines:
        raise UsageError(
            f"{workload} does not run on {chosen}", hint=f"its engines: {', '.join(engines)}"
        )
    return chosen


def require_size(workload: str, size: str | int | None, *, takes_input: bool) -> int:
    """Return the size in bytes, 0 for what takes none; a text needs its unit.

    Args:
        workload: name of the workload.
        size: as it was given; None where it was not.
        takes_input: whether it has an input whose size says how much it works on.

    Raises:
        UsageError: the workload needs one or takes none, or it is no size of at least 1 byte.
    """
    if not takes_input:
        if size is not None:
            unknown = "how much a program of your own reads is not known"
            why = unknown if workload == CampaignKind.SUBMIT else f"{workload} takes no input"
            raise UsageError(f"--size has no effect: {why}", hint="leave it out")
        return 0
    if size is None:
        raise UsageError(f"{workload} needs the size of its input", hint="give --size, e.g. 4GB")
    return read_input_size(size, example="4GB")


def own_nodes(spec: ClusterSpec | None) -> OwnNodes | None:
    """Return what a declaration says of the smallest worker."""
    if spec is None:
        return None
    return OwnNodes(
        memory_bytes=min(node.memory_bytes for node in spec.workers),
        cores=min(node.cores for node in spec.workers),
    )


def question_of(asked: AskedRun, spec: ClusterSpec | None) -> Question:
    """Return the question, with what was left out taken from the cluster.

    Of a cluster of several boards the slowest by 7-zip counts, which the last task waits for.

    Raises:
        UsageError: neither the options nor a cluster say the number of workers, board or medium;
            or the workload needs more workers.
    """
    workers = asked.workers if asked.workers is not None else len(spec.workers) if spec else None
    board, medium = asked.board, asked.medium
    if spec is not None:
        board = board or board_of(spec.workers)
        medium = medium or medium_of(spec.workers)
    lacking = [
        name
        for name, value in (("--workers", workers), ("--board", board), ("--medium", medium))
        if value is None
    ]
    if not asked.engine.on_yarn:
        lacking = [name for name in lacking if name != "--medium"]
    if workers is None or board is None or lacking:
        raise UsageError(
            f"there is no cluster here, and {' and '.join(lacking)} "
            f"{'is' if len(lacking) == 1 else 'are'} missing",
            hint="give them, or name a cluster with --cluster or --home",
        )
    if workers < asked.workers_least:
        raise UsageError(
            f"{asked.workload} needs at least {asked.workers_least} workers, not {workers}",
            hint=f"give --workers {asked.workers_least} or more",
        )
    link = asked.link_bits_per_second or _usual_link(asked, spec)
    return Question(
        workload=asked.workload,
        engine=asked.engine,
        size_bytes=asked.size_bytes,
        workers=workers,
        workers_least=asked.workers_least,
        board=board,
        medium=medium or OWN_HARDWARE,
        replication=asked.replication or _REPLICATION,
        link_bits_per_second=float(link),
        parameters=dict(asked.parameters),
        # As runs have them: those of cluster.toml, too.
        settings={**(spec.settings if spec else {}), **asked.settings},
        arguments=asked.arguments,
        profile=asked.profile,
    )


def _usual_link(asked: AskedRun, spec: ClusterSpec | None) -> float:
    """Return the rate of a worker's link where none was asked for: that of its own interface."""
    declared = spec.network.link_bits_per_second if spec else 0  # a node alone has no link
    rates = [float(declared)] if declared else []
    if asked.board and (own := board_rates(asked.board).link_bits_per_second):
        rates.append(own)
    return min(rates, default=_LINK_BITS_PER_SECOND)


@contextmanager
def reading_archive(home: Path | None) -> Iterator[tuple[RunArchive | None, Collection[str]]]:
    """Give the runs of a cluster and the campaigns of its searches; nothing without a store."""
    if home is None or not (home / DATABASE_NAME).exists():
        yield None, ()
        return
    from boardcluster.tuning.record import read_records  # noqa: PLC0415  slow to load
    from boardcluster.tuning.searches import search_campaigns  # noqa: PLC0415

    with Store.open(home, read_only=True, whole=False) as store:
        yield store, search_campaigns(read_records(home))


def predict_run(
    asked: AskedRun,
    home: Path | None,
    spec: ClusterSpec | None,
    *,
    defaults: Mapping[str, str],
    copies_of: Callable[[Question], int] | None = None,
    mixed: bool = False,
    tainted: bool = False,
) -> RuntimePrediction:
    """Predict one run.

    Args:
        asked: the run.
        home: state folder of the cluster whose runs are learned from; None for none.
        spec: that cluster, where it has a declaration.
        defaults: what the workload's parameters are where a run does not set them.
        copies_of: says how many copies of a block the profile keeps where there are workers
            enough, for runs that do not say it.
        mixed: learn also from runs of other engine versions, security modes and settings.
        tainted: learn also from tainted runs.

    Raises:
        UsageError: something is missing, or there is no such board or medium.
        SpecError: a file of a board or medium is missing or wrong.
        StoreError: the store is damaged.
    """
    question = question_of(asked, spec)
    copies = None if copies_of is None else copies_of(question)
    if asked.replication is None and copies is not None:
        question = replace(question, replication=min(copies, question.workers))
    with reading_archive(home) as (archive, searches):
        return predict_question(
            question,
            archive,
            nodes=own_nodes(spec),
            searches=searches,
            defaults=defaults,
            copies=copies,
            mixed=mixed,
            tainted=tainted,
        )
