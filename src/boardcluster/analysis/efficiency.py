"""What a result took and gave: energy, power, and price. Pure.

Sources: performance per watt of data: Lee and Park 2026, section *RPi 5B cluster vs. Desktop
computer*; flops per watt: S. Sharma, C.-H. Hsu, W. Feng, "Making a case for a Green500 list", IPDPS
2006, as equation 4 of Baun 2016; cost of a year, peak and efficiency of HPL: equation 1 and section
*Analysis of the efficiency* of Baun 2016. A gigabyte is 10^9 bytes.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.fingerprints import board_and_medium
from boardcluster.analysis.inference import RunValue, estimate, run_value
from boardcluster.analysis.inference.model import ONE_RUN
from boardcluster.analysis.ratios import quotient
from boardcluster.analysis.statistics import Interval, mean
from boardcluster.records import (
    Energy,
    EnergyMethod,
    Fingerprint,
    Measurement,
    Power,
    ProbeRun,
    Result,
    in_cell,
)

__all__ = [
    "DGEMM_FIGURE",
    "Amount",
    "Efficiency",
    "Peak",
    "PriceList",
    "PricePart",
    "core_watts_of",
    "dgemm_peak",
    "efficiency_of",
    "energy_cost",
    "hpl_efficiency",
    "hpl_peak_gflops",
    "joules_per_1000_requests",
    "joules_per_gigabyte",
    "metered_parts",
    "mflops_per_watt",
    "performance_per_price",
    "performance_per_watt",
    "uncertainty_share",
    "watts_of",
    "widened",
    "yearly_energy_cost",
]

_GIGABYTE_BYTES = 10**9
_TIMED = "timed_"
_REQUESTS = (f"{_TIMED}requests", f"{_TIMED}transactions")
_REQUEST_RATE = ("requests_per_second", "transactions_per_second")
"""Figures of services: right answers in the run, or committed transactions, and a second's."""

PRICED_PARTS = ("boards", "media", "supplies", "switch")
"""What a cluster has at least, and so what its price must have."""

_BUILT = "built"
"""HPL's parameter ``binary`` where it has the BLAS that the probe ``dgemm`` measures."""

_GFLOPS = "gflops_per_second"
"""The figure of HPL that is its Rmax."""

_JOULES_PER_KWH = 3.6e6
_HOURS_PER_YEAR = 24 * 365.25


# Formulas


def joules_per_gigabyte(energy_joules: float, size_bytes: float) -> float:
    """Energy per input: E / (size / 10^9), in joules per gigabyte.

    Raises:
        ValueError: the size is not above 0.
    """
    return quotient(energy_joules, size_bytes / _GIGABYTE_BYTES)


def performance_per_watt(size_bytes: float, duration_seconds: float, watts: float) -> float:
    """Performance per watt: (size in GB / time in s) / power in W (Lee and Park 2026).

    Raises:
        ValueError: the time or the power is not above 0.
    """
    return quotient(quotient(size_bytes / _GIGABYTE_BYTES, duration_seconds), watts)


def mflops_per_watt(rmax_gflops: float, watts: float) -> float:
    """Flops per watt as the Green500 has it: Rmax / P(Rmax), in 10^6 operations per second and W.

    Source: Baun 2016, equation 4.

    Raises:
        ValueError: the power is not above 0.
    """
    return quotient(rmax_gflops * 1000, watts)


def yearly_energy_cost(watts: float, price_per_kwh: float) -> float:
    """Energy cost of a year at this power: E * 24 * 365.25 * price, with E in kW.

    Source: Baun 2016, equation 1.
    """
    return watts / 1000 * _HOURS_PER_YEAR * price_per_kwh


def joules_per_1000_requests(energy_joules: float, requests: float) -> float:
    """Energy of a service per 1000 requests that it answered.

    Raises:
        ValueError: there are no requests.
    """
    return quotient(1000 * energy_joules, requests)


def energy_cost(energy_joules: float, price_per_kwh: float) -> float:
    """Price of an energy: E / 3.6 MJ * price."""
    return energy_joules / _JOULES_PER_KWH * price_per_kwh


