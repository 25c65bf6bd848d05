"""What is known before a question is asked: published series, own runs, and the calibration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boardcluster.errors import SpecError
from boardcluster.plan.backtest import TIE, hold_out, joined
from boardcluster.plan.calibration import HeldOut, IntervalCalibration, read_calibration
from boardcluster.plan.hardware import (
    OWN_HARDWARE,
    BoardRates,
    MediumRates,
    board_rates,
    medium_rates,
    reference_mips,
    reference_write,
)
from boardcluster.plan.intermediate import fit_intermediate, published_intermediate
from boardcluster.plan.model import LearnedSeries, RuntimeModel
from boardcluster.plan.observations import (
    GIGABYTE,
    RunObservation,
    observations_kept_aside,
    published_observations,
    work_arrays,
)
from boardcluster.plan.own_runs import OwnRates
from boardcluster.plan.own_series import contradiction, fit_own, hold_out_own
from boardcluster.plan.power import load_of
from boardcluster.plan.series import SeriesData, distances, fit_series
from boardcluster.plan.spill import SpillRule, own_spill_rule, spill_rule
from boardcluster.records import Engine
from boardcluster.units import format_count

__all__ = [
    "KEPT_ASIDE",
    "held_out_cells",
    "intermediate_kin",
    "kept_aside",
    "learn",
    "own_hardware",
    "own_held_out",
    "prior_words",
    "published_calibration",
    "published_series",
    "series_data",
]

BACKTESTS = Path(__file__).parent / "backtests.csv"
"""The held-out cells of the published series; tools/write_reference.py writes it, since holding
them out takes longer than a prediction may."""
_LEAST_CELLS = 3
_OWN_NEEDS = 2
"""Sizes or numbers of workers without which a workload without published series is not learned."""
KEPT_ASIDE = "at most 4 GB to 500 GB and 1 TB, also of another paper"
"""The protocol of the times that nothing is learned from."""
_SPILLING = ("terasort", "wordcount")
"""Workloads whose intermediate bytes grow with their input."""

_Key = tuple[str, Engine]


def series_data(
    runs: Sequence[RunObservation],
    boards: Mapping[str, BoardRates],
    media: Mapping[str, MediumRates],
) -> SeriesData:
    """Return runs as data of a series; their boards and media must have the figures needed."""
    return SeriesData(
        work=work_arrays(
            runs,
            slowness=[media[run.medium].slowness or 1.0 for run in runs],
            cpu_rate=[boards[run.board].cpu_rate or 1.0 for run in runs],
        ),
        seconds=np.array([run.seconds for run in runs], float),
        media=np.array([run.medium for run in runs]),
    )


@cache
def published_series() -> Mapping[_Key, tuple[SeriesData, SpillRule, tuple[RunObservation, ...]]]:
    """Return the published series by workload and engine.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    found: dict[_Key, list[RunObservation]] = {}
    for run in published_observations():
        found.setdefault((run.workload, run.engine), []).append(run)
    boards = {run.board: board_rates(run.board) for run in published_observations()}
    media = {run.medium: medium_rates(run.medium) for run in published_observations()}
    return {
        key: (
            series_data(runs, boards, media),
            spill_rule(*key, runs[0].settings),
            tuple(runs),
        )
        for key, runs in found.items()
    }


def held_out_cells() -> HeldOut:
    """Hold out the cells of every published series that has several sizes."""
    within = [
        part
        for (workload, engine), (data, rule, _) in published_series().items()
        if len(np.unique(data.work.amount)) >= _LEAST_CELLS
        for part in hold_out(f"{workload} on {engine}", data, rule)
    ]
    return joined([*within, kept_aside()])


def kept_aside() -> HeldOut:
    """Predict the published times that nothing is learned from, far beyond the tables."""
    runs = observations_kept_aside()
    logs, spreads, away = [], [], []
    for run in runs:
        data, rule, _ = published_series()[run.workload, run.engine]
        asked = series_data(
            [run], {run.board: board_rates(run.board)}, {run.medium: medium_rates(run.medium)}
        )
        fitted = fit_series(data, rule, tie=TIE)
        log, spread = fitted.logs(asked.work, asked.media)
        logs.append(float(np.log(run.seconds) - log[0]))
        spreads.append(float(spread[0]))
        away.append(distances(data.work, asked.work)[0])
    return HeldOut(
        series=np.array([f"{run.workload} on {run.engine}" for run in runs]),
        protocol=np.full(len(runs), KEPT_ASIDE),
        fold=np.array([run.source for run in runs]),
        log_error=np.array(logs),
        spread=np.array(spreads),
        distance=np.array(away),
    )


