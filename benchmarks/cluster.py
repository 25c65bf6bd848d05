"""Speed and memory of the emulated cluster. How to run it: README.md in this folder.

Targets on 2 cores with warm caches: up to healthy at most 12 s for 4 workers, down at most 5 s,
idle memory at most 1.4 GB and at most 240 MB for one worker's two daemons, demo at most 5 minutes,
overhead of a run at most 2 %.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from boardcluster.cluster.state import load_state
from boardcluster.remote.netns import enter

CLI = (sys.executable, "-m", "boardcluster")
SUBNET = "198.18.120.0/24"
IDLE_SECONDS = 30.0


class Program:
    """The command line on a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._env = {**os.environ, "BOARDCLUSTER_HOME": str(home)}

    def run(self, *arguments: str) -> tuple[float, str, str]:
        """Return seconds, standard output and standard error of a command that must succeed."""
        began = time.monotonic()
        done = subprocess.run(
            [*CLI, *arguments], capture_output=True, text=True, env=self._env, check=False
        )
        seconds = time.monotonic() - began
        if done.returncode != 0:
            sys.exit(f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return seconds, done.stdout, done.stderr

    def json(self, *arguments: str) -> Any:
        """Return what a command prints as JSON."""
        return json.loads(self.run(*arguments, "--json")[1])

    def init(self, workers: int) -> None:
        """Write the specification."""
        self.run("init", "--force", "--workers", str(workers), "--subnet", SUBNET)


def row(what: str, values: list[float], unit: str, target: str) -> None:
    """Print one line of the table."""
    print(
        f"| {what} | {statistics.median(values):.2f} {unit} | {min(values):.2f} to "
        f"{max(values):.2f} | {len(values)} | {target} |",
        flush=True,
    )


def table() -> None:
    """Print the head of the table."""
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")


def start(program: Program, runs: int) -> None:
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
    table()
    row("up to healthy: 4 DataNodes, 4 NodeManagers", healthy, "s", "12 s")
    row("`up` as a whole, history servers included", whole, "s", "12 s")
    row("`up` as a whole when HDFS must be created", first, "s", "12 s")
    row("`down`", down, "s", "5 s")


def memory(program: Program, runs: int) -> None:
    """Sum the daemons' memory after a while of idleness."""
    table()
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
        row(f"{what}: all daemons, shared pages once", once, "MB", "1,400 MB")
        row(f"{what}: all daemons, sum of RSS", resident, "MB", "")
        row(f"{what}: one worker's two, shared pages once", pair_once, "MB", "240 MB")
        row(f"{what}: one worker's two, sum of RSS", pair, "MB", "")


def overhead(program: Program, runs: int) -> None:
    """Pair our run with the same submission made by hand, each with its own clock.

    By hand means: a shell inside the master node runs the command line that our run used, with the
    configuration that it used, and only the output path is another.
    """
    program.init(4)
    program.run("up")
    try:
        ratios: dict[str, list[float]] = {"mapreduce": [], "spark": []}
        for _ in range(runs):
            for engine, found in ratios.items():
                ours, command, attempt = _our_run(program, engine)
                found.append(ours / _by_hand(program, command, attempt))
    finally:
        program.run("down", "--wipe")
    table()
    for engine, found in ratios.items():
        row(f"{engine}: our run / by hand", found, "", "1.02")


def _our_run(program: Program, engine: str) -> tuple[float, dict[str, Any], Path]:
    done = program.json(
        *("run", "wordcount", "--engine", engine, "--size", "64MB", "--repetitions", "1")
    )
    (result,) = done["results"]
    folder = program.home / result["attempt"]["artefacts"]
    command = json.loads((folder / "command.json").read_text())
    return result["measurement"]["duration_seconds"], command, folder


def _by_hand(program: Program, command: dict[str, Any], folder: Path) -> float:
    state = load_state(program.home)
    if state is None:
        sys.exit("the cluster is not up")
    master = next(node for node in state.nodes if node.name == "master")
    words = [*command["argv"][:-1], f"/by-hand-{time.monotonic_ns()}"]
    exports = " ".join(f"{key}={shlex.quote(value)}" for key, value in command["env"].items())
    script = f"env {exports} {shlex.join(words)} >{folder}/hand.out 2>{folder}/hand.err"
    inside = enter(master.pid, own_user=state.own_user, kinds="nmup")
    began = time.monotonic()
    subprocess.run([*inside, "bash", "-c", script], check=True)
    return time.monotonic() - began


def demo(program: Program, runs: int) -> None:
    """Time the whole demo."""
    seconds = [program.run("demo")[0] for _ in range(runs)]
    table()
    row("`demo` after downloads", seconds, "s", "300 s")


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("start", "memory", "overhead", "demo"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    benchmarks = {"start": start, "memory": memory, "overhead": overhead, "demo": demo}
    with tempfile.TemporaryDirectory(prefix="boardcluster-bench-") as folder:
        program = Program(Path(folder) / "home")
        try:
            benchmarks[options.what](program, options.runs)
        finally:
            if program.home.is_dir():
                program.run("down", "--wipe")


if __name__ == "__main__":
    main()
