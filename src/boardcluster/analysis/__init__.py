"""Pure: statistics of results. Takes records, never connections."""

from boardcluster.analysis.cells import (
    Cell,
    Configuration,
    Figure,
    security_of,
    settings,
    summarise,
)
from boardcluster.analysis.comparisons import (
    Comparison,
    ConcurrencyComparison,
    compare_concurrency,
    compare_engines,
)
from boardcluster.analysis.statistics import Interval

__all__ = [
    "Cell",
    "Comparison",
    "ConcurrencyComparison",
    "Configuration",
    "Figure",
    "Interval",
    "compare_concurrency",
    "compare_engines",
    "security_of",
    "settings",
    "summarise",
]
