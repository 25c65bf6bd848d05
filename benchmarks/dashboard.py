"""What the dashboard costs its machine, and how fast it answers. How to run: README.md here.

    benchmarks/dashboard.py server [--nodes 64] [--seconds 60]
    benchmarks/dashboard.py page [--nodes 8] [--seconds 60]
    benchmarks/dashboard.py zoom
    benchmarks/dashboard.py tab [--nodes 8] [--seconds 3600]
    benchmarks/dashboard.py watched [--pairs 5] [--size 1GB]
    benchmarks/dashboard.py loss

``server``: so many nodes write a sample each second, as relays do, and one listener takes every
event; the process that watches and serves may use 10 % of a core and 100 MB. ``page``: in
Chromium the first picture with readings of every node is there within 1 s of its call, by the
page's clock, in each of ten calls, and a sample is on the screen within 2 s. ``zoom``: parts of a
run of 24 hours on 8 nodes within 300 ms. ``tab``: the page in Chromium grows by 30 MB at most in an
hour. ``watched``: the same run of HPL, which keeps every core of this machine busy, on an emulated
cluster: unwatched, with the dashboard and a page that is read on another machine, and with that
page in Chromium on this one; in blocks of three, each in another order. A watched run may take 1 %
more. ``loss``: DataNodes are killed, one after the other, and the page in Chromium shows each as
down within 5 s. Each ends with status 1 if it misses its goal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import uvicorn
from cluster import Program
from commands import CLI
from selenium import webdriver
from selenium.webdriver.common.by import By
from store import FINGERPRINT, MEASUREMENT

from boardcluster.analysis.statistics import mean, standard_deviation, t_quantile
from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import load_state
from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    Engine,
    NodeSamples,
    Telemetry,
    Trial,
)
from boardcluster.store import Store
from boardcluster.web.app import Dashboard, build_app
from boardcluster.web.guard import Guard, allowed_hosts
from boardcluster.web.readings import LiveReadings, NodeFrame
from boardcluster.web.reports import Reports
from boardcluster.web.server import bind_free_port
from boardcluster.web.stored import StoredRuns
from boardcluster.web.watching import ClusterWatch, WatchedNode

CPU_GOAL_SHARE = 0.10
MEMORY_GOAL_BYTES = 100e6
ZOOM_GOAL_SECONDS = 0.3
TAB_GOAL_BYTES = 30e6
FIRST_GOAL_SECONDS = 1.0
SHOWN_GOAL_SECONDS = 2.0
LOSS_GOAL_SECONDS = 5.0
CALLS = 10
LOOK = """
window.seen = { first: null, shown: [] };
new MutationObserver(() => {
  const tiles = document.querySelectorAll(".tile .figures");
  const degrees = [...tiles].map((tile) => tile.innerText.match(/(\\d+) °C/)?.[1]);
  if (degrees.length < COUNT || degrees.includes(undefined)) return;
  window.seen.first ??= performance.now();
  const last = window.seen.shown.at(-1);
  if (last?.[1] !== degrees[0]) window.seen.shown.push([Date.now(), degrees[0]]);
}).observe(document, { childList: true, subtree: true, characterData: true });
"""
"""Notes when every node has a temperature, and when the first one's changes."""
SLOWER_GOAL = 1.01
PORT = 8720
SUBNET = "198.18.123.0/24"
WATCHED = {"elsewhere": "a page on another machine", "here": "a page in Chromium on this one"}
CHROMEDRIVER = "/usr/bin/chromedriver"
COLUMNS = (
    *((f"cpu_{kind}_seconds", "c", 0.01) for kind in ("user", "system", "idle", "iowait", "irq")),
    *((f"net_{way}_bytes/eth0", "c", 1) for way in ("received", "sent")),
    *((f"disk_{what}/sda", "c", 512) for what in ("read_bytes", "written_bytes", "reads")),
    *((f"clock_hertz/cpu{core}", "g", 1000) for core in range(4)),
    *((f"group_cpu_seconds/{name}", "c", 0.01) for name in ("datanode", "nodemanager", "jobs")),
    *((f"group_memory_bytes/{name}", "g", 4096) for name in ("datanode", "nodemanager", "jobs")),
    *((f"pressure_{kind}_seconds", "c", 1e-6) for kind in ("cpu", "io", "io_full", "memory")),
    *((f"memory_{kind}_bytes", "g", 1024) for kind in ("available", "cached", "dirty")),
    *(("temperature_celsius", "g", 0.001), ("clock_measured_hertz", "g", 1)),
    *(("throttle_bits", "g", 1), ("agent_cpu_seconds", "c", 1e-9)),
)
"""What an agent writes on a board."""


