"""The dashboard in a real browser, while a real job runs on a real emulated cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.lock import driver_at_work
from boardcluster.cluster.state import load_state
from tests.integration.conftest import Cli
from tests.waiting import wait_until

PORT = 8571
SCREENSHOTS = os.environ.get("BOARDCLUSTER_SCREENSHOTS", "")
"""A folder for pictures of each page at three widths, light and dark; none without it."""


class Served:
    """A dashboard at work."""

    def __init__(self, program: Cli, log: Path, *options: str) -> None:
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [*program.prefix, *dashboard_command(), *options],
                stdout=out,
                stderr=out,
                env=program.env,
            )
        found = wait_until(
            lambda: re.findall(r"dashboard: (\S+)", log.read_text()),
            "the address of the dashboard",
            seconds=30,
            failed=self.process.poll,
        )
        self.page = str(found[0])

    @property
    def printed(self) -> str:
        return self._log.read_text()

    def end(self, signum: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signum)
            self.process.wait(30)
            assert signum == signal.SIGKILL or "Traceback" not in self.printed


def dashboard_command() -> tuple[str, ...]:
    from tests.integration.conftest import CLI

    return (*CLI, "dashboard", "--no-browser", "--port", str(PORT))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("dashboard") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.214.0/24")
    try:
        program("up")
        yield program
    finally:  # what was started from the page goes on without it
        wait_until(lambda: not driver_at_work(program.home), "the end of the run", seconds=240)
        program("down", "--wipe")


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory() as folder:
        for word in (
            *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
            *("disable-background-networking", "disable-component-update", "disable-sync"),
            *("hide-scrollbars", f"user-data-dir={folder}"),
        ):
            options.add_argument(f"--{word}")
        service = webdriver.ChromeService("/usr/bin/chromedriver")
        driver = webdriver.Chrome(options=options, service=service)
        try:
            yield driver
        finally:
            driver.quit()


def text(browser: webdriver.Chrome, css: str = "body") -> str:
    """What elements show; asked at once, since the page replaces them while it is looked at."""
    words = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText).join(' ')"
    return str(browser.execute_script(words, css))


def press(browser: webdriver.Chrome, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def focus_on(browser: webdriver.Chrome, wanted: str) -> None:
    """Go on with the Tab key until an element of that name has the focus."""
    name = (
        "const e = document.activeElement; if (!e.matches('a, button, input, select'))"
        "return '';"
        "return e.labels?.[0]?.textContent ?? e.textContent"
    )
    for _ in range(80):
        if wanted in str(browser.execute_script(name)):
            return
        press(browser, Keys.TAB)
    raise AssertionError(f"the Tab key never comes to {wanted!r}")


def accessible(browser: webdriver.Chrome) -> list[str]:
    """What axe-core finds wrong, in a line each."""
    found = Axe().run(browser)
    return [
        f"{row['id']}: {row['help']}: {[node['html'][:120] for node in row['nodes'][:3]]}"
        for row in found["violations"]
    ]


def errors(browser: webdriver.Chrome) -> list[str]:
    """What the browser complained of; that a server which was killed did not answer is no error."""
    return [
        row["message"]
        for row in browser.get_log("browser")  # type: ignore[no-untyped-call]
        if row["level"] in {"SEVERE", "WARNING"}
        and "/events - Failed to load" not in row["message"]
    ]


def pictures(browser: webdriver.Chrome, name: str) -> None:
    if not SCREENSHOTS:
        return
    folder = Path(SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for width in (390, 1280, 1920):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            time.sleep(0.6)
            size["height"] = min(
                2600, browser.execute_script("return document.documentElement.scrollHeight")
            )
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            time.sleep(0.3)
            browser.save_screenshot(str(folder / f"{name}-{width}-{scheme}.png"))
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide on a screen of {width}"
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_job_is_started_followed_and_judged_in_a_browser(
    up: Cli, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    served = Served(up, tmp_path / "log", "--control")
    try:
        browser.get(served.page)
        wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".tile")) >= 3, "tiles")
        wait_until(lambda: "up" in text(browser, ".daemons"), "daemons", seconds=60)
        wait_until(lambda: "%" in text(browser, ".figures"), "readings", seconds=60)
        assert accessible(browser) == []
        assert "No campaign yet" in text(browser)

        # By keyboard alone: to the form, through it, and to the start.
        browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
        focus_on(browser, "Do")
        press(browser, Keys.ENTER)
        wait_until(lambda: "A workload" in text(browser), "the form")
        assert accessible(browser) == []
        focus_on(browser, "Workload")
        press(browser, "wordcount", Keys.TAB, "spark", Keys.TAB, "64 MB", Keys.TAB, "1")
        focus_on(browser, "Show the plan")
        press(browser, Keys.ENTER)
        wait_until(lambda: "The plan" in text(browser), "the plan", seconds=60)
        assert "1 run." in text(browser)
        pictures(browser, "plan")
        focus_on(browser, "Start")
        press(browser, Keys.ENTER)
        wait_until(lambda: "It appears under" in text(browser), "the start", seconds=60)

        browser.get(served.page.partition("#")[0] + "#now")
        wait_until(lambda: "wordcount on Spark" in text(browser, "#job-title"), "job", seconds=120)
        seen = wait_until(
            lambda: re.search(r"stage \d+: .*", text(browser, ".parts")),
            "a stage",
            seconds=240,  # beside two other clusters that start, JVMs take a minute
            failed=lambda: text(browser, ".verdicts"),
        )
        assert seen
        wait_until(
            lambda: re.search(r"\d+ of \d+ done", text(browser, ".parts")), "progress", seconds=60
        )
        wait_until(
            lambda: "Where the last minute went" in text(browser), "the bottleneck", seconds=60
        )
        pictures(browser, "running")
        assert accessible(browser) == []
        wait_until(lambda: "It took" in text(browser, ".verdicts"), "the verdict", seconds=240)
        wait_until(lambda: "Nothing is running" in text(browser), "the end", seconds=60)
        pictures(browser, "ended")

        # The server dies, and comes back.
        served.end(signal.SIGKILL)
        wait_until(lambda: "does not answer" in text(browser, "#link"), "the loss", seconds=60)
        served = Served(up, tmp_path / "log2")
        wait_until(lambda: text(browser, "#link") == "live", "the stream", seconds=60)
        wait_until(lambda: "It took" in text(browser, ".verdicts"), "the verdict again", seconds=60)

        # A DataNode is killed.
        state = load_state(up.home)
        assert state is not None
        daemon = next(row for row in state.daemons if row.name == "datanode")
        node = next(row for row in state.nodes if row.name == daemon.node)
        wait_until(lambda: "DataNode up" in text(browser, ".daemons"), "a DataNode that is up")
        emulated.remote_of(node, state).run(["kill", "-9", str(daemon.process.pid)])
        wait_until(lambda: "DataNode down" in text(browser, ".daemons"), "the loss", seconds=60)
        pictures(browser, "datanode-down")

        # What it was, under Before.
        browser.find_element(By.TAG_NAME, "body").send_keys(Keys.HOME)
        browser.get(served.page + "#before")
        wait_until(lambda: "wordcount on Spark" in text(browser, "tbody"), "the table")
        assert accessible(browser) == []
        pictures(browser, "before")
        focus_on(browser, "wordcount on Spark")
        press(browser, Keys.ENTER)
        wait_until(lambda: "Where its time went" in text(browser), "the run's page", seconds=60)
        wait_until(
            lambda: len(browser.find_elements(By.CSS_SELECTOR, ".chart:not([hidden]) canvas")) >= 4,
            "its charts",
            seconds=60,
        )
        assert accessible(browser) == []
        pictures(browser, "run")
        assert errors(browser) == []
    finally:
        served.end()


def test_a_port_in_use_is_passed_over_and_said(up: Cli, tmp_path: Path) -> None:
    first = Served(up, tmp_path / "first")
    try:
        second = Served(up, tmp_path / "second")
        try:
            assert f"port {PORT} is in use; the dashboard takes {PORT + 1}" in second.printed
        finally:
            second.end()
    finally:
        first.end()
    assert "stopped: the page is no longer served" in first.printed
    assert json.loads(up("status", "--json"))["phase"] in {"up", "degraded"}
