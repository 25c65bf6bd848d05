"""Rates of emulated nodes' links: a token bucket on either end of the virtual cable."""

from __future__ import annotations

import json
from collections.abc import Sequence

from boardcluster.errors import ClusterError
from boardcluster.remote.gate import run_program

__all__ = ["batch", "check_rate", "is_rate", "rate_of", "shape"]

_BURST = "256kb"  # above 64 KB, the largest segment the kernel hands to a queue
_LATENCY = "50ms"
_SAME_SHARE = 0.001  # the kernel rounds rates


def batch(prefix: Sequence[str], program: str, lines: Sequence[str]) -> None:
    """Run lines of ``ip`` or ``tc`` in one process, behind a prefix that enters a namespace.

    Raises:
        RemoteError: the kernel refused one; those after it were not run.
    """
    run_program([*prefix, program, "-batch", "-"], stdin=("\n".join(lines) + "\n").encode())


def shape(device: str, rate_bits_per_second: int, *, verb: str = "add") -> str:
    """Return the line for ``tc -batch`` that sets a device's rate; ``verb`` may be ``replace``."""
    return (
        f"qdisc {verb} dev {device} root tbf rate {rate_bits_per_second}bit "
        f"burst {_BURST} latency {_LATENCY}"
    )


def rate_of(prefix: Sequence[str], device: str) -> int | None:
    """Return a device's rate in bits per second; None if it has none, or no single one."""
    rows = json.loads(run_program([*prefix, "tc", "-j", "qdisc", "show", "dev", device]).text)
    rates = [row["options"]["rate"] * 8 for row in rows if row.get("kind") == "tbf"]
    return rates[0] if len(rates) == 1 else None


def is_rate(found: int | None, wanted_bits_per_second: int) -> bool:
    """Whether a rate that was read back is the one that was set."""
    if found is None:
        return False
    return abs(found - wanted_bits_per_second) <= wanted_bits_per_second * _SAME_SHARE + 8


def check_rate(prefix: Sequence[str], device: str, rate_bits_per_second: int) -> None:
    """Read a rate back.

    Raises:
        ClusterError: it is another one.
    """
    found = rate_of(prefix, device)
    if not is_rate(found, rate_bits_per_second):
        raise ClusterError(
            f"link rate of {device} reads back as {found} bit/s, not {rate_bits_per_second}",
            hint="run `boardcluster doctor`; the kernel needs the tbf queue (sch_tbf)",
        )
