"""Spread the busy threads of emulated nodes over the groups of their boards' cores.

A program of its own, standard library only and started by its path, because it must live as long
as the cluster and cost next to nothing. Its only argument is JSON: ``lock`` (a file, locked while
this runs), ``threads`` (name of a group's file of threads), ``nodes`` (for each node the folders of
its cores' groups), ``first`` (process id and start time of each node's first process) and
``groups`` (folders to remove when all of these have ended, whoever killed them).

A new thread begins in the group of the thread that made it. That group's quota is one core's, so
nothing is ever faster than on the board; without this program threads would only share a core
while others are free. The kernel counts in how many periods a group was held back. Where one was
and another of the same node was not, the threads that want to run in the one are spread over both.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TURN_SECONDS = 0.05
"""Half a period of the kernel's quotas: a thread waits for at most three of these for its core."""

COST_SHARE = 0.015
"""CPU time that this may use, of one core of this machine."""

LONGEST_TURN_SECONDS = 1.0

SAVED_SECONDS = 0.03
"""CPU time that it may have saved up for a burst of new threads."""

HELD_TURNS = 3
"""A core that was held back so few turns ago is not free."""

CROWD = 8
"""A busy thread is moved away from so many idle ones, which take long to look through."""

PAUSE_SECONDS = 0.002
"""How long to wait, for each thread that was looked at in vain, before another look at it."""

LOCKED_WITHIN_SECONDS = 2.0
ALIVE_SECONDS = 1.0
REMOVED_WITHIN_SECONDS = 30.0
_STAT_BYTES = 512


class Core:
    """The group of one core.

    Args:
        folder: of the group.
        threads: name of its file of threads.
    """

    def __init__(self, folder: Path, threads: str) -> None:
        self._file = folder / "cpu.stat"
        self._stat = os.open(self._file, os.O_RDONLY)
        self._threads = folder / threads
        self._count = self._counted()
        self._since = HELD_TURNS
        self.size = 0
        """How many threads it had when they were last counted."""
        self.due = 0.0
        """When to look through all its threads again."""
        self._threads_then: list[str] = []
        self._in_vain: frozenset[str] = frozenset()

    def _counted(self) -> int:
        try:
            text = os.pread(self._stat, _STAT_BYTES, 0)
        except OSError:  # somebody removed the group: the run finds that, the next one makes it
            with contextlib.suppress(OSError):
                again = os.open(self._file, os.O_RDONLY)
                os.close(self._stat)
                self._stat = again
            return 0
        return int(text.partition(b"nr_throttled ")[2].split(None, 1)[0])

    def look(self) -> None:
        """Ask the kernel whether the quota held the group back since the last turn."""
        count = self._counted()
        self._since = 0 if count > self._count else self._since + 1
        self._count = count

    @property
    def is_tight(self) -> bool:
        """Whether it was held back in this turn."""
        return self._since == 0

    @property
    def is_free(self) -> bool:
        """Whether it was not held back lately."""
        return self._since >= HELD_TURNS

    def runnable(self, most: int | None = None, *, only_new: bool = False) -> list[str]:
        """Return the threads that run or wait for the core, oldest first.

        Args:
            most: only the newest so many of them. The kernel lists threads in their order, and what
                has just begun is likelier to be busy than the hundreds of a daemon.
            only_new: those that came since all were last looked at in vain.
        """
        try:
            threads = self._threads.read_text().split()
        except OSError:
            return []
        self.size = len(threads)
        self._threads_then = threads
        if only_new:
            threads = [thread for thread in threads if thread not in self._in_vain]
        found = itertools.islice(filter(wants_to_run, reversed(threads)), most)
        return list(found)[::-1]

    def rest(self, now: float) -> None:
        """Let those threads be that were just looked at in vain, a while for each of them."""
        self.due = now + self.size * PAUSE_SECONDS
        self._in_vain = frozenset(self._threads_then)

    def take(self, thread: str) -> None:
        """Move a thread into this group; one that has ended is nothing to move."""
        with contextlib.suppress(OSError):
            self._threads.write_text(thread)
            self.size += 1


