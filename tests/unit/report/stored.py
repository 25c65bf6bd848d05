"""A real store of made-up runs, for tests of the whole report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.builders import (
    make_board_fingerprint,
    make_campaign,
    make_energy,
    make_measurement,
    make_power,
    make_proof,
    make_samples,
    make_telemetry,
    make_trial,
    store_run,
)

from boardcluster.records import (
    AttemptState,
    Campaign,
    Energy,
    Engine,
    Fingerprint,
    NodeSamples,
    Telemetry,
    Trial,
    Verdict,
)
from boardcluster.store import Store

__all__ = ["CAMPAIGN", "FINGERPRINT", "Run", "board_telemetry", "fill", "measured_energy"]

DIGEST = "5d41" * 16

CAMPAIGN = make_campaign(
    id="20260901-a",
    created_utc="2026-09-01T08:00:00+00:00",
    seed=815,
    cluster="shelf",
    emulated=False,
    dataset="airline-64MB",
    dataset_sha256="c0de" * 16,
    name="shelf-scaling",
)

FINGERPRINT = make_board_fingerprint(
    kernel="6.6.51 aarch64",
    os="Raspberry Pi OS 12",
    cpu="Cortex-A76",
    boardcluster="0.2.0",
    config_sha256="77aa" * 16,
    hardware=("pi0: Raspberry Pi 5, 8 GiB, nvme 256 GB", "pi1: Raspberry Pi 5, 8 GiB, nvme 256 GB"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One made-up run.

    Attributes:
        engine: its engine.
        seconds: its duration; None for a run that failed.
        workload: its workload.
        workers: number of workers.
        size_bytes: size of the input.
        state: how it ended; None where it was never begun.
        reason: why it is not ok.
        verdict: whether it can be trusted.
        joules: energy over the run; None for none.
        watched: whether it has samples.
        fingerprint: what it ran on.
        more: further fields of its measurement.
    """

    engine: Engine
    seconds: float | None
    workload: str = "terasort"
    workers: int = 4
    size_bytes: int = 64_000_000
    state: AttemptState | None = AttemptState.OK
    reason: str = ""
    verdict: Verdict = Verdict.VALID
    joules: float | None = None
    watched: bool = True
    fingerprint: Fingerprint = FINGERPRINT
    more: Mapping[str, Any] | None = None


def measured_energy(joules: float, seconds: float) -> Energy:
    """Energy of a run by one meter for the whole cluster."""
    power = make_power(
        joules,
        nodes=("pi0", "pi1", "pi2", "pi3", "pi4"),
        mean_watts=joules / seconds,
        most_watts=1.3 * joules / seconds,
        readings=int(seconds),
    )
    return make_energy(joules, level_reason="idle power is not measured", powers=(power,))


def board_telemetry(
    duration_seconds: float,
    *,
    nodes: Sequence[str] = ("pi0", "pi1", "pi2"),
    busy_cores: float = 3.6,
    disk_busy: float = 0.3,
    names: Sequence[str] = ("sort",),
) -> Telemetry:
    """Samples of boards, one a second, with a CPU that is busy most of the time."""
    seconds = np.arange(-1.0, math.ceil(duration_seconds) + 2.0)
    wave = 1 + 0.1 * np.sin(seconds / 5)
    cuts = np.linspace(0.0, duration_seconds, len(names) + 1)
    return make_telemetry(
        *(_board(name, seconds, wave, busy_cores, disk_busy) for name in nodes),
        duration_seconds=duration_seconds,
        phases={
            name: (float(begin), float(end))
            for name, begin, end in zip(names, cuts[:-1], cuts[1:], strict=True)
        },
    )


def _board(
    name: str, seconds: np.ndarray[Any, Any], wave: Any, busy_cores: float, disk_busy: float
) -> NodeSamples:
    cores = 4
    used = np.minimum(busy_cores * wave, cores)
    waiting = np.minimum(0.2 * wave, cores - used)
    amounts = {
        "cpu_user_seconds": 0.85 * used,
        "cpu_system_seconds": 0.15 * used,
        "cpu_iowait_seconds": waiting,
        "cpu_idle_seconds": cores - used - waiting,
        "cpu_irq_seconds": 0.0 * wave,
        "cpu_steal_seconds": 0.0 * wave,
        "disk_read_bytes/nvme0n1": 3e7 * wave,
        "disk_written_bytes/nvme0n1": 5e7 * wave,
        "disk_busy_seconds/nvme0n1": disk_busy * wave,
        "net_received_bytes/eth0": 2e7 * wave,
        "net_sent_bytes/eth0": 2e7 * wave,
        "foreign_cpu_seconds": 0.0 * wave,
    }
    states = {
        "clock_measured_hertz": 2.4e9 + 0 * wave,
        "clock_nominal_hertz": 2.4e9 + 0 * wave,
        "temperature_celsius": 58 + 4 * wave,
        "throttle_bits": 0.0 * wave,
        "memory_available_bytes": 3e9 + 0 * wave,
        "link_bits_per_second/eth0": 1e9 + 0 * wave,
    }
    return make_samples(name, cores=cores, seconds=seconds, columns={**amounts, **states})


def fill(home: Path, runs: Iterable[Run], *, campaign: Campaign = CAMPAIGN) -> tuple[str, ...]:
    """Store runs in their order; return the ids of their trials."""
    made = list(runs)
    repetitions: dict[tuple[object, ...], int] = {}
    trials = []
    for position, run in enumerate(made):
        key = (run.engine, run.workload, run.workers, run.size_bytes)
        repetitions[key] = repetitions.get(key, 0) + 1
        trials.append(
            make_trial(
                run.workload,
                id=f"{campaign.id}-{position:03d}",
                campaign_id=campaign.id,
                position=position,
                engine=run.engine,
                size_bytes=run.size_bytes,
                workers=run.workers,
                repetition=repetitions[key],
            )
        )
    home.mkdir(parents=True, exist_ok=True)
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for place, (trial, run) in enumerate(zip(trials, made, strict=True)):
            _run(store, trial, run, place)
    return tuple(trial.id for trial in trials)


def _run(store: Store, trial: Trial, run: Run, place: int) -> None:
    if run.state is None:
        return
    minutes = f"{9 + place // 60:02d}:{place % 60:02d}"
    found = None
    if run.seconds is not None:
        proof = "the order of every record and the sum of their checksums"
        found = make_measurement(
            run.seconds,
            input_bytes=run.size_bytes,
            output_bytes=run.size_bytes,
            verification=make_proof(proof, digest=DIGEST, records=640_000),
            application_id=f"application_1_{place:04d}",
            verdict=run.verdict,
            verdict_reasons=(run.reason,) if run.verdict is Verdict.TAINTED else (),
            energy=None if run.joules is None else measured_energy(run.joules, run.seconds),
            **dict(run.more or {}),
        )
    store_run(
        store,
        trial,
        found,
        fingerprint=replace(run.fingerprint, nodes=run.workers + 1),
        started_utc=f"2026-09-01T{minutes}:01+00:00",
        state=run.state,
        reason=run.reason if run.state is not AttemptState.OK else "",
        ended_utc=f"2026-09-01T{minutes}:50+00:00",
        telemetry=board_telemetry(run.seconds) if run.watched and run.seconds else None,
    )
