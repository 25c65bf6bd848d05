"""Pure: statistics of results. Takes records, never connections."""

from boardcluster.analysis.cells import Cell, Comparison, compare_engines, summarise
from boardcluster.analysis.statistics import Interval

__all__ = ["Cell", "Comparison", "Interval", "compare_engines", "summarise"]
