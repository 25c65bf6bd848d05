"""Whether the cluster beats one competent program on one node, and from how many workers on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from boardcluster.analysis.cost import Cost
from boardcluster.report import words
from boardcluster.report.parts import Part
from boardcluster.report.summary import Point
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["cost_part", "loses"]

_SOURCE = (
    "COST is the configuration that outperforms a single thread: the number of workers at which the"
    " cluster is faster than one competent program on one of its nodes (McSherry, Isard and Murray,"
    " HotOS 2015). The programs are well-known tools, measured by `boardcluster probe`."
)


def cost_part(costs: Sequence[Cost]) -> Part | None:
    """The section; None without a workload that such a program exists for."""
    if not costs:
        return None
    known = [row for row in costs if row.single_seconds is not None]
    table = _table(known)
    return Part(
        title="COST: the cluster against one program on one node",
        name="cost",
        text=(_SOURCE, *dict.fromkeys(row.verdict for row in costs)),
        tables=() if table is None else (table,),
        notes=tuple(dict.fromkeys(line for row in known for line in row.remarks)),
    )


def loses(costs: Sequence[Cost]) -> Point | None:
    """That one program on one node beats every number of workers; None where it beats none."""
    lost = [
        row for row in costs if row.single_seconds is not None and row.nodes is None and row.points
    ]
    if not lost:
        return None
    worst = max(lost, key=_ratio)
    emulated = " The nodes are emulated." if worst.emulated else ""
    return Point(
        name="One node without a cluster is faster",
        sentence=worst.verdict.rstrip("."),
        certainty=f"Time of the program: {worst.basis}.{emulated}",
        section="cost",
        emulated=worst.emulated,
    )


def _ratio(row: Cost) -> float:
    return min((point.ratio or 0.0 for point in row.points), default=0.0)


def _table(known: Sequence[Cost]) -> Table | None:
    rows = tuple(
        (
            words.workload_name(row.workload),
            words.engine_name(row.engine),
            row.label,
            format_bytes(row.size_bytes),
            f"{row.single_program}, {words.count(row.threads, 'thread')}",
            words.seconds(row.single_seconds or 0.0),
            row.basis,
            str(point.workers),
            str(point.count),
            words.seconds(point.mean_seconds),
            words.interval(point.interval_seconds),
            words.NONE if point.ratio is None else f"{point.ratio:.2f}",
            _needed(row),
        )
        for row in known
        for point in row.points
    )
    if not rows:
        return None
    table = Table(
        caption="The cluster against one program on one node",
        columns=(
            Column("Workload"),
            Column("Engine", Kind.ENGINE),
            Column("Settings"),
            Column("Input", Kind.NUMBER),
            Column("Program"),
            Column("Program (s)", Kind.NUMBER),
            Column("Basis"),
            Column("Workers", Kind.NUMBER),
            Column("Runs", Kind.NUMBER),
            Column("Cluster (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("Times the program's", Kind.NUMBER),
            Column("Workers needed"),
        ),
        rows=rows,
        emulated=any(row.emulated for row in known),
    )
    return table.without_empty()


def _needed(row: Cost) -> str:
    if row.nodes is not None:
        return str(row.nodes) if row.exact else f"at most {row.nodes}"
    lost = max((point.workers for point in row.points), default=0)
    if row.predicted_nodes is None or row.predicted_nodes <= lost:
        return "more than measured"  # a law that says less than what was measured says nothing
    if math.isinf(row.predicted_nodes):
        return "no number, by Amdahl's law"
    return f"{row.predicted_nodes:.1f}, by Amdahl's law"
