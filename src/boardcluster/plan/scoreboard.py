"""How good predictions of the published tables are, by every protocol; what the docs page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from boardcluster.plan.backtest import (
    ProtocolScore,
    chosen_ties,
    hold_out,
    joined,
    scores,
)
from boardcluster.plan.calibration import IntervalCalibration
from boardcluster.plan.hardware import board_rates, medium_rates
from boardcluster.plan.intermediate import fit_intermediate, published_intermediate
from boardcluster.plan.learning import (
    intermediate_kin,
    kept_aside,
    published_series,
    series_data,
)
from boardcluster.plan.linpack import fit_linpack, linpack_seconds, published_linpack
from boardcluster.plan.observations import observations_kept_aside
from boardcluster.plan.series import fit_series
from boardcluster.plan.terms import SpillTie
from boardcluster.records import Engine

__all__ = ["KeptAside", "Scoreboard", "published_scoreboard"]

_FROM_BOARD = "rpi-4b-4gb-1500mhz"
_TO_BOARD = "rpi-5b-8gb-2400mhz"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAside:
    """A published time that nothing was learned from."""

    source: str
    """Where it is from."""
    predicted_seconds: float
    """Predicted."""
    measured_seconds: float
    """Published."""

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoreboard:
    """All backtests of the published tables."""

    protocols: tuple[ProtocolScore, ...]
    """Each table predicted with what the other tables chose."""
    ties: Mapping[str, SpillTie]
    """What the other tables chose, by series."""
    tie: SpillTie
    """What all of them choose."""
    aside: tuple[KeptAside, ...]
    """Times of the running text."""
    board_error: float
    """Mean error of Hadoop Pi on another board, by the ratio of 7-zip."""
    board_cells: int
    """How many cells that are."""
    intermediate: Mapping[str, float]
    """Mean error of intermediate bytes, one cell left out, by series."""
    linpack_errors: tuple[float, ...]
    """|error| of each of Baun's rows from its one-node row; messages by the other memory shares."""


def published_scoreboard() -> Scoreboard:
    """Run every backtest of the published tables; takes seconds.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    every = {
        f"{workload} on {engine}": (data, rule)
        for (workload, engine), (data, rule, _) in published_series().items()
        if len(np.unique(data.work.amount)) > 1
    }
    ties, tie = chosen_ties(every)
    cells = joined(
        [
            part
            for key, (data, rule) in every.items()
            for part in hold_out(key, data, rule, tie=ties[key])
        ]
    )
    calibration = IntervalCalibration.of(cells)
    away = kept_aside()
    predicted = np.exp(-away.log_error)
    errors, count = _other_board()
    return Scoreboard(
        protocols=scores(cells, calibration.inside),
        ties=ties,
        tie=tie,
        aside=tuple(
            KeptAside(
                source=run.source,
                predicted_seconds=float(run.seconds * ratio),
                measured_seconds=run.seconds,
            )
            for run, ratio in zip(observations_kept_aside(), predicted, strict=True)
        ),
        board_error=errors,
        board_cells=count,
        intermediate=_intermediate_errors(),
        linpack_errors=_linpack_errors(),
    )


def _other_board() -> tuple[float, int]:
    """Predict Hadoop Pi on the 5B from the 4B's table."""
    _, rule, runs = published_series()["pi", Engine.MAPREDUCE]
    boards = {name: board_rates(name) for name in (_FROM_BOARD, _TO_BOARD)}
    media = {run.medium: medium_rates(run.medium) for run in runs}
    known, asked = (
        series_data([run for run in runs if run.board == name], boards, media) for name in boards
    )
    logs, _ = fit_series(known, rule, tie=(0.0, 0.0)).logs(asked.work, asked.media)
    return float(np.mean(np.abs(np.exp(logs) / asked.seconds - 1))), len(asked)


def _intermediate_errors() -> dict[str, float]:
    found = {}
    for key in published_series():
        if key not in published_intermediate():
            continue
        amount, gigabytes, source = published_intermediate()[key]
        kin = intermediate_kin(key)
        if not kin and key[1] is Engine.MAPREDUCE:
            continue
        errors = []
        for place in range(len(amount)):
            rest = np.arange(len(amount)) != place
            curve = fit_intermediate(key[1], amount[rest], gigabytes[rest], source=source, kin=kin)
            errors.append(abs(float(curve.at(amount[[place]])[0]) / gigabytes[place] - 1))
        found[f"{key[0]} on {key[1]}"] = fmean(errors)
    return found


def _linpack_errors() -> tuple[float, ...]:
    errors = []
    for percent, rows in published_linpack().items():
        others = [
            run for other, runs in published_linpack().items() if other != percent for run in runs
        ]
        alone = [run for run in rows if run.workers == 1]
        model = fit_linpack(alone, others, source="")
        errors += [
            abs(linpack_seconds(model, run) / run.seconds - 1) for run in rows if run.workers > 1
        ]
    return tuple(errors)
