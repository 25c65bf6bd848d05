"""Runs ON a node: start a program again and again, and say how long each run took.

Standard library only; sent as text. The clock is the node's, because a connection adds tens of
milliseconds to a program that runs for a second. The request is the first argument, as JSON:
``argv``, ``folder`` to run in, ``repeats``. The answer on standard output is JSON, too: ``seconds``
of each run by the monotonic clock, ``cpu_seconds`` that the program and its children used,
``status`` of the last run, and ``words``, the end of what it printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

__all__ = ["answer"]

_WORDS_BYTES = 2000


def answer(request: dict[str, object]) -> dict[str, object]:
    """Run the program of a request until it fails or was repeated as often as asked."""
    argv = [str(word) for word in request["argv"]]  # type: ignore[attr-defined]  # a JSON list
    os.chdir(str(request["folder"]))
    log = os.open(".stopwatch.log", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), *((os.POSIX_SPAWN_DUP2, log, n) for n in (1, 2))]
    took: list[float] = []
    used: list[float] = []
    status = 0
    for _ in range(int(str(request["repeats"]))):
        os.ftruncate(log, 0)
        os.lseek(log, 0, os.SEEK_SET)
        began = time.monotonic()
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
        _, code, usage = os.wait4(pid, 0)
        took.append(time.monotonic() - began)
        used.append(usage.ru_utime + usage.ru_stime)
        status = os.waitstatus_to_exitcode(code)
        if status:
            break
    size = os.fstat(log).st_size
    words = os.pread(log, _WORDS_BYTES, max(0, size - _WORDS_BYTES)).decode("utf-8", "replace")
    Path(".stopwatch.log").unlink()
    return {"seconds": took, "cpu_seconds": used, "status": status, "words": words}


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
