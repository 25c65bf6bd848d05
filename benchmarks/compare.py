"""Speed of comparing and exporting with 1,000 runs. How to run it: README.md in this folder.

Targets on 2 cores: `compare` of two campaigns with 1,000 runs in all within 2 s, from the start of
the program to its end, against a paper's table likewise, and an export of all runs as CSV within
5 s. Ends with status 1 if a median misses its target.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from commands import CLI

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
from boardcluster.store import Store

CELLS = 100
REPETITIONS = 5
DIGEST = "ab" * 32
MOMENT = "2026-08-01T12:00:01+00:00"
ENGINES = (Engine.MAPREDUCE, Engine.SPARK)
WORKLOADS = ("wordcount", "terasort", "grep", "teragen", "dfsio")
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


def fill(home: Path, campaign_id: str, slower: float) -> None:
    """Store a campaign of CELLS cells with REPETITIONS runs each."""
    campaign = Campaign(
        id=campaign_id,
        kind=CampaignKind.RUN,
        created_utc=MOMENT,
        seed=7,
        cluster="bench",
        emulated=True,
    )
    trials = [
        Trial(
            id=f"{campaign_id}-{place:04d}",
            campaign_id=campaign_id,
            position=place,
            workload=WORKLOADS[place % CELLS % len(WORKLOADS)],
            engine=ENGINES[place % CELLS // len(WORKLOADS) % 2],
            profile="default",
            size_bytes=500_000_000 * (1 + place % CELLS // (2 * len(WORKLOADS))),
            workers=4,
            repetition=place // CELLS + 1,
        )
        for place in range(CELLS * REPETITIONS)
    ]
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for trial in trials:
            seconds = slower * (20 + trial.position % 7 + 0.37 * (trial.repetition % 3))
            attempt = store.begin_attempt(trial.id, FINGERPRINT, MOMENT)
            store.finish(
                attempt,
                state=AttemptState.OK,
                reason="",
                ended_utc=MOMENT,
                measurement=measurement(seconds),
            )


def measurement(seconds: float) -> Measurement:
    """Return what a run of so many seconds yields."""
    return Measurement(
        duration_seconds=seconds,
        input_bytes=500_000_000,
        output_bytes=1_000,
        counters={f"org.apache.hadoop.mapreduce.TaskCounter/NAME_{i}": 2**40 for i in range(30)},
        verification=Verification(
            method="independent count", expected_sha256=DIGEST, actual_sha256=DIGEST, records=12
        ),
        exit_status=0,
        figures={"read_throughput_mebibytes_per_second": 500 / seconds},
        intermediate_bytes=512_000_000,
    )


def timed(arguments: Sequence[str], runs: int) -> list[float]:
    """Return the seconds of whole runs of the program."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(
            [*CLI, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds.append(time.perf_counter() - began)
    return seconds


def row(what: str, seconds: list[float], target_seconds: float) -> bool:
    """Print one line; return whether its median is within the target."""
    median = statistics.median(seconds)
    good = median <= target_seconds
    print(
        f"| {what} | {median:.2f} s | {min(seconds):.2f} to {max(seconds):.2f} | {len(seconds)} |"
        f" {target_seconds:g} s{'' if good else ', missed'} |",
        flush=True,
    )
    return good


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each command")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="boardcluster-compare-") as folder:
        home = Path(folder) / "home"
        fill(home, "20260801-1", 1.0)
        fill(home, "20260801-2", 1.25)
        at = ["--home", str(home)]
        paper = "published:lee-oh-park-2021-table-14"
        print("| what | median | range | runs | target |\n|---|---|---|---|---|")
        met = [
            row(what, timed(arguments, runs), target_seconds)
            for what, arguments, target_seconds in (
                ("compare, 1,000 runs", ["compare", "20260801-1", "20260801-2", *at], 2.0),
                ("compare with a paper", ["compare", "20260801-1", paper, *at], 2.0),
                ("export, 1,000 runs", ["export", "--format", "csv", *at], 5.0),
            )
        ]
    if not all(met):
        sys.exit(1)


if __name__ == "__main__":
    main()
