"""What the load generator and the farm's counters say, read once at the edge."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boardcluster.errors import VerificationError

__all__ = ["FarmCounts", "FaultTimes", "LoadResult", "behind_words", "check_faults", "check_gone",
           "percentile_microseconds", "read_counts", "read_fault", "read_result"]  # fmt: skip

_HINT = "see the attempt's folder"
_BEHIND_SHARE = 0.05
"""A rate that is this much lower than what was asked for is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What one run of the load generator came to."""

    requests: int
    """Requests that came to an end: answers that were right, and all that failed."""
    sent: int
    """Requests that left; one that found no connection never did."""
    good: int
    """Answers with status 200 and every byte right."""
    body_bytes: int
    """Of those answers, without their heads."""
    seconds: float
    """From the first request to the last answer, by the client's monotonic clock."""
    cpu_seconds: float
    """CPU time of the client."""
    rate: float
    """Requests per second that were asked for; 0 in a closed loop."""
    errors: Mapping[str, int]
    """Requests that failed, by kind: ``connect``, ``closed``, ``timeout``, ``status``, ``body``."""
    first_error: str
    """The first that failed, in words; empty if none did."""
    first_wrong: str
    """The first body that was wrong, in words; empty if none was."""
    by_target: tuple[int, ...]
    """Good answers of each target, in the order given."""
    latency: tuple[tuple[int, int], ...]
    """Histogram of latencies: upper edge in microseconds, count; each bucket is 1.6 % wide."""
    lag: tuple[tuple[int, int], ...]
    """Of how late the client itself was, in the same form."""
    began_unix: float
    """When it began, by its node's clock."""
    interval_seconds: float
    """Length of an interval of the series."""
    series: tuple[tuple[int, int], ...]
    """For each interval, good and failed requests."""

    @property
    def requests_per_second(self) -> float:
        """Good answers per second."""
        return self.good / self.seconds

    @property
    def failed(self) -> int:
        """Requests without a right answer."""
        return sum(self.errors.values())

    @property
    def cpu_share(self) -> float:
        """How much of one core the client took."""
        return self.cpu_seconds / self.seconds

    @property
    def last_failure_unix(self) -> float | None:
        """The end of the last interval in which a request failed; None if none did."""
        places = [place for place, (_, failed) in enumerate(self.series, start=1) if failed]
        return self.began_unix + places[-1] * self.interval_seconds if places else None


def percentile_microseconds(histogram: Sequence[tuple[int, int]], share: float) -> float:
    """Return the upper edge of the bucket that holds a percentile, the share given from 0 to 1."""
    total = sum(count for _, count in histogram)
    rank, seen = max(1, math.ceil(share * total)), 0
    for upper, count in histogram:
        seen += count
        if seen >= rank:
            return float(upper)
    return 0.0


def behind_words(
    loads: Mapping[str, tuple[int, float]], *, random_arrivals: bool = False
) -> tuple[str, ...]:
    """Say which loads at a fixed rate came to less than was asked for.

    Args:
        loads: by the name of the phase, what it came to, and what it was to come to by its rate in
            the time that it took.
        random_arrivals: whether that was due at random moments; else evenly.
    """
    # What is due at random moments is off by the root of its number (Poisson).
    roots = 3 if random_arrivals else 0
    return tuple(
        f"{name}: only {100 * done / asked:.0f} % of the rate that was asked for, so its latency "
        "is that of a service that fell behind"
        for name, (done, asked) in loads.items()
        if asked - done > max(_BEHIND_SHARE * asked, roots * math.sqrt(asked))
    )


def _pairs(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(second)) for first, second in rows)


