"""Time per engine, with every run."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.records import Verdict
from boardcluster.report.plots.cells import MOST_ROWS, cell_row, cut_groups, part_words, slug
from boardcluster.report.plots.figure import Durations, Figure

__all__ = ["durations"]


def durations(
    groups: Sequence[tuple[str, Sequence[Cell]]],
    *,
    name: str,
    title: str,
    caption: str,
    emulated: bool,
    twins: str = "",
) -> tuple[Figure, ...]:
    """Time per engine: every run as a point, the mean as a bar, its 95 % interval.

    Args:
        groups: a title (may be empty) and the cells of one configuration each.
        name: unique among the figures of a report.
        title: what it shows, in a few words.
        caption: what a reader must know.
        emulated: whether any number is of emulated nodes.
        twins: as which boards, see ``analysis.twin_words``; may be empty.

    Returns:
        One figure, or several where there are more bars than fit a screen; none without cells.
    """
    parts = list(cut_groups(groups, MOST_ROWS))
    return tuple(
        Figure(
            name=slug(name, str(number) if len(parts) > 1 else ""),
            title=f"{title}{part_words(number, len(parts))}",
            caption=caption,
            emulated=emulated,
            twins=twins,
            x_label="seconds",
            y_label="",
            body=Durations(groups=tuple((text, tuple(cells)) for text, cells in part)),
            rows=tuple(
                {
                    **cell_row(cell),
                    "repetition": result.trial.repetition,
                    "duration_seconds": seconds,
                    "verdict": str(
                        result.measurement.verdict if result.measurement else Verdict.UNJUDGED
                    ),
                }
                for _, cells in part
                for cell in cells
                for result, seconds in zip(cell.results, cell.durations_seconds, strict=True)
            ),
            columns=2,
        )
        for number, part in enumerate(parts, start=1)
    )
