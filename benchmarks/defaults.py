"""The profile ``default`` against the others: one campaign on emulated nodes, profiles in turns.

    benchmarks/defaults.py run small --home DIR      # small, 1gb or 4gb; continues where it ended
    benchmarks/defaults.py keep --home DIR           # adds its whole blocks to defaults/blocks.json
    benchmarks/defaults.py table [--home DIR]

The home is that of a cluster that ``boardcluster init`` declared, or of a twin that ``up --twin``
brought up: emulated boards have a table of their own, in the boards' seconds. A block is a start of
the cluster with each profile, one after the other, in another order each time; ``--blocks`` says
how many. The table has a row per workload, engine and size, over the kept blocks and those of the
home: the medians, and the median of the time under ``default`` over the shortest one of another
profile in the same block; and how many blocks have a run that was disturbed. Ends with status 1 if
the ratio is above 1 anywhere.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import commands

import boardcluster as bc
from boardcluster.units import format_bytes

FILES = Path(__file__).parent / "defaults"
KEPT = FILES / "blocks.json"
OURS = "default"

Cell = tuple[str, str, int]
"""Workload, engine and size."""

Block = tuple[str, int, str, str, str, int]
"""Campaign and start, the twin that it ran on (empty: nodes without limits), and a cell of it."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """What a block came to."""

    seconds: dict[str, float]
    """By profile."""
    tainted: list[str]
    """The profiles under which the run was disturbed."""
    commit: str
    """Of the checkout that kept it; empty in blocks from before it was noted."""


def main() -> int:
    """Run a campaign, keep its blocks, or print what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("run", "keep", "table"))
    parser.add_argument("size", nargs="?", choices=("small", "1gb", "4gb"), default="small")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--blocks", type=int, help="instead of the campaign file's three")
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    if given.what != "table" and given.home is None:
        parser.error(f"{given.what} needs --home")
    cluster = None if given.home is None else bc.open(home=given.home, tell=print)
    if cluster is not None and given.what == "run":
        file = FILES / f"{given.size}.toml"
        cluster.run(file, resume=True, starts=given.blocks, only=given.only)
    blocks = (blocks_of(cluster.results().rows()) if cluster is not None else {}) | kept()
    if given.what == "keep":
        keep(blocks)
    return print_tables(blocks)


def kept() -> dict[Block, Times]:
    """Return the blocks that were kept."""
    rows = json.loads(KEPT.read_text()) if KEPT.exists() else []
    return {
        (
            *(row["campaign"], row["start"], row["twin"]),
            *(row["workload"], row["engine"], row["size_bytes"]),
        ): Times(
            seconds=row["seconds"], tainted=row.get("tainted", []), commit=row.get("commit", "")
        )
        for row in rows
    }


def blocks_of(rows: list[dict[str, Any]]) -> dict[Block, Times]:
    """Return each block of the stored runs that has every profile."""
    found: dict[Block, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        if row["state"] == "ok" and row["campaign_name"].startswith("defaults-"):
            twin = row["cluster"] if row["twin"] else ""
            cell = (row["workload"], row["engine"], row["size_bytes"] or 0)
            key = (row["campaign"], row["start"], twin, *cell)
            found[key][row["profile"]] = row
    profiles = {name for block in found.values() for name in block}
    commit = commands.checked_out()
    return {
        key: Times(
            seconds={
                name: round(row["duration_seconds"], 2) for name, row in sorted(block.items())
            },
            tainted=sorted(name for name, row in block.items() if row["verdict"] != "valid"),
            commit=commit,
        )
        for key, block in found.items()
        if len(block) == len(profiles) > 1
    }


def keep(blocks: dict[Block, Times]) -> None:
    """Write the blocks where the next table finds them."""
    rows = [
        json.dumps(
            {
                "campaign": campaign,
                "start": start,
                "twin": twin,
                "workload": workload,
                "engine": engine,
                "size_bytes": size_bytes,
                **{name: value for name, value in asdict(times).items() if value},
            }
        )
        for (campaign, start, twin, workload, engine, size_bytes), times in sorted(
            blocks.items(), key=lambda item: item[0]
        )
    ]
    KEPT.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def print_tables(blocks: dict[Block, Times]) -> int:
    """Print a table for each kind of node; return 1 if the default is slower anywhere, else 0."""
    tables: dict[str, dict[Cell, list[Times]]] = defaultdict(lambda: defaultdict(list))
    for (_, _, twin, workload, engine, size_bytes), times in blocks.items():
        tables[twin][workload, engine, size_bytes].append(times)
    if not tables:
        print("nothing to compare yet")
    largest = (print_table(twin, cells) for twin, cells in sorted(tables.items()))
    return int(max(largest, default=0.0) > 1)


def print_table(twin: str, cells: dict[Cell, list[Times]]) -> float:
    """Print one table; return its largest ratio."""
    print(f"\n{f'twin {twin}, in seconds of its boards' if twin else 'nodes without limits'}:\n")
    print("| workload | engine | size | default | shortest other | ratio | blocks |")
    print("|---|---|--:|--:|--:|--:|--:|")
    ratios: dict[int, list[float]] = defaultdict(list)
    for (workload, engine, size_bytes), found in sorted(cells.items()):
        pairs = [(times.seconds[OURS], shortest_other(times)) for times in found]
        tainted = sum(1 for times in found if times.tainted)
        ours, other = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(first / second for first, second in pairs)
        ratios[size_bytes].append(ratio)
        size = format_bytes(size_bytes) if size_bytes else ""
        print(
            f"| {workload} | {engine} | {size} | {ours:.1f} s | {other:.1f} s | {ratio:.2f} "
            f"| {len(pairs)}{f', {tainted} tainted' if tainted else ''} |"
        )
    print()
    for size_bytes, values in sorted(ratios.items()):
        size = format_bytes(size_bytes) if size_bytes else "no input"
        print(f"{size}: geometric mean {statistics.geometric_mean(values):.2f}, ", end="")
        print(f"largest {max(values):.2f}")
    return max(max(values) for values in ratios.values())


def shortest_other(times: Times) -> float:
    """Return the seconds under the fastest of the other profiles."""
    return min(value for name, value in times.seconds.items() if name != OURS)


if __name__ == "__main__":
    sys.exit(main())
