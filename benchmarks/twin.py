"""How faithful emulated boards are, and what it costs to start them. As root, on a quiet machine.

    benchmarks/twin.py points      what a node's own probes see against the board's figures
    benchmarks/twin.py start       up of five limited nodes against five plain ones, in pairs
    benchmarks/twin.py dilation    the same jobs at dilation 2 and 4 against 1, after division
    benchmarks/twin.py shape       published cells of benchmarks/twin/: ratios against the papers'
    benchmarks/twin.py keep        adds the finished experiments of --root to twin/cells.json
    benchmarks/twin.py table       the table of `shape` again, without a run
    benchmarks/twin.py calibrate   from stored runs: start and work of each class, as TOML

Prints Markdown tables with every cell, also the bad ones, and ends with 1 if a target is missed.
Results are kept in --root: killed at any moment and run again, it goes on where it was. `shape`
runs three blocks of all cells of an experiment, or --blocks of them; further blocks need another
--root, and its table is over those that were kept, too: medians of times and of ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import commands

from boardcluster.analysis.experiments import column_words
from boardcluster.cluster.folders import cache_folder
from boardcluster.fetch.cache import no_progress
from boardcluster.probes.sysbench_cpu import parse_cpu, tests_of
from boardcluster.records import (
    AttemptState,
    Measurement,
    NodeSpec,
    ProbeMode,
    Trial,
    Variant,
    in_cell,
)
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.spec.template import render_cluster
from boardcluster.store import Store
from boardcluster.twin.calibration import (
    Calibration,
    TimedRun,
    calibration_of,
    calibrations,
)
from boardcluster.twin.setpoints import SetPoint, set_points
from boardcluster.units import format_bytes

FILES = Path(__file__).parent / "twin"
EXAMPLES = Path(__file__).parent.parent / "examples" / "twin"
KEPT = FILES / "cells.json"
EXPERIMENTS = ("pcie", "spark", "media", "hadoop", "spark-1gb", "hadoop-1gb", "hadoop-count")
"""Shortest first; the last takes hours for each run."""
BLOCKS = 3
"""Of each campaign file, as its ``starts``."""

KEPT_OF_AN_ENTRY = (
    *("count", "mean_seconds", "published_seconds"),
    *("ratio", "published_ratio", "difference_percent"),
)
"""Of an experiment's table."""

DILATIONS = (1, 2, 4)
POINTS = (
    FILES / "rpi4-ufs.toml",
    EXAMPLES / "rpi5-microsd-4.toml",
    EXAMPLES / "rpi5-nvme-4.toml",
    EXAMPLES / "rpi5-3000mhz-4.toml",
)
JOBS = {("pi", "mapreduce"): ("--set", "maps=4", "--set", "samples=10000")}
START_MORE_MOST_SECONDS = 10.0
DILATION_OFF_MOST = 0.05
SHAPE_OFF_MOST = 0.15
CELL_OFF_MOST = 0.40
CPU_OFF_MOST = 0.03
PRIME_LIMIT = 2000
"""Of the papers' tables, and so of the set points."""

FIGURES: dict[str, tuple[str, dict[str, str], float]] = {
    "cpu_events_per_second": (
        "sysbench_cpu_events_per_second",
        {"threads": "4", "prime_limit": "2000"},
        CPU_OFF_MOST,
    ),
    "cpu_events_per_second of one thread": (
        "sysbench_cpu_events_per_second",
        {"threads": "1", "prime_limit": "2000"},
        CPU_OFF_MOST,
    ),
    "link_bits_per_second": ("iperf3_bits_per_second", {}, 0.02),
    "disk_read_bytes_per_second": (
        "fio_sequential_read_bytes_per_second",
        {"record_bytes": "524288"},
        0.05,
    ),
    "disk_write_bytes_per_second": (
        "fio_sequential_write_bytes_per_second",
        {"record_bytes": "524288"},
        0.05,
    ),
    "disk_read_iops": (
        "fio_random_read_operations_per_second",
        {"record_bytes": "4096"},
        0.05,
    ),
    "disk_write_iops": (
        "fio_random_write_operations_per_second",
        {"record_bytes": "4096"},
        0.05,
    ),
}
"""By set point: the probe's figure, its conditions, and how far it may be off."""


