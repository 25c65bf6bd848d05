"""What runs took and gave: energy, power, performance per watt and per price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.efficiency import (
    Amount,
    Efficiency,
    Peak,
    PriceList,
    PricePart,
    dgemm_peak,
    efficiency_of,
)
from boardcluster.catalog.peak import peak_of
from boardcluster.catalog.prices import price_list
from boardcluster.errors import BoardclusterError
from boardcluster.records import ClusterSpec, EnergyMethod, Engine, NodeSpec, ProbeRun
from boardcluster.report import words
from boardcluster.report.parts import Part, named, present
from boardcluster.report.plots import energy
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate

__all__ = ["Declared", "efficiency_part", "prices_table"]

_FORMULAS = (
    "Energy is that of the whole cluster during a run, and power is the mean over the run. J/GB is "
    "per 10⁹ bytes of input. (MB/s)/W is input per second and watt; divided by 1000 it is the "
    "(GB/s)/W of Lee and Park (2026). Mflops/W is defined as in the Green500: Rmax over the mean "
    "power of the core phase, which in HPL is the solution alone, if the program records its "
    "times. Level is that of the EE HPC WG's methodology; level 0 meets none. Intervals of energy "
    "and power include the accuracy and lag of the meters, where accuracy is stated. DGEMM is the "
    "rate of matrix multiplication that the probe dgemm measured on the same cores with the same "
    "library. A year is 365.25 days at the mean power of the runs (Baun 2016, equation 1). "
    "Requests and transactions are the timed ones, made as fast as the service answered them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is declared of a cluster, where known. A catalog entry that is gone is no error."""

    cluster: ClusterSpec | None
    """The cluster; None where it is not known."""
    probes: tuple[ProbeRun, ...] = ()
    """Runs of probes on its nodes, oldest first."""

    def prices(self, nodes: int) -> PriceList | None:
        """What the first nodes cost; None where it is not known."""
        if self.cluster is None:
            return None
        try:
            return price_list(self.cluster, nodes=min(nodes, len(self.cluster.nodes)))
        except BoardclusterError:
            return None

    def peak(self, cell: Cell) -> Peak | None:
        """Rpeak of the workers of a cell; None where it is not known."""
        if self.cluster is None or cell.engine is not Engine.MPI:
            return None
        try:
            return peak_of(_workers(self.cluster, cell), cell.fingerprints[0])
        except BoardclusterError:
            return None

    def dgemm(self, cell: Cell) -> Peak | None:
        """What the workers of a cell were measured to multiply; None where it is not known."""
        if self.cluster is None or cell.engine is not Engine.MPI:
            return None
        workers = [node.name for node in _workers(self.cluster, cell)]
        parameters = cell.trial.parameters
        return dgemm_peak(workers, cell.fingerprints[0], self.probes, parameters=parameters)


def _workers(cluster: ClusterSpec, cell: Cell) -> tuple[NodeSpec, ...]:
    """Return the workers that took part in the runs of a cell."""
    return cluster.workers_beside(cell.trial.master)[: cell.workers]


def prices_table(prices: PriceList | None, *, emulated: bool) -> ReportTable | None:
    """What the cluster costs, part by part, each with its source; None where nothing is known."""
    if prices is None or not prices.parts:
        return None
    money = prices.currency
    getters: Getters[PricePart] = (
        Getter("Part", lambda part: f"{part.name}{f': {part.what}' if part.what else ''}"),
        Getter("How many", lambda part: str(part.count), Display.NUMBER),
        Getter(f"Each ({money})", lambda part: _money(part.each), Display.NUMBER),
        Getter(f"Price ({money})", lambda part: _money(part.price), Display.NUMBER),
        Getter("Source", lambda part: part.source, Display.LONG),
    )
    missing = f"The total is not known: {'; '.join(prices.missing)}." if prices.missing else ""
    kwh = f"A kilowatt-hour costs {prices.per_kwh:g} {money}." if prices.per_kwh else ""
    table = tabulate(
        prices.parts,
        getters,
        caption=f"What the cluster costs, in {money}",
        emulated=emulated,
        note=" ".join(filter(None, (missing, kwh))),
    )
    if table is None or prices.total is None:
        return table
    total = {"Part": "all", f"Price ({money})": _money(prices.total)}
    return replace(
        table, rows=(*table.rows, tuple(total.get(row.title, "") for row in table.columns))
    )


