"""Runs ON a worker: takes its server away in the middle of a run, and brings it back.

    python3 -c THIS '{"kind": "kill" or "link", "after": REQUESTS, "down_seconds": S, ...}'

It begins once the server has had so many requests more. Standard library only, like everything that
runs on a node.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from typing import Any

__all__ = [
    "POLL_SECONDS",
    "await_answers",
    "children_of",
    "kill",
    "link",
    "main",
    "requests_of",
    "start",
    "take_down",
    "write",
]

POLL_SECONDS = 0.02
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks the server itself: a proxy that the environment names may not reach the nodes."""


def requests_of(url: str, pattern: str, patience_seconds: float) -> int:
    """Return how many requests the server has had, or -1 if it does not answer in that time.

    The pattern finds that number in its answer.
    """
    try:
        with DIRECT.open(url, timeout=patience_seconds) as answer:
            found = re.search(pattern, answer.read().decode())
            return int(found[1]) if found else -1
    except (OSError, ValueError):
        return -1


def children_of(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stream:
                fields = stream.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(name))
    return found


def kill(pid_file: str) -> None:
    """End the server and its workers without a warning, as a loss of power would."""
    with open(pid_file) as stream:
        first = int(stream.read())
    for pid in [first, *children_of(first)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.unlink(pid_file)


def start(argv: list[str], log: str) -> None:
    """Start the server again, with our own marks; it outlives us."""
    with open(log, "ab") as stream:
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd="/",
            start_new_session=True,
        )


def link(device: str, state: str) -> None:
    """Set a network link up or down."""
    argv = ["ip", "link", "set", "dev", device, state]
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise OSError(f"`{' '.join(argv)}`: {done.stderr.strip()}")


def take_down(device: str, down_seconds: float) -> None:
    """Have a link down for so long. It comes up again, also if we are told to end meanwhile."""
    try:
        link(device, "down")
        time.sleep(down_seconds)
    finally:
        former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        link(device, "up")
        signal.signal(signal.SIGTERM, former)


def main(asked: dict[str, Any]) -> None:
    """Wait, take away, wait, bring back; write down when."""
    with open(asked["command"]) as stream:
        argv = json.load(stream)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(asked["record"])
    polls = 0
    # A server that does not answer yet, as after an earlier fault, has had none of the load.
    look = asked["status"], asked["pattern"], asked["patience_seconds"]
    while (first := requests_of(*look)) < 0:
        time.sleep(POLL_SECONDS)
    while True:
        seen = requests_of(*look)
        polls += 1
        if seen - first - polls >= asked["after"]:
            break
        time.sleep(POLL_SECONDS)
    time.sleep(asked["delay_seconds"])
    times = {"down_unix": time.time()}
    if asked["kind"] == "kill":
        kill(asked["pid_file"])
        # Told to end here, the load was over, and the run is refused: we start nothing.
        time.sleep(asked["down_seconds"])
        start(argv, asked["log"])
    else:
        take_down(asked["device"], asked["down_seconds"])
    times["up_unix"] = time.time()
    times["answers_unix"] = await_answers(asked)
    write(asked["record"], times)


def await_answers(asked: dict[str, Any]) -> float:
    """Wait until the server answers, and goes on to; return since when, by this node's clock."""
    since = 0.0
    look = asked["status"], asked["pattern"], asked["patience_seconds"]
    while not since or time.time() - since < asked["steady_seconds"]:
        answers = requests_of(*look) >= 0
        since = (since or time.time()) if answers else 0.0
        time.sleep(POLL_SECONDS)
    return since


def write(record: str, found: dict[str, Any]) -> None:
    """Write the record down, whole or not at all."""
    with open(record + ".partial", "w") as stream:
        json.dump(found, stream)
    os.rename(record + ".partial", record)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that a link comes up again
    request = json.loads(sys.argv[1])
    try:
        main(request)
    except (OSError, ValueError) as error:
        write(request["record"], {"error": str(error)})
        raise
