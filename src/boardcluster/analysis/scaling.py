"""How time changes with the number of workers, with the size, and with one thing else. Pure.

Sources: fixed work: G. M. Amdahl, "Validity of the single processor approach to achieving large
scale computing capabilities", AFIPS 1967; work that grows with the workers: J. L. Gustafson,
"Reevaluating Amdahl's law", *CACM* 31(5), 1988. Both are fitted by least squares of relative
residuals, since runs scatter in proportion to their time. Coefficients are held at 0 or above,
which keeps the serial share between 0 and 1. The interval of the serial share holds every share
whose best fit is not much worse than the best of all (profile likelihood: W. Q. Meeker and
L. A. Escobar, "Teaching about approximate confidence regions based on maximum likelihood
estimation", *The American Statistician* 49(1), 1995), given how the runs of each point scatter.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import TypeVar

from boardcluster.analysis.cells import Cell, Configuration
from boardcluster.analysis.fingerprints import OF_NODES, board_and_medium, differences_among
from boardcluster.analysis.inference import (
    ASSUMED_START_DEVIATION,
    Correction,
    EffectVerdict,
    MeasuredRatio,
    family,
    observe,
    precision_of,
)
from boardcluster.analysis.ratios import ratio_of_cells
from boardcluster.analysis.statistics import Interval, mean, t_quantile
from boardcluster.analysis.stopping import is_declared
from boardcluster.factors import FACTORS, FACTORS_BY_NAME, levels_without
from boardcluster.records import Campaign, Engine, Result

__all__ = [
    "FactorEffect",
    "Fit",
    "Law",
    "NodePoint",
    "NodeScaling",
    "SizeFit",
    "SizePoint",
    "SizeScaling",
    "amdahl_fit",
    "efficiency",
    "factor_effects",
    "gustafson_fit",
    "in_family",
    "intermediate_share",
    "latest_cells",
    "node_scalings",
    "other_differences",
    "predict",
    "predict_size",
    "scaling_among",
    "setup_of",
    "size_fit",
    "size_scalings",
    "work_follows_size",
]


class Law(StrEnum):
    """AMDAHL: the same work on more workers. GUSTAFSON: as much more work as there are workers."""

    AMDAHL = "Amdahl"
    GUSTAFSON = "Gustafson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law of scaling, fitted to times by number of workers."""

    law: Law
    """Which."""
    serial_share: float
    """The share of the work that more workers do not shorten, 0 to 1."""
    one_worker_seconds: float
    """Time on one worker that follows from the fit, measured or not."""
    residuals: tuple[float, ...]
    """(measured - fitted) / measured of each point, in order of workers; empty where the fit is
    exact, since they would say nothing."""
    r_squared: float | None
    """Share of the scatter that the fit explains, weighted as the residuals are; None where the fit
    is exact or all times are equal. Below 0 it is worse than one number."""
    largest_speed_up: float | None
    """What no number of workers exceeds: 1 / serial share. None without a bound, and where the
    runs do not show one: the interval of the share begins at 0, or the law does not fit."""
    exact: bool
    """Whether there are only two points and the law goes through both, as it does unless they ask
    for a share below 0 or above 1."""
    serial_interval: Interval | None = None
    """95 % interval of the serial share; None where a point has one run, and for Gustafson."""
    p_fit: float | None = None
    """P of points that are at least as far from the law, if it holds, by the scatter of their runs
    (F test of lack of fit); None where that is not known, or the fit is exact."""

    @property
    def is_refuted(self) -> bool:
        """Whether the runs show that the law does not hold."""
        return self.p_fit is not None and self.p_fit < _SIGNIFICANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoint:
    """One number of workers."""

    workers: int
    """How many."""
    count: int
    """Runs."""
    mean_seconds: float
    """Mean duration."""
    interval_seconds: Interval | None
    """Its 95 % interval; None for one run."""
    size_bytes: int
    """Input size."""
    speed_up: MeasuredRatio
    """Against the smallest number of workers, see ``NodeScaling``; 1 at that itself."""
    efficiency: float
    """Speed-up over how many times as many workers there are; 1 is ideal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeScaling:
    """Cells that differ only in their number of workers, or in that and, as much, in their size.

    Speed-up is T(base) / T(n) for the same work. Where the size grows with the workers it is
    n / base * T(base) / T(n): how many times as much work is done in the same time.
    """

    engine: Engine
    """The engine."""
    configuration: Configuration
    """What they have in common; ``workers`` is 0, and ``size_bytes`` is 0 where the size grows with
    the workers."""
    scaled: bool
    """Whether the size grows with the workers."""
    points: tuple[NodePoint, ...]
    """In order of workers; at least two."""
    base_workers: int
    """The smallest number of workers, which speed-up is against. Only where it is 1 is that a
    speed-up over one worker."""
    amdahl: Fit | None
    """Fit for the same work; None where the size grows."""
    gustafson: Fit | None
    """Fit for work that grows; None where the size is the same."""
    cells: tuple[Cell, ...]
    """The cells, in order of workers."""
    differences: tuple[str, ...]
    """What else differs among the fingerprints of the runs, one line each, but for what follows
    from the number of nodes."""
    bend: MeasuredRatio | None = None
    """The time of the most workers over that of the fastest number, for the same work; None where
    the most are the fastest."""
    older: int = 0
    """Cells of the same that are left out, because a later one is of another setup."""

    @property
    def bends_back(self) -> bool:
        """Whether the runs show that more workers take longer: no law of scaling here says so."""
        return self.bend is not None and self.bend.verdict is EffectVerdict.HIGHER

    @property
    def fastest_workers(self) -> int:
        """The number of workers with the smallest mean."""
        return min(self.points, key=lambda point: point.mean_seconds).workers

    @property
    def fit(self) -> Fit | None:
        """The one fit that there is."""
        return self.gustafson if self.scaled else self.amdahl

    @property
    def law(self) -> Fit | None:
        """The fit, where the runs do not show that the law does not hold: what may be stated."""
        return None if self.fit is None or self.fit.is_refuted or self.bends_back else self.fit

    @property
    def largest_speed_up(self) -> float | None:
        """What no number of workers exceeds, where the runs show it: see ``Fit``; else None."""
        law = self.law
        if law is None or law.serial_interval is None or self.bend is not None:
            return None
        return law.largest_speed_up


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    """One size of the input."""

    size_bytes: int
    """The size."""
    count: int
    """Runs."""
    mean_seconds: float
    """Mean duration."""
    interval_seconds: Interval | None
    """Its 95 % interval; None for one run."""
    throughput_bytes_per_second: float | None
    """Input of all runs over the time of all runs; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeFit:
    """Time by size as a straight line, and as a power."""

    start_seconds: float
    """Time of no input at all: starting, scheduling, ending."""
    throughput_bytes_per_second: float | None
    """Bytes that each further second takes in; None where time does not grow with the size."""
    exponent: float
    """B of time = a * size^b, by least squares of logarithms: 1 grows as the size does, below 1 a
    fixed part weighs, above 1 something gives way, such as memory."""
    residuals: tuple[float, ...]
    """(measured - fitted) / measured of each point by the line, in order of size; empty where it is
    exact."""
    r_squared: float | None
    """Share of the scatter that the line explains; None as in ``Fit``."""
    exact: bool
    """Whether there are only two points and the line goes through both, as it does unless it would
    fall with the size, or begin below 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScaling:
    """Cells that differ only in the size of their input."""

    engine: Engine
    """The engine."""
    configuration: Configuration
    """What they have in common; ``size_bytes`` is 0."""
    points: tuple[SizePoint, ...]
    """In order of size; at least two."""
    fit: SizeFit
    """Time by size."""
    cells: tuple[Cell, ...]
    """The cells, in order of size."""
    differences: tuple[str, ...]
    """What else differs among the fingerprints of the runs, one line each."""
    older: int = 0
    """Cells of the same that are left out, because a later one is of another setup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorEffect:
    """Two cells that differ in exactly one thing."""

    factor: str
    """What: a factor such as ``engine`` or ``replication``, ``security``, ``boards and media``,
    ``software``, or the name of a parameter or of a setting."""
    slower: Cell
    """The cell with the larger mean."""
    faster: Cell
    """The other one."""
    slower_value: str
    """Its value in the slower cell, as it is stored; the report says it in words."""
    faster_value: str
    """Its value in the faster cell."""
    ratio: MeasuredRatio
    """Time of the slower over time of the faster."""
    differences: tuple[str, ...]
    """What else differs among the fingerprints of the runs, one line each."""


