"""Our Spark jobs against the same jobs written the textbook way. How to run it: README.md here.

Both run on one cluster that is up, in turns: ours, textbook, ours, textbook. Both have the
executors that its profile gives a job of this size. A time is that of the whole submission, on the
driver's monotonic clock. Ends with status 1 if the mean ratio of a job is above 1.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.campaign.execution import scratch_of, write_configuration
from boardcluster.cli.options import cache_folder
from boardcluster.records import Engine
from boardcluster.services.job_sizing import size_job
from boardcluster.services.jobs import jobs_jar
from boardcluster.services.operation import LiveCluster, attach
from boardcluster.services.spark import spark_submit_command, submit_environment
from boardcluster.services.yarn import file_system_command
from boardcluster.units import parse_size

OURS = "io.boardcluster.jobs"
TEXTBOOK = "io.boardcluster.textbook"
FOLDER = "/benchmark-jobs"
TAG = "benchmark-jobs"
FILES = 4
PARTITIONS = 4
TIMEOUT_SECONDS = 7200.0
LEAST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How large the jobs are.

    Attributes:
        size_bytes: bytes of text, of records and of all files of Dfsio together.
        samples: samples of Pi.
    """

    size_bytes: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One job, to be run both ways.

    Attributes:
        row: what the table calls it.
        main: name of both classes.
        arguments: made from the folder of a way's own results.
        needs: inputs that must exist: ``text``, ``rows``, ``sorted`` or ``files``.
    """

    row: str
    main: str
    arguments: Callable[[str], list[str]]
    needs: str = ""


def pairs_of(setting: Setting) -> tuple[Pair, ...]:
    """Return what there is to measure."""
    text, rows = f"{FOLDER}/text", f"{FOLDER}/rows"
    each = str(setting.size_bytes // FILES)
    files = f"{FOLDER}/files"
    count = str(setting.samples // PARTITIONS)
    return (
        Pair(row="wordcount", main="WordCount", arguments=lambda to: [text, to], needs="text"),
        Pair(
            row="grep", main="Grep", arguments=lambda to: [text, to, "N1[0-9]*,EWR"], needs="text"
        ),
        Pair(
            row="teragen",
            main="TeraGen",
            arguments=lambda to: [str(setting.size_bytes // 100), to],
        ),
        Pair(row="terasort", main="TeraSort", arguments=lambda to: [rows, to], needs="rows"),
        Pair(
            row="teravalidate",
            main="TeraValidate",
            arguments=lambda to: [f"{FOLDER}/sorted", to],
            needs="sorted",
        ),
        Pair(row="pi", main="Pi", arguments=lambda _: [str(PARTITIONS), count, "1"]),
        Pair(
            row="dfsio write",
            main="Dfsio",
            arguments=lambda to: ["write", to, str(FILES), each],
        ),
        Pair(
            row="dfsio read",
            main="Dfsio",
            arguments=lambda _: ["read", files, str(FILES), each],
            needs="files",
        ),
    )


class Bench:
    """A cluster that is up, and the folder in its HDFS that all of this happens in."""

    def __init__(self, live: LiveCluster, setting: Setting, logs: Path) -> None:
        self._live = live
        self._setting = setting
        self._logs = logs
        self._there: set[str] = set()
        sizing = size_job(
            live.spec, live.layout.profile, Engine.SPARK, size_bytes=setting.size_bytes
        )
        self._conf = write_configuration(
            live,
            logs / "conf",
            tag=TAG,
            extra=sizing.properties if sizing else {},
            brief=sizing is not None and sizing.brief,
        )

    def run(self, command: Sequence[str]) -> float:
        """Run a program on the master and return its seconds; it must succeed."""
        out, err = self._logs / "stdout.txt", self._logs / "stderr.txt"
        began = time.monotonic()
        done = self._live.master.run_logged(
            command,
            stdout=out,
            stderr=err,
            env=submit_environment(self._live.layout, conf=self._conf),
            timeout_seconds=TIMEOUT_SECONDS,
        )
        seconds = time.monotonic() - began
        if done.returncode != 0:
            tail = err.read_text(errors="replace")[-4000:]
            sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{tail}")
        return seconds

    def submit(self, package: str, main: str, arguments: Sequence[str]) -> float:
        """Run a job and return the seconds of its submission."""
        command = spark_submit_command(
            self._live.layout,
            conf=self._conf,
            tag=TAG,
            program=str(jobs_jar()),
            main=f"{package}.{main}",
            arguments=arguments,
        )
        return self.run(command)

    def hdfs(self, *arguments: str) -> None:
        """Run HDFS's own client."""
        self.run(file_system_command(self._live.layout, conf=self._conf, arguments=arguments))

    def clear(self, path: str = FOLDER) -> None:
        """Delete a folder."""
        self.hdfs("-rm", "-r", "-f", "-skipTrash", path)

    def provide(self, what: str) -> None:
        """Make an input unless it is there."""
        if not what or what in self._there:
            return
        size, target = self._setting.size_bytes, f"{FOLDER}/{what}"
        if what == "text":
            with tempfile.TemporaryDirectory(dir=self._logs) as folder:
                source = Path(folder) / "flights.csv"
                write_text(source, size)
                self.hdfs("-mkdir", "-p", target)
                with self._live.master.temporary_upload(source) as place:
                    self.hdfs("-put", place, f"{target}/{source.name}")
        elif what == "rows":
            self.submit(OURS, "TeraGen", [str(size // 100), target])
        elif what == "sorted":
            self.provide("rows")
            self.submit(OURS, "TeraSort", [f"{FOLDER}/rows", target])
        else:
            self.submit(OURS, "Dfsio", ["write", target, str(FILES), str(size // FILES)])
        self._there.add(what)

    def measure(self, pair: Pair, package: str) -> float:
        """Run one way of a job and return its seconds; its output is deleted, outside the time."""
        target = f"{FOLDER}/out"
        seconds = self.submit(package, pair.main, pair.arguments(target))
        self.clear(target)
        return seconds


def write_text(path: Path, size_bytes: int) -> None:
    """Write lines like those of the papers' flight data: no blanks, almost all distinct."""
    pick = random.Random(1)
    written = 0
    with path.open("w", encoding="ascii") as stream:
        while written < size_bytes:
            lines = "".join(
                f"2013,{pick.randint(1, 12)},{pick.randint(1, 28)},{pick.randint(0, 2359)},"
                f"{pick.randint(0, 2359)},UA,{pick.randint(1, 9999)},N{pick.randint(10000, 99999)},"
                f"{pick.choice(('EWR', 'LGA', 'JFK'))},IAH,{pick.randint(90, 300)},1400\n"
                for _ in range(10_000)
            )
            stream.write(lines)
            written += len(lines)


def measure_all(bench: Bench, chosen: Sequence[Pair], number: int) -> list[str]:
    """Measure, print the table row by row, and return the jobs whose mean ratio is above 1."""
    slower = []
    ratios_head = " | ".join(f"pair {pair}" for pair in range(1, number + 1))
    print(f"\n| job | ours, median | textbook, median | {ratios_head} | mean ratio |")
    print(f"|---|---|---|{'---|' * number}---|", flush=True)
    for pair in chosen:
        bench.provide(pair.needs)
        ours: list[float] = []
        textbook: list[float] = []
        for turn in range(number):
            sides = [(ours, OURS), (textbook, TEXTBOOK)]
            for times, package in reversed(sides) if turn % 2 else sides:
                times.append(bench.measure(pair, package))
        ratios = [mine / other for mine, other in zip(ours, textbook, strict=True)]
        mean = statistics.fmean(ratios)
        mark = ", slower" if mean > 1 else ""
        if mean > 1:
            slower.append(pair.row)
        cells = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        print(
            f"| {pair.row} | {statistics.median(ours):.1f} s | {statistics.median(textbook):.1f} s "
            f"| {cells} | {mean:.2f}{mark} |",
            flush=True,
        )
    return slower


def main() -> None:
    """Measure the chosen jobs on a cluster that is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    home = os.environ.get("BOARDCLUSTER_HOME")
    parser.add_argument("--home", default=home, required=not home, help="of a cluster that is up")
    parser.add_argument("--size", default="1 GB", help="of text, records and files each")
    parser.add_argument("--samples", type=int, default=4_000_000, help="of Pi")
    parser.add_argument("--pairs", type=int, default=3, help="how often each way runs")
    parser.add_argument("--only", nargs="+", metavar="JOB", help="rows of the table")
    options = parser.parse_args()
    setting = Setting(size_bytes=parse_size(options.size), samples=options.samples)
    known = pairs_of(setting)
    names = [pair.row for pair in known]
    wanted = options.only or names
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"no such job: {', '.join(unknown)}; there are {', '.join(names)}")
    if setting.size_bytes < LEAST_BYTES or options.pairs < 1 or setting.samples < PARTITIONS:
        parser.error(f"at least {LEAST_BYTES} bytes, {PARTITIONS} samples and one pair are needed")
    live = attach(Path(options.home), cache=cache_folder(None), progress=lambda *_: None)
    with tempfile.TemporaryDirectory(prefix="boardcluster-bench-") as folder:
        bench = Bench(live, setting, Path(folder))
        bench.clear()
        try:
            chosen = [pair for pair in known if pair.row in wanted]
            slower = measure_all(bench, chosen, options.pairs)
        finally:
            bench.clear()
            live.master.run(["rm", "-rf", scratch_of(live.layout, live.spec.master, TAG)])
    if slower:
        sys.exit("\n".join(["", *(f"slower than the textbook: {row}" for row in slower)]))


if __name__ == "__main__":
    main()