def hpl_peak_gflops(clock_hertz: float, cores: int, operations_per_cycle: float) -> float:
    """Rpeak: clock * cores * operations per cycle of one core, in 10^9 operations per second.

    Operations are of double precision. Source: Baun 2016, *Analysis of the efficiency*.
    """
    return clock_hertz * cores * operations_per_cycle / 1e9


def hpl_efficiency(rmax_gflops: float, peak_gflops: float) -> float:
    """Rmax / Rpeak, a share of 1. Source: Baun 2016, *Analysis of the efficiency*.

    Raises:
        ValueError: the peak is not above 0.
    """
    return quotient(rmax_gflops, peak_gflops)


def performance_per_price(performance: float, price: float) -> float:
    """Performance in any unit per unit of currency.

    Raises:
        ValueError: the price is not above 0.
    """
    return quotient(performance, price)


# Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePart:
    """One line of what a cluster cost."""

    name: str
    """One of ``PRICED_PARTS``, ``cooling``, ``other`` or ``everything``."""
    what: str
    """Which: ``rpi-5b-8gb-2400mhz``; empty where the file does not say."""
    count: int
    """How many."""
    each: float
    """Price of one, in the list's currency."""
    source: str
    """``[prices] in cluster.toml``, or catalog entry with its source."""

    @property
    def price(self) -> float:
        """Price of all of them."""
        return self.count * self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What a cluster cost, and what electricity costs."""

    currency: str
    """Three letters (ISO 4217); empty where no price is known at all."""
    per_kwh: float | None
    """Price of a kilowatt-hour; None where none is declared."""
    parts: tuple[PricePart, ...]
    """What has a price."""
    missing: tuple[str, ...]
    """Why there is no whole price, one line for each part without one."""

    @property
    def total(self) -> float | None:
        """Price of the whole cluster; None while a part has none, since less would flatter it."""
        return None if self.missing else math.fsum(part.price for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Rpeak of the workers of a result."""

    gflops: float | None
    """In 10^9 operations of double precision per second; None where the reason says why."""
    source: str = ""
    """Processors, clocks and operations per cycle with where they are from; empty without."""
    reason: str = ""
    """Why it is not known, in one line; empty if it is."""


DGEMM_FIGURE = "dgemm_gflops_per_second"
"""The figure of the probe ``dgemm``."""


def _is_of(run: ProbeRun, setup: Fingerprint) -> bool:
    """Whether a probe ran on the board that a setup's node of that name is, if that was noted."""
    boards = {line.partition(": ")[0]: board_and_medium(line)[0] for line in setup.hardware}
    board, _ = board_and_medium(run.hardware)
    return boards.get(run.node, board) == board


