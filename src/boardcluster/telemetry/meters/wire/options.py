"""Options of meters: text in, checked values out."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from boardcluster.errors import SpecError

__all__ = ["choice", "number", "whole"]


def _wrong(name: str, value: str, allowed: str) -> SpecError:
    return SpecError(
        f'the option "{name}" of a meter is "{value}"; allowed: {allowed}',
        hint=f"correct {name} in cluster.toml",
    )


def choice(settings: Mapping[str, str], name: str, allowed: Collection[str]) -> str:
    """Return an option that is one of a few words.

    Raises:
        SpecError: it is none of them.
    """
    if settings[name] not in allowed:
        raise _wrong(name, settings[name], ", ".join(sorted(allowed)))
    return settings[name]


def number(settings: Mapping[str, str], name: str, *, least: float, most: float) -> float:
    """Return an option that is a number.

    Raises:
        SpecError: it is not, or out of range.
    """
    try:
        value = float(settings[name])
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise _wrong(name, settings[name], f"a number from {least:g} to {most:g}")
    return value


def whole(settings: Mapping[str, str], name: str, *, least: int, most: int) -> int:
    """Return an option that is a whole number; also as ``0x40``.

    Raises:
        SpecError: it is not, or out of range.
    """
    try:
        value = int(settings[name], 0)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise _wrong(name, settings[name], f"a whole number from {least} to {most}")
    return value
