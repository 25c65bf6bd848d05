"""Speed of campaigns. How to run it: README.md in this folder.

    plan     a campaign of 10,000 trials: expand and print; find the place to resume (no cluster)
    between  time between two runs of quick workloads on an emulated cluster of four workers
    quick    the whole of examples/quick.toml on such a cluster, from down to down

Ends with status 1, and names the row, if a median misses its target.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands

from boardcluster.campaign.plan import expand, spec_digest, workload_facts
from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    ClusterSpec,
    Fingerprint,
    NetworkSpec,
    NodeSpec,
    Role,
)
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec.campaign import load_campaign
from boardcluster.spec.template import render_cluster
from boardcluster.store import Store

TRIALS = 10_000
SEED = 1
ENDED = 2_000
PRINT_SECONDS_MOST = 2.0
RESUME_SECONDS_MOST = 1.0
BETWEEN_SECONDS_MOST = 2.0
QUICK_SECONDS_MOST = 12 * 60.0
TIMES = 5
ROOT = Path(__file__).parents[1]

LARGE = """\
[campaign]
name = "large"
repetitions = 5
[[matrix]]
workload = ["wordcount", "grep"]
size = [{sizes}]
workers = [1, 2, 4, 8, 16]
checksum = ["crc32c", "null"]
replication = [1, 2]
"""

BETWEEN = """\
[campaign]
name = "between"
repetitions = 4
[[matrix]]
workload = ["teragen", "pi"]
size = "{size}"
parameters.pi.samples = 10000
"""

Row = tuple[str, list[float], float]


def large_cluster() -> ClusterSpec:
    """Return a declared cluster of 16 large workers; nothing of it is ever started."""

    def node(name: str, role: Role) -> NodeSpec:
        return NodeSpec(name=name, roles=frozenset({role}), cores=4, memory_bytes=8 << 30)

    return ClusterSpec(
        name="large",
        kind="emulated",
        engines=pair_ids()[0],
        profile="default",
        network=NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=10**9),
        nodes=(
            node("master", Role.MASTER),
            *(node(f"worker{number}", Role.WORKER) for number in range(1, 17)),
        ),
    )


def run(home: Path, *arguments: str) -> str:
    """Run the program on a home and return what it prints."""
    return commands.run(home, *arguments, stdout=subprocess.PIPE).stdout


def timed(home: Path, *arguments: str) -> list[float]:
    """Run the program several times; return the wall time of each, its own start included."""
    seconds = []
    for _ in range(TIMES):
        began = time.monotonic()
        run(home, *arguments)
        seconds.append(time.monotonic() - began)
    return seconds


def plan(folder: Path) -> list[Row]:
    """Expand and print 10,000 trials; then find the place among them to go on."""
    home = folder / "home"
    home.mkdir()
    spec = large_cluster()
    text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    (home / "cluster.toml").write_text(text)
    file = folder / "large.toml"
    # Sizes in bytes that differ a little: what is timed is the number of cells, not their content.
    file.write_text(LARGE.format(sizes=", ".join(str(10**6 + number) for number in range(25))))
    printed = timed(home, "run", str(file), "--dry-run")
    store_large(home, file, spec)
    resumed = timed(home, "run", str(file), "--resume", "--dry-run")
    start = timed(home, "--version")
    least = statistics.median(start)
    return [
        (f"expand and print {TRIALS:,} trials", printed, PRINT_SECONDS_MOST),
        (f"the same for a resume with {ENDED:,} ended", resumed, PRINT_SECONDS_MOST),
        (
            "of that, finding the place: without expanding and printing",
            [max(0.0, value - least) for value in resume_only(home, file)],
            RESUME_SECONDS_MOST,
        ),
    ]


def resume_only(home: Path, file: Path) -> list[float]:
    """Time what a resume asks of the file and the store; the start of Python is added."""
    code = (
        "import sys; from pathlib import Path\n"
        "from boardcluster.campaign.plan import spec_digest, workload_facts\n"
        "from boardcluster.services.declaration import read_spec\n"
        "from boardcluster.services.profile import profile_names\n"
        "from boardcluster.services.settings import check_setting\n"
        "from boardcluster.spec.campaign import load_campaign\n"
        "from boardcluster.store import Store\n"
        "spec = load_campaign(Path(sys.argv[2]), workloads=workload_facts(),"
        " profiles=profile_names(), check_setting=check_setting)\n"
        "with Store.open(Path(sys.argv[1]), read_only=True) as store:\n"
        "    found = store.find_campaigns(spec.name)[-1]\n"
        "    cluster = read_spec(Path(sys.argv[1]) / 'cluster.toml')\n"
        "    assert found.spec_sha256 == spec_digest(spec, cluster)\n"
        "    states = store.states(found.id)\n"
        "    left = [t for t in store.trials(found.id) if states[t.id] is None]\n"
        "assert len(left) == int(sys.argv[3]), len(left)\n"
    )
    seconds = []
    for _ in range(TIMES):
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-c", code, str(home), str(file), str(TRIALS - ENDED)], check=True
        )
        seconds.append(time.monotonic() - began)
    return seconds


def store_large(home: Path, file: Path, declared: ClusterSpec) -> None:
    """Store the campaign, its first trials ended."""
    facts = workload_facts()
    spec = load_campaign(
        file, workloads=facts, profiles=profile_names(), check_setting=check_setting
    )
    trials = expand(
        replace(spec, seed=SEED),
        campaign_id="20260801-120000-abcd",
        workloads=facts,
        cluster_profile=declared.profile,
        cluster_workers=len(declared.workers),
        cluster_settings=declared.settings,
    )
    if len(trials) != TRIALS:
        sys.exit(f"{len(trials)} trials instead of {TRIALS}")
    when = "2026-08-01T12:00:00+00:00"
    campaign = Campaign(
        id="20260801-120000-abcd",
        kind=CampaignKind.RUN,
        created_utc=when,
        seed=SEED,
        cluster=declared.name,
        emulated=True,
        name=spec.name,
        spec_sha256=spec_digest(spec, declared),
    )
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for trial in trials[:ENDED]:
            attempt = store.begin_attempt(trial.id, nobody(), when)
            store.finish(
                attempt,
                state=AttemptState.FAILED,
                reason="made up for a benchmark",
                ended_utc=when,
                measurement=None,
            )


def nobody() -> Fingerprint:
    """Return the fingerprint of no machine."""
    return Fingerprint(
        kernel="-",
        os="-",
        cpu="-",
        cpu_cores=1,
        memory_bytes=1,
        java="-",
        hadoop="-",
        spark="-",
        boardcluster="-",
        profile="-",
        config_sha256="-",
        nodes=1,
        node_memory_bytes=1,
        node_cores=1,
        link_bits_per_second=1,
        emulated=True,
    )


def emulated(folder: Path) -> Path:
    """Write a cluster of four workers and return its home."""
    home = folder / "home"
    run(home, "init", "--workers", "4", "--subnet", "198.18.9.0/24")
    return home


def between(folder: Path) -> list[Row]:
    """Run short jobs and take the jobs' own time from the time of the campaign."""
    home = emulated(folder)
    rows = []
    try:
        run(home, "up")
        for size in ("1 MB", "64 MB"):
            file = folder / "between.toml"
            file.write_text(BETWEEN.format(size=size))
            run(home, "run", str(file), "--new", "--only", "repetition=1")  # fills caches
            began = time.monotonic()
            done = json.loads(run(home, "run", str(file), "--resume", "--json"))
            whole = time.monotonic() - began
            measured = [row for row in done["results"] if row["trial"]["repetition"] > 1]
            jobs = sum(row["measurement"]["duration_seconds"] for row in measured)
            each = (whole - jobs) / len(measured)
            rows.append((f"between two runs, {size}", [each], BETWEEN_SECONDS_MOST))
    finally:
        run(home, "down", "--wipe")
    return rows


def quick(folder: Path) -> list[Row]:
    """Run the whole of quick.toml."""
    home = emulated(folder)
    began = time.monotonic()
    try:
        done: Any = json.loads(run(home, "run", str(ROOT / "examples" / "quick.toml"), "--json"))
        seconds = time.monotonic() - began
    finally:
        run(home, "down", "--wipe")
    print(json.dumps(done["summary"]))
    for row in done["results"]:
        took = row["measurement"]["duration_seconds"]
        print(f"  {row['trial']['workload']} on {row['trial']['engine']}: {took:.1f} s")
    return [("examples/quick.toml", [seconds], QUICK_SECONDS_MOST)]


def main() -> None:
    """Run what was asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parts = {"plan": plan, "between": between, "quick": quick}
    parser.add_argument("part", choices=sorted(parts))
    with tempfile.TemporaryDirectory() as folder:
        rows = parts[parser.parse_args().part](Path(folder))
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")
    missed = False
    for name, seconds, most in rows:
        median = statistics.median(seconds)
        missed = missed or median > most
        print(
            f"| {name} | {median:.2f} s | {min(seconds):.2f} to {max(seconds):.2f} s "
            f"| {len(seconds)} | {most:g} s{', missed' if median > most else ''} |"
        )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
