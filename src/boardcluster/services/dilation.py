"""Time dilation of the engines' configuration: intervals of the wall clock times one factor. Pure.

The nodes of an emulated cluster may run D times slower than the boards they stand for. Whatever the
engines time by the wall clock must then take D times as long: else a heartbeat would cost a larger
share of a node than of its board, and a time-out would strike where the board had just been in
time. Clocks are left alone: no program is told a false time.

The properties and the engines' own values are data, in ``dilation.toml``. Method, and what cannot
be dilated: docs/reference/dilation.md.

Source: Gupta et al., "DieCast: Testing Distributed Systems with an Accurate Scale Model" (NSDI
2008), for dividing all rates by one factor; Handigol et al., "Reproducible Network Experiments
Using Container-Based Emulation" (CoNEXT 2012), for doing it with a kernel's own limits.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from boardcluster.errors import UsageError
from boardcluster.services.profile import FILES

__all__ = ["LONGEST_MILLISECONDS", "TimeProperty", "capped", "dilated", "intervals"]

LONGEST_MILLISECONDS = 2**31 - 1
"""Longest interval that is written, 24.8 days: Hadoop reads many into an int of milliseconds."""

_RATE = "bytes/s"
_UNIT_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000}
_SUFFIX_MILLISECONDS = {
    "ns": 1e-6,
    "us": 1e-3,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
"""What the engines' time texts may end in (Hadoop's Configuration, Spark's JavaUtils)."""

_VALUE = re.compile(r"(-?\d+(?:\.\d+)?) *([a-z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeProperty:
    """A property that holds a time, or a rate."""

    default: str
    """The engine's own value; empty if it has none."""
    unit: str
    """Of a value without one, and the finest step in which the engine reads it: ``ms``, ``s``,
    ``min`` or, for a rate, ``bytes/s``."""
    why: str
    """What it times."""
    earlier: dict[str, str] = field(default_factory=dict)
    """The default in engine pairs, by id, that have another."""
    longest: int | None = None
    """What no dilated value exceeds, unless it was set longer; None for no such limit."""
    in_code: bool = False
    """Whether the default is nowhere but in the engine's program."""

    def default_in(self, pair_id: str) -> str:
        """Return the engine's own value in an engine pair."""
        return self.earlier.get(pair_id, self.default)


@functools.cache
def intervals() -> dict[str, dict[str, TimeProperty]]:
    """Return the table: per file of FILES, the properties that are dilated."""
    text = resources.files("boardcluster.services").joinpath("dilation.toml").read_text()
    raw = tomllib.loads(text)
    return {
        file: {name: TimeProperty(**row) for name, row in raw.get(file, {}).items()}
        for file in FILES
    }


def dilated(
    properties: Mapping[str, Mapping[str, str]], dilation: float, *, pair_id: str
) -> dict[str, dict[str, str]]:
    """Return per file the properties to add or override, so that every interval is D times as long.

    A value that is set is multiplied, else the engine's own. It is rounded to whole units, never to
    zero, and ends at ``LONGEST_MILLISECONDS``. Zero and negative values are no times (mostly "off")
    and stay. At dilation 1 nothing is returned for any file.

    Args:
        properties: per file of FILES, what is set without dilation.
        dilation: D, by how much nodes are slower than their boards; at least 1.
        pair_id: the engine pair, for the engines' own values.

    Raises:
        UsageError: a value that is set is no time.
    """
    if dilation == 1:
        return {file: {} for file in FILES}
    slowed: dict[str, dict[str, str]] = {}
    for file, rows in intervals().items():
        given = properties.get(file, {})
        slowed[file] = {}
        for name, interval in rows.items():
            own = interval.default_in(pair_id)
            value = _times(f"{file}: {name}", given.get(name, own), interval, dilation)
            if value is not None:
                slowed[file][name] = value
    return slowed


def capped(slowed: Mapping[str, str]) -> list[str]:
    """Return the dilated properties that would be longer were there no longest interval."""
    units = {name: row.unit for rows in intervals().values() for name, row in rows.items()}
    return [
        name
        for name, value in slowed.items()
        if units[name] != _RATE
        and int(value.rstrip("msin")) == LONGEST_MILLISECONDS // _UNIT_MILLISECONDS[units[name]]
    ]


def _times(where: str, text: str, interval: TimeProperty, dilation: float) -> str | None:
    """Return a value times the dilation as text; None where there is nothing to dilate."""
    if not text.strip():
        return None
    found = _VALUE.fullmatch(text.strip().lower())
    known = {"", *_SUFFIX_MILLISECONDS} if interval.unit != _RATE else {""}
    if found is None or found[2] not in known:
        what = "rate" if interval.unit == _RATE else "time"
        others = (
            "" if interval.unit == _RATE else f", or one with {', '.join(sorted(known - {''}))}"
        )
        raise UsageError(
            f"{where} = {text!r} is not a {what}, so it cannot be dilated",
            hint=f"write a number of {interval.unit}{others}",
        )
    number = float(found[1])
    if number <= 0:
        return None
    if interval.unit == _RATE:
        return str(max(1, round(number / dilation)))
    unit = _UNIT_MILLISECONDS[interval.unit]
    units = number * (_SUFFIX_MILLISECONDS[found[2]] if found[2] else unit) / unit
    longest = LONGEST_MILLISECONDS // unit
    if interval.longest is not None:
        longest = max(interval.longest, round(units))
    whole = min(max(1, round(units * dilation)), longest)
    # Where the engine's own value has a unit, or a value was set with one, it may have one.
    has_unit = interval.default[-1].isalpha() if interval.default else bool(found[2])
    return f"{whole}{interval.unit if has_unit else ''}"
