"""What a campaign will take, predicted cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.analysis.statistics import Interval
from boardcluster.cluster.state import load_state
from boardcluster.factors import levels
from boardcluster.plan.asking import OwnNodes, predict_question
from boardcluster.plan.hardware import board_of, medium_of
from boardcluster.plan.own_runs import conditions_of
from boardcluster.plan.prediction import PredictedAmount, RuntimePrediction
from boardcluster.plan.question import Question
from boardcluster.records import ClusterSpec, Trial
from boardcluster.services.containers import copies_of
from boardcluster.store import Store
from boardcluster.tuning.record import read_records
from boardcluster.tuning.searches import search_campaigns
from boardcluster.units import format_bytes, format_count
from boardcluster.workloads import load_workload, parameter_defaults

__all__ = ["CampaignPrediction", "predict_trials"]

_MIX = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPrediction:
    """Time and energy of the runs of a campaign."""

    seconds: PredictedAmount
    """Time of the runs that are known; the ends of their intervals are added, since runs of one
    workload err together."""
    joules: float | None
    """Their energy; None where it is not known of each."""
    known_runs: int
    """How many they are."""
    unknown: tuple[str, ...]
    """Of the other ones, each cell with the reason, in words."""
    dilation: float | None = 1.0
    """By how much emulated boards are slower than real ones, whose time ``seconds`` is; None where
    that is decided by `up`, which has not run."""


def predict_trials(
    home: Path, store: Store, spec: ClusterSpec, trials: Sequence[Trial]
) -> CampaignPrediction:
    """Predict each cell of a campaign, and add them up.

    On emulated boards the time is that of real ones, as their results are.

    Raises:
        ClusterError: the record of the running cluster is damaged.
        StoreError: the store is damaged.
    """
    cells: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        cells.setdefault(levels(trial), []).append(trial)
    searches = search_campaigns(read_records(home))
    nodes = OwnNodes(
        memory_bytes=min(node.memory_bytes for node in spec.workers),
        cores=min(node.cores for node in spec.workers),
    )
    median = low = high = joules = 0.0
    known = 0
    all_joules = True
    unknown: dict[str, None] = {}
    for group in cells.values():
        found = _predicted(group[0], spec, store, nodes, searches)
        if isinstance(found, str) or found.seconds is None or found.unknown:
            why = found if isinstance(found, str) else found.unknown[0].words
            unknown[f"{_words(group[0])}: {why}"] = None
            continue
        known += len(group)
        median += len(group) * found.seconds.median
        low += len(group) * found.seconds.interval.low
        high += len(group) * found.seconds.interval.high
        all_joules &= found.joules is not None
        joules += len(group) * (found.joules.median if found.joules else 0.0)
    return CampaignPrediction(
        seconds=PredictedAmount(median=median, interval=Interval(low=low, high=high)),
        joules=joules if all_joules and known else None,
        known_runs=known,
        unknown=tuple(unknown),
        dilation=_dilation(home, spec),
    )


def _dilation(home: Path, spec: ClusterSpec) -> float | None:
    if spec.twin is None:
        return 1.0
    state = load_state(home)
    return spec.twin.dilation if state is None else state.dilation


def _words(trial: Trial) -> str:
    size = f", {format_bytes(trial.size_bytes)}" if trial.size_bytes else ""
    return f"{trial.workload} on {trial.engine}{size}, {format_count(trial.workers, 'worker')}"


def _predicted(
    trial: Trial, spec: ClusterSpec, store: Store, nodes: OwnNodes, searches: set[str]
) -> RuntimePrediction | str:
    if _MIX in trial.workload:
        return "several jobs at once are not predicted"
    workload = load_workload(trial.workload)
    if instead := workload.predicted_instead:
        return f"{instead} are predicted (`boardcluster predict {trial.workload}`), no time"
    workers = spec.workers_beside(trial.master)[: trial.workers]
    question = Question(
        workload=trial.workload,
        engine=trial.engine,
        size_bytes=trial.size_bytes,
        workers=trial.workers,
        workers_least=workload.workers_least,
        board=board_of(workers),
        medium=medium_of(workers),
        replication=trial.replication or 1,
        link_bits_per_second=float(spec.network.link_bits_per_second),
        profile=trial.profile,
        parameters={**trial.parameters, **conditions_of(trial)},
        settings=dict(trial.settings),
        arguments=trial.arguments,
    )
    copies = copies_of(question, spec)
    if not trial.replication:
        question = replace(question, replication=min(copies, trial.workers))
    return predict_question(
        question,
        store,
        nodes=nodes,
        searches=searches,
        defaults=parameter_defaults(trial.workload),
        copies=copies,
    )
