"""Runs ON a node while somebody looks: passes on what happens there. Standard library only.

It reads a request, one line of JSON, from standard input, and ends when that ends. Further lines
replace parts of it: ``folder``. The request:

- ``agent``: the text of agent.py. ``sample``: what that is asked for, without the common fields.
- ``own``: whether to take samples while no run does. ``interval_seconds``: from look to look.
- ``folder``: where agents of runs write their samples, in files ``telemetry-*.txt``.
- ``daemons``: name, process id and start time in ticks of each daemon of this node.
- ``comm``: the name of its process, by which agents know it and do not count it.
- ``logs``: patterns of log files to pass on; ``match``: what a line must hold to be passed on.

While an agent of a run is at work here, its samples are passed on and none are taken, so that a
run is not disturbed. Each line begins with a letter and a blank:

- ``T``: a line of an agent's file. ``S``: ``run`` or ``own``: whose samples follow.
- ``D``: the daemons that do not run, as JSON; on a change, and as a sign of life.
- ``L``: a path and a line of a log, as JSON. ``Z``: seconds by which local time is ahead of UTC.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import re
import select
import sys
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRESH_SECONDS = 15.0
"""A file of samples that was not written for longer was left behind by an agent that is gone."""
NEW_LOG_SECONDS = 120.0
LOGS_EVERY = 2  # looks
ALIVE_EVERY = 5
FIRST_BYTES = 4 << 20
"""Of what was written before we came, so much is passed on."""
CHUNK_BYTES = 1 << 20


class Tail:
    """Reads on in a file that others append to; gives whole lines."""

    def __init__(self, path: str, *, keep_head: bool = False) -> None:
        self.path = path
        self._rest = b""
        self._keep_head = keep_head
        size = os.stat(path).st_size
        self._place = max(0, size - FIRST_BYTES)
        self._cut = self._place > 0

    def lines(self) -> list[str]:
        """Return what was added since; nothing once the file is gone."""
        found: list[str] = []
        with contextlib.suppress(OSError), open(self.path, "rb") as stream:
            if self._cut and self._keep_head:  # the columns stand in the first line
                found.append(stream.readline().decode(errors="replace").rstrip("\n"))
            stream.seek(self._place)
            data = stream.read(CHUNK_BYTES + FIRST_BYTES)
            self._place += len(data)
            *whole, self._rest = (self._rest + data).split(b"\n")
            if self._cut and whole:
                self._cut = False
                del whole[0]
            found += [line.decode(errors="replace") for line in whole]
        return found


class Relay:
    """What is passed on of one node."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._out = sys.stdout.buffer
        self._tail: Tail | None = None
        self._logs: dict[str, Tail] = {}
        self._match = re.compile(request["match"]) if request.get("match") else None
        self._dead: list[str] | None = None
        self._sampler: Any = None
        self._columns: tuple[str, ...] = ()
        self._whose = ""
        self._agent = types.ModuleType("agent")
        exec(request["agent"], self._agent.__dict__)  # noqa: S102  the text that came with this one

    def say(self, letter: str, text: str) -> None:
        """Write one line."""
        self._out.write(f"{letter} {text}\n".encode())

    def look(self, count: int) -> None:
        """Pass on what is new."""
        if not self._of_a_run():
            self._own()
        self._daemons(said=count % ALIVE_EVERY == 0)
        if count % LOGS_EVERY == 0:
            self._read_logs()
        self._out.flush()

    def _say_whose(self, whose: str) -> None:
        if whose != self._whose:
            self._whose = whose
            self.say("S", whose)

    def _of_a_run(self) -> bool:
        """Pass on the samples of a run's agent; return whether one is at work."""
        newest, newest_seconds = "", time.time() - FRESH_SECONDS
        with contextlib.suppress(OSError), os.scandir(self._request["folder"]) as entries:
            for entry in entries:
                if entry.name.startswith("telemetry-") and entry.name.endswith(".txt"):
                    with contextlib.suppress(OSError):
                        written = entry.stat().st_mtime
                        if written > newest_seconds:
                            newest, newest_seconds = entry.path, written
        if not newest:
            self._tail = None
            return False
        self._say_whose("run")
        self._sampler, self._columns = None, ()
        if self._tail is None or self._tail.path != newest:
            try:
                self._tail = Tail(newest, keep_head=True)
            except OSError:
                return True
        for line in self._tail.lines():
            self.say("T", line)
        return True

    def _own(self) -> None:
        """Take a sample, as an agent does."""
        if not self._request["own"]:
            return
        self._say_whose("own")
        if self._sampler is None:
            self._sampler = self._agent.Sampler(self._request["sample"], self._agent.Files())
        row = self._sampler.row()
        if tuple(row) != self._columns:
            self._columns = tuple(row)
            scales = self._agent.SCALES
            columns = [[name, *scales[name.partition("/")[0]]] for name in row]
            head = {"interval_seconds": self._request["interval_seconds"], "columns": columns}
            self.say("T", json.dumps(head))
        words = ["-" if value is None else str(value) for value in row.values()]
        self.say("T", f"{time.monotonic_ns()} {time.time_ns()} {' '.join(words)}")

    def _daemons(self, *, said: bool) -> None:
        dead = [name for name, pid, ticks in self._request["daemons"] if not runs(pid, ticks)]
        if said or dead != self._dead:
            self._dead = dead
            self.say("D", json.dumps(dead))

    def _read_logs(self) -> None:
        for pattern in self._request["logs"]:
            for path in glob.glob(pattern):
                if path not in self._logs and (tail := self._new_log(path)) is not None:
                    self._logs[path] = tail
        for path, tail in list(self._logs.items()):
            for line in tail.lines():
                if self._match is None or self._match.search(line):
                    self.say("L", json.dumps([path, line]))
            if not os.path.exists(path):
                del self._logs[path]

    @staticmethod
    def _new_log(path: str) -> Tail | None:
        """None for one that nothing was written to for long; it may go on later."""
        with contextlib.suppress(OSError):
            if time.time() - os.stat(path).st_mtime < NEW_LOG_SECONDS:
                return Tail(path)
        return None


