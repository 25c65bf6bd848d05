"""The next point to try, by Optuna's tree-structured Parzen estimator.

The study is made anew from what was measured each time, and the sampler is seeded by the place in
the record. So the next point follows from the record alone, and a tuning that was killed goes on as
it would have. Source: S. Watanabe, "Tree-structured Parzen estimator", arXiv:2304.11127, 2023.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from boardcluster.errors import UsageError, extra_hint
from boardcluster.tuning.space import Dimension, Level, Params

__all__ = ["Tried", "propose", "require_optuna"]

_STARTUP_TRIALS = 8
"""So many points are known before the first is modelled; until then they are drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A point and how good it is."""

    params: Params
    """Its values."""
    scores: tuple[float, ...]
    """Logarithm of what it takes against the base, at the smallest size first; at least one."""
    finished: bool
    """Whether the last one is of the whole size."""


def require_optuna() -> Any:
    """Return the library.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import optuna  # noqa: PLC0415  an extra, which takes half a second to load
    except ImportError as error:
        raise UsageError(
            "tune needs Optuna, which is not installed",
            hint=extra_hint("tune"),
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def propose(space: Sequence[Dimension], tried: Sequence[Tried], *, seed: int) -> dict[str, Level]:
    """Return the next point.

    Args:
        space: the settings.
        tried: what was measured.
        seed: equal seeds with equal measurements give equal points.

    Raises:
        UsageError: Optuna is not installed.
    """
    optuna = require_optuna()
    distributions = {row.name: _distribution(optuna, row) for row in space}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=_STARTUP_TRIALS, multivariate=True
        )
        study = optuna.create_study(sampler=sampler, direction="minimize")
        for point in tried:
            study.add_trial(_trial(optuna, point, distributions))
        asked = study.ask(distributions).params
    return {row.name: row.snapped(asked[row.name]) for row in space}


def _distribution(optuna: Any, row: Dimension) -> Any:
    kinds = optuna.distributions
    if row.is_choice:
        return kinds.CategoricalDistribution(list(row.values))
    if row.tunable.kind == "whole":
        return kinds.IntDistribution(int(row.low), int(row.high), log=row.tunable.log)
    return kinds.FloatDistribution(row.low, row.high, log=row.tunable.log)


def _trial(optuna: Any, point: Tried, distributions: dict[str, Any]) -> Any:
    known = {name: level for name, level in point.params.items() if name in distributions}
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.COMPLETE if point.finished else states.PRUNED,
        value=point.scores[-1] if point.finished else None,
        params=known,
        distributions={name: distributions[name] for name in known},
        intermediate_values=dict(enumerate(point.scores)),
    )
