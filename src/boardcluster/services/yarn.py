"""YARN and the MapReduce history through their REST interfaces, and how a job is submitted.

Source: Apache Hadoop, ResourceManager REST APIs and MapReduce History Server REST APIs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from boardcluster.errors import BoardclusterError, RemoteError
from boardcluster.records import Engine, TaskRecord
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import HttpAnswer, http, http_get_all
from boardcluster.services.jvm import job_options, processor_flags
from boardcluster.services.layout import Layout
from boardcluster.waiting import wait_until

__all__ = [
    "HEAP_MIB",
    "JobHistory",
    "YarnApplication",
    "applications",
    "file_system_command",
    "hadoop_command",
    "job_history",
    "kill",
    "mapreduce_command",
    "unfinished_tags",
    "unhealthy_nodes",
]

HEAP_MIB = 256
"""Of clients that only submit."""
_HISTORY_WAIT_SECONDS = 20.0
_ANSWER_SECONDS = 20.0
_DOCUMENT_SECONDS = 5.0
_MOST_TASKS = 500  # the server answers two questions on each; a job of a board cluster has fewer
_TASKS_SECONDS = 60.0  # for all of them: usually a few milliseconds each
_CPU = "CPU_MILLISECONDS"
_SPILLED = "FILE_BYTES_WRITTEN"
_APPLICATION_ID = re.compile(r"application_\d+_\d+")
_ENDED = ("FINISHED", "FAILED", "KILLED")
_UNFINISHED = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnApplication:
    """An application as the ResourceManager sees it."""

    id: str
    """YARN's id."""
    state: str
    """E.g. ACCEPTED, RUNNING, FINISHED."""
    final_status: str
    """E.g. SUCCEEDED, FAILED; UNDEFINED while it runs."""
    diagnostics: str
    """What YARN has to say about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """What the MapReduce history server keeps of a job."""

    counters: dict[str, int]
    """Its counters as ``group/name``, unchanged."""
    phases_seconds: dict[str, float]
    """``start`` (submission to first map), ``map`` (to the end of the last map), ``reduce after the
    last map`` and ``commit`` follow each other; the means are over the reduce tasks, which overlap
    with the maps."""
    phase_spans: dict[str, tuple[float, float]]
    """Begin and end of those that follow each other, in seconds since 1970 by the wall clock of
    ``clock_node``."""
    clock_node: str
    """Name of the node that its application master ran on, which dates all but the submission; the
    master's where the history does not say."""
    document: dict[str, Any]
    """The server's answers, unchanged."""
    tasks: tuple[TaskRecord, ...] = ()
    """What is known of each task, by the clock of ``clock_node``; empty where the server does not
    say it of each within a minute, or where there are more than a few hundred."""


def hadoop_command(
    layout: Layout,
    *,
    conf: str,
    main: str,
    arguments: Sequence[str],
    jars: Sequence[str] = (),
    heap_mib: int = HEAP_MIB,
) -> list[str]:
    """Return the command that runs a class of Hadoop, or of further jars, on the master.

    ``conf`` is the folder of the configuration to run with.
    """
    class_path = ":".join([*layout.engines.jars("hadoop"), conf, *jars])
    return [
        *(str(layout.java.program), f"-Xmx{heap_mib}m", "-XX:-UsePerfData"),
        *processor_flags(layout, [layout.spec.master]),
        *job_options(layout, Engine.MAPREDUCE, brief=True),
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={layout.folder(layout.spec.master, 'tmp')}",
        *("-cp", class_path),
        *(main, *arguments),
    ]


def mapreduce_command(
    layout: Layout,
    *,
    conf: str,
    jar: str,
    arguments: Sequence[str],
    heap_mib: int = HEAP_MIB,
) -> list[str]:
    """Return the command that submits a MapReduce program from the master, as ``hadoop jar`` does.

    The arguments are the main class and its own.
    """
    main = "org.apache.hadoop.util.RunJar"
    return hadoop_command(
        layout, conf=conf, main=main, arguments=[jar, *arguments], heap_mib=heap_mib
    )


def file_system_command(layout: Layout, *, conf: str, arguments: Sequence[str]) -> list[str]:
    """Return the command of HDFS's own client, as ``hdfs dfs`` runs it on the master."""
    main = "org.apache.hadoop.fs.FsShell"
    return hadoop_command(layout, conf=conf, main=main, arguments=arguments)


def _get(layout: Layout, remote: Remote, url: str) -> HttpAnswer:
    """Ask a daemon, as patiently as its node is slow."""
    return http(remote, "GET", url, timeout_seconds=_ANSWER_SECONDS * layout.dilation)


