"""From what the user wants to an ordered list of trials. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence

from boardcluster.errors import EmptySelectionError
from boardcluster.records import Campaign, Engine, Trial

__all__ = ["plan_trials"]


def plan_trials(
    campaign: Campaign,
    *,
    workload: str,
    engines: Sequence[Engine],
    profile: str,
    size_bytes: int,
    workers: int,
    repetitions: int,
) -> tuple[Trial, ...]:
    """Return every trial in the order to run it.

    Each repetition is a block that holds every engine once, in an order drawn from the seed, so a
    machine that slowly warms up or fills its disk does not favour one engine.

    Raises:
        EmptySelectionError: there is nothing to run.
    """
    if not engines or repetitions < 1:
        raise EmptySelectionError(
            f"nothing to run: {len(engines)} engines x {repetitions} repetitions",
            hint="choose at least one engine and one repetition",
        )
    draw = random.Random(campaign.seed)  # noqa: S311  an order to repeat, not a secret
    trials: list[Trial] = []
    for repetition in range(1, repetitions + 1):
        block = list(dict.fromkeys(engines))
        draw.shuffle(block)
        trials += [
            Trial(
                id=f"{campaign.id}-{workload}-{engine}-{size_bytes}-{repetition}",
                campaign_id=campaign.id,
                position=len(trials) + offset,
                workload=workload,
                engine=engine,
                profile=profile,
                size_bytes=size_bytes,
                workers=workers,
                repetition=repetition,
            )
            for offset, engine in enumerate(block)
        ]
    return tuple(trials)