HOTTEST = [name for name, _, _ in COLUMNS].index("temperature_celsius")


def feed(
    watch: ClusterWatch, names: list[str], ending: threading.Event, fed: dict[int, float]
) -> None:
    """Hand over a sample of every node each second, each with another temperature.

    ``fed`` gets when each temperature was last handed over, since 1970.
    """
    head = json.dumps({"interval_seconds": 1.0, "columns": COLUMNS})
    for name in names:
        watch.take(name, "S", "own")
        watch.take(name, "T", head)
    second = 0
    while not ending.wait(1.0):
        second += 1
        numbers = [50 * second + place for place in range(len(COLUMNS))]
        degrees = 20 + second % 60
        numbers[HOTTEST] = 1000 * degrees
        words = " ".join(map(str, numbers))
        fed[degrees] = time.time()
        for name in names:
            watch.take(name, "T", f"{time.monotonic_ns()} {time.time_ns()} {words}")
            if second % 5 == 0:
                watch.take(name, "D", "[]")


def listen(address: str, ending: threading.Event, taken: list[int]) -> None:
    """Take every event, as a page does; in a process of its own, at no cost to the server."""
    with urllib.request.urlopen(f"{address}events", timeout=30) as stream:
        while not ending.is_set():
            taken[0] += len(stream.readline())