# Fits, over plain numbers

_Points = Sequence[tuple[int, float]]
_SIGNIFICANCE = 0.05
_ROUNDING = 1e-6
"""Residuals of a line through its points."""
_SHARES = 10_001
"""Serial shares that are tried for its interval: steps of 0.01 %."""


def efficiency(speed_up: float, *, workers: int, base_workers: int = 1) -> float:
    """Speed-up over how many times as many workers there are: S / (n / base); 1 is ideal.

    Raises:
        ValueError: a number of workers is below 1.
    """
    if min(workers, base_workers) < 1:
        raise ValueError(f"an efficiency of {workers} workers against {base_workers}")
    return speed_up * base_workers / workers


def amdahl_fit(points: _Points, errors: Sequence[float] = (), *, degrees: int = 0) -> Fit | None:
    """Fit Amdahl's law: T(n) = T1 * (s + (1 - s) / n), for the same work on n workers.

    Args:
        points: numbers of workers and seconds.
        errors: the standard error of each point as a share of its seconds; empty if not known.
        degrees: degrees of freedom of these errors, together.

    Returns:
        None for fewer than two different numbers of workers.

    Raises:
        ValueError: a number of workers is below 1, or a time not above 0.
    """
    rows = _checked(points)
    if len({workers for workers, _ in rows}) < 2:
        return None
    seconds = [row[1] for row in rows]
    serial, parallel = _line([1 / workers for workers, _ in rows], seconds)
    fitted = [serial + parallel / workers for workers, _ in rows]
    share = serial / (serial + parallel)
    fit = _fit(Law.AMDAHL, share, serial + parallel, rows, fitted)
    if not errors or not degrees or min(errors) <= 0:
        return fit
    shares = [each for _, each in sorted(zip(points, errors, strict=True))]
    found, p_fit = _serial_interval(rows, shares, degrees)
    # Points weigh by their errors there and alike in the fit, whose share is never outside.
    interval = Interval(low=min(found.low, share), high=max(found.high, share))
    fit = dataclasses.replace(fit, serial_interval=interval, p_fit=None if fit.exact else p_fit)
    bounded = not fit.exact and not fit.is_refuted and interval.low > 0
    return fit if bounded else dataclasses.replace(fit, largest_speed_up=None)


