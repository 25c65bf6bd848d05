"""Write a report: one HTML file that opens without a network, and the same in Markdown."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from boardcluster.analysis import Cell, twin_words
from boardcluster.errors import StoreError
from boardcluster.records import Campaign, ClusterSpec, Result
from boardcluster.report import words
from boardcluster.report.figures import NARROW_POINTS, WIDE_POINTS, draw_durations
from boardcluster.report.model import Report, build_report
from boardcluster.report.times import TimeSection

__all__ = ["STATE_MARKS", "make_environment", "style_sheets", "write_report", "write_texts"]

_ROWS_PER_DRAWING = 16
STATE_MARKS = {"ok": "✓", "failed": "✕", "invalid": "✕", "running": "…", "pending": "…"}
_COUNTER_NOTE = (
    "These are each engine's own counters under their own names, so they do not match line by line:"
    " MapReduce counts what its tasks moved through local disks, Spark what crossed a shuffle"
    " (serialised, and compressed where the configuration says so). HDFS replicas are in neither."
)
_METHOD = (
    (
        "Time is the driver's monotonic clock around the engine's own submission: it includes the"
        " start of the application on YARN and leaves out preparing the input and verifying the"
        " output."
    ),
    (
        "The 95 % interval is of the mean by Student's t: mean ± t(0.975, n-1) · s / √n. It assumes"
        " independent runs of one normal distribution. From five runs on a second one is by the"
        " bootstrap, which assumes no distribution. The interval of a difference is Welch's."
        " Outliers lie beyond Tukey's fences; they are shown, never dropped. CV is the standard"
        " deviation over the mean. Throughput is input over time; MB are 10⁶ bytes."
    ),
    (
        "Failed and invalid attempts are shown with their reason and stay out of every mean, and so"
        " do warm-ups."
    ),
    (
        "The verdict on each run is from the telemetry of its nodes: valid where nothing was seen"
        " that disturbs it, tainted where something was, unjudged where it was recorded before"
        " there were verdicts. Tainted runs stay out of every mean unless they were asked for."
    ),
)
_MD_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


@dataclass(frozen=True, slots=True)
class _Drawing:
    wide: Markup
    narrow: Markup


def write_report(
    results: Sequence[Result],
    campaigns: Sequence[Campaign],
    *,
    cluster: ClusterSpec | None,
    folder: Path,
    tainted: bool = False,
    pages: Mapping[tuple[str, int], str] | None = None,
) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.md``; earlier ones there are replaced.

    The same records give the same bytes.

    Args:
        results: trials with their attempts; give every attempt, so that none is hidden.
        campaigns: their campaigns.
        cluster: the cluster's declaration, for the list of nodes.
        folder: where to write; made if there is none.
        tainted: whether tainted runs count.
        pages: by trial and number of an attempt, the page of its curves, relative to ``folder``.

    Returns:
        The HTML file and the Markdown file.

    Raises:
        StoreError: the folder cannot be written.
    """
    report = build_report(results, campaigns, cluster=cluster, tainted=tainted, pages=pages)
    environment = make_environment()
    shared = {
        "report": report,
        "emulated_text": words.emulated(report.twins),
        "insecure_text": words.INSECURE,
        "tainted_text": words.TAINTED,
        "counter_note": _COUNTER_NOTE,
        "method": (*_METHOD, words.DILATED) if report.twins else _METHOD,
    }
    html = environment.get_template("report.html.j2").render(
        **shared,
        marks=STATE_MARKS,
        drawings=_drawings(report),
        style=style_sheets(environment, "style.css"),
    )
    markdown = environment.get_template("report.md.j2").render(**shared)
    tidy = re.sub(r"\n{3,}", "\n\n", markdown).rstrip("\n") + "\n"
    targets = (folder / "report.html", folder / "report.md")
    write_texts(dict(zip(targets, (html, tidy), strict=True)))
    return targets


@functools.cache
def make_environment() -> jinja2.Environment:
    """The templates with their filters."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boardcluster.report"),
        autoescape=jinja2.select_autoescape(enabled_extensions=("html.j2",)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["zip"] = zip
    environment.filters["units"] = _units
    environment.filters["breakable"] = _breakable
    environment.filters["prose"] = _prose_html
    environment.filters["md"] = _markdown
    environment.filters["md_prose"] = _prose_markdown
    return environment


def style_sheets(environment: jinja2.Environment, *names: str) -> Markup:
    """Our own style sheets, one after the other."""
    loader = environment.loader
    texts = [loader.get_source(environment, name)[0] for name in names] if loader else []
    return Markup("\n".join(texts))  # noqa: S704 - our own files


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write files, each whole or not at all; their folders are made.

    Raises:
        StoreError: they cannot be written.
    """
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            # A name of undecodable bytes must not cost the report.
            temporary.write_text(text, encoding="utf-8", errors="replace")
            temporary.replace(path)
    except OSError as error:
        raise StoreError(
            f"the report cannot be written: {error}", hint="choose another folder for the report"
        ) from error


def _units(text: str) -> str:
    """Keep a number and its unit on one line."""
    return re.sub(r"(?<=\d) (?=(?:[kMGT]?i?B|ms|s|min|h|%)\b|%)", "\N{NO-BREAK SPACE}", text)


def _breakable(text: str) -> Markup:
    """Let a long identifier break where its parts meet, and a short one nowhere."""
    parts = re.split(r"(?<=/)|(?<=\bapplication_)", text.replace(" ", "\N{NO-BREAK SPACE}"))
    return Markup("<wbr>").join(parts)


def _prose_html(text: str) -> Markup:
    """Escape text and turn ```code``` spans into elements."""
    parts = re.split(r"`([^`]*)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


def _markdown(text: str) -> str:
    """Escape what Markdown would read as markup; a line break would end a table's row."""
    return _MD_SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def _prose_markdown(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if index % 2 else _escaped_part(part) for index, part in enumerate(parts))


def _escaped_part(text: str) -> str:
    return _MD_SPECIAL.sub(r"\\\1", text)


def _drawings(report: Report) -> list[list[_Drawing]]:
    return [
        [
            _draw(section, groups, f"figure-{place}-{part}")
            for part, groups in enumerate(_parts(section), start=1)
        ]
        for place, section in enumerate(report.times, start=1)
    ]


def _parts(section: TimeSection) -> Iterable[list[tuple[str, Sequence[Cell]]]]:
    """Cut a long section into drawings that fit a screen."""
    part: list[tuple[str, Sequence[Cell]]] = []
    for title, cells in section.groups:
        if part and sum(len(known) for _, known in part) + len(cells) > _ROWS_PER_DRAWING:
            yield part
            part = []
        part.append((title, cells))
    yield part


def _draw(
    section: TimeSection, groups: Sequence[tuple[str, Sequence[Cell]]], name: str
) -> _Drawing:
    said = "; ".join(
        f"{title} {words.engine_name(cell.engine)} mean {words.seconds(cell.mean_seconds)} s of"
        f" {words.count(cell.count, 'run')}".strip()
        for title, cells in groups
        for cell in cells
    )
    wide, narrow = (
        Markup(  # noqa: S704 - drawn by us; its texts are escaped where they are drawn
            draw_durations(
                groups,
                width_points=width_points,
                name=f"{name}-{width_points}",
                description=f"{section.title}: {said}",
                emulated=section.table.emulated,
                twins=twin_words(
                    result for _, cells in groups for cell in cells for result in cell.results
                ),
            )
        )
        for width_points in (WIDE_POINTS, NARROW_POINTS)
    )
    return _Drawing(wide, narrow)
