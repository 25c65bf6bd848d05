"""Bars: energy of a run, and how much work each watt does."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis import Cell
from boardcluster.analysis.scaling import by_setup
from boardcluster.analysis.worth import Amount, Worth, worth_of
from boardcluster.records import EnergyMethod
from boardcluster.report import words
from boardcluster.report.plots.cells import (
    MOST_ROWS,
    cell_row,
    cut_groups,
    is_emulated,
    part_words,
    series_label,
    series_words,
    slug,
    styles,
    twins_of,
    workload_groups,
)
from boardcluster.report.plots.figure import Bar, BarGroup, Bars, Figure, Style

__all__ = ["energy"]

_ERROR = "Error bars are 95 % intervals of the mean (Student's t)."
_MODELLED = "Modelled energy is computed from CPU utilisation; no meter measured it."

_KINDS = (
    (
        "energy-per-run",
        "Energy of a run",
        "energy of a run in joules",
        "J",
        "energy_joules",
        "Energy of one run over the whole cluster",
    ),
    (
        "performance-per-watt",
        "Performance per watt",
        "input in GB/s (10⁹ bytes) for each watt",
        "GB/s per W",
        "performance_per_watt",
        "Input over time and mean power: GB/s (10⁹ bytes) for each watt",
    ),
    (
        "flops-per-watt",
        "Flops per watt",
        "Mflop/s for each watt",
        "Mflop/s per W",
        "mflops_per_watt",
        "Rmax over mean power, as the Green500 has it",
    ),
)


def energy(cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Energy of a run (J), GB/s for each watt, and Mflop/s for each watt of HPL.

    Each bar says whether its energy was metered or modelled. Formulas: ``analysis.worth``.

    Args:
        cells: of any workloads; those without energy are left out, and the caption says how many
            and why.

    Returns:
        Of each kind one figure, or several where there are more bars than fit a screen; none of a
        kind that no cell has.
    """
    apart = [part for cell in cells for part in by_setup(cell)]
    worths = [(cell, worth_of(cell)) for cell in apart]
    return tuple(figure for kind in _KINDS for figure in _figures(kind, worths))


def _figures(kind: tuple[str, ...], worths: Sequence[tuple[Cell, Worth]]) -> list[Figure]:
    name, title, label, unit, field, what = kind
    amounts = {id(cell): getattr(worth, field) for cell, worth in worths}
    methods = {id(cell): worth.method for cell, worth in worths}
    known = [cell for cell, _ in worths if amounts[id(cell)].value is not None]
    groups = []
    for workload, group in workload_groups(known).items():
        looks = styles(group, [series_words(cell, group) for cell in group])
        bars = [
            (
                cell,
                _bar(amounts[id(cell)], methods[id(cell)], series_label(cell, group), style, unit),
            )
            for cell, style in zip(group, looks, strict=True)
        ]
        groups.append((words.workload_name(workload), bars))
    parts = list(cut_groups(groups, MOST_ROWS))
    modelled = any(methods[id(cell)] is EnergyMethod.MODELLED for cell in known)
    said = [_ERROR, _MODELLED if modelled else "", _missing(worths, field)]
    found = []
    for number, part in enumerate(parts, start=1):
        more = part_words(number, len(parts))
        inside = [cell for _, bars in part for cell, _ in bars]
        found.append(
            Figure(
                name=slug(name, str(number) if len(parts) > 1 else ""),
                title=f"{title}{more}",
                caption=" ".join(filter(None, (f"{what}{more}.", *said))),
                emulated=is_emulated(inside),
                twins=twins_of(inside),
                x_label=label,
                y_label="",
                body=Bars(
                    groups=tuple(
                        BarGroup(title=text, bars=tuple(bar for _, bar in bars))
                        for text, bars in part
                    )
                ),
                rows=tuple(
                    {
                        **cell_row(cell),
                        field: bar.value,
                        "low": bar.low,
                        "high": bar.high,
                        "runs_with_energy": amounts[id(cell)].count,
                        "method": str(methods[id(cell)] or ""),
                    }
                    for _, bars in part
                    for cell, bar in bars
                ),
            )
        )
    return found


def _bar(amount: Amount, method: EnergyMethod | None, label: str, style: Style, unit: str) -> Bar:
    value = amount.value or 0.0
    low, high = (amount.interval.low, amount.interval.high) if amount.interval else (None, None)
    spread = (
        "one run, no interval"
        if low is None or high is None
        else f"{words.number(max(0.0, low))} to {words.number(high)}"
    )
    return Bar(
        label=label,
        style=style,
        value=value,
        low=low,
        high=high,
        words=(f"{words.number(value)} {unit}", f"{method}, {spread}"),
    )


def _missing(worths: Sequence[tuple[Cell, Worth]], field: str) -> str:
    """How many cells have no such number, and why; nothing of HPL's for others, and reversed."""
    reasons: dict[str, int] = {}
    for _, worth in worths:
        amount: Amount = getattr(worth, field)
        if amount.value is None:
            reasons[amount.reason] = reasons.get(amount.reason, 0) + 1
    return " ".join(
        f"{words.count(count, 'configuration')} without it: {reason}."
        for reason, count in reasons.items()
    )