def efficiency_part(
    source: Source, cells: Sequence[Cell], declared: Declared, *, name: str
) -> Part:
    """Energy, efficiency and price of a workload; a sentence where nothing is known."""
    found = [(cell, _worth(cell, declared)) for cell in cells]
    emulated = source.are_emulated(cells)
    return Part(
        title="Energy and price",
        name=name,
        figures=named(energy(cells), name),
        tables=present(
            _table(found, _WHATS, what="energy and performance per watt", emulated=emulated),
            _table(found, _PRICES, what="price", emulated=emulated),
        ),
        paper=True,
        notes=tuple(_reasons(found)),
    )


def _worth(cell: Cell, declared: Declared) -> Efficiency:
    nodes = max((setup.nodes for setup in cell.fingerprints), default=0)
    return efficiency_of(
        cell, declared.prices(nodes), peak=declared.peak(cell), dgemm=declared.dgemm(cell)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _What:
    """One amount as a column."""

    title: str
    """Its heading; ``{money}`` is the currency, ``{served}`` and ``{one}`` what is served."""
    of: Callable[[Efficiency], Amount]
    """The amount of a worth."""
    unit: str = ""
    """Unit of its interval, which then has a column, too; empty for none."""
    scale: float = 1.0
    """What it is multiplied by to be in that unit."""

    def getters(self, money: str, served: str) -> Getters[tuple[Cell, Efficiency]]:
        """The column of the mean and, where there is a unit, that of the interval."""
        title = f"95 % interval of {self.unit.format(served=served)}"
        heading = self.title.format(money=money, served=served, one=served.removesuffix("s"))
        getters: Getters[tuple[Cell, Efficiency]] = (
            Getter(heading, lambda row: self._mean(row[1]), Display.NUMBER),
            Getter(title, lambda row: self._interval(row[1]), Display.NUMBER),
        )
        return getters if self.unit else getters[:1]

    def _mean(self, efficiency: Efficiency) -> str:
        value = self.of(efficiency).value
        return words.NONE if value is None else words.number(value * self.scale)

    def _interval(self, efficiency: Efficiency) -> str:
        amount = self.of(efficiency)
        if amount.value is None:
            return words.NONE
        if amount.interval is None:
            return amount.why_no_interval
        low, high = max(0.0, amount.interval.low), amount.interval.high
        edges = (low * self.scale, high * self.scale)
        return " to ".join(words.number(edge) for edge in edges)


_WHATS = (
    _What(title="Energy (J)", of=lambda efficiency: efficiency.energy_joules, unit="J"),
    _What(title="Power (W)", of=lambda efficiency: efficiency.mean_watts),
    _What(title="J/GB", of=lambda efficiency: efficiency.joules_per_gigabyte),
    _What(
        title="(MB/s)/W",
        of=lambda efficiency: efficiency.performance_per_watt,
        unit="(MB/s)/W",
        scale=1000.0,
    ),
    _What(
        title="Rmax (Gflop/s)", of=lambda efficiency: efficiency.gflops_per_second, unit="Gflop/s"
    ),
    _What(title="Mflops/W", of=lambda efficiency: efficiency.mflops_per_watt, unit="Mflops/W"),
    _What(title="Rmax/Rpeak (%)", of=lambda efficiency: efficiency.hpl_efficiency, scale=100.0),
    _What(title="Rmax/DGEMM (%)", of=lambda efficiency: efficiency.dgemm_efficiency, scale=100.0),
    _What(
        title="J/1000 {served}",
        of=lambda efficiency: efficiency.joules_per_1000_requests,
        unit="J/1000 {served}",
    ),
)
_PRICES = (
    _What(title="Energy of a run ({money})", of=lambda efficiency: efficiency.energy_cost),
    _What(title="Energy of a year ({money})", of=lambda efficiency: efficiency.yearly_energy_cost),
    _What(
        title="(MB/s) per {money}",
        of=lambda efficiency: efficiency.gigabytes_per_second_per_price,
        scale=1000.0,
    ),
    _What(title="Gflops per {money}", of=lambda efficiency: efficiency.gflops_per_price),
    _What(
        title="{money} per {one}/s", of=lambda efficiency: efficiency.price_per_request_per_second
    ),
)


def _table(
    found: Sequence[tuple[Cell, Efficiency]], whats: Sequence[_What], *, what: str, emulated: bool
) -> ReportTable | None:
    """One row for each cell; None where nothing of these is known."""
    there = [
        row for row in whats if any(row.of(efficiency).value is not None for _, efficiency in found)
    ]
    if not there:
        return None
    cells = [cell for cell, _ in found]
    money = next((efficiency.currency for _, efficiency in found if efficiency.currency), "")
    served = next((efficiency.served for _, efficiency in found if efficiency.served), "")
    getters: Getters[tuple[Cell, Efficiency]] = (
        Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
        Getter("Configuration", lambda row: configuration(row[0], cells)),
        Getter("Runs", lambda row: _runs(*row), Display.NUMBER),
        *(getter for each in there for getter in each.getters(money, served)),
        Getter("How", lambda row: _how(row[1])),
    )
    return tabulate(
        found,
        getters,
        caption=f"{words.workload_name(cells[0].workload)}: {what}",
        emulated=emulated,
        note=_FORMULAS,
        hide=("Configuration",),
    )


def _runs(cell: Cell, efficiency: Efficiency) -> str:
    count = efficiency.energy_joules.count
    return str(cell.count) if count in (0, cell.count) else f"{cell.count}, {count} with energy"


def _how(efficiency: Efficiency) -> str:
    """Where the energy comes from; empty where there is none."""
    if efficiency.method is None:
        return ""
    method = "modelled" if efficiency.method is EnergyMethod.MODELLED else "metered"
    # Level 0 is said where lists would be misled by its absence.
    ranked = efficiency.mflops_per_watt.value is not None
    level = f", level {efficiency.level}" if efficiency.level or ranked else ""
    if efficiency.core_level is not None:
        level += f"; Mflops/W over the core phase, level {efficiency.core_level}"
    meters = f"; meters within {efficiency.uncertainty:.1%}" if efficiency.uncertainty else ""
    return f"{method}{level}{meters}{f' ({efficiency.remark})' if efficiency.remark else ''}"


def _reasons(found: Sequence[tuple[Cell, Efficiency]]) -> list[str]:
    """Why the important numbers are missing, each reason once."""
    lines: dict[str, None] = {}
    for cell, efficiency in found:
        amounts = [efficiency.energy_joules]
        if efficiency.gflops_per_second.value is not None:  # its size is no input
            amounts.append(efficiency.gflops_per_price)
        elif cell.size_bytes:
            amounts.append(efficiency.gigabytes_per_second_per_price)
        elif efficiency.served:
            amounts.append(efficiency.price_per_request_per_second)
        else:
            amounts.append(efficiency.gflops_per_price)
        for name, amount in zip(("Energy", "Performance per price"), amounts, strict=True):
            if amount.reason:
                verb = "is missing:" if amount.value is None else "covers"
                lines[f"{name} {verb} {amount.reason}."] = None
    return list(lines)


def _money(value: float) -> str:
    return f"{value:,.2f}"
