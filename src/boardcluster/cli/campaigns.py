"""What ``run`` and ``demo`` share: from a specification to runs that a person can follow."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from boardcluster.campaign.driver import Watch, now_utc, run_campaign
from boardcluster.campaign.outlook import Outlook
from boardcluster.campaign.plan import expand, spec_digest, workload_facts
from boardcluster.campaign.trial import Bench
from boardcluster.cli.console import Reporter, print_table, say
from boardcluster.datasets.airline import prepare_airline
from boardcluster.datasets.text import from_file
from boardcluster.factors import settings_words
from boardcluster.fetch.cache import Progress
from boardcluster.records import (
    Attempt,
    Campaign,
    CampaignKind,
    CampaignSpec,
    ClusterSpec,
    Dataset,
    Engine,
    Matrix,
    Measurement,
    Policy,
    Trial,
    Verdict,
)
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.units import format_bytes, format_energy, format_seconds
from boardcluster.workloads import load_workload
from boardcluster.workloads.base import Takes

__all__ = [
    "Texts",
    "new_campaign",
    "new_campaign_id",
    "plan",
    "print_outlook",
    "run_trials",
    "single_spec",
]


_NOTES_SHOWN = 8


def new_campaign_id() -> str:
    """Return an id that sorts by time and is unique."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return f"{moment}-{secrets.token_hex(2)}"


