"""Speed of the store with a campaign of 10,000 trials. How to run it: README.md in this folder.

Targets on 2 cores and a local disk: a campaign stored within 2 s, its states, from which a resume
finds its place, within 0.5 s, one attempt begun and ended within 0.1 s, and all results read within
4 s. Ends with status 1 if a median misses its target.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    Engine,
    Fingerprint,
    Measurement,
    Trial,
    Verification,
)
from boardcluster.store import Store, rebuild

TRIALS = 10_000
STARTED = "2026-08-01T12:00:01+00:00"
ENDED = "2026-08-01T12:00:31+00:00"
DIGEST = "ab" * 32
WORKLOADS = ("wordcount", "terasort", "grep", "wordcount+terasort+grep+pi")
NODES = ("master", "worker1", "worker2", "worker3", "worker4")
FINGERPRINT = Fingerprint(
    kernel="6.18.0 x86_64",
    os="Debian 12",
    cpu="a CPU",
    cpu_cores=2,
    memory_bytes=24 * 2**30,
    java="17.0.1",
    hadoop="3.4.2",
    spark="4.1.4",
    boardcluster="0.1.0",
    profile="default",
    config_sha256=DIGEST,
    nodes=5,
    node_memory_bytes=2**30,
    node_cores=1,
    link_bits_per_second=10**9,
    emulated=True,
)
MEASUREMENT = Measurement(
    duration_seconds=24.125,
    input_bytes=256_000_000,
    output_bytes=1_000,
    counters={f"org.apache.hadoop.mapreduce.TaskCounter/NAME_{i}": 2**40 + i for i in range(30)},
    verification=Verification(
        method="independent count", expected_sha256=DIGEST, actual_sha256=DIGEST, records=12
    ),
    exit_status=0,
    application_id="application_1_0001",
    figures={"read_throughput_mebibytes_per_second": 21.5},
    phases_seconds={"sort": 24.125, "sort/map": 10.5, "sort/reduce": 11.25},
    intermediate_bytes=512_000_000,
    node_written_bytes=dict.fromkeys(NODES, 10**9),
    node_read_bytes=dict.fromkeys(NODES, 10**8),
)


def plan(number: int) -> tuple[Campaign, list[Trial]]:
    """Return a campaign of TRIALS trials."""
    campaign = Campaign(
        id=f"20260801-12000{number}",
        kind=CampaignKind.RUN,
        created_utc=STARTED,
        seed=7,
        cluster="bench",
        emulated=True,
        name="large",
        spec_sha256=DIGEST,
    )
    trials = [
        Trial(
            id=f"{campaign.id}-{position:05d}",
            campaign_id=campaign.id,
            position=position,
            workload=WORKLOADS[position % len(WORKLOADS)],
            engine=Engine.SPARK,
            profile="default",
            size_bytes=256_000_000,
            workers=4,
            repetition=position,
            parameters={"grep.pattern": "ATL"},
        )
        for position in range(TRIALS)
    ]
    return campaign, trials


def run_one(store: Store, trial_id: str) -> None:
    """Begin and end one attempt."""
    attempt = store.begin_attempt(trial_id, FINGERPRINT, STARTED)
    store.finish(
        attempt, state=AttemptState.OK, reason="", ended_utc=ENDED, measurement=MEASUREMENT
    )


def timed(action: Callable[[], object], runs: int) -> list[float]:
    """Return the seconds of each of several calls."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return seconds


def row(what: str, seconds: list[float], target_seconds: float) -> bool:
    """Print one line; return whether its median is within the target."""
    median = statistics.median(seconds)
    good = median <= target_seconds
    print(
        f"| {what} | {median:.3f} s | {min(seconds):.3f} to {max(seconds):.3f} | {len(seconds)} |"
        f" {target_seconds:g} s{'' if good else ', missed'} |",
        flush=True,
    )
    return good


def measure(home: Path, runs: int, *, whole: bool) -> list[bool]:
    """Time the store on a home of its own; return which targets were met."""
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")
    plans = [plan(number) for number in range(runs)]
    with Store.open(home) as store:
        adding = iter(plans)
        met = [row("add a campaign", timed(lambda: store.add_campaign(*next(adding)), runs), 2.0)]
        campaign, trials = plans[0]
        waiting = iter(trials)
        one = timed(lambda: run_one(store, next(waiting).id), 20)
        met.append(row("begin and end one", one, 0.1))
        for trial in waiting if whole else ():
            run_one(store, trial.id)
        done = "10,000 attempts" if whole else "20 attempts"
        for what, action, target_seconds in (
            ("states", lambda: store.states(campaign.id), 0.5),
            ("summary", lambda: store.summary(campaign.id), 0.5),
            ("trials", lambda: store.trials(campaign.id), 0.5),
            ("typical_seconds", store.typical_seconds, 0.5),
            ("find_campaigns", lambda: store.find_campaigns("large"), 0.1),
            ("results", lambda: store.results(campaign.id), 4.0),
        ):
            met.append(row(f"{what}, {done}", timed(action, runs), target_seconds))
    met.append(row(f"open, {done}", timed(lambda: Store.open(home).close(), runs), 2.0))
    if whole:
        met.append(row(f"rebuild, {done}", timed(lambda: rebuild(home), 1), 60.0))
    return met


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="calls of each kind")
    parser.add_argument(
        "--whole", action="store_true", help="run all trials first: minutes of disk flushes"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="boardcluster-store-") as folder:
        met = measure(Path(folder), chosen.runs, whole=chosen.whole)
    if not all(met):
        sys.exit(1)


if __name__ == "__main__":
    main()
