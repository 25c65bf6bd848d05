"""One submission: run it, time it, and gather what it left behind."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from boardcluster.campaign.spans import EngineSpans, Span
from boardcluster.cluster.each_node import each_node
from boardcluster.errors import BoardclusterError, RemoteError, RemoteTimeoutError, StalledError
from boardcluster.foreign import bounded_lines
from boardcluster.records import Engine, NodeSpec, TaskRecord
from boardcluster.redaction import redact
from boardcluster.remote.gate import tail_text
from boardcluster.remote.node_rpc import end_marked, excerpt, without_limits
from boardcluster.services import mpi
from boardcluster.services.conf import render_node
from boardcluster.services.job_crashes import consequence_of_crash, starts_with_archive
from boardcluster.services.jvm import crash_words
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.spark import (
    read_event_log,
    read_stages,
    read_tasks,
    stages_seconds,
    submit_environment,
)
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.services.yarn import (
    YarnApplication,
    applications,
    job_history,
    kill,
    unfinished_tags,
)
from boardcluster.units import format_bytes
from boardcluster.waiting import wait_until
from boardcluster.workloads.inputs import INPUT_FOLDER

__all__ = [
    "ATTEMPT_VARIABLE",
    "NO_ROOM",
    "OUTPUT_FOLDER",
    "SAFE_MODE",
    "SAFE_MODE_WORDS",
    "Execution",
    "SubmissionOutcome",
    "attempt_tag",
    "clear_leftovers",
    "clear_scratch",
    "end_lost_jobs",
    "end_submission",
    "scratch_of",
    "write_configuration",
]

_UNREGISTER_WAIT_SECONDS = 10.0
_OUTLIVED = "it was still running after the program had ended, and was killed"

_OOM = re.compile(
    r"(?<!-XX:On)OutOfMemoryError|Java heap space|GC overhead limit|"  # an option is no error
    r"beyond the '(PHYSICAL|VIRTUAL)' memory limit"
    r"|(?i:exit ?(?:code|status):? (?:is )?137\b)"
)
_STOCK_TEMPORARY = ("grep-temp-", "QuasiMonteCarlo_")
"""What Hadoop's own grep and pi make beside their output, and leave there if they are ended."""
OUTPUT_FOLDER = "/boardcluster/output"
"""Folder in HDFS of the outputs of attempts, each of which deletes its own."""

