"""Speed of the report of 1,000 runs with telemetry, and how a report looks in Chromium.

    benchmarks/report.py measure                 a made-up store, its report, its first figure
    benchmarks/report.py look REPORT.html FOLDER pictures of a page: desktop, phone, printed

Targets on 2 cores and a local disk: a report of 1,000 runs, each with telemetry of 6 nodes over
60 s at 1 Hz, within 15 s and 1 GB; two campaigns of it compared within 2 s; its page at most 15 MB,
open in Chromium without an error, its first figure drawn within 2 s. Every number in that store is
made up. Ends with status 1 if a median misses its target. Needs the program ``chromium`` (on Debian
the package of that name), which is driven through its own pipe; ``pdftoppm`` (poppler-utils) for
pictures of printed pages.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime
import json
import os
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from commands import CLI

from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Coverage,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    Measurement,
    NodeSamples,
    Power,
    Security,
    Telemetry,
    Trial,
    Verdict,
    Verification,
)
from boardcluster.store import Store

RUNS = 1000
RUN_SECONDS = 60
NODES = ("master", *(f"worker{number}" for number in range(1, 6)))
CAMPAIGNS = ("made-up-a", "made-up-b")
WORKLOADS = ("wordcount", "terasort", "grep")
ENGINES = (Engine.MAPREDUCE, Engine.SPARK)
WORKERS = (2, 3, 4, 5)
SIZES_BYTES = (256_000_000, 1_000_000_000)
DIGEST = "ab" * 32
NOON = datetime.datetime(2026, 8, 1, 12, tzinfo=datetime.UTC)
VARIANTS = 24
"""Different telemetry; more would only take longer to make up."""

REPORT_SECONDS_MOST = 15.0
REPORT_BYTES_MOST = 1e9
PAGE_BYTES_MOST = 15e6
COMPARE_SECONDS_MOST = 2.0
FIGURE_SECONDS_MOST = 2.0

BOARDS = Fingerprint(
    kernel="6.12.0 aarch64",
    os="made up",
    cpu="a made-up board",
    cpu_cores=4,
    memory_bytes=8 * 2**30,
    java="17.0.1",
    hadoop="3.4.2",
    spark="4.1.4",
    boardcluster="0.1.0",
    profile="default",
    config_sha256=DIGEST,
    nodes=len(NODES),
    node_memory_bytes=8 * 2**30,
    node_cores=4,
    link_bits_per_second=10**9,
    emulated=False,
    security=Security.CLOSED,
)

AMOUNTS = {
    "cpu_user_seconds": 2.6,
    "cpu_system_seconds": 0.5,
    "cpu_idle_seconds": 0.7,
    "cpu_iowait_seconds": 0.15,
    "cpu_irq_seconds": 0.05,
    "cpu_steal_seconds": 0.0,
    "disk_read_bytes/mmcblk0": 2e7,
    "disk_written_bytes/mmcblk0": 1.5e7,
    "disk_reads/mmcblk0": 80.0,
    "disk_writes/mmcblk0": 60.0,
    "disk_busy_seconds/mmcblk0": 0.4,
    "storage_read_bytes": 2e7,
    "storage_written_bytes": 1.5e7,
    "net_received_bytes/eth0": 1.2e7,
    "net_sent_bytes/eth0": 1.1e7,
    "net_dropped_packets/eth0": 0.0,
    "pressure_cpu_seconds": 0.3,
    "pressure_io_seconds": 0.2,
    "pressure_io_full_seconds": 0.05,
    "pressure_memory_seconds": 0.0,
    "pressure_memory_full_seconds": 0.0,
    "swap_in_bytes": 0.0,
    "swap_out_bytes": 0.0,
    "group_cpu_seconds/datanode": 0.3,
    "group_cpu_seconds/nodemanager": 0.1,
    "group_cpu_seconds/jobs": 2.4,
    "foreign_cpu_seconds": 0.01,
    "agent_cpu_seconds": 0.003,
    "clock_step_seconds": 0.0001,
}
STATES = {
    "clock_hertz/cpu0": 2.4e9,
    "clock_hertz/cpu1": 2.4e9,
    "clock_hertz/cpu2": 2.4e9,
    "clock_hertz/cpu3": 2.4e9,
    "clock_measured_hertz": 2.38e9,
    "clock_nominal_hertz": 2.4e9,
    "temperature_celsius": 58.0,
    "throttle_bits": 0.0,
    "memory_available_bytes": 4.4e9,
    "memory_cached_bytes": 2.2e9,
    "memory_dirty_bytes": 4e7,
    "swap_used_bytes": 0.0,
    "link_bits_per_second/eth0": 1e9,
    "group_memory_bytes/datanode": 2.4e8,
    "group_memory_bytes/nodemanager": 2.6e8,
    "group_memory_bytes/jobs": 1.6e9,
}


def telemetry(seed: int, engine: Engine) -> Telemetry:
    """Make up the samples of a run: every node, every usual column, phases of the engine."""
    chance = np.random.default_rng(seed)
    seconds = np.arange(-1.0, RUN_SECONDS + 2.0)
    steady = ("clock", "throttle", "swap_used", "link")
    nodes = []
    for place, name in enumerate(NODES):
        load = 0.2 if place == 0 else 1.0
        columns = {
            column: np.abs(load * usual * (1 + 0.25 * chance.standard_normal(len(seconds))))
            for column, usual in AMOUNTS.items()
        }
        columns |= {
            column: np.full(len(seconds), usual)
            if column.startswith(steady)
            else usual * (1 + 0.02 * chance.standard_normal(len(seconds)))
            for column, usual in STATES.items()
        }
        for values in columns.values():
            values[0] = np.nan
        nodes.append(
            NodeSamples(
                node=name,
                scope="machine",
                interval_seconds=1.0,
                cores=4,
                seconds=seconds,
                columns=columns,
                clock_error_seconds=0.0005,
            )
        )
    inner = {
        Engine.MAPREDUCE: {"start": (2, 8), "map": (8, 40), "reduce after the last map": (40, 57)},
        Engine.SPARK: {"stage 0: map": (7, 31), "stage 1: save": (31, 58)},
    }[engine]
    spans = {f"job/{phase}": (float(low), float(high)) for phase, (low, high) in inner.items()}
    whole = {"job": (0.0, float(RUN_SECONDS))}
    return Telemetry(duration_seconds=RUN_SECONDS, nodes=tuple(nodes), phases=whole | spans)


def measurement(trial: Trial, chance: random.Random) -> Measurement:
    """Make up what a run yielded: faster with workers, Spark faster than MapReduce."""
    slow = 1.0 if trial.engine is Engine.SPARK else 1.6
    base = 20 * slow * (0.2 + 0.8 * 4 / trial.workers) * (trial.size_bytes / SIZES_BYTES[0]) ** 0.8
    took = base * chance.gauss(1, 0.03)
    joules = took * (12 + 6 * trial.workers)
    tainted = chance.random() < 0.03
    power = Power(
        meter="plug",
        kind="made up",
        coverage=Coverage.WALL,
        nodes=NODES,
        switch=True,
        accuracy="made up",
        rate_hertz=1.0,
        energy_joules=joules,
        mean_watts=joules / took,
        most_watts=1.2 * joules / took,
        readings=int(took),
    )
    return Measurement(
        duration_seconds=took,
        input_bytes=trial.size_bytes,
        output_bytes=trial.size_bytes // 3,
        counters={
            f"org.apache.hadoop.mapreduce.TaskCounter/NAME_{i}": 2**40 + i for i in range(30)
        },
        verification=Verification(
            method="made up", expected_sha256=DIGEST, actual_sha256=DIGEST, records=12
        ),
        exit_status=0,
        application_id="application_1_0001",
        phases_seconds={"job": took, "job/map": 0.5 * took},
        intermediate_bytes=2 * trial.size_bytes,
        node_written_bytes=dict.fromkeys(NODES, 10**9),
        node_read_bytes=dict.fromkeys(NODES, 10**8),
        verdict=Verdict.TAINTED if tainted else Verdict.VALID,
        verdict_reasons=("worker1: made-up heat",) if tainted else (),
        energy=Energy(
            energy_joules=joules,
            method=EnergyMethod.METERED,
            level=1,
            level_reason="made up",
            powers=(power,),
        ),
    )


def trials_of(campaign_id: str, count: int) -> list[Trial]:
    """So many runs over all cells, in turn."""
    cells = [
        (workload, engine, workers, size)
        for workload in WORKLOADS
        for engine in ENGINES
        for workers in WORKERS
        for size in SIZES_BYTES
    ]
    return [
        Trial(
            id=f"{campaign_id}-{place:04d}",
            campaign_id=campaign_id,
            position=place,
            workload=workload,
            engine=engine,
            profile="default",
            size_bytes=size,
            workers=workers,
            repetition=place // len(cells) + 1,
        )
        for place in range(count)
        for workload, engine, workers, size in [cells[place % len(cells)]]
    ]


def make_store(home: Path, runs: int) -> None:
    """Store made-up runs in two campaigns, as the driver would."""
    made = {
        engine: [telemetry(seed, engine) for seed in range(VARIANTS // 2)] for engine in ENGINES
    }
    chance = random.Random(7)
    with Store.open(home) as store:
        for number, name in enumerate(CAMPAIGNS):
            trials = trials_of(name, runs // len(CAMPAIGNS))
            began = NOON + datetime.timedelta(days=number)
            campaign = Campaign(
                id=name,
                kind=CampaignKind.RUN,
                created_utc=began.isoformat(timespec="seconds"),
                seed=7,
                cluster="made-up",
                emulated=False,
                dataset="made up",
                dataset_sha256=DIGEST,
                dataset_source="made up by benchmarks/report.py",
                name=name,
                spec_sha256=DIGEST,
            )
            store.add_campaign(campaign, trials)
            for trial in trials:
                began += datetime.timedelta(seconds=90)
                found = measurement(trial, chance)
                samples = made[trial.engine][trial.position % (VARIANTS // 2)]
                add_run(store, trial, began, found, samples)


def add_run(
    store: Store,
    trial: Trial,
    began: datetime.datetime,
    found: Measurement,
    samples: Telemetry,
) -> Attempt:
    """Begin and end one attempt."""
    setup = replace(BOARDS, nodes=trial.workers + 1)
    attempt = store.begin_attempt(trial.id, setup, began.isoformat(timespec="seconds"))
    ended = began + datetime.timedelta(seconds=found.duration_seconds)
    return store.finish(
        attempt,
        state=AttemptState.OK,
        reason="",
        ended_utc=ended.isoformat(timespec="seconds"),
        measurement=found,
        telemetry=samples,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of the program: wall time, and the most memory that its process had."""

    seconds: float
    resident_bytes: int


