"""What starts and tasks of two versions of Spark cost in CPU time. As root, on a quiet machine.

    benchmarks/spark_starts.py run --folder DIR --engine NAME=JAVA_HOME,SPARK_HOME ... [--blocks 3]
    benchmarks/spark_starts.py table --folder DIR

The textbook WordCount, compiled against each Spark, on one executor and on four of one core each
(``local-cluster``): over one line, and in the first block over --text too. The engines take turns.
A control group counts the CPU time of all JVMs, until the first task begins and until the last one
ends. Further fields of an engine, ``KEY=VALUE`` after a comma, are properties of Spark; in a value,
``{jars}`` is its class path in the order of which class-data archives are made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "jvm/src/main/java/io/boardcluster/textbook/WordCount.java"
MAIN = "io.boardcluster.textbook.WordCount"
GROUPS = Path("/sys/fs/cgroup")
EXECUTORS = (1, 4)
LOOK_SECONDS = 0.1
BLOCK_BYTES = 128 << 20
"""Of a task, as HDFS's blocks."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A Spark and the Java that runs it."""

    name: str
    java: Path
    spark: Path
    properties: tuple[str, ...]

    @classmethod
    def of(cls, words: str) -> Engine:
        """Read ``NAME=JAVA_HOME,SPARK_HOME[,KEY=VALUE...]``."""
        name, _, rest = words.partition("=")
        java, spark, *properties = rest.split(",")
        jars = ":".join(str(path) for path in sorted(Path(spark, "jars").glob("*.jar")))
        return cls(
            name=name,
            java=Path(java),
            spark=Path(spark),
            properties=tuple(row.replace("{jars}", jars) for row in properties),
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one submission cost."""

    engine: str
    executors: int
    text: str
    start_cpu_seconds: float
    """CPU time of all its JVMs until the first task began."""
    tasks_cpu_seconds: float
    """And from then until the last task ended."""
    start_seconds: float
    tasks_seconds: float


class CpuGroup:
    """A control group of our own that counts CPU time, in version 1 or 2."""

    def __init__(self) -> None:
        two = (GROUPS / "cgroup.controllers").exists()
        self._folder = (GROUPS if two else GROUPS / "cpuacct") / f"spark-starts-{os.getpid()}"
        self._folder.mkdir()
        self.processes = self._folder / "cgroup.procs"
        self._usage = self._folder / ("cpu.stat" if two else "cpuacct.usage")

    def seconds(self) -> float:
        """CPU time so far."""
        words = self._usage.read_text().split()
        return int(words[0]) / 1e9 if len(words) == 1 else int(words[1]) / 1e6

    def remove(self) -> None:
        """Wait until its last process has ended, and remove it."""
        while self.processes.read_text().strip():
            time.sleep(LOOK_SECONDS)
        self._folder.rmdir()


def main() -> int:
    """Run what is asked for, or print what was stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--engine", action="append", default=[], type=Engine.of)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--blocks", type=int, default=3)
    given = parser.parse_args()
    kept = given.folder / "runs.json"
    if given.what == "run":
        if not given.engine:
            parser.error("run needs --engine")
        given.folder.mkdir(parents=True, exist_ok=True)
        line = given.folder / "line.txt"
        line.write_text("one line\n")
        runs: list[dict[str, object]] = []
        for block in range(given.blocks):
            texts = [line] if given.text is None or block else [line, given.text.resolve()]
            for engine in given.engine[:: 1 if block % 2 == 0 else -1]:
                for text in texts:
                    for executors in EXECUTORS:
                        runs.append(asdict(submit(engine, executors, text, given.folder)))
                        kept.write_text(json.dumps(runs, indent=1))
    print_table(json.loads(kept.read_text()))
    return 0


def jar_of(engine: Engine, folder: Path) -> Path:
    """Compile the program against an engine, as its Java reads it."""
    jar = folder / f"{engine.name}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory() as classes:
            jars = f"{engine.spark}/jars/*"
            release = "8" if (engine.java / "lib/rt.jar").exists() else "17"
            compiler = ["javac", "-nowarn", "--release", release, "-cp", jars, "-d", classes]
            subprocess.run([*compiler, str(SOURCE)], check=True)
            subprocess.run(["jar", "cf", str(jar), "-C", classes, "."], check=True)
    return jar


def submit(engine: Engine, executors: int, text: Path, folder: Path) -> Run:
    """Run the program once."""
    jar = jar_of(engine, folder)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        events = Path(work, "events")
        events.mkdir()
        # Where its executors' folders are made, which must not be among the engine's files.
        spark = Path(work, "spark")
        spark.mkdir()
        for path in engine.spark.iterdir():
            (spark / path.name).symlink_to(path)
        properties = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{events}",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            "spark.ui.enabled": "false",
            "spark.local.dir": work,
            "spark.hadoop.mapreduce.input.fileinputformat.split.minsize": str(BLOCK_BYTES),
        }
        rows = [*(f"{key}={value}" for key, value in properties.items()), *engine.properties]
        command = [
            *(str(spark / "bin/spark-submit"), "--class", MAIN),
            *("--master", f"local-cluster[{executors},1,1024]"),
            *(word for row in rows for word in ("--conf", row)),
            *(str(jar), f"file://{text}", f"file://{work}/out"),
        ]
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "JAVA_HOME": str(engine.java),
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        group = CpuGroup()
        errors = Path(work, "stderr.txt")
        began = time.time()
        seen: list[tuple[float, float]] = []
        with errors.open("wb") as stream:
            child = subprocess.Popen(
                ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group.processes), *command],
                env=environment,
                cwd=work,
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
            while child.poll() is None:
                seen.append((time.time(), group.seconds()))
                time.sleep(LOOK_SECONDS)
        group.remove()
        if child.returncode:
            sys.exit(errors.read_text(errors="replace")[-3000:])
        first, last = _tasks(events)
    at_first = max(used for moment, used in seen if moment <= first)
    at_last = max(used for moment, used in seen if moment <= last)
    return Run(
        engine=engine.name,
        executors=executors,
        text=text.name,
        start_cpu_seconds=at_first,
        tasks_cpu_seconds=at_last - at_first,
        start_seconds=first - began,
        tasks_seconds=last - first,
    )


def _tasks(events: Path) -> tuple[float, float]:
    """Return when the first task began and the last one ended, in seconds since 1970."""
    [log] = [path for path in events.iterdir() if not path.name.startswith(".")]
    lines = map(json.loads, log.read_text().splitlines())
    tasks = [row["Task Info"] for row in lines if row["Event"] == "SparkListenerTaskEnd"]
    begins = min(task["Launch Time"] for task in tasks)
    return begins / 1000, max(task["Finish Time"] for task in tasks) / 1000


def print_table(runs: Sequence[dict[str, object]]) -> None:
    """Print medians."""
    cells: dict[tuple[str, int, str], list[Run]] = defaultdict(list)
    for row in runs:
        run = Run(**row)  # type: ignore[arg-type]
        cells[run.text, run.executors, run.engine].append(run)
    print(
        "| text | executors | engine | runs | start, CPU | first task after | tasks, CPU | took |"
    )
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for (text, executors, engine), found in sorted(cells.items()):
        values = [
            statistics.median(getattr(run, name) for run in found)
            for name in ("start_cpu_seconds", "start_seconds", "tasks_cpu_seconds", "tasks_seconds")
        ]
        shown = " | ".join(f"{value:.1f} s" for value in values)
        print(f"| {text} | {executors} | {engine} | {len(found)} | {shown} |")


if __name__ == "__main__":
    sys.exit(main())
