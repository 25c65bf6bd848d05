"""Merge the class lists that daemons wrote into the lists the archives are made from.

Run by a maintainer when a pair is added. Start each daemon of a cluster with
``-XX:DumpLoadedClassList=FOLDER/DAEMON.lst`` (profile ``default`` on Java 17), stop the cluster, then

    python tools/record_classes.py --pair hadoop-3.4.2-spark-4.1.4 FOLDER

Classes that several daemons share come first, so that what one daemon touches lies together.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter
from pathlib import Path

MEMBERS = {
    "worker": ("datanode", "nodemanager"),
    "master": ("namenode", "resourcemanager", "jobhistory"),
    "spark": ("sparkhistory",),
}


def merge(lists: list[list[str]]) -> list[str]:
    """Return every line once: those of most lists first, else in the order of loading."""
    shared = Counter(line for rows in lists for line in dict.fromkeys(rows))
    ordered = dict.fromkeys(line for rows in lists for line in rows)
    return sorted(ordered, key=lambda line: -shared[line])


def main() -> None:
    """Write the three lists of a pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", required=True)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    target = Path(__file__).parent.parent / "src/boardcluster/services/pairs"
    for name, daemons in MEMBERS.items():
        lists = [
            [
                line
                for line in (options.folder / f"{daemon}.lst").read_text().splitlines()
                if not line.startswith("#")
            ]
            for daemon in daemons
        ]
        text = "\n".join(merge(lists)) + "\n"
        path = target / f"{options.pair}.{name}.classes.gz"
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{path.name}: {text.count(chr(10))} classes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
