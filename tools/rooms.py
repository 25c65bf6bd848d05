"""Run rooms of the Makefile one after the other, and say how many minutes each took.

    python3 tools/rooms.py lint unit tidy

Standard library only. Each room prints its own counts, and what is wrong; the first that fails ends
it all.
"""

from __future__ import annotations

import subprocess
import sys
import time

SECONDS_PER_MINUTE = 60.0


def minutes(seconds: float) -> str:
    """A time in minutes, to a tenth."""
    return f"{seconds / SECONDS_PER_MINUTE:.1f}"


def main(rooms: list[str]) -> int:
    """Run every room; return the exit status of the first that fails, or 0."""
    took: dict[str, float] = {}
    for room in rooms:
        began = time.monotonic()
        print(f"== {room}", flush=True)
        status = subprocess.run(["make", "--no-print-directory", room], check=False).returncode
        took[room] = time.monotonic() - began
        if status:
            print(f"== {room} failed after {minutes(took[room])} minutes", file=sys.stderr)
            return status
    each = ", ".join(f"{room} {minutes(seconds)}" for room, seconds in took.items())
    print(f"== all rooms passed in {minutes(sum(took.values()))} minutes: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
