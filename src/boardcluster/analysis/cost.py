"""How many workers it takes to be faster than one competent program on one node: COST. Pure.

Source: F. McSherry, M. Isard, D. G. Murray, "Scalability! But at what COST?", HotOS 2015: the
Configuration that Outperforms a Single Thread is the hardware that a system needs before it is
faster than a competent implementation on one core. Here the unit is the worker, the competent
implementation a well-known tool, measured by a probe: see docs/explanation/cost.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis.cells import Cell, Configuration
from boardcluster.analysis.fingerprints import OF_NODES, OWN_FILES, differences_among
from boardcluster.analysis.scaling import (
    Fit,
    NodeScaling,
    latest_cells,
    node_scalings,
    scaling_among,
    setup_of,
)
from boardcluster.analysis.statistics import Interval
from boardcluster.analysis.twins import dilation_of, is_twin
from boardcluster.records import (
    Engine,
    Fingerprint,
    ProbeFigure,
    ProbeRun,
    Result,
    Verdict,
    in_cell,
)
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = ["Cost", "CostPoint", "cost", "workers_to_match"]

_SAME_SIZE = 0.01
"""Sizes that differ by less are taken for the same: texts are cut at a line's end."""

_DECLARED = re.compile(rf"(?m), dilation ([0-9.]+)(?:$|{OWN_FILES})")
"""How a line of ``Fingerprint.limits`` ends, but for own files, if the cluster declares it."""

_ROUNDING = 1e-9  # of the law's fit: nearer to the serial share no number of workers is meant

_FOLLOWS_FROM_WORKERS = (
    *("number of nodes:", "generated configuration", "limits of", "board "),
    "boards that nodes stand for",
)
"""Differences among fingerprints that come with another number of workers. Runs on other kinds of
boards are told apart beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """What is compared with a workload."""

    probe: str
    """The probe that measures it."""
    figure: str
    """Its figure of seconds."""
    program: str
    """The program, for people."""
    forms: Mapping[Engine, str] = dataclasses.field(default_factory=dict)
    """For each engine, the form of output that answers what the engine's job answers; empty where
    there is one form."""
    parameter: str = ""
    """The workload's parameter that must be the figure's condition of that name."""


_FAMILIES: Mapping[str, _Family] = {
    "terasort": _Family(probe="single-sort", figure="single_sort_seconds", program="GNU sort"),
    "grep": _Family(
        probe="single-grep",
        figure="single_grep_seconds",
        program="GNU grep",
        forms={Engine.MAPREDUCE: "counts", Engine.SPARK: "lines"},
        parameter="pattern",
    ),
    "wordcount": _Family(probe="single-count", figure="single_count_seconds", program="Perl"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """The cluster with one number of workers."""

    workers: int
    """Number of workers."""
    nodes: int
    """Number of nodes, a master of its own included."""
    count: int
    """Number of runs."""
    mean_seconds: float
    """Their mean duration; of emulated boards, the boards'."""
    interval_seconds: Interval | None
    """95 % confidence interval of the mean; None for one run."""
    ratio: float | None
    """Mean over the single program's seconds; below 1 the cluster is faster. None without a single
    program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One workload on one engine at one size, against one program on one of the nodes."""

    workload: str
    """Name of the workload."""
    engine: Engine
    """The engine."""
    configuration: Configuration
    """What all points share; its ``workers`` is 0."""
    label: str
    """What is not the default there, in short words; ``emulated boards`` among them."""
    emulated: bool
    """Whether nodes are namespaces on one machine; to be shown with every number."""
    size_bytes: int
    """Input size."""
    probe: str
    """The probe that measures the program."""
    single_program: str
    """The program."""
    single_versions: tuple[str, ...]
    """What it said of its version."""
    single_node: str
    """The node that it ran on, the fastest of those that were measured nearest to this size; empty
    if none was measured."""
    single_run: str
    """Id of the probe's run; empty likewise."""
    threads: int
    """Threads that it was given."""
    single_size_bytes: int
    """Input size at which it was measured; 0 if it was not."""
    single_seconds: float | None
    """Its time for ``size_bytes``; None if it was not measured on such a node."""
    basis: str
    """How that time was come by: measured at this size, or scaled in proportion to it."""
    points: tuple[CostPoint, ...]
    """The cluster, by number of workers."""
    nodes: int | None
    """Smallest measured number of workers whose mean is below ``single_seconds``; None if none is,
    or nothing was measured to compare with."""
    exact: bool
    """Whether every smaller number of workers was measured too, and lost; else ``nodes`` is an
    upper limit. False without ``nodes``."""
    predicted_nodes: float | None
    """Number of workers, as a fraction, at which Amdahl's law as fitted to the points takes
    ``single_seconds``; infinite if it never does, and the runs show that. None without two numbers
    of workers or without the program, and where the runs show that the law does not hold."""
    remarks: tuple[str, ...]
    """What a reader must know, one line each: what differs between the two sides."""
    verdict: str
    """The answer in one sentence."""