class Program:
    """The command line on one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Return the standard output of a command that must end with one of these codes."""
        return commands.run(self.home, *arguments, codes=codes, stdout=subprocess.PIPE).stdout


class Missed:
    """Rows that missed their targets."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def note(self, what: str, off: float, most: float) -> str:
        """Return how far something is off, and remember it if that is too far."""
        if abs(off) <= most:
            return f"{100 * off:+.1f} %"
        self.rows.append(what)
        return f"{100 * off:+.1f} %, missed"


def points(root: Path, missed: Missed, runs: int) -> None:
    """Compare what probes see on a node with its set points."""
    print("\n| node | set point | asked | seen | off | source |\n|---|---|--:|--:|--:|---|")
    for place in POINTS:
        spec = replace(read_spec(place), profile="default")
        pair = replace(spec, nodes=spec.nodes[:2])
        program = Program(root / f"points-{pair.name}")
        program.home.mkdir(parents=True, exist_ok=True)
        kept = root / f"points-10s-{pair.name}.json"
        seen: list[list[dict[str, Any]]] = json.loads(kept.read_text()) if kept.exists() else []
        if len(seen) < runs:
            file = program.home / "twin.toml"
            file.write_text(
                render_cluster(pair, engine_pairs=[pair.engines], profiles=[pair.profile])
            )
            program.run("up", "--twin", str(file), "--home", str(program.home))
            try:
                while len(seen) < runs:
                    text = program.run("probe", "fio", "iperf3", "--json")
                    rows = [*json.loads(text)["runs"], _sysbench(program.home, pair.workers[0])]
                    seen.append(rows)
                    kept.write_text(json.dumps(seen))
            finally:
                program.run("down", "--wipe")
        worker = pair.workers[0]
        for point in _points_of(worker, pair.network.link_bits_per_second):
            if point.quantity in FIGURES:
                _point_row(worker.twin.board if worker.twin else "", point, seen, missed)


def _sysbench(home: Path, worker: NodeSpec) -> dict[str, Any]:
    """Run ``sysbench cpu`` on a worker for 10 s, as the papers did; rates are the board's.

    In the 2 s of a quick probe what a thread gets more or less in its first periods of the kernel's
    quotas would count for up to a tenth.
    """
    live = operation.attach(home, cache=cache_folder(None), progress=no_progress)
    tests = [
        test
        for test in tests_of(ProbeMode.PAPER, worker.cores)
        if test.prime_limit == PRIME_LIMIT and test.threads in (1, worker.cores)
    ]
    found = [
        figure
        for test in tests
        for figure in parse_cpu(live.remotes[worker.name].run(test.argv).text, test)
    ]
    figures = [asdict(row) | {"value": row.value * live.layout.dilation} for row in found]
    return {"node": worker.name, "figures": figures}


def _points_of(worker: NodeSpec, link_bits_per_second: int) -> Iterator[SetPoint]:
    """Yield the set points of a node, and what one thread is to show."""
    for point in set_points(worker, link_bits_per_second).all:
        yield point
        if point.quantity == "cpu_events_per_second":
            one = f"{point.quantity} of one thread"
            yield replace(point, quantity=one, value=point.value / worker.cores)


def _point_row(
    board: str, point: SetPoint, seen: list[list[dict[str, Any]]], missed: Missed
) -> None:
    figure, conditions, most = FIGURES[point.quantity]
    values = [value for run in seen if (value := _figure(run, figure, conditions)) is not None]
    if not values:
        missed.rows.append(f"{board} {point.quantity}: no figure")
        return
    median = statistics.median(values)
    off = missed.note(f"{board} {point.quantity}", median / point.value - 1, most)
    print(
        f"| {board} | {point.quantity} | {point.value:,.0f} | {median:,.0f} | {off} | "
        f"{point.source} |",
        flush=True,
    )


def _figure(runs: list[dict[str, Any]], name: str, conditions: dict[str, str]) -> float | None:
    """Return the mean of a figure over the runs on the worker, or from it to the master."""
    found = [
        float(figure["value"])
        for run in runs
        if run["node"] == "worker1"
        for figure in run["figures"]
        if figure["name"] == name and conditions.items() <= figure["conditions"].items()
    ]
    return statistics.fmean(found) if found else None


def start(root: Path, missed: Missed, runs: int) -> None:
    """Time ``up`` of five nodes, limited and plain, in turn."""
    twin, plain = Program(root / "start-twin"), Program(root / "start-plain")
    spec = read_spec(FILES / "rpi4-ufs.toml")
    nodes = tuple(
        replace(node, memory_bytes=min(node.memory_bytes, 2 << 30)) for node in spec.nodes
    )
    for program in (twin, plain):
        program.home.mkdir(parents=True, exist_ok=True)
    text = render_cluster(
        replace(spec, nodes=nodes), engine_pairs=[spec.engines], profiles=[spec.profile]
    )
    (twin.home / "cluster.toml").write_text(text)
    without = replace(spec, twin=None, nodes=tuple(replace(node, twin=None) for node in nodes))
    (plain.home / "cluster.toml").write_text(
        render_cluster(without, engine_pairs=[spec.engines], profiles=[spec.profile])
    )
    took: dict[Program, list[float]] = {twin: [], plain: []}
    for turn in range(runs + 1):  # the first creates HDFS and disks
        for program in (twin, plain) if turn % 2 else (plain, twin):
            began = time.monotonic()
            program.run("up")
            took[program].append(time.monotonic() - began)
            program.run("down")
    for program in took:
        program.run("down", "--wipe")
    more = [one - other for one, other in zip(took[twin], took[plain], strict=True)]
    print("\n| up of 1 + 4 nodes | median of later ones | first |\n|---|--:|--:|")
    for what, program in (("limited", twin), ("plain", plain)):
        rows = took[program]
        print(f"| {what} | {statistics.median(rows[1:]):.1f} s | {rows[0]:.1f} s |")
    median = statistics.median(more[1:])
    print(f"| more | {median:.1f} s | {more[0]:.1f} s |")
    if max(median, more[0]) > START_MORE_MOST_SECONDS:
        missed.rows.append("start")


def dilation(root: Path, missed: Missed, runs: int) -> None:
    """Run the same jobs at several dilations."""
    times: dict[tuple[str, str], dict[int, float]] = {}
    for factor in DILATIONS:
        program = Program(root / f"dilation-{factor}")
        if _has_runs(program.home, runs):
            for key, seconds in _times(program.home).items():
                times.setdefault(key, {})[factor] = statistics.median(seconds)
            continue
        file = FILES / f"half-{factor}.toml"
        program.run("up", "--twin", str(file), "--home", str(program.home))
        try:
            for (workload, engine), settings in JOBS.items():
                program.run(
                    *("run", workload, "--engine", engine, *settings, "--yes"),
                    *("--repetitions", str(runs)),
                    codes=(0, 9),
                )
        finally:
            program.run("down")
        for key, seconds in _times(program.home).items():
            times.setdefault(key, {})[factor] = statistics.median(seconds)
    print("\n| job | dilation 1 | 2 | off | 4 | off |\n|---|--:|--:|--:|--:|--:|")
    for workload, engine in JOBS:
        row = times.get((workload, engine), {})
        cells = [f"{row[1]:.1f} s" if 1 in row else "none"]
        for factor in DILATIONS[1:]:
            if factor not in row or 1 not in row:
                cells += ["none", "missed"]
                missed.rows.append(f"{workload} {engine} at {factor}: no run")
                continue
            what = f"{workload} {engine} at dilation {factor}"
            off = missed.note(what, row[factor] / row[1] - 1, DILATION_OFF_MOST)
            cells += [f"{row[factor]:.1f} s", off]
        print(f"| {workload}, {engine} | {' | '.join(cells)} |", flush=True)


def _has_runs(home: Path, runs: int) -> bool:
    """Whether a home has so many verified runs of each job already."""
    if not (home / "store.sqlite").exists():
        return False
    found = _times(home)
    return all(len(found.get(key, [])) >= runs for key in JOBS)


def _times(home: Path) -> dict[tuple[str, str], list[float]]:
    """Return the seconds of all verified runs by workload and engine."""
    found: dict[tuple[str, str], list[float]] = {}
    for trial, measurement in _verified(home):
        key = (trial.workload, str(trial.engine))
        found.setdefault(key, []).append(measurement.duration_seconds)
    return found


def _verified(home: Path) -> Iterator[tuple[Trial, Measurement]]:
    """Yield every verified run of a home's campaigns that was not too disturbed to count."""
    with Store.open(home, read_only=True) as store:
        results = [row for campaign in store.campaigns() for row in store.results(campaign.id)]
    for result in results:
        attempt, measurement = result.attempt, result.measurement
        ok = attempt is not None and attempt.state is AttemptState.OK
        if ok and measurement is not None and in_cell(measurement):
            yield result.trial, measurement