def program(*words: str) -> Ran:
    """Run boardcluster.

    Raises:
        subprocess.CalledProcessError: it failed; what it said is on standard error.
    """
    argv = [*CLI, *words]
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)  # it is waited for already
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return Ran(seconds=seconds, resident_bytes=used.ru_maxrss * 1024)


@dataclass(slots=True)
class Browser:
    """Chromium, driven by the DevTools protocol over a pipe.

    Attributes:
        to: messages to it.
        back: messages from it, each ended by a zero byte.
        errors: what a page reported as an error.
    """

    to: int
    back: int
    errors: list[str] = field(default_factory=list)
    _session: str = ""
    _number: int = 0
    _buffer: bytes = b""

    def ask(self, method: str, timeout_seconds: float = 120.0, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result.

        Raises:
            RuntimeError: it was refused, or not answered in time.
        """
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout_seconds
        while True:
            answer = self._next(deadline)
            self._note(answer)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, awaited where it is a promise."""
        found = self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value")

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(self.back, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("Chromium did not answer in time, or has ended")
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        """Keep what a page's console, its scripts and its security policy complain of."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(f"console.{params['type']}")

    def open_tab(self) -> None:
        """Open a fresh tab; what follows is of it."""
        self._session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Make the window so many CSS pixels large."""
        scale = 2 if phone else 1
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=phone,
        )


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Run a headless Chromium with a profile of its own while the block runs.

    Raises:
        SystemExit: there is no Chromium.
    """
    path = shutil.which("chromium")
    if path is None:
        sys.exit("no program chromium: on Debian `apt-get install chromium`")
    here, theirs = os.pipe(), os.pipe()  # to it, and back
    with tempfile.TemporaryDirectory(prefix="boardcluster-chromium-") as profile:
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-extensions", "--hide-scrollbars"),
            *("--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"),
        ]
        # It reads commands from descriptor 3 and answers on 4.
        shell = f'exec "$0" "$@" 3<&{here[0]} 4>&{theirs[1]}'
        process = subprocess.Popen(
            ["bash", "-c", shell, path, *options],
            pass_fds=(here[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(here[0])
        os.close(theirs[1])
        try:
            yield Browser(here[1], theirs[0])
        finally:
            os.close(here[1])  # it ends when nobody can command it any more
            os.close(theirs[0])
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            process.wait()


FIRST_FIGURE = """
(() => {
  window.figureSeconds = new Promise(done => {
    const look = () => {
      const found = [...document.querySelectorAll('figure svg, figure img')]
        .some(row => row.getBoundingClientRect().height > 20);
      if (!found) { requestAnimationFrame(look); return; }
      // The frame after the one in which it is there has it painted.
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() / 1000)));
    };
    look();
  });
})();
"""


def first_figure_seconds(page: Path) -> tuple[float, list[str]]:
    """Open a page; return when its first figure was painted, and what the page complained of."""
    with browser() as chromium:
        chromium.open_tab()
        chromium.size(1280, 800)
        chromium.ask("Page.addScriptToEvaluateOnNewDocument", source=FIRST_FIGURE)
        chromium.ask("Page.navigate", url=page.resolve().as_uri())
        seconds = float(chromium.evaluate("window.figureSeconds"))
        loaded = "new Promise(done => document.readyState === 'complete' ? done() : onload = done)"
        chromium.evaluate(f"{loaded}.then(() => 0)")
        return seconds, chromium.errors


SLICE_PIXELS = 3000


def look(page: Path, folder: Path) -> list[Path]:
    """Make pictures of a page as desktops and phones show it, and as it prints.

    Returns:
        The files: ``desktop-01.png`` and on, each a part of the page from above to below, likewise
        ``phone-``; ``print.pdf`` and its pages ``print-1.png``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with browser() as chromium:
        chromium.open_tab()
        for name, width, height in (("desktop", 1280, 800), ("phone", 390, 844)):
            chromium.size(width, height, phone=name == "phone")
            chromium.ask("Page.navigate", url=page.resolve().as_uri())
            chromium.evaluate("new Promise(done => setTimeout(() => done(0), 1500))")
            tall = int(chromium.ask("Page.getLayoutMetrics")["cssContentSize"]["height"])
            wide = int(chromium.evaluate("document.documentElement.scrollWidth"))
            if wide > width:
                print(f"{name}: {wide} pixels wide, {wide - width} more than the window")
            for number, top in enumerate(range(0, tall, SLICE_PIXELS), start=1):
                part = {"x": 0, "y": top, "width": width, "scale": 1}
                part["height"] = min(SLICE_PIXELS, tall - top)
                shot = chromium.ask("Page.captureScreenshot", clip=part, captureBeyondViewport=True)
                written.append(folder / f"{name}-{number:02d}.png")
                written[-1].write_bytes(base64.b64decode(shot["data"]))
        chromium.ask("Emulation.clearDeviceMetricsOverride")
        printed = chromium.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        written.append(folder / "print.pdf")
        written[-1].write_bytes(base64.b64decode(printed["data"]))
        for line in dict.fromkeys(chromium.errors):
            print(f"the page complains: {line}")
    if shutil.which("pdftoppm"):
        argv = ["pdftoppm", "-r", "60", "-png", str(folder / "print.pdf"), str(folder / "print")]
        subprocess.run(argv, check=True)
        written += sorted(folder.glob("print-*.png"))
    return written