def read_result(text: str, *, phase: str) -> LoadResult:
    """Read what the load generator wrote, and hold it against itself.

    Raises:
        VerificationError: it is not whole, or its numbers contradict each other.
    """
    try:
        row = json.loads(text)
        found = LoadResult(
            requests=int(row["requests"]),
            sent=int(row["sent"]),
            good=int(row["good"]),
            body_bytes=int(row["body_bytes"]),
            seconds=float(row["seconds"]),
            cpu_seconds=float(row["cpu_seconds"]),
            rate=float(row["rate"]),
            errors={str(name): int(count) for name, count in row["errors"].items()},
            first_error=str(row["first_error"]),
            first_wrong=str(row["first_wrong"]),
            by_target=tuple(map(int, row["by_target"])),
            latency=_pairs(row["latency_microseconds"]),
            lag=_pairs(row["lag_microseconds"]),
            began_unix=float(row["began_unix"]),
            interval_seconds=float(row["interval_seconds"]),
            series=_pairs(row["series"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise VerificationError(
            f"{phase}: what the load generator wrote cannot be read: {error!r}", hint=_HINT
        ) from error
    measured = sum(count for _, count in found.latency)
    if not (
        found.seconds > 0
        and found.good + found.failed == found.requests
        and found.good == measured == sum(found.by_target)
    ):
        raise VerificationError(
            f"{phase}: the load generator counts {found.requests} requests, {found.good} right and "
            f"{found.failed} failed, and {measured} latencies in {found.seconds:g} s",
            hint=_HINT,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmCounts:
    """What balancer and servers have counted since they started."""

    asked: int
    """Requests that reached the balancer."""
    passed: Mapping[str, int]
    """By worker, answers with status 2xx that the balancer got from it."""
    noticed: Mapping[str, int]
    """By worker, how often the balancer found it down."""
    status: Mapping[str, str]
    """By worker, what the balancer thinks of it now."""
    served: Mapping[str, int]
    """By worker, requests that its server had."""


def read_counts(text: str) -> FarmCounts:
    """Read what ``counting.py`` printed.

    Raises:
        VerificationError: it is not whole.
    """
    try:
        row: dict[str, Any] = json.loads(text)
        balancer = {str(name): each for name, each in row["balancer"].items()}
        asked = int(balancer.pop("FRONTEND")["req_tot"])
        return FarmCounts(
            asked=asked,
            passed={name: int(each["hrsp_2xx"]) for name, each in balancer.items()},
            noticed={name: int(each["chkdown"]) for name, each in balancer.items()},
            status={name: str(each["status"]) for name, each in balancer.items()},
            served={str(name): int(count) for name, count in row["servers"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise VerificationError(
            f"the counts of the farm cannot be read: {error!r}", hint=_HINT
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTimes:
    """When a fault came and went, by the client's clock."""

    down_unix: float
    """When its server was taken away."""
    up_unix: float
    """When it was brought back."""
    answers_unix: float
    """When it answered again, on its own node."""


def read_fault(text: str, *, ahead_seconds: float = 0.0) -> FaultTimes:
    """Read what ``faulting.py`` wrote.

    Args:
        text: what it wrote, by the clock of the worker.
        ahead_seconds: how far that is ahead of the client's.

    Raises:
        VerificationError: it is not whole, or says why there was no fault.
    """
    try:
        row = json.loads(text)
        if "error" in row:
            raise VerificationError(f"the fault failed: {row['error']}", hint=_HINT)
        names = ("down_unix", "up_unix", "answers_unix")
        down, up, answers = (float(row[name]) - ahead_seconds for name in names)
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(
            f"when the fault came and went cannot be read: {error!r}", hint=_HINT
        ) from error
    return FaultTimes(down_unix=down, up_unix=up, answers_unix=answers)


def check_gone(phase: str, text: str, *, hint: str) -> None:
    """Refuse a fault that had not come and gone when its phase was over.

    Args:
        phase: the phase.
        text: what ``faulting.py`` wrote; empty where it had not ended.
        hint: what to do.

    Raises:
        VerificationError: it had not.
    """
    if not text:
        raise VerificationError(
            f"{phase}: it was over before the fault had come and gone", hint=hint
        )


def check_faults(texts: Mapping[str, str]) -> None:
    """Refuse faults that did not happen.

    Args:
        texts: by phase, what ``faulting.py`` wrote; empty where it had not ended.

    Raises:
        VerificationError: one is not whole, or says why there was no fault.
    """
    for text in filter(None, texts.values()):
        read_fault(text)
