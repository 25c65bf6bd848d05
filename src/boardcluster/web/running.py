"""The job that runs: its tasks from the engine's log, and where its last minute went."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardcluster.analysis.bottleneck import diagnose
from boardcluster.errors import ProbeOutputError
from boardcluster.records import Result, Telemetry
from boardcluster.services.job_log import JobLog
from boardcluster.telemetry.samples import SAME_CLOCKS, parse_samples
from boardcluster.web.readings import LiveReadings

__all__ = ["RunningJob", "last_minute"]

_FIRST_BYTES = 8 << 20
_MINUTE_SECONDS = 60.0
_LEAST_SAMPLES = 5
_SHOWN_TASKS = 400
_LONGEST_LINE_BYTES = 1 << 16


@dataclass(slots=True)
class _LocalTail:
    """Reads on in a file of this machine."""

    path: Path
    place: int = 0
    rest: bytes = b""

    def lines(self) -> list[str]:
        with contextlib.suppress(OSError), self.path.open("rb") as stream:
            stream.seek(self.place)
            data = stream.read(_FIRST_BYTES)
            self.place += len(data)
            *whole, rest = (self.rest + data).split(b"\n")
            self.rest = rest[-_LONGEST_LINE_BYTES:]
            return [line.decode(errors="replace") for line in whole]
        return []


@dataclass(slots=True)
class RunningJob:
    """What is known of the jobs of the attempt that runs, from the logs of its submissions."""

    folder: Path | None = None
    """The attempt's folder of artefacts; None while none runs."""
    _tails: dict[Path, _LocalTail] = field(default_factory=dict)
    _logs: dict[str, JobLog] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)

    def follow(self, folder: Path | None) -> None:
        """Follow another attempt."""
        if folder != self.folder:
            self.folder = folder
            self._tails.clear()
            self._logs.clear()
            self._order.clear()

    def look(self) -> None:
        """Read on in what submissions write on this machine: the log of Spark's driver."""
        if self.folder is None:
            return
        for path in sorted(self.folder.glob("**/stderr.txt")):
            if "containers" not in path.parts:
                self._tails.setdefault(path, _LocalTail(path))
        for path, tail in self._tails.items():
            for line in tail.lines():
                self.feed(str(path), line)

    def feed(self, path: str, line: str, *, ahead_seconds: float | None = None) -> None:
        """Take a line of a log; nothing while no attempt runs.

        Args:
            path: which log.
            line: the line.
            ahead_seconds: by how much its local time is ahead of UTC; None for this machine's.
        """
        if self.folder is None:
            return
        log = self._logs.get(path)
        if log is None:
            here = float(time.localtime().tm_gmtoff)
            log = self._logs[path] = JobLog(here if ahead_seconds is None else ahead_seconds)
        known = bool(log.parts)
        log.feed(line)
        if log.parts and not known:
            self._order.append(path)

    def document(self, *, since_seconds: float) -> dict[str, Any] | None:
        """The job that began last, as JSON takes it; None while none has tasks.

        Args:
            since_seconds: tasks of logs that ended before are of earlier runs, since 1970.
        """
        for path in reversed(self._order):
            log = self._logs[path]
            if log.last_seconds < since_seconds:
                continue
            tasks = sorted(log.tasks.values(), key=lambda task: task.begin_seconds)[-_SHOWN_TASKS:]
            return {
                "submissions": len(self._order),
                "progress": round(log.progress, 4),
                "parts": [
                    {
                        "name": part.name,
                        "label": part.label,
                        "total": part.total,
                        "running": part.running,
                        "done": part.done,
                        "failed": part.failed,
                    }
                    for part in log.parts.values()
                ],
                "nodes": dict(log.nodes()),
                "tasks": [
                    [
                        *(task.node, task.part, round(task.begin_seconds, 2)),
                        *(task.end_seconds and round(task.end_seconds, 2), task.ok),
                    ]
                    for task in tasks
                ],
            }
        return None


def last_minute(result: Result, nodes: Mapping[str, LiveReadings]) -> dict[str, Any] | None:
    """Say where the last minute of a run went, as JSON takes it; None if nothing is known.

    It is the analysis of bottlenecks of a finished run, on the samples of the last minute. What
    each task waited for is known only once the run has ended, so nodes alone are looked at.
    """
    samples = []
    for name, node in nodes.items():
        lines = [
            f"{words[1]} {words[1]} {words[2]}"
            for words in (line.split(" ", 2) for line in list(node.recent))
            if len(words) == 3
        ]
        if len(lines) < _LEAST_SAMPLES or node.source != "run":
            continue
        with contextlib.suppress(ProbeOutputError, ValueError, OverflowError):
            samples.append(
                parse_samples(
                    "\n".join([node.head, *lines, ""]),
                    node=name,
                    scope="machine" if node.frame.is_machine else "node",
                    cores=max(1, round(node.frame.cores)),
                    alignment=SAME_CLOCKS,
                    started_seconds=node.at_seconds - _MINUTE_SECONDS,
                )
            )
    if not samples:
        return None
    telemetry = Telemetry(
        duration_seconds=_MINUTE_SECONDS, nodes=tuple(samples), phases={}, tasks=None
    )
    found = diagnose(result, telemetry).run
    if not found.shares:
        return None
    return {
        "seconds": round(found.known_seconds, 1),
        "shares": {bound.value: round(share, 4) for bound, share in found.shares.items()},
        "first": found.first.value if found.first else None,
        "gain": round(found.gains[found.first], 3) if found.first else None,
        "evidence": list(found.evidence),
    }
