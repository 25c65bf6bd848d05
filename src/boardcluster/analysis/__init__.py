"""Pure: statistics of results, and whether they can be trusted. Takes records, never connections.

Verdicts are in ``boardcluster.analysis.trust``.
"""

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
