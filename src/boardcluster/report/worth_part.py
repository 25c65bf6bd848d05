"""What runs took and gave: energy, power, performance per watt and per price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boardcluster.analysis import Cell
from boardcluster.analysis.worth import Amount, PriceList, Worth, worth_of
from boardcluster.catalog.prices import price_list
from boardcluster.errors import BoardclusterError
from boardcluster.records import ClusterSpec, EnergyMethod
from boardcluster.report import words
from boardcluster.report.parts import Part, named
from boardcluster.report.plots import energy
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Column, Kind, Table

__all__ = ["PricesOf", "prices_of", "prices_table", "worth_part"]

PricesOf = Callable[[int], PriceList | None]
"""Prices by how many nodes took part; None where nobody can say."""

_FORMULAS = (
    "Energy is that of a run over the whole cluster; watts are its mean. J/GB is per 10⁹ bytes of"
    " input; (GB/s)/W is input per second per watt, as Lee and Park have it (2026); Mflops/W is the"
    " Green500's. A year has 365.25 days, at the mean power of the runs (Baun 2016, equation 1)."
)


def prices_of(cluster: ClusterSpec | None) -> PricesOf:
    """Prices of a cluster's first nodes; a catalog entry that is gone costs only its prices."""

    def known(nodes: int) -> PriceList | None:
        if cluster is None:
            return None
        try:
            return price_list(cluster, nodes=min(nodes, len(cluster.nodes)))
        except BoardclusterError:
            return None

    return known


def prices_table(prices: PriceList | None, *, emulated: bool) -> Table | None:
    """What the cluster costs, part by part, each with its source; None where nothing is known."""
    if prices is None or not prices.parts:
        return None
    rows = [
        (
            f"{part.name}{f': {part.what}' if part.what else ''}",
            str(part.count),
            _money(part.each),
            _money(part.price),
            part.source,
        )
        for part in prices.parts
    ]
    total = prices.total
    if total is not None:
        rows.append(("all", "", "", _money(total), ""))
    missing = f"There is no whole price: {'; '.join(prices.missing)}." if prices.missing else ""
    kwh = f"A kilowatt-hour is {prices.per_kwh:g} {prices.currency}." if prices.per_kwh else ""
    return Table(
        caption=f"What the cluster costs, in {prices.currency}",
        columns=(
            Column("Part"),
            Column("How many", Kind.NUMBER),
            Column(f"Each ({prices.currency})", Kind.NUMBER),
            Column(f"Price ({prices.currency})", Kind.NUMBER),
            Column("Source", Kind.LONG),
        ),
        rows=tuple(rows),
        emulated=emulated,
        note=" ".join(part for part in (missing, kwh) if part),
    )


def worth_part(source: Source, cells: Sequence[Cell], prices: PricesOf, *, name: str) -> Part:
    """Energy, efficiency and price of a workload; a sentence where nothing is known."""
    found = [(cell, _worth(cell, prices)) for cell in cells]
    title = "Energy and price"
    there = [what for what in _WHATS if any(what.of(worth).value is not None for _, worth in found)]
    if not there:
        return Part(title=title, name=name, notes=tuple(_reasons(found)))
    money = next((worth.currency for _, worth in found if worth.currency), "")
    table = Table(
        caption=f"{words.workload_name(cells[0].workload)}: energy and price",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Configuration"),
            *(Column(title, Kind.NUMBER) for what in there for title in what.titles(money)),
            Column("Runs", Kind.NUMBER),
            Column("How"),
        ),
        rows=tuple(_row(cell, cells, worth, there) for cell, worth in found),
        emulated=source.is_emulated([item for cell in cells for item in cell.results]),
        note=_FORMULAS,
    )
    return Part(
        title=title,
        name=name,
        figures=named(energy(cells), name),
        tables=(table.without_constant("Configuration").without_empty(),),
        notes=tuple(_reasons(found)),
    )


def _worth(cell: Cell, prices: PricesOf) -> Worth:
    nodes = max((setup.nodes for setup in cell.fingerprints), default=0)
    return worth_of(cell, prices(nodes))


@dataclass(frozen=True, slots=True)
class _What:
    """One amount as a column.

    Attributes:
        title: its heading; ``{}`` stands for the currency.
        of: the amount of a worth.
        interval: whether its interval has a column, too.
    """

    title: str
    of: Callable[[Worth], Amount]
    interval: bool = False

    def titles(self, money: str) -> tuple[str, ...]:
        """The headings of its columns."""
        title = self.title.format(money)
        unit = title.partition("(")[2].rpartition(")")[0] or title
        return (title, f"95 % interval ({unit})") if self.interval else (title,)


_WHATS = (
    _What("Energy (J)", lambda worth: worth.energy_joules, interval=True),
    _What("Power (W)", lambda worth: worth.mean_watts),
    _What("J/GB", lambda worth: worth.joules_per_gigabyte, interval=True),
    _What("(GB/s)/W", lambda worth: worth.performance_per_watt, interval=True),
    _What("Rmax (Gflop/s)", lambda worth: worth.gflops_per_second, interval=True),
    _What("Mflops/W", lambda worth: worth.mflops_per_watt, interval=True),
    _What("Rmax/Rpeak", lambda worth: worth.hpl_efficiency),
    _What("Energy of a run ({})", lambda worth: worth.energy_cost),
    _What("Energy of a year ({})", lambda worth: worth.yearly_energy_cost),
    _What("(GB/s) per {}", lambda worth: worth.gigabytes_per_second_per_price),
    _What("Gflops per {}", lambda worth: worth.gflops_per_price),
)


def _row(
    cell: Cell, cells: Sequence[Cell], worth: Worth, there: Sequence[_What]
) -> tuple[str, ...]:
    texts: list[str] = []
    for what in there:
        amount = what.of(worth)
        texts.append(words.NONE if amount.value is None else words.number(amount.value))
        if what.interval:
            texts.append(_interval(amount))
    count = worth.energy_joules.count
    if not count or count == cell.count:
        runs = str(cell.count)
    else:
        runs = f"{cell.count}, {count} with energy"
    return (words.engine_name(cell.engine), configuration(cell, cells), *texts, runs, _how(worth))


def _interval(amount: Amount) -> str:
    if amount.value is None:
        return words.NONE
    if amount.interval is None:
        return "one run, no interval"
    return f"{words.number(amount.interval.low)} to {words.number(amount.interval.high)}"


def _how(worth: Worth) -> str:
    """Where the energy comes from; empty where there is none."""
    if worth.method is None:
        return ""
    method = "modelled" if worth.method is EnergyMethod.MODELLED else "metered"
    level = f", level {worth.level}" if worth.level else ""
    return f"{method}{level}{f' ({worth.remark})' if worth.remark else ''}"


def _reasons(found: Sequence[tuple[Cell, Worth]]) -> list[str]:
    """Why the important numbers are missing, each reason once."""
    lines: dict[str, None] = {}
    for cell, worth in found:
        amounts = [worth.energy_joules]
        sized = bool(cell.size_bytes)
        amounts.append(worth.gigabytes_per_second_per_price if sized else worth.gflops_per_price)
        for name, amount in zip(("Energy", "Performance per price"), amounts, strict=True):
            if amount.reason:
                verb = "is missing" if amount.value is None else "is of"
                lines[f"{name} {verb}{':' if amount.value is None else ''} {amount.reason}."] = None
    return list(lines)


def _money(value: float) -> str:
    return f"{value:,.2f}"
