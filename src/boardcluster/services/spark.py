"""Spark on YARN: how a program is submitted, and what its event log says.

Source: Apache Spark, JsonProtocol (event log) and "Running Spark on YARN".
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boardcluster.errors import RemoteError
from boardcluster.foreign import bounded_lines
from boardcluster.records import TaskRecord
from boardcluster.services.layout import Layout

__all__ = [
    "Stage",
    "read_event_log",
    "read_stages",
    "read_tasks",
    "spark_submit_command",
    "stages_seconds",
    "submit_environment",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A try at a stage that ended, well or not."""

    number: int
    """The stage's, from 0."""
    attempt: int
    """Which try, from 0."""
    name: str
    """Where the program asked for it, in Spark's words."""
    begin_seconds: float
    """Its submission, in seconds since 1970 by the wall clock of Spark's driver, which is the
    master's, as ``spark-submit`` runs here."""
    end_seconds: float
    """Its completion, likewise."""

    @property
    def label(self) -> str:
        """Its number, as Spark's pages write it (``3.1`` is the second try), and its name."""
        again = f".{self.attempt}" if self.attempt else ""
        return f"stage {self.number}{again}: {self.name}"


def spark_submit_command(
    layout: Layout, *, conf: str, tag: str, program: str, arguments: Sequence[str], main: str = ""
) -> list[str]:
    """Return the command that submits a program from the master, with Spark's own script.

    ``conf`` is a folder of configuration, ``program`` a jar, with its ``main`` class, or a Python
    file. By ``tag`` the application is found again in YARN.
    """
    return [
        f"{layout.engines.spark_home}/bin/spark-submit",
        *("--properties-file", f"{conf}/spark-defaults.conf"),
        *("--conf", f"spark.yarn.tags={tag}"),
        *(("--class", main) if main else ()),
        program,
        *arguments,
    ]


def submit_environment(layout: Layout, *, conf: str) -> dict[str, str]:
    """Return the environment of a submission, the same for both engines."""
    return {
        "JAVA_HOME": str(layout.java.home),
        "HADOOP_USER_NAME": layout.user,
        "HADOOP_CONF_DIR": conf,
        "SPARK_HOME": str(layout.engines.spark_home),
        "SPARK_CONF_DIR": conf,
        "SPARK_LOCAL_IP": layout.spec.master.name,  # else its web page is bound to every address
        "PYSPARK_PYTHON": "python3",
        "SPARK_LOCAL_DIRS": layout.folder(layout.spec.master, "tmp"),
        "SPARK_SUBMIT_OPTS": "-XX:-UsePerfData",
    }


_SUMMED = {
    "executorRunTime": ("Executor Run Time",),
    "executorCpuTime": ("Executor CPU Time",),
    "jvmGCTime": ("JVM GC Time",),
    "memoryBytesSpilled": ("Memory Bytes Spilled",),
    "diskBytesSpilled": ("Disk Bytes Spilled",),
    "inputBytes": ("Input Metrics", "Bytes Read"),
    "inputRecords": ("Input Metrics", "Records Read"),
    "outputBytes": ("Output Metrics", "Bytes Written"),
    "outputRecords": ("Output Metrics", "Records Written"),
    "shuffleRemoteReadBytes": ("Shuffle Read Metrics", "Remote Bytes Read"),
    "shuffleLocalReadBytes": ("Shuffle Read Metrics", "Local Bytes Read"),
    "shuffleWriteBytes": ("Shuffle Write Metrics", "Shuffle Bytes Written"),
}
"""Counter name to its place in a task's metrics."""


_EVENT_CHARACTERS = 64 << 20
"""Longest line that is read: the plan of a query may have megabytes."""


def _check_start(line: str) -> None:
    if not line.startswith('{"Event":"SparkListenerLogStart"'):
        raise ValueError("it does not begin with SparkListenerLogStart")


