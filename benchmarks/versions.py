"""This version's jobs against those of another checkout, in pairs. How to run it: README.md here.

    benchmarks/versions.py --before CHECKOUT --folder DIR [--pairs 3] [--size "256 MB"]

CHECKOUT is another checkout of the project after its own ``make dev jar``. Each version has a
cluster of one master and four workers, and only the one that runs a job is up. In each block, each
job runs once on both versions, and the version that begins changes from block to block. A time is
what the version stored for the run. All results stay in DIR: called again, it makes what is
missing. Another size or other code needs another DIR. Ends with status 1 if a median ratio is above
its goal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import commands

from boardcluster.errors import RunError

HERE = Path(__file__).resolve().parent.parent
GOALS = {("wordcount", "spark"): 0.42, ("wordcount", "mapreduce"): 0.55}
"""Most that a median ratio may be, by workload and engine."""

Cell = tuple[str, str]

CAMPAIGN = """\
[campaign]
name = "block-{block}"
repetitions = 1
seed = {block}
repeat_tainted = 0

[[matrix]]
workload = "wordcount"
engine = ["mapreduce", "spark"]
size = "{size}"
"""


class Version:
    """One checkout, and the cluster that it runs."""

    def __init__(self, checkout: Path, home: Path, subnet: str) -> None:
        self.program = [str(checkout / ".venv" / "bin" / "boardcluster")]
        self.home = home
        self.subnet = subnet

    def __call__(self, *arguments: str, codes: Sequence[int] = (0,)) -> str:
        """Run the program; return what it printed."""
        return commands.run(
            self.home, *arguments, codes=codes, program=self.program, stdout=subprocess.PIPE
        ).stdout

    def block(self, number: int, size: str) -> None:
        """Run each job once, unless that is done."""
        if number in self.times():
            return
        if not (self.home / "cluster.toml").exists():
            self("init", "--workers", "4", "--subnet", self.subnet)
        file = self.home.parent / f"block-{number}.toml"
        file.write_text(CAMPAIGN.format(block=number, size=size))
        try:
            self("up")
            # A block with a run that is invalid is not whole: the next call makes it again.
            self("run", str(file), "--new", codes=(0, RunError.exit_code))
        finally:
            self("down")

    def times(self) -> dict[int, dict[Cell, float]]:
        """Return the seconds of each whole block, by job."""
        if not (self.home / "store.sqlite").exists():
            return {}
        found: dict[int, dict[Cell, float]] = {}
        stored: dict[str, list[dict[str, Any]]] = json.loads(self("results", "--all", "--json"))
        names = {campaign["id"]: campaign["name"] for campaign in stored["campaigns"]}
        for row in stored["results"]:
            trial, measured = row["trial"], row["measurement"]
            if measured is not None and row["attempt"]["state"] == "ok":
                cell = (trial["workload"], trial["engine"])
                number = int(names[trial["campaign_id"]].removeprefix("block-"))
                found.setdefault(number, {})[cell] = measured["duration_seconds"]
        return {number: block for number, block in found.items() if block.keys() == GOALS.keys()}


def main() -> int:
    """Run the blocks that are missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--size", default="256 MB")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    before = Version(given.before.resolve(), folder / "before", "198.18.40.0/24")
    now = Version(HERE, folder / "now", "198.18.41.0/24")
    for number in range(1, given.pairs + 1):
        for version in (before, now) if number % 2 else (now, before):
            version.block(number, given.size)
    return print_table(before.times(), now.times())


def print_table(before: dict[int, dict[Cell, float]], now: dict[int, dict[Cell, float]]) -> int:
    """Print a row for each job; return 1 if one misses its goal, else 0."""
    print(
        "| job | before | now | ratios of the blocks | median | goal |\n|---|--:|--:|---|--:|--:|"
    )
    missed = False
    for cell, goal in GOALS.items():
        pairs = [(before[n][cell], now[n][cell]) for n in sorted(before.keys() & now.keys())]
        if not pairs:
            sys.exit("no block is whole on both sides: call this again")
        ratios = [second / first for first, second in pairs]
        first, second = (statistics.median(side) for side in zip(*pairs, strict=True))
        median = statistics.median(ratios)
        missed |= median > goal
        print(
            f"| {' on '.join(cell)} | {first:.1f} s | {second:.1f} s "
            f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)} | {median:.2f} | {goal} |"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