def shape(root: Path, missed: Missed, given: argparse.Namespace) -> None:
    """Run the experiments and compare every ratio that was published."""
    files = _files(root, given.blocks)
    for name in given.only or EXPERIMENTS:
        file = str(files / f"{name}.toml")
        text = Program(root).run(
            "experiment", file, "--home-root", str(root), "--json", codes=(0, 9)
        )
        table = json.loads(text)["table"]
        done = root / f"shape-{name}.json"
        known = json.loads(done.read_text()) if done.exists() else []
        sitting = known[0]["sitting"] if known else time.strftime("%Y%m%d-%H%M%S")
        done.write_text(json.dumps(_cells(name, sitting, table)))
        for lost in table["left_out"]:
            trial = lost["trial"]
            workers = column_words("workers", str(trial["workers"]))
            what = f"{name} {trial['workload']} on {trial['engine']}, {workers}"
            missed.rows.append(f"{what}: {lost['state']}")
    shape_table(root, missed)


def _files(root: Path, blocks: int) -> Path:
    """Return a folder with the experiments' files, which ask for so many blocks."""
    if blocks == BLOCKS:
        return FILES
    target = root / f"files-{blocks}"
    target.mkdir(exist_ok=True)
    for file in FILES.glob("*.toml"):
        text = file.read_text().replace(f"\nstarts = {BLOCKS}", f"\nstarts = {blocks}")
        (target / file.name).write_text(text)
    return target


