"""What a campaign will take, and whether it can run at all, before anything starts."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.campaign.trial_jobs import TrialJob, jobs_of, variant_of
from boardcluster.cluster.limits.disks import held_bytes
from boardcluster.errors import BoardclusterError
from boardcluster.factors import levels
from boardcluster.records import ClusterSpec, Trial
from boardcluster.services.disk_space import FULL_PERCENT
from boardcluster.services.profile import Profile, build_profile
from boardcluster.spec.variant import ClusterVariant, apply_variant, storage_name
from boardcluster.twin.heat import heat_models
from boardcluster.units import format_bytes
from boardcluster.workloads.base import InputKind

__all__ = ["Preflight", "PreflightRow", "check_preflight", "free_bytes"]

_FORM_CHANGE_SECONDS = 15.0
"""Stopping and starting all daemons of an emulated cluster (benchmarks/README.md)."""

_DATA = "*/data*/datanode/**/*"
_IN_DISKS = "*/disk/data*/datanode/**/*"
"""Data of emulated boards without a disk of their own; that of the others is in an image."""


@dataclass(slots=True)
class _Room:
    """What the workers of some variants have and need; each number of workers has data of its own.

    Attributes:
        workers: how many they are.
        bytes: what is free on their disks.
        largest_bytes: what the largest run takes of it.
    """

    workers: int
    bytes: int
    largest_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRow:
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
class Preflight:
    """What a campaign will take."""

    rows: tuple[PreflightRow, ...]
    """One per workload and engine."""
    runs: int
    """Number of runs."""
    cells: int
    """Number of different cells."""
    forms: int
    """How many variants the cluster takes."""
    starts: int
    """How often the cluster is started on purpose, for what a start draws by chance."""
    known_seconds: float
    """Time as far as known, with what starts and changes of variant take."""
    unknown_runs: int
    """Runs whose time nobody knows yet."""
    space_bytes: int
    """Space on the nodes' disks: all inputs, and the largest single run."""
    notes: tuple[str, ...]
    """Settings that have no effect, and what the job specs say of themselves, each once (an HPL
    problem's size and grid)."""
    problems: tuple[str, ...]
    """Why it cannot run, each once; empty if it can."""


def free_bytes(home: Path, spec: ClusterSpec, freed_bytes: int = 0) -> tuple[int, Counter[str]]:
    """Return the space that is free on the disks of emulated nodes, and what they hold already.

    Free is what is above the share at which YARN gives a node up: on this machine's disk and, where
    every worker has a disk of its own, on these together. What the DataNodes of a storage
    (``storage_name``) hold may be inputs that are used again by what runs on it. What is deleted
    before anything runs, ``freed_bytes`` of this machine's disk, counts as free.
    """
    seen = os.statvfs(home)
    total = seen.f_blocks * seen.f_frsize
    available = seen.f_bavail * seen.f_frsize + freed_bytes
    nodes, held = home / "nodes", Counter[str]()
    for path in itertools.chain(nodes.glob(_DATA), nodes.glob(_IN_DISKS)):
        _, *below = path.relative_to(nodes).parts
        held[next(name for name in below if name.startswith("data"))] += _size(path)
    free = max(0, int(available - total * (1 - FULL_PERCENT / 100)))
    if not (own := _own_disks_bytes(spec)):
        return free, held
    # What an image has taken is used again; what of it is inputs is not known, so these count.
    in_disks = held_bytes(nodes, [worker.name for worker in spec.workers])
    return min(free + in_disks, own), held


def _own_disks_bytes(spec: ClusterSpec) -> int:
    """Return the room on the workers' own disks; 0 unless every emulated worker has one."""
    disks = [worker.twin.disk_bytes if worker.twin else 0 for worker in spec.workers]
    return int(sum(disks) * FULL_PERCENT / 100) if spec.twin is not None and all(disks) else 0


def _room_bytes(spec: ClusterSpec, applied: ClusterSpec, left_bytes: int) -> int:
    """Return what a variant's workers have of the room that all workers have together."""
    if spec.capabilities.provisioned:  # that of the worker with the least, for each worker
        return left_bytes * len(applied.workers) // len(spec.workers)
    return min(left_bytes, _own_disks_bytes(applied) or left_bytes)


