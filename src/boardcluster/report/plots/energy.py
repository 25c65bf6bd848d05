"""Bars: energy of a run, and how much work each watt does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.efficiency import Amount, Efficiency, efficiency_of, metered_parts
from boardcluster.records import EnergyMethod
from boardcluster.report import words
from boardcluster.report.plots.bar_figures import (
    ERROR_BARS,
    bar,
    bar_figures,
    groups_by_workload,
)
from boardcluster.report.plots.cells import cell_row
from boardcluster.report.plots.figure import Bar, Figure, Style

__all__ = ["energy"]

_MODELLED = "Modelled energy is computed from CPU utilisation; no meter measured it."
_PARTLY = (
    "Energy is called modelled where part of it was modelled: that of nodes without a meter is"
    " computed from CPU utilisation."
)

_WIDENED = "They are widened by what the meters may be wrong by."

_KINDS = (
    (
        "energy-per-run",
        "Energy of a run",
        "energy of a run in joules",
        "J",
        "energy_joules",
        "Energy of the whole cluster during one run",
    ),
    (
        "performance-per-watt",
        "Performance per watt",
        "input in GB/s (10⁹ bytes) for each watt",
        "GB/s per W",
        "performance_per_watt",
        "Input divided by time and mean power: GB/s (10⁹ bytes) for each watt",
    ),
    (
        "flops-per-watt",
        "Flops per watt",
        "Mflop/s for each watt",
        "Mflop/s per W",
        "mflops_per_watt",
        "Rmax divided by mean power, as in the Green500",
    ),
)


def energy(cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Energy of a run (J), GB/s for each watt, and Mflop/s for each watt of HPL.

    Each bar says whether its energy was metered or modelled. Formulas: ``analysis.efficiency``.

    Args:
        cells: of any workloads; those without energy are left out, and the caption says how many
            and why.

    Returns:
        Of each kind one figure, or several where there are more bars than fit a screen; none of a
        kind that no cell has.
    """
    efficiencies = [(cell, efficiency_of(cell)) for cell in cells]
    return tuple(figure for kind in _KINDS for figure in _figures(kind, efficiencies))


def _figures(
    kind: tuple[str, ...], efficiencies: Sequence[tuple[Cell, Efficiency]]
) -> Iterator[Figure]:
    name, title, label, unit, field, what = kind
    amounts: dict[int, Amount] = {
        id(cell): getattr(efficiency, field) for cell, efficiency in efficiencies
    }
    methods = {id(cell): efficiency.method for cell, efficiency in efficiencies}
    known = [cell for cell, _ in efficiencies if amounts[id(cell)].value is not None]
    modelled = [cell for cell in known if methods[id(cell)] is EnergyMethod.MODELLED]
    how = _PARTLY if any(map(_is_partly_metered, modelled)) else _MODELLED
    inexact = any(efficiency.uncertainty for _, efficiency in efficiencies)

    def energy_bar(cell: Cell, label: str, style: Style) -> Bar:
        amount = amounts[id(cell)]
        value, interval = amount.value or 0.0, amount.interval
        spread = amount.why_no_interval
        if interval is not None:
            low, high = max(0.0, interval.low), interval.high
            spread = f"{words.number(low)} to {words.number(high)}"
        said = (f"{words.number(value)} {unit}", f"{methods[id(cell)]}, {spread}")
        return bar(label, style, value, interval, said)

    return bar_figures(
        groups_by_workload(known, energy_bar),
        stem=(name,),
        title=title,
        caption=lambda more, _: (
            f"{what}{more}.",
            ERROR_BARS,
            _WIDENED if inexact else "",
            how if modelled else "",
            _missing(efficiencies, field),
        ),
        x_label=label,
        row=lambda cell, bar: {
            **cell_row(cell),
            field: bar.value,
            "low": bar.low,
            "high": bar.high,
            "runs_with_energy": amounts[id(cell)].count,
            "method": str(methods[id(cell)] or ""),
        },
    )


def _is_partly_metered(cell: Cell) -> bool:
    """Whether meters recorded part of an energy of its runs that is called modelled."""
    energies = (run.measurement.energy for run in cell.results if run.measurement)
    return any(
        energy is not None
        and energy.method is EnergyMethod.MODELLED
        and bool(metered_parts(energy))
        for energy in energies
    )


def _missing(efficiencies: Sequence[tuple[Cell, Efficiency]], field: str) -> str:
    """How many cells have no such number, and why; nothing of HPL's for others, and reversed."""
    reasons: dict[str, int] = {}
    for _, efficiency in efficiencies:
        amount: Amount = getattr(efficiency, field)
        if amount.value is None:
            reasons[amount.reason] = reasons.get(amount.reason, 0) + 1
    return " ".join(
        f"Unknown for {words.count(count, 'configuration')}: {reason}."
        for reason, count in reasons.items()
    )