def _cells(name: str, sitting: str, table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of an experiment's table, as they are kept."""
    return [
        {
            "experiment": name,
            "sitting": sitting,
            "cell": _cell(table["vary"], row, entry),
            "calibrates": "(calibrates " in entry["published_source"],
            **{key: entry[key] for key in KEPT_OF_AN_ENTRY},
        }
        for row in table["rows"]
        for entry in row["entries"]
        if entry["count"]  # a cell without a run that counts has no time
    ]


def _all_cells(root: Path) -> list[dict[str, Any]]:
    """Return the cells that were kept and those of a root."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for file in (KEPT, *sorted(root.glob("shape-*.json"))):
        for row in json.loads(file.read_text()) if file.exists() else ():
            rows[row["experiment"], row["sitting"], row["cell"]] = row
    return [rows[key] for key in sorted(rows)]


def _with_equal_cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give ``spark`` the cells that ``media`` measured on the same twin, and the ratios they add.

    Both have 1 and 4 workers with UFS cards, so a block of ``media`` spares these of ``spark``, or
    the other way round: then they are in both, and count once. A ratio of cells that different
    sittings measured is one of medians.
    """
    end = ", rpi4-ufs"
    known = {(row["cell"], row["mean_seconds"]) for row in rows if row["experiment"] == "spark"}
    rows = [
        *rows,
        *(
            {**row, "experiment": "spark", "cell": row["cell"].removesuffix(end)}
            | dict.fromkeys(("ratio", "published_ratio", "difference_percent"))
            for row in rows
            if row["experiment"] == "media"
            and row["cell"].endswith(end)
            and (row["cell"].removesuffix(end), row["mean_seconds"]) not in known
        ),
    ]
    bases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["experiment"] == "spark" and row["calibrates"]:
            bases.setdefault(row["cell"].rpartition(", ")[0], []).append(row)
    for row in rows:
        base = bases.get(row["cell"].rpartition(", ")[0], [])
        if row["experiment"] == "spark" and base and not row["calibrates"] and not row["ratio"]:
            took, published = (
                statistics.median(one[key] for one in base)
                for key in ("mean_seconds", "published_seconds")
            )
            row["ratio"] = took / row["mean_seconds"]
            row["published_ratio"] = published / row["published_seconds"]
            row["difference_percent"] = 100 * (row["ratio"] / row["published_ratio"] - 1)
    return rows


def keep(root: Path) -> None:
    """Write the cells where the next table finds them."""
    rows = [json.dumps(row) for row in _all_cells(root)]
    KEPT.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def shape_table(root: Path, missed: Missed) -> None:
    """Print every cell: medians over the sittings that measured it."""
    cells: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in _with_equal_cells(_all_cells(root)):
        cells.setdefault((EXPERIMENTS.index(row["experiment"]), row["cell"]), []).append(row)
    off: list[float] = []
    measured = set()
    print("\n| experiment | cell | runs | time, s | published, s | ratio | published | off, % |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for (place, cell), rows in sorted(cells.items()):
        differences = [row["difference_percent"] for row in rows]
        if None not in differences:
            off.append(statistics.median(differences) / 100)
            missed.note(f"{EXPERIMENTS[place]}: {cell}", off[-1], CELL_OFF_MOST)
            measured.add(place)
        print(_shape_row(EXPERIMENTS[place], cell, rows), flush=True)
    missed.rows += [
        f"{name}: no ratio" for place, name in enumerate(EXPERIMENTS) if place not in measured
    ]
    if off:
        median = statistics.median(abs(value) for value in off)
        what = f"median of {len(off)} ratios"
        print(f"\n{what}: {missed.note(what, median, SHAPE_OFF_MOST)} off")
    _calibrated(root)


def _cell(vary: str, row: dict[str, Any], entry: dict[str, Any]) -> str:
    """Name a cell of an experiment's table."""
    size = format_bytes(row["size_bytes"]) if row["size_bytes"] else ""
    workers = column_words("workers", str(row["workers"])) if row["workers"] else ""
    varied = column_words(vary, entry["column"])
    parts = (f"{row['workload']} on {row['engine']}", size, workers, varied)
    return ", ".join(part for part in parts if part)


def _shape_row(name: str, cell: str, rows: list[dict[str, Any]]) -> str:
    def text(key: str, form: str) -> str:
        values = [row[key] for row in rows]
        return "-" if None in values else format(statistics.median(values), form)

    cells = (
        name,
        f"{cell} (calibrates)" if rows[0]["calibrates"] else cell,
        str(sum(row["count"] for row in rows)),
        text("mean_seconds", ".1f"),
        text("published_seconds", ".1f"),
        text("ratio", ".2f"),
        text("published_ratio", ".2f"),
        text("difference_percent", "+.0f"),
    )
    return f"| {' | '.join(cells)} |"


def _timed_runs(root: Path) -> Iterator[tuple[Trial, TimedRun]]:
    """Yield every verified run on UFS cards with when its first task began, by its timeline."""
    home = root / "fid-4b-ufs"
    if not (home / "store.sqlite").exists():
        return
    machine = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith(("model name", "Hardware", "CPU part"))
    )
    with Store.open(home, read_only=True) as store:
        for campaign in store.campaigns():
            for row in store.results(campaign.id):
                if not (row.attempt and row.measurement and row.attempt.state is AttemptState.OK):
                    continue
                telemetry = store.telemetry(row.attempt)
                if row.trial.warm_up or telemetry is None or not telemetry.tasks:
                    continue
                dilation = row.measurement.dilation or 1.0
                yield (
                    row.trial,
                    TimedRun(
                        start_seconds=telemetry.tasks[0].begin_seconds / dilation,
                        seconds=row.measurement.duration_seconds,
                        machine=machine,
                    ),
                )


def _is_cell_of(row: Calibration, trial: Trial) -> bool:
    """Whether a trial is the cell that a class is calibrated with, run as the papers did."""
    return (
        (trial.workload, trial.engine) in {(name, row.engine) for name in row.workloads}
        and (trial.workers, trial.size_bytes) == (1, row.size_bytes)
        and trial.variant is Variant.TEXTBOOK
    )


def calibrate(root: Path, missed: Missed) -> None:
    """Print the runs of each class's cell as twin/calibration.toml has them, and its rates."""
    found = list(_timed_runs(root))
    for row in calibrations():
        own = tuple(run for trial, run in found if _is_cell_of(row, trial))
        if not own:
            missed.rows.append(f"{row.name}: no run of its cell")
            continue
        print(f"\n# {row.name}\nruns = [")
        for run in own:
            print(
                f"  {{ start_seconds = {run.start_seconds:.1f}, seconds = {run.seconds:.1f}, "
                f'machine = "{run.machine}" }},'
            )
        fitted = replace(row, runs=own)
        print(
            f"]\n# start {fitted.start_seconds:.1f} s, work {fitted.work_seconds_per_gb:.1f} s/GB; "
            f"published {fitted.published_work_seconds_per_gb:.1f} s/GB"
        )


def _calibrated(root: Path) -> None:
    """Print calibrated times of all cells but those that calibrate; they are no part of a goal."""
    times: dict[tuple[str, str, int, int], list[tuple[float, float]]] = {}
    for trial, run in _timed_runs(root):
        row = calibration_of(trial.workload, trial.engine)
        if row is None or _is_cell_of(row, trial):
            continue
        seconds = row.calibrated_seconds(start_seconds=run.start_seconds, seconds=run.seconds)
        if seconds is not None:
            key = (trial.workload, str(trial.engine), trial.size_bytes, trial.workers)
            times.setdefault(key, []).append((run.seconds, seconds))
    if times:
        print("\n| cell | time | calibrated |\n|---|--:|--:|")
    for (workload, engine, size_bytes, workers), pairs in sorted(times.items()):
        plain, fitted = (statistics.fmean(column) for column in zip(*pairs, strict=True))
        cell = f"{workload} on {engine}, {format_bytes(size_bytes)}, {workers}"
        print(f"| {cell} | {plain:.1f} | {fitted:.1f} |")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=PARTS)
    parser.add_argument("--root", type=Path, default=Path("twin-results"), help="where results go")
    parser.add_argument("--runs", type=int, default=3, help="of points, start and dilation")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="of shape")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, help="experiments of shape")
    given = parser.parse_args()
    root = given.root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    missed = Missed()
    PARTS[given.what](root, missed, given)
    if missed.rows:
        sys.exit(f"missed: {'; '.join(missed.rows)}")


PARTS: dict[str, Callable[[Path, Missed, argparse.Namespace], None]] = {
    "points": lambda root, missed, given: points(root, missed, given.runs),
    "start": lambda root, missed, given: start(root, missed, given.runs),
    "dilation": lambda root, missed, given: dilation(root, missed, given.runs),
    "shape": shape,
    "keep": lambda root, _missed, _given: keep(root),
    "table": lambda root, missed, _given: shape_table(root, missed),
    "calibrate": lambda root, missed, _given: calibrate(root, missed),
}


if __name__ == "__main__":
    main()