@dataclass(frozen=True, slots=True)
class _Single:
    """One program's time for the size of a group of cells."""

    run: ProbeRun
    figure: ProbeFigure
    threads: int
    size_bytes: int
    seconds: float


def cost(
    cells: Iterable[Cell],
    probe_runs: Iterable[ProbeRun],
    scalings: Iterable[NodeScaling] | None = None,
    *,
    tainted: bool = False,
) -> tuple[Cost, ...]:
    """Compare sorting, searching and counting on the cluster with one program on one node.

    Cells that differ only in the number of workers make one ``Cost``, and another one for each
    number of threads that the program was measured with. Mixes, and several jobs at once, stay out.

    A program's figure counts if it was measured on such a node as the cells': of boards, one whose
    line in the fingerprint is the same; of emulated nodes, one with as many cores and as much
    memory on the same processor, slowed down by as much as one of the cells. Figures of both sides
    are those of the boards then: both were divided by the dilation when they were stored. It counts
    if its run was judged and nothing disturbed it too much (``records.in_cell``); runs of before
    probes were judged, and with ``tainted`` those that were disturbed, count only where there is no
    other, and a remark says so. Of each node the latest run counts, of several nodes the fastest
    of those that were measured nearest to the size: a cluster is to beat the best that it has.

    Where the size was not measured, the nearest one is scaled in proportion to it. That flatters
    the program where its input no longer fits into memory; ``basis`` says so.

    Source: McSherry, Isard and Murray 2015, section 2.

    Args:
        cells: results of campaigns.
        probe_runs: runs of probes, oldest first; failed ones and other probes are passed over.
        scalings: how the cells scale, as the tables have it; None works it out.
        tainted: whether disturbed runs count at all, as they then do in the cells.

    Returns:
        In the order of the cells; also for those without a program to compare with, whose verdict
        says what to run.
    """
    rows = tuple(cells)
    runs = [run for run in probe_runs if run.figures]
    known = node_scalings(rows) if scalings is None else tuple(scalings)
    return tuple(
        _cost(group, single, runs, scaling_among(known, group))
        for group in _groups(rows)
        for single in _singles(group, runs, tainted=tainted)
    )


