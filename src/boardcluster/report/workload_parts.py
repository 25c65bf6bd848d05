"""The section of a workload: times, nodes, size, factors, bytes, bounds, curves, energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.scaling import size_scalings
from boardcluster.factors import FACTORS
from boardcluster.report import words
from boardcluster.report.bounds import bounds_part
from boardcluster.report.efficiency_part import Declared, efficiency_part
from boardcluster.report.evidence import Evidence, key_of, representatives
from boardcluster.report.material import OTHER_WORK_WITH_A_FAULT, Material
from boardcluster.report.parts import Part, named, present
from boardcluster.report.plots import (
    intermediate,
    speed_up,
    times_by_factor,
    times_by_nodes,
    times_by_size,
)
from boardcluster.report.plots.cells import factor_words
from boardcluster.report.scaling_tables import effects_table, sizes_table, workers_table
from boardcluster.report.source import Source, configuration, workload_anchor
from boardcluster.report.times import times_part

__all__ = ["workload_sections"]

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
"""What has a figure of its own where cells differ in it, as each setting has; engines are in the
times."""


def workload_sections(material: Material) -> Iterator[Part]:
    """One section per workload that has a verified run; what took most time first."""
    spent: dict[str, float] = {}
    for cell in material.source.cells:
        spent[cell.workload] = spent.get(cell.workload, 0.0) + sum(cell.durations_seconds)
    for workload in sorted(spent, key=lambda workload: -spent[workload]):
        cells = material.source.of_workload(workload)
        alike = len({cell.configuration for cell in cells}) == 1
        shown = configuration(cells[0], cells) if alike else ""
        over = f" over {shown}" if shown else ""
        name = words.workload_name(workload)
        yield Part(
            title=f"{name}{over}",
            name=workload_anchor(workload),
            contents=name,
            parts=(times_part(material.source, cells, over), *_parts(material, cells)),
        )


def _parts(material: Material, cells: Sequence[Cell]) -> Iterator[Part]:
    """The parts of a workload for which there is anything to show."""
    source, evidence = material.source, material.evidence
    workload = cells[0].workload
    name = workload_anchor(workload)
    scalings = [row for row in material.scalings if row.configuration.workload == workload]
    effects = [row for row in material.effects if row.faster.workload == workload]
    factors = [
        factor
        for factor in (*_FACTORS, *sorted({key for cell in cells for key in cell.trial.settings}))
        if len({factor_words(cell, factor) for cell in cells}) > 1
        and not (factor == "fault" and cells[0].engine in OTHER_WORK_WITH_A_FAULT)
    ]
    by_factor = [row for factor in factors for row in times_by_factor(cells, factor)]
    found = (
        Part(
            title="By number of workers",
            name=f"{name}-workers",
            figures=named(
                (*times_by_nodes(cells, scalings), *speed_up(scalings)), f"{name}-workers"
            ),
            tables=present(workers_table(source, scalings)),
            paper=True,
        ),
        Part(
            title="By size of the input",
            name=f"{name}-sizes",
            figures=named(times_by_size(cells), f"{name}-sizes"),
            tables=present(sizes_table(source, size_scalings(cells))),
            paper=True,
        ),
        Part(
            title="Effect of changing one factor",
            name=f"{name}-effects",
            figures=named(by_factor, f"{name}-effects"),
            tables=present(effects_table(source, effects)),
            paper=True,
        ),
        Part(
            title="Intermediate data",
            name=f"{name}-intermediate",
            figures=named(intermediate(cells), f"{name}-intermediate"),
        ),
        bounds_part(source, cells, evidence, name=f"{name}-bounds"),
        *_curves(source, cells, evidence, name),
        efficiency_part(
            source,
            cells,
            Declared(cluster=material.cluster, probes=material.probes),
            name=f"{name}-worth",
        ),
    )
    return (part for part in found if not part.is_empty())


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
        seen = "" if result is runs[0] else " that have samples"
        said = (
            f"Run {attempt.name} took {seconds}. Among the runs of the slowest configuration on "
            f"{engine}{seen}, it is the one nearest the median. Shaded areas are phases."
        )
        yield Part(
            title=f"One run on {engine} over time",
            name=f"{name}-{result.trial.engine}-curves",
            text=(said,),
            figures=figures,
            link=page,
            link_words="Everything that its nodes did, on the page of the run" if page else "",
        )
