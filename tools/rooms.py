"""Run rooms of the Makefile one after the other, and say how many minutes each took.

    python3 tools/rooms.py lint+jvm-test unit tidy

Rooms joined by + run at the same time; what each prints comes when it has ended. Standard library
only. Each room prints its own counts, and what is wrong; the first that fails ends it all.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time

SECONDS_PER_MINUTE = 60.0


def minutes(seconds: float) -> str:
    """A time in minutes, to a tenth."""
    return f"{seconds / SECONDS_PER_MINUTE:.1f}"


def command(room: str) -> list[str]:
    """What runs a room."""
    return ["make", "--no-print-directory", room]


def end_of(process: subprocess.Popen[bytes], *others: subprocess.Popen[bytes]) -> int:
    """Wait for a room; after Ctrl-C, which all get as well, until all have cleaned up."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        for each in (process, *others):
            each.wait()
        raise


def run(rooms: list[str]) -> list[str]:
    """Run rooms at the same time; return those that failed."""
    if len(rooms) == 1:
        print(f"== {rooms[0]}", flush=True)
        return rooms if end_of(subprocess.Popen(command(rooms[0]))) else []
    failed = []
    with contextlib.ExitStack() as files:
        said = [files.enter_context(tempfile.TemporaryFile("w+")) for _ in rooms]
        started = [
            subprocess.Popen(command(room), stdout=file, stderr=subprocess.STDOUT)
            for room, file in zip(rooms, said, strict=True)
        ]
        for room, process, file in zip(rooms, started, said, strict=True):
            if end_of(process, *started):
                failed.append(room)
            file.seek(0)
            print(f"== {room}\n{file.read()}", end="", flush=True)
    return failed


def main(groups: list[str]) -> int:
    """Run every group of rooms; return 1 after the first that fails, or 0."""
    took: dict[str, float] = {}
    for group in groups:
        began = time.monotonic()
        failed = run(group.split("+"))
        took[group] = time.monotonic() - began
        if failed:
            said = f"== {', '.join(failed)} failed after {minutes(took[group])} minutes"
            print(said, file=sys.stderr)
            return 1
    each = ", ".join(f"{group} {minutes(seconds)}" for group, seconds in took.items())
    print(f"== all rooms passed in {minutes(sum(took.values()))} minutes: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