def workers_to_match(fit: Fit, seconds: float) -> float:
    """Return the number of workers at which Amdahl's law takes so many seconds.

    With T(n) = T1 * (s + (1 - s) / n), n = (1 - s) / (seconds / T1 - s).

    Args:
        fit: of that law.
        seconds: time to match; above 0.

    Returns:
        At least 1; infinite if no number of workers is so fast.
    """
    if seconds >= fit.one_worker_seconds:
        return 1.0
    left = seconds / fit.one_worker_seconds - fit.serial_share
    return (1 - fit.serial_share) / left if left > _ROUNDING else math.inf


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Gather what differs only in the number of workers, by number of workers.

    Of several setups with equally many workers the one that ran last stands for all: two rows with
    one number would contradict each other.
    """
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        if cell.workload not in _FAMILIES or cell.concurrency != 1:
            continue
        first = cell.results[0]
        common = dataclasses.replace(cell.configuration, workers=0, setup=_setup(cell))
        key = (common, cell.engine, setup_of(first), is_twin(first), _declared_dilation(first))
        groups.setdefault(key, []).append(cell)
    return [latest_cells(group, lambda cell: cell.workers) for group in groups.values()]


def _declared_dilation(result: Result) -> str:
    """Return the dilation that its cluster declares; empty where it follows from this machine."""
    limits = result.attempt.fingerprint.limits if result.attempt else ""
    found = _DECLARED.search(limits)
    return found[1] if found else ""


def _setup(cell: Cell) -> tuple[tuple[str, str], ...]:
    """What tells its setup apart, but for what follows from the number of workers."""
    return tuple(row for row in cell.setup if row[0] not in OF_NODES)


def _singles(
    group: Sequence[Cell], runs: Sequence[ProbeRun], *, tainted: bool
) -> list[_Single | None]:
    """Return the program's best time for each number of threads; None alone if there is none."""
    family, wanted_bytes = _FAMILIES[group[0].workload], group[0].size_bytes
    latest: dict[tuple[str, int], _Single] = {}
    such = [row for row in runs if row.probe == family.probe and _on_such_a_node(row, group)]
    kept_in = [row for row in such if in_cell(row)]
    judged = [row for row in kept_in if row.verdict is not Verdict.UNJUDGED]
    for run in judged or kept_in or (such if tainted else ()):
        for single in _of_run(run, family, group[0]):
            kept = latest.get((run.node, single.threads))
            # Of two sizes of one run the nearer; of two runs the later, if it is not farther off.
            if kept is None or _distance(single.size_bytes, wanted_bytes) <= _distance(
                kept.size_bytes, wanted_bytes
            ):
                latest[run.node, single.threads] = single
    best: dict[int, _Single] = {}
    for single in latest.values():
        known = best.get(single.threads)
        if known is None or _is_better(single, known, wanted_bytes):
            best[single.threads] = single
    return [best[threads] for threads in sorted(best)] or [None]


def _is_better(one: _Single, other: _Single, wanted_bytes: int) -> bool:
    """Whether one node's time counts before another's: the nearer in size, then the faster.

    A time that was measured is not given up for one that is scaled from another size.
    """
    far, other_far = (_distance(row.size_bytes, wanted_bytes) for row in (one, other))
    if _distance(one.size_bytes, other.size_bytes) == 0:
        far = other_far
    return (far, one.seconds) < (other_far, other.seconds)


def _distance(size_bytes: int, other_bytes: int) -> float:
    """Return how far two sizes are apart: the larger over the smaller, less 1; 0 for the same."""
    less, more = sorted((size_bytes, other_bytes))
    far = more / less - 1
    return 0.0 if far <= _SAME_SIZE else far


def _of_run(run: ProbeRun, family: _Family, cell: Cell) -> list[_Single]:
    """Return the figures of a run that answer what a cell's job answers, for the cell's size."""
    asked = cell.trial.parameters.get(f"{cell.workload}.{family.parameter}")
    found = []
    for figure in run.figures:
        conditions = figure.conditions
        if figure.name != family.figure or (asked and conditions.get(family.parameter) != asked):
            continue
        if family.forms and conditions.get("form") != family.forms.get(cell.engine):
            continue
        size_bytes, threads = int(conditions["size_bytes"]), int(conditions["threads"])
        single = _Single(run, figure, threads, size_bytes, figure.value)
        if _distance(size_bytes, cell.size_bytes) > 0:
            scaled = figure.value * cell.size_bytes / size_bytes
            single = dataclasses.replace(single, seconds=scaled)
        found.append(single)
    return found


def _on_such_a_node(run: ProbeRun, group: Sequence[Cell]) -> bool:
    """Whether a probe ran on a node like those of the cells.

    One of emulated boards was slowed down by as much as some cell of the group: the dilation
    follows from the number of nodes and the speed of this machine, and both sides are divided by
    it.
    """
    own = {f"{dilation_of(row):g}" for cell in group for row in cell.results}
    slowed = {figure.conditions.get("dilation", "1") for figure in run.figures}
    return slowed <= own and any(
        _is_like(run, setup) for cell in group for setup in cell.fingerprints
    )