def applications(layout: Layout, remote: Remote, *, tag: str) -> list[YarnApplication]:
    """Return the applications that were submitted with a tag, oldest first.

    Raises:
        RemoteError: the ResourceManager does not answer, or one has no id of YARN's. Callers make
            names of files of them, and a job can put a server of its own into its place.
    """
    base = layout.url(layout.spec.master, "resourcemanager-web")
    # A mix's tag holds plus signs, which a query would read as blanks.
    answer = _get(layout, remote, f"{base}/ws/v1/cluster/apps?applicationTags={quote(tag)}")
    if answer.status != 200:
        raise RemoteError(
            f"the ResourceManager does not answer (status {answer.status}): {answer.body[:200]}",
            hint="run `boardcluster status`",
        )
    rows = (answer.json().get("apps") or {}).get("app") or []
    for row in rows:
        if not _APPLICATION_ID.fullmatch(row["id"]):
            raise RemoteError(
                f"the ResourceManager names an application {row['id']!r}, which is no id of YARN's",
                hint="something answers in place of it: run `boardcluster down`",
            )
    return [
        YarnApplication(
            id=row["id"],
            state=row["state"],
            final_status=row["finalStatus"],
            diagnostics=row.get("diagnostics", "").strip(),
        )
        for row in sorted(rows, key=lambda row: row["startedTime"])
    ]


def unfinished_tags(layout: Layout, remote: Remote) -> set[str]:
    """Return every tag of the applications that have not ended; empty if YARN does not answer."""
    base = layout.url(layout.spec.master, "resourcemanager-web")
    answer = _get(layout, remote, f"{base}/ws/v1/cluster/apps?states={','.join(_UNFINISHED)}")
    if answer.status != 200:
        return set()
    rows = (answer.json().get("apps") or {}).get("app") or []
    return {tag for row in rows for tag in row.get("applicationTags", "").split(",") if tag}


def kill(layout: Layout, remote: Remote, *, tag: str) -> list[str]:
    """Kill every application with a tag that has not ended; return their ids."""
    base = layout.url(layout.spec.master, "resourcemanager-web")
    killed = []
    for application in applications(layout, remote, tag=tag):
        if application.state not in _ENDED:
            http(
                remote,
                "PUT",
                f"{base}/ws/v1/cluster/apps/{application.id}/state?user.name={layout.user}",
                body='{"state": "KILLED"}',
                headers={"Content-Type": "application/json"},
                timeout_seconds=_ANSWER_SECONDS * layout.dilation,
            )
            killed.append(application.id)
    return killed


def unhealthy_nodes(layout: Layout, remote: Remote) -> list[str]:
    """Name every node that YARN gives no more work to, with what its NodeManager reports.

    A full disk (90 % by default) or one that cannot be written makes a node unhealthy.
    """
    base = layout.url(layout.spec.master, "resourcemanager-web")
    answer = _get(layout, remote, f"{base}/ws/v1/cluster/nodes?states=UNHEALTHY")
    if answer.status != 200:
        return []
    rows = (answer.json().get("nodes") or {}).get("node") or []
    return [f"{row['nodeHostName']}: {row['healthReport'].strip()}" for row in rows]


def job_history(layout: Layout, remote: Remote, application_id: str) -> JobHistory:
    """Return what the history server keeps of a finished job; waits until it has it.

    Raises:
        RemoteError: the history server did not have the job in time.
    """
    job = application_id.replace("application_", "job_")
    base = f"{layout.url(layout.spec.master, 'jobhistory-web')}/ws/v1/history/mapreduce/jobs/{job}"
    urls = [base, f"{base}/tasks", f"{base}/counters", f"{base}/jobattempts"]

    def complete(answers: list[HttpAnswer]) -> bool:
        return all(answer.status == 200 for answer in answers)

    answers = wait_until(
        lambda: http_get_all(remote, urls, timeout_seconds=_DOCUMENT_SECONDS * layout.dilation),
        ready=complete,
        timeout_seconds=_HISTORY_WAIT_SECONDS * layout.dilation,
        poll_seconds=0.3,
    )
    if not complete(answers):
        failed = [answer for answer in answers if answer.status != 200]
        worst = max(failed, key=lambda answer: answer.status)
        raise RemoteError(
            f"the history server has no {job} (status {worst.status}): {worst.body[:200]}"
        )
    described, tasks, counters, attempts = (answer.json() for answer in answers)
    rows = (tasks.get("tasks") or {}).get("task") or []
    spans = _spans(described["job"], rows)
    each, known = _ask_of_tasks(layout, remote, base, rows)
    return JobHistory(
        counters={
            f"{group['counterGroupName']}/{counter['name']}": int(counter["totalCounterValue"])
            for group in counters["jobCounters"].get("counterGroup", [])
            for counter in group["counter"]
        },
        phases_seconds={name: (end - begin) / 1000 for name, (begin, end) in spans.items()}
        | _means(described["job"], rows),
        phase_spans={name: (begin / 1000, end / 1000) for name, (begin, end) in spans.items()},
        clock_node=_clock_node(layout, attempts),
        document={
            "job": described["job"],
            "tasks": tasks,
            "counters": counters,
            "attempts": attempts,
            "task_attempts": each,
        },
        tasks=known,
    )


