"""Rules on tasks: too few reducers, cores without a task, start-up that outweighs the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boardcluster.analysis.advice.evidence import Advice
from boardcluster.analysis.advice.rule import (
    LEAST_GAIN,
    Rule,
    advice,
    gain_words,
    percent,
    shrunk,
)
from boardcluster.analysis.advice.settings import (
    DEFAULT_PROFILE,
    engine_settings,
    matrix_key,
    parameter,
)
from boardcluster.analysis.advice.view import JOB, Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.statistics import mean
from boardcluster.records import Engine
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = ["TASK_RULES", "container_mib", "places_of"]

_REDUCE_PHASE = "reduce after the last map"
_TAIL_SHARE = 0.10  # of the run; a shorter end is not worth more output files
_SLOT_SHARE = 0.95  # of the places for tasks: all reduces start at once, and one place is spare
_FEW_TASKS_SHARE = 0.75  # of the cores; a task more or less than cores is no fault
_STAGES_SHARE = 0.10  # of the run that the stages, or maps, must take to matter
_IDLE_SHARE = 0.10  # of the busiest worker's CPU time for tasks: such a worker is idle
_USED_SHARE = 0.60  # of the cores: with more, executors are as wide as they can be
_START_SHARE = 0.50
_LARGER = 4
_MIB = 1 << 20

_WIDER = f"{DEFAULT_PROFILE}: an executor on each worker, with all its cores"
_COUNT_OF = {"teragen": "maps", "terasort": "reduces", "dfsio": "files"}
"""By workload, the parameter that says into how many tasks the same work is divided."""


def container_mib(run: RunView, kind: str) -> float | None:
    """Size of the containers of ``MAPS`` or ``REDUCES`` as YARN gave them; None if not counted."""
    milliseconds = run.counter(f"{JOB}MILLIS_{kind}")
    return run.counter(f"{JOB}MB_MILLIS_{kind}") / milliseconds if milliseconds else None


def places_of(run: RunView, size_mib: float | None) -> int:
    """How many containers of a size run at once: one per core, and no more than memory holds."""
    if not size_mib:
        return run.cores
    fitting = int(run.fingerprint.node_memory_bytes // _MIB // size_mib)
    return min(run.cores, run.trial.workers * max(1, fitting))


def _reducers(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        run = group.typical
        launched = run.counter(f"{JOB}TOTAL_LAUNCHED_REDUCES")
        lost = run.counter(f"{JOB}NUM_FAILED_REDUCES") + run.counter(f"{JOB}NUM_KILLED_REDUCES")
        reduces = launched - lost
        if reduces < 1 or run.jobs != 1:
            continue
        tail_seconds = run.phase_seconds(_REDUCE_PHASE)
        share = tail_seconds / run.measurement.duration_seconds
        places = places_of(run, container_mib(run, "REDUCES"))
        wanted = max(1, int(_SLOT_SHARE * places))
        if share < _TAIL_SHARE or reduces >= wanted:
            continue
        count, setting = _reduces_setting(group, wanted)
        left = _left_of_reduce(run, reduces, count)
        gain = shrunk(min(1.0, share), left)
        if gain < LEAST_GAIN:
            continue
        yield advice(
            rule,
            group,
            title=f"Give {group.subject} {count} reducers",
            seen=(
                f"{format_count(reduces, 'reduce task')} where {places} can run at once;"
                f" the reduce phase after the last map took {format_seconds(tail_seconds)},"
                f" {percent(share)} of the run ({group.where})"
            ),
            setting=setting,
            brings=f"{gain_words(gain, emulated=group.emulated)}, if keys spread evenly; there will"
            " be as many output files as reducers",
            gain=gain,
        )


def _reduces_setting(group: Group, wanted: int) -> tuple[int, str]:
    """Say which number of reducers one can get, and how."""
    trial = group.trial
    if trial.workload == "terasort":
        return wanted, parameter("terasort", "reduces", wanted)
    if trial.workload == "submit":
        words = f"`-D mapreduce.job.reduces={wanted}` before the program's own arguments"
        return wanted, f"{words}, if it accepts Hadoop's options"
    if trial.profile != "default":
        return trial.workers, f"{DEFAULT_PROFILE}, which has one reducer per worker"
    return wanted, engine_settings({"mapreduce.job.reduces": str(wanted)})


def _left_of_reduce(run: RunView, now: int, then: int) -> float:
    """What is left of the reduce phase with more reducers: storage and links only grow by nodes."""
    phase = run.phase(_REDUCE_PHASE)
    if phase is not None and phase.first in (Bound.STORAGE, Bound.NETWORK):
        workers = run.trial.workers
        return min(now, workers) / min(then, workers)
    return now / then


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tasks:
    """How the tasks of a run filled its cores."""

    count: float
    """Tasks; of several stages the mean of each."""
    words: str
    """What was counted."""
    wall_seconds: float
    """Time in which tasks ran."""
    work_seconds: float
    """Time of all tasks together."""


def _tasks_of(run: RunView) -> _Tasks | None:
    """Count a run's tasks; None where that cannot be said: no counters, or several jobs at once."""
    if "+" in run.trial.workload:
        return None
    if run.trial.engine is Engine.SPARK:
        stages = sum(name.startswith("stage ") for name in run.phase_names())
        tasks = run.counter("spark/tasks")
        if not tasks or not stages:
            return None
        return _Tasks(
            count=tasks / stages,
            words=f"{format_count(tasks, 'task')} in {format_count(stages, 'stage')}",
            wall_seconds=_stages_seconds(run),
            work_seconds=run.counted_seconds(run.counter("spark/executorRunTime")),
        )
    maps = run.counter(f"{JOB}TOTAL_LAUNCHED_MAPS")
    if not maps or run.jobs != 1:
        return None
    return _Tasks(
        count=maps,
        words=format_count(maps, "map task"),
        wall_seconds=run.phase_seconds("map"),
        work_seconds=run.counted_seconds(run.counter(f"{JOB}MILLIS_MAPS")),
    )


