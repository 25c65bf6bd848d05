"""The report, written by the command line into a folder that ends with the dashboard."""

from __future__ import annotations

import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from boardcluster.cluster.lock import driver_at_work
from boardcluster.errors import RunError
from boardcluster.remote.gate import end_programs, run_program, tail_text
from boardcluster.web.watching import store_stamp

__all__ = ["Reports"]

_LONGEST_SECONDS = 600.0
_END_AGAIN_SECONDS = 1.0


@dataclass(slots=True)
class Reports:
    """Writes the report when it is asked for and the store has changed.

    Args:
        home: the cluster's state folder.
    """

    home: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stamp: object = None
    _made: tempfile.TemporaryDirectory[str] | None = None
    _ended: bool = False

    @property
    def folder(self) -> Path:
        """Where it goes: made when first needed, so that a killed dashboard seldom leaves one."""
        if self._made is None:
            self._made = tempfile.TemporaryDirectory(prefix="boardcluster-report-")
        return Path(self._made.name)

    def page(self, name: str) -> Path | None:
        """Return a file of the report; None if none was written, or it has no such file."""
        if self._made is None:
            return None
        folder = self.folder.resolve()
        try:
            path = (folder / name).resolve()
            return path if path.is_relative_to(folder) and path.is_file() else None
        except (OSError, ValueError):  # no file has such a name: too long, or with a zero byte
            return None

    def close(self) -> None:
        """End who writes it, and delete it: a writer would make its folder again."""
        self._ended = True
        end_programs()
        while not self._lock.acquire(timeout=_END_AGAIN_SECONDS):
            end_programs()  # it had the lock, and began its program only now
        try:
            if self._made is not None:
                self._made.cleanup()
        finally:
            self._lock.release()

    def write(self) -> None:
        """Write it, unless the one that is there is of the same store.

        While something runs, an older one does, too: writing takes seconds of this machine's CPU.

        Raises:
            RunError: it cannot be written, in the words of the command line; or the dashboard ends.
        """
        with self._lock:
            if self._ended:
                raise RunError("the dashboard is ending", hint="start it again")
            stamp = store_stamp(self.home)
            if self.page("report.html") and (stamp == self._stamp or driver_at_work(self.home)):
                return
            source = Path(__file__).resolve().parents[2]
            words = ["report", f"--home={self.home}", f"--output={self.folder}"]
            done = run_program(
                [sys.executable, "-m", "boardcluster", *words],
                env={"PYTHONPATH": str(source), "NO_COLOR": "1"},
                timeout_seconds=_LONGEST_SECONDS,
                check=False,
            )
            if done.returncode != 0:
                raise RunError(
                    tail_text(done.stderr, lines=3) or "the report cannot be written",
                    hint="see `boardcluster report`",
                )
            self._stamp = stamp
