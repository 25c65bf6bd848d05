"""What a report shows, found by the name of its part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boardcluster.records import Campaign, ClusterSpec, Result
from boardcluster.report import write_source
from boardcluster.report.model import Report, report_of
from boardcluster.report.parts import Part
from boardcluster.report.plots.figure import Durations
from boardcluster.report.source import Source
from boardcluster.report.tables import ReportTable

__all__ = [
    "block",
    "build_report",
    "groups",
    "part",
    "tables",
    "times",
    "times_part",
    "write_report",
]


def build_report(
    results: Sequence[Result],
    campaigns: Sequence[Campaign],
    *,
    cluster: ClusterSpec | None,
    tainted: bool = False,
    pages: Mapping[tuple[str, int], str] | None = None,
) -> Report:
    """The report of results without their telemetry."""
    return report_of(Source.of(results, campaigns, tainted=tainted, pages=pages), cluster=cluster)


def write_report(
    results: Sequence[Result],
    campaigns: Sequence[Campaign],
    *,
    cluster: ClusterSpec | None,
    folder: Path,
    tainted: bool = False,
    pages: Mapping[tuple[str, int], str] | None = None,
) -> tuple[Path, Path]:
    """Write the report of results without their telemetry; return its HTML and its Markdown."""
    source = Source.of(results, campaigns, tainted=tainted, pages=pages)
    written = write_source(source, cluster=cluster, folder=folder)
    return written.html, written.markdown


def part(report: Report, name: str) -> Part:
    """The part of a name."""
    return next(row for row in report.walk() if row.name == name)


def tables(report: Report, name: str) -> tuple[ReportTable, ...]:
    """The tables of a part; none if there is no such part."""
    return next((row.tables for row in report.walk() if row.name == name), ())


def block(report: Report, name: str) -> Any:
    """What the macro of a part shows; empty if there is no such part."""
    return next((row.data for row in report.walk() if row.name == name), ())


def times_part(report: Report) -> Part:
    """The times of the first workload."""
    return next(row for row in report.walk() if row.name.endswith("-times"))


def groups(report: Report) -> list[str]:
    """The titles of the groups in the figure of these times."""
    body = times_part(report).figures[0].body
    assert isinstance(body, Durations)
    return [title for title, _ in body.groups]


def times(report: Report) -> ReportTable:
    """The table of these times."""
    return times_part(report).tables[0]
