"""Made-up runs for the tests of advice: nothing is wrong with them until a test plants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.builders import make_board_fingerprint, make_cluster, make_node, make_result

from boardcluster.analysis.advice import Advice, AdviceEvidence, NodeUse, RunFacts, advise
from boardcluster.analysis.bottleneck import Bound, Diagnosis, PhaseDiagnosis
from boardcluster.records import (
    AttemptState,
    ClusterSpec,
    Engine,
    Fingerprint,
    Result,
    Role,
    Security,
)

__all__ = [
    "BOARDS",
    "EMULATED",
    "TWIN",
    "advised",
    "cluster",
    "counters",
    "diagnosis",
    "facts",
    "run",
    "use",
]

GIB = 2**30

BOARDS = make_board_fingerprint(
    hardware=tuple(
        f"{name}: Raspberry Pi 5 Model B, 4 x Cortex-A76 at 2.40 GHz, 8 GiB, sd SD128, 1 Gbit/s,"
        " 16 KiB pages, Debian 12, kernel 6.12.25"
        for name in ("pi0", "pi1", "pi2", "pi3", "pi4")
    ),
)

_NO_BOARDS: dict[str, Any] = {"emulated": True, "security": Security.EMULATED, "hardware": ()}


EMULATED = replace(BOARDS, cpu_cores=2, **_NO_BOARDS)
TWIN = replace(
    BOARDS,
    cpu_cores=2,
    twin="5 x rpi-4b-4gb-1500mhz with samsung-pro-plus-256gb, rpi-4b-bare",
    **_NO_BOARDS,
)


def run(
    *,
    seconds: float = 100.0,
    number: int = 1,
    setup: Fingerprint = BOARDS,
    measured: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Result:
    """An ok run of TeraSort on four boards with four cores each, and whatever a test changes.

    Runs of the same settings differ in ``number``, which is also their order.
    """
    trial: dict[str, Any] = {
        "workload": "terasort",
        "engine": Engine.MAPREDUCE,
        "size_bytes": 10**9,
        **changes,
    }
    state = trial.pop("state", AttemptState.OK)
    return make_result(
        seconds,
        setup=setup,
        state=state,
        id="-".join(f"{name}={value}" for name, value in sorted(trial.items())) + f"-{number}",
        campaign_id="20260801-a",
        position=number,
        repetition=number,
        **{"output_bytes": trial["size_bytes"], **(measured or {}), **trial},
    )


def counters(
    *,
    maps: int = 16,
    reduces: int = 4,
    map_seconds: float = 160.0,
    container_mib: int = 1024,
    peak_mib: int = 900,
    **others: int,
) -> dict[str, int]:
    """Counters of a MapReduce job, of which a test changes what it needs.

    Args:
        maps: map tasks.
        reduces: reduce tasks.
        map_seconds: run time of all maps together.
        container_mib: size of every container.
        peak_mib: most memory of a map.
        others: further counters of the job by their names.
    """
    job = "org.apache.hadoop.mapreduce.JobCounter/"
    milliseconds = round(1000 * map_seconds)
    found = {
        f"{job}TOTAL_LAUNCHED_MAPS": maps,
        f"{job}TOTAL_LAUNCHED_REDUCES": reduces,
        f"{job}MILLIS_MAPS": milliseconds,
        f"{job}MB_MILLIS_MAPS": milliseconds * container_mib,
        f"{job}MILLIS_REDUCES": 80_000,
        f"{job}MB_MILLIS_REDUCES": 80_000 * container_mib,
        "org.apache.hadoop.mapreduce.TaskCounter/MAP_PHYSICAL_MEMORY_BYTES_MAX": peak_mib << 20,
    }
    return found | {f"{job}{name}": value for name, value in others.items()}


def diagnosis(
    first: Bound | None,
    share: float = 0.8,
    *,
    twice: float = 1.5,
    rest: Mapping[Bound, float] | None = None,
    phases: Mapping[str, Bound] | None = None,
) -> Diagnosis:
    """What bound a run: a bound with its share, and what twice as much of it would bring."""
    shares = dict.fromkeys(Bound, 0.0)
    if first is not None:
        shares |= {Bound.CPU: 1 - share, first: share}
    gains = dict.fromkeys(Bound, 1.0) | ({first: twice} if first is not None else {})
    whole = PhaseDiagnosis(
        phase="",
        begin_seconds=0.0,
        duration_seconds=100.0,
        shares=shares,
        first=first,
        gains=gains | dict(rest or {}),
        evidence=(f"pi2 waited for {first}",) if first is not None else (),
    )
    parts = tuple(
        PhaseDiagnosis(phase=name, begin_seconds=0.0, duration_seconds=10.0, first=bound)
        for name, bound in (phases or {}).items()
    )
    return Diagnosis(run=whole, phases=parts)


def use(node: str = "pi1", **fields: Any) -> NodeUse:
    """What a healthy worker of four cores did in 100 s."""
    healthy: dict[str, Any] = {
        "scope": "machine",
        "capacity_cores": 4.0,
        "busy_share": 0.5,
        "jobs_cpu_seconds": 180.0,
        "master_cpu_seconds": 0.0,
        "swap_bytes": 0.0,
        "swap_used_most_bytes": 0.0,
        "memory_available_least_bytes": 3.0 * GIB,
        "temperature_most_celsius": 60.0,
        "heat_seconds": 0.0,
        "weak_supply_seconds": 0.0,
        "slowed_clock_ratio": None,
        "link_bits_per_second": 1e9,
        "received_bytes_per_second": 10e6,
    }
    return NodeUse(node=node, **(healthy | fields))


def facts(*nodes: NodeUse, master: NodeUse | None = None) -> RunFacts:
    """Telemetry of a run: the nodes that a test names, the other boards healthy."""
    named = {row.node: row for row in nodes}
    idle = master or use("pi0", busy_share=0.05, jobs_cpu_seconds=4.0, master_cpu_seconds=12.0)
    workers = [named.pop(name, use(name)) for name in ("pi1", "pi2", "pi3", "pi4")]
    return RunFacts(duration_seconds=100.0, nodes=(idle, *workers, *named.values()))


def cluster(**roles: Sequence[Role]) -> ClusterSpec:
    """Five boards, the first of them only the master, unless a test says other roles."""
    plain = {"pi0": [Role.MASTER]} | {f"pi{number}": [Role.WORKER] for number in (1, 2, 3, 4)}
    nodes = (make_node(name, *own, memory_bytes=8 * GIB) for name, own in (plain | roles).items())
    return make_cluster(
        *nodes, name="pis", kind="boards", subnet="192.168.1.0/24", security=Security.CLOSED
    )


def advised(
    *results: Result,
    rule: str = "",
    diagnosed: Diagnosis | None = None,
    watched: RunFacts | None = None,
    spec: ClusterSpec | None = None,
) -> tuple[Advice, ...]:
    """Advice on runs that all have the same diagnosis and telemetry; of one rule, or all."""
    keys = [(row.trial.id, row.attempt.number) for row in results if row.attempt]
    case = AdviceEvidence(
        results=results,
        diagnoses=dict.fromkeys(keys, diagnosed) if diagnosed else {},
        facts=dict.fromkeys(keys, watched) if watched else {},
        cluster=spec,
    )
    return tuple(row for row in advise(case) if rule in ("", row.rule))