def dgemm_peak(
    workers: Sequence[str],
    setup: Fingerprint,
    probes: Sequence[ProbeRun],
    *,
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> Peak:
    """Return the rate of DGEMM on the cores that HPL had, as the probe ``dgemm`` measured it.

    Of nodes with cores of their own it is the sum over the workers, each with its newest run on all
    its cores, or on as many as HPL had processes there; where that number was not measured, the
    share of all. Plain emulated nodes share this machine's, so theirs is what one process reached
    for each core, or all together if a node has all the cores.

    Args:
        workers: names of the nodes that took part.
        setup: what the result was measured on.
        probes: runs of probes on the cluster's nodes, oldest first. Those that were disturbed too
            much, or that ran on another board of the same name, do not count.
        parameters: what was set of HPL, as ``hpl.ranks_per_node`` and ``hpl.binary``.
    """
    binary = parameters.get("hpl.binary", _BUILT)
    if binary != _BUILT:
        return Peak(
            gflops=None,
            reason=f"HPL was {binary}, whose BLAS is not the one that the probe dgemm measures",
        )
    ranks = int(parameters.get("hpl.ranks_per_node", 0))
    shared = setup.emulated and not setup.limits
    found: dict[str, tuple[int, float]] = {}
    for run in probes:
        rows = [row for row in run.figures if row.name == DGEMM_FIGURE]
        if setup.blas:
            rows = [row for row in rows if row.conditions.get("blas") == setup.blas]
        if rows and in_cell(run) and (setup.emulated or _is_of(run, setup)):
            rates = {int(row.conditions["processes"]): row.value for row in rows}
            widest = max(rates)
            used = min(ranks, widest) if ranks and not shared else widest
            found[run.node] = (used, rates.get(used, rates[widest] * used / widest))
    known = [found[name] for name in workers if name in found]
    if not known or (len(known) < len(workers) and not shared):
        lacking = ", ".join(name for name in workers if name not in found)
        of_blas = f" with {setup.blas}" if setup.blas else ""
        words = f"no undisturbed run of the probe dgemm on the boards of {lacking}{of_blas}"
        return Peak(gflops=None, reason=words)
    if shared:
        cores, rate = max(known)
        each = min(ranks, setup.node_cores) if ranks else setup.node_cores
        used = min(setup.cpu_cores, len(workers) * each)
        words = f"probe dgemm, {cores} processes on this machine"
        return Peak(gflops=rate / cores * used, source=words)
    total = math.fsum(rate for _, rate in known)
    of_some = f", {ranks} processes on each" if ranks else ""
    return Peak(gflops=total, source=f"probe dgemm on {', '.join(workers)}{of_some}")


# Worth of a cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One number over the runs of a cell."""

    value: float | None
    """Mean over the runs that have it; None where the reason says why."""
    interval: Interval | None
    """95 % interval of the mean, of starts of the cluster where there are several, as that of times
    is; None for one run, and where the meters may be wrong by all that they say."""
    count: int
    """How many runs have it."""
    reason: str = ""
    """Why there is none, or of which runs, in one line; empty if every run has it."""

    @property
    def why_no_interval(self) -> str:
        """Why there is a mean without an interval, in a few words."""
        return ONE_RUN if self.count == 1 else "no interval: the meters are too inexact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What the runs of a cell took and gave. Every amount says why it is missing where it is."""

    energy_joules: Amount
    """Energy of a run over the whole cluster."""
    joules_per_gigabyte: Amount
    """Energy per 10^9 bytes of input."""
    mean_watts: Amount
    """Mean power over the run."""
    performance_per_watt: Amount
    """GB/s of input per W."""
    gflops_per_second: Amount
    """Rmax of HPL, in 10^9 operations per second."""
    mflops_per_watt: Amount
    """Rmax per W, in 10^6 operations per second and W."""
    hpl_efficiency: Amount
    """Rmax over Rpeak, a share of 1."""
    dgemm_efficiency: Amount
    """Rmax over the rate of DGEMM that was measured on the same cores, a share of 1."""
    energy_cost: Amount
    """Price of a run's energy, in the currency."""
    yearly_energy_cost: Amount
    """Price of a year at the run's mean power, in the currency."""
    gigabytes_per_second_per_price: Amount
    """GB/s of input per unit of currency."""
    gflops_per_price: Amount
    """Rmax in Gflops per unit of currency."""
    joules_per_1000_requests: Amount
    """Energy of a service per 1000 of the requests that were timed."""
    price_per_request_per_second: Amount
    """Price of the cluster per request that a service answers in a second, in the currency."""
    served: str
    """What a service answers: ``requests`` or ``transactions``; empty where nothing is served."""
    method: EnergyMethod | None
    """METERED only if every run that counts is; None without energy."""
    level: int | None
    """Lowest level of power measurement among them; None without energy."""
    core_level: int | None
    """The same over the core phase, which Mflops/W are of; None where no run has one."""
    uncertainty: float
    """Largest share by which a run's energy may be wrong by accuracy and lag of its meters; the
    intervals of energy, power and their costs contain it. 0 where it is not known."""
    remark: str
    """Where energies are of different methods, how many are modelled; else empty."""
    currency: str
    """Of the prices; empty without any."""


def core_watts_of(energy: Energy, duration_seconds: float) -> float | None:
    """Mean power over the core phase; over the run where the program does not date one, in W.

    Args:
        energy: of the run.
        duration_seconds: of the run; what counts where no meter tells the span.
    """
    return watts_of(energy.core or energy, duration_seconds)


def uncertainty_share(energy: Energy) -> float:
    """By how large a share an energy, or the power of its span, may be wrong: accuracy and lag.

    0 where it is not known, as of models and of meters without a stated accuracy.
    """
    if not energy.energy_joules or energy.uncertainty_joules is None:
        return 0.0
    return energy.uncertainty_joules / energy.energy_joules


def watts_of(energy: Energy, duration_seconds: float) -> float | None:
    """Mean power of the whole cluster over a run, in W; None without an energy.

    Energy spans from the first submission of a run to the end of its last, and the duration is the
    sum of the submissions; so the span is taken from a meter, as its energy over its mean power.

    Args:
        energy: of the run.
        duration_seconds: of the run; what counts where no meter tells the span.
    """
    if energy.energy_joules is None:
        return None
    spans = [
        power.energy_joules / power.mean_watts
        for power in energy.powers
        if power.energy_joules and power.mean_watts
    ]
    span_seconds = mean(spans) if spans else duration_seconds
    return energy.energy_joules / span_seconds if span_seconds > 0 else None


@dataclass(frozen=True, slots=True)
class _Given:
    """One quantity of every run of a cell."""

    values: Sequence[float | None]
    """In the order of runs; None where a run does not have it."""
    reason: str = ""
    """Why runs lack it; empty where all have it."""


def efficiency_of(
    cell: Cell,
    prices: PriceList | None = None,
    *,
    peak: Peak | None = None,
    dgemm: Peak | None = None,
) -> Efficiency:
    """Return what the runs of a cell took and gave.

    Args:
        cell: the runs.
        prices: of what took part.
        peak: Rpeak of what took part.
        dgemm: what its cores were measured to give in matrix multiplication.
    """
    rows = [row for row in cell.results if row.measurement is not None]
    runs = [row.measurement for row in rows if row.measurement is not None]
    energies = [run.energy for run in runs if run.energy and _joules(run) is not None]
    no_rate = "no price per kWh is declared in [prices] of cluster.toml"
    most = peak or Peak(gflops=None, reason="the peak of the boards is not known")
    multiplied = dgemm or Peak(gflops=None, reason="DGEMM was not measured")
    cores = [energy.core for energy in energies if energy.core is not None]
    share = max(map(uncertainty_share, energies), default=0.0)
    core_share = max(map(uncertainty_share, cores), default=share)

    def of_all(value: float | None, reason: str) -> _Given:
        return _Given([value] * len(runs), reason)

    joules = _Given([_joules(run) for run in runs], _no_energy(run.energy for run in runs))
    watts, core_watts = _watts_given(runs)
    seconds = _Given([run.duration_seconds for run in runs])
    size = _Given(
        [run.input_bytes or None for run in runs],
        "" if all(run.input_bytes for run in runs) else "it has no input of a known size",
    )
    rmax = _figure(runs, (_GFLOPS,), "it does not measure Gflops")
    served = _figure(runs, _REQUESTS, "it does not serve requests")
    request_rate = _figure(runs, _REQUEST_RATE, "it does not serve requests")
    rate = prices.per_kwh if prices else None
    per_kwh = of_all(rate, no_rate if rate is None else "")
    total = of_all(*_total(prices))
    amount = functools.partial(_amount, rows)
    return Efficiency(
        energy_joules=_widened(amount(float, joules), share),
        joules_per_gigabyte=_widened(amount(joules_per_gigabyte, joules, size), share),
        mean_watts=_widened(amount(float, watts), share),
        performance_per_watt=_widened(amount(performance_per_watt, size, seconds, watts), share),
        gflops_per_second=amount(float, rmax),
        mflops_per_watt=_widened(amount(mflops_per_watt, rmax, core_watts), core_share),
        hpl_efficiency=amount(hpl_efficiency, rmax, of_all(most.gflops, most.reason)),
        dgemm_efficiency=amount(hpl_efficiency, rmax, of_all(multiplied.gflops, multiplied.reason)),
        energy_cost=_widened(amount(energy_cost, joules, per_kwh), share),
        yearly_energy_cost=_widened(amount(yearly_energy_cost, watts, per_kwh), share),
        gigabytes_per_second_per_price=amount(_gigabytes_per_price, size, seconds, total),
        gflops_per_price=amount(performance_per_price, rmax, total),
        joules_per_1000_requests=_widened(amount(joules_per_1000_requests, joules, served), share),
        price_per_request_per_second=amount(quotient, total, request_rate),
        served=_served(runs),
        method=_method(energies),
        level=min((energy.level for energy in energies), default=None),
        core_level=min((energy.level for energy in cores), default=None),
        uncertainty=share,
        remark=_mixture(energies),
        currency=prices.currency if prices else "",
    )


def _served(runs: Sequence[Measurement]) -> str:
    names = (name for name in _REQUESTS if any(name in run.figures for run in runs))
    return next((name.removeprefix(_TIMED) for name in names), "")


def _figure(runs: Sequence[Measurement], names: Sequence[str], reason: str) -> _Given:
    """Return what every run measured itself, under one of some names, or why not all have it."""
    found = [
        next((run.figures[name] for name in names if name in run.figures), None) for run in runs
    ]
    return _Given(found, reason if None in found else "")


def _amount(results: Sequence[Result], formula: Callable[..., float], *given: _Given) -> Amount:
    """Work out a formula for every run of which all is known that it takes."""
    rows = list(zip(*(row.values for row in given), strict=True))
    values: list[RunValue] = []
    for result, row in zip(results, rows, strict=True):
        with contextlib.suppress(ValueError):  # a time, power or price of 0: no quotient
            if None not in row:
                values.append(run_value(result, formula(*row)))
    why = "; ".join(dict.fromkeys(row.reason for row in given if row.reason))
    if not values:
        return Amount(value=None, interval=None, count=0, reason=why or "there are no runs")
    some = f"{len(values)} of {len(rows)} runs" + (f"; for the others: {why}" if why else "")
    known = estimate(values)
    return Amount(
        value=known.mean,
        interval=known.interval,
        count=known.runs,
        reason=some if len(values) < len(rows) else "",
    )


def metered_parts(energy: Energy) -> tuple[Power, ...]:
    """What meters recorded of an energy, which is called modelled if any part of it is."""
    return tuple(
        power
        for power in energy.powers
        if power.method is EnergyMethod.METERED and power.energy_joules is not None
    )


def _modelled(energies: Sequence[Energy]) -> int:
    return sum(energy.method is EnergyMethod.MODELLED for energy in energies)


def _method(energies: Sequence[Energy]) -> EnergyMethod | None:
    if not energies:
        return None
    return EnergyMethod.MODELLED if _modelled(energies) else EnergyMethod.METERED


def _mixture(energies: Sequence[Energy]) -> str:
    modelled = _modelled(energies)
    mixed = 0 < modelled < len(energies)
    return f"{modelled} of {len(energies)} energies are modelled" if mixed else ""


def _widened(amount: Amount, share: float) -> Amount:
    return replace(amount, interval=widened(amount.interval, share))


def widened(interval: Interval | None, share: float) -> Interval | None:
    """Add to an interval what its meters may be wrong by; more runs do not make that smaller.

    Returns:
        The interval; None without one, and where the share is 1 or more, as no upper limit holds.
    """
    if interval is None or not share:
        return interval
    if share >= 1:
        return None
    return replace(interval, low=interval.low / (1 + share), high=interval.high / (1 - share))


def _gigabytes_per_price(size_bytes: float, duration_seconds: float, price: float) -> float:
    return performance_per_price(quotient(size_bytes / _GIGABYTE_BYTES, duration_seconds), price)


def _joules(run: Measurement) -> float | None:
    return run.energy.energy_joules if run.energy else None


def _watts_given(runs: Sequence[Measurement]) -> Iterator[_Given]:
    """Yield the mean power of each run, and that over its core phase."""
    whole = [run.energy for run in runs]
    core = [energy and (energy.core or energy) for energy in whole]
    for watts, spans in ((watts_of, whole), (core_watts_of, core)):
        values = [watts(run.energy, run.duration_seconds) if run.energy else None for run in runs]
        yield _Given(values, _no_energy(spans))


def _no_energy(energies: Iterable[Energy | None]) -> str:
    """Say why energies are not known, each reason once; empty where all are."""
    reasons = [
        (energy.reason if energy else "") or "no meter, and no power is modelled"
        for energy in energies
        if energy is None or energy.energy_joules is None
    ]
    return "; ".join(dict.fromkeys(reasons))


def _total(prices: PriceList | None) -> tuple[float | None, str]:
    if prices is None:
        return None, "no prices are declared in [prices] of cluster.toml"
    if prices.missing:
        return None, "; ".join(prices.missing)
    total = prices.total
    return total, "" if total else "everything was free of charge"
