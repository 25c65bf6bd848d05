"""The fitted model: from questions to times, intermediate bytes and joules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boardcluster.plan.hardware import BoardRates, MediumRates
from boardcluster.plan.prediction import PredictionBatch
from boardcluster.plan.question import QuestionBatch

__all__ = ["RuntimeModel", "predict_many"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeModel:
    """What was learned; made by ``learn`` of ``plan/learning.py``."""

    boards: Mapping[str, BoardRates]
    """Every board of the catalog and of the user, by name."""
    media: Mapping[str, MediumRates]
    """Every medium, by name."""


def predict_many(model: RuntimeModel, questions: QuestionBatch) -> PredictionBatch:
    """Predict many runs at once: 40,000 in well under a second.

    Boards and media are looked up in the model; runs on ones it does not know, or whose figure is
    missing, are not known (``UnknownReason.NO_FIGURE``).
    """
    raise NotImplementedError
