"""Runs ON the master, beside the mount: makes or reads a tree of small files, one by one.

    python3 -c THIS '{"do": "make" or "read", "root": FOLDER, "files": N, "bytes": B, ...}'

The content of a file follows from its name. Each is flushed before it counts as made; reading
compares every byte. Standard library only, like everything that runs on a node.
"""

import hashlib
import json
import os
import sys
import time
from typing import Any

__all__ = ["FOLDER_FILES", "content", "main", "make", "name_of", "read"]

FOLDER_FILES = 100
"""Files of a folder."""


def name_of(number: int) -> str:
    """Return the path of a file in the tree."""
    return f"{number // FOLDER_FILES:04d}/{number:07d}"


def content(name: str, size: int) -> bytes:
    """Return what is in a file."""
    return hashlib.shake_256(name.encode()).digest(size)


def make(path: str, body: bytes) -> None:
    """Write a file that is not there yet, down to the replicas' disks."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        left = memoryview(body)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: str, body: bytes) -> None:
    """Read a file and compare it."""
    with open(path, "rb") as stream:
        if stream.read() != body:
            raise SystemExit(f"{path}: not what was written")


def main(asked: dict[str, Any]) -> None:
    """Do all of it, and write down how long each file took."""
    do = {"make": make, "read": read}[asked["do"]]
    names = [name_of(number) for number in range(asked["files"])]
    taken = []
    seconds = 0.0
    for first in range(0, len(names), FOLDER_FILES):
        some = names[first : first + FOLDER_FILES]
        # Made up outside the time, and a folder at a time: all of it may be more than the memory.
        bodies = [content(name, asked["bytes"]) for name in some]
        began = time.monotonic()
        for number, (name, body) in enumerate(zip(some, bodies, strict=True)):
            path = os.path.join(asked["root"], name)
            before = time.monotonic_ns()
            if do is make and number == 0:
                os.makedirs(os.path.dirname(path))
            do(path, body)
            taken.append((time.monotonic_ns() - before) // 1000)
        seconds += time.monotonic() - began
    found = {
        "files": len(names),
        "seconds": seconds,
        "ended_unix": time.time(),
        "latency_microseconds": sorted(taken),
    }
    with open(asked["result"], "w") as stream:
        json.dump(found, stream)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
