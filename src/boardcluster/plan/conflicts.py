"""Why nothing can be bought: which limit binds, and by how much. Pure."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from boardcluster.errors import CapacityError, PredictionUnknownError, UsageError
from boardcluster.plan.evaluation import EvaluatedSet
from boardcluster.plan.feasibility import MARGIN_DISK_SHARE
from boardcluster.plan.limits import PlanLimits, shown_limit
from boardcluster.plan.planning import PlanSpace, describe_cluster

__all__ = ["refuse_limits"]

_LEAST = {
    "deadline": "the fastest cluster that is known and fits takes up to {amount}",
    "budget": "the cheapest that is known and fits costs {amount}",
    "watts": "the one that draws least draws up to {amount}",
    "joules": "the one that needs least needs up to {amount}",
}


def refuse_limits(found: EvaluatedSet, space: PlanSpace) -> NoReturn:
    """Say why no cluster keeps to the limits.

    Raises:
        CapacityError: none holds the data, or none has the memory; with the arithmetic of the one
            that comes nearest.
        PredictionUnknownError: the model knows the time of none.
        UsageError: the limits exclude each other, or one of them excludes everything; says which
            one binds, and by how much.
    """
    possible = found.meets(PlanLimits())
    if not possible.any():
        _refuse_size(found, space)
    given, amounts = space.limits.given(), found.amounts()
    lines = []
    for name, most in given.items():
        if np.isnan(amounts[name][possible]).all():
            lines.append(f"--{name}: it is not known for any cluster that fits")
            continue
        best = int(np.nanargmin(np.where(possible, amounts[name], np.nan)))
        if amounts[name][best] > most:
            least = shown_limit(name, float(amounts[name][best]), space.currency)
            lines.append(
                f"--{name} {shown_limit(name, most, space.currency)}:"
                f" {_LEAST[name].format(amount=least)} ({_words(found, best, space)})"
            )
    if lines:
        raise UsageError(
            "no cluster is within the limits\n  " + "\n  ".join(lines),
            hint="give a limit that can be met, a smaller --size, or other parts",
        )
    _refuse_together(found, space)


def _refuse_together(found: EvaluatedSet, space: PlanSpace) -> NoReturn:
    """Say by how much each limit is missed where all others are kept, the least miss first."""
    amounts, rows = found.amounts(), []
    for name, most in space.limits.given().items():
        others = found.meets(space.limits, apart_from=name)
        if np.isnan(amounts[name][others]).all():
            continue
        best = int(np.nanargmin(np.where(others, amounts[name], np.nan)))
        needed = float(amounts[name][best])
        rows.append((needed / most, name, most, needed, best))
    rows.sort()
    if not rows:
        names = " and ".join(f"--{name}" for name in space.limits.given())
        raise UsageError(
            f"{names} exclude each other, even without any one of them",
            hint="leave out two limits to see which can be met",
        )
    lines = [
        f"--{name} {shown_limit(name, most, space.currency)} is"
        f" {shown_limit(name, needed - most, space.currency)} ({100 * (ratio - 1):.0f} %) short if "
        f"the others are met ({_words(found, best, space)})"
        for ratio, name, most, needed, best in rows
    ]
    _, name, _, needed, _ = rows[0]
    raise UsageError(
        f"the limits exclude each other; --{name} binds\n  " + "\n  ".join(lines),
        hint=f"--{name} {_enough(name, needed)} would be enough",
    )


def _enough(name: str, needed: float) -> str:
    """Return a limit that can be kept, as its option takes it."""
    return f"{math.ceil(needed / 60)}min" if name == "deadline" else str(math.ceil(needed))


def _refuse_size(found: EvaluatedSet, space: PlanSpace) -> NoReturn:
    known = found.prediction.known
    if not known.any():
        reasons, counts = np.unique(found.prediction.reason, return_counts=True)
        told = ", ".join(
            f"{reason} ({count:,})" for reason, count in zip(reasons, counts, strict=True)
        )
        raise PredictionUnknownError(
            f"the time of {space.task.workload} is not known on any of {len(known):,} clusters: "
            f"{told}",
            hint="see `boardcluster predict` for the run that would help",
        )
    has_memory = known & found.memory_margin
    if not has_memory.any():
        nearest = known & found.memory_fits
        place = int(np.flatnonzero(nearest if nearest.any() else known)[0])
        raise CapacityError(
            f"no board has the memory: {describe_cluster(found, place, space).memory}",
            hint="name boards with more memory, or another --profile",
        )
    share = np.where(has_memory, found.most_disk_share, np.nan)
    if np.isnan(share).all():
        raise CapacityError(
            "how much data is on the disks between input and output is not known for any cluster",
            hint="run the workload once, so that its counters are stored",
        )
    best = int(np.nanargmin(share))
    holds, margin = "holds the data", ""
    if found.fits[best]:
        holds = "holds the data with margin"
        margin = (
            f"; with the upper end of the data between input and output it is {share[best]:.0%}, "
            f"and YARN leaves nodes out whose disks are more than {MARGIN_DISK_SHARE:.0%} full"
        )
    raise CapacityError(
        f"no cluster of up to {space.workers_most:,} workers {holds}; the nearest is"
        f" {_words(found, best, space)}\n  {describe_cluster(found, best, space).disks}{margin}",
        hint="name larger media, allow more workers, or give a smaller --size or --replication",
    )


def _words(found: EvaluatedSet, place: int, space: PlanSpace) -> str:
    return describe_cluster(found, place, space).words