@cache
def published_calibration() -> IntervalCalibration:
    """Return the calibration by the published series, as it was written down.

    Raises:
        SpecError: the file is missing or cut short.
    """
    try:
        return read_calibration(BACKTESTS)
    except (OSError, ValueError) as error:
        raise SpecError(
            f"{BACKTESTS}: cannot be read: {error}", hint="restore the file from the package"
        ) from error


def own_hardware(
    rates: OwnRates, *, memory_bytes: int, cores: int
) -> tuple[BoardRates, MediumRates]:
    """Return what own probes say of own nodes; without probes they are comparable to themselves."""
    mips, write = rates.seven_zip_mips, rates.hdfs_write_mebibytes_per_second
    board = BoardRates(
        name=OWN_HARDWARE,
        cores=cores,
        memory_bytes=memory_bytes,
        cpu_rate=mips / reference_mips() if mips else None,
        cpu_source="own probe seven-zip" if mips else "",
        idle_watts=None,
        stress_watts=None,
    )
    medium = MediumRates(
        name=OWN_HARDWARE,
        capacity_bytes=None,
        slowness=reference_write() / write if write else None,
        source="own runs of dfsio" if write else "",
    )
    return board, medium


def learn(
    boards: Iterable[BoardRates],
    media: Iterable[MediumRates],
    *,
    own: Mapping[_Key, Sequence[RunObservation]] | None = None,
    said: Mapping[_Key, Sequence[str]] | None = None,
    keys: Iterable[_Key] | None = None,
) -> RuntimeModel:
    """Learn from the published series, and from own runs where there are some.

    Args:
        boards: those that may be asked for.
        media: likewise.
        own: own runs by workload and engine; of each, runs that may be learned from together.
        said: what is to be said of those left out.
        keys: workloads and engines that are asked for; None for all.
    """
    known_boards = {row.name: row for row in boards}
    known_media = {row.name: row for row in media}
    wanted = published_series().keys() if keys is None else published_series().keys() & set(keys)
    series = {key: _published(key) for key in wanted}
    calibration = published_calibration()
    for key, words in (said or {}).items():
        if key in series:
            series[key] = replace(series[key], sources=(*series[key].sources, *words))
    for key, runs in (own or {}).items():
        usable = [run for run in runs if _has_rates(run, known_boards, known_media, runs)]
        prior = series.get(key)
        if usable and (prior or len({(run.amount, run.workers) for run in usable}) >= _OWN_NEEDS):
            learned, cells = _own(key, usable, prior, known_boards, known_media)
            if prior is None:
                learned = replace(learned, sources=(*learned.sources, *(said or {}).get(key, ())))
            series[key] = learned
            if cells:
                calibration = IntervalCalibration.of(joined([calibration.cells, *cells]))
    return RuntimeModel(
        boards=known_boards,
        media=known_media,
        series=series,
        calibration=calibration,
        said={key: tuple(words) for key, words in (said or {}).items()},
    )


def _has_rates(
    run: RunObservation,
    boards: Mapping[str, BoardRates],
    media: Mapping[str, MediumRates],
    runs: Sequence[RunObservation],
) -> bool:
    """Whether a run can be compared with the others: by figures, or because all are of one kind."""
    board, medium = boards.get(run.board), media.get(run.medium)
    if board is None or medium is None:
        return False
    alike = len({(row.board, row.medium) for row in runs}) == 1
    return alike or (board.cpu_rate is not None and medium.slowness is not None)


def _published(key: _Key) -> LearnedSeries:
    data, rule, runs = published_series()[key]
    workload, engine = key
    curve = None
    if key in published_intermediate() and workload in _SPILLING:
        amount, gigabytes, source = published_intermediate()[key]
        curve = fit_intermediate(
            engine, amount, gigabytes, source=source, kin=intermediate_kin(key)
        )
    return LearnedSeries(
        workload=workload,
        engine=engine,
        fitted=fit_series(data, rule, tie=TIE),
        settings=dict(runs[0].settings),
        least_link_bits_per_second=min(run.link_bits_per_second for run in runs),
        load=load_of(workload, engine),
        sources=(f"{len(runs)} cells of {', '.join(dict.fromkeys(run.source for run in runs))}",),
        intermediate=curve,
    )


