"""Record which classes the daemons of a pair load; the class-data archives are made from it.

Run by a maintainer, as root, when a pair is added (Java 17, so that the lists suit 17 and later):

    .venv/bin/python tools/record_classes.py --pair hadoop-3.4.2-spark-4.1.4

Brings up a small cluster of its own in which every daemon writes its list, and takes it down again.
Classes that several daemons share come first, so that what one daemon touches lies together.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from boardcluster.cli.init import propose, write_spec
from boardcluster.records import NodeSpec
from boardcluster.services import operation
from boardcluster.services.jvm import daemon_options
from boardcluster.services.layout import Layout

MEMBERS = {
    "worker": ("datanode", "nodemanager"),
    "master": ("namenode", "resourcemanager", "jobhistory"),
    "spark": ("sparkhistory",),
}
SETTLE_SECONDS = 15.0


def merge(lists: list[list[str]]) -> list[str]:
    """Return every line once: those of most lists first, else in the order of loading."""
    shared = Counter(line for rows in lists for line in dict.fromkeys(rows))
    ordered = dict.fromkeys(line for rows in lists for line in rows)
    return sorted(ordered, key=lambda line: -shared[line])


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Make every daemon that starts within the block write the classes it loads."""

    def options(layout: Layout, node: NodeSpec, daemon: str) -> list[str]:
        plain = daemon_options(replace(layout, archives=folder), node, daemon)
        return [*plain, f"-XX:DumpLoadedClassList={folder}/{daemon}.lst"]

    with mock.patch("boardcluster.services.daemons.daemon_options", options):
        yield


def say(*words: object) -> None:
    """Print progress, of whatever kind."""
    print(*words)


def record(pair: str, folder: Path, cache: Path) -> None:
    """Bring a cluster of one worker up, let it settle, and take it down."""
    home = folder / "home"
    spec = propose(
        name="record", workers=1, profile="default", engines=pair, subnet="198.18.99.0/24"
    )
    write_spec(spec, home / "cluster.toml")
    with recording(folder):
        try:
            operation.up(home, cache=cache, progress=say, seen=say)
            time.sleep(SETTLE_SECONDS)
        finally:
            operation.down(home)


def lines_of(path: Path) -> list[str]:
    """Return the entries of a list without its heading."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def main() -> None:
    """Write the three lists of a pair."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pair", required=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "boardcluster"
    parser.add_argument("--cache", type=Path, default=cache)
    options = parser.parse_args()
    target = Path(__file__).parent.parent / "src/boardcluster/services/pairs"
    with tempfile.TemporaryDirectory() as name:
        record(options.pair, Path(name), options.cache)
        for archive, members in MEMBERS.items():
            rows = merge([lines_of(Path(name, f"{member}.lst")) for member in members])
            path = target / f"{options.pair}.{archive}.classes.gz"
            path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode(), 9, mtime=0))
            print(f"{path.name}: {len(rows)} classes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
