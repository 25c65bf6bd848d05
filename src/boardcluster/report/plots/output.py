"""A figure for a page, and as files for a paper."""

from __future__ import annotations

import html
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.errors import StoreError, UsageError
from boardcluster.report.plots.draw_bars import draw_bars, draw_stack
from boardcluster.report.plots.draw_durations import draw_durations
from boardcluster.report.plots.draw_lines import draw_lines
from boardcluster.report.plots.figure import (
    Bars,
    Curves,
    Figure,
    Lines,
    Stack,
    csv_text,
    describe,
)
from boardcluster.report.plots.themes import PRINT, SCREEN, VARIABLES, Theme, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["FORMATS", "NARROW_POINTS", "WIDE_POINTS", "save", "svg", "write_files"]

WIDE_POINTS = 980
NARROW_POINTS = 350

FORMATS = ("svg", "png", "pdf", "csv")
"""What ``save`` can write."""

_COLUMN_POINTS = {1: 252.0, 2: 516.0}
"""Widths of one and of both columns of a two-column paper: 3.5 and 7.16 inches, as IEEE sets."""
_PRINT_DPI = 300

_BETWEEN_TAGS = "\0"  # in no XML document


def svg(figure: Figure, *, width_points: int, name: str, description: str = "") -> str:
    """Draw a figure as an element of a page, whose style sheet gives it its colours.

    Args:
        figure: the figure.
        width_points: width of the drawing; text keeps its size. Curves have one width.
        name: unique on the page; prefixes every id inside.
        description: for people who do not see it; empty for what ``describe`` says.

    Returns:
        An ``<svg>`` element. Curves need the style sheet ``run.css`` and an element of class
        ``curves`` around them, and their legend is the page's.
    """
    if isinstance(figure.body, Curves):
        from boardcluster.report.curves import draw as draw_chart  # noqa: PLC0415  loads numpy

        return draw_chart(replace(figure.body.chart, name=name))
    with drawing(SCREEN):
        canvas = _draw(figure, width_points=width_points, theme=SCREEN)
        return _inline(_svg_text(canvas), name=name, description=description or describe(figure))


def save(
    figure: Figure, folder: Path, formats: Iterable[str] = ("svg", "png", "pdf")
) -> tuple[Path, ...]:
    """Write a figure as files for a paper; each whole or not at all. Same data gives same bytes.

    Args:
        figure: the figure; its name is the stem of the files.
        folder: where to write; made if there is none.
        formats: some of ``FORMATS``.

    Returns:
        The files, in the order of the formats.

    Raises:
        UsageError: an unknown format.
        StoreError: they cannot be written.
    """
    wanted = tuple(formats)
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise UsageError(
            f'figures have no format "{unknown[0]}"; allowed: {", ".join(FORMATS)}',
            hint="use the allowed formats",
        )
    contents: dict[str, bytes] = {}
    if set(wanted) - {"csv"}:
        with drawing(PRINT):
            canvas = _draw(figure, width_points=_COLUMN_POINTS[figure.columns], theme=PRINT)
            contents = {name: _bytes(figure, canvas, name) for name in wanted if name != "csv"}
    if "csv" in wanted:
        contents["csv"] = csv_text(figure).encode(errors="replace")
    files = {folder / f"{figure.name}.{name}": contents[name] for name in wanted}
    write_files(files, "a figure")
    return tuple(files)


def _draw(figure: Figure, *, width_points: float, theme: Theme) -> Canvas:
    body = figure.body
    if isinstance(body, Lines):
        return draw_lines(figure, body, width_points=width_points, theme=theme)
    if isinstance(body, Bars):
        return draw_bars(figure, body, width_points=width_points, theme=theme)
    if isinstance(body, Stack):
        return draw_stack(figure, body, width_points=width_points, theme=theme)
    if isinstance(body, Curves):
        from boardcluster.report.plots.draw_curves import draw_curves  # noqa: PLC0415  loads numpy

        return draw_curves(figure, body, width_points=width_points, theme=theme)
    return draw_durations(figure, body, width_points=width_points, theme=theme)


def _svg_text(canvas: Canvas) -> str:
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _bytes(figure: Figure, canvas: Canvas, name: str) -> bytes:
    """One format; nothing in it says when or by what version it was written."""
    metadata = {
        "svg": {"Date": None, "Creator": None, "Title": figure.title},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": figure.title},
        "png": {"Software": None, "Title": figure.title},
    }[name]
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=name, dpi=_PRINT_DPI, metadata=metadata, facecolor="white")
    return buffer.getvalue()


def write_files(files: Mapping[Path, bytes], what: str) -> None:
    """Write files, each whole or not at all; their folders are made.

    Args:
        files: by path, what is in them.
        what: what they are, for the error.

    Raises:
        StoreError: they cannot be written.
    """
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            temporary.write_bytes(data)
            temporary.replace(path)
    except OSError as error:
        raise StoreError(
            f"{what} cannot be written: {error}", hint="choose another folder for the report"
        ) from error


def _inline(text: str, *, name: str, description: str) -> str:
    """Make a stand-alone SVG document an element of a page: ids, colours, fonts, title."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # The text between tags is names and numbers, which stay as they are.
    pieces = re.split(r">([^<]*)<", text)
    markup = _BETWEEN_TAGS.join(pieces[::2])
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', markup))
    markup = re.sub(
        r' id="([^"]*)"',
        lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "",
        markup,
    )
    markup = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", markup)
    markup = re.sub(r"font: ([^;\"]*?)([\d.]+px)[^;\"]*", r"font: \1\2 var(--sans)", markup)
    for colour, variable in VARIABLES.items():
        markup = markup.replace(colour, variable)
    tags = markup.split(_BETWEEN_TAGS)
    texts = [piece if piece.strip() else "" for piece in pieces[1::2]]
    text = tags[0] + "".join(f">{piece}<{tag}" for piece, tag in zip(texts, tags[1:], strict=True))
    found = re.search(r'viewBox="[^"]*"', text)
    box = found[0] if found else ""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box}'
        f' role="img" aria-labelledby="{name}-title"><title id="{name}-title">'
        f"{html.escape(description)}</title>"
    )
    return opening + text[text.index(">") + 1 :].strip()
