"""Runs ON a board: what class-data archives it has, all that they depend on, and their refusal.

Standard library only and self-contained, because the driver sends this file's text. One request as
JSON on standard input: ``java``, a JAVA_HOME; ``jars``, every jar in the order of the class path;
``folder``, where the archives lie; ``root``, put before every path, for tests; ``reason``, why they
are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys

__all__ = ["look", "refuse"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "made.json"
_MEMORY = "/proc/meminfo"


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Return the board's kind, empty without Java or jars; what it has; and its free space."""
    root = request.get("root", "")
    folder = root + request["folder"]
    marker = os.path.join(folder, MARKER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {
        "kind": _kind(root, request["java"], request["jars"]),
        "marker": _text(marker),
        "files": {name: _stamp(os.path.join(folder, name)) for name in names},
        "free_bytes": _free_bytes(folder),
        "memory_bytes": _memory_bytes(),
    }


def refuse(request: dict[str, Any]) -> dict[str, Any]:
    """Remove the archives and write down why; return what ``made.json`` says then."""
    folder = request.get("root", "") + request["folder"]
    marker = os.path.join(folder, MARKER)
    made: dict[str, Any] = json.loads(_text(marker) or "{}")
    made |= {"files": {}, "refused": request["reason"]}
    if "kind" in made:
        with open(f"{marker}.new", "w", encoding="utf-8") as stream:
            json.dump(made, stream, indent=1)
        os.replace(f"{marker}.new", marker)
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.endswith(".jsa"):
            os.unlink(os.path.join(folder, name))
    return made


def _kind(root: str, java: str, jars: list[str]) -> str:
    """Hash what a JVM compares before it uses an archive: its own build, and each jar."""
    home = os.path.realpath(root + java)
    try:
        rows: list[object] = [platform.machine(), _text(os.path.join(home, "release"))]
        rows.append(_stamp(os.path.join(home, "lib", "modules")))
        rows.append(_stamp(os.path.join(home, "lib", "server", "libjvm.so"))[0])
        rows += [[path, *_stamp(root + path)] for path in jars]
    except OSError:
        return ""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _stamp(path: str) -> list[int]:
    """Return a file's size in bytes and its time in seconds, which is what a JVM looks at."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns // 1_000_000_000]


def _text(path: str) -> str:
    """Return the text of a file; nothing if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _free_bytes(folder: str) -> int:
    """Return the space on the disk that holds a folder, or will hold it."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _memory_bytes() -> int:
    """Return the memory that is to be had, swap included."""
    rows = [line.split() for line in _text(_MEMORY).splitlines()]
    return sum(int(row[1]) * 1024 for row in rows if row[0] in ("MemAvailable:", "SwapFree:"))


if __name__ == "__main__":
    _request = json.load(sys.stdin)
    json.dump({"look_at_archives": look, "refuse": refuse}[_request["do"]](_request), sys.stdout)
