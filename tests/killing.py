"""Kills a process at a chosen call of the production code, which knows nothing of it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any


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


def kill_at(place: str, when: str, call: int) -> None:
    """Let this process die just before or just after the CALLth call of ``MODULE:NAME``."""
    module_name, _, name = place.partition(":")
    owner: Any = importlib.import_module(module_name)
    *parents, last = name.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, last, _wrapped(getattr(owner, last), when, call))
