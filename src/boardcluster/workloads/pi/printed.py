"""What the two engines print, and the count that follows from it."""

from __future__ import annotations

import re
from pathlib import Path

from boardcluster.errors import VerificationError

__all__ = ["inside_of_estimate", "inside_of_spark"]

_DECIMALS = 20
_MOST_BYTES = 1 << 20
_ESTIMATE = re.compile(r"^Estimated value of Pi is (.*)$", re.MULTILINE)
_NUMBER = re.compile(r"[0-4]\.[0-9]{20}|0E-20")  # Java writes a zero of 20 decimals as 0E-20
_INSIDE = re.compile(r"^inside ([0-9]{1,20}) of ([0-9]{1,20})$", re.MULTILINE)
_HINT = "look at the job's standard output"


def inside_of_estimate(stdout: Path, *, total: int) -> int:
    """Return the count from which an estimate of pi was made; both engines print one.

    The estimate has 20 decimals, so the count is found again exactly, and a number that no count
    yields is refused.

    Args:
        stdout: what the program printed.
        total: number of all points.

    Raises:
        VerificationError: there is not one estimate, or no count yields it.
    """
    found = _ESTIMATE.findall(_read(stdout))
    if len(found) != 1:
        raise VerificationError(f"{len(found)} estimates of pi were printed, not 1", hint=_HINT)
    if _NUMBER.fullmatch(found[0]) is None:
        raise VerificationError(
            f"{found[0]!r} is not an estimate with {_DECIMALS} decimals", hint=_HINT
        )
    printed = int(found[0].removesuffix("E-20").replace(".", ""))
    unit = 4 * int(10**_DECIMALS)
    inside = (printed * total + unit // 2) // unit
    if inside > total or printed != (2 * unit * inside + total) // (2 * total):
        raise VerificationError(
            f"no number of points inside, out of {total}, yields the printed estimate {found[0]}",
            hint=_HINT,
        )
    return inside


def inside_of_spark(stdout: Path, *, total: int) -> int:
    """Return the count that Spark's job prints; its estimate must follow from it.

    Raises:
        VerificationError: there is not one count, it is out of another total, or the estimate is
            that of another count.
    """
    found = _INSIDE.findall(_read(stdout))
    if len(found) != 1:
        raise VerificationError(f"{len(found)} counts were printed, not 1", hint=_HINT)
    inside, printed_total = int(found[0][0]), int(found[0][1])
    if printed_total != total:
        raise VerificationError(f"{printed_total} points were drawn, not {total}", hint=_HINT)
    estimated = inside_of_estimate(stdout, total=total)
    if inside != estimated:
        raise VerificationError(
            f"the printed count is {inside}, but the estimate is that of {estimated}", hint=_HINT
        )
    return inside


def _read(stdout: Path) -> str:
    """Return what was printed, up to a size far beyond what these programs print."""
    with stdout.open("rb") as stream:
        return stream.read(_MOST_BYTES).decode(errors="replace")
