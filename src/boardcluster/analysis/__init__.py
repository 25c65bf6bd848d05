"""Pure: statistics of results, and whether they can be trusted. Takes records, never connections.

Verdicts are in ``boardcluster.analysis.trust``.

What is named here is loaded when it is first used: most need one part of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardcluster.analysis.cells import (
        Cell,
        Configuration,
        MeasuredFigure,
        Untrusted,
        label_of,
        security_of,
        settings,
        summarise,
        untrusted,
        verdict_of,
    )
    from boardcluster.analysis.fingerprints import differences, differences_among
    from boardcluster.analysis.statistics import Interval
    from boardcluster.analysis.twins import dilation_words, is_twin, node_words, twin_words

__all__ = [
    "Cell",
    "Configuration",
    "Interval",
    "MeasuredFigure",
    "Untrusted",
    "differences",
    "differences_among",
    "dilation_words",
    "is_twin",
    "label_of",
    "node_words",
    "security_of",
    "settings",
    "summarise",
    "twin_words",
    "untrusted",
    "verdict_of",
]

if not TYPE_CHECKING:  # so that a name that does not exist is an error to type checkers, too
    _NAMES = {
        "cells": (
            "Cell",
            "Configuration",
            "MeasuredFigure",
            "Untrusted",
            "label_of",
            "security_of",
            "settings",
            "summarise",
            "untrusted",
            "verdict_of",
        ),
        "fingerprints": (
            "differences",
            "differences_among",
        ),
        "statistics": ("Interval",),
        "twins": (
            "dilation_words",
            "is_twin",
            "node_words",
            "twin_words",
        ),
    }
    _PLACES = {name: place for place, names in _NAMES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
