"""The model that a plan asks: published series, and runs of one's own on catalogued boards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from boardcluster.plan.asking import RUNS_MOST
from boardcluster.plan.composition import PlanModel
from boardcluster.plan.hardware import OWN_HARDWARE, board_rates, medium_rates
from boardcluster.plan.learning import learn
from boardcluster.plan.model import predict_many
from boardcluster.plan.observations import RunObservation
from boardcluster.plan.own_runs import observation_of, own_groups
from boardcluster.records import Engine
from boardcluster.store import Store
from boardcluster.tuning.record import read_records
from boardcluster.tuning.searches import search_campaigns

__all__ = ["learn_for_plan"]

_ENGINES = (Engine.SPARK, Engine.MAPREDUCE)


def learn_for_plan(
    home: Path,
    workload: str,
    boards: Sequence[str],
    media: Sequence[str],
    *,
    defaults: Mapping[str, str],
    copies_of: Callable[[str], int],
) -> PlanModel:
    """Return a model of a workload on boards and media.

    A home's own runs count where they were on nodes that stand for boards and media of the catalog:
    only those say something of others. A plan is for the usual program: runs in which a parameter,
    the text or a planned fault was another one do not count. Of groups that differ in software,
    settings or nodes the largest counts that a profile alone had set, else the largest.

    Args:
        home: state folder of a cluster; it need not exist.
        workload: name of the workload.
        boards: names of those that may be asked for.
        media: likewise.
        defaults: what the workload's parameters are where a run does not set them.
        copies_of: says how many copies of a block a profile keeps where there are workers enough.

    Raises:
        StoreError: the store cannot be read.
    """
    own = _own_runs(home, workload, defaults, cache(copies_of))
    every = [run for runs in own.values() for run in runs]
    names = dict.fromkeys([*boards, *(run.board for run in every)])
    disks = dict.fromkeys([*media, *(run.medium for run in every)])
    model = learn(
        [board_rates(name) for name in names], [medium_rates(name) for name in disks], own=own
    )
    seen = [
        row.fitted.data.work.workers.max()
        for (name, _), row in model.series.items()
        if name == workload
    ]
    return PlanModel(predict=partial(predict_many, model), workers_seen=int(max(seen, default=0)))


def _own_runs(
    home: Path,
    workload: str,
    defaults: Mapping[str, str],
    copies_of: Callable[[str], int],
) -> dict[tuple[str, Engine], Sequence[RunObservation]]:
    searches = search_campaigns(read_records(home))
    with Store.open(home, read_only=True) as store:
        found = [
            run
            for engine in _ENGINES
            for result in store.recent(workload, engine, most=RUNS_MOST, without=searches)
            if (
                run := observation_of(
                    result, replication=copies_of(result.trial.profile), defaults=defaults
                )
            )
            if OWN_HARDWARE not in {run.board, run.medium} and not run.program
        ]
    own: dict[tuple[str, Engine], Sequence[RunObservation]] = {}
    for engine in dict.fromkeys(run.engine for run in found):
        groups = own_groups([run for run in found if run.engine is engine])
        plain = (group for group in groups if group.runs[0].settings.keys() == {"profile"})
        own[workload, engine] = next(plain, groups[0]).runs
    return own
