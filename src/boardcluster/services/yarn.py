"""YARN and the MapReduce history through their REST interfaces, and how a job is submitted.

Source: Apache Hadoop, ResourceManager REST APIs and MapReduce History Server REST APIs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from boardcluster.errors import RemoteError
from boardcluster.remote.ask import http
from boardcluster.remote.base import Remote
from boardcluster.services.layout import Layout

__all__ = [
    "YarnApplication",
    "applications",
    "file_system_command",
    "hadoop_command",
    "job_counters",
    "kill",
    "mapreduce_command",
]

_HISTORY_WAIT_SECONDS = 20.0
_ENDED = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnApplication:
    """An application as the ResourceManager sees it.

    Attributes:
        id: YARN's id.
        state: e.g. ACCEPTED, RUNNING, FINISHED.
        final_status: e.g. SUCCEEDED, FAILED; UNDEFINED while it runs.
        diagnostics: what YARN has to say about it.
    """

    id: str
    state: str
    final_status: str
    diagnostics: str


def hadoop_command(
    layout: Layout, *, conf: str, main: str, arguments: Sequence[str], jars: Sequence[str] = ()
) -> list[str]:
    """Return the command that runs a class of Hadoop, or of further jars, on the master.

    Args:
        layout: the cluster.
        conf: folder of the configuration to run with.
        main: the class.
        arguments: its arguments.
        jars: further jars.
    """
    class_path = ":".join([*layout.engines.jars("hadoop"), conf, *jars])
    return [
        *(str(layout.java.program), "-Xmx256m", "-XX:-UsePerfData"),
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={layout.folder(layout.spec.master, 'tmp')}",
        *("-cp", class_path),
        *(main, *arguments),
    ]


def mapreduce_command(
    layout: Layout, *, conf: str, jar: str, arguments: Sequence[str]
) -> list[str]:
    """Return the command that submits a MapReduce program from the master, as ``hadoop jar`` does.

    Args:
        layout: the cluster.
        conf: folder of the configuration to submit with.
        jar: the program.
        arguments: main class and arguments, as for ``hadoop jar``.
    """
    main = "org.apache.hadoop.util.RunJar"
    return hadoop_command(layout, conf=conf, main=main, arguments=[jar, *arguments])


def file_system_command(layout: Layout, *, conf: str, arguments: Sequence[str]) -> list[str]:
    """Return the command of HDFS's own client, as ``hdfs dfs`` runs it on the master."""
    main = "org.apache.hadoop.fs.FsShell"
    return hadoop_command(layout, conf=conf, main=main, arguments=arguments)


def applications(layout: Layout, remote: Remote, *, tag: str) -> list[YarnApplication]:
    """Return the applications that were submitted with a tag, oldest first."""
    base = layout.url(layout.spec.master, "resourcemanager-web")
    answer = http(remote, "GET", f"{base}/ws/v1/cluster/apps?applicationTags={tag}")
    if answer.status != 200:
        raise RemoteError(
            f"the ResourceManager does not answer (status {answer.status}): {answer.body[:200]}",
            hint="run `boardcluster status`",
        )
    rows = (answer.json().get("apps") or {}).get("app") or []
    return [
        YarnApplication(
            id=row["id"],
            state=row["state"],
            final_status=row["finalStatus"],
            diagnostics=row.get("diagnostics", "").strip(),
        )
        for row in sorted(rows, key=lambda row: row["startedTime"])
    ]


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
            )
            killed.append(application.id)
    return killed


def job_counters(layout: Layout, remote: Remote, application_id: str) -> dict[str, int]:
    """Return a finished job's counters as ``group/name``; waits until the history has them.

    Raises:
        RemoteError: the history server did not have the job in time.
    """
    job = application_id.replace("application_", "job_")
    base = layout.url(layout.spec.master, "jobhistory-web")
    deadline = time.monotonic() + _HISTORY_WAIT_SECONDS
    while True:
        answer = http(remote, "GET", f"{base}/ws/v1/history/mapreduce/jobs/{job}/counters")
        if answer.status == 200:
            break
        if time.monotonic() > deadline:
            raise RemoteError(
                f"the history server has no {job} (status {answer.status}): {answer.body[:200]}"
            )
        time.sleep(0.3)
    groups = answer.json()["jobCounters"].get("counterGroup", [])
    return {
        f"{group['counterGroupName']}/{counter['name']}": int(counter["totalCounterValue"])
        for group in groups
        for counter in group["counter"]
    }