def _is_like(run: ProbeRun, setup: Fingerprint) -> bool:
    if run.emulated != setup.emulated:
        return False
    if not setup.emulated:
        return run.hardware in setup.hardware
    memory = format_bytes(setup.node_memory_bytes, binary=True)
    node = f"{run.node}: emulated, {setup.node_cores} cores and {memory} of "
    return run.hardware.startswith(node) and setup.cpu in run.hardware


def _why_none(group: Sequence[Cell], runs: Sequence[ProbeRun]) -> str:
    """Say why there is no program to compare with, and what to do."""
    family = _FAMILIES[group[0].workload]
    measured = [run for run in runs if run.probe == family.probe]
    advice = f"run `boardcluster probe {family.probe}` while the cluster is up"
    if not measured:
        return f"{family.program} was not measured on a node: {advice}"
    such = [run for run in measured if _on_such_a_node(run, group)]
    if such and not any(in_cell(run) for run in such):
        nodes = ", ".join(sorted({run.node for run in such}))
        return (
            f"{family.program} was measured on {nodes}, but something disturbed it too much: "
            f"{advice}, or include tainted runs with `--tainted`"
        )
    if such:
        return (
            f"{family.program} was only measured for another {family.parameter or 'form'}: there "
            "is nothing to compare with"
        )
    nodes = ", ".join(sorted({run.node for run in measured}))
    return (
        f"{family.program} was measured on {nodes}, but not on a node with the hardware, system "
        f"and limits of these runs: {advice}"
    )


def _predicted(scaling: NodeScaling | None, seconds: float) -> float | None:
    """The number of workers that the law gives, as far as the tables state the law."""
    if scaling is None or scaling.law is None:
        return None
    found = workers_to_match(scaling.law, seconds)
    return None if math.isinf(found) and scaling.largest_speed_up is None else found


def _cost(
    group: Sequence[Cell],
    single: _Single | None,
    runs: Sequence[ProbeRun],
    scaling: NodeScaling | None,
) -> Cost:
    first = group[0]
    family = _FAMILIES[first.workload]
    seconds = single.seconds if single else None
    points = tuple(_point(cell, seconds) for cell in group)
    nodes = next((row.workers for row in points if row.ratio is not None and row.ratio < 1), None)
    tried = {row.workers for row in points}
    exact = nodes is not None and all(fewer in tried for fewer in range(1, nodes))
    built = Cost(
        workload=first.workload,
        engine=first.engine,
        configuration=dataclasses.replace(first.configuration, workers=0),
        label=first.label,
        emulated=any(setup.emulated for setup in first.fingerprints),
        size_bytes=first.size_bytes,
        probe=family.probe,
        single_program=family.program,
        single_versions=single.run.versions if single else (),
        single_node=single.run.node if single else "",
        single_run=single.run.id if single else "",
        threads=single.threads if single else 1,
        single_size_bytes=single.size_bytes if single else 0,
        single_seconds=seconds,
        basis=_basis(single, first) if single else "",
        points=points,
        nodes=nodes,
        exact=exact,
        predicted_nodes=None if seconds is None else _predicted(scaling, seconds),
        remarks=(*_doubted(single), *_remarks(group), *_bent(scaling)) if single else (),
        verdict="",
    )
    verdict = _why_none(group, runs) if seconds is None else _verdict(built, seconds)
    return dataclasses.replace(built, verdict=verdict)


def _point(cell: Cell, single_seconds: float | None) -> CostPoint:
    return CostPoint(
        workers=cell.workers,
        nodes=max(setup.nodes for setup in cell.fingerprints),
        count=cell.count,
        mean_seconds=cell.mean_seconds,
        interval_seconds=cell.interval_seconds,
        ratio=None if single_seconds is None else cell.mean_seconds / single_seconds,
    )