def _serial_interval(
    rows: Sequence[tuple[int, float]], errors: Sequence[float], degrees: int
) -> tuple[Interval, float]:
    """Return the profile interval of the serial share, and p of the lack of fit."""
    import numpy as np  # noqa: PLC0415  most commands fit nothing
    from scipy.special import fdtrc  # noqa: PLC0415

    workers = np.array([row[0] for row in rows], dtype=float)
    seconds = np.array([row[1] for row in rows])
    weights = 1 / (seconds * np.array(errors)) ** 2
    shares = np.linspace(0, 1, _SHARES)
    shapes = shares[:, None] + (1 - shares[:, None]) / workers[None, :]
    scales = (shapes * seconds * weights).sum(axis=1) / (shapes**2 * weights).sum(axis=1)
    misses = (((seconds - scales[:, None] * shapes) ** 2) * weights).sum(axis=1)
    least = float(misses.min())
    inside = shares[misses <= least + t_quantile(degrees) ** 2]
    free = max(1, len(rows) - 2)
    return (
        Interval(low=float(inside[0]), high=float(inside[-1])),
        float(fdtrc(free, degrees, least / free)),
    )


def gustafson_fit(points: _Points) -> Fit | None:
    """Fit Gustafson's law: S(n) = n - s * (n - 1), for n times the work on n workers.

    The work of n workers takes T(n) = T1 * n / S(n), since one worker would take n * T1 for it. So
    the rate n / T(n) is a straight line in n, and that is what is fitted. The points are numbers of
    workers and seconds for work in proportion. None for fewer than two different numbers.

    Raises:
        ValueError: a number of workers is below 1, or a time not above 0.
    """
    rows = _checked(points)
    if len({workers for workers, _ in rows}) < 2:
        return None
    numbers = [float(workers) for workers, _ in rows]
    serial, parallel = _line(numbers, [workers / seconds for workers, seconds in rows])
    fitted = [workers / (serial + parallel * workers) for workers in numbers]
    share = serial / (serial + parallel)
    return _fit(Law.GUSTAFSON, share, 1 / (serial + parallel), rows, fitted)