@contextlib.contextmanager
def _events(path: Path, kind: str) -> Iterator[Iterator[Any]]:
    """Yield the events of a kind in the log's order.

    Raises:
        RemoteError: the file is not an event log, or the block cannot understand an event.
    """
    mark = f'{{"Event":"SparkListener{kind}"'
    try:
        with path.open(encoding="utf-8") as stream:
            _check_start(stream.readline(_EVENT_CHARACTERS))
            yield (
                json.loads(line)
                for line in bounded_lines(stream, characters=_EVENT_CHARACTERS)
                if line.startswith(mark)
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RemoteError(f"{path} is not a Spark event log: {error}") from error


def read_event_log(path: Path) -> dict[str, int]:
    """Sum the metrics of every task of an application, as ``spark/NAME``.

    Times are as Spark gives them: run and GC time in ms, CPU time in ns. Failed tasks count too:
    their work was done.

    Raises:
        RemoteError: the file is not an event log.
    """
    totals = dict.fromkeys(_SUMMED, 0)
    tasks = failed = 0
    with _events(path, "TaskEnd") as events:
        for event in events:
            tasks += 1
            failed += event["Task End Reason"]["Reason"] != "Success"
            for name, place in _SUMMED.items():
                value = event.get("Task Metrics") or {}
                for key in place:
                    value = value.get(key, {}) if isinstance(value, dict) else 0
                totals[name] += value if isinstance(value, int) else 0
    totals["shuffleReadBytes"] = totals["shuffleRemoteReadBytes"] + totals["shuffleLocalReadBytes"]
    totals |= {"tasks": tasks, "failedTasks": failed}
    return {f"spark/{name}": value for name, value in totals.items()}


def read_stages(path: Path) -> tuple[Stage, ...]:
    """Return every stage that ended, in the order of their ends; those that were skipped left out.

    Stages may overlap. A stage that was tried again is there each time.

    Raises:
        RemoteError: the file is not an event log.
    """
    with _events(path, "StageCompleted") as events:
        rows = (event["Stage Info"] for event in events)
        return tuple(
            Stage(
                number=int(info["Stage ID"]),
                attempt=int(info.get("Stage Attempt ID", 0)),
                name=str(info["Stage Name"]),
                begin_seconds=info["Submission Time"] / 1000,
                end_seconds=info["Completion Time"] / 1000,
            )
            for info in rows
            if "Submission Time" in info and "Completion Time" in info  # a skipped one has no times
        )


def read_tasks(path: Path) -> tuple[TaskRecord, ...]:
    """Return what the log says of each try at a task, in the order of their ends.

    Begin and end are in seconds since 1970 by the wall clock of Spark's driver. What a task neither
    ran nor deserialised is overhead: Spark's own pages call it scheduler delay (AppStatusUtils).
    Tries of which Spark has no metrics, because their executor was lost, have no CPU time.

    Raises:
        RemoteError: the file is not an event log.
    """
    with _events(path, "TaskEnd") as events:
        return tuple(
            _task(event["Task Info"], event.get("Task Metrics") or {})
            for event in events
            if "Task Info" in event
        )


def _task(info: dict[str, Any], metrics: dict[str, Any]) -> TaskRecord:
    begin, end = info["Launch Time"] / 1000, info["Finish Time"] / 1000
    deserialised, run = (
        metrics.get(f"Executor {what} Time", 0) / 1000 for what in ("Deserialize", "Run")
    )
    cpu = metrics.get("Executor Deserialize CPU Time", 0) / 1e9
    at_work = cpu + run if metrics else end - begin
    fetch = metrics.get("Shuffle Read Metrics") or {}
    return TaskRecord(
        node=str(info["Host"]),
        begin_seconds=begin,
        end_seconds=end,
        cpu_seconds=min(cpu, deserialised) + metrics.get("Executor CPU Time", 0) / 1e9,
        collection_seconds=metrics.get("JVM GC Time", 0) / 1000,
        fetch_wait_seconds=fetch.get("Fetch Wait Time", 0) / 1000,
        overhead_seconds=max(0.0, end - begin - at_work),
        spilled_bytes=metrics.get("Disk Bytes Spilled", 0),
    )


def stages_seconds(stages: Iterable[Stage]) -> dict[str, float]:
    """Return the duration of each stage in seconds, all its tries together, by number and name."""
    found: dict[str, float] = {}
    for stage in stages:
        name = f"stage {stage.number}: {stage.name}"
        took = round(stage.end_seconds - stage.begin_seconds, 3)  # Spark dates in ms
        found[name] = found.get(name, 0.0) + took
    return found