def single_spec(
    workload: str,
    *,
    engines: Sequence[Engine],
    size_bytes: int,
    repetitions: int,
    seed: int,
    policy: Policy,
    text: str = "",
    parameters: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> CampaignSpec:
    """Return the specification of one workload at one size on the cluster as it is."""
    matrix = Matrix(
        workloads=(workload,),
        engines=tuple(dict.fromkeys(engines)),
        sizes_bytes=(size_bytes,),
        repetitions=repetitions,
        input=text,
        parameters={key: (value,) for key, value in (parameters or {}).items()},
        settings={key: (value,) for key, value in (settings or {}).items()},
    )
    return CampaignSpec(name="", seed=seed, policy=policy, matrices=(matrix,))


def plan(spec: CampaignSpec, declared: ClusterSpec, *, campaign_id: str) -> tuple[Trial, ...]:
    """Return every trial of a specification in the order to run it."""
    return expand(
        spec,
        campaign_id=campaign_id,
        workloads=workload_facts(),
        cluster_profile=declared.profile,
        cluster_workers=len(declared.workers),
        cluster_settings=declared.settings,
    )


class Texts:
    """Prepares the text of a trial, each text once.

    Args:
        cache: the cache folder.
        progress: told what is being prepared.
    """

    def __init__(self, cache: Path, progress: Progress) -> None:
        self._cache = cache
        self._progress = progress
        self._known: dict[tuple[str, int], Dataset] = {}

    def __call__(self, trial: Trial) -> Dataset:
        """Return the text that a trial reads."""
        key = (trial.input, trial.size_bytes)
        if key not in self._known:
            self._known[key] = self._prepare(*key)
        return self._known[key]

    def _prepare(self, source: str, size_bytes: int) -> Dataset:
        if source:
            return from_file(
                Path(source),
                size_bytes=size_bytes or None,
                cache=self._cache,
                progress=self._progress,
            )
        return prepare_airline(size_bytes=size_bytes, cache=self._cache, progress=self._progress)


def _takes_text(trial: Trial) -> bool:
    return any(load_workload(name).takes is Takes.TEXT for name in trial.workload.split("+"))


def new_campaign(
    spec: CampaignSpec,
    declared: ClusterSpec,
    trials: Sequence[Trial],
    *,
    campaign_id: str,
    texts: Callable[[Trial], Dataset],
) -> Campaign:
    """Return the record of a campaign; its text is named where all trials read the same one."""
    readers = {(trial.input, trial.size_bytes): trial for trial in trials if _takes_text(trial)}
    text = texts(next(iter(readers.values()))) if len(readers) == 1 else None
    return Campaign(
        id=campaign_id,
        kind=CampaignKind.RUN,
        created_utc=now_utc(),
        seed=spec.seed,
        cluster=declared.name,
        emulated=declared.kind == "emulated",
        dataset=text.name if text else "",
        dataset_sha256=text.sha256 if text else "",
        dataset_source=text.source if text else "",
        name=spec.name,
        spec_sha256=spec_digest(spec, declared),
    )


def run_trials(
    store: Store,
    campaign: Campaign,
    trials: Sequence[Trial],
    *,
    cluster: Callable[[Trial], LiveCluster],
    policy: Policy,
    cache: Path,
    texts: Callable[[Trial], Dataset],
    reporter: Reporter,
) -> None:
    """Run trials of a stored campaign and follow them."""
    total = len(trials)
    places = {trial.id: place for place, trial in enumerate(trials, start=1)}
    reporter.line(f"campaign {campaign.id}: {total} runs, seed {campaign.seed}")

    def began(trial: Trial) -> None:
        reporter.progress(f"runs of campaign {campaign.id}", places[trial.id] - 1, total)
        reporter.line(f"run {places[trial.id]} of {total}: {_words(trial)}")

    def ended(trial: Trial, attempt: Attempt, measurement: Measurement | None) -> None:
        words = f"{attempt.state}"
        if measurement is not None:
            words += f", {measurement.duration_seconds:.1f} s"
            if measurement.verification is not None:
                words += f", {measurement.verification.records:,} records verified"
            if measurement.verdict is not Verdict.UNJUDGED:
                words += f", {measurement.verdict}"
            if measurement.energy is not None:
                words += f", energy {format_energy(measurement.energy)}"
            remarks = dict.fromkeys((*measurement.verdict_reasons, *measurement.remarks))
            words += "".join(f"; {remark}" for remark in remarks)
        if attempt.reason:
            words += f": {attempt.reason}"
        reporter.line(f"run {places[trial.id]} of {total}: {words}")
        reporter.progress(f"runs of campaign {campaign.id}", places[trial.id], total)

    run_campaign(
        store,
        campaign,
        trials,
        cluster=cluster,
        bench=Bench(policy=policy, cache=cache, progress=reporter.progress, text=texts),
        watch=Watch(began=began, ended=ended),
    )


def _words(trial: Trial) -> str:
    """Name a trial by what it runs and by what is not as usual."""
    words = f"{trial.workload} on {trial.engine}"
    if trial.size_bytes:
        words += f", {format_bytes(trial.size_bytes)}"
    if "+" in trial.workload:
        words += f", {trial.concurrency} at once" if trial.concurrency > 1 else ", in turn"
    words += "".join(f", {key} {value}" for key, value in sorted(trial.parameters.items()))
    words += f", {settings_words(trial.settings)}" if trial.settings else ""
    return words + (", warm-up" if trial.warm_up else "")


def print_outlook(outlook: Outlook, *, reporter: Reporter | None) -> None:
    """Print what a campaign will take.

    Args:
        outlook: what it will take.
        reporter: where lines go while it runs; None prints to standard output.
    """
    rows = [
        [
            row.workload,
            row.engine,
            ", ".join(format_bytes(size) for size in row.sizes_bytes if size) or "-",
            ", ".join(map(str, row.workers)),
            str(row.cells),
            str(row.runs),
            format_seconds(row.known_seconds) if row.known_runs == row.runs else "unknown",
        ]
        for row in outlook.rows
    ]
    columns = ["workload", "engine", "sizes", "workers", "cells", "runs", "time, as measured"]
    print_table("what will run", columns, rows, to_stderr=reporter is not None)
    time = f"about {format_seconds(outlook.known_seconds)} for the jobs, from earlier runs"
    if outlook.unknown_runs == outlook.runs:
        time = "unknown, because nothing like it was measured on this cluster yet"
    elif outlook.unknown_runs:
        time += f", and {outlook.unknown_runs} runs of unknown time"
    forms = "1 form" if outlook.forms == 1 else f"{outlook.forms} forms, one after the other"
    lines = [
        f"{outlook.runs} runs of {outlook.cells} cells; the cluster takes {forms}",
        f"time: {time}",
        f"space on the nodes: {format_bytes(outlook.space_bytes)} (inputs, and the largest run)",
        *sorted(outlook.notes)[:_NOTES_SHOWN],
    ]
    if len(outlook.notes) > _NOTES_SHOWN:
        lines.append(f"and {len(outlook.notes) - _NOTES_SHOWN} more remarks on cases: see --json")
    for line in lines:
        if reporter is None:
            say(line)
        else:
            reporter.line(line)