def _size(path: Path) -> int:
    try:
        return 0 if path.is_dir() else path.lstat().st_size
    except OSError:
        return 0


def check_preflight(
    spec: ClusterSpec,
    trials: Sequence[Trial],
    *,
    typical_seconds: Mapping[tuple[str, str, int, int], float],
    free: tuple[int, Mapping[str, int]],
    lacking: Callable[[str, Sequence[str]], str],
    idle: Sequence[str] = (),
) -> Preflight:
    """Add up what trials will take, and find what cannot run.

    Args:
        spec: the declared cluster.
        trials: the trials.
        typical_seconds: mean duration of earlier runs by (workload, engine, size, workers).
        free: bytes that are free for inputs and runs, and by storage those that it holds already.
        lacking: names, in words, which of some nodes lack a program; empty if none does.
        idle: properties that the campaign sets, and that no trial has.
    """
    cells: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        cells.setdefault(levels(trial), []).append(trial)
    problems: dict[str, None] = {}
    notes: dict[str, None] = {}
    inputs: dict[tuple[object, ...], int] = {}
    rooms: dict[str, _Room] = {}
    known: dict[ClusterVariant, tuple[ClusterSpec, Profile] | None] = {}
    for group in cells.values():
        variant = variant_of(group[0])
        if variant not in known:
            known[variant] = _formed(spec, variant, problems)
        if (formed := known[variant]) is None:
            continue
        try:
            jobs = jobs_of(group[0], *formed)
        except BoardclusterError as error:
            problems[_line(error)] = None
            continue
        if variant.profile != spec.profile:  # `up` tells those of the cluster's own
            name = Path(variant.profile).name
            notes |= dict.fromkeys(f"profile {name}: {row}" for row in formed[1].remarks)
        storage = storage_name(spec, variant)
        for job in jobs:
            inputs[_input_key(storage, group[0], job)] = job.need.input_bytes
            notes |= dict.fromkeys(_notes(job))
            problems |= dict.fromkeys(_lacking(job, formed[0], lacking))
        if storage not in rooms:
            workers = len(formed[0].workers)
            rooms[storage] = _Room(workers, _room_bytes(spec, formed[0], free[0]))
        run_bytes = sum(job.need.run_bytes for job in jobs)
        rooms[storage].largest_bytes = max(rooms[storage].largest_bytes, run_bytes)
    problems |= dict.fromkeys(_too_large(spec, inputs, rooms, free))
    largest = max((room.largest_bytes for room in rooms.values()), default=0)
    fast = spec.twin is not None and not heat_models(spec.nodes)
    rows = tuple(_rows(cells.values(), typical_seconds, fast_warm_ups=fast))
    known_seconds = sum(row.known_seconds for row in rows)
    starts = len({trial.start for trial in trials})
    brought_up = len({(trial.start, variant_of(trial)) for trial in trials})
    return Preflight(
        rows=rows,
        runs=len(trials),
        cells=len(cells),
        forms=len(known),
        starts=starts,
        known_seconds=known_seconds + max(0, brought_up - 1) * _FORM_CHANGE_SECONDS,
        unknown_runs=len(trials) - sum(row.known_runs for row in rows),
        space_bytes=sum(inputs.values()) + largest,
        notes=(*_idle_words(idle), *sorted(notes)),
        problems=tuple(problems),
    )


