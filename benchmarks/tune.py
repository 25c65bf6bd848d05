"""What ``tune`` finds against the profile ``paper-2026``, on emulated nodes, in turns.

    benchmarks/tune.py search --home DIR    # tunes each workload on both engines; resumable
    benchmarks/tune.py pairs --home DIR     # runs what was found, and paper-2026; resumable
    benchmarks/tune.py keep --home DIR      # writes the whole blocks to tune/pairs.json
    benchmarks/tune.py table [--home DIR]

The home is that of a cluster that ``boardcluster up`` brought up. What was found is the profile
that ``tune`` wrote, or ``default``, which it starts from, where it wrote none. A block is a start
of the cluster with each of the two, with one run of each workload and engine. The table has the
medians, and the median of the ratios in the blocks. Ends with status 1 if a goal is missed: twice
as fast in the geometric mean, and nowhere slower than by 5 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeAlias

import commands

import boardcluster as bc

KEPT = Path(__file__).parent / "tune" / "pairs.json"
NAME = "tuned-against-paper"
BASE, PAPER = "default", "paper-2026"
WORKLOADS = ("wordcount", "grep", "teragen", "terasort", "teravalidate", "dfsio")
ENGINES = ("spark", "mapreduce")
SIZE, BUDGET, SEED = "256 MB", "7min", 1
FILES_OF_DFSIO = 4
MEAN_LEAST, RATIO_LEAST = 2.0, 0.95

Cell: TypeAlias = tuple[str, str]
"""Workload and engine."""


def main() -> int:
    """Search, measure, keep or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("search", "pairs", "keep", "table"))
    parser.add_argument("--home", type=Path)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--budget", default=BUDGET, help="of each search; the default is 7min")
    given = parser.parse_args()
    if given.what != "table" and given.home is None:
        parser.error(f"{given.what} needs --home")
    if given.what == "search":
        for cell in cells():
            search(given.home, cell, given.budget)
        return 0
    if given.what == "pairs":
        file = given.home / f"{NAME}.toml"
        file.write_text(campaign_of(given.home))
        bc.open(home=given.home, tell=print).run(file, resume=True, starts=given.blocks)
    rows = kept()
    known = {block_of(row) for row in rows}
    if given.home:  # the newest come last
        rows += [row for row in found_in(given.home) if block_of(row) not in known]
    if given.what == "keep":
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    return print_table(rows)


def cells() -> list[Cell]:
    """Return what is tuned."""
    return [(workload, engine) for workload in WORKLOADS for engine in ENGINES]


def profile_of(home: Path, cell: Cell) -> Path:
    """Return the profile that a search writes if it finds something."""
    return home / f"tuned-{'-'.join(cell)}.toml"


def search(home: Path, cell: Cell, budget: str) -> None:
    """Tune one workload on one engine, go on with it, or show what it found."""
    workload, engine = cell
    print(f"\n{workload} on {engine}", flush=True)
    files = ("--set", f"files={FILES_OF_DFSIO}") if workload == "dfsio" else ()
    commands.run(
        home,
        *("tune", workload, "--engine", engine, "--size", SIZE, "--budget", budget),
        *("--seed", str(SEED), "--out", str(profile_of(home, cell)), "--continue", *files),
    )


def tuned(home: Path, cell: Cell) -> tuple[dict[str, str], float]:
    """Return the settings that a search found, and its own ratio to the base; none, and 1."""
    file = profile_of(home, cell)
    if not file.exists():
        return {}, 1.0
    found = tomllib.loads(file.read_text())
    tables = (table for name, table in found.items() if name != "tuned" and type(table) is dict)
    return {key: value for table in tables for key, value in table.items()}, found["tuned"]["ratio"]


def campaign_of(home: Path) -> str:
    """Return the campaign: what was found as settings, so that one start serves all of it."""
    lines = [
        "[campaign]",
        f'name = "{NAME}"',
        "starts = 3",
        "repetitions = 1",
        "repeat_tainted = 0",
    ]
    for profile in (BASE, PAPER):
        for workload, engine in cells():
            lines += ["", "[[matrix]]", f'workload = "{workload}"', f'engine = "{engine}"']
            lines += [f'size = "{SIZE}"', f'profile = "{profile}"']
            if workload == "dfsio":
                lines += ["[matrix.parameters.dfsio]", f"files = {FILES_OF_DFSIO}"]
            settings = tuned(home, (workload, engine))[0] if profile == BASE else {}
            if settings:
                lines += ["[matrix.settings]"]
                lines += [f'"{key}" = {json.dumps(value)}' for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def kept() -> list[dict[str, Any]]:
    """Return the blocks of earlier sittings."""
    rows: list[dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else []
    return rows


def block_of(row: dict[str, Any]) -> tuple[str, int, str, str]:
    """Return the campaign and start of a block, and its cell."""
    return row["campaign"], row["start"], row["workload"], row["engine"]


def found_in(home: Path) -> list[dict[str, Any]]:
    """Return the whole blocks of a home: a row for each with the seconds of both profiles."""
    runs: dict[tuple[str, int, str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for run in bc.open(home=home).results().rows():
        if run["state"] == "ok" and run["campaign_name"] == NAME:
            runs[block_of(run)][run["profile"]] = run
    rows = []
    for (campaign, start, workload, engine), both in sorted(runs.items()):
        if both.keys() == {BASE, PAPER}:
            settings, own = tuned(home, (workload, engine))
            row = {"campaign": campaign, "start": start, "workload": workload, "engine": engine}
            for side, profile in (("tuned", BASE), (PAPER, PAPER)):
                row[side] = round(both[profile]["duration_seconds"], 2)
            row |= {"against_base": own, "settings": settings, "commit": commands.checked_out()}
            tainted = sorted(name for name, run in both.items() if run["verdict"] != "valid")
            rows.append(row | ({"tainted": tainted} if tainted else {}))
    return rows


def print_table(rows: list[dict[str, Any]]) -> int:
    """Print the table; return 1 if a goal is missed, else 0."""
    blocks: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        blocks[row["workload"], row["engine"]].append(row)
    if not blocks:
        print("nothing to compare yet")
        return 0
    print(f"\n| workload | engine | tuned | {PAPER} | times as fast | blocks | tune: of {BASE} |")
    print("|---|---|--:|--:|--:|--:|--:|")
    ratios = []
    for (workload, engine), found in sorted(blocks.items()):
        ours, paper = (statistics.median(row[side] for row in found) for side in ("tuned", PAPER))
        ratio = statistics.median(row[PAPER] / row["tuned"] for row in found)
        ratios.append(ratio)
        own = f"{found[-1]['against_base']:.2f}" if found[-1]["settings"] else "nothing faster"
        tainted = sum(1 for row in found if row.get("tainted"))
        count = f"{len(found)}{f', {tainted} tainted' if tainted else ''}"
        print(
            f"| {workload} | {engine} | {ours:.1f} s | {paper:.1f} s | {ratio:.2f} | {count} "
            f"| {own} |"
        )
    mean = statistics.geometric_mean(ratios)
    print(
        f"\ngeometric mean {mean:.2f}, least {min(ratios):.2f}, of {len(ratios)} of {len(cells())}"
    )
    return int(mean < MEAN_LEAST or min(ratios) < RATIO_LEAST)


if __name__ == "__main__":
    sys.exit(main())
