"""A long program on a node that neither a broken connection nor a retry disturbs.

The program runs under a few words of shell in a session of its own, in a folder named by an id.
That it was started, that it runs and how it ended are facts of the node, asked for again over the
next connection; what has been started under an id is never started again.

Messages name the program only: what a user gives it may be a secret, and messages are stored.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from boardcluster.errors import BoardclusterError, RemoteError, RemoteTimeoutError, UnreachableError
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import Completed, cleaning_up, tail_text
from boardcluster.remote.node_rpc import rpc

__all__ = ["run_job"]

_MARK = "BOARDCLUSTER_JOB"
"""Carried by everything a job starts; what must be ended is found by it."""

_WAIT_SECONDS = 60.0
"""How long one question whether a job has ended stays open on the node."""

_LATE_SECONDS = 5.0
"""More between the driver's duration and the node's is worth asking when the job ended: start and
news take two of them on a slow board."""

_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_GRACE_SECONDS = 5.0
_END_SECONDS = 45.0
_LOST = {
    "rebooted": "the node restarted while a command ran",
    "lost": "a command's supervisor was killed, so its exit status is lost",
    "absent": "a command's folder was deleted while it ran",
}

Answer = TypeVar("Answer")


def run_job(
    remote: Remote,
    argv: Sequence[str],
    *,
    jobs: str,
    stdout: Path,
    stderr: Path,
    env: Mapping[str, str] | None,
    cwd: str,
    timeout_seconds: float,
    lost_seconds: float,
) -> Completed:
    """Run a program on a node, once, and fetch its output when it has ended.

    1. Start it, unless it has been started.
    2. Wait for its end, over as many connections as that takes.
    3. Fetch what it wrote, and remove its folder.

    Left early, in whatever way, it is ended on the node first, as far as that can be reached. It
    gets a folder of its own in ``jobs``; the other arguments are those of ``SshRemote``.

    Returns:
        Its exit status, by the node's shell: above 128 is a signal. The duration is from just
        before the start to the news of the end, by the driver's monotonic clock; where the news
        came seconds late, as over a connection that stood still, it is until the node's own end.

    Raises:
        RemoteTimeoutError: it did not end in time.
        UnreachableError: the node was out of reach for too long; the job may still run there.
        RemoteError: the job is gone without a status, by a restart of the node for instance.
    """
    job = _SshJob(remote=remote, argv=tuple(argv), jobs=jobs, lost_seconds=lost_seconds)
    for path in (stdout, stderr):
        path.write_bytes(b"")
    started_seconds = time.monotonic()
    try:
        job.start(env=env or {}, cwd=cwd)
        end = job.wait(started_seconds + timeout_seconds)
        duration_seconds = time.monotonic() - started_seconds
        if end is not None:
            if duration_seconds - end.seconds > _LATE_SECONDS:
                duration_seconds = min(duration_seconds, job.ended_at() - started_seconds)
            job.fetch(stdout=stdout, stderr=stderr)
    except BaseException as error:
        if not isinstance(error, UnreachableError):
            with contextlib.suppress(BoardclusterError):
                job.end()
        raise
    if end is None:
        stderr.write_text(job.end())
        raise RemoteTimeoutError(
            f"{remote.name}: command did not end within {timeout_seconds:g} s: {argv[0]}\n"
            f"{tail_text(stderr)}".rstrip()
        )
    return Completed(
        argv=tuple(argv),
        returncode=end.status,
        stdout=b"",
        stderr=b"",
        duration_seconds=duration_seconds,
    )


@dataclass(frozen=True, slots=True)
class _End:
    """How a job ended."""

    status: int
    """Its exit status."""
    seconds: float
    """How long it took, by the node's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SshJob:
    """One job, known to its node by an id."""

    remote: Remote
    """The node."""
    argv: tuple[str, ...]
    """Program and arguments."""
    jobs: str
    """Folder of the node in which the job has its own."""
    lost_seconds: float
    """For so long the node may be out of reach."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Its id."""

    @property
    def folder(self) -> str:
        """The job's folder on the node."""
        return f"{self.jobs}/job-{self.id}"

    def start(self, *, env: Mapping[str, str], cwd: str) -> None:
        """Start it; what a broken connection hides is asked again."""
        request = {
            "do": "job_start",
            "folder": self.folder,
            "argv": ["env", f"--chdir={cwd}", "--", *self.argv],
            "env": {**env, _MARK: self.id},
        }
        self._steadily(lambda: rpc(self.remote, request))

    def wait(self, deadline_seconds: float) -> _End | None:
        """Wait for the end; return it, or None if time ran out before."""
        while (left_seconds := deadline_seconds - time.monotonic()) > 0:
            state = self._steadily(partial(self._look, min(left_seconds, _WAIT_SECONDS)))
            if state["state"] == "ended":
                return _End(int(state["status"]), float(state["seconds"]))
            if state["state"] != "running":
                raise RemoteError(
                    f"{self.remote.name}: {_LOST[state['state']]}: {self.argv[0]}",
                    hint=f"read the kernel log on {self.remote.name}: dmesg --ctime",
                )
        return None

    def ended_at(self) -> float:
        """Return when it ended, by the driver's monotonic clock: the node says how long ago."""
        asked_seconds = time.monotonic()
        state = self._steadily(partial(self._look, 0.0))
        return (asked_seconds + time.monotonic()) / 2 - float(state["seconds_ago"])

    def _look(self, seconds: float) -> Any:
        request = {"do": "job_wait", "folder": self.folder, "seconds": seconds}
        return rpc(self.remote, request, timeout_seconds=seconds + _PATIENCE_SECONDS)

    def fetch(self, *, stdout: Path, stderr: Path) -> None:
        """Fetch its output and remove its folder."""
        with tempfile.TemporaryDirectory(dir=stdout.parent) as name:
            copy = Path(name) / "job"
            self._steadily(lambda: self.remote.get(self.folder, copy))
            for path in (stdout, stderr):
                shutil.move(copy / ("stdout" if path is stdout else "stderr"), path)
        self._steadily(lambda: self.remote.run(["rm", "-rf", "--", self.folder]))

    def end(self) -> str:
        """End everything the job started, remove its folder; return the end of its stderr."""
        request = {
            "do": "job_end",
            "folder": self.folder,
            "mark": f"{_MARK}={self.id}",
            "grace_seconds": _GRACE_SECONDS,
        }
        with cleaning_up():
            return str(rpc(self.remote, request, timeout_seconds=_END_SECONDS)["stderr"])

    def _steadily(self, action: Callable[[], Answer]) -> Answer:
        """Do something again and again while the node is out of reach, but not for ever."""
        lost_at_seconds: float | None = None
        while True:
            try:
                return action()
            except (UnreachableError, RemoteTimeoutError) as error:
                now_seconds = time.monotonic()
                if lost_at_seconds is None:
                    lost_at_seconds = now_seconds
                if now_seconds - lost_at_seconds >= self.lost_seconds:
                    raise UnreachableError(
                        f"{self.remote.name}: unreachable for {self.lost_seconds:g} s while a "
                        f"command may still be running there: {self.argv[0]}\n{error.message}",
                        hint=error.hint or f"check power and network of {self.remote.name}",
                    ) from error
            time.sleep(_RETRY_SECONDS)