def intermediate_kin(
    key: _Key,
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return what else says which curve is likely.

    For MapReduce, whose merges are one code, it is the other workload that spills; for Spark, whose
    programs upload different things, nothing.
    """
    if key[1] is not Engine.MAPREDUCE:
        return []
    return [
        (amount, gigabytes)
        for other, (amount, gigabytes, _) in published_intermediate().items()
        if other != key and other[1] is key[1] and other[0] in _SPILLING
    ]


def _own(
    key: _Key,
    runs: Sequence[RunObservation],
    prior: LearnedSeries | None,
    boards: Mapping[str, BoardRates],
    media: Mapping[str, MediumRates],
) -> tuple[LearnedSeries, list[HeldOut]]:
    """Learn one series of own runs, with the published one as a prior where there is one."""
    data = series_data(runs, boards, media)
    settings = {name: value for name, value in runs[0].settings.items() if name != "profile"}
    rule = own_spill_rule(*key, settings)
    starts = np.array(
        [np.nan if run.start_seconds is None else run.start_seconds for run in runs], float
    )
    before = prior.fitted if prior else None
    shares = [
        (run.amount, run.intermediate_bytes / (run.amount * GIGABYTE))
        for run in runs
        if run.intermediate_bytes is not None and run.amount
    ]
    watts: dict[str, list[float]] = {}
    for run in runs:
        if run.joules:
            watts.setdefault(run.board, []).append(run.joules / run.seconds / run.workers)
    name = f"{key[0]} on {key[1]}, own runs"
    learned = LearnedSeries(
        workload=key[0],
        engine=key[1],
        fitted=fit_own(data, starts, rule, before),
        settings=settings,
        least_link_bits_per_second=min(
            (run.link_bits_per_second for run in runs if run.link_bits_per_second), default=0.0
        ),
        load=prior.load if prior else load_of(*key),
        sources=(
            format_count(len(runs), "own run"),
            *(prior_words(source) for source in (prior.sources if prior else ())),
        ),
        intermediate=prior.intermediate if prior else None,
        intermediate_share=float(np.median([share for _, share in shares])) if shares else None,
        intermediate_largest=max((amount for amount, _ in shares), default=0.0),
        own_watts={board: float(np.median(found)) for board, found in watts.items()},
        own_runs=len(runs),
        memory_seen_bytes=min(boards[run.board].memory_bytes or math.inf for run in runs),
        unrated=frozenset(
            [
                *(run.board for run in runs if boards[run.board].cpu_rate is None),
                *(run.medium for run in runs if media[run.medium].slowness is None),
            ]
        ),
        contradiction=contradiction(key[0], data),
    )
    return learned, hold_out_own(name, data, starts, rule, before)


def prior_words(source: str) -> str:
    """Say what a source of the published series is beside own runs."""
    return source if source.startswith(("left out", "included")) else f"{source}, as a prior"


def own_held_out(key: _Key, runs: Sequence[RunObservation]) -> list[HeldOut]:
    """Hold out each configuration of a group of own runs; nothing for fewer than three."""
    names = {run.board for run in runs} | {run.medium for run in runs}
    known = {name for name in names if name != OWN_HARDWARE}
    unrated = own_hardware(
        OwnRates(seven_zip_mips=None, hdfs_write_mebibytes_per_second=None), memory_bytes=0, cores=1
    )
    boards = {run.board: board_rates(run.board) for run in runs if run.board in known}
    media = {run.medium: medium_rates(run.medium) for run in runs if run.medium in known}
    boards[OWN_HARDWARE], media[OWN_HARDWARE] = unrated
    data = series_data(runs, boards, media)
    settings = {name: value for name, value in runs[0].settings.items() if name != "profile"}
    starts = np.array(
        [np.nan if run.start_seconds is None else run.start_seconds for run in runs], float
    )
    prior = _published(key).fitted if key in published_series() else None
    return hold_out_own(
        f"{key[0]} on {key[1]}, own runs", data, starts, own_spill_rule(*key, settings), prior
    )
