"""Whether the cluster beats one competent program on one node, and from how many workers on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from boardcluster.analysis.cost import Cost, CostPoint
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import KeyPoint, Part, present
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

__all__ = ["cost_part", "cost_section", "loses"]

_ALONE = 1.10
"""One run that took less than so many times as long may have been slower by chance."""

_SOURCE = (
    "COST, the configuration that outperforms a single thread, is the number of workers at which"
    " the cluster becomes faster than one competent program on one of its nodes (McSherry, Isard"
    " and Murray, HotOS 2015). The programs are well-known tools, measured by `boardcluster probe`."
)


def cost_section(material: Material) -> Iterator[Part]:
    """The section, where there are workloads that such a program exists for."""
    part = cost_part(material.costs)
    if part is not None:
        yield part


def cost_part(costs: Sequence[Cost]) -> Part | None:
    """The same from costs; None without any."""
    if not costs:
        return None
    known = [row for row in costs if row.single_seconds is not None]
    return Part(
        title="COST: the cluster against one program on one node",
        name="cost",
        contents="COST",
        text=(_SOURCE, *dict.fromkeys(row.verdict for row in costs)),
        tables=present(_table(known)),
        paper=True,
        notes=tuple(dict.fromkeys(line for row in known for line in row.remarks)),
    )


def loses(costs: Sequence[Cost]) -> KeyPoint | None:
    """That one program on one node beats every number of workers; None where no runs show that."""
    lost = [
        row
        for row in costs
        if row.single_seconds is not None and row.nodes is None and row.points
        if not any(_reaches(point, row.single_seconds) for point in row.points)
    ]
    if not lost:
        return None
    worst = max(lost, key=_ratio)
    emulated = " The nodes are emulated." if worst.emulated else ""
    return KeyPoint(
        name="One node without a cluster is faster",
        sentence=worst.verdict.rstrip("."),
        certainty=f"Basis of the program's time: {worst.basis}.{emulated}",
        section="cost",
        emulated=worst.emulated,
    )


def _reaches(point: CostPoint, seconds: float) -> bool:
    """Whether the cluster may be as fast as the program; one run may be 10 % slower by chance."""
    if point.interval_seconds is None:
        return point.mean_seconds < _ALONE * seconds
    return point.interval_seconds.low <= seconds


def _ratio(row: Cost) -> float:
    return min((point.ratio or 0.0 for point in row.points), default=0.0)


_Row: TypeAlias = tuple[Cost, CostPoint]

_GETTERS: Getters[_Row] = (
    Getter("Workload", lambda row: words.workload_name(row[0].workload)),
    Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
    Getter("Settings", lambda row: row[0].label),
    Getter("Input", lambda row: format_bytes(row[0].size_bytes), Display.NUMBER),
    Getter("Program", lambda row: _program(row[0])),
    Getter("Program (s)", lambda row: words.seconds(row[0].single_seconds or 0.0), Display.NUMBER),
    Getter("Basis", lambda row: row[0].basis),
    Getter("Workers", lambda row: str(row[1].workers), Display.NUMBER),
    Getter("Runs", lambda row: str(row[1].count), Display.NUMBER),
    Getter("Cluster (s)", lambda row: words.seconds(row[1].mean_seconds), Display.NUMBER),
    Getter(
        "95 % interval (s)", lambda row: words.interval(row[1].interval_seconds), Display.NUMBER
    ),
    Getter("Times the program's", lambda row: _times(row[1]), Display.NUMBER),
    Getter("Workers needed", lambda row: _needed(row[0])),
)


def _table(known: Sequence[Cost]) -> ReportTable | None:
    return tabulate(
        [(row, point) for row in known for point in row.points],
        _GETTERS,
        caption="The cluster against one program on one node",
        emulated=any(row.emulated for row in known),
    )


def _program(row: Cost) -> str:
    return f"{row.single_program}, {words.count(row.threads, 'thread')}"


def _times(point: CostPoint) -> str:
    return words.NONE if point.ratio is None else f"{point.ratio:.2f}"


def _needed(row: Cost) -> str:
    if row.nodes is not None:
        return str(row.nodes) if row.exact else f"at most {row.nodes}"
    lost = max((point.workers for point in row.points), default=0)
    if row.predicted_nodes is None or row.predicted_nodes <= lost:
        return "more than measured"  # a prediction below what was measured is refuted
    if math.isinf(row.predicted_nodes):
        return "no number, by Amdahl's law"
    return f"{row.predicted_nodes:.1f}, by Amdahl's law"