def runs(pid: int, start_ticks: int) -> bool:
    """Say whether exactly this process runs; one that ended and was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            words = stream.read().rpartition(b")")[2].split()
        return int(words[19]) == start_ticks and words[0] not in (b"Z", b"X")
    except (OSError, IndexError, ValueError):
        return False


class Input:
    """Lines of a stream, none of which waits unseen in its buffer while ``line`` waits.

    The first lines may be there already: what loads this program over SSH reads it from the same
    stream, and more with it.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._rest = b""

    def line(self, seconds: float | None = None) -> bytes | None:
        """Return the next line; None if none comes in time, and nothing in it at the end."""
        while b"\n" not in self._rest:
            if seconds is not None and not select.select([self._stream], [], [], seconds)[0]:
                return None
            # All that is in the buffer, or else what one call of the kernel gives.
            data = self._stream.read1(CHUNK_BYTES)
            if not data:
                return b""
            self._rest += data
        found, _, self._rest = self._rest.partition(b"\n")
        return found


def pass_on(given: Input) -> None:
    """Pass on what the first line asks for, until there are no more."""
    request = json.loads(given.line() or b"")
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as stream:
        stream.write(request["comm"])
    relay = Relay(request)
    relay.say("Z", str(time.localtime().tm_gmtoff))
    interval_seconds = float(request["interval_seconds"])
    started, count = time.monotonic(), 0
    while True:
        with contextlib.suppress(BrokenPipeError):
            relay.look(count)
        elapsed = time.monotonic() - started
        count = int(elapsed / interval_seconds) + 1
        pause = max(0.0, count * interval_seconds - elapsed)
        if (more := given.line(pause)) is not None:
            if not more:
                return
            request.update(json.loads(more))


if __name__ == "__main__":
    assert isinstance(sys.stdin.buffer, io.BufferedReader)  # noqa: S101  it always is
    pass_on(Input(sys.stdin.buffer))
