"""A systemd timer of the user's own that runs one command again and again. Nothing is enabled.

Where the files belong: systemd.unit(5). How they are quoted: systemd.service(5) and
systemd.exec(5); ``%`` begins a specifier, ``$`` in a command a variable.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.remote.gate import run_program
from boardcluster.store import replacing

__all__ = ["TimerState", "UserTimer", "check_calendar", "remove_timer", "write_timer"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_HINT = "for example daily, Mon..Fri 03:00 or *-*-* 02/6:30, see systemd.time(7)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTimer:
    """A command that a user's service manager is to run by the calendar."""

    about: str
    """What it does, in one line."""
    title: str
    """A short name."""
    key: str
    """What tells it from other timers of that name; its digest is in the name of the units."""
    command: tuple[str, ...]
    """Program, by its absolute path, and arguments."""
    folder: Path
    """Where it runs."""
    environment: Mapping[str, str]
    """What it gets beside what the service manager gives."""

    @property
    def name(self) -> str:
        """Name of its units, without ending."""
        digest = hashlib.sha256(self.key.encode(errors="surrogateescape")).hexdigest()
        return f"boardcluster-watch-{_NOT_IN_NAMES.sub('-', self.title)}-{digest[:8]}"

    def files(self, calendar: str) -> dict[str, str]:
        """Return the unit files, by name."""
        command = " ".join(_quoted(word).replace("$", "$$") for word in self.command)
        environment = "".join(
            f"Environment={_quoted(f'{name}={value}')}\n"
            for name, value in sorted(self.environment.items())
        )
        about = _plain(self.about)
        return {
            f"{self.name}.service": f"""\
# Written by boardcluster.
[Unit]
Description={about}

[Service]
Type=oneshot
WorkingDirectory={_plain(str(self.folder))}
{environment}ExecStart={command}
# The command takes down what it starts; a cluster that was up already stays up after it.
KillMode=process
TimeoutStopSec=10min
""",
            f"{self.name}.timer": f"""\
# Written by boardcluster.
[Unit]
Description={about}

[Timer]
OnCalendar={calendar}
# A round that was missed while the machine was off runs when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
""",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerState:
    """What was done to a timer, and what the user may do."""

    files: Mapping[Path, str]
    """Its unit files with their content; empty after it was removed."""
    changed: tuple[Path, ...]
    """Those that were written or deleted now; none where all was right already."""
    lines: tuple[str, ...]
    """What to know and to run, one line each."""


def check_calendar(text: str) -> str:
    """Return a calendar expression; systemd checks it where it is there.

    Raises:
        UsageError: it is none; with what systemd says.
    """
    if not text.strip() or not text.isprintable():
        raise UsageError(f"{text!r} is not a calendar expression", hint=_HINT)
    if shutil.which("systemd-analyze") is None:
        return text.strip()
    done = run_program(["systemd-analyze", "calendar", "--", text.strip()], check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[0] if said else "systemd does not accept it"
        raise UsageError(f"{text!r} is not a calendar expression: {reason}", hint=_HINT)
    return text.strip()


def write_timer(timer: UserTimer, calendar: str) -> TimerState:
    """Write the units; those that are there already and the same stay as they are.

    Raises:
        UsageError: the calendar expression is none, or a path cannot stand in a unit.
        HostError: the folder cannot be written.
    """
    folder = _folder()
    files = {folder / name: text for name, text in timer.files(check_calendar(calendar)).items()}
    changed = tuple(path for path, text in files.items() if _content(path) != text)
    for path in changed:
        make_folder(folder)
        with writing(path), replacing(path) as temporary:
            temporary.touch(mode=0o600)  # a command is nobody else's business
            temporary.write_text(files[path], encoding="utf-8")
    unit = f"{timer.name}.timer"
    lines = ["nothing is enabled yet; to begin, and after every change:"] if changed else []
    lines += [
        f"  systemctl --user daemon-reload && systemctl --user enable --now {unit}",
        "to let it run while you are not logged in:  loginctl enable-linger",
        f"to see what it did:  journalctl --user -u {timer.name}.service",
    ]
    if shutil.which("systemctl") is None:
        lines.insert(0, "this machine has no systemctl: the timer needs a systemd to run it")
    return TimerState(files=files, changed=changed, lines=tuple(lines))


def remove_timer(timer: UserTimer) -> TimerState:
    """Stop the timer if it is enabled, and delete its units; a second time nothing is done.

    Raises:
        HostError: a file cannot be deleted.
    """
    folder = _folder()
    unit = f"{timer.name}.timer"
    wanted = folder / "timers.target.wants" / unit
    lines = []
    if wanted.is_symlink():
        if shutil.which("systemctl") is not None:
            command = ["systemctl", "--user", "disable", "--now", unit]
            run_program(command, check=False, env=os.environ)  # it needs the user's bus
        with writing(wanted):
            wanted.unlink(missing_ok=True)
        lines.append(f"{unit} was disabled")
    changed = []
    for ending in ("timer", "service"):
        path = folder / f"{timer.name}.{ending}"
        if path.exists():
            with writing(path):
                path.unlink()
            changed.append(path)
    if changed:
        lines.append("to have systemd forget it now:  systemctl --user daemon-reload")
    return TimerState(files={}, changed=tuple(changed), lines=tuple(lines))


def _folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if base.startswith("/") else Path.home() / ".config"
    return config / "systemd" / "user"


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _plain(text: str) -> str:
    """Write a text for a line of a unit where no quotes are read.

    Raises:
        UsageError: it has control characters, which would begin another line.
    """
    if not text.isprintable():
        raise UsageError(
            f"{text!r} cannot be part of a systemd unit",
            hint="use names without control characters",
        )
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """Write one word for a command or an environment, so that systemd reads it as it is."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_plain(escaped)}"'
