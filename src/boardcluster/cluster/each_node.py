"""The same thing done for many nodes at once, and what went wrong as one error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from boardcluster.errors import BoardclusterError
from boardcluster.remote.gate import end_programs

__all__ = ["ASKED_AT_ONCE", "each_node", "raise_first"]

_NODES_AT_ONCE = 16
_END_AGAIN_SECONDS = 0.2

ASKED_AT_ONCE = 64
"""Of nodes that are only asked something: one that does not answer keeps its place for seconds."""

Answer = TypeVar("Answer")


def each_node(
    names: Iterable[str], one: Callable[[str], Answer], *, at_once: int = _NODES_AT_ONCE
) -> tuple[dict[str, Answer], dict[str, BoardclusterError]]:
    """Do something for each node, so many at once; return the answers and the errors by name."""
    answers: dict[str, Answer] = {}
    errors: dict[str, BoardclusterError] = {}

    def guarded(name: str) -> None:
        try:
            answers[name] = one(name)
        except BoardclusterError as error:
            errors[name] = error

    order = list(names)
    begun: list[Future[None]] = []
    with ThreadPoolExecutor(at_once) as pool:
        try:
            begun.extend(pool.submit(guarded, name) for name in order)
            for future in begun:
                future.result()
        except BaseException:  # Ctrl-C: what the nodes were asked may take an hour
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in begun):
                end_programs()  # again: one that waited for another begins its program only now
                time.sleep(_END_AGAIN_SECONDS)
            raise
    return (
        {name: answers[name] for name in order if name in answers},
        {name: errors[name] for name in order if name in errors},
    )


def raise_first(errors: Mapping[str, BoardclusterError]) -> None:
    """Raise what went wrong, of every node, as one error of the first one's kind."""
    if not errors:
        return
    first = next(iter(errors.values()))
    if len(errors) == 1:
        raise first
    lines = [f"{len(errors)} nodes failed:", *(error.message for error in errors.values())]
    raise type(first)("\n".join(lines), hint=first.hint) from first
