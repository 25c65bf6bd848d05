"""One row for each cell: the statistics over the runs of one configuration on one engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis import Cell, Interval, Untrusted, security_of, twin_words
from boardcluster.analysis.statistics import mean, mean_interval
from boardcluster.analysis.twins import dilation_of
from boardcluster.analysis.worth import watts_of
from boardcluster.records import EnergyMethod, Result, Verdict
from boardcluster.report.export.frames import Field, Frame, Kind, Value
from boardcluster.report.export.settings import (
    SETTINGS,
    TEXT_SETTINGS,
    settings_values,
    text_settings_values,
)

__all__ = ["cell_frame", "mean_power_watts"]

_FIELDS = (
    *SETTINGS,
    Field("security", Kind.TEXT, "who could reach the cluster"),
    *TEXT_SETTINGS,
    Field("emulated", Kind.BOOLEAN, "whether nodes are namespaces on one machine, not boards"),
    Field("twin", Kind.TEXT, "boards that emulated nodes stand for, and the dilation; else empty"),
    Field("dilation", Kind.NUMBER, "by how much nodes were slower; nothing if runs differ in it"),
    Field("setups", Kind.INTEGER, "different setups that it was measured on"),
    Field("runs", Kind.INTEGER, "runs that count"),
    Field("runs_tainted", Kind.INTEGER, "how many of them are tainted"),
    Field("runs_left_out", Kind.INTEGER, "verified runs that do not count, as they are tainted"),
    Field("duration_mean_seconds", Kind.NUMBER, "arithmetic mean"),
    Field("duration_low_seconds", Kind.NUMBER, "95 % interval of the mean by Student's t"),
    Field("duration_high_seconds", Kind.NUMBER, "95 % interval of the mean by Student's t"),
    Field("duration_bootstrap_low_seconds", Kind.NUMBER, "the same by the bootstrap, from 5 runs"),
    Field("duration_bootstrap_high_seconds", Kind.NUMBER, "the same by the bootstrap, from 5 runs"),
    Field("duration_median_seconds", Kind.NUMBER, "median"),
    Field("duration_least_seconds", Kind.NUMBER, "shortest"),
    Field("duration_most_seconds", Kind.NUMBER, "longest"),
    Field("duration_deviation_seconds", Kind.NUMBER, "sample standard deviation"),
    Field("variation_share", Kind.NUMBER, "deviation over mean"),
    Field("outliers", Kind.INTEGER, "runs beyond Tukey's fences; they count all the same"),
    Field("drift_correlation", Kind.NUMBER, "Spearman's, of durations with run order"),
    Field("drift_p", Kind.NUMBER, "its two-sided p"),
    Field("throughput_bytes_per_second", Kind.NUMBER, "input of all runs over their time"),
    Field("intermediate_mean_bytes", Kind.NUMBER, "mean of what was written beside the output"),
    Field("energy_runs", Kind.INTEGER, "runs whose energy is known"),
    Field("energy_method", Kind.TEXT, "metered, or modelled if any of it is; empty without any"),
    Field("energy_mean_joules", Kind.NUMBER, "mean over the runs whose energy is known"),
    Field("energy_low_joules", Kind.NUMBER, "95 % interval of the mean by Student's t"),
    Field("energy_high_joules", Kind.NUMBER, "95 % interval of the mean by Student's t"),
    Field("power_mean_watts", Kind.NUMBER, "mean over the runs of their mean power"),
    Field("warnings", Kind.OBJECT, "what a reader of the mean must know"),
)


def cell_frame(cells: Sequence[Cell], untrusted: Sequence[Untrusted] = ()) -> Frame:
    """Return one row for each cell, and one for each configuration of which no run counts.

    What workloads measure themselves is in ``figure_mean_NAME``, ``figure_low_NAME`` and
    ``figure_high_NAME``: mean and 95 % interval. Where a cell has one run, intervals are empty.

    Args:
        cells: the cells.
        untrusted: configurations without a run that counts; they have no statistics.
    """
    figures = tuple(dict.fromkeys(name for cell in cells for name in cell.figures))
    fields = (
        *_FIELDS,
        *(
            Field(f"figure_{part}_{name}", Kind.NUMBER, meaning)
            for name in figures
            for part, meaning in (
                ("mean", "mean of what the workload measured itself"),
                ("low", "95 % interval of that mean"),
                ("high", "95 % interval of that mean"),
            )
        ),
    )

    def rows() -> Iterator[Sequence[Value]]:
        for cell in cells:
            yield (*_values(cell), *(part for name in figures for part in _figure(cell, name)))
        for row in untrusted:
            yield (*_untrusted_values(row), *(None for _ in range(3 * len(figures))))

    return Frame(name="cells", fields=fields, rows=rows())


def mean_power_watts(results: Sequence[Result]) -> float | None:
    """Mean over runs of their mean power; None where one of them has no energy."""
    found = [row.measurement for row in results if row.measurement is not None]
    watts = [watts_of(row.energy, row.duration_seconds) for row in found if row.energy is not None]
    known = [each for each in watts if each is not None]
    return mean(known) if known and len(known) == len(found) else None


def _values(cell: Cell) -> tuple[Value, ...]:
    return (
        *_configuration(cell.results),
        len(cell.fingerprints),
        cell.count,
        cell.counted(Verdict.TAINTED),
        len(cell.left_out),
        cell.mean_seconds,
        *_limits(cell.interval_seconds),
        *_limits(cell.bootstrap_seconds),
        cell.median_seconds,
        cell.minimum_seconds,
        cell.maximum_seconds,
        cell.deviation_seconds,
        cell.variation,
        len(cell.outliers),
        cell.drift.correlation if cell.drift else None,
        cell.drift.p_value if cell.drift else None,
        cell.throughput_bytes_per_second,
        cell.mean_intermediate_bytes,
        *_energy(cell.results),
        list(cell.warnings),
    )


def _untrusted_values(row: Untrusted) -> tuple[Value, ...]:
    configuration = _configuration(row.results)
    known: dict[str, Value] = {
        "setups": len({item.attempt.fingerprint for item in row.results if item.attempt}),
        "runs": 0,
        "runs_tainted": 0,
        "runs_left_out": len(row.results),
        "energy_runs": 0,
        "energy_method": "",
        "warnings": ["no valid run: --tainted lets these count"],
    }
    rest = _FIELDS[len(configuration) :]
    return (*configuration, *(known.get(field.name) for field in rest))


def _configuration(results: Sequence[Result]) -> tuple[Value, ...]:
    first = results[0]
    trial = first.trial
    dilations = {dilation_of(row) for row in results}
    return (
        *settings_values(trial),
        str(security_of(first)),
        *text_settings_values(trial),
        any(row.attempt is not None and row.attempt.fingerprint.emulated for row in results),
        twin_words(results),
        dilations.pop() if len(dilations) == 1 else None,
    )


def _energy(results: Sequence[Result]) -> tuple[Value, ...]:
    known = [
        (row.measurement, row.measurement.energy)
        for row in results
        if row.measurement and row.measurement.energy
    ]
    sums = [(found, energy) for found, energy in known if energy.energy_joules is not None]
    if not sums:
        return (0, "", None, None, None, None)
    joules = [energy.energy_joules or 0.0 for _, energy in sums]
    modelled = any(energy.method is EnergyMethod.MODELLED for _, energy in sums)
    return (
        len(sums),
        str(EnergyMethod.MODELLED if modelled else EnergyMethod.METERED),
        mean(joules),
        *_limits(mean_interval(joules)),
        sum(joules) / sum(found.duration_seconds for found, _ in sums),
    )


def _limits(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _figure(cell: Cell, name: str) -> tuple[Value, ...]:
    figure = cell.figures.get(name)
    if figure is None:
        return (None, None, None)
    return (figure.mean, *_limits(figure.interval))
