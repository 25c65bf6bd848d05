"""What the node-side program asks of the system: programs, files that survive a power cut."""

from __future__ import annotations

import base64
import contextlib
import difflib
import os
import stat
import subprocess
from typing import Any

__all__ = [
    "NEW",
    "FailedError",
    "Node",
    "difference",
    "insist",
    "link",
    "look_at_file",
    "restore_file",
    "run",
    "start_alone",
    "sync_folder",
    "tail",
    "text_of",
    "write",
    "write_text",
]

NEW = ".boardcluster-new"
"""Suffix of a file that is being written; what a kill leaves is overwritten by the next run."""

KEPT_BYTES_MAX = 1 << 20

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are: whoever logs in may have a shorter one, without the system's own."""


class FailedError(Exception):
    """What could not be done, for people; ``kind`` chooses the driver's class of error."""

    def __init__(self, message: str, *, hint: str = "", kind: str = "install") -> None:
        super().__init__(message)
        self.answer = {"message": message, "hint": hint, "kind": kind}


class Node:
    """This node, or a folder that stands for one in a test."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.units_changed = False

    def at(self, path: str) -> str:
        """Return where a path of the node is."""
        return self.root + path

    @property
    def systemd(self) -> bool:
        """Whether systemd runs this node (sd_booted(3))."""
        return os.path.isdir(self.at("/run/systemd/system"))


def run(argv: list[str], *, timeout_seconds: float = 120.0) -> tuple[int, str]:
    """Run a program; return its status (127 if it is missing) and all it said."""
    environment = {
        **os.environ,
        "PATH": PATH,
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=timeout_seconds,
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not end within {timeout_seconds:g} s"
    return done.returncode, done.stdout.decode(errors="replace")


def tail(text: str, lines: int = 6) -> str:
    """Return the last lines that say something."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def insist(argv: list[str], *, hint: str = "", timeout_seconds: float = 120.0) -> str:
    """Run a program that must end well; return all it said."""
    status, text = run(argv, timeout_seconds=timeout_seconds)
    if status:
        raise FailedError(f"`{' '.join(argv[:3])}` failed: {tail(text)}", hint=hint)
    return text


def start_alone(argv: list[str]) -> None:
    """Start what outlives this program, its session and its input."""
    subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": PATH},
        start_new_session=True,
    )


def sync_folder(path: str) -> None:
    """Make a rename in a folder last beyond a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: str, data: bytes, *, mode: int) -> None:
    """Replace a file as a whole: a reader, or a power cut, meets the old one or the new one."""
    new = path + NEW
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)
        stream.flush()
        os.fsync(descriptor)
    os.replace(new, path)
    sync_folder(os.path.dirname(path))


def look_at_file(path: str) -> dict[str, Any]:
    """Return all that is needed to restore a file or link as it is now."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"there": False}
    if stat.S_ISLNK(found.st_mode):
        return {"there": True, "link": os.readlink(path)}
    if not stat.S_ISREG(found.st_mode) or found.st_size > KEPT_BYTES_MAX:
        raise FailedError(f"{path} is in the way: not a small file", hint=f"move {path} away")
    with open(path, "rb") as stream:
        data = base64.b64encode(stream.read()).decode()
    mode = stat.S_IMODE(found.st_mode)
    return {"there": True, "data": data, "mode": mode, "uid": found.st_uid, "gid": found.st_gid}


def restore_file(path: str, before: dict[str, Any]) -> None:
    """Give a path back what ``look_at_file`` saw there."""
    for leftover in (path + NEW, *([] if before["there"] else [path])):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(leftover)
    if "link" in before:
        link(path, before["link"])
    elif before["there"]:
        write(path, base64.b64decode(before["data"]), mode=before["mode"])
        found = os.stat(path)
        if (found.st_uid, found.st_gid) != (before["uid"], before["gid"]):
            os.chown(path, before["uid"], before["gid"])


def link(path: str, target: str) -> None:
    """Make a symbolic link in place of whatever file or link is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + NEW)
    os.symlink(target, path + NEW)
    os.replace(path + NEW, path)
    sync_folder(os.path.dirname(path))


def text_of(path: str) -> str:
    """Return a file's text; nothing if there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def write_text(path: str, text: str) -> None:
    """Replace a text, keeping the file's mode: on FAT, where /boot/firmware is, it is fixed."""
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o644
    write(path, text.encode("utf-8", "surrogateescape"), mode=mode)


def difference(path: str, before: str, after: str) -> str:
    """Return what would change in a file, as a short unified diff."""
    rows = difflib.unified_diff(
        before.splitlines(), after.splitlines(), path, path, lineterm="", n=1
    )
    lines = [row.encode("utf-8", "replace").decode() for row in rows]
    more = [f"... {len(lines) - 60} more lines"] if len(lines) > 60 else []
    return "\n".join(lines[:60] + more)