def row(what: str, values: Sequence[float], unit: str, most: float) -> bool:
    """Print one line; return whether its median is within the target."""
    median = statistics.median(values)
    good = median <= most
    print(
        f"| {what} | {median:.3g} {unit} | {min(values):.3g} to {max(values):.3g} |"
        f" {len(values)} | {most:g} {unit}{'' if good else ', missed'} |",
        flush=True,
    )
    return good


def measure(home: Path, *, runs: int, times: int) -> bool:
    """Make the store, and measure; return whether every target was met."""
    began = time.perf_counter()
    make_store(home, runs)
    print(
        f"{runs} made-up runs, {len(NODES)} nodes x {RUN_SECONDS} s at 1 Hz,"
        f" {len(AMOUNTS) + len(STATES)} columns; stored in {time.perf_counter() - began:.0f} s\n"
    )
    print("| what | median | range | runs | target |\n|---|---|---|---|---|")
    folder = home / "report"
    reports = []
    for _ in range(times):
        shutil.rmtree(folder, ignore_errors=True)
        reports.append(program("report", "--home", str(home), "-o", str(folder)))
    page = folder / "report.html"
    compared = [program("compare", "--home", str(home), *CAMPAIGNS) for _ in range(times)]
    opened = [first_figure_seconds(page) for _ in range(times)]
    met = [
        row("report", [ran.seconds for ran in reports], "s", REPORT_SECONDS_MOST),
        row(
            "its memory",
            [ran.resident_bytes / 1e6 for ran in reports],
            "MB",
            REPORT_BYTES_MOST / 1e6,
        ),
        row("its page", [page.stat().st_size / 1e6], "MB", PAGE_BYTES_MOST / 1e6),
        row("compare two campaigns", [ran.seconds for ran in compared], "s", COMPARE_SECONDS_MOST),
        row("first figure in Chromium", [one for one, _ in opened], "s", FIGURE_SECONDS_MOST),
        row("errors in its console", [len(errors) for _, errors in opened], "errors", 0),
    ]
    for line in dict.fromkeys(line for _, errors in opened for line in errors):
        print(f"\nthe page complains: {line}")
    return all(met)


def main() -> None:
    """Measure and print, or make pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    modes = parser.add_subparsers(dest="mode", required=True)
    measuring = modes.add_parser("measure", help="a made-up store, its report, its first figure")
    measuring.add_argument("--runs", type=int, default=RUNS, help="stored runs")
    measuring.add_argument("--times", type=int, default=3, help="repetitions of each measurement")
    measuring.add_argument("--keep", type=Path, help="make the store here and keep it")
    looking = modes.add_parser("look", help="pictures of a page")
    looking.add_argument("page", type=Path)
    looking.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    if chosen.mode == "look":
        for path in look(chosen.page, chosen.folder):
            print(path)
        return
    with tempfile.TemporaryDirectory(prefix="boardcluster-report-") as folder:
        home = chosen.keep or Path(folder)
        if not measure(home, runs=chosen.runs, times=chosen.times):
            sys.exit(1)


if __name__ == "__main__":
    main()
