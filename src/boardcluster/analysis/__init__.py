"""Pure: statistics of results, and whether they can be trusted. Takes records, never connections.

Verdicts are in ``boardcluster.analysis.trust``.
"""

from boardcluster.analysis.cells import (
    Cell,
    Configuration,
    Figure,
    Untrusted,
    security_of,
    settings,
    summarise,
    untrusted,
    verdict_of,
)
from boardcluster.analysis.comparisons import (
    Comparison,
    ConcurrencyComparison,
    compare_concurrency,
    compare_engines,
)
from boardcluster.analysis.fingerprints import differences, differences_among
from boardcluster.analysis.statistics import Drift, Interval

__all__ = [
    "Cell",
    "Comparison",
    "ConcurrencyComparison",
    "Configuration",
    "Drift",
    "Figure",
    "Interval",
    "Untrusted",
    "compare_concurrency",
    "compare_engines",
    "differences",
    "differences_among",
    "security_of",
    "settings",
    "summarise",
    "untrusted",
    "verdict_of",
]
