"""What sets one run apart from another, as columns of every table that says it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import Trial
from boardcluster.report.export.frames import Field, Kind, Value

__all__ = ["SETTINGS", "TEXT_SETTINGS", "settings_values", "text_settings_values"]

_KINDS = {int: Kind.INTEGER, dict: Kind.OBJECT}
_TEXT = [factor for factor in FACTORS if factor.name in ("input", "parameters")]
_PLAIN = [factor for factor in FACTORS if factor not in _TEXT]


def _fields(factors: Iterable[Factor]) -> tuple[Field, ...]:
    return tuple(
        Field(factor.name, _KINDS.get(factor.kind, Kind.TEXT), factor.meaning) for factor in factors
    )


def _values(factors: Iterable[Factor], trial: Trial) -> tuple[Value, ...]:
    levels = [factor.level(trial) for factor in factors]
    return tuple(str(level) if isinstance(level, StrEnum) else level for level in levels)


SETTINGS = _fields(_PLAIN)
"""Every factor but the two that follow."""

TEXT_SETTINGS = _fields(_TEXT)
"""The text that is read, and the workloads' parameters."""


def settings_values(trial: Trial) -> tuple[Value, ...]:
    """The values of ``SETTINGS`` for a trial."""
    return _values(_PLAIN, trial)


def text_settings_values(trial: Trial) -> tuple[Value, ...]:
    """The values of ``TEXT_SETTINGS`` for a trial."""
    return _values(_TEXT, trial)
