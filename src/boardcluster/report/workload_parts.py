"""What stands below a workload's times: nodes, size, one thing else, bytes, bounds, curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boardcluster.analysis import Cell
from boardcluster.analysis.scaling import FactorEffect, NodeScaling, size_scalings
from boardcluster.factors import FACTORS
from boardcluster.report import words
from boardcluster.report.bounds import bounds_part
from boardcluster.report.evidence import Evidence, key_of, representatives
from boardcluster.report.parts import Part, named
from boardcluster.report.plots import (
    intermediate,
    speed_up,
    times_by_factor,
    times_by_nodes,
    times_by_size,
)
from boardcluster.report.plots.cells import factor_words
from boardcluster.report.scaling_tables import effects_table, sizes_table, workers_table
from boardcluster.report.source import Source, workload_anchor
from boardcluster.report.tables import Table
from boardcluster.report.worth_part import Declared, worth_part

__all__ = ["Analysed", "workload_parts"]

_FACTORS = (
    *("board", "medium"),
    *(
        factor.name
        for factor in FACTORS
        if not factor.changes_work
        and factor.kind is not dict
        and factor.name not in ("engine", "workers")
    ),
)
"""What has a figure of its own where cells differ in it, and so has each setting; engines are in
the times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """What was computed once over all workloads.

    Attributes:
        scalings: how cells scale with their number of workers.
        effects: what one other thing changes.
        evidence: what telemetry gave.
        declared: what is declared of the cluster.
    """

    scalings: tuple[NodeScaling, ...]
    effects: tuple[FactorEffect, ...]
    evidence: Evidence
    declared: Declared


def workload_parts(source: Source, workload: str, analysed: Analysed) -> tuple[Part, ...]:
    """The parts of a workload for which there is anything to show."""
    cells = [cell for cell in source.cells if cell.workload == workload]
    name = workload_anchor(workload)
    scalings = [row for row in analysed.scalings if row.configuration.workload == workload]
    effects = [row for row in analysed.effects if row.faster.workload == workload]
    factors = [
        factor
        for factor in (*_FACTORS, *sorted({key for cell in cells for key in cell.trial.settings}))
        if len({factor_words(cell, factor) for cell in cells}) > 1
    ]
    found = (
        Part(
            title="By number of workers",
            name=f"{name}-workers",
            figures=named((*times_by_nodes(cells), *speed_up(scalings)), f"{name}-workers"),
            tables=_there(workers_table(source, scalings)),
        ),
        Part(
            title="By size of the input",
            name=f"{name}-sizes",
            figures=named(times_by_size(cells), f"{name}-sizes"),
            tables=_there(sizes_table(source, size_scalings(cells))),
        ),
        Part(
            title="What one thing alone changes",
            name=f"{name}-effects",
            figures=named(
                [row for factor in factors for row in times_by_factor(cells, factor)],
                f"{name}-effects",
            ),
            tables=_there(effects_table(source, effects)),
        ),
        Part(
            title="Intermediate data",
            name=f"{name}-intermediate",
            figures=named(intermediate(cells), f"{name}-intermediate"),
        ),
        bounds_part(source, cells, analysed.evidence, name=f"{name}-bounds"),
        *_curves(source, cells, analysed.evidence, name),
        worth_part(source, cells, analysed.declared, name=f"{name}-worth"),
    )
    return tuple(part for part in found if not part.is_empty())


def _there(table: Table | None) -> tuple[Table, ...]:
    return () if table is None else (table,)


def _curves(source: Source, cells: Sequence[Cell], evidence: Evidence, name: str) -> Iterator[Part]:
    """What the nodes did in one run of each engine, the one nearest its cell's median."""
    for runs in representatives(cells):
        result = next((item for item in runs if key_of(item) in evidence.curves), runs[0])
        attempt = result.attempt
        figures = evidence.curves.get(key_of(result), ())
        if attempt is None or result.measurement is None or not figures:
            continue
        engine = words.engine_name(result.trial.engine)
        seconds = words.seconds_with_unit(result.measurement.duration_seconds)
        page = source.page_of(result)
        said = (
            f"Run {attempt.name} took {seconds}; of the slowest configuration on {engine} it"
            " is the one nearest the median. Shaded parts are phases."
        )
        yield Part(
            title=f"One run on {engine} over time",
            name=f"{name}-{result.trial.engine}-curves",
            text=(said,),
            figures=figures,
            link=page,
            link_words="Everything its nodes did, on the page of the run" if page else "",
        )
