"""What a report shows, found by the name of its part."""

from __future__ import annotations

from typing import Any

from boardcluster.report.model import Report
from boardcluster.report.parts import Part
from boardcluster.report.plots.figure import Durations
from boardcluster.report.tables import Table

__all__ = ["block", "groups", "part", "tables", "times", "times_part"]


def part(report: Report, name: str) -> Part:
    """The part of a name."""
    return next(row for row in report.walk() if row.name == name)


def tables(report: Report, name: str) -> tuple[Table, ...]:
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


def times(report: Report) -> Table:
    """The table of these times."""
    return times_part(report).tables[0]
