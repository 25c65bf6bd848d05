"""What NetPIPE 3.7 writes, and whether it can be right.

Its output file has a line per message size: bytes, Mbit/s, seconds one way. Its "Mbit" are 2^20
bits; here they are 10^6. The integrity check (``-i``) compares every received byte and prints a
line per size instead.

Source: NetPIPE 3.7.2, netpipe.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from boardcluster.errors import VerificationError

__all__ = ["NETPIPE_PORT", "Curve", "NetpipePoint", "check_integrity", "parse_curve", "sizes_up_to"]

NETPIPE_PORT = 5002
"""Where NPtcp listens unless it is told another port."""

_NETPIPE_MEGABIT = 2**20
_MEGABIT = 1e6
_STOP_SECONDS = 1.0
"""NetPIPE ends early once one message takes longer (STOPTM)."""
_SMALL_BYTES = 1024
_TIME_ERROR_SECONDS = 0.51e-8
_RATE_ERROR = 0.51e-6
_POINT = re.compile(r" *(\d+) +(\d+\.\d+) +(\d+\.\d+) *")
_CHECKED = re.compile(r"^ *\d+: +(\d+) bytes +\d+ times --> +(.*?) *$", re.MULTILINE)
_HINT = "see the attempt's folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetpipePoint:
    """One message size."""

    size_bytes: int
    """Size of the message."""
    megabits_per_second: float
    """Its rate, in 10^6 bits per second."""
    seconds: float
    """Its time one way: half of a round trip, the best of NetPIPE's trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What was measured between two nodes."""

    points: tuple[NetpipePoint, ...]
    """By growing size."""

    @property
    def latency_microseconds(self) -> float:
        """Time one way of the smallest message, which is one byte."""
        return self.points[0].seconds * 1e6

    @property
    def throughput_megabits_per_second(self) -> float:
        """Rate of the largest message."""
        return self.points[-1].megabits_per_second

    @property
    def peak_throughput_megabits_per_second(self) -> float:
        """Best rate of any message."""
        return max(point.megabits_per_second for point in self.points)


def sizes_up_to(largest_bytes: int) -> list[int]:
    """Return the sizes NetPIPE takes without perturbation: 1, 2, 3, 4, 6, 8, 12, 16, ..."""
    powers = [2**exponent for exponent in range(largest_bytes.bit_length())]
    between = [power // 2 * 3 for power in powers[1:]]
    return sorted(size for size in powers + between if size <= largest_bytes)


def parse_curve(text: str, *, largest_bytes: int, pair: str) -> Curve:
    """Read an output file and check it against itself.

    Raises:
        VerificationError: sizes are missing, a rate does not follow from its time, or the largest
            message was no slower than every small one.
    """
    points = []
    for line in text.splitlines():
        if not line.strip():
            continue
        found = _POINT.fullmatch(line)
        if found is None:
            raise VerificationError(
                f"{pair}: not a line of NetPIPE's output: {line[:60]!r}", hint=_HINT
            )
        points.append(_point(found, pair))
    sizes = [point.size_bytes for point in points]
    expected = sizes_up_to(largest_bytes)
    slow = bool(points) and points[-1].seconds >= _STOP_SECONDS
    if sizes != (expected[: len(sizes)] if slow else expected):
        raise VerificationError(
            f"{pair}: {len(sizes)} message sizes up to {max(sizes, default=0)} bytes, expected "
            f"{len(expected)} up to {expected[-1]} bytes",
            hint=_HINT,
        )
    # A pause of the machine makes one size look slow; it does not fall on every small one.
    quickest = min(point.seconds for point in points if point.size_bytes <= _SMALL_BYTES)
    if points[-1].seconds <= quickest:
        raise VerificationError(
            f"{pair}: {sizes[-1]} bytes took {points[-1].seconds} s, no longer than any message "
            f"up to {_SMALL_BYTES} bytes",
            hint=_HINT,
        )
    return Curve(points=tuple(points))


def _point(found: re.Match[str], pair: str) -> NetpipePoint:
    size_bytes, rate, seconds = int(found[1]), float(found[2]), float(found[3])
    from_rate = size_bytes * 8 / _NETPIPE_MEGABIT / rate if rate else 0.0
    error = _TIME_ERROR_SECONDS + from_rate * _RATE_ERROR / (rate or 1.0)
    if not rate or abs(from_rate - seconds) > error:
        raise VerificationError(
            f"{pair}: {size_bytes} bytes in {found[3]} s are not {found[2]} Mbit/s (of 2^20 bits)",
            hint=_HINT,
        )
    return NetpipePoint(
        size_bytes=size_bytes,
        megabits_per_second=rate * _NETPIPE_MEGABIT / _MEGABIT,
        seconds=seconds,
    )


def check_integrity(text: str, *, largest_bytes: int, pair: str) -> int:
    """Read what the integrity check printed; return how many sizes it checked.

    It takes one byte more than each size from 4 on, and ends early where messages are slow.

    Raises:
        VerificationError: a size did not pass, or sizes are missing.
    """
    rows = _CHECKED.findall(text)
    for size, verdict in rows:
        if verdict != "Integrity check passed":
            raise VerificationError(
                f"{pair}: messages of {size} bytes did not arrive as they were sent: {verdict!r}",
                hint=_HINT,
            )
    sizes = [int(size) for size, _ in rows]
    expected = [size + 1 for size in sizes_up_to(largest_bytes - 1) if size >= 4]
    if not sizes or sizes != expected[: len(sizes)] or sizes[-1] < min(expected[-1], 1 << 16):
        raise VerificationError(
            f"{pair}: the integrity check covers {len(sizes)} sizes up to "
            f"{max(sizes, default=0)} bytes, expected {len(expected)} up to {expected[-1]} bytes",
            hint=_HINT,
        )
    return len(sizes)