def _basis(single: _Single, cell: Cell) -> str:
    """Say how the program's time was come by."""
    conditions = single.figure.conditions
    times = {"1": "once", "2": "twice"}.get(conditions["repeats"], f"{conditions['repeats']} times")
    cache = (
        "its input read from storage"
        if conditions["cache"] == "dropped"
        else "its input perhaps in memory already"
    )
    if _distance(single.size_bytes, cell.size_bytes) == 0:
        return f"measured {times} at this size, {cache}"
    factor = cell.size_bytes / single.size_bytes
    words = f"measured {times} at {format_bytes(single.size_bytes)}, {cache}, and scaled in "
    words += f"proportion to the size, {factor:.3g} times"
    return words if factor < 1 else f"{words}; beyond memory it would be slower"


def _doubted(single: _Single) -> tuple[str, ...]:
    if in_cell(single.run) and single.run.verdict is not Verdict.UNJUDGED:
        return ()
    said = "the program ran before probes were judged, so what disturbed it is not known"
    if not in_cell(single.run):
        said = "the program's run is tainted: something disturbed it"
    return (f"{said}: run `boardcluster probe {single.run.probe}` again",)


def _bent(scaling: NodeScaling | None) -> tuple[str, ...]:
    if scaling is None or not scaling.bends_back:
        return ()
    most, fastest = scaling.points[-1].workers, _workers(scaling.fastest_workers)
    words = f"this set bends back: {most} workers take longer than {fastest}, so no number of "
    return (f"{words}workers follows from Amdahl's law",)


def _remarks(group: Sequence[Cell]) -> tuple[str, ...]:
    """Say what differs between the two sides, and among the points."""
    first = group[0]
    lines = []
    if any(is_twin(result) for result in first.results):
        lines.append(
            "emulated boards: the program and the cluster run under the same limits, one core at "
            "most for each thread; what limits do not show, such as a board's caches, applies to "
            "both"
        )
    elif any(setup.emulated for setup in first.fingerprints):
        lines.append(
            "emulated nodes share one machine: more of them add no hardware, so this shows what "
            "the engine costs, not how many boards it takes"
        )
    if first.input:
        lines.append(f"the cluster read {first.input}, the program the flights")
    differing = differences_among(setup for cell in group for setup in cell.fingerprints)
    lines += [
        f"the cluster's runs are of different setups: {line}"
        for line in differing
        if not line.startswith(_FOLLOWS_FROM_WORKERS)
    ]
    return tuple(lines)


def _workers(number: int) -> str:
    return format_count(number, "worker")


def _verdict(row: Cost, single_seconds: float) -> str:
    """Say in one sentence how many workers it takes."""
    threads = "one thread" if row.threads == 1 else f"{row.threads} threads"
    node = f"{row.single_node} (emulated)" if row.emulated else row.single_node
    about = "about " if _distance(row.single_size_bytes, row.size_bytes) else ""
    alone = f"{row.single_program} with {threads} on {node} takes {about}"
    alone += format_seconds(single_seconds)
    shown = next(
        (point for point in row.points if point.workers == row.nodes),
        min(row.points, key=lambda point: point.mean_seconds),
    )
    cluster = f"the cluster with {_workers(shown.workers)} {format_seconds(shown.mean_seconds)}"
    # Do the cluster's runs show on which side of the program they are?
    interval = shown.interval_seconds
    doubt = " (one run, no interval)" if interval is None else ""
    if interval is not None and interval.low <= single_seconds <= interval.high:
        doubt = " (its 95 % interval contains both)"
    return f"{alone}; {cluster}{doubt}: {_answer(row)}"


def _answer(row: Cost) -> str:
    if row.nodes is not None:
        if row.exact:
            return f"it takes {_workers(row.nodes)} to beat one program"
        return (
            f"at most {_workers(row.nodes)} beat one program; not every smaller number was measured"
        )
    words = "at this size no measured cluster beats it"
    if row.predicted_nodes is None:
        return words
    if math.isinf(row.predicted_nodes):
        return f"{words}, and by Amdahl's law no number of workers would"
    enough = math.floor(row.predicted_nodes) + 1
    # A fit that has passed the mark already contradicts what was measured.
    if enough <= row.points[-1].workers:
        return words
    return f"{words}; by Amdahl's law {_workers(enough)} would"
