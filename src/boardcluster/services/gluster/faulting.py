"""Runs ON a worker: takes it out of the volume in the middle of a run, and sees it healed.

    python3 -c THIS '{"kind": "none", "kill" or "link", "down_seconds": S, ...}'

A fault begins once the worker's bricks hold so many bytes. Afterwards, or at once if there is none,
it waits until no copy of any file is behind another. All times are of this node's clock. Standard
library only, like everything that runs on a node.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

__all__ = [
    "await_bytes",
    "await_healed",
    "healed",
    "held_bytes",
    "kill_marked",
    "link",
    "main",
    "mark_of",
    "start",
    "take_down",
]

POLL_SECONDS = 0.05
HEAL_POLL_SECONDS = 1.0
FAULTS = ("kill", "link")


def held_bytes(folders: list[str]) -> int:
    """Return the bytes that files below some folders take; gluster's own records do not count."""
    total = 0
    for folder in folders:
        for place, names, files in os.walk(folder):
            if place == folder and ".glusterfs" in names:
                names.remove(".glusterfs")
            for name in files:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


def await_bytes(folders: list[str], wanted: int) -> None:
    """Wait until the bricks hold so many bytes; whoever started us ends us if that never comes."""
    while held_bytes(folders) < wanted:
        time.sleep(POLL_SECONDS)


def mark_of(argv: list[str], variable: str) -> str:
    """Return the variable with its value that a command sets for what it starts."""
    return next(word for word in argv if word.startswith(f"{variable}="))


def kill_marked(mark: str) -> int:
    """End every process with a mark without a warning, as a loss of power would."""
    wanted, ended = mark.encode(), 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as stream:
                if wanted not in stream.read().split(b"\0"):
                    continue
            os.kill(int(name), signal.SIGKILL)
            ended += 1
    return ended


def start(argv: list[str], log: str) -> None:
    """Start the daemon again, with its marks; it outlives us."""
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
    subprocess.run(["ip", "link", "set", "dev", device, state], check=True)


def take_down(device: str, down_seconds: float) -> None:
    """Have a link down for so long. It comes up again, also if we are told to end meanwhile."""
    try:
        link(device, "down")
        time.sleep(down_seconds)
    finally:
        former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        link(device, "up")
        signal.signal(signal.SIGTERM, former)


def healed(text: str) -> tuple[bool, str]:
    """Say whether every brick is connected and none has an entry to heal, and what was seen.

    Args:
        text: what ``gluster volume heal VOLUME info summary --xml`` printed.
    """
    states = re.findall(r"<status>(.*?)</status>", text)
    counts = re.findall(r"<totalNumberOfEntries>(.*?)</totalNumberOfEntries>", text)
    split = re.findall(r"<numberOfEntriesInSplitBrain>(\d+)<", text)
    seen = (
        f"bricks {', '.join(states)}; to heal {', '.join(counts)}; split brain {', '.join(split)}"
    )
    done = bool(states) and set(states) == {"Connected"} and set(counts) == {"0"}
    return done, seen


def await_healed(
    look: list[str], heal: list[str], limit_seconds: float, connect_seconds: float
) -> dict[str, Any]:
    """Wait until the volume is healed; ask for it each time it is not.

    A brick that is back is healed by itself, but one whose link was cut only within ten minutes.
    One that is not back after ``connect_seconds`` is given up.
    """
    connected = time.monotonic()
    ends = connected + limit_seconds
    while True:
        done = subprocess.run(look, capture_output=True, text=True, check=False)
        is_healed, seen = healed(done.stdout)
        if "<status>" in done.stdout and "not connected" not in done.stdout:
            connected = time.monotonic()
        if is_healed or time.monotonic() > min(ends, connected + connect_seconds):
            return {"healed": is_healed, "healed_unix": time.time(), "seen": seen}
        subprocess.run(heal, capture_output=True, check=False)
        time.sleep(HEAL_POLL_SECONDS)


def main(asked: dict[str, Any]) -> None:
    """Take away, wait, bring back, see it healed; write down when."""
    times: dict[str, Any] = {}
    if asked["kind"] in FAULTS:
        argv = asked["command"]
        await_bytes(asked["folders"], asked["after_bytes"])
        times["down_unix"] = time.time()
        if asked["kind"] == "kill":
            times["ended"] = kill_marked(mark_of(argv, asked["variable"]))
            # Told to end here, we start nothing: the volume ends, too.
            time.sleep(asked["down_seconds"])
            start(argv, asked["log"])
        else:
            take_down(asked["device"], asked["down_seconds"])
        times["up_unix"] = time.time()
    limits = (asked["limit_seconds"], asked["connect_seconds"])
    times.update(await_healed(asked["look"], asked["heal"], *limits))
    with open(asked["record"] + ".partial", "w") as stream:
        json.dump(times, stream)
    os.rename(asked["record"] + ".partial", asked["record"])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that a link comes up again
    main(json.loads(sys.argv[1]))
