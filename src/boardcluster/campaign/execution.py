"""One submission: run it, time it, and gather what it left behind."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import (
    BoardclusterError,
    RemoteError,
    RemoteTimeoutError,
    StalledError,
)
from boardcluster.records import Engine
from boardcluster.redaction import redact
from boardcluster.remote.ask import ask
from boardcluster.remote.gate import tail_text
from boardcluster.services.conf import render_node
from boardcluster.services.operation import LiveCluster
from boardcluster.services.spark import read_event_log, submit_environment
from boardcluster.services.yarn import YarnApplication, applications, job_counters, kill

__all__ = ["ATTEMPT_VARIABLE", "Execution", "Outcome", "attempt_tag", "end_submission"]

_UNREGISTER_WAIT_SECONDS = 10.0


_OOM = re.compile(
    r"OutOfMemoryError|beyond the '(PHYSICAL|VIRTUAL)' memory limit"
    r"|(?i:exit ?(?:code|status):? (?:is )?137\b)"
)
ATTEMPT_VARIABLE = "BOARDCLUSTER_ATTEMPT"
_GRACE_SECONDS = 3.0
_KILL_WAIT_SECONDS = 20.0
_SIZES = (
    "the node's memory in cluster.toml, or mapreduce.map.memory.mb, mapreduce.reduce.memory.mb, "
    "spark.executor.memory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one submission came to.

    Attributes:
        duration_seconds: driver's monotonic clock around the submission.
        exit_status: of the submission.
        application_id: YARN's id of the (last) application; empty if it never got one.
        final_status: what YARN says of it.
        diagnostics: YARN's words about a failure.
        counters: the engine's own counters.
    """

    duration_seconds: float
    exit_status: int
    application_id: str
    final_status: str
    diagnostics: str
    counters: dict[str, int]

    @property
    def failure(self) -> str:
        """Why it failed, in one line; empty if it did not."""
        if self.exit_status == 0 and self.final_status in ("", "SUCCEEDED"):
            return ""
        words = " ".join(self.diagnostics.split())
        kind = f"oom (raise {_SIZES}): " if _OOM.search(words) else ""
        return (
            f"{kind}exit status {self.exit_status}, YARN says {self.final_status or 'nothing'}"
            + (f": {words[:400]}" if words else "")
        )


def attempt_tag(trial_id: str, number: int) -> str:
    """Return the name by which an attempt is found again: in YARN, in HDFS and among processes."""
    return f"{trial_id}-{number}"


def end_submission(live: LiveCluster, tag: str) -> None:
    """End what a killed driver left of a submission, so that nothing is measured beside it.

    Raises:
        RemoteError: YARN does not answer, or still runs the application after a while.
    """
    mark = {
        "do": "end_marked",
        "mark": f"{ATTEMPT_VARIABLE}={tag}",
        "grace_seconds": _GRACE_SECONDS,
    }
    ask(live.master, mark, timeout_seconds=_GRACE_SECONDS + 30)
    deadline = time.monotonic() + _KILL_WAIT_SECONDS
    while kill(live.layout, live.master, tag=tag):
        if time.monotonic() > deadline:
            raise RemoteError(
                f"YARN still runs what a killed driver submitted as {tag}",
                hint="run `boardcluster down`, then `boardcluster up`",
            )
        time.sleep(0.5)


