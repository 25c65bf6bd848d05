"""wait_until: it looks, asks whether waiting is useless, pauses, and has an end."""

from collections.abc import Callable

import pytest

from boardcluster.waiting import wait_until


class Clock:
    def __init__(self) -> None:
        self.now_seconds = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_seconds += seconds


def wait(look: Callable[[], int], clock: Clock, *, failed: Callable[[], None]) -> int:
    return wait_until(
        look,
        ready=lambda seen: seen >= 3,
        failed=failed,
        timeout_seconds=10,
        poll_seconds=4,
        clock=lambda: clock.now_seconds,
        sleep=clock.sleep,
    )


def test_returns_what_was_seen_when_it_is_ready() -> None:
    clock, states = Clock(), iter([1, 2, 3, 4])

    assert wait(lambda: next(states), clock, failed=lambda: None) == 3
    assert clock.now_seconds == 8


def test_returns_the_last_state_when_time_is_up() -> None:
    clock, states = Clock(), iter([0, 1, 2, 2, 2])

    assert wait(lambda: next(states), clock, failed=lambda: None) == 2
    assert clock.now_seconds == 12  # the last look is the first one after the limit


def test_ends_at_once_when_waiting_is_useless() -> None:
    clock = Clock()

    def failed() -> None:
        raise RuntimeError("it died")

    with pytest.raises(RuntimeError, match="it died"):
        wait(lambda: 1, clock, failed=failed)
    assert clock.now_seconds == 0


def test_looks_once_even_without_any_time() -> None:
    assert wait_until(lambda: "there", timeout_seconds=0, poll_seconds=1) == "there"
    assert wait_until(lambda: "", timeout_seconds=0, poll_seconds=1) == ""
