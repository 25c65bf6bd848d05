"""What closing a cluster costs: the same jobs on closed boards and on open ones, in turns.

How to run it: README.md in this folder. Two clusters of three boards are up at once, on boards that
are namespaces of this machine: one closed, as boards are by default, the other made with
--insecure-lab. Each job runs on one, then on the other; which comes first changes with every pair.
A ratio is the time on closed boards by the time on open ones. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # programs find only their own folder

from commands import CLI
from tests.boards import Boards

BOARDS = 3
SUBNET = "198.18.121.0/24"
MEMORY = "4 GiB"
WORKLOADS = ("wordcount", "terasort")
ENGINES = ("mapreduce", "spark")


class Cluster:
    """Boards, and the command line on their driver.

    Args:
        boards: the boards.
        home: the cluster's home.
        cache: folder of fetched engines and data.
    """

    def __init__(self, boards: Boards, home: Path, cache: Path) -> None:
        self._boards = boards
        self._home = home
        self._cache = cache

    def run(self, *arguments: str) -> str:
        """Return what a command that must succeed prints."""
        env = {
            **os.environ,
            **self._boards.driver_env,
            "BOARDCLUSTER_HOME": str(self._home),
            "BOARDCLUSTER_CACHE": str(self._cache),
        }
        done = subprocess.run(
            [*self._boards.driver_prefix, *CLI, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=env,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def up(self, *options: str) -> None:
        """Bring it up."""
        hosts = ",".join(node.name for node in self._boards.nodes)
        self.run("init", "--hosts", hosts, "--yes", *options)
        path = self._home / "cluster.toml"
        path.write_text(re.sub(r'memory = ".*"', f'memory = "{MEMORY}"', path.read_text()))
        self.run("up", "--yes")

    def seconds(self, workload: str, engine: str, size: str) -> float:
        """Return how long one verified run took."""
        options = ("--engine", engine, "--size", size, "--repetitions", "1", "--json")
        (result,) = json.loads(self.run("run", workload, *options))["results"]
        return float(result["measurement"]["duration_seconds"])


def pairs_of(
    closed: Cluster, opened: Cluster, *, workload: str, engine: str, size: str, pairs: int
) -> tuple[list[float], list[float]]:
    """Return the times of a job on both clusters; the first run of each is a warm-up, left out."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(pairs + 1):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for which in order:
            seconds = (closed, opened)[which].seconds(workload, engine, size)
            if number > 0:
                times[which].append(seconds)
    return times


def main() -> None:
    """Bring both clusters up, time the jobs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--size", default="64 MB")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boardcluster"
    parser.add_argument("--cache", type=Path, default=cache)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="boardcluster-bench-"))
        )
        clusters = []
        for name, flags in (("closed", ()), ("open", ("--insecure-lab",))):
            boards = Boards(BOARDS, folder=folder / name, subnet=SUBNET)
            (folder / name).mkdir()
            cluster = Cluster(stack.enter_context(boards), folder / f"{name}-home", options.cache)
            cluster.up(*flags)
            stack.callback(cluster.run, "down")
            clusters.append(cluster)
        print(f"\n{options.size} each; {options.pairs} pairs after one that warms up\n")
        print("| job | closed | open | median ratio | range |\n|---|---|---|---|---|")
        for workload in WORKLOADS:
            for engine in ENGINES:
                closed, opened = pairs_of(
                    *clusters,
                    workload=workload,
                    engine=engine,
                    size=options.size,
                    pairs=options.pairs,
                )
                ratios = [one / other for one, other in zip(closed, opened, strict=True)]
                print(
                    f"| {workload} on {engine} | {statistics.median(closed):.1f} s | "
                    f"{statistics.median(opened):.1f} s | {statistics.median(ratios):.2f} | "
                    f"{min(ratios):.2f} to {max(ratios):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