class Execution:
    """One attempt's submission and its artefacts.

    Args:
        live: the cluster.
        folder: the attempt's folder of artefacts.
        engine: the engine.
        tag: YARN tag by which the application is found again.
    """

    def __init__(self, live: LiveCluster, *, folder: Path, engine: Engine, tag: str) -> None:
        self._live = live
        self._folder = folder
        self._engine = engine
        self._tag = tag
        self.conf = str(folder / "conf")
        self._write_configuration()

    def _write_configuration(self) -> None:
        """Write the configuration that this very submission uses: the master's, with the tag."""
        files = render_node(
            self._live.layout,
            self._live.spec.master,
            extra={"mapred-site": {"mapreduce.job.tags": self._tag}},
        )
        folder = Path(self.conf)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)

    @property
    def stdout(self) -> Path:
        """What the submission printed."""
        return self._folder / "stdout.txt"

    @property
    def stderr(self) -> Path:
        """The engine's client log."""
        return self._folder / "stderr.txt"

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_seconds: float,
        cwd: str | None = None,
    ) -> Outcome:
        """Submit, wait, gather. Ctrl-C or a time-out kills the application in YARN, too.

        Raises:
            StalledError: time ran out; the message holds the last state seen.
        """
        environment = {
            **submit_environment(self._live.layout, conf=self.conf),
            ATTEMPT_VARIABLE: self._tag,
        }
        record = {"argv": redact(command), "env": environment, "node": self._live.master.name}
        (self._folder / "command.json").write_text(json.dumps(record, indent=1))
        try:
            done = self._live.master.run_logged(
                command,
                stdout=self.stdout,
                stderr=self.stderr,
                env=environment,
                cwd=cwd,
                timeout_seconds=timeout_seconds,
            )
        except RemoteTimeoutError as error:
            states = self._states()
            self.kill()
            raise StalledError(
                f"stalled: not done after {timeout_seconds:g} s; last seen: {states}\n"
                + tail_text(self.stderr, lines=3),
                hint=error.hint,
            ) from error
        except BaseException:
            self.kill()
            raise
        return self._gather(done.duration_seconds, done.returncode)

    def kill(self) -> None:
        """Kill what YARN still runs for this submission; best effort, a dead YARN runs nothing."""
        with contextlib.suppress(BoardclusterError):
            kill(self._live.layout, self._live.master, tag=self._tag)

    def _states(self) -> str:
        with contextlib.suppress(BoardclusterError):
            rows = applications(self._live.layout, self._live.master, tag=self._tag)
            return ", ".join(f"{row.id} {row.state}" for row in rows) or "never accepted by YARN"
        return "YARN does not answer"

    def _gather(self, duration_seconds: float, exit_status: int) -> Outcome:
        last = self._last_application(exit_status)
        counters: dict[str, int] = {}
        if last is not None:
            counters = self._counters(last.id)
            self._fetch_container_logs(last.id)
            (self._folder / "counters.json").write_text(json.dumps(counters, indent=1))
        return Outcome(
            duration_seconds=duration_seconds,
            exit_status=exit_status,
            application_id=last.id if last else "",
            final_status=last.final_status if last else "",
            diagnostics=last.diagnostics if last else tail_text(self.stderr, lines=3),
            counters=counters,
        )

    def _last_application(self, exit_status: int) -> YarnApplication | None:
        """Return the application as it ended, or None if YARN never saw one.

        A Spark driver ends at about the moment at which its application master tells YARN so.

        Raises:
            RemoteError: the submission ended well, but YARN does not answer.
        """
        deadline = time.monotonic() + _UNREGISTER_WAIT_SECONDS
        while True:
            late = time.monotonic() > deadline
            try:
                rows = applications(self._live.layout, self._live.master, tag=self._tag)
            except BoardclusterError:
                if exit_status != 0:
                    return None
                if late:
                    raise
            else:
                if late or not rows or rows[-1].final_status != "UNDEFINED":
                    return rows[-1] if rows else None
            time.sleep(0.2)

    def _counters(self, application_id: str) -> dict[str, int]:
        """Return the engine's counters; a failed job may have none, which is not our failure."""
        with contextlib.suppress(BoardclusterError):
            if self._engine is Engine.MAPREDUCE:
                return job_counters(self._live.layout, self._live.master, application_id)
            log = self._folder / "spark-events.jsonl"
            self._live.master.get(f"{self._live.layout.spark_events}/{application_id}", log)
            return read_event_log(log)
        return {}

    def _fetch_container_logs(self, application_id: str) -> None:
        for worker in self._live.spec.workers:
            source = self._live.layout.folder(worker, "logs", "containers", application_id)
            with contextlib.suppress(RemoteError):
                self._live.remotes[worker.name].get(
                    source, self._folder / "containers" / worker.name
                )

    def discard(self) -> None:
        """Delete what is only needed until the output is verified."""
        shutil.rmtree(self._folder / "work", ignore_errors=True)
