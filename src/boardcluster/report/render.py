"""Write a report: one HTML file that opens without a network, and the same in Markdown."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from boardcluster.analysis.watched import WatchStanding
from boardcluster.foreign import visible
from boardcluster.records import ClusterSpec, ProbeRun
from boardcluster.report import words
from boardcluster.report.evidence import Evidence
from boardcluster.report.latex import escape as latex_text
from boardcluster.report.latex import latex_table
from boardcluster.report.model import Report, report_of
from boardcluster.report.parallel_map import parallel_map
from boardcluster.report.plots import (
    NARROW_POINTS,
    WIDE_POINTS,
    Figure,
    csv_text,
    save,
    svg,
)
from boardcluster.report.plots.figure import Curves
from boardcluster.report.plots.output import write_files
from boardcluster.report.sections import CERTAINTIES
from boardcluster.report.source import Source
from boardcluster.report.tables import ReportTable
from boardcluster.tuning.summary import TuningSummary

__all__ = [
    "STATE_MARKS",
    "Written",
    "make_environment",
    "named_tables",
    "style_sheets",
    "write_source",
    "write_texts",
]

_FOLDED_ROWS = 16
"""Tables of more rows than this are folded until a reader opens them."""

_PRINTED_ROWS = 60
"""Folded tables of up to so many rows are printed all the same."""

STATE_MARKS = {"ok": "✓", "failed": "✕", "invalid": "✕", "running": "…", "pending": "…"}
_MANY_FIGURES = 60
"""From so many figures on, a tenth of a second each, they are drawn on every core."""
_MANY_SAVED = 8
"""From so many on, half a second each, they are drawn for print on every core."""
_MD_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A figure as the page has it: wide, for a phone, and its data as a ``data:`` link."""

    wide: Markup
    narrow: Markup
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The files of a report."""

    html: Path
    """The page."""
    markdown: Path
    """The same in Markdown."""
    data: tuple[Path, ...]
    """The numbers of each figure, and every run of each workload, as CSV."""
    tables: tuple[Path, ...]
    """Tables and the methods paragraph for LaTeX."""
    figures: tuple[Path, ...]
    """Drawings for print; empty unless they were asked for."""


def write_source(
    source: Source,
    *,
    cluster: ClusterSpec | None,
    folder: Path,
    evidence: Evidence | None = None,
    probes: Sequence[ProbeRun] = (),
    tunings: Sequence[TuningSummary] = (),
    watches: Sequence[WatchStanding] = (),
    figures: bool = False,
    follow: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Write ``report.html``, ``report.md``, ``data/`` and ``tables/``; earlier ones are replaced.

    The same records give the same bytes.

    Args:
        source: the records.
        cluster: the cluster's declaration.
        folder: where to write; made if there is none.
        evidence: what the telemetry of the runs gave.
        probes: runs of probes on the cluster's nodes, oldest first.
        tunings: what tunings found, oldest first.
        watches: how watches of the performance stand.
        figures: whether each figure is also written as SVG, PNG and PDF, about 0.5 s for each.
        follow: told what is drawn, how much of it is done and how much there is.

    Raises:
        StoreError: the folder cannot be written.
    """
    report = report_of(
        source, cluster=cluster, evidence=evidence, probes=probes, tunings=tunings, watches=watches
    )
    environment = make_environment()
    parts = list(report.walk())
    drawn = [figure for part in parts for figure in part.figures]
    files = {file.name: file.text for part in parts for file in part.files}
    shared = {
        "report": report,
        "emulated_text": words.emulated(report.twins),
        "insecure_text": words.INSECURE,
        "tainted_text": words.TAINTED,
        "certainties": CERTAINTIES,
    }
    html = environment.get_template("report.html.j2").render(
        **shared,
        marks=STATE_MARKS,
        drawings=dict(parallel_map(_draw_named, drawn, many=_MANY_FIGURES)),
        file_links={name: _link(text) for name, text in files.items()},
        style=style_sheets(environment, "style.css", "run.css", "report.css"),
    )
    markdown = environment.get_template("report.md.j2").render(**shared)
    tidy = re.sub(r"\n{3,}", "\n\n", markdown).rstrip("\n") + "\n"
    data = {folder / "data" / f"{figure.name}.csv": csv_text(figure) for figure in drawn}
    data |= {folder / "data" / name: text for name, text in files.items()}
    tables = {
        folder / "tables" / f"{name}.tex": latex_table(table)
        for name, table in named_tables(report).items()
    }
    for methods in (part.data for part in parts if part.block == "methods"):
        tables[folder / "tables" / "methods.tex"] = f"{latex_text(methods)}\n"
    written = Written(
        html=folder / "report.html",
        markdown=folder / "report.md",
        data=tuple(data),
        tables=tuple(tables),
        figures=_save(drawn, folder / "figures", follow) if figures else (),
    )
    write_texts({**data, **tables, written.html: html, written.markdown: tidy})
    return written


def named_tables(report: Report) -> dict[str, ReportTable]:
    """Tables that belong into a paper, by the stem of a file name."""
    mark = words.kind_mark(report.twins)
    return {
        table.stem or f"{part.name}{f'-{place}' if place else ''}": replace(table, mark=mark)
        for part in report.walk()
        if part.paper
        for place, table in enumerate(part.tables)
    }


def _save(
    figures: Sequence[Figure], folder: Path, follow: Callable[[str, int, int], None] | None
) -> tuple[Path, ...]:
    def tell(done: int, total: int) -> None:
        if follow is not None:
            follow("drawing figures for print", done, total)

    saved = parallel_map(
        functools.partial(save, folder=folder), figures, many=_MANY_SAVED, follow=tell
    )
    return tuple(path for paths in saved for path in paths)


@functools.cache
def make_environment() -> jinja2.Environment:
    """The templates with their filters."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boardcluster.report"),
        autoescape=jinja2.select_autoescape(enabled_extensions=("html.j2",)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals["folded_rows"] = _FOLDED_ROWS
    environment.globals["printed_rows"] = _PRINTED_ROWS
    environment.filters["zip"] = zip
    environment.filters["latex"] = latex_text
    environment.filters["units"] = _units
    environment.filters["breakable"] = _breakable
    environment.filters["lower_first"] = _lower_first
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
    files = {path: visible(text).encode() for path, text in texts.items()}
    write_files(files, "the report")


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
        Markup("<code>{}</code>").format(part) if index % 2 else escape(_units(part))
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


def _link(text: str) -> str:
    """A CSV as a ``data:`` link."""
    return "data:text/csv;charset=utf-8," + quote(text, safe=",: ()[]{}/;", errors="replace")


def _lower_first(text: str) -> str:
    """A title within a sentence; what is capital throughout stays."""
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _draw_named(figure: Figure) -> tuple[str, _Drawing]:
    return figure.name, _draw(figure)


def _draw(figure: Figure) -> _Drawing:
    link = _link(csv_text(figure))
    if isinstance(figure.body, Curves):
        # Its drawing takes the chart's name for its ids, which several runs have in common.
        chart = replace(figure.body.chart, name=figure.name)
        alone = replace(figure, body=Curves(chart=chart))
        return _Drawing(_markup(alone, WIDE_POINTS), Markup(""), link)
    return _Drawing(_markup(figure, WIDE_POINTS), _markup(figure, NARROW_POINTS), link)


def _markup(figure: Figure, width_points: int) -> Markup:
    name = f"{figure.name}-{width_points}"
    drawn = svg(figure, width_points=width_points, name=name)
    return Markup(drawn)  # noqa: S704 - drawn by us; its texts are escaped where they are drawn
