"""Tables of how time changes with workers, with size, and with any other factor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference import MeasuredRatio
from boardcluster.analysis.scaling import (
    FactorEffect,
    Fit,
    NodePoint,
    NodeScaling,
    SizeFit,
    SizePoint,
    SizeScaling,
)
from boardcluster.factors import FACTORS_BY_NAME, setting_value
from boardcluster.report import words
from boardcluster.report.ratio_words import family_words, outcome, work_size
from boardcluster.report.ratio_words import interval as interval_words
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

__all__ = ["effects_table", "ratio_interval", "sizes_table", "workers_table"]

_MOST_EFFECTS = 60


def workers_table(source: Source, scalings: Sequence[NodeScaling]) -> ReportTable | None:
    """Speed-up and efficiency by number of workers, with the fits below; None without any."""
    cells = [cell for row in scalings for cell in row.cells]
    getters: Getters[tuple[NodeScaling, NodePoint]] = (
        Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
        Getter("Configuration", lambda row: _common(row[0], scalings)),
        Getter("Workers", lambda row: str(row[1].workers), Display.NUMBER),
        Getter("Input", lambda row: words.size(row[1].size_bytes), Display.NUMBER),
        Getter("Runs", lambda row: str(row[1].count), Display.NUMBER),
        Getter("Mean (s)", lambda row: words.seconds(row[1].mean_seconds), Display.NUMBER),
        Getter(
            "95 % interval (s)", lambda row: words.interval(row[1].interval_seconds), Display.NUMBER
        ),
        Getter("Speed-up", lambda row: f"{row[1].speed_up.value:.2f}", Display.NUMBER),
        Getter("95 % interval of speed-up", lambda row: _speed_up_interval(*row), Display.NUMBER),
        Getter("Efficiency", lambda row: f"{100 * row[1].efficiency:.0f} %", Display.NUMBER),
    )
    return tabulate(
        [(row, point) for row in scalings for point in row.points],
        getters,
        caption=f"{_name(cells)}: speed-up and efficiency by number of workers",
        emulated=source.are_emulated(cells),
        note=" ".join(_workers_note(row, scalings) for row in scalings),
        hide=("Configuration", "Input"),
    )


def _name(cells: Sequence[Cell]) -> str:
    return words.workload_name(cells[0].workload) if cells else ""


def _common(scaling: NodeScaling, scalings: Sequence[NodeScaling]) -> str:
    """What the cells of a scaling have in common, and others have not."""
    kind = "work that grows with the workers" if scaling.scaled else "the same work"
    one = scaling.cells[0]
    several = len({cell.profile for row in scalings for cell in row.cells}) > 1
    sizes = {work_size(row) for row in scalings if row.scaled == scaling.scaled}
    size = work_size(scaling) if len(sizes) > 1 else ""
    parts = (kind, size, f"profile {one.profile}" if several else "", one.label)
    return ", ".join(part for part in parts if part)


def _speed_up_interval(scaling: NodeScaling, point: NodePoint) -> str:
    is_base = point.workers == scaling.base_workers
    return words.NONE if is_base else ratio_interval(point.speed_up)


def ratio_interval(ratio: MeasuredRatio) -> str:
    """The 95 % interval of a ratio, or a dash."""
    if ratio.interval is None:
        return words.NONE
    return f"{ratio.interval.low:.2f} to {ratio.interval.high:.2f}"


def _workers_note(scaling: NodeScaling, scalings: Sequence[NodeScaling]) -> str:
    name = ""
    if len(scalings) > 1:
        name = f"{words.engine_name(scaling.engine)}, {_common(scaling, scalings)}: "
    base = scaling.base_workers
    parts = [f"{name}speed-up is relative to {words.count(base, 'worker')}"]
    if base > 1:
        parts[0] += ", so it does not show how long one worker would take"
    if scaling.fit is not None:
        parts.append(_fit(scaling.fit, scaling))
    if scaling.differences:
        parts.append(f"besides the workers, these differ: {'; '.join(scaling.differences)}")
    parts += _older(scaling.older)
    return "; ".join(parts) + "."


def _older(count: int) -> list[str]:
    """Say that means are left out because later ones are of another setup; nothing without any."""
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [f"{words.count(count, 'earlier mean')} of another setup {verb} left out"]


def _fit(fit: Fit, scaling: NodeScaling) -> str:
    most = scaling.points[-1].workers
    if scaling.bends_back:
        return (
            f"this set bends back: {most} workers take longer than"
            f" {words.count(scaling.fastest_workers, 'worker')}, which {fit.law}'s law cannot"
            " describe, so no limit of the speed-up follows from it"
        )
    if fit.is_refuted:
        return (
            f"{fit.law}'s law does not fit these times (lack of fit, p"
            f" {words.p_value(fit.p_fit or 0.0)}), so no limit of the speed-up follows from it"
        )
    said = f"{fit.law}'s law fits with a serial share of {100 * fit.serial_share:.1f} %"
    if fit.serial_interval is not None:
        low, high = 100 * fit.serial_interval.low, 100 * fit.serial_interval.high
        said += f" (95 % interval {low:.1f} to {high:.1f} %)"
    said += f" and {words.seconds_with_unit(fit.one_worker_seconds)} on one worker"
    if scaling.bend is not None:
        said += f"; {most} workers were no faster than {scaling.fastest_workers}, so that no limit"
        said += " of the speed-up is given"
    elif scaling.largest_speed_up is not None and fit.serial_interval is not None:
        low, high = 1 / fit.serial_interval.high, 1 / fit.serial_interval.low
        most_times = f"{scaling.largest_speed_up:.1f}"
        said += f", by which no number of workers is more than {most_times} times as"
        said += f" fast as one (95 % interval {low:.1f} to {high:.1f})"
    r_squared = "" if fit.r_squared is None else f", R² {fit.r_squared:.3f}"
    return f"{said} ({_tested(fit.residuals, exact=fit.exact)}{'' if fit.exact else r_squared})"


def _tested(residuals: Iterable[float], *, exact: bool) -> str:
    """How well a fit agrees with its points."""
    if exact:
        return "two points fit exactly, so the fit is untested"
    return f"residuals up to {100 * max(map(abs, residuals), default=0.0):.1f} %"


def sizes_table(source: Source, scalings: Sequence[SizeScaling]) -> ReportTable | None:
    """Time and throughput by size of the input; None without any."""
    cells = [cell for row in scalings for cell in row.cells]

    def which(scaling: SizeScaling) -> str:
        return configuration(scaling.cells[0], cells, size=False)

    getters: Getters[tuple[SizeScaling, SizePoint]] = (
        Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
        Getter("Configuration", lambda row: which(row[0])),
        Getter("Input", lambda row: format_bytes(row[1].size_bytes), Display.NUMBER),
        Getter("Runs", lambda row: str(row[1].count), Display.NUMBER),
        Getter("Mean (s)", lambda row: words.seconds(row[1].mean_seconds), Display.NUMBER),
        Getter(
            "95 % interval (s)", lambda row: words.interval(row[1].interval_seconds), Display.NUMBER
        ),
        Getter(
            "MB/s", lambda row: words.megabytes(row[1].throughput_bytes_per_second), Display.NUMBER
        ),
    )
    return tabulate(
        [(row, point) for row in scalings for point in row.points],
        getters,
        caption=f"{_name(cells)}: time by size of the input",
        emulated=source.are_emulated(cells),
        note=" ".join(
            f"{', '.join(filter(None, (words.engine_name(row.engine), which(row))))}:"
            f" {'; '.join((_size_fit(row.fit), *_older(row.older)))}."
            for row in scalings
        ),
        hide=("Configuration",),
    )


def _size_fit(fit: SizeFit) -> str:
    start = words.seconds_with_unit(fit.start_seconds)
    line = f"{start} whatever the size"
    if fit.throughput_bytes_per_second is not None:
        rate = words.megabytes(fit.throughput_bytes_per_second)
        line = f"{start} to start, then {rate} MB/s"
    return (
        f"a straight line gives {line}; time grows with the size to the power {fit.exponent:.2f}"
        f" ({_tested(fit.residuals, exact=fit.exact)})"
    )


def effects_table(source: Source, effects: Sequence[FactorEffect]) -> ReportTable | None:
    """What changing one factor changes, the largest effect first; None without any."""
    ordered = sorted(effects, key=lambda row: (-row.ratio.is_shown, -row.ratio.value))
    cells = [cell for row in effects for cell in (row.slower, row.faster)]
    cut = len(effects) - _MOST_EFFECTS
    getters: Getters[FactorEffect] = (
        Getter("What differs", lambda row: words.factor_name(row.factor)),
        Getter("Faster", lambda row: _named(row.factor, row.faster_value, row.faster, row.slower)),
        Getter("Slower", lambda row: _named(row.factor, row.slower_value, row.slower, row.faster)),
        Getter("In common", lambda row: _else(row, source.cells)),
        Getter("Times as fast", lambda row: f"{row.ratio.value:.2f}", Display.NUMBER),
        Getter("95 % interval", lambda row: ratio_interval(row.ratio), Display.NUMBER),
        Getter("Interval from", lambda row: interval_words(row.ratio)),
        Getter("p", _p, Display.NUMBER),
        Getter("Difference", _shown),
    )
    return tabulate(
        ordered[:_MOST_EFFECTS],
        getters,
        caption=f"{_name(cells)}: effect of changing one factor",
        emulated=source.are_emulated(cells),
        note=" ".join(
            part
            for part in (
                _family(effects),
                f"{words.count(cut, 'smaller effect')} left out." if cut > 0 else "",
            )
            if part
        ),
    )


def _else(row: FactorEffect, cells: Sequence[Cell]) -> str:
    engine = "" if row.factor == "engine" else words.engine_name(row.faster.engine)
    several = len({cell.workers for cell in cells}) > 1
    workers = words.count(row.faster.workers, "worker") if several else ""
    return ", ".join(filter(None, (engine, configuration(row.faster, [row.faster]), workers)))


def _family(effects: Sequence[FactorEffect]) -> str:
    """How p was corrected; empty where there is one comparison."""
    found = dict.fromkeys(family_words(row.ratio) for row in effects if row.ratio.family_size > 1)
    if not found:
        return ""
    how = words.listed(found)
    return f"p is corrected for {how}; intervals are of each comparison alone."


def _shown(row: FactorEffect) -> str:
    if not row.ratio.interval:
        return "cannot be shown by one run"
    also = f"; these differ too: {'; '.join(row.differences)}" if row.differences else ""
    return f"{outcome(row.ratio)}{also}"


def _p(row: FactorEffect) -> str:
    p_value = row.ratio.p_adjusted
    return words.NONE if p_value is None else words.p_value(p_value)


def _named(factor: str, value: str, cell: Cell, other: Cell) -> str:
    """A cell's value of what differs, in words."""
    if row := FACTORS_BY_NAME.get(factor):
        return words.level(factor, row.level(cell.trial), row.level(other.trial))
    return setting_value(factor, value) if factor in cell.trial.settings else value