@contextlib.contextmanager
def serving(nodes: int) -> Iterator[tuple[str, dict[int, float]]]:
    """Serve so many nodes, each with a sample every second, for the block.

    Yields:
        The address, and when each temperature was last handed over.
    """
    fed: dict[int, float] = {}
    names = [f"node{number}" for number in range(nodes)]
    ending = threading.Event()
    with tempfile.TemporaryDirectory() as folder, bind_free_port("127.0.0.1", 8700) as bound:
        home = Path(folder)
        watch = ClusterWatch(home, home)
        board = Dashboard(watch, StoredRuns(home), Reports(home))
        watch.look()
        for name in names:
            frame = NodeFrame(name=name, cores=4.0, memory_bytes=8 << 30, is_machine=True)
            watch.nodes[name] = WatchedNode(
                readings=LiveReadings(frame),
                roles=("worker",),
                daemons=("datanode", "nodemanager"),
                board="rpi-5b-8gb-2400mhz",
            )
        port = bound.getsockname()[1]
        guard = Guard(build_app(board), allowed_hosts("127.0.0.1", port))
        config = uvicorn.Config(guard, log_level="error", access_log=False, lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        threading.Thread(target=feed, args=(watch, names, ending, fed), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{port}/", fed
        finally:
            ending.set()
            server.should_exit = True
            thread.join(10)


def measure_server(nodes: int, seconds: float) -> bool:
    """Print what serving costs; return whether it is little enough."""
    with serving(nodes) as (address, _):
        if (child := os.fork()) == 0:
            taken = [0]
            listener = threading.Thread(
                target=listen, args=(address, threading.Event(), taken), daemon=True
            )
            listener.start()
            time.sleep(seconds + 4)
            os._exit(0 if taken[0] > 1000 * nodes else 1)
        time.sleep(3)
        began, used = time.monotonic(), time.process_time()
        time.sleep(seconds)
        share = (time.process_time() - used) / (time.monotonic() - began)
        _, status = os.waitpid(child, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    hour = nodes * 3900 * (8 + 13 * 4)
    print(
        f"{nodes} nodes at 1 Hz for {seconds:g} s, one page: {share:.1%} of a core "
        f"(goal {CPU_GOAL_SHARE:.0%}), {memory / 1e6:.0f} MB, and {hour / 1e6:.0f} MB more once an "
        f"hour is kept (goal {MEMORY_GOAL_BYTES / 1e6:g} MB in all)"
    )
    return status == 0 and share <= CPU_GOAL_SHARE and memory + hour <= MEMORY_GOAL_BYTES


def measure_page(nodes: int, seconds: float) -> bool:
    """Print how soon the page is there, and how soon a sample is; return whether in time."""
    firsts = []
    with serving(nodes) as (address, fed), open_browser() as browser:
        time.sleep(3)
        script = {"source": LOOK.replace("COUNT", str(nodes))}
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
        for _ in range(1 + CALLS):  # the first one is the browser's own, too
            browser.get(address)
            until(lambda: browser.execute_script("return window.seen.first") is not None)
            firsts.append(browser.execute_script("return window.seen.first") / 1000)
        before = dict(fed)
        time.sleep(min(seconds, 50.0))  # less than a minute: each temperature once
        shown = browser.execute_script("return window.seen.shown")
    delays = [
        at / 1000 - fed[degrees]
        for at, text in shown
        if (degrees := int(text)) in fed and fed[degrees] != before.get(degrees)
    ]
    print(
        f"{nodes} nodes: first picture after {statistics.median(firsts[1:]):.2f} s in the middle, "
        f"{max(firsts[1:]):.2f} s at most of {CALLS} (goal {FIRST_GOAL_SECONDS:g} s), "
        f"{firsts[0]:.2f} s in a browser that has just begun; {len(delays)} samples on the screen "
        f"after {statistics.median(delays):.2f} s, {max(delays):.2f} s at most (goal "
        f"{SHOWN_GOAL_SECONDS:g} s)"
    )
    return bool(max(firsts[1:]) <= FIRST_GOAL_SECONDS and max(delays) <= SHOWN_GOAL_SECONDS)


def measure_tab(nodes: int, seconds: float) -> bool:
    """Leave the page open in a real browser; print how it grew, return whether that is little.

    The first look is a minute after the page is there. What is not needed any more is freed
    before each look.
    """
    with serving(nodes) as (address, _), open_browser() as browser:
        browser.get(address)
        time.sleep(min(60.0, seconds))
        begin = tab_use(browser)
        ending = time.monotonic() + seconds
        while (left := ending - time.monotonic()) > 0:
            time.sleep(min(600.0, left))
            heap, elements = tab_use(browser)
            print(
                f"{(time.monotonic() - ending + seconds) / 60:.0f} min: heap {heap / 1e6:.1f} MB, "
                f"{elements} elements",
                flush=True,
            )
        end = tab_use(browser)
    growth = end[0] - begin[0]
    print(
        f"a tab with {nodes} nodes for {seconds / 60:.0f} min grew by {growth / 1e6:.1f} MB of "
        f"heap (goal {TAB_GOAL_BYTES / 1e6:g} MB), from {begin[0] / 1e6:.1f} MB, and from "
        f"{begin[1]} to {end[1]} elements"
    )
    return growth <= TAB_GOAL_BYTES


@contextlib.contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """A real browser for the block."""
    options = webdriver.ChromeOptions()
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,1000"):
        options.add_argument(f"--{word}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def tab_use(browser: webdriver.Chrome) -> tuple[float, int]:
    """Return the bytes of the tab's heap after it was cleared up, and its number of elements."""
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    used = browser.execute_cdp_cmd("Runtime.getHeapUsage", {})
    elements = browser.execute_script("return document.getElementsByTagName('*').length")
    return float(used["usedSize"]), int(elements)


def day(home: Path) -> str:
    """Store a run of 24 hours on 8 nodes; return its name."""
    rows = 86_400
    at = np.arange(float(rows))
    nodes = tuple(
        NodeSamples(
            node=f"worker{number}",
            scope="machine",
            interval_seconds=1.0,
            cores=4,
            seconds=at,
            columns={
                "cpu_user_seconds": 1 + np.sin(at / (100 + number)),
                "cpu_system_seconds": np.full(rows, 0.1),
            },
        )
        for number in range(8)
    )
    with Store.open(home) as store:
        campaign = Campaign(
            id="day",
            kind=CampaignKind.RUN,
            created_utc="2026-08-01T12:00:00+00:00",
            seed=1,
            cluster="benchmark",
            emulated=False,
        )
        trial = Trial(
            id="day-1",
            campaign_id="day",
            position=0,
            workload="terasort",
            engine=Engine.SPARK,
            profile="default",
            size_bytes=10**12,
            workers=8,
            repetition=1,
        )
        store.add_campaign(campaign, [trial])
        attempt = store.begin_attempt(trial.id, FINGERPRINT, "2026-08-01T12:00:00+00:00")
        store.finish(
            attempt,
            measurement=MEASUREMENT,
            state=AttemptState.OK,
            reason="",
            ended_utc="2026-08-02T12:00:00+00:00",
            telemetry=Telemetry(duration_seconds=float(rows), nodes=nodes),
        )
    return attempt.name


def zoom() -> bool:
    """Print how long zooming takes; return whether it is short enough."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        name = day(home)
        stored = StoredRuns(home)
        began = time.monotonic()
        stored.curves(name, "cpu")
        first = time.monotonic() - began
        took = []
        for begin in range(0, 80_000, 4_000):
            began = time.monotonic()
            json.dumps(stored.curves(name, "cpu", begin_seconds=begin, end_seconds=begin + 3600))
            took.append(time.monotonic() - began)
    print(
        f"24 h of 8 nodes: all of it {first * 1000:.0f} ms at first; parts "
        f"{statistics.median(took) * 1000:.0f} ms in the middle, {max(took) * 1000:.0f} ms at most "
        f"(goal {ZOOM_GOAL_SECONDS * 1000:g} ms)"
    )
    return max(took) <= ZOOM_GOAL_SECONDS


def measure_watched(pairs: int, size: str) -> bool:
    """Print how much longer watched runs take than unwatched ones; return whether it is little."""
    ratios: dict[str, list[float]] = {page: [] for page in WATCHED}
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder) / "home")
        program.run("init", "--workers", "2", "--subnet", SUBNET)
        program.run("up")
        try:
            run_seconds(program, "", size)  # builds HPL, and fills caches
            for pair in range(pairs):
                order = ["", *WATCHED]
                order = order[pair % 3 :] + order[: pair % 3]
                took = {page: run_seconds(program, page, size) for page in order}
                for page, values in ratios.items():
                    values.append(took[page] / took[""])
                words = ", ".join(f"{page or 'unwatched'} {took[page]:.2f} s" for page in order)
                print(f"block {pair + 1}: {words}", flush=True)
        finally:
            program.run("down", "--wipe")
    for page, values in ratios.items():
        print(f"watched by {WATCHED[page]}, over unwatched: {ratio_words(values)}")
    return all(statistics.median(values) <= SLOWER_GOAL for values in ratios.values())


def measure_loss() -> bool:
    """Print how soon the page shows that a DataNode was killed; return whether in time."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder) / "home")
        program.run("init", "--workers", "2", "--subnet", SUBNET)
        program.run("up")
        try:
            with watched_by(program.home, "here") as browser:
                took = [loss_seconds(program.home, browser, down) for down in (1, 2)]
        finally:
            program.run("down", "--wipe")
    words = ", ".join(f"{seconds:.2f} s" for seconds in took)
    print(f"a killed DataNode shows after {words} (goal {LOSS_GOAL_SECONDS:g} s)")
    return max(took) <= LOSS_GOAL_SECONDS


def loss_seconds(home: Path, browser: webdriver.Chrome | None, down: int) -> float:
    """Kill the next DataNode; return the seconds until the page shows so many as down."""
    state = load_state(home)
    if state is None or browser is None:
        raise ValueError("no cluster is up, or no page is open here")
    shown = "return document.body.innerText.split(arguments[0]).length - 1"
    until(lambda: browser.execute_script(shown, "DataNode up") == 3 - down)
    daemon = [row for row in state.daemons if row.name == "datanode"][down - 1]
    node = next(row for row in state.nodes if row.name == daemon.node)
    emulated.remote_of(node, state).run(["kill", "-9", str(daemon.process.pid)])
    began = time.monotonic()
    until(lambda: browser.execute_script(shown, "DataNode down") == down)
    return time.monotonic() - began


def run_seconds(program: Program, page: str, size: str) -> float:
    """Return how long a run of HPL took, by the driver's clock, with a dashboard or without."""
    with watched_by(program.home, page) if page else contextlib.nullcontext():
        found = program.json("run", "hpl", "--size", size, "--repetitions", "1")
    return float(found["results"][0]["measurement"]["duration_seconds"])


@contextlib.contextmanager
def watched_by(home: Path, page: str) -> Iterator[webdriver.Chrome | None]:
    """Have the dashboard at work, and its page open here, which the block gets, or elsewhere."""
    server = subprocess.Popen(
        [*CLI, "dashboard", "--no-browser", "--port", str(PORT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # that it was stopped is no news
        text=True,
        env={**os.environ, "BOARDCLUSTER_HOME": str(home)},
    )
    try:
        lines = server.stdout or ()
        address = next(found[1] for line in lines if (found := re.search(r"(http\S+)", line)))
        with contextlib.ExitStack() as stack:
            browser = None
            if page == "here":
                browser = stack.enter_context(open_browser())
                browser.get(address)
                find = browser.find_elements
                until(lambda: len(find(By.CSS_SELECTOR, ".tile")) >= 3)
            else:
                ending, taken = threading.Event(), [0]
                listener = threading.Thread(target=listen, args=(address, ending, taken))
                stack.callback(listener.join)
                stack.callback(ending.set)
                listener.start()
                until(lambda: taken[0] > 0)
            yield browser
    finally:
        server.terminate()
        server.wait(30)


def until(ready: Callable[[], bool]) -> None:
    """Wait for a page to be there."""
    due = time.monotonic() + 60
    while not ready():
        if time.monotonic() > due:
            sys.exit("the page did not come within 60 s")
        time.sleep(0.1)


def ratio_words(ratios: list[float]) -> str:
    """Median, and geometric mean with its 95 % interval (Student's t of the logarithms)."""
    logs = [math.log(ratio) for ratio in ratios]
    words = f"median {statistics.median(ratios):.4f} of {len(ratios)} pairs (goal {SLOWER_GOAL})"
    spread = standard_deviation(logs)
    if spread is None:
        return words
    half = t_quantile(len(logs) - 1) * spread / math.sqrt(len(logs))
    low, middle, high = (math.exp(mean(logs) + way * half) for way in (-1, 0, 1))
    return f"{words}, mean {middle:.4f} ({low:.4f} to {high:.4f})"


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("server", "page", "zoom", "tab", "watched", "loss"))
    parser.add_argument("--nodes", type=int, help="default: 64, or 8 for the tab")
    parser.add_argument("--seconds", type=float, help="default: 60, or an hour for the tab")
    parser.add_argument("--pairs", type=int, default=5, help="watched: blocks of three runs")
    parser.add_argument("--size", default="1GB", help="watched: the matrix, in all")
    given = parser.parse_args()
    if given.what == "zoom":
        good = zoom()
    elif given.what == "page":
        good = measure_page(given.nodes or 8, given.seconds or 60.0)
    elif given.what == "loss":
        good = measure_loss()
    elif given.what == "watched":
        good = measure_watched(given.pairs, given.size)
    elif given.what == "tab":
        good = measure_tab(given.nodes or 8, given.seconds or 3600.0)
    else:
        good = measure_server(given.nodes or 64, given.seconds or 60.0)
    return 0 if good else 1


if __name__ == "__main__":
    socket.setdefaulttimeout(60)
    sys.exit(main())
