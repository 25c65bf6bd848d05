"""What the dashboard costs its machine, and how fast it answers. How to run: README.md here.

    benchmarks/dashboard.py server [--nodes 64] [--seconds 60]
    benchmarks/dashboard.py zoom
    benchmarks/dashboard.py tab [--nodes 8] [--seconds 3600]

``server``: so many nodes write a sample each second, as relays do, and one listener takes every
event; the process that watches and serves may use 10 % of a core and 100 MB. ``zoom``: parts of a
run of 24 hours on 8 nodes within 300 ms. ``tab``: the page in Chromium grows by 30 MB at most in an
hour. Each ends with status 1 if it misses its goal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import uvicorn
from selenium import webdriver
from store import FINGERPRINT, MEASUREMENT

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


def feed(watch: ClusterWatch, names: list[str], ending: threading.Event) -> None:
    """Hand over a sample of every node each second."""
    head = json.dumps({"interval_seconds": 1.0, "columns": COLUMNS})
    for name in names:
        watch.take(name, "S", "own")
        watch.take(name, "T", head)
    second = 0
    while not ending.wait(1.0):
        second += 1
        words = " ".join(str(50 * second + place) for place in range(len(COLUMNS)))
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
def serving(nodes: int) -> Iterator[str]:
    """Serve so many nodes, each with a sample every second, for the block; yield the address."""
    names = [f"node{number}" for number in range(nodes)]
    ending = threading.Event()
    with tempfile.TemporaryDirectory() as folder, bind_free_port("127.0.0.1", 8700) as bound:
        home = Path(folder)
        watch = ClusterWatch(home, home)
        board = Dashboard(watch, StoredRuns(home), Reports(home, home / "report"))
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
        threading.Thread(target=feed, args=(watch, names, ending), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            ending.set()
            server.should_exit = True
            thread.join(10)


def measure_server(nodes: int, seconds: float) -> bool:
    """Print what serving costs; return whether it is little enough."""
    with serving(nodes) as address:
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
        f"{nodes} nodes at 1 Hz for {seconds:g} s, one page: {share:.1%} of a core, "
        f"{memory / 1e6:.0f} MB, and {hour / 1e6:.0f} MB more once an hour is kept"
    )
    return status == 0 and share <= CPU_GOAL_SHARE and memory + hour <= MEMORY_GOAL_BYTES


def measure_tab(nodes: int, seconds: float) -> bool:
    """Leave the page open in a real browser; print how it grew, return whether that is little.

    The first look is a minute after the page is there. What is not needed any more is freed
    before each look.
    """
    with serving(nodes) as address, open_browser() as browser:
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
        f"heap, from {begin[0] / 1e6:.1f} MB, and from {begin[1]} to {end[1]} elements"
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
        f"{statistics.median(took) * 1000:.0f} ms in the middle, {max(took) * 1000:.0f} ms at most"
    )
    return max(took) <= ZOOM_GOAL_SECONDS


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("server", "zoom", "tab"))
    parser.add_argument("--nodes", type=int, help="default: 64, or 8 for the tab")
    parser.add_argument("--seconds", type=float, help="default: 60, or an hour for the tab")
    given = parser.parse_args()
    if given.what == "zoom":
        good = zoom()
    elif given.what == "tab":
        good = measure_tab(given.nodes or 8, given.seconds or 3600.0)
    else:
        good = measure_server(given.nodes or 64, given.seconds or 60.0)
    return 0 if good else 1


if __name__ == "__main__":
    socket.setdefaulttimeout(60)
    sys.exit(main())
