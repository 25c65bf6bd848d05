"""Record which classes the daemons and jobs of a pair load, for the class-data archives.

Run by a maintainer, as root, when a pair is added (Java 17, so that the lists suit 17 and later):

    .venv/bin/python tools/record_classes.py --pair hadoop-3.4.2-spark-4.1.4

Brings up a small cluster of its own in which every daemon and every JVM of its jobs writes its
list, and takes it down again. Classes that several share come first, so that what one touches lies
together. Lambdas of jobs are left out: a JVM names them anew each time.

Left out are classes older than Java 6, and whatever extends or implements one: Java 17 archives
them (JDK-8261090), but a NodeManager of Hadoop 3.3.6 crashed in the JVM's Rewriter when it linked
an archived class of Netty 3. Measured: 6 of 6 starts crashed with them, 0 of 20 without.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock
from zipfile import ZipFile

from boardcluster.api import open_cluster
from boardcluster.campaign.propose import propose, write_spec
from boardcluster.records import Engine, NodeSpec
from boardcluster.services import operation
from boardcluster.services.archive import ARCHIVES
from boardcluster.services.install import Installation
from boardcluster.services.jvm import daemon_options
from boardcluster.services.layout import Layout
from boardcluster.services.pair import load_pair

MEMBERS = {
    "worker": ("datanode", "nodemanager"),
    "master": ("namenode", "resourcemanager", "jobhistory"),
    "mapreduce": ("mapreduce-job-*",),
    "spark": ("sparkhistory", "spark-job-*"),
}
JOBS = ("wordcount", "terasort", "grep", "dfsio", "pi")
ENTRY = re.compile(r"[\w$/-]+$|@lambda-(proxy|form-invoker) [^@]+$")
SETTLE_SECONDS = 15.0
JAVA_6_MAJOR = 50
UTF8_TAG = 1
CLASS_TAG = 7
WIDE_TAGS = (5, 6)
CONSTANT_BYTES = {
    3: 5,
    4: 5,
    5: 9,
    6: 9,
    7: 3,
    8: 3,
    9: 5,
    10: 5,
    11: 5,
    12: 5,
    15: 4,
    16: 3,
    17: 5,
    18: 5,
    19: 3,
    20: 3,
}


def merge(lists: list[list[str]]) -> list[str]:
    """Return every line once: those of most lists first, else in the order of loading."""
    shared = Counter(line for rows in lists for line in dict.fromkeys(rows))
    ordered = dict.fromkeys(line for rows in lists for line in rows)
    return sorted(ordered, key=lambda line: -shared[line])


class ClassFiles:
    """Reads just enough of the class files in jars to tell which are too old.

    Source: The Java Virtual Machine Specification, section 4.1 and table 4.4-A.
    """

    def __init__(self, jars: list[str]) -> None:
        self._places: dict[str, ZipFile] = {}
        self._too_old: dict[str, bool] = {}
        for path in jars:
            archive = ZipFile(path)
            for name in archive.namelist():
                if name.endswith(".class"):
                    self._places.setdefault(name.removesuffix(".class"), archive)

    def is_too_old(self, name: str) -> bool:
        """Whether a class, or one it extends or implements, is older than Java 6."""
        if name not in self._too_old:
            self._too_old[name] = False  # the JDK's own classes are in no jar of ours
            if name in self._places:
                major, parents = self._read(name)
                old = major < JAVA_6_MAJOR or any(self.is_too_old(parent) for parent in parents)
                self._too_old[name] = old
        return self._too_old[name]

    def _read(self, name: str) -> tuple[int, list[str]]:
        data = self._places[name].read(f"{name}.class")
        major, count = struct.unpack_from(">HH", data, 6)
        at, index = 10, 1
        texts: dict[int, str] = {}
        classes: dict[int, int] = {}
        while index < count:
            tag = data[at]
            if tag == UTF8_TAG:
                (length,) = struct.unpack_from(">H", data, at + 1)
                texts[index] = data[at + 3 : at + 3 + length].decode(errors="replace")
                at += 3 + length
            else:
                if tag == CLASS_TAG:
                    (classes[index],) = struct.unpack_from(">H", data, at + 1)
                at += CONSTANT_BYTES[tag]
            index += 2 if tag in WIDE_TAGS else 1
        parent, implemented = struct.unpack_from(">HH", data, at + 4)
        numbers = [parent, *struct.unpack_from(f">{implemented}H", data, at + 8)]
        return major, [texts[classes[number]] for number in numbers if number]


def without_old(rows: list[str], files: ClassFiles) -> list[str]:
    """Drop entries that name a class which is too old."""
    return [
        row for row in rows if not files.is_too_old(row.split()[1 if row.startswith("@") else 0])
    ]


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Make every daemon and job that starts within the block write the classes it loads."""

    def of_jobs(_layout: Layout, engine: Engine, **_: bool) -> list[str]:
        return [f"-XX:DumpLoadedClassList={folder}/{engine}-job-%p.lst"]

    def options(layout: Layout, node: NodeSpec, daemon: str) -> list[str]:
        plain = daemon_options(replace(layout, archived={}), node, daemon)
        return [*plain, f"-XX:DumpLoadedClassList={folder}/{daemon}.lst"]

    with (
        mock.patch("boardcluster.services.daemons.daemon_options", options),
        mock.patch("boardcluster.services.conf.job_options", of_jobs),
        mock.patch("boardcluster.services.yarn.job_options", of_jobs),
    ):
        yield


def say(*words: object) -> None:
    """Print progress, of whatever kind."""
    print(*words)


def record(pair: str, folder: Path, cache: Path) -> None:
    """Bring a cluster of two workers up, let it settle, run jobs, and take it down."""
    home = folder / "home"
    spec = propose(
        name="record", workers=2, profile="default", engines=pair, subnet="198.18.99.0/24"
    )
    write_spec(spec, home / "cluster.toml")
    with recording(folder):
        try:
            operation.up(home, cache=cache, progress=say, seen=say)
            time.sleep(SETTLE_SECONDS)
            cluster = open_cluster(home=home, cache=cache, tell=say)
            for workload in JOBS:
                size = None if workload == "pi" else "16 MB"
                cluster.run(workload, engine=("mapreduce", "spark"), size=size, repetitions=1)
        finally:
            operation.down(home)


def lines_of(path: Path) -> list[str]:
    """Return the entries of a list without its heading; of a job without its lambdas.

    Threads of a JVM write over each other, and YARN kills the last containers of a job, so lines
    may be broken; a JVM that meets one makes no archive at all.
    """
    left_out = ("#", "@") if "-job-" in path.name else ("#",)
    whole = path.read_text().rpartition("\n")[0]
    return [
        line for line in whole.splitlines() if ENTRY.match(line) and not line.startswith(left_out)
    ]


def main() -> None:
    """Write the lists of a pair."""
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
        pair = load_pair(options.pair)
        engines = Installation(pair=pair, folder=options.cache / "engines" / pair.id)
        for archive, members in MEMBERS.items():
            files = ClassFiles(engines.jars(ARCHIVES[archive]))
            paths = [path for each in members for path in sorted(Path(name).glob(f"{each}.lst"))]
            lists = [lines_of(path) for path in paths]
            rows = without_old(merge(lists), files)
            path = target / f"{options.pair}.{archive}.classes.gz"
            path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode(), 9, mtime=0))
            print(f"{path.name}: {len(rows)} classes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
