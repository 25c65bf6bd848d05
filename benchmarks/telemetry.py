"""What watching costs: the agent's time and memory, the files, and the run that is watched.

    benchmarks/telemetry.py agent          CPU and memory of an agent here, at 1 and 10 Hz
    benchmarks/telemetry.py store          an hour of 8 nodes at 1 Hz: size, write, read one run
    benchmarks/telemetry.py run            a run with agents against one without, in pairs

Needs a quiet machine; ``run`` also the rights to make namespaces. Prints what was measured beside
what issue and design ask for, and exits with 1 if that is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import commands
import numpy as np

from boardcluster.fetch.cache import no_progress
from boardcluster.records import NodeSamples, NodeSpec, Telemetry
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import end_processes
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.store.samples import read_telemetry, write_telemetry
from boardcluster.telemetry import agent
from boardcluster.telemetry.collector import recording
from boardcluster.telemetry.samples import SAME_CLOCKS, parse_samples

CORE_SHARE_MOST = 0.005
RESIDENT_BYTES_MOST = 15_000_000
HOUR_BYTES_MOST = 4_000_000
READ_SECONDS_MOST = 0.1
SLOWER_MOST = 1.01
NODES = 8
HOUR_SECONDS = 3600


def watched(seconds: float, hertz: float) -> tuple[float, int, NodeSamples]:
    """Return share of a core, resident bytes and samples of an agent that watches this machine."""
    here = LocalRemote("here")
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "target": f"{folder}/samples",
            "interval_seconds": 1 / hertz,
            "longest_seconds": 3600.0,
            "most_bytes": 32 << 20,
            "scope": "machine",
            "groups": {},
        }
        program = Path(agent.__file__).read_text()
        argv = ["python3", "-I", "-S", "-c", program, json.dumps(request)]
        running = here.start(argv, log=f"{folder}/log")
        time.sleep(3)  # its start is paid once
        before = used_seconds(running.pid)
        time.sleep(seconds)
        share = (used_seconds(running.pid) - before) / seconds
        status = Path(f"/proc/{running.pid}/status").read_text()
        resident = int(status.partition("VmHWM:")[2].split()[0]) * 1024
        end_processes(here, [running], grace_seconds=5)
        text = Path(f"{folder}/samples").read_text()
    found = parse_samples(
        text, node="n", scope="machine", cores=2, alignment=SAME_CLOCKS, started_seconds=0.0
    )
    return share, resident, found


def used_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / agent.TICKS


def say(what: str, value: float, most: float, unit: str) -> bool:
    """Print a figure beside its target; return whether it is met."""
    good = value <= most
    print(f"{what}: {value:.4g} {unit} (at most {most:g}): {'met' if good else 'MISSED'}")
    return good


def cost(seconds: float) -> bool:
    """Print what an agent takes."""
    share, resident, _ = watched(seconds, 1.0)
    good = say("agent at 1 Hz, share of one core", share * 100, CORE_SHARE_MOST * 100, "%")
    good &= say("agent, resident", resident / 1e6, RESIDENT_BYTES_MOST / 1e6, "MB")
    fast, _, _ = watched(seconds / 2, 10.0)
    print(f"agent at 10 Hz, share of one core: {fast * 100:.3g} %")
    return good


def store(seconds: float) -> bool:
    """Write and read an hour of eight nodes."""
    _, _, real = watched(seconds, 1.0)
    random = np.random.default_rng(1)
    nodes = tuple(stretched(real, f"pi{index}", random) for index in range(NODES))
    hour = Telemetry(duration_seconds=HOUR_SECONDS, nodes=nodes)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        path = write_telemetry(Path(folder), hour)
        wrote = time.perf_counter() - began
        size = path.stat().st_size
        times = []
        for _ in range(5):
            began = time.perf_counter()
            read_telemetry(Path(folder))
            times.append(time.perf_counter() - began)
    columns = len(real.columns)
    print(f"an hour of {NODES} nodes at 1 Hz, {columns} columns; written in {wrote:.2f} s")
    good = say("on disk", size / 1e6, HOUR_BYTES_MOST / 1e6, "MB")
    return good & say("read whole", statistics.median(times), READ_SECONDS_MOST, "s")


def stretched(real: NodeSamples, name: str, random: np.random.Generator) -> NodeSamples:
    """Return an hour of samples: real ones in random order, each value changed by up to 10 %.

    Without the change an hour would repeat half a minute, which compresses far too well.
    """

    def an_hour(values: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        drawn = random.choice(values[1:], HOUR_SECONDS)
        return drawn * random.uniform(0.9, 1.1, HOUR_SECONDS)

    return replace(
        real,
        node=name,
        seconds=np.arange(HOUR_SECONDS) + random.normal(0, 0.001, HOUR_SECONDS),
        columns={column: an_hour(values) for column, values in real.columns.items()},
    )


WORK = "total = 0\nfor number in range({}):\n    total += number * number"
TURNS = 60_000_000


def run(pairs: int) -> bool:
    """Time a fixed amount of work on four nodes at once with agents, and without, in turns.

    It keeps every core busy, so what agents use is missing from it. Not a job of Hadoop: those
    differ by several per cent from run to run, which hides what is looked for here.
    """
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        try:
            live = started(home)
            for pair in range(pairs):
                order = (True, False) if pair % 2 else (False, True)
                took = {watching: once(live, home, watching=watching) for watching in order}
                ratios.append(took[True] / took[False])
                print(f"pair {pair + 1}: {took[True]:.2f} s / {took[False]:.2f} s", flush=True)
        finally:
            operation.down(home)
    print(f"ratios {min(ratios):.4f} to {max(ratios):.4f}")
    return say("a watched run by one that is not", statistics.median(ratios), SLOWER_MOST, "")


def started(home: Path) -> LiveCluster:
    """Bring up four workers."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boardcluster"
    os.environ["BOARDCLUSTER_CACHE"] = str(cache)
    for words in (("init", "--workers", "4", "--subnet", "198.18.122.0/24"), ("up",)):
        commands.run(home, *words, stdout=subprocess.DEVNULL)
    return operation.attach(home, cache=cache, progress=no_progress)


def once(live: LiveCluster, home: Path, *, watching: bool) -> float:
    """Return how long the work takes."""
    folder = home / "attempts"
    folder.mkdir(exist_ok=True)
    argv = ["python3", "-c", WORK.format(TURNS)]

    def work(node: NodeSpec) -> None:
        live.remotes[node.name].run(argv, timeout_seconds=600)

    with recording(live, folder, {}) if watching else contextlib.nullcontext():
        time.sleep(1)
        began = time.perf_counter()
        with ThreadPoolExecutor(len(live.spec.workers)) as pool:
            list(pool.map(work, live.spec.workers))
        return time.perf_counter() - began


def main() -> int:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["agent", "store", "run"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    parts = {"agent": cost, "store": store}
    good = run(given.pairs) if given.part == "run" else parts[given.part](given.seconds)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