def predict(fit: Fit, workers: int) -> float:
    """Return the seconds that a fit gives for a number of workers, measured or not.

    By Amdahl's law for the same work, by Gustafson's for work in proportion to the workers.

    Raises:
        ValueError: the number is below 1.
    """
    if workers < 1:
        raise ValueError(f"a prediction for {workers} workers")
    if fit.law is Law.AMDAHL:
        return fit.one_worker_seconds * (fit.serial_share + (1 - fit.serial_share) / workers)
    return fit.one_worker_seconds * workers / (workers - fit.serial_share * (workers - 1))


def size_fit(points: _Points) -> SizeFit | None:
    """Fit time by size: T = start + size / throughput, and the exponent of T = a * size^b.

    The points are sizes in bytes and seconds. None for fewer than two different sizes.

    Raises:
        ValueError: a size is below 1, or a time not above 0.
    """
    rows = _checked(points)
    if len({size for size, _ in rows}) < 2:
        return None
    start, slope = _line([float(size) for size, _ in rows], [seconds for _, seconds in rows])
    fitted = [start + slope * size for size, _ in rows]
    exact = _is_exact(rows, fitted)
    return SizeFit(
        start_seconds=start,
        throughput_bytes_per_second=1 / slope if slope > 0 else None,
        exponent=_exponent(rows),
        residuals=() if exact else _residuals(rows, fitted),
        r_squared=None if exact else _r_squared(rows, fitted),
        exact=exact,
    )


def predict_size(fit: SizeFit, size_bytes: int) -> float:
    """Return the seconds that the straight line gives for a size.

    Raises:
        ValueError: the size is below 0.
    """
    if size_bytes < 0:
        raise ValueError(f"a prediction for {size_bytes} bytes")
    rate = fit.throughput_bytes_per_second
    return fit.start_seconds + (size_bytes / rate if rate else 0.0)


def _checked(points: _Points) -> list[tuple[int, float]]:
    for number, seconds in points:
        if number < 1 or not 0 < seconds < math.inf:
            raise ValueError(f"a time of {seconds} s at {number} cannot be fitted")
    return sorted(points)


def _fit(
    law: Law,
    share: float,
    one_worker_seconds: float,
    rows: Sequence[tuple[int, float]],
    fitted: Sequence[float],
) -> Fit:
    exact = _is_exact(rows, fitted)
    bounded = law is Law.AMDAHL and share > 0
    return Fit(
        law=law,
        serial_share=share,
        one_worker_seconds=one_worker_seconds,
        residuals=() if exact else _residuals(rows, fitted),
        r_squared=None if exact else _r_squared(rows, fitted),
        largest_speed_up=1 / share if bounded else None,
        exact=exact,
    )


