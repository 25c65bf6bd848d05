"""What the logs of engines say of a job while it runs: its tasks, their nodes and progress. Pure.

The logs are written anyway, so that looking at them costs the job nothing. Of Spark it is the
driver's own (TaskSetManager, DAGScheduler), of MapReduce that of the application master
(TaskAttemptImpl, JobImpl), both at level INFO. A line that is not known is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

__all__ = ["LINES", "JobLog", "JobPart", "LiveTask"]

LINES = (
    r"TaskAttempt: \[attempt_|TaskAttempt Transitioned|Progress of TaskAttempt|Number of splits ="
    r"|Number of reduces for|Submitting \w+Stage|Adding task set|task \d+\.\d+ in stage"
)
"""A regular expression of the lines that are used."""

_TASKS_MOST = 2000
"""Of so many tasks each is kept; of more only their number."""

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[.,](\d{3}) ")
# Numbers of tasks have a bound: a node may write one that no division takes.
_SPLITS = re.compile(r"Number of splits = (\d{1,9})\b")
_REDUCES = re.compile(r"Number of reduces for job \S+ = (\d{1,9})\b")
_PLACED = re.compile(r"TaskAttempt: \[(attempt_\S+)\] using containerId: \[\S+ on NM: \[([^:\]]+)")
_CHANGED = re.compile(r"(attempt_\S+) TaskAttempt Transitioned from \w+ to (\w+)")
_PROGRESS = re.compile(r"Progress of TaskAttempt (attempt_\S+) is : ([\d.]+)")
_STAGE = re.compile(r"Submitting \w*Stage (\d+) \(\S+ at (.{1,120}?)\), which")
_TASK_SET = re.compile(r"Adding task set (\d+)\.\d+ with (\d{1,9}) tasks")
_STARTING = re.compile(r"Starting task \S+ in stage (\d+)\.\d+ \(TID (\d+)\) \(([^,]+),")
_FINISHED = re.compile(r"Finished task \S+ in stage (\d+)\.\d+ \(TID (\d+)\) in")
_LOST = re.compile(r"Lost task \S+ in stage (\d+)\.\d+ \(TID (\d+)\)")
_ENDED = {"SUCCESS_FINISHING_CONTAINER": True, "SUCCEEDED": True, "FAILED": False, "KILLED": False}
_WAYS = {"m": "maps", "r": "reduces"}


@dataclass(slots=True, kw_only=True)
class LiveTask:
    """One try at a task."""

    part: str
    """Name of the part of the job that it belongs to."""
    node: str
    """Where it runs."""
    begin_seconds: float
    """Since 1970, by the clock of who writes the log."""
    end_seconds: float | None = None
    """Likewise; None while it runs."""
    ok: bool = True
    """False if it failed or was ended."""
    progress: float = 0.0
    """0 to 1, as far as the engine says it."""


@dataclass(slots=True, kw_only=True)
class JobPart:
    """The maps or the reduces of a job, or one of its stages."""

    name: str
    """``maps``, ``reduces`` or ``stage 3``."""
    label: str = ""
    """What a stage does, in the engine's words."""
    total: int = 0
    """How many tasks it has."""
    running: int = 0
    """How many run."""
    done: int = 0
    """How many have succeeded."""
    failed: int = 0
    """How many tries failed or were ended."""


@dataclass(slots=True)
class JobLog:
    """A job as its log tells it, line by line.

    Args:
        ahead_seconds: by how much the local time of who writes it is ahead of UTC.
    """

    ahead_seconds: float = 0.0
    parts: dict[str, JobPart] = field(default_factory=dict)
    """By name, in the order in which they were first heard of."""
    tasks: dict[str, LiveTask] = field(default_factory=dict)
    """By the engine's id of the try."""
    last_seconds: float = 0.0
    """The latest moment of a line that was used, since 1970."""
    _nodes: dict[str, str] = field(default_factory=dict)

    def feed(self, line: str) -> None:
        """Take one line."""
        moment = _MOMENT.match(line)
        if moment is None:
            return
        seconds = self._seconds(moment)
        if self._mapreduce(line, seconds) or self._spark(line, seconds):
            self.last_seconds = max(self.last_seconds, seconds)

    @property
    def progress(self) -> float:
        """Share of the known tasks' work that is done, 0 to 1."""
        total = sum(part.total for part in self.parts.values())
        done = sum(part.done for part in self.parts.values())
        partly = sum(task.progress for task in self.tasks.values() if task.end_seconds is None)
        return min(1.0, (done + partly) / total) if total else 0.0

    def _seconds(self, moment: re.Match[str]) -> float:
        zone = timezone(timedelta(seconds=self.ahead_seconds)) if self.ahead_seconds else UTC
        text = f"{moment[1]}T{moment[2]}.{moment[3]}"
        try:
            return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()
        except ValueError:
            return self.last_seconds

    def _part(self, name: str) -> JobPart:
        return self.parts.setdefault(name, JobPart(name=name))

    def _mapreduce(self, line: str, seconds: float) -> bool:
        if found := _SPLITS.search(line):
            self._part("maps").total = int(found[1])
        elif found := _REDUCES.search(line):
            if int(found[1]):
                self._part("reduces").total = int(found[1])
        elif found := _PLACED.search(line):
            self._nodes[found[1]] = found[2]
        elif found := _PROGRESS.search(line):
            if found[1] in self.tasks:
                self.tasks[found[1]].progress = min(1.0, float(found[2]))
        elif found := _CHANGED.search(line):
            way = _WAYS.get(found[1].split("_")[3][:1]) if found[1].count("_") >= 5 else None
            if way and found[2] == "RUNNING":
                self._begin(found[1], way, self._nodes.pop(found[1], ""), seconds)
            elif found[2] in _ENDED:
                self._end(found[1], seconds, ok=_ENDED[found[2]])
        else:
            return False
        return True

    def _spark(self, line: str, seconds: float) -> bool:
        if found := _STAGE.search(line):
            self._part(f"stage {found[1]}").label = found[2]
        elif found := _TASK_SET.search(line):
            part = self._part(f"stage {found[1]}")
            part.total = max(part.total, part.done + int(found[2]))
        elif found := _STARTING.search(line):
            self._begin(found[2], f"stage {found[1]}", found[3], seconds)
        elif found := _FINISHED.search(line):
            self._end(found[2], seconds, ok=True)
        elif found := _LOST.search(line):
            self._end(found[2], seconds, ok=False)
        else:
            return False
        return True

    def _begin(self, name: str, part: str, node: str, seconds: float) -> None:
        self._part(part).running += 1
        if len(self.tasks) >= _TASKS_MOST:
            ended = next((k for k, row in self.tasks.items() if row.end_seconds is not None), None)
            if ended is not None:
                del self.tasks[ended]
        self.tasks[name] = LiveTask(part=part, node=node, begin_seconds=seconds)

    def _end(self, name: str, seconds: float, *, ok: bool) -> None:
        task = self.tasks.get(name)
        if task is None or task.end_seconds is not None:
            return
        task.end_seconds, task.ok = seconds, ok
        part = self._part(task.part)
        part.running -= 1
        if ok:
            part.done += 1
        else:
            part.failed += 1

    def nodes(self) -> Mapping[str, int]:
        """How many tasks run on each node that had one."""
        counts: dict[str, int] = {}
        for task in self.tasks.values():
            counts[task.node] = counts.get(task.node, 0) + (task.end_seconds is None)
        return counts
