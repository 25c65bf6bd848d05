"""Speed and memory of the emulated cluster. How to run it: README.md in this folder.

Targets on 2 cores with warm caches: up to healthy at most 12 s for 4 workers, down at most 5 s,
idle memory at most 1.4 GB and at most 240 MB for one worker's two daemons, demo at most 5 minutes,
overhead of a run at most 2 %. Ends with status 1 if a median misses its target.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import commands

from boardcluster.cluster.state import load_state
from boardcluster.remote.netns import enter

SUBNET = "198.18.120.0/24"
IDLE_SECONDS = 30.0
ENGINES = ("mapreduce", "spark")
REPETITIONS = 3


class Program:
    """The command line on a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *arguments: str) -> tuple[float, str, str]:
        """Return seconds, standard output and standard error of a command that must succeed."""
        began = time.monotonic()
        done = commands.run(self.home, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return time.monotonic() - began, done.stdout, done.stderr

    def json(self, *arguments: str) -> Any:
        """Return what a command prints as JSON."""
        return json.loads(self.run(*arguments, "--json")[1])

    def init(self, workers: int) -> None:
        """Write the specification."""
        self.run("init", "--force", "--workers", str(workers), "--subnet", SUBNET)


class Table:
    """A table printed row by row that remembers which targets were missed.

    Attributes:
        missed: the rows whose median is above the target.
    """

    def __init__(self) -> None:
        self.missed: list[str] = []

    def head(self) -> None:
        """Print the head of the table."""
        print("\n| what | median | range | runs | target |\n|---|---|---|---|---|")

    def row(self, what: str, values: list[float], unit: str, target: float | None = None) -> None:
        """Print one line; ``target`` is the highest good median, in the same unit."""
        median = statistics.median(values)
        goal = "" if target is None else f"{target:,g} {unit}".strip()
        if target is not None and median > target:
            self.missed.append(what)
            goal += ", missed"
        print(
            f"| {what} | {f'{median:.2f} {unit}'.strip()} | {min(values):.2f} to "
            f"{max(values):.2f} | {len(values)} | {goal} |",
            flush=True,
        )


def start(program: Program, table: Table, runs: int) -> None:
    """Time up and down, on an HDFS that exists and on one that must be created."""
    program.init(4)
    program.run("up")
    program.run("down")
    whole, healthy, down = [], [], []
    for _ in range(runs):
        seconds, _, err = program.run("up")
        whole.append(seconds)
        live = re.findall(r"\[ *([0-9.]+) s\] 4 DataNodes and 4 NodeManagers", err)
        healthy.append(float(live[-1]))
        down.append(program.run("down")[0])
    first = []
    for _ in range(runs):
        program.run("down", "--wipe")
        first.append(program.run("up")[0])
        program.run("down")
    table.head()
    table.row("up to healthy: 4 DataNodes, 4 NodeManagers", healthy, "s", 12.0)
    table.row("`up` as a whole, history servers included", whole, "s", 12.0)
    table.row("`up` as a whole when HDFS must be created", first, "s", 12.0)
    table.row("`down`", down, "s", 5.0)


def memory(program: Program, table: Table, runs: int) -> None:
    """Sum the daemons' memory after a while of idleness."""
    table.head()
    for workers in (4, 1):
        resident, once, pair, pair_once = [], [], [], []
        for _ in range(runs):
            program.init(workers)
            program.run("up")
            time.sleep(IDLE_SECONDS)
            daemons = program.json("status")["daemons"]
            program.run("down", "--wipe")
            resident.append(sum(d["resident_bytes"] for d in daemons) / 1e6)
            once.append(sum(d["proportional_bytes"] for d in daemons) / 1e6)
            mine = [d for d in daemons if d["node"] == "worker1"]
            pair.append(sum(d["resident_bytes"] for d in mine) / 1e6)
            pair_once.append(sum(d["proportional_bytes"] for d in mine) / 1e6)
        what = f"1 + {workers} nodes"
        table.row(f"{what}: all daemons, shared pages once", once, "MB", 1400.0)
        table.row(f"{what}: all daemons, sum of RSS", resident, "MB")
        table.row(f"{what}: one worker's two, shared pages once", pair_once, "MB", 240.0)
        table.row(f"{what}: one worker's two, sum of RSS", pair, "MB")


def overhead(program: Program, table: Table, runs: int) -> None:
    """Pair our run with the same submission made by hand, each with its own clock.

    By hand means: a shell inside the master node runs the command line that our run used, with the
    configuration that it used, and only the output path is another. Command and configuration are
    those of a warm-up run that is not counted, so that each way can go first in every second pair.
    """
    program.init(4)
    program.run("up")
    ratios: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    beyond: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    try:
        warm = {engine: _our_runs(program, engine, 1)[2] for engine in ENGINES}
        for number in range(runs):
            for engine in ENGINES:
                if number % 2 == 0:
                    ours = _our_runs(program, engine, 1)[1]
                    by_hand = _by_hand(program, warm[engine])
                else:
                    by_hand = _by_hand(program, warm[engine])
                    ours = _our_runs(program, engine, 1)[1]
                ratios[engine].append(ours / by_hand)
                whole, submissions, _ = _our_runs(program, engine, REPETITIONS)
                beyond[engine].append((whole - submissions) / REPETITIONS)
    finally:
        program.run("down", "--wipe")
    table.head()
    for engine in ENGINES:
        table.row(f"{engine}: our submission / by hand", ratios[engine], "", 1.02)
    for engine in ENGINES:
        table.row(
            f"{engine}: what one of our runs takes beyond its submission (clear, gather, verify, "
            f"store; 1/{REPETITIONS} of the program's own start)",
            beyond[engine],
            "s",
        )


def _our_runs(program: Program, engine: str, repetitions: int) -> tuple[float, float, Path]:
    """Return seconds of the whole command, seconds of all its submissions, the last's artefacts."""
    options = ("--engine", engine, "--size", "64MB", "--repetitions", str(repetitions))
    whole, out, _ = program.run("run", "wordcount", *options, "--json")
    results = json.loads(out)["results"]
    submissions = sum(result["measurement"]["duration_seconds"] for result in results)
    return whole, submissions, program.home / results[-1]["attempt"]["artefacts"]


def _by_hand(program: Program, folder: Path) -> float:
    """Return the seconds of a submission like the one whose artefacts are in the folder."""
    state = load_state(program.home)
    if state is None:
        sys.exit("the cluster is not up")
    master = next(node for node in state.nodes if node.name == "master")
    command = json.loads((folder / "command.json").read_text())
    words = [*command["argv"][:-1], f"/by-hand-{time.monotonic_ns()}"]
    exports = " ".join(f"{key}={shlex.quote(value)}" for key, value in command["env"].items())
    script = f"env {exports} {shlex.join(words)} >{folder}/hand.out 2>{folder}/hand.err"
    inside = enter(master.pid, own_user=state.own_user, kinds="nmup")
    began = time.monotonic()
    subprocess.run([*inside, "bash", "-c", script], check=True)
    return time.monotonic() - began


def demo(program: Program, table: Table, runs: int) -> None:
    """Time the whole demo."""
    seconds = [program.run("demo")[0] for _ in range(runs)]
    table.head()
    table.row("`demo` after downloads", seconds, "s", 300.0)


BENCHMARKS = {"start": start, "memory": memory, "overhead": overhead, "demo": demo}


def main() -> None:
    """Run one benchmark, or all in turn, each on a home of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=tuple(BENCHMARKS), help="default: all, in turn")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    table = Table()
    for name in [options.what] if options.what else BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix="boardcluster-bench-") as folder:
            program = Program(Path(folder) / "home")
            try:
                BENCHMARKS[name](program, table, options.runs)
            finally:
                if program.home.is_dir():
                    program.run("down", "--wipe")
    if table.missed:
        sys.exit("\n".join(["", *(f"missed: {what}" for what in table.missed)]))


if __name__ == "__main__":
    main()
