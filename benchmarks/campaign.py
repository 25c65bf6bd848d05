"""Speed of a campaign's driver, without a cluster. How to run it: README.md in this folder.

Target: 10,000 trials are planned in at most 1 s. Ends with status 1 if the median misses it.
"""

from __future__ import annotations

import statistics
import sys
import time

from boardcluster.campaign.plan import expand, spec_digest
from boardcluster.records import CampaignSpec, Checksum, Engine, Matrix, Policy
from boardcluster.spec import WorkloadFacts

TRIALS = 10_000
PLAN_SECONDS_MOST = 1.0
TIMES = 5

FACTS = WorkloadFacts(
    engines=(Engine.MAPREDUCE, Engine.SPARK),
    parameters={},
    takes_size=True,
    size_is_optional=False,
    takes_text=True,
)


def campaign() -> CampaignSpec:
    """Return a campaign of 2,000 cells and 10,000 trials, as large as a paper's ten times over."""
    matrix = Matrix(
        workloads=("wordcount", "grep"),
        sizes_bytes=tuple(number * 10**9 for number in range(1, 26)),
        workers=(1, 2, 4, 8, 16),
        checksums=(Checksum.CRC32C, Checksum.NULL),
        repetitions=5,
        parameters={
            "wordcount.reduces": ("1", "2"),
            "grep.pattern": ("ATL", "ORD"),
        },
    )
    return CampaignSpec(name="large", seed=1, policy=Policy(), matrices=(matrix,))


def main() -> None:
    """Plan several times and print a table."""
    spec = campaign()
    seconds = []
    for _ in range(TIMES):
        began = time.monotonic()
        trials = expand(
            spec,
            campaign_id="20260801-120000-abcd",
            workloads={"wordcount": FACTS, "grep": FACTS},
            cluster_profile="default",
            cluster_workers=8,
        )
        spec_digest(spec)
        seconds.append(time.monotonic() - began)
        if len({trial.id for trial in trials}) != TRIALS:
            sys.exit(f"{len(trials)} trials instead of {TRIALS}")
    median = statistics.median(seconds)
    missed = median > PLAN_SECONDS_MOST
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")
    print(
        f"| plan {TRIALS:,} trials | {median:.2f} s | {min(seconds):.2f} to {max(seconds):.2f} s "
        f"| {TIMES} | {PLAN_SECONDS_MOST:g} s{', missed' if missed else ''} |"
    )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