def _line(places: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return intercept and slope, neither below 0, with the least squares of relative residuals.

    Dividing value = intercept + slope * place by the value leaves 1 = intercept * u + slope * v.
    """
    from scipy.optimize import nnls  # noqa: PLC0415  most commands fit nothing

    scale = max(places)  # places are sizes in bytes too; near 1 the equations keep their digits
    rows = [(1 / value, place / scale / value) for place, value in zip(places, values, strict=True)]
    (intercept, slope), _ = nnls(rows, [1.0] * len(rows))
    return float(intercept), float(slope) / scale


def _is_exact(rows: Sequence[tuple[int, float]], fitted: Sequence[float]) -> bool:
    return len(rows) == 2 and max(map(abs, _residuals(rows, fitted))) < _ROUNDING


def _residuals(rows: Sequence[tuple[int, float]], fitted: Sequence[float]) -> tuple[float, ...]:
    return tuple((row[1] - value) / row[1] for row, value in zip(rows, fitted, strict=True))


def _r_squared(rows: Sequence[tuple[int, float]], fitted: Sequence[float]) -> float | None:
    """1 - sum(((T - fitted) / T)^2) / sum(((T - m) / T)^2), m the one number that fits best."""
    weights = [1 / seconds for _, seconds in rows]
    best = math.fsum(weights) / math.fsum(weight**2 for weight in weights)
    around = math.fsum((1 - best * weight) ** 2 for weight in weights)
    if around < 1e-18:  # all times are equal, but for rounding
        return None
    return 1 - math.fsum(share**2 for share in _residuals(rows, fitted)) / around


def _exponent(rows: Sequence[tuple[int, float]]) -> float:
    sizes, times = zip(
        *((math.log(size), math.log(seconds)) for size, seconds in rows), strict=True
    )
    return statistics.linear_regression(sizes, times).slope


# Cells by number of workers

_MIX = "+"
_MATRIX = "hpl"
"""Its operations grow as the size to the power 1.5, and its size with the workers where none is
given."""
_PAIRS = "netpipe"
"""Each two workers send to each other in turn."""


def node_scalings(cells: Iterable[Cell]) -> tuple[NodeScaling, ...]:
    """Return how the cells scale with the number of workers, in their order.

    First the cells of the same size, then those whose size is in proportion to the workers, where
    there are at least two of either. Cells whose work follows from the number of workers are of no
    use for it. Runs on different boards or media are kept apart, and so are those of emulated
    boards that stand for different ones. Where a number of workers was measured on several setups,
    the latest one is taken.
    """
    rows = [cell for cell in cells if not _follows_workers(cell)]
    same = _grouped(
        rows, lambda cell: (_without(cell, workers=0), cell.engine, _twin_of(cell.results[0]))
    )
    grown = _grouped(
        [cell for cell in rows if cell.size_bytes and work_follows_size(cell)],
        lambda cell: (
            _without(cell, workers=0, size_bytes=0),
            cell.engine,
            _twin_of(cell.results[0]),
            Fraction(cell.size_bytes, cell.workers),
        ),
    )
    return tuple(
        _node_scaling(chosen, scaled=scaled, older=len(group) - len(chosen))
        for groups, scaled in ((same, False), (grown, True))
        for every in groups
        for group in _of_like_boards(every)
        if len(chosen := latest_cells(group, lambda cell: cell.workers)) > 1
    )


def work_follows_size(cell: Cell) -> bool:
    """Whether twice the size is twice the work, as of all but HPL, which solves a matrix."""
    return _MATRIX not in cell.workload.split(_MIX)


def _follows_workers(cell: Cell) -> bool:
    """Whether its work follows from the number of workers: more of them take longer for more."""
    jobs = cell.workload.split(_MIX)
    return _PAIRS in jobs or (_MATRIX in jobs and not cell.size_bytes)


def scaling_among(scalings: Iterable[NodeScaling], cells: Iterable[Cell]) -> NodeScaling | None:
    """Return how the same work scales, of whose cells all are among these; None if none is so."""
    known = set(map(id, cells))
    found = (row for row in scalings if not row.scaled and known.issuperset(map(id, row.cells)))
    return next(found, None)


def _of_like_boards(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Part cells where one of their boards, by its name, was another one or had another medium."""
    found: list[tuple[dict[str, tuple[str, str]], list[Cell]]] = []
    for cell in cells:
        lines = (line for setup in cell.fingerprints[:1] for line in setup.hardware)
        boards = {line.partition(": ")[0]: board_and_medium(line) for line in lines}
        for known, alike in found:
            if all(known.get(name, words) == words for name, words in boards.items()):
                known.update(boards)
                alike.append(cell)
                break
        else:
            found.append((boards, [cell]))
    return [alike for _, alike in found]


def latest_cells(cells: Iterable[Cell], key: Callable[[Cell], float]) -> list[Cell]:
    """Return the cell of each number, in their order; of several setups the one that ran last."""
    found: dict[float, Cell] = {}
    for cell in cells:
        kept = found.get(key(cell))
        if kept is None or cell.last_utc > kept.last_utc:
            found[key(cell)] = cell
    return [found[number] for number in sorted(found)]


def _node_scaling(cells: Sequence[Cell], *, scaled: bool, older: int) -> NodeScaling:
    base = cells[0]
    times = [(cell.workers, cell.mean_seconds) for cell in cells]
    common = _without(base, workers=0, size_bytes=0) if scaled else _without(base, workers=0)
    errors, degrees = _errors(cells)
    return NodeScaling(
        engine=base.engine,
        configuration=common,
        scaled=scaled,
        points=tuple(_node_point(cell, base, scaled=scaled) for cell in cells),
        base_workers=base.workers,
        amdahl=None if scaled else amdahl_fit(times, errors, degrees=degrees),
        gustafson=gustafson_fit(times) if scaled else None,
        cells=tuple(cells),
        differences=other_differences(cells, apart_from="workers"),
        bend=None if scaled else _bend(cells),
        older=older,
    )


def _errors(cells: Sequence[Cell]) -> tuple[list[float], int]:
    """Standard errors of the means as shares of them, and their degrees of freedom together.

    Nothing where a cell has one run. Each number of workers is a start of the cluster of its own:
    see ``ASSUMED_START_DEVIATION``.
    """
    known = [precision_of(observe(cell.results)) for cell in cells]
    errors = [
        math.hypot(row.standard_error, 0.0 if row.starts > 1 else ASSUMED_START_DEVIATION)
        for row in known
        if row.standard_error is not None
    ]
    if len(errors) < len(known):
        return [], 0
    return errors, sum(row.count - 1 for row in known)


def _bend(cells: Sequence[Cell]) -> MeasuredRatio | None:
    fastest = min(cells, key=lambda cell: cell.mean_seconds)
    return None if fastest is cells[-1] else ratio_of_cells(cells[-1], fastest)


def _node_point(cell: Cell, base: Cell, *, scaled: bool) -> NodePoint:
    speed_up = ratio_of_cells(base, cell)
    if scaled:
        speed_up = speed_up.times(cell.workers / base.workers)
    return NodePoint(
        workers=cell.workers,
        count=cell.count,
        mean_seconds=cell.mean_seconds,
        interval_seconds=cell.interval_seconds,
        size_bytes=cell.size_bytes,
        speed_up=speed_up,
        efficiency=efficiency(speed_up.value, workers=cell.workers, base_workers=base.workers),
    )


# Cells by size


def size_scalings(cells: Iterable[Cell]) -> tuple[SizeScaling, ...]:
    """Return how the cells scale with the size of their input, where there are two or more.

    Only where the work is in proportion to it. Setups are kept apart as in ``node_scalings``.
    """
    groups = _grouped(
        [cell for cell in cells if cell.size_bytes and work_follows_size(cell)],
        lambda cell: (_without(cell, size_bytes=0), cell.engine, _twin_of(cell.results[0])),
    )
    return tuple(
        scaling
        for every in groups
        for group in _of_like_boards(every)
        if (scaling := _size_scaling(group)) is not None
    )


def _size_scaling(group: Sequence[Cell]) -> SizeScaling | None:
    cells = latest_cells(group, lambda cell: cell.size_bytes)
    fit = size_fit([(cell.size_bytes, cell.mean_seconds) for cell in cells])
    if fit is None:
        return None
    return SizeScaling(
        engine=cells[0].engine,
        configuration=_without(cells[0], size_bytes=0),
        points=tuple(
            SizePoint(
                size_bytes=cell.size_bytes,
                count=cell.count,
                mean_seconds=cell.mean_seconds,
                interval_seconds=cell.interval_seconds,
                throughput_bytes_per_second=cell.throughput_bytes_per_second,
            )
            for cell in cells
        ),
        fit=fit,
        cells=tuple(cells),
        differences=other_differences(cells),
        older=len(group) - len(cells),
    )


def intermediate_share(cell: Cell) -> float | None:
    """Intermediate data per byte of input: what engines wrote to local storage that is not output.

    None where an engine does not say it, or the input is unknown. Source: Lee and Park 2026, Tables
    11 and 13.
    """
    sizes = [row.measurement.input_bytes for row in cell.results if row.measurement is not None]
    if cell.mean_intermediate_bytes is None or not sizes or not all(sizes):
        return None
    return cell.mean_intermediate_bytes / mean(sizes)


# One thing else


_SETUP = "boards and media"
_SOFTWARE = "software"
_ALONE = tuple(
    factor.name
    for factor in FACTORS
    if not factor.changes_work and factor.kind is not dict and factor.name != "workers"
)
"""Factors whose effect is shown: the same work on as many workers; each setting is one more."""


def factor_effects(cells: Iterable[Cell]) -> tuple[FactorEffect, ...]:
    """Compare every two cells that differ in exactly one thing but workers and size.

    Boards and media are such a thing as well (see ``setup_of``), and so is what else tells setups
    apart, such as the BLAS. No p value is corrected yet: see ``in_family``.
    """
    rows = list(cells)
    setups = {id(cell): setup_of(cell.results[0]) for cell in rows}
    parameters, settings = (
        sorted({key for cell in rows for key in FACTORS_BY_NAME[table].level(cell.trial)})
        for table in ("parameters", "settings")
    )

    def value(cell: Cell, factor: str) -> str:
        if factor == _SETUP:
            return setups[id(cell)]
        if factor == _SOFTWARE:
            return cell.configuration.software
        if factor == "security":
            return str(cell.configuration.security)
        if factor in settings:
            return cell.trial.settings.get(factor, "as the profile")
        if factor in _ALONE:
            return str(FACTORS_BY_NAME[factor].level(cell.trial))
        return cell.trial.parameters.get(factor, "")

    def rest(cell: Cell, factor: str) -> tuple[object, ...]:
        security = None if factor == "security" else cell.configuration.security
        boards = None if factor == _SETUP else setups[id(cell)]
        setup = None if factor in (_SETUP, _SOFTWARE) else cell.configuration.setup
        return (*levels_without(cell.trial, factor), security, boards, setup)

    found = []
    for factor in (*_ALONE, "security", _SETUP, _SOFTWARE, *parameters, *settings):
        for group in _grouped(rows, functools.partial(rest, factor=factor)):
            found += [
                _effect(factor, one, other, value)
                for place, one in enumerate(group)
                for other in group[place + 1 :]
                if value(one, factor)
                and value(other, factor)
                and value(one, factor) != value(other, factor)
            ]
    return tuple(found)


def _effect(factor: str, one: Cell, other: Cell, value: Callable[[Cell, str], str]) -> FactorEffect:
    faster, slower = sorted((one, other), key=lambda cell: cell.mean_seconds)
    return FactorEffect(
        factor=factor,
        slower=slower,
        faster=faster,
        slower_value=value(slower, factor),
        faster_value=value(faster, factor),
        ratio=ratio_of_cells(slower, faster),
        differences=other_differences((slower, faster), apart_from=factor),
    )


def in_family(
    effects: Sequence[FactorEffect],
    scalings: Sequence[NodeScaling],
    campaigns: Mapping[str, Campaign] = MappingProxyType({}),
) -> tuple[tuple[FactorEffect, ...], tuple[NodeScaling, ...]]:
    """Return effects and scalings with p values that are corrected for their number.

    What the campaigns declared to compare is a family of its own. All else is read together, and
    what stands out is picked from all of it: every other effect, every speed-up for the same work,
    and every bend.

    Args:
        effects: what changing one factor changes.
        scalings: how cells scale.
        campaigns: by id, the campaigns that the runs are of.
    """
    declared = [row.ratio for row in effects if _is_declared(row, campaigns)]
    kept = set(map(id, declared))
    ratios = [row.ratio for row in effects if id(row.ratio) not in kept]
    ratios += [point.speed_up for row in scalings for point in row.points[1:]]
    ratios += [row.bend for row in scalings if row.bend is not None]
    corrected = (*family(declared, Correction.CONFIRMATORY), *family(ratios))
    new = dict(zip(map(id, (*declared, *ratios)), corrected, strict=True))
    return (
        tuple(dataclasses.replace(row, ratio=new[id(row.ratio)]) for row in effects),
        tuple(
            dataclasses.replace(
                row,
                points=(
                    row.points[0],
                    *(
                        dataclasses.replace(point, speed_up=new[id(point.speed_up)])
                        for point in row.points[1:]
                    ),
                ),
                bend=None if row.bend is None else new[id(row.bend)],
            )
            for row in scalings
        ),
    )


def _is_declared(effect: FactorEffect, campaigns: Mapping[str, Campaign]) -> bool:
    """Whether every campaign that its runs are of declared the comparison."""
    runs = (*effect.slower.results, *effect.faster.results)
    known = [campaigns.get(name) for name in {row.trial.campaign_id for row in runs}]
    return all(
        campaign is not None
        and is_declared(campaign.comparisons, effect.slower.trial, effect.faster.trial)
        for campaign in known
    )


def setup_of(result: Result) -> str:
    """Words for the boards and media that a run was on; empty where nodes are none.

    Of emulated boards what they stand for, of boards the lines of the fingerprint as far as they
    speak of hardware; each kind once, however many nodes are of it.
    """
    if result.attempt is None:
        return ""
    lines = result.attempt.fingerprint.hardware
    return _twin_of(result) or "; ".join(dict.fromkeys(_hardware_of(line) for line in lines))


def _hardware_of(line: str) -> str:
    """The part of a fingerprint's line on a board before its page size: software follows."""
    parts = line.partition(": ")[2].split(", ")
    pages = next((place for place, part in enumerate(parts) if part.endswith(" KiB pages")), None)
    return ", ".join(parts[:pages])


def _twin_of(result: Result) -> str:
    """What emulated boards stand for, without how many there are of each."""
    words = result.attempt.fingerprint.twin if result.attempt else ""
    kinds = [re.sub(r"^\d+ x ", "", part) for part in words.split(" + ")]
    return " + ".join(dict.fromkeys(kinds))


# What is common


_FOLLOWS = {
    "workers": ("number of nodes:", "generated configuration", "boards that nodes stand for:"),
    "master": ("number of nodes:", "generated configuration", "boards that nodes stand for:"),
    "profile": ("profile:", "generated configuration"),
    "security": ("security:", "generated configuration"),
    _SETUP: ("boards that nodes stand for:", "board ", "limits of "),
    _SOFTWARE: ("",),
}
"""Beginnings of the lines on fingerprints that say nothing new where this is what differs."""


def other_differences(cells: Sequence[Cell], *, apart_from: str = "") -> tuple[str, ...]:
    """Name what differs among the fingerprints of cells, one line each.

    Args:
        cells: the cells.
        apart_from: the factor in which they differ; what follows from it is not named.
    """
    lines = differences_among(row for cell in cells for row in cell.fingerprints)
    missing = apart_from in {"workers", "master"}
    follows = _FOLLOWS.get(apart_from, ())
    if "." in apart_from:
        follows = ("generated configuration",)
    return tuple(
        line
        for line in lines
        if not line.startswith(follows) and not (missing and "not there" in line)
    )


def _without(cell: Cell, **parts: object) -> Configuration:
    """Return a configuration without these, nor what of its setup follows from the workers."""
    known = cell.configuration
    setup = tuple(row for row in known.setup if row[0] not in OF_NODES)
    return dataclasses.replace(known, setup=setup, **parts)  # type: ignore[arg-type]


_Row = TypeVar("_Row")


def _grouped(rows: Iterable[_Row], key: Callable[[_Row], object]) -> list[list[_Row]]:
    groups: dict[object, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())
