"""What a campaign will take, and whether it can run at all, before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.campaign.cases import TrialJob, form_of, jobs_of
from boardcluster.errors import BoardclusterError
from boardcluster.factors import levels
from boardcluster.records import ClusterSpec, Trial
from boardcluster.services.profile import Profile, build_profile
from boardcluster.services.room import FULL_PERCENT
from boardcluster.spec.form import Form, apply_form, storage_name
from boardcluster.units import format_bytes
from boardcluster.workloads.base import Takes

__all__ = ["Outlook", "Row", "free_bytes", "look_ahead"]

_FORM_CHANGE_SECONDS = 15.0
"""Stopping and starting all daemons of an emulated cluster (benchmarks/README.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The trials of one workload on one engine."""

    workload: str
    """Workload or mix."""
    engine: str
    """The engine."""
    sizes_bytes: tuple[int, ...]
    """The sizes, ascending."""
    workers: tuple[int, ...]
    """The numbers of workers, ascending."""
    cells: int
    """Number of different cells."""
    runs: int
    """Number of runs, warm-ups included."""
    known_seconds: float
    """Time of those runs whose cell, or one like it, was measured before."""
    known_runs: int
    """How many those are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a campaign will take."""

    rows: tuple[Row, ...]
    """One per workload and engine."""
    runs: int
    """Number of runs."""
    cells: int
    """Number of different cells."""
    forms: int
    """How many forms the cluster takes."""
    known_seconds: float
    """Time as far as known, changes of form included."""
    unknown_runs: int
    """Runs whose time nobody knows yet."""
    space_bytes: int
    """Space on the nodes' disks: all inputs, and the largest single run."""
    notes: tuple[str, ...]
    """What the cases say of themselves, each once (an HPL problem's size and grid)."""
    problems: tuple[str, ...]
    """Why it cannot run, each once; empty if it can."""


def free_bytes(home: Path) -> tuple[int, int]:
    """Return the space that is free on the disk of the emulated nodes, and what they hold already.

    Free is what is above the share at which YARN gives a node up. What DataNodes hold may be
    inputs that are used again.
    """
    seen = os.statvfs(home)
    total, available = seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize
    held = sum(_size(path) for path in home.glob("nodes/*/data*/datanode/**/*"))
    return max(0, int(available - total * (1 - FULL_PERCENT / 100))), held


def _size(path: Path) -> int:
    try:
        return 0 if path.is_dir() else path.lstat().st_size
    except OSError:
        return 0


def look_ahead(
    spec: ClusterSpec,
    trials: Sequence[Trial],
    *,
    typical_seconds: Mapping[tuple[str, str, int, int], float],
    free: tuple[int, int],
    has_tool: Callable[[str], bool],
) -> Outlook:
    """Add up what trials will take, and find what cannot run.

    Args:
        spec: the declared cluster.
        trials: the trials.
        typical_seconds: mean duration of earlier runs by (workload, engine, size, workers).
        free: bytes that are free for inputs and runs, and bytes held already, see free_bytes.
        has_tool: whether the nodes have a program.
    """
    cells: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        cells.setdefault(levels(trial), []).append(trial)
    problems: dict[str, None] = {}
    notes: dict[str, None] = {}
    inputs: dict[tuple[object, ...], int] = {}
    largest = 0
    known: dict[Form, tuple[ClusterSpec, Profile] | None] = {}
    for group in cells.values():
        form = form_of(group[0])
        if form not in known:
            known[form] = _formed(spec, form, problems)
        if (formed := known[form]) is None:
            continue
        try:
            jobs = jobs_of(group[0], *formed)
        except BoardclusterError as error:
            problems[_line(error)] = None
            continue
        for job in jobs:
            storage = storage_name(spec, form)
            inputs[_input_key(storage, group[0], job)] = job.workload.need(job.case).input_bytes
            notes |= dict.fromkeys(_notes(job))
            problems |= dict.fromkeys(_lacking(job, has_tool))
        largest = max(largest, sum(job.workload.need(job.case).run_bytes for job in jobs))
    space_bytes = sum(inputs.values()) + largest
    left_bytes, held_bytes = free
    if max(0, sum(inputs.values()) - held_bytes) + largest > left_bytes:
        problems[
            f"the inputs need {format_bytes(sum(inputs.values()))} and the largest run "
            f"{format_bytes(largest)}, but the nodes' disk has {format_bytes(left_bytes)} for them "
            "(use smaller sizes, fewer replicas or fewer numbers of workers, or a larger disk)"
        ] = None
    rows = tuple(_rows(cells.values(), typical_seconds))
    known_seconds = sum(row.known_seconds for row in rows)
    return Outlook(
        rows=rows,
        runs=len(trials),
        cells=len(cells),
        forms=len(known),
        known_seconds=known_seconds + max(0, len(known) - 1) * _FORM_CHANGE_SECONDS,
        unknown_runs=len(trials) - sum(row.known_runs for row in rows),
        space_bytes=space_bytes,
        notes=tuple(notes),
        problems=tuple(problems),
    )


def _formed(
    spec: ClusterSpec, form: Form, problems: dict[str, None]
) -> tuple[ClusterSpec, Profile] | None:
    try:
        applied = apply_form(spec, form)
        return applied, build_profile(form.profile, applied)
    except BoardclusterError as error:
        problems[_line(error)] = None
        return None


def _line(error: BoardclusterError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _notes(job: TrialJob) -> Iterable[str]:
    if words := job.workload.describe(job.case):
        yield f"{job.workload.name}: {words}"


def _lacking(job: TrialJob, has_tool: Callable[[str], bool]) -> Iterable[str]:
    for program, package in job.workload.tools.items():
        if not has_tool(program):
            yield (
                f"{job.workload.name} needs the program {program} on the nodes "
                f"(install the package {package})"
            )


def _input_key(storage: str, trial: Trial, job: TrialJob) -> tuple[object, ...]:
    """Two cases with equal keys share one input in HDFS."""
    kind = "text" if job.workload.takes is Takes.TEXT else job.workload.name
    case = job.case
    copies = (case.replication, case.checksum, case.block_bytes)
    return (storage, kind, trial.input, case.size_bytes, *copies)


def _rows(
    groups: Iterable[Sequence[Trial]],
    typical_seconds: Mapping[tuple[str, str, int, int], float],
) -> Iterable[Row]:
    together: dict[tuple[str, str], list[Sequence[Trial]]] = {}
    for group in groups:
        together.setdefault((group[0].workload, group[0].engine), []).append(group)
    for (workload, engine), cells in sorted(together.items()):
        known_seconds, known_runs = 0.0, 0
        for cell in cells:
            one = cell[0]
            took = typical_seconds.get((workload, engine, one.size_bytes, one.workers))
            if took is not None:
                known_seconds += took * len(cell)
                known_runs += len(cell)
        yield Row(
            workload=workload,
            engine=engine,
            sizes_bytes=tuple(sorted({cell[0].size_bytes for cell in cells})),
            workers=tuple(sorted({cell[0].workers for cell in cells})),
            cells=len(cells),
            runs=sum(len(cell) for cell in cells),
            known_seconds=known_seconds,
            known_runs=known_runs,
        )
