"""Runs the program and kills it with SIGKILL at one chosen point. Not a test itself.

``python -m tests.integration.killer MODULE:NAME before|after CALL -- ARGUMENTS``: the process dies
just before or just after the CALLth call of that function. What is wrapped is the production code
itself, so nothing in it knows of this.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from boardcluster.cli import main


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wrapped(function: Callable[..., Any], when: str, call: int) -> Callable[..., Any]:
    calls = 0

    def count(moment: str) -> None:
        nonlocal calls
        if moment == "before":
            calls += 1
        if moment == when and calls == call:
            _die()

    # A context manager is a point, too: "before" its block begins, "after" its block has ended.
    if inspect.isgeneratorfunction(inspect.unwrap(function)):

        @contextlib.contextmanager
        def block(*args: Any, **options: Any) -> Iterator[Any]:
            count("before")
            with function(*args, **options) as value:
                yield value
            count("after")

        return block

    @functools.wraps(function)
    def plain(*args: Any, **options: Any) -> Any:
        count("before")
        value = function(*args, **options)
        count("after")
        return value

    return plain


def _kill_at(place: str, when: str, call: int) -> None:
    module_name, _, name = place.partition(":")
    owner: Any = importlib.import_module(module_name)
    *parents, last = name.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, last, _wrapped(getattr(owner, last), when, call))


if __name__ == "__main__":
    separator = sys.argv.index("--")
    _kill_at(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    main(sys.argv[separator + 1 :])
