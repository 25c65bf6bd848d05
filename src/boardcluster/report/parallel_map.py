"""The same work on many things, on every core of this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.popen_spawn_posix import Popen
from multiprocessing.process import BaseProcess
from typing import TypeVar

__all__ = ["parallel_map"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_PROCESSES_MOST = 8
_CHUNK = 4
_LOOK_SECONDS = 1.0


def parallel_map(
    do: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    many: int,
    follow: Callable[[int, int], None] | None = None,
) -> list[Answer]:
    """Do something with each item, in processes where there are many; answers in their order.

    Args:
        do: a function of a module, as processes find it by its name.
        items: what it is done with; they and the answers go from process to process.
        many: from so many items on processes are worth their start, about a second.
        follow: told how many are done, and how many there are, where there are many.

    Raises:
        Exception: whatever ``do`` raised first.
    """
    if len(items) < many:
        return [do(item) for item in items]
    answers = []
    # Started anew, as a process with threads must not be forked.
    pool = ProcessPoolExecutor(
        min(os.cpu_count() or 1, _PROCESSES_MOST),
        mp_context=_PlainContext(),
        initializer=_begin,
        initargs=(os.getpid(),),
    )
    try:
        for done, answer in enumerate(pool.map(do, items, chunksize=_CHUNK), start=1):
            answers.append(answer)
            if follow is not None:
                follow(done, len(items))
    finally:
        pool.shutdown(cancel_futures=True)
    return answers


class _PlainProcess(SpawnProcess):
    """A process that does not run the caller's script again.

    Python does so, in case that functions of it are wanted; a script without a guard for that,
    which may be three lines that ask for a report, would start itself again and again.
    """

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Popen:  # noqa: N802  the name is multiprocessing's
        script = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            return Popen(process_obj)
        finally:
            sys.modules["__main__"] = script


class _PlainContext(SpawnContext):
    """Starts processes that do not run the caller's script again."""

    Process = _PlainProcess


def _begin(parent: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A parent that is killed gives no notice; its processes would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
