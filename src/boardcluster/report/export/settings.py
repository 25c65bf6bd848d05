"""What sets one run apart from another, as columns of every table that says it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import Trial
from boardcluster.report.export.frames import Column, Columns, Field, Kind, Value

__all__ = ["SETTINGS", "TEXT_SETTINGS"]

_KINDS = {int: Kind.INTEGER, dict: Kind.OBJECT}
_TEXTS = ("input", "parameters")


def _column(factor: Factor) -> Column[Trial]:
    field = Field(factor.name, _KINDS.get(factor.kind, Kind.TEXT), factor.meaning)
    return Column(field, _level(factor))


def _level(factor: Factor) -> Callable[[Trial], Value]:
    def get(trial: Trial) -> Value:
        level: Value = factor.level(trial)
        return str(level) if isinstance(level, StrEnum) else level

    return get


SETTINGS: Columns[Trial] = tuple(_column(row) for row in FACTORS if row.name not in _TEXTS)
"""Every factor but the two that follow."""

TEXT_SETTINGS: Columns[Trial] = tuple(_column(row) for row in FACTORS if row.name in _TEXTS)
"""The text that is read, and the workloads' parameters."""
