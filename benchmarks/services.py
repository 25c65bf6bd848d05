"""How soon each service serves, and how soon it is gone. How to run: README.md in this folder.

    benchmarks/services.py [--runs 5]

On emulated clusters that are up: the HTTP farm and a GlusterFS volume of two copies on 1 + 4 nodes,
and the database on 1 + 3. Timed is what a run of `webserve`, `filestore` or `oltp` waits for before
its first phase: from the look at every node until the balancer, the mount or all three databases
answer. Targets: 3 s, 10 s and 25 s. Ends with status 1 if a median misses its target.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cluster import Program, Table

from boardcluster.cluster.folders import cache_folder
from boardcluster.services.galera.database import replicated
from boardcluster.services.gluster import volume
from boardcluster.services.http import farm
from boardcluster.services.operation import LiveCluster, attach

MARK = {"BOARDCLUSTER_BENCHMARK": "services"}
ROUNDS = 100
REPLICAS, SIZE_BYTES, PING_SECONDS = 2, 128 << 20, 4

Service = Callable[[LiveCluster], contextlib.AbstractContextManager[None]]


def pages(live: LiveCluster) -> contextlib.AbstractContextManager[None]:
    """Serve pages."""
    return farm.serving(live, mark=MARK, rounds=ROUNDS)


def database(live: LiveCluster) -> contextlib.AbstractContextManager[None]:
    """Run the database."""
    return replicated(live, mark=MARK)


def files(live: LiveCluster) -> contextlib.AbstractContextManager[None]:
    """Have a volume mounted."""
    request = volume.VolumeRequest(
        replicas=REPLICAS, size_bytes=SIZE_BYTES, ping_seconds=PING_SECONDS
    )
    return volume.serving(live, request, mark=MARK, remark=lambda _: None)


ROWS: tuple[tuple[str, int, Service, float], ...] = (
    ("HTTP farm", 4, pages, 3.0),
    ("GlusterFS, 2 copies", 4, files, 10.0),
    ("Galera", 3, database, 25.0),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="starts of each service")
    runs = parser.parse_args().runs
    table = Table()
    table.head()
    with tempfile.TemporaryDirectory(prefix="boardcluster-services-") as folder:
        for workers in dict.fromkeys(row[1] for row in ROWS):
            program = Program(Path(folder) / f"home-{workers}")
            program.init(workers)
            program.run("up")
            try:
                live = attach(program.home, cache=cache_folder(None), progress=lambda *_: None)
                for what, _, service, target in (row for row in ROWS if row[1] == workers):
                    began, ended = zip(*(timed(service, live) for _ in range(runs)), strict=True)
                    table.row(f"{what} on 1 + {workers}: it serves", [*began], "s", target)
                    table.row(f"{what} on 1 + {workers}: it is gone", [*ended], "s")
            finally:
                program.run("down", "--wipe")
    if table.missed:
        sys.exit(f"missed: {', '.join(table.missed)}")


def timed(service: Service, live: LiveCluster) -> tuple[float, float]:
    """Start and end a service; return the seconds of both."""
    began = time.monotonic()
    with service(live):
        served = time.monotonic()
    return served - began, time.monotonic() - served


if __name__ == "__main__":
    main()
