"""One row for each cell: the statistics over the runs of one configuration on one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from boardcluster.analysis import Cell, Figure, Interval, Untrusted, security_of, twin_words
from boardcluster.analysis.statistics import mean, mean_interval
from boardcluster.analysis.twins import dilation_of
from boardcluster.analysis.worth import watts_of
from boardcluster.records import EnergyMethod, Measurement, Result, Verdict
from boardcluster.report.export.frames import (
    Columns,
    Frame,
    Value,
    boolean,
    fields_of,
    high_of,
    integer,
    lift,
    low_of,
    number,
    objects,
    text,
    values_of,
)
from boardcluster.report.export.runs import EMULATED, TWIN
from boardcluster.report.export.settings import SETTINGS, TEXT_SETTINGS

__all__ = ["CELLS", "cell_frame", "mean_power_watts"]

_INTERVAL = "95 % interval of the mean by Student's t"
_BOOTSTRAP = "the same by the bootstrap, from 5 runs"
_Results: TypeAlias = Sequence[Result]


def _dilation(results: _Results) -> float | None:
    found = {dilation_of(row) for row in results}
    return found.pop() if len(found) == 1 else None


_CONFIGURATION: Columns[_Results] = (
    *lift(SETTINGS, lambda results: results[0].trial),
    text("security", "who could reach the cluster", lambda results: str(security_of(results[0]))),
    *lift(TEXT_SETTINGS, lambda results: results[0].trial),
    boolean(
        *EMULATED,
        lambda results: any(row.attempt and row.attempt.fingerprint.emulated for row in results),
    ),
    text(*TWIN, twin_words),
    number("dilation", "by how much nodes were slower; nothing if runs differ in it", _dilation),
)


def _metered(results: _Results) -> list[Measurement]:
    """Those runs whose energy is known."""
    return [
        row.measurement
        for row in results
        if row.measurement
        and row.measurement.energy
        and row.measurement.energy.energy_joules is not None
    ]


def _joules(results: _Results) -> list[float]:
    energies = (found.energy for found in _metered(results))
    return [energy.energy_joules or 0.0 for energy in energies if energy]


def _method(results: _Results) -> str:
    methods = {found.energy.method for found in _metered(results) if found.energy}
    modelled = EnergyMethod.MODELLED in methods
    return str(EnergyMethod.MODELLED if modelled else EnergyMethod.METERED) if methods else ""


def _watts(results: _Results) -> float | None:
    seconds = sum(found.duration_seconds for found in _metered(results))
    return sum(_joules(results)) / seconds if seconds else None


def _energy_edge(
    edge: Callable[[Interval | None], float | None],
) -> Callable[[_Results], float | None]:
    return lambda results: edge(mean_interval(joules)) if (joules := _joules(results)) else None


_ENERGY: Columns[_Results] = (
    integer("energy_runs", "runs whose energy is known", lambda rows: len(_metered(rows))),
    text("energy_method", "metered, or modelled if any of it is; empty without any", _method),
    number(
        "energy_mean_joules",
        "mean over the runs whose energy is known",
        lambda results: mean(joules) if (joules := _joules(results)) else None,
    ),
    number("energy_low_joules", _INTERVAL, _energy_edge(low_of)),
    number("energy_high_joules", _INTERVAL, _energy_edge(high_of)),
    number("power_mean_watts", "mean over the runs of their mean power", _watts),
)
_STATISTICS: Columns[Cell] = (
    integer(
        "setups", "different setups that it was measured on", lambda cell: len(cell.fingerprints)
    ),
    integer("runs", "runs that count", lambda cell: cell.count),
    integer(
        "runs_tainted", "how many of them are tainted", lambda cell: cell.counted(Verdict.TAINTED)
    ),
    integer(
        "runs_left_out",
        "verified runs that do not count, as they are tainted",
        lambda cell: len(cell.left_out),
    ),
    number("duration_mean_seconds", "arithmetic mean", lambda cell: cell.mean_seconds),
    number("duration_low_seconds", _INTERVAL, lambda cell: low_of(cell.interval_seconds)),
    number("duration_high_seconds", _INTERVAL, lambda cell: high_of(cell.interval_seconds)),
    number("duration_bootstrap_low_seconds", _BOOTSTRAP, lambda row: low_of(row.bootstrap_seconds)),
    number(
        "duration_bootstrap_high_seconds", _BOOTSTRAP, lambda row: high_of(row.bootstrap_seconds)
    ),
    number("duration_median_seconds", "median", lambda cell: cell.median_seconds),
    number("duration_least_seconds", "shortest", lambda cell: cell.minimum_seconds),
    number("duration_most_seconds", "longest", lambda cell: cell.maximum_seconds),
    number(
        "duration_deviation_seconds",
        "sample standard deviation",
        lambda cell: cell.deviation_seconds,
    ),
    number("variation_share", "deviation over mean", lambda cell: cell.variation),
    integer(
        "outliers",
        "runs beyond Tukey's fences; they count all the same",
        lambda cell: len(cell.outliers),
    ),
    number(
        "drift_correlation",
        "Spearman's, of durations with run order",
        lambda cell: cell.drift.correlation if cell.drift else None,
    ),
    number("drift_p", "its two-sided p", lambda cell: cell.drift.p_value if cell.drift else None),
    number(
        "throughput_bytes_per_second",
        "input of all runs over their time",
        lambda cell: cell.throughput_bytes_per_second,
    ),
    number(
        "intermediate_mean_bytes",
        "mean of what was written to local storage, final output not included",
        lambda cell: cell.mean_intermediate_bytes,
    ),
    *lift(_ENERGY, lambda cell: cell.results),
    objects("warnings", "what a reader of the mean must know", lambda cell: list(cell.warnings)),
)


def _figure(name: str) -> Columns[Cell]:
    of_cell: Columns[Figure] = (
        number(
            f"figure_mean_{name}",
            "mean of what the workload measured itself",
            lambda figure: figure.mean,
        ),
        number(
            f"figure_low_{name}",
            "95 % interval of that mean",
            lambda figure: low_of(figure.interval),
        ),
        number(
            f"figure_high_{name}",
            "95 % interval of that mean",
            lambda figure: high_of(figure.interval),
        ),
    )
    return lift(of_cell, lambda cell: cell.figures.get(name))


CELLS: Columns[Cell] = (
    *lift(_CONFIGURATION, lambda cell: cell.results),
    *_STATISTICS,
    *_figure("NAME"),
)
"""The columns of the table of cells, with three for all figures."""


def cell_frame(cells: Sequence[Cell], untrusted: Sequence[Untrusted] = ()) -> Frame:
    """Return one row for each cell, and one for each configuration of which no run counts.

    What workloads measure themselves is in ``figure_mean_NAME``, ``figure_low_NAME`` and
    ``figure_high_NAME``: mean and 95 % interval. Where a cell has one run, intervals are empty.

    Args:
        cells: the cells.
        untrusted: configurations without a run that counts; they have no statistics.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.figures)
    statistics: Columns[Cell] = (
        *_STATISTICS,
        *(column for name in names for column in _figure(name)),
    )

    def rows() -> Iterator[Sequence[Value]]:
        for cell in cells:
            yield (*values_of(_CONFIGURATION, cell.results), *values_of(statistics, cell))
        for row in untrusted:
            yield (*values_of(_CONFIGURATION, row.results), *_no_statistics(row, statistics))

    return Frame(
        name="cells", fields=(*fields_of(_CONFIGURATION), *fields_of(statistics)), rows=rows()
    )


def _no_statistics(row: Untrusted, columns: Columns[Cell]) -> Iterator[Value]:
    known: dict[str, Value] = {
        "setups": len({item.attempt.fingerprint for item in row.results if item.attempt}),
        "runs": 0,
        "runs_tainted": 0,
        "runs_left_out": len(row.results),
        "energy_runs": 0,
        "energy_method": "",
        "warnings": ["no valid run: --tainted lets these count"],
    }
    return (known.get(column.field.name) for column in columns)


def mean_power_watts(results: Sequence[Result]) -> float | None:
    """Mean over runs of their mean power; None where one of them has no energy."""
    found = [row.measurement for row in results if row.measurement is not None]
    watts = [watts_of(row.energy, row.duration_seconds) for row in found if row.energy is not None]
    known = [each for each in watts if each is not None]
    return mean(known) if known and len(known) == len(found) else None