def wants_to_run(thread: str) -> bool:
    """Whether the kernel lists a thread as running, which includes those that wait for a core."""
    try:
        descriptor = os.open(f"/proc/{thread}/stat", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.read(descriptor, _STAT_BYTES).rpartition(b")")[2][1:2] == b"R"
    except OSError:
        return False
    finally:
        os.close(descriptor)


def share(core: Core, free: list[Core], *, only_new: bool = False) -> bool:
    """Spread the threads that want to run in one group over it and those that are free.

    Return whether any was moved.

    Args:
        core: that was held back.
        free: cores of the same node; those that get a thread are taken out.
        only_new: look at those threads that came since all were last looked at.
    """
    threads = core.runnable(most=len(free) + 1, only_new=only_new)
    free.sort(key=lambda other: other.size)
    if len(threads) == 1 and core.size > CROWD and free[0].size < CROWD:
        free.pop(0).take(threads[0])
        return True
    places = [core, *free[: max(0, len(threads) - 1)]]
    for thread, place in zip(threads, itertools.cycle(places), strict=False):
        if place is not core:
            place.take(thread)
            if place in free:
                free.remove(place)
    return len(threads) > 1


def level(cores: Sequence[Core]) -> bool:
    """Where all cores are busy, let none have two threads more than another.

    Return whether any was moved.
    """
    found = {core: core.runnable() for core in cores}
    moved = False
    while True:
        most = max(cores, key=lambda core: len(found[core]))
        fewest = min(cores, key=lambda core: len(found[core]))
        if len(found[most]) - len(found[fewest]) < 2:
            return moved
        thread = found[most].pop()
        fewest.take(thread)
        found[fewest].append(thread)
        moved = True


class NodeCores:
    """The cores of one node."""

    def __init__(self, cores: Sequence[Core]) -> None:
        self.cores = cores
        self._due = 0.0

    def look(self) -> None:
        """Ask the kernel what was held back."""
        for core in self.cores:
            core.look()

    def spread(self, now: float) -> None:
        """Move threads, if any are to be moved."""
        tight = [core for core in self.cores if core.is_tight]
        free = [core for core in self.cores if core.is_free]
        for core in tight:
            is_due = now >= core.due
            if free and not share(core, free, only_new=not is_due) and is_due:
                core.rest(now)
        full = tight and not any(core.is_free for core in self.cores)
        if full and now >= self._due and not level(self.cores):
            self._due = now + sum(core.size for core in self.cores) * PAUSE_SECONDS


def is_first(pid: int, start_ticks: int) -> bool:
    """Whether a node's first process runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return int(fields[19]) == start_ticks and fields[0] not in {"Z", "X"}


def remove(folders: Sequence[Path]) -> bool:
    """Remove groups and all below them; return whether none is left."""
    for folder in folders:
        for inner in sorted(folder.glob("**/"), reverse=True):
            with contextlib.suppress(OSError):
                inner.rmdir()
    return not any(folder.exists() for folder in folders)


def watch(nodes: Sequence[NodeCores], first: Sequence[Sequence[int]]) -> None:
    """Spread threads until every node's first process has ended."""
    saved, alive_due = SAVED_SECONDS, 0.0
    while True:
        began, used = time.monotonic(), time.process_time()
        if began >= alive_due:
            if not any(is_first(*process) for process in first):
                return
            alive_due = began + ALIVE_SECONDS
        for node in nodes:
            node.look()
            node.spread(began)
        saved -= time.process_time() - used
        # What was overspent is earned again by waiting: a slow machine has longer turns.
        longer = min(LONGEST_TURN_SECONDS, max(TURN_SECONDS, -saved / COST_SHARE))
        time.sleep(max(0.0, began + longer - time.monotonic()))
        saved = min(SAVED_SECONDS, saved + (time.monotonic() - began) * COST_SHARE)


def locked(descriptor: int) -> bool:
    """Lock a file, which those that only ask for the lock hold for a moment; return whether."""
    deadline = time.monotonic() + LOCKED_WITHIN_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(TURN_SECONDS)
        else:
            return True


def main(text: str) -> None:
    """Do what a request asks for, unless another process does it already."""
    request = json.loads(text)
    with Path(request["lock"]).open("a") as lock:
        if not locked(lock.fileno()):
            return
        nodes = [
            NodeCores([Core(Path(folder), request["threads"]) for folder in folders])
            for folders in request["nodes"]
        ]
        watch(nodes, request["first"])
        deadline = time.monotonic() + REMOVED_WITHIN_SECONDS
        groups = [Path(folder) for folder in request["groups"]]
        while not remove(groups) and time.monotonic() < deadline:
            time.sleep(TURN_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
