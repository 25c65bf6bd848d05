"""Starts and stops work for the page: through the command line, in a process of its own.

So a run outlives the dashboard, is the driver that it always is, and nothing that the dashboard
does takes time from it; and there is one way for work to start, with the same checks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardcluster.cluster.lock import driver_at_work
from boardcluster.cluster.state import boot_id
from boardcluster.errors import LockedError, RunError, UsageError
from boardcluster.fetch.cache import writing
from boardcluster.remote.gate import LeftRunning, leave_running, run_program, tail_text
from boardcluster.workloads import load_workload, workload_names

__all__ = ["Control", "WorkOrder", "command_line", "workload_choices"]

_PLAN_SECONDS = 180.0
_STOPPABLE = frozenset(
    {"run", "submit", "experiment", "tune", "demo", "probe", "watch-performance"}
)
_WORD_CHARACTERS_MAX = 1000
_REPETITIONS_MAX = 1000


def workload_choices() -> list[dict[str, Any]]:
    """Each workload with its engines and parameters, for the form."""
    found = []
    for name in workload_names():
        workload = load_workload(name)
        found.append(
            {
                "name": name,
                "engines": [engine.value for engine in workload.engines],
                "parameters": {key: row.default for key, row in workload.parameters.items()},
            }
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """What a form asks for."""

    workload: str = ""
    """Name of a workload; empty with a file."""
    file: str = ""
    """A campaign file of this machine; empty with a workload."""
    engine: str = ""
    """The engine; empty for all of the workload."""
    size: str = ""
    """Input size with its unit; empty for the default."""
    repetitions: int = 0
    """Runs per engine; 0 for the default."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the workload."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Engine properties of its jobs."""

    @classmethod
    def read(cls, document: Any) -> WorkOrder:
        """Read a form.

        Raises:
            UsageError: a field is missing, unknown, or not what it must be.
        """
        if not isinstance(document, dict):
            raise UsageError("the form is not a JSON object", hint="send what the form sends")
        texts = ("workload", "file", "engine", "size")
        tables = ("parameters", "settings")
        if unknown := set(document) - {*texts, *tables, "repetitions"}:
            raise UsageError(f"unknown fields: {', '.join(sorted(unknown))}", hint="leave them out")
        given: dict[str, Any] = {name: _text(document.get(name, ""), name) for name in texts}
        for name in tables:
            table = document.get(name) or {}
            if not isinstance(table, dict):
                raise UsageError(f"{name} is not a table", hint="give names and values")
            given[name] = {_text(k, name): _text(v, name) for k, v in table.items()}
        repetitions = document.get("repetitions") or 0
        if not isinstance(repetitions, int) or not 0 <= repetitions <= _REPETITIONS_MAX:
            raise UsageError(
                f"repetitions: {str(repetitions)[:40]!r} is not a number from 1 to "
                f"{_REPETITIONS_MAX}",
                hint="leave it empty for the default",
            )
        order = cls(repetitions=repetitions, **given)
        if bool(order.workload) == bool(order.file):
            raise UsageError("either a workload or a campaign file is needed", hint="choose one")
        if order.workload and order.workload not in workload_names():
            raise UsageError(
                f"no workload {order.workload[:80]!r}",
                hint=f"its name is one of: {', '.join(workload_names())}",
            )
        if order.file:
            _require_file(order.file)
        return order


def _require_file(text: str) -> None:
    """Refuse the path of a campaign file where no file is that we can see.

    Raises:
        UsageError: says why.
    """
    try:
        if Path(text).expanduser().is_file():
            return
        why = "there is none"
    except (OSError, RuntimeError) as error:  # a folder that is closed to us, a user who is unknown
        why = str(getattr(error, "strerror", None) or error)
    raise UsageError(
        f"no file {text[:200]} can be read on the machine of the dashboard: {why}",
        hint="give the whole path of a campaign file that the user of the dashboard may read",
    )


def _text(value: object, name: str) -> str:
    text = str(value) if isinstance(value, str | int | float) else ""
    if not isinstance(value, str | int | float) or len(text) > _WORD_CHARACTERS_MAX:
        raise UsageError(f"{name} is not a short text", hint="shorten it")
    if any(ord(character) < 32 for character in text):
        raise UsageError(f"{name} holds control characters", hint="leave them out")
    return text.strip()


def command_line(order: WorkOrder, *, home: Path, cache: Path) -> list[str]:
    """Return the words of ``boardcluster run`` for an order."""
    target = str(Path(order.file).expanduser().resolve()) if order.file else order.workload
    words = ["run", f"--home={home}", f"--cache={cache}", "--yes"]
    if order.workload:
        words += [f"--engine={order.engine}"] if order.engine else []
        words += [f"--size={order.size}"] if order.size else []
        words += [f"--repetitions={order.repetitions}"] if order.repetitions else []
        words += [f"--set={key}={value}" for key, value in order.parameters.items()]
        words += [f"--setting={key}={value}" for key, value in order.settings.items()]
    return [*words, "--", target]


@dataclass(slots=True)
class Control:
    """Starts and stops runs of one cluster.

    Args:
        home: the cluster's state folder.
        cache: folder of fetched engines and data.
    """

    home: Path
    cache: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _started: LeftRunning | None = None

    @property
    def _log(self) -> Path:
        """What was started last says here; it outlives the dashboard, and so does this."""
        return self.home / "started.log"

    def plan(self, order: WorkOrder) -> dict[str, Any]:
        """Say what would run, what it needs, and how long it would take; starts nothing.

        Raises:
            RunError: it cannot run; in the words of the command line.
        """
        words = command_line(order, home=self.home, cache=self.cache)
        done = run_program(
            _program([words[0], "--dry-run", "--json", *words[1:]]),
            env=_environment(),
            timeout_seconds=_PLAN_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RunError(_last_words(tail_text(done.stderr)), hint="change the form")
        try:
            found = json.loads(done.stdout)
        except ValueError as error:
            raise RunError("the plan cannot be read", hint="see the terminal") from error
        return {
            "command": f"boardcluster {shlex.join(filter(_is_told, words))}",
            "runs": len(found["trials"]),
            "prediction": found["prediction"],
            "outlook": found["outlook"],
        }

    def start(self, order: WorkOrder) -> None:
        """Start what was planned.

        Raises:
            LockedError: something is running.
            UsageError: the cluster's folder is not there.
            HostError: what it says cannot be written into that folder.
        """
        with self._lock:
            if (doing := driver_at_work(self.home)) or self._is_starting():
                raise LockedError(
                    f"`boardcluster {doing or 'run'}` is using this cluster",
                    hint="wait for it to end, or stop it",
                )
            if not self.home.is_dir():
                raise UsageError(
                    f"there is no cluster in {self.home}", hint="run `boardcluster init` first"
                )
            words = command_line(order, home=self.home, cache=self.cache)
            with writing(self._log):
                self._started = leave_running(_program(words), log=self._log, env=_environment())

    def stop(self) -> str:
        """Let what runs end itself as Ctrl-C would; return which command it is.

        Raises:
            UsageError: nothing runs that could be stopped.
            RunError: it is another user's.
        """
        doing = driver_at_work(self.home)
        if doing == "unknown" or (not doing and self._is_starting()):
            raise UsageError("it is starting or ending", hint="try again in a few seconds")
        if doing.partition(" ")[0] not in _STOPPABLE:
            raise UsageError(
                f"`boardcluster {doing}` cannot be stopped here"
                if doing
                else "nothing is running that could be stopped",
                hint="wait until it has ended" if doing else "start something first",
            )
        try:
            holder = json.loads((self.home / "driver.lock").read_text())
            pid, boot = int(holder["pid"]), str(holder["boot_id"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError("it is still starting", hint="try again") from error
        if boot != boot_id() or driver_at_work(self.home) != doing:
            raise UsageError("it has just ended", hint="look at its result")
        try:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        except PermissionError as error:
            raise RunError(
                f"`boardcluster {doing}` was started by another user, and only that user or root "
                "can stop it",
                hint=f"press Ctrl-C in its terminal, or run `sudo kill {pid}`",
            ) from error
        return doing

    def outcome(self) -> dict[str, Any] | None:
        """What became of what was started here last; None if nothing was."""
        if self._started is None:
            return None
        status = self._started.exit_status
        return {"status": status, "words": _last_words(tail_text(self._log)) if status else ""}

    def _is_starting(self) -> bool:
        return self._started is not None and self._started.exit_status is None


def _program(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "boardcluster", *words]


def _environment() -> dict[str, str]:
    """The user's own, as in a terminal; and this very package, also from a folder of its source."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "NO_COLOR": "1"}


def _is_told(word: str) -> bool:
    """Whether a word is worth showing: those that every command line here has are not."""
    return word not in {"--yes", "--"} and not word.startswith(("--home=", "--cache="))


def _last_words(text: str) -> str:
    """The error of a command line, without the progress that came before it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marks = [place for place, line in enumerate(lines) if line.lower().startswith("error")]
    return " ".join(lines[marks[-1] :] if marks else lines[-3:])[:1000] or "it said nothing"
