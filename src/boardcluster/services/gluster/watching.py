"""Runs ON the master, beside the mount: writes down when the client lost a brick and had it again.

    python3 -c THIS RECORD SECONDS STATE...

Each STATE is the file that the mount shows for the client's connection to a brick. Each change is
written to RECORD, as pairs of the time and how many are connected. With 0 SECONDS it goes on until
it is ended; otherwise it ends when all are connected, or with status 1 after so long. Standard
library only, like everything that runs on a node.
"""

import json
import os
import sys
import time

__all__ = ["connected", "main"]

POLL_SECONDS = 0.05


def connected(states: list[str]) -> int:
    """Return how many of the connections are there."""
    count = 0
    for path in states:
        try:
            with open(path) as stream:
                count += "connected = 1" in stream.read()
        except OSError:
            continue
    return count


def main(record: str, limit_seconds: float, states: list[str]) -> int:
    """Look again and again; return the exit status."""
    changes: list[tuple[float, int]] = []
    ends = time.monotonic() + limit_seconds
    while True:
        count = connected(states)
        if not changes or changes[-1][1] != count:
            changes.append((time.time(), count))
            with open(record + ".partial", "w") as stream:
                json.dump({"bricks": len(states), "changes": changes}, stream)
            os.rename(record + ".partial", record)
        if limit_seconds and count == len(states):
            return 0
        if limit_seconds and time.monotonic() > ends:
            return 1
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
