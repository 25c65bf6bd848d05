"""The one way in which tests wait for something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

Seen = TypeVar("Seen")


def wait_until(
    look: Callable[[], Seen],
    what: str,
    *,
    seconds: float = 10.0,
    failed: Callable[[], object] = lambda: None,
    pause_seconds: float = 0.05,
) -> Seen:
    """Look until what is seen is true, and return it.

    Args:
        look: returns what is there now.
        what: what is waited for, for the message: ``the job``.
        seconds: the longest wait.
        failed: returns something true when waiting has become useless.
        pause_seconds: between two looks.

    Raises:
        AssertionError: it did not come in time, or failed; the message has the last that was seen.
    """
    deadline_seconds = time.monotonic() + seconds
    while not (seen := look()):
        assert not (failure := failed()), f"{what} will not come: {failure!r}; last seen: {seen!r}"
        assert time.monotonic() < deadline_seconds, (
            f"waited {seconds:g} s for {what}; last seen: {seen!r}"
        )
        time.sleep(pause_seconds)
    return seen
