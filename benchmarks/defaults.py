"""The profile ``default`` against the others: one campaign on emulated nodes, profiles in turns.

    benchmarks/defaults.py run small --home DIR      # small, 1gb or 4gb; continues where it ended
    benchmarks/defaults.py table --home DIR

The home is that of a cluster that ``boardcluster init`` declared. A block is a start of the cluster
with each profile, one after the other, in another order each time. The table has a row per
workload, engine and size: the medians, and the median over the whole blocks of the time under
``default`` over the shortest one of another profile in the same block. Ends with status 1 if that
is above 1 anywhere.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import boardcluster as bc
from boardcluster.units import format_bytes

FILES = Path(__file__).parent / "defaults"
OURS = "default"

Cell = tuple[str, str, int]
"""Workload, engine and size."""


def main() -> int:
    """Run a campaign, or print what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("size", nargs="?", choices=("small", "1gb", "4gb"), default="small")
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args()
    cluster = bc.open(home=given.home, tell=print)
    if given.what == "run":
        cluster.run(FILES / f"{given.size}.toml", resume=True)
    return print_table(cluster.results().rows())


def print_table(rows: list[dict[str, Any]]) -> int:
    """Print the table; return 1 if the default is slower anywhere, else 0."""
    cells: dict[Cell, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["state"] == "ok" and row["campaign_name"].startswith("defaults-"):
            cell = (row["workload"], row["engine"], row["size_bytes"])
            cells[cell][row["start"]][row["profile"]] = row["duration_seconds"]
    print("| workload | engine | size | default | shortest other | ratio | blocks |")
    print("|---|---|--:|--:|--:|--:|--:|")
    ratios = []
    profiles = {name for found in cells.values() for block in found.values() for name in block}
    others = profiles - {OURS}
    for (workload, engine, size_bytes), found in sorted(cells.items()):
        pairs = [
            (block[OURS], min(block[name] for name in others))
            for block in found.values()
            if others and block.keys() == {OURS, *others}
        ]
        if not pairs:
            continue
        ours, other = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratios.append(statistics.median(first / second for first, second in pairs))
        size = format_bytes(size_bytes) if size_bytes else ""
        print(
            f"| {workload} | {engine} | {size} | {ours:.1f} s | {other:.1f} s | {ratios[-1]:.2f} "
            f"| {len(pairs)} |"
        )
    if not ratios:
        print("nothing to compare yet")
        return 0
    print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}, largest {max(ratios):.2f}")
    return int(max(ratios) > 1)


if __name__ == "__main__":
    sys.exit(main())