def _ask_of_tasks(
    layout: Layout, remote: Remote, base: str, tasks: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], tuple[TaskRecord, ...]]:
    """Return the server's answers on the try at each task that succeeded, and what they say.

    They say what a run waited for, which is worth a second question but no failure: there are none
    if the server is slow, or gives too few answers or odd ones. Tasks count together, as so many at
    once, so a part of them would mislead.
    """
    ids = [
        (str(task["id"]), str(task["successfulAttempt"]))
        for task in tasks
        if task.get("id") and task.get("successfulAttempt")
    ]
    if not ids or len(ids) > _MOST_TASKS:
        return [], ()
    of_each = [f"{base}/tasks/{task}/attempts/{attempt}" for task, attempt in ids]
    urls = [url + ending for url in of_each for ending in ("", "/counters")]
    try:
        answers = http_get_all(
            remote,
            urls,
            timeout_seconds=_DOCUMENT_SECONDS * layout.dilation,
            total_seconds=_TASKS_SECONDS * layout.dilation,
        )
        documents = [answer.json() for answer in answers if answer.status == 200]
        if len(documents) < len(urls):
            return [], ()
        each = [documents[place] | documents[place + 1] for place in range(0, len(urls), 2)]
        return each, _tasks(layout, tasks, each)
    except (BoardclusterError, ValueError, TypeError, LookupError, AttributeError):
        return [], ()


def _tasks(
    layout: Layout, tasks: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> tuple[TaskRecord, ...]:
    """What is known of each task, in seconds.

    A reducer begins while maps run, and then mostly waits for them. What holds up the job is the
    maps, so until the last of them ends a reducer counts only from the end of its own shuffle.
    """
    mapped = max((task["finishTime"] for task in tasks if task["type"] == "MAP"), default=0)
    known = {node.name for node in layout.spec.nodes}
    found = []
    for answer in answers:
        row = answer["taskAttempt"]
        counts = {
            counter["name"]: int(counter["value"])
            for group in answer["jobTaskAttemptCounters"].get("taskAttemptCounterGroup") or []
            for counter in group["counter"]
        }
        begin, end = int(row["startTime"]), int(row["finishTime"])
        shuffled = int(row.get("shuffleFinishTime") or begin)
        started = max(begin, min(mapped, shuffled)) if row["type"] == "REDUCE" else begin
        node = str(row["nodeHttpAddress"]).partition(":")[0]
        if node in known and started < end:
            found.append(
                TaskRecord(
                    node=node,
                    begin_seconds=started / 1000,
                    end_seconds=end / 1000,
                    cpu_seconds=min(counts.get(_CPU, 0), end - started) / 1000,
                    fetch_wait_seconds=max(0, shuffled - started) / 1000,
                    spilled_bytes=counts.get(_SPILLED, 0),
                )
            )
    return tuple(found)


def _clock_node(layout: Layout, attempts: dict[str, Any]) -> str:
    """Name the node of the last application master: it dated the tasks."""
    rows = (attempts.get("jobAttempts") or {}).get("jobAttempt") or []
    host = str(rows[-1].get("nodeId", "")).partition(":")[0] if rows else ""
    known = {node.name for node in layout.spec.nodes}
    return host if host in known else layout.spec.master.name


def _spans(job: dict[str, Any], tasks: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Cut the job's own time into parts that follow each other, in ms since 1970."""
    maps = [task for task in tasks if task["type"] == "MAP"]
    reduces = [task for task in tasks if task["type"] == "REDUCE"]
    if not maps:
        return {}
    first = min(task["startTime"] for task in maps)
    mapped = max(task["finishTime"] for task in maps)
    reduced = max([mapped, *(task["finishTime"] for task in reduces)])
    spans = {"start": (job["submitTime"], first), "map": (first, mapped)}
    if reduces:
        spans["reduce after the last map"] = (mapped, reduced)
    return spans | {"commit": (reduced, max(reduced, job["finishTime"]))}


def _means(job: dict[str, Any], tasks: list[dict[str, Any]]) -> dict[str, float]:
    """Mean seconds of the parts of a reduce task, which overlap with the maps."""
    if not {"MAP", "REDUCE"} <= {task["type"] for task in tasks}:
        return {}
    parts = {"shuffle": "avgShuffleTime", "merge": "avgMergeTime", "reduce": "avgReduceTime"}
    return {f"mean {part} of a reduce task": job[key] / 1000 for part, key in parts.items()}
