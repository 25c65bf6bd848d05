"""Tables of how time changes with workers, with size, and with one thing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boardcluster.analysis import Cell
from boardcluster.analysis.ratios import Ratio, paired
from boardcluster.analysis.scaling import (
    FactorEffect,
    Fit,
    NodePoint,
    NodeScaling,
    SizeFit,
    SizeScaling,
)
from boardcluster.records import Engine, Result
from boardcluster.report import words
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["effects_table", "ratio_interval", "sizes_table", "workers_table"]

_MOST_EFFECTS = 60


def workers_table(source: Source, scalings: Sequence[NodeScaling]) -> Table | None:
    """Speed-up and efficiency by number of workers, with the fits below; None without any."""
    if not scalings:
        return None
    cells = [cell for row in scalings for cell in row.cells]
    table = Table(
        caption=f"{words.workload_name(cells[0].workload)}: speed-up and efficiency by number of"
        " workers",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Configuration"),
            Column("Workers", Kind.NUMBER),
            Column("Input", Kind.NUMBER),
            Column("Runs", Kind.NUMBER),
            Column("Mean (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("Speed-up", Kind.NUMBER),
            Column("95 % interval of it", Kind.NUMBER),
            Column("Efficiency", Kind.NUMBER),
        ),
        rows=tuple(
            (
                words.engine_name(scaling.engine),
                _common(scaling, cells),
                *_point(point, scaling.base_workers),
            )
            for scaling in scalings
            for point in scaling.points
        ),
        emulated=source.is_emulated(_results(cells)),
        note=" ".join(_workers_note(row, scalings) for row in scalings),
    )
    return table.without_constant("Configuration", "Input").without_empty()


def _common(scaling: NodeScaling, cells: Sequence[Cell]) -> str:
    """What the cells of a scaling have in common, and others have not."""
    kind = "work that grows with the workers" if scaling.scaled else "the same work"
    one = scaling.cells[0]
    profile = one.profile if len({cell.profile for cell in cells}) > 1 else ""
    parts = (kind, f"profile {profile}" if profile else "", one.label)
    return ", ".join(part for part in parts if part)


def _point(point: NodePoint, base_workers: int) -> tuple[str, ...]:
    return (
        str(point.workers),
        format_bytes(point.size_bytes) if point.size_bytes else words.NONE,
        str(point.count),
        words.seconds(point.mean_seconds),
        words.interval(point.interval_seconds),
        f"{point.speed_up.value:.2f}",
        words.NONE if point.workers == base_workers else ratio_interval(point.speed_up),
        f"{100 * point.efficiency:.0f} %",
    )


def ratio_interval(ratio: Ratio) -> str:
    """The 95 % interval of a ratio, or a dash."""
    if ratio.interval is None:
        return words.NONE
    return f"{ratio.interval.low:.2f} to {ratio.interval.high:.2f}"


def _workers_note(scaling: NodeScaling, scalings: Sequence[NodeScaling]) -> str:
    name = ""
    if len(scalings) > 1:
        cells = [cell for row in scalings for cell in row.cells]
        name = f"{words.engine_name(scaling.engine)}, {_common(scaling, cells)}: "
    base = scaling.base_workers
    against = words.count(base, "worker")
    parts = [f"{name}speed-up is against {against}"]
    if base > 1:
        parts[0] += ", not one, so that it says nothing of what one worker would take"
    fit = scaling.fit
    if fit is not None:
        parts.append(_fit(fit))
    if scaling.differences:
        parts.append(f"beside the workers there differ: {'; '.join(scaling.differences)}")
    return "; ".join(parts) + "."


def _fit(fit: Fit) -> str:
    said = f"{fit.law}'s law fits a serial share of {100 * fit.serial_share:.1f} %"
    said += f" and {words.seconds_with_unit(fit.one_worker_seconds)} on one worker"
    if fit.largest_speed_up is not None:
        said += f", so that no number of workers is more than {fit.largest_speed_up:.1f} times as"
        said += " fast as one"
    if fit.exact:
        return f"{said}; through two points it always goes, so nothing tests it"
    furthest = max((abs(share) for share in fit.residuals), default=0.0)
    said += f" (residuals up to {100 * furthest:.1f} %"
    return said + (f", R² {fit.r_squared:.3f})" if fit.r_squared is not None else ")")


def sizes_table(source: Source, scalings: Sequence[SizeScaling]) -> Table | None:
    """Time and throughput by size of the input; None without any."""
    if not scalings:
        return None
    cells = [cell for row in scalings for cell in row.cells]
    table = Table(
        caption=f"{words.workload_name(cells[0].workload)}: time by size of the input",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Configuration"),
            Column("Input", Kind.NUMBER),
            Column("Runs", Kind.NUMBER),
            Column("Mean (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("MB/s", Kind.NUMBER),
        ),
        rows=tuple(
            (
                words.engine_name(scaling.engine),
                configuration(scaling.cells[0], cells, size=False),
                format_bytes(point.size_bytes),
                str(point.count),
                words.seconds(point.mean_seconds),
                words.interval(point.interval_seconds),
                words.NONE
                if point.throughput_bytes_per_second is None
                else f"{point.throughput_bytes_per_second / 1e6:.2f}",
            )
            for scaling in scalings
            for point in scaling.points
        ),
        emulated=source.is_emulated(_results(cells)),
        note=" ".join(
            f"{words.engine_name(row.engine)}"
            f"{_comma(configuration(row.cells[0], cells, size=False))}: {_size_fit(row.fit)}."
            for row in scalings
        ),
    )
    return table.without_constant("Configuration").without_empty()


def _comma(text: str) -> str:
    return f", {text}" if text else ""


def _size_fit(fit: SizeFit) -> str:
    start = words.seconds_with_unit(fit.start_seconds)
    if fit.throughput_bytes_per_second is None:
        line = f"{start} whatever the size"
    else:
        rate = f"{fit.throughput_bytes_per_second / 1e6:.2f} MB/s"
        line = f"{start} to start and then {rate}"
    said = f"a straight line gives {line}; time grows as the size to the power {fit.exponent:.2f}"
    if fit.exact:
        return f"{said} (two points, so nothing tests it)"
    furthest = max((abs(share) for share in fit.residuals), default=0.0)
    return f"{said} (residuals up to {100 * furthest:.1f} %)"


def effects_table(source: Source, effects: Sequence[FactorEffect]) -> Table | None:
    """What one other thing changes, the largest first; None without any."""
    if not effects:
        return None
    ordered = sorted(effects, key=lambda row: (-row.ratio.is_shown, -row.ratio.value))
    shown = ordered[:_MOST_EFFECTS]
    cells = [cell for row in effects for cell in (row.slower, row.faster)]
    cut = len(effects) - len(shown)
    notes = [f"{words.count(cut, 'smaller pair')} left out."] if cut else []
    table = Table(
        caption=f"{words.workload_name(cells[0].workload)}: what changes with one thing alone",
        columns=(
            Column("What differs"),
            Column("Faster"),
            Column("Slower"),
            Column("Else"),
            Column("Times as fast", Kind.NUMBER),
            Column("95 % interval", Kind.NUMBER),
            Column("Interval from"),
            Column("p (paired t)", Kind.NUMBER),
            Column("p (Wilcoxon)", Kind.NUMBER),
            Column("Difference"),
        ),
        rows=tuple(_effect(row, source.cells) for row in shown),
        emulated=source.is_emulated(_results(cells)),
        note=" ".join(notes),
    )
    return table.without_empty()


def _effect(row: FactorEffect, cells: Sequence[Cell]) -> tuple[str, ...]:
    engine = "" if row.factor == "engine" else words.engine_name(row.faster.engine)
    which = configuration(row.faster, [row.faster])
    workers = words.count(row.faster.workers, "worker")
    several = len({cell.workers for cell in cells}) > 1
    ratio = row.ratio
    pairs = f", {words.count(ratio.pairs, 'pair')}" if ratio.pairs > 1 else ""
    test = paired(row.slower, row.faster) if ratio.pairs else None
    said = "shown" if ratio.is_shown else "not shown"
    if row.differences:
        said += f"; also differ: {'; '.join(row.differences)}"
    return (
        row.factor,
        _named(row.factor, row.faster_value),
        _named(row.factor, row.slower_value),
        ", ".join(part for part in (engine, which, workers if several else "") if part),
        f"{ratio.value:.2f}",
        ratio_interval(ratio),
        f"{ratio.method}{pairs}" if ratio.interval else ratio.reason,
        _p(test.p_t if test else None),
        _p(test.p_wilcoxon if test else None),
        said if ratio.interval else "one run cannot show one",
    )


def _p(value: float | None) -> str:
    return words.NONE if value is None else f"{value:.2g}"


def _named(factor: str, value: str) -> str:
    return words.engine_name(Engine(value)) if factor == "engine" else value


def _results(cells: Iterable[Cell]) -> list[Result]:
    return [item for cell in cells for item in cell.results]
