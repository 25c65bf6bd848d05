"""The one way to wait for a condition: with a limit, and with the last state for the error.

The standard library only: this file runs on nodes, too (services/provision).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["DATA_SECONDS_MOST", "wait_until"]

DATA_SECONDS_MOST = 24 * 3600.0
"""No copying, sorting or counting of data takes longer: a terabyte at 12 MB/s, which a link of 100
Mbit/s carries. Only what hangs without a word is ended by it; who reads and writes sees a
connection that stalls."""

Seen = TypeVar("Seen")


def wait_until(
    look: Callable[[], Seen],
    *,
    ready: Callable[[Seen], object] = bool,
    failed: Callable[[], object] = lambda: None,
    timeout_seconds: float,
    poll_seconds: float,
    clock: Callable[[], float] | None = None,
    sleep: Callable[[float], object] | None = None,
) -> Seen:
    """Look again and again until what is seen is ready or time is up; return what was seen last.

    It looks at least once. The caller tests the answer again: if it is not ready, time ran out, and
    the answer is the state that the error should report.

    Args:
        look: returns the state.
        ready: whether a state ends the wait.
        failed: called after each look that was not ready; raises if waiting longer is useless.
        timeout_seconds: limit, from the call to the last look.
        poll_seconds: pause between two looks.
        clock: tells the time in seconds; the monotonic clock by default.
        sleep: pauses for so many seconds; ``time.sleep`` by default.
    """
    now, pause = clock or time.monotonic, sleep or time.sleep
    deadline_seconds = now() + timeout_seconds
    while True:
        seen = look()
        if ready(seen) or now() >= deadline_seconds:
            return seen
        failed()
        pause(poll_seconds)
