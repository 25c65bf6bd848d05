"""Times per engine as inline SVG whose colours follow the page."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis import Cell
from boardcluster.report.plots.figure import Durations, Figure
from boardcluster.report.plots.output import NARROW_POINTS, WIDE_POINTS, svg

__all__ = ["NARROW_POINTS", "WIDE_POINTS", "draw_durations"]


def draw_durations(
    groups: Sequence[tuple[str, Sequence[Cell]]],
    *,
    width_points: int,
    name: str,
    description: str,
    emulated: bool,
    twins: str = "",
) -> str:
    """Draw time per engine: every run as a point, the mean as a bar, its 95 % interval.

    Args:
        groups: a title (may be empty) and the cells of one configuration each.
        width_points: width of the drawing; text keeps its size.
        name: unique on the page; prefixes every id inside.
        description: for people who do not see it.
        emulated: whether the axis says that nodes are emulated.
        twins: as which boards, see ``analysis.twin_words``; may be empty.

    Returns:
        An ``<svg>`` element.
    """
    figure = Figure(
        name=name,
        title=description,
        caption="",
        emulated=emulated,
        twins=twins,
        x_label="seconds",
        y_label="",
        body=Durations(groups=tuple((title, tuple(cells)) for title, cells in groups)),
        rows=(),
    )
    return svg(figure, width_points=width_points, name=name, description=description)
