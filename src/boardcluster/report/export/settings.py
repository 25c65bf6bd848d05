"""What sets one run apart from another, as columns of every table that says it."""

from __future__ import annotations

from functools import partial

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import Trial
from boardcluster.report.export.frames import DType, Field, FieldGetter, at

__all__ = ["SETTINGS", "TEXT_SETTINGS"]

_KINDS = {int: DType.INTEGER, dict: DType.OBJECT}


def _level(factor: Factor, item: object) -> object:
    trial: Trial = at("result.trial")(item)
    return factor.level(trial)


def _columns(*, texts: bool) -> tuple[FieldGetter, ...]:
    return tuple(
        FieldGetter(
            Field(factor.name, _KINDS.get(factor.kind, DType.TEXT), factor.meaning),
            partial(_level, factor),
        )
        for factor in FACTORS
        if (factor.name in ("input", "parameters")) is texts
    )


SETTINGS = _columns(texts=False)
"""Every factor of the trial of an item's ``result`` but the two that follow."""

TEXT_SETTINGS = _columns(texts=True)
"""The text that is read, and the workloads' parameters."""
