"""Sizes, rates and durations as people write and read them.

Parsing is exact: integers and fractions, never floating point. Formatting exists twice: the plain
form rounds to about three digits for a person, the ``_exact`` form gives back the same number when
it is parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from boardcluster.foreign import json_text
from boardcluster.records import Energy

__all__ = [
    "DURATION_ALLOWED",
    "GIB",
    "KIB",
    "MIB",
    "RATE_ALLOWED",
    "SIZE_ALLOWED",
    "TIB",
    "format_bytes",
    "format_bytes_exact",
    "format_count",
    "format_energy",
    "format_rate",
    "format_rate_exact",
    "format_seconds",
    "parse_duration",
    "parse_engine_size",
    "parse_rate",
    "parse_size",
    "parse_size_with_unit",
]

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40

_DECIMAL_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY_BYTES = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_BYTES = {**_DECIMAL_BYTES, **_BINARY_BYTES}
_BITS_PER_SECOND = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_SECONDS = {"s": 1, "min": 60, "h": 3600}

SIZE_ALLOWED = f'a number and {", ".join(_BYTES)}, e.g. "4 GiB"'
RATE_ALLOWED = f'a number and {", ".join(_BITS_PER_SECOND)}, e.g. "1 Gbit/s"'
DURATION_ALLOWED = f'a number and {", ".join(_SECONDS)}, e.g. "30 min"; a number alone is seconds'

# The digits are bounded so that no text, however long, makes a number that is slow to handle.
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([A-Za-z/]*)")
_SHOWN_CHARACTERS = 40


def _quoted(text: str) -> str:
    short = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    return json_text(short)


def _spellings(units: Mapping[str, int]) -> dict[str, int]:
    """Accept each unit as printed and in lower case, but never a lone ``b``, which means bits."""
    lower = {unit.lower(): scale for unit, scale in units.items() if unit != "B"}
    return {**lower, **units}


_SIZE_UNITS = {**_spellings(_BYTES), "kB": 10**3, "": 1}
_RATE_UNITS = _spellings(_BITS_PER_SECOND)
_DURATION_UNITS = {**_SECONDS, "": 1}


def _parse_fraction(text: str, units: Mapping[str, int], *, what: str, allowed: str) -> Fraction:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] not in units:
        raise ValueError(f"{_quoted(text)} is not a {what}; allowed: {allowed}")
    return Fraction(match[1]) * units[match[2]]


def _parse(text: str, units: Mapping[str, int], *, what: str, whole: str, allowed: str) -> int:
    value = _parse_fraction(text, units, what=what, allowed=allowed)
    if value.denominator != 1:
        raise ValueError(f"{_quoted(text)} is not a whole number of {whole}; allowed: {allowed}")
    return value.numerator


def parse_engine_size(text: str, *, default_unit_bytes: int = MIB) -> int:
    """Parse a size as Hadoop, Spark and Java write one: ``1g``, ``512m``, ``1024``.

    Args:
        text: the size.
        default_unit_bytes: unit of a number without one.

    Raises:
        ValueError: it is none.
    """
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is not a size")
    units = {"b": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}
    return int(found[1]) * units.get(found[2], default_unit_bytes)


def parse_size(text: str | int) -> int:
    """Read a size, exactly.

    KB, MB, GB and TB are powers of 1,000; KiB, MiB, GiB and TiB are powers of 1,024. A number
    without a unit is bytes. ``Mb`` and the like are refused because they mean bits.

    Args:
        text: ``"256 MB"``, ``"4 GiB"``, ``"64KB"``, ``"1.5 GiB"``, ``"1024"`` or ``1024``.

    Returns:
        Bytes, at least 0.

    Raises:
        ValueError: it is no size, is negative, or is no whole number of bytes; names what is
            allowed.
    """
    if isinstance(text, int):
        if isinstance(text, bool) or text < 0:
            shown = str(text).lower() if text > -(10**18) else "a huge negative number"
            raise ValueError(f"{shown} is not a size; allowed: {SIZE_ALLOWED}")
        return text
    return _parse(text, _SIZE_UNITS, what="size", whole="bytes", allowed=SIZE_ALLOWED)


def parse_size_with_unit(text: str | int) -> int:
    """Read a size as ``parse_size`` does, but refuse a text that is a bare number.

    For sizes that are never meant in bytes: ``--size 4`` of a prediction is a slip.

    Raises:
        ValueError: as ``parse_size``, or there is no unit.
    """
    if isinstance(text, str) and text.strip().replace(".", "", 1).isdigit():
        raise ValueError(f"{text.strip()!r} has no unit; allowed: {SIZE_ALLOWED}")
    return parse_size(text)


def parse_rate(text: str) -> int:
    """Read a rate, exactly; the unit is needed, since bits and bytes are both common.

    Args:
        text: ``"1 Gbit/s"``, ``"100 Mbit/s"``, ``"2.5 Gbit/s"``.

    Returns:
        Bits per second, at least 0.

    Raises:
        ValueError: it is no rate; names what is allowed.
    """
    return _parse(text, _RATE_UNITS, what="rate", whole="bits per second", allowed=RATE_ALLOWED)


def parse_duration(text: str | float) -> float:
    """Read a duration.

    Args:
        text: ``"90 s"``, ``"30 min"``, ``"1.5 h"``, ``"90"``, ``90`` or ``0.5``.

    Returns:
        Seconds, at least 0; the nearest float to what is written.

    Raises:
        ValueError: it is no duration, is negative or is not finite; names what is allowed.
    """
    if isinstance(text, str):
        allowed = DURATION_ALLOWED
        return float(_parse_fraction(text, _DURATION_UNITS, what="duration", allowed=allowed))
    if isinstance(text, bool) or not 0 <= text <= 10**18:
        shown = "a huge number" if abs(text) > 10**18 else str(text).lower()
        raise ValueError(f"{shown} is not a duration; allowed: {DURATION_ALLOWED}")
    return float(text)


def _digits(value: float) -> str:
    """Write about three significant digits, without trailing zeros."""
    magnitude = abs(value)
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _human(value: float, units: Mapping[str, int], *, step: int) -> str:
    text = ""
    for unit, scale in units.items():
        number = _digits(value / scale)
        text = f"{number} {unit}"
        if abs(float(number)) < step:
            break
    return text


def _exact(value: int, units: Mapping[str, int]) -> str:
    # Ties in the quotient do not happen: each unit's scale is different, so the largest wins.
    fitting = [(scale, unit) for unit, scale in units.items() if value % scale == 0]
    scale, unit = max(fitting) if value else (1, next(iter(units)))
    return f"{value // scale} {unit}"


def format_bytes(size_bytes: float, *, binary: bool = False) -> str:
    """Write a number of bytes for a person, rounded to about three digits.

    Args:
        size_bytes: bytes.
        binary: use KiB, MiB, GiB, TiB (memory) instead of KB, MB, GB, TB (files, traffic).

    Returns:
        For example ``"256 MB"``, ``"31.2 MB"``, or with binary ``"1.5 GiB"``.
    """
    if binary:
        return _human(size_bytes, _BINARY_BYTES, step=1024)
    return _human(size_bytes, _DECIMAL_BYTES, step=1000)


def format_bytes_exact(size_bytes: int) -> str:
    """Write bytes in the largest unit that needs no fraction; ``parse_size`` gives them back.

    Returns:
        For example ``"4 GiB"``, ``"256 MB"``, ``"3776 MiB"``, ``"1234567 B"``.
    """
    return _exact(size_bytes, _BYTES)


def format_rate(bits_per_second: float) -> str:
    """Write a rate for a person, rounded to about three digits.

    Returns:
        For example ``"941 Mbit/s"``.
    """
    return _human(bits_per_second, _BITS_PER_SECOND, step=1000)


def format_rate_exact(bits_per_second: int) -> str:
    """Write a rate in the largest unit that needs no fraction; ``parse_rate`` gives it back.

    Returns:
        For example ``"1 Gbit/s"``, ``"2500 Mbit/s"``.
    """
    return _exact(bits_per_second, _BITS_PER_SECOND)


def format_seconds(seconds: float) -> str:
    """Write a duration for a person; a negative one keeps its sign.

    Returns:
        For example ``"3.2 ms"``, ``"42.1 s"``, ``"4 min 37 s"``, ``"1 h 02 min 05 s"``.
    """
    sign = "-" if seconds < 0 else ""
    magnitude = abs(seconds)
    if magnitude == 0:
        return "0 s"
    if magnitude < 0.9995:
        return f"{sign}{_digits(magnitude * 1000)} ms"
    if magnitude < 59.95:
        return f"{sign}{_digits(magnitude)} s"
    minutes, rest_seconds = divmod(round(magnitude), 60)
    if minutes < 60:
        return f"{sign}{minutes} min {rest_seconds:02d} s"
    hours, rest_minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {rest_minutes:02d} min {rest_seconds:02d} s"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, for people.

    Args:
        number: how many.
        noun: for one of them.
        plural: for several; if empty, the noun with an ``s``.

    Returns:
        For example ``"1 worker"``, ``"2 workers"``, ``"1,500 records"``.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_energy(energy: Energy) -> str:
    """Return an energy for people, always with where it comes from: ``412 J metered, level 1``."""
    if energy.energy_joules is None:
        return f"none: {energy.reason}"
    joules = energy.energy_joules
    amount = f"{joules / 1000:.4g} kJ" if joules >= 10_000 else f"{joules:.4g} J"
    level = f", level {energy.level}" if energy.level else ""
    return f"{amount} {energy.method}{level}"