ATTEMPT_VARIABLE = "BOARDCLUSTER_ATTEMPT"
SAFE_MODE_WORDS = "HDFS is in safe mode, so nothing can be written"
SAFE_MODE = re.compile(r"SafeModeException|name ?node is in safe mode", re.IGNORECASE)
"""What whoever writes to HDFS is told when its NameNode takes nothing any more."""
NO_ROOM = re.compile(r"File \S+ could only be written to 0 of the \d+ minReplication nodes")
"""What whoever writes to HDFS is told when no DataNode takes a block, mostly for want of room.

Source: Apache Hadoop, ``BlockManager.chooseTarget4NewBlock``.
"""
_ATTEMPT_TAG = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}-.+-\d+")
"""As ``attempt_tag`` makes them of a campaign's trials."""
_PRINTED = ("stdout", "stderr")
"""What a container prints; a JVM reports its own crash there."""
_LOG_FILE_BYTES = 4_000_000
"""Of a container's longer log the end is kept, where it says how it ended."""
_LOGS_BYTES = 64_000_000
"""Of the containers of an application on one worker, all logs together."""
_DELETE_LENT = 'rm -rf -- "$0"/lent-* "$0"/job-*'
"""Copies of files that a killed driver had sent, as large as its inputs, and what jobs printed."""
_DELETE_ROOTS_OWN = 'rm -rf -- "$0"/root-*'
_DELETE_SECONDS = 900.0
"""For gigabytes of files, at the speed of a slow disk."""
_GRACE_SECONDS = 3.0
_ASK_SECONDS = 30.0
_KILL_WAIT_SECONDS = 20.0
_SIZES = (
    "the node's memory in cluster.toml, or mapreduce.map.memory.mb, mapreduce.reduce.memory.mb, "
    "spark.executor.memory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionOutcome:
    """What one submission came to."""

    duration_seconds: float
    """Driver's monotonic clock around the submission."""
    exit_status: int
    """Of the submission."""
    application_id: str
    """YARN's id of the (last) application; empty if it never got one."""
    final_status: str
    """What YARN says of it."""
    diagnostics: str
    """YARN's words about a failure."""
    counters: dict[str, int]
    """The engine's own counters, summed over the submission's applications."""
    dated_seconds: dict[str, float] = field(default_factory=dict)
    """The engine's phases, where it gives them: differences of a node's wall clock."""
    started_seconds: float = field(default=0.0, compare=False)
    """The driver's monotonic clock just before the submission."""
    engine: EngineSpans = field(default_factory=EngineSpans, compare=False)
    """When those were at work that have a begin and an end."""
    lost_archive: bool = False
    """Whether later jobs do without a class-data archive, since a JVM of this one crashed with it.
    The failure then says nothing about the job."""

    @property
    def phases_seconds(self) -> dict[str, float]:
        """The engine's phases; unknown where a clock was set back in one of them."""
        return {} if any(took < 0 for took in self.dated_seconds.values()) else self.dated_seconds

    @property
    def failure(self) -> str:
        """Why it failed, in one line; empty if it did not."""
        if self.exit_status == 0 and self.final_status in ("", "SUCCEEDED"):
            return ""
        words = " ".join(self.diagnostics.split())
        kind = f"oom (raise {_SIZES}): " if _OOM.search(words) else ""
        said = "" if not self.application_id else f", YARN says {self.final_status or 'nothing'}"
        return f"{kind}exit status {self.exit_status}{said}" + (f": {words[:400]}" if words else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """What an engine says of one application."""

    counters: Mapping[str, int] = field(default_factory=dict)
    """Its counters."""
    phases_seconds: Mapping[str, float] = field(default_factory=dict)
    """Duration of each of its phases."""
    clock_node: str = ""
    """The node by whose wall clock the spans are."""
    spans: Mapping[str, Span] = field(default_factory=dict)
    """Begin and end of those phases that have them, in seconds since 1970."""
    tasks: tuple[TaskRecord, ...] = ()
    """What it says of each task, by the same clock."""


def attempt_tag(trial_id: str, number: int) -> str:
    """Return the name by which an attempt is found again: in YARN, in HDFS and among processes."""
    return f"{trial_id}-{number}"


def end_submission(live: LiveCluster, tag: str) -> None:
    """End what was submitted for an attempt, on every node that still answers.

    Raises:
        RemoteError: YARN does not answer, or still runs the application after a while.
    """
    dilation = live.layout.dilation
    grace_seconds = _GRACE_SECONDS * dilation

    def end(name: str) -> None:
        # What runs as root nobody else sees; and in a container without CAP_SYS_PTRACE, root does
        # not see what others run.
        for way in dict.fromkeys((live.as_root[name], live.remotes[name])):
            end_marked(
                way,
                f"{ATTEMPT_VARIABLE}={tag}",
                grace_seconds=grace_seconds,
                timeout_seconds=grace_seconds + _ASK_SECONDS * dilation,
            )

    each_node(  # a node that is gone runs nothing
        live.as_root,
        end,
    )
    if not _wait_until_killed(live, tag):
        raise RemoteError(
            f"YARN is still running what was submitted as {tag}",
            hint="run `boardcluster down`, then `boardcluster up`",
        )


def end_lost_jobs(live: LiveCluster) -> list[str]:
    """End jobs of attempts that nobody waits for any more, and return their tags.

    A driver that lost sight of a node has its attempt end there, while the job goes on. Call it
    only while holding the driver lock and before anything is submitted.

    Raises:
        RemoteError: YARN still runs one after a while.
    """
    try:
        tags = unfinished_tags(live.layout, live.master)
    except BoardclusterError:
        return []  # YARN does not answer: whoever submits next is told
    strays = sorted(filter(_ATTEMPT_TAG.fullmatch, tags))
    for tag in strays:
        end_submission(live, tag)
    return strays


def _wait_until_killed(live: LiveCluster, tag: str) -> bool:
    """Kill in YARN what was submitted with a tag; return whether it has ended after a while."""
    return wait_until(
        lambda: not kill(live.layout, live.master, tag=tag),
        timeout_seconds=_KILL_WAIT_SECONDS * live.layout.dilation,
        poll_seconds=0.5,
    )


def clear_leftovers(live: LiveCluster) -> None:
    """Delete outputs, unfinished inputs and folders of attempts that ended without cleaning up.

    Call it only while holding the driver lock and before anything is submitted. Best effort: what
    stays costs space, not correctness, because every attempt has names of its own.
    """
    with contextlib.suppress(BoardclusterError):
        hdfs = WebHdfs(live.layout, live.master)
        hdfs.delete(OUTPUT_FOLDER)
        for entry in hdfs.list(INPUT_FOLDER):
            if entry.name.endswith(".partial"):
                hdfs.delete(f"{INPUT_FOLDER}/{entry.name}")
    with contextlib.suppress(BoardclusterError):  # there may be no input, or no such folder
        hdfs, home = WebHdfs(live.layout, live.master), f"/user/{live.layout.user}"
        for entry in hdfs.list(home):
            if entry.name.startswith(_STOCK_TEMPORARY):
                hdfs.delete(f"{home}/{entry.name}")

    nodes = {node.name: node for node in live.spec.nodes}

    def one(name: str) -> None:
        remote, samples = live.remotes[name], live.layout.folder(nodes[name], "tmp")
        remote.run(["rm", "-rf", live.layout.folder(nodes[name], "scratch")])
        remote.run(["find", samples, "-maxdepth", "1", "-name", "telemetry-*", "-delete"])
        # Working folders of root have mode 700: nobody else can delete them.
        live.as_root[name].run(["sh", "-c", _DELETE_ROOTS_OWN, live.layout.folder(nodes[name])])

    each_node(nodes, one)


def clear_scratch(live: LiveCluster) -> dict[str, BoardclusterError]:
    """Delete what killed submissions left on the nodes: secrets, copies; return what failed.

    Call it only while holding the driver lock and before anything is submitted.
    """
    nodes = {node.name: node for node in live.spec.nodes}

    def one(name: str) -> None:
        remote = live.remotes[name]
        remote.run(["rm", "-rf", live.layout.folder(nodes[name], "scratch")])
        folder = live.layout.folder(nodes[name], "tmp")
        remote.run(["sh", "-c", _DELETE_LENT, folder], check=False)
        mpi.delete_left(remote, folder)
        # Data of a killed run's database, and of probes: of the first, as large as what it holds.
        data = [live.layout.on_medium(nodes[name], part) for part in ("galera", "scratch")]
        remote.run(["rm", "-rf", *data], check=False)
        if live.spec.capabilities.emulated:  # GlusterFS runs nowhere else, and as root
            bricks = live.layout.on_medium(nodes[name], "gluster")
            live.as_root[name].run(
                ["rm", "-rf", bricks],
                check=False,
                timeout_seconds=_DELETE_SECONDS * live.layout.dilation,
            )

    _, errors = each_node(nodes, one)
    return errors


def write_configuration(
    live: LiveCluster,
    folder: Path,
    *,
    tag: str,
    tags: str = "",
    extra: Mapping[str, Mapping[str, str]],
    brief: bool = False,
) -> str:
    """Write the configuration that one job submits with: the master's, with its own settings.

    Args:
        live: the cluster.
        folder: where to keep it, on this machine.
        tag: the YARN tag that only this job has.
        tags: all its tags, separated by commas, if it has more.
        extra: per file without its ending, further properties of this job.
        brief: whether its JVMs end before the second compiler would have paid.

    Returns:
        The folder of the copy on the master, below ``scratch_of``.
    """
    own = {file: dict(properties) for file, properties in extra.items()}
    own.setdefault("mapred-site", {})["mapreduce.job.tags"] = tags or tag
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render_node(live.layout, live.spec.master, extra=own, brief=brief).items():
        (folder / name).write_text(text)
    there = f"{scratch_of(live.layout, live.spec.master, tag)}/conf"
    live.master.run(["mkdir", "-p", str(PurePosixPath(there).parent)])
    live.master.put(folder, there)
    return there


def scratch_of(layout: Layout, node: NodeSpec, tag: str) -> str:
    """Return the folder on a node for what one job needs there only while it runs."""
    return layout.folder(node, "scratch", tag)


class Execution:
    """One submission and its artefacts.

    Args:
        live: the cluster.
        folder: folder of the artefacts of this submission.
        conf: folder, on the master, of the configuration to submit with.
        engine: the engine.
        tag: the YARN tag that only this job has.
        attempt: tag of the attempt; every process started for it carries it.
        node: the node to submit from.
        outside: whether a limited node is not charged for it.
        as_root: whether it runs as root, where that is another way to the node.

    Attributes:
        stdout: file of what the submission printed.
        stderr: file of the engine's client log.
    """

    def __init__(
        self,
        live: LiveCluster,
        *,
        folder: Path,
        conf: str,
        engine: Engine,
        tag: str,
        attempt: str,
        node: str = "",
        outside: bool = False,
        as_root: bool = False,
    ) -> None:
        self._live = live
        self._ways = live.as_root if as_root else live.remotes
        self._outside = outside
        self._folder = folder
        self._engine = engine
        self._tag = tag
        self._conf = conf
        self._node = node or live.spec.master.name
        self.environment = {
            **submit_environment(live.layout, conf=self._conf),
            ATTEMPT_VARIABLE: attempt,
        }
        self.stdout = folder / "stdout.txt"
        self.stderr = folder / "stderr.txt"
        folder.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_seconds: float,
        cwd: str | None = None,
    ) -> SubmissionOutcome:
        """Submit, wait, gather. Ctrl-C or a time-out kills the application in YARN, too.

        Args:
            command: what to run.
            timeout_seconds: longest duration, in seconds of the boards: on nodes that are slower
                by a dilation it ends after so many times longer.
            cwd: where to run it on the node.

        Raises:
            StalledError: time ran out; the message holds the last state seen.
        """
        record = {"argv": redact(command), "env": self.environment, "node": self._node}
        (self._folder / "command.json").write_text(json.dumps(record, indent=1))
        earlier = self._known()
        had_archive = starts_with_archive(self._live, self._engine)
        dilation = self._live.layout.dilation
        started_seconds, began_wall_seconds = time.monotonic(), time.time()
        try:
            remote = self._ways[self._node]
            done = (without_limits(remote) if self._outside else remote).run_logged(
                command,
                stdout=self.stdout,
                stderr=self.stderr,
                env=self.environment,
                cwd=cwd,
                timeout_seconds=timeout_seconds * dilation,
            )
        except RemoteTimeoutError as error:
            states = self._states()
            self._end()
            here = f" ({timeout_seconds * dilation:g} s here)" if dilation != 1 else ""
            raise StalledError(
                f"stalled: not done after {timeout_seconds:g} s{here}; last seen: {states}\n"
                + tail_text(self.stderr, lines=3),
                hint=error.hint,
            ) from error
        except BaseException:
            self.kill()
            raise
        outcome = self._gather(done.duration_seconds, done.returncode, earlier)
        if outcome.failure:
            outcome = self._explained(outcome, had_archive=had_archive)
        engine = replace(outcome.engine, began_wall_seconds=began_wall_seconds)
        return replace(outcome, started_seconds=started_seconds, engine=engine)

    def kill(self) -> None:
        """Kill what YARN still runs for this submission; best effort, a dead YARN runs nothing."""
        if self._engine.on_yarn:
            with contextlib.suppress(BoardclusterError):
                kill(self._live.layout, self._live.master, tag=self._tag)

    def _end(self) -> None:
        """Kill in YARN and wait, for a while, so that nothing of it runs during the next trial."""
        if self._engine.on_yarn:
            with contextlib.suppress(BoardclusterError):
                _wait_until_killed(self._live, self._tag)

    def _applications(self) -> list[YarnApplication]:
        return applications(self._live.layout, self._live.master, tag=self._tag)

    def _known(self) -> frozenset[str]:
        """Return the applications of the job's earlier submissions, which are not this one's."""
        if not self._engine.on_yarn or not any(self._folder.parent.glob("*/application.json")):
            return frozenset()
        return frozenset(row.id for row in self._applications())

    def _states(self) -> str:
        if not self._engine.on_yarn:
            return "running"
        with contextlib.suppress(BoardclusterError):
            rows = self._applications()
            return ", ".join(f"{row.id} {row.state}" for row in rows) or "never accepted by YARN"
        return "YARN does not answer"

    def _gather(
        self, duration_seconds: float, exit_status: int, earlier: frozenset[str]
    ) -> SubmissionOutcome:
        rows: list[YarnApplication] = []
        if self._engine.on_yarn:
            rows = self._ended_applications(exit_status, earlier)
        counters: dict[str, int] = {}
        phases: dict[str, float] = {}
        spans: dict[str, dict[str, Span]] = {}
        tasks: dict[str, tuple[TaskRecord, ...]] = {}
        for number, row in enumerate(rows, start=1):
            account = self._account(row.id)
            for name, value in account.counters.items():
                counters[name] = counters.get(name, 0) + value
            prefix = f"job {number}: " if len(rows) > 1 else ""
            phases |= {prefix + name: took for name, took in account.phases_seconds.items()}
            parts = spans.setdefault(account.clock_node, {})
            parts |= {prefix + name: span for name, span in account.spans.items()}
            tasks[account.clock_node] = tasks.get(account.clock_node, ()) + account.tasks
            self._fetch_container_logs(row.id)
        if rows:
            (self._folder / "application.json").write_text(
                json.dumps([row.id for row in rows], indent=1)
            )
            (self._folder / "counters.json").write_text(json.dumps(counters, indent=1))
        last = rows[-1] if rows else None
        bad = next((row for row in rows if row.final_status != "SUCCEEDED"), last)
        return SubmissionOutcome(
            duration_seconds=duration_seconds,
            exit_status=exit_status,
            application_id=last.id if last else "",
            final_status=bad.final_status if bad else "",
            diagnostics=self._words(bad, exit_status),
            counters=counters,
            dated_seconds=phases,
            engine=EngineSpans(parts=spans, tasks=tasks),
        )

    def _words(self, application: YarnApplication | None, exit_status: int) -> str:
        """Return YARN's words; of a failure for lack of memory that YARN leaves out, the task's.

        MapReduce tells YARN only that a task failed; the reason is in the containers' logs. Of a
        Spark driver that ends by an error of its own YARN has no word.
        """
        if application is None:
            return tail_text(self.stderr, lines=3)
        words = application.diagnostics
        if exit_status == 0 or _OOM.search(words):
            return words
        found = _first_line((self.stderr, *self._container_logs("syslog", "stderr")), _OOM)
        return f"{found} {words}".strip() or tail_text(self.stderr, lines=3)

    def _container_logs(self, *names: str) -> list[Path]:
        """Return the files of some names that containers wrote and that were fetched."""
        return sorted(
            path for name in names for path in self._folder.glob(f"containers/*/*/{name}")
        )

    def _explained(self, outcome: SubmissionOutcome, *, had_archive: bool) -> SubmissionOutcome:
        """Say of a failed job that a JVM crashed, or that HDFS was in safe mode or had no room.

        If it had an archive when a JVM crashed, later ones do without.
        """
        for log in (self.stdout, self.stderr, *self._container_logs(*_PRINTED)):
            with contextlib.suppress(FileNotFoundError), log.open(errors="replace") as stream:
                if words := crash_words(bounded_lines(stream)):
                    then = ""
                    if had_archive:
                        then = consequence_of_crash(self._live, self._engine, words)
                    why = f"a JVM crashed ({words})" + (f"; {then}" if then else "")
                    diagnostics = f"{why}; {outcome.diagnostics}"
                    return replace(outcome, diagnostics=diagnostics, lost_archive=bool(then))
        # An application master that cannot write ends without a word to YARN, and by the time it is
        # asked the NameNode may have found room again.
        if words := _first_line(self._container_logs("syslog"), SAFE_MODE):
            return replace(outcome, diagnostics=f"{words[:300]}; {outcome.diagnostics}")
        # A job that fails deletes what it wrote, and then the disk is no longer full.
        written = _first_line((self.stderr, *self._container_logs("syslog", "stderr")), NO_ROOM)
        if found := NO_ROOM.search(written):
            return replace(outcome, diagnostics=f"{found[0]}; {outcome.diagnostics}")
        return outcome

    def _ended_applications(
        self, exit_status: int, earlier: frozenset[str]
    ) -> list[YarnApplication]:
        """Return this submission's applications as they ended, oldest first; maybe none.

        A Spark driver ends at about the moment at which its application master tells YARN so. What
        still runs after a while is killed: a program may end before its jobs, which would disturb
        the next one.

        Raises:
            RemoteError: the submission ended well, but YARN does not answer.
        """

        def look() -> list[YarnApplication] | BoardclusterError:
            try:
                return [row for row in self._applications() if row.id not in earlier]
            except BoardclusterError as error:
                return [] if exit_status != 0 else error

        seen = wait_until(
            look,
            ready=lambda rows: (
                isinstance(rows, list) and all(row.final_status != "UNDEFINED" for row in rows)
            ),
            timeout_seconds=_UNREGISTER_WAIT_SECONDS * self._live.layout.dilation,
            poll_seconds=0.2,
        )
        if isinstance(seen, BoardclusterError):
            raise seen
        if all(row.final_status != "UNDEFINED" for row in seen):
            return seen
        self._end()
        return [
            replace(row, diagnostics=_OUTLIVED) if row.final_status == "UNDEFINED" else row
            for row in seen
        ]

    def _account(self, application_id: str) -> _Account:
        """Return the engine's counters and phases; a failed job may have neither."""
        with contextlib.suppress(BoardclusterError):
            if self._engine is Engine.MAPREDUCE:
                history = job_history(self._live.layout, self._live.master, application_id)
                (self._folder / f"{application_id}.history.json").write_text(
                    json.dumps(history.document, indent=1)
                )
                return _Account(
                    counters=history.counters,
                    phases_seconds=history.phases_seconds,
                    clock_node=history.clock_node,
                    spans=history.phase_spans,
                    tasks=history.tasks,
                )
            log = self._folder / f"{application_id}.events.jsonl"
            there = f"{self._live.layout.spark_events}/{application_id}"
            self._live.master.get(there, log)
            counters, stages = read_event_log(log), read_stages(log)
            account = _Account(
                counters=counters,
                phases_seconds=stages_seconds(stages),
                clock_node=self._live.spec.master.name,
                spans={stage.label: (stage.begin_seconds, stage.end_seconds) for stage in stages},
                tasks=read_tasks(log),
            )
            with contextlib.suppress(BoardclusterError):  # or the master's disk fills with them
                self._live.master.run(["rm", "-f", there])
            return account
        return _Account()

    def _fetch_container_logs(self, application_id: str) -> None:
        """Fetch what an application's containers wrote, of much only a part, and delete it there.

        Workers are asked at once: a run of days has had thousands of containers.
        """
        workers = {worker.name: worker for worker in self._live.spec.workers}

        def one(name: str) -> None:
            layout, remote = self._live.layout, self._live.remotes[name]
            source = layout.folder(workers[name], "logs", "containers", application_id)
            gathered = layout.folder(workers[name], "scratch", f"logs-{application_id}")
            target = self._folder / "containers" / name
            # A submission may have several applications, and what is fetched replaces a folder.
            fetched = target.with_name(f".{name}-{application_id}")
            try:
                answer = excerpt(
                    remote,
                    source,
                    gathered,
                    file_bytes=_LOG_FILE_BYTES,
                    total_bytes=_LOGS_BYTES,
                )
                if answer is None:
                    return
                remote.get(gathered, fetched)
            finally:
                remote.run(["rm", "-rf", gathered])
            with contextlib.suppress(
                OSError
            ):  # their names are the jobs', which may name two alike
                target.mkdir(parents=True, exist_ok=True)
                for part in fetched.iterdir():
                    part.replace(target / part.name)
            shutil.rmtree(fetched, ignore_errors=True)
            cut, left_out = answer
            if cut or left_out:
                with contextlib.suppress(OSError), (target / "incomplete.txt").open("a") as note:
                    note.write(
                        f"{cut} files have only their ends here, {left_out} are missing: of a file "
                        f"{format_bytes(_LOG_FILE_BYTES)} are kept, of a worker "
                        f"{format_bytes(_LOGS_BYTES)}\n"
                    )
            remote.run(["rm", "-rf", source])

        each_node(workers, one)  # a run is no worse without its containers' logs


def _first_line(logs: Iterable[Path], pattern: re.Pattern[str]) -> str:
    """Return the first line of some logs in which a pattern is found; empty if there is none."""
    for log in logs:
        with contextlib.suppress(FileNotFoundError), log.open(errors="replace") as stream:
            found = (line.strip() for line in bounded_lines(stream) if pattern.search(line))
            if line := next(found, ""):
                return line
    return ""
