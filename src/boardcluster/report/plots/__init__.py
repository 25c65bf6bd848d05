"""Figures: builders from cells and runs, one shape, and screen, print and data from it.

Curves of a run, which load numpy, are in ``boardcluster.report.plots.runs``.
"""

from boardcluster.report.plots.durations import durations
from boardcluster.report.plots.energy import energy
from boardcluster.report.plots.factors import bottlenecks, intermediate, times_by_factor
from boardcluster.report.plots.figure import Figure, csv_text, describe
from boardcluster.report.plots.nodes import speed_up, times_by_nodes, times_by_size
from boardcluster.report.plots.output import FORMATS, NARROW_POINTS, WIDE_POINTS, save, svg

__all__ = [
    "FORMATS",
    "NARROW_POINTS",
    "WIDE_POINTS",
    "Figure",
    "bottlenecks",
    "csv_text",
    "describe",
    "durations",
    "energy",
    "intermediate",
    "save",
    "speed_up",
    "svg",
    "times_by_factor",
    "times_by_nodes",
    "times_by_size",
]
