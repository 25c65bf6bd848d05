"""Speed of a bundle of 1,000 runs, both ways, with the logs and samples of real runs.

    benchmarks/bundle.py HOME [--runs 1000]

HOME is the state folder of a cluster that ran something; its runs, with all their artefacts, are
repeated in a store of their own until there are enough. Targets on 2 cores and a local disk:
written within 30 s and 2 GB of memory, imported within 30 s. Ends with status 1 if one is missed.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import boardcluster as bc
from boardcluster.records import AttemptState, Result
from boardcluster.store import Store

SECONDS_MOST = 30.0
MEMORY_BYTES_MOST = 2e9
MOMENT = re.compile(rb"(\d\d:\d\d:\d\d[.,])(\d{3})")


def repeat(source: Path, home: Path, runs: int) -> None:
    """Make a store of so many runs from those of another one."""
    home.mkdir()
    for name in ("running.toml", "cluster.toml"):
        if (source / name).exists():
            shutil.copy(source / name, home / name)
    with Store.open(source, read_only=True) as old, Store.open(home) as store:
        ended = [row for row in old.results() if row.attempt and row.attempt.ended_utc]
        campaign = next(row for row in old.campaigns() if row.id == ended[0].trial.campaign_id)
        kept = old.campaign_file(campaign.id) or b""
        made = [ended[place % len(ended)] for place in range(runs)]
        trials = [
            replace(
                row.trial,
                id=f"{campaign.id}-bench-{place:05d}",
                campaign_id=campaign.id,
                position=place,
                repetition=1 + place // len(ended),
            )
            for place, row in enumerate(made)
        ]
        store.add_campaign(campaign, trials, file_bytes=kept)
        for trial, row in zip(trials, made, strict=True):
            run_again(old, store, trial.id, row)


def run_again(old: Store, store: Store, trial_id: str, row: Result) -> None:
    """Store a run with the artefacts of another one."""
    before = row.attempt
    if before is None:
        raise ValueError("only runs that ended are repeated")
    attempt = store.begin_attempt(trial_id, before.fingerprint, before.started_utc)
    shutil.copytree(
        old.artefact_folder(before),
        store.artefact_folder(attempt),
        ignore=shutil.ignore_patterns("attempt.json"),
        copy_function=functools.partial(
            copy_moved, homes=(old.home, store.home), number=attempt_number(trial_id)
        ),
        dirs_exist_ok=True,
    )
    judged = before.state is AttemptState.OK
    store.finish(
        attempt,
        state=before.state,
        reason=before.reason,
        ended_utc=before.ended_utc,
        measurement=row.measurement,
        telemetry=old.telemetry(before) if judged else None,
    )


def attempt_number(trial_id: str) -> int:
    """Return the place of a trial among those that were made."""
    return int(trial_id.rpartition("-")[2])


def copy_moved(source: str, target: str, *, homes: tuple[Path, Path], number: int) -> str:
    """Copy a file, as it would be if the run had been made in the other home at another time.

    Logs of no two runs are alike, so nothing that was found in one may help with the next.
    """
    before, after = (str(home.resolve()).encode() for home in homes)
    content = Path(source).read_bytes()
    if b"\0" not in content[:8192]:
        content = MOMENT.sub(
            lambda at: b"%s%03d" % (at[1], (int(at[2]) + number) % 1000),
            content.replace(before, after),
        )
    Path(target).write_bytes(content)
    return target


def timed(what: str, action: Callable[[], object]) -> bool:
    """Do something once and print a line; return whether it was quick enough."""
    os.sync()  # an import makes sure of its files, and would wait for what was written before it
    began, cpu = time.perf_counter(), used_cpu_seconds()
    action()
    seconds, cpu_seconds = time.perf_counter() - began, used_cpu_seconds() - cpu
    good = seconds <= SECONDS_MOST
    missed = "" if good else ", missed"
    print(f"| {what} | {seconds:.1f} s | {cpu_seconds:.1f} s | {SECONDS_MOST:g} s{missed} |")
    return good


def used_cpu_seconds() -> float:
    """CPU time of this process and of those it started."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path, help="state folder of a cluster that ran something")
    parser.add_argument("--runs", type=int, default=1000, help="runs in the bundle")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="boardcluster-bundle-") as folder:
        home, bundle = Path(folder) / "home", Path(folder) / "bundle.zip"
        repeat(chosen.home, home, chosen.runs)
        artefacts = [path for path in (home / "attempts").rglob("*") if path.is_file()]
        size_bytes = sum(path.stat().st_size for path in artefacts)
        print(f"{chosen.runs} runs, {len(artefacts)} artefacts, {size_bytes / 1e6:.0f} MB")
        print("| what | wall | CPU | target |\n|---|---|---|---|")
        met = [
            timed("bundle", lambda: bc.export_bundle(bundle, home=home)),
            timed("import", lambda: bc.import_bundle(bundle, home=Path(folder) / "theirs")),
        ]
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        memory_bytes = max(resource.getrusage(kind).ru_maxrss * 1024 for kind in kinds)
        met.append(memory_bytes <= MEMORY_BYTES_MOST)
        print(
            f"the bundle has {bundle.stat().st_size / 1e6:.0f} MB; the largest process used "
            f"{memory_bytes / 1e6:.0f} MB of memory"
        )
    if not all(met):
        sys.exit(1)


if __name__ == "__main__":
    main()