def _stages_seconds(run: RunView) -> float:
    """Time of all stages; those that overlap count twice, so it is no more than the run."""
    seconds = sum(
        run.phase_seconds(name) for name in set(run.phase_names()) if name.startswith("stage ")
    )
    return min(seconds, run.measurement.duration_seconds)


def _idle(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        run = group.typical
        tasks = _tasks_of(run)
        duration_seconds = run.measurement.duration_seconds
        if tasks is None or tasks.wall_seconds < _STAGES_SHARE * duration_seconds:
            continue
        used = tasks.work_seconds / tasks.wall_seconds
        few = tasks.count < _FEW_TASKS_SHARE * run.cores
        narrow = group.trial.profile != "default" and used < _USED_SHARE * run.cores
        left = max(used / run.cores, _left_of_tasks(view, run))
        gain = shrunk(tasks.wall_seconds / duration_seconds, left) if 0 < left < 1 else 1.0
        if not (few or narrow) or gain < LEAST_GAIN:
            continue
        setting, same_job = _more_tasks(group, tasks.count) if few else (_WIDER, True)
        yield advice(
            rule,
            group,
            title=f"Keep all {run.cores} cores busy in {group.subject}",
            seen=(
                f"{tasks.words} on {run.cores} cores: {used:.1f} tasks ran at once, on average over"
                f" the {format_seconds(tasks.wall_seconds)} in which any ran"
                f"{_idle_words(view, run)} ({group.where})"
            ),
            setting=setting,
            brings=f"{gain_words(gain, emulated=group.emulated)}, if tasks of the same work fill"
            " all cores and nothing else holds them back"
            if same_job
            else f"at most {gain:.3g} times the bytes per second{_labelled(group)}; the same job is"
            " not faster",
            gain=gain if same_job else None,
        )


def _left_of_tasks(view: View, run: RunView) -> float:
    """What is left at least of the time in which tasks run, by what workers did; 0 if not known.

    CPU time that is used already cannot be used again. Where storage or the network bound the run,
    only workers with nothing to do can take something off the others.
    """
    workers = view.workers(run)
    busy = [row.busy_share for row in workers if row.busy_share is not None]
    least = mean(busy) if busy else 0.0
    if run.first in (Bound.STORAGE, Bound.NETWORK):
        idle = len(_idle_workers(view, run))
        return max(least, 1 - idle / len(workers) if workers else 1.0)
    return min(1.0, least)


def _idle_workers(view: View, run: RunView) -> dict[str, float]:
    """CPU time for tasks of the workers that had almost nothing to do, in seconds by name."""
    used = {row.node: row.jobs_cpu_seconds or 0.0 for row in view.workers(run)}
    most = max(used.values(), default=0.0)
    return {name: seconds for name, seconds in used.items() if seconds < _IDLE_SHARE * most}


def _idle_words(view: View, run: RunView) -> str:
    most = max((row.jobs_cpu_seconds or 0.0 for row in view.workers(run)), default=0.0)
    idle = [
        f"{name} ({format_seconds(seconds)} of CPU time, the busiest {format_seconds(most)})"
        for name, seconds in _idle_workers(view, run).items()
    ]
    return f"; almost idle: {', '.join(idle[:3])}" if idle else ""


def _more_tasks(group: Group, count: float) -> tuple[str, bool]:
    """Say how to fill the cores, and whether it is then still the same job."""
    trial = group.trial
    cores = group.typical.cores
    name = _COUNT_OF.get(trial.workload)
    if name is not None and (trial.workload != "terasort" or trial.engine is Engine.SPARK):
        return parameter(trial.workload, name, cores), True
    if trial.workload == "pi":
        fewer = f"`samples` divided by {cores / max(1.0, count):.3g}"
        return f"{parameter('pi', 'maps', cores)}, with {fewer} for the same work", True
    if trial.workload == "submit" or not trial.size_bytes:
        return "more partitions in the program: `repartition`, or smaller splits", True
    larger = matrix_key(_size(int(trial.size_bytes * cores / max(1.0, count))))
    return f"a larger input, one block per core: {larger}", False


def _size(size_bytes: int) -> str:
    return f'size = "{format_bytes(size_bytes)}"'


def _start_of(run: RunView) -> tuple[float, str]:
    """Return how much of a run was no work, as a share, and what was seen; 0 where not known.

    Time in which nothing was busy, or no task ran. The start of JVMs takes CPU time, too, so a busy
    CPU alone shows no work. When tasks ran, the engine says.
    """
    if run.first is Bound.START_UP:
        return run.share(Bound.START_UP), "no CPU, disk or link held it up"
    tasks = _tasks_of(run)
    if tasks is None or not tasks.wall_seconds:
        return 0.0, ""
    at_work_seconds = tasks.wall_seconds + run.phase_seconds(_REDUCE_PHASE)
    return 1 - at_work_seconds / run.measurement.duration_seconds, "no task ran"


def _start_up(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        run, trial = group.typical, group.trial
        share, words = _start_of(run)
        if share <= _START_SHARE:
            continue
        duration_seconds = run.measurement.duration_seconds
        seen = (
            f"{words} for {format_seconds(share * duration_seconds)} of"
            f" {format_seconds(duration_seconds)}, {percent(share)}: JVMs start, and tasks wait"
            f" for heartbeats ({group.where})"
        )
        if not trial.size_bytes:
            yield advice(
                rule,
                group,
                title=f"Give {group.subject} more work per run",
                seen=seen,
                setting=_more_work(group),
                brings="a time that reflects the work more than the engine's start-up",
                gain=None,
            )
            continue
        rate = _LARGER / (share + _LARGER * (1 - share))
        yield advice(
            rule,
            group,
            title=f"Give {group.subject} larger inputs",
            seen=seen,
            setting=f"{matrix_key(_size(_LARGER * trial.size_bytes))}, or several jobs at once as"
            ' a mix: `workload = "A+B"`',
            brings=f"about {rate:.1f} times the bytes per second with {_LARGER} times the input, if"
            f" the start does not grow with it{_labelled(group)}; the same job is not faster",
            gain=None,
        )


def _more_work(group: Group) -> str:
    if group.trial.workload == "pi":
        return (
            "more `samples` and not more `maps` in `[matrix.parameters.pi]` of campaign.toml: each"
            " map starts a JVM"
        )
    return "more work in each of its tasks, and fewer tasks: each starts a JVM or waits for one"


def _labelled(group: Group) -> str:
    return f" ({group.emulated})" if group.emulated else ""


TASK_RULES = (
    Rule(
        name="reducers",
        source="Apache Hadoop, MapReduce Tutorial, How Many Reduces? (0.95 of the containers); Lee"
        " and Park 2026, Table 9: one reducer is inefficient",
        find=_reducers,
    ),
    Rule(
        name="idle cores",
        source="Apache Spark, Tuning Spark, Level of Parallelism; Lee and Park 2026, Table 10",
        find=_idle,
    ),
    Rule(
        name="start-up",
        source="K. Ousterhout and others, NSDI 2015 (blocked time); Amdahl 1967",
        find=_start_up,
    ),
)