def _too_large(
    spec: ClusterSpec,
    inputs: Mapping[tuple[object, ...], int],
    rooms: Mapping[str, _Room],
    free: tuple[int, Mapping[str, int]],
) -> Iterable[str]:
    """Say what has no room: all together, or what runs with fewer workers on the disks of so many.

    Inputs are by their keys, whose first part is the storage.
    """
    left_bytes, held = free
    together = sum(inputs.values())
    of_storage = {
        storage: sum(size for key, size in inputs.items() if key[0] == storage) for storage in rooms
    }
    lacking = {name: max(0, own - held.get(name, 0)) for name, own in of_storage.items()}
    largest = max((room.largest_bytes for room in rooms.values()), default=0)
    if sum(lacking.values()) + largest > left_bytes:
        yield (
            f"the inputs need {format_bytes(together)} and the largest run "
            f"{format_bytes(largest)}, but the nodes' disk has {format_bytes(left_bytes)} for them "
            "(use smaller sizes, fewer replicas, fewer different numbers of workers, or a larger "
            "disk)"
        )
    for storage, room in rooms.items():
        if room.bytes < left_bytes and lacking[storage] + room.largest_bytes > room.bytes:
            yield (
                f"with {room.workers} of {len(spec.workers)} workers the inputs need "
                f"{format_bytes(of_storage[storage])} and the largest run "
                f"{format_bytes(room.largest_bytes)}, but their disks have "
                f"{format_bytes(room.bytes)} for them (use smaller sizes, fewer replicas, more "
                "workers, or larger disks)"
            )


def _formed(
    spec: ClusterSpec, variant: ClusterVariant, problems: dict[str, None]
) -> tuple[ClusterSpec, Profile] | None:
    try:
        applied = apply_variant(spec, variant)
        return applied, build_profile(variant.profile, applied)
    except BoardclusterError as error:
        problems[_line(error)] = None
        return None


def _line(error: BoardclusterError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _idle_words(idle: Sequence[str]) -> Iterable[str]:
    if idle:
        yield f"settings without effect, which no engine of these runs reads: {', '.join(idle)}"


def _notes(job: TrialJob) -> Iterable[str]:
    if words := job.workload.describe(job.spec):
        yield f"{job.workload.name}: {words}"


def _lacking(
    job: TrialJob, formed: ClusterSpec, lacking: Callable[[str, Sequence[str]], str]
) -> Iterable[str]:
    workers = [worker.name for worker in formed.workers]
    for nodes, tools in (
        (workers, job.workload.tools_for(job.spec)),
        ([formed.master.name], job.workload.master_tools),
    ):
        for program, packages in tools.items():
            if where := lacking(program, nodes):
                several = "packages" if " " in packages else "package"
                yield (
                    f"{job.workload.name} needs the program {program}, which is not on {where} "
                    f"(install the {several} {packages} there)"
                )


def _input_key(storage: str, trial: Trial, job: TrialJob) -> tuple[object, ...]:
    """Two job specs with equal keys share one input in HDFS."""
    kind = "text" if job.workload.input_kind is InputKind.TEXT else job.workload.name
    job_spec = job.spec
    copies = (job_spec.replication, job_spec.checksum, job_spec.block_bytes, job_spec.input_maps)
    return (storage, kind, trial.input, job_spec.size_bytes, *copies)


def _rows(
    groups: Iterable[Sequence[Trial]],
    typical_seconds: Mapping[tuple[str, str, int, int], float],
    *,
    fast_warm_ups: bool,
) -> Iterable[PreflightRow]:
    """Add up the cells of each workload and engine.

    Warm-ups at this machine's full speed take next to nothing beside runs at the boards' speed.
    """
    together: dict[tuple[str, str], list[Sequence[Trial]]] = {}
    for group in groups:
        together.setdefault((group[0].workload, group[0].engine), []).append(group)
    for (workload, engine), cells in sorted(together.items()):
        known_seconds, known_runs = 0.0, 0
        for cell in cells:
            one = cell[0]
            took = typical_seconds.get((workload, engine, one.size_bytes, one.workers))
            if took is not None:
                known_seconds += took * sum(not (fast_warm_ups and t.warm_up) for t in cell)
                known_runs += len(cell)
        yield PreflightRow(
            workload=workload,
            engine=engine,
            sizes_bytes=tuple(sorted({cell[0].size_bytes for cell in cells})),
            workers=tuple(sorted({cell[0].workers for cell in cells})),
            cells=len(cells),
            runs=sum(len(cell) for cell in cells),
            known_seconds=known_seconds,
            known_runs=known_runs,
        )
