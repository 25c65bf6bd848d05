"""What all rooms of tests share: a passing run is quiet, and what it starts is compiled once."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Tests start the program hundreds of times. A shell that forbids to keep what was compiled, as
images of containers do, would have each of them compile all modules again: a third of its CPU time.
"""

_REST = ":".join(each for each in os.environ["PATH"].split(":") if not each.endswith("/shims"))
if shutil.which("python3", path=_REST):
    os.environ["PATH"] = _REST
"""Nodes on this machine call ``python3`` hundreds of times. That of pyenv is a shell script, which
starts 35 other programs each time: about 7 % of the CPU time of the integration room.
"""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist speak of its processes only where one fails, or somebody watches."""
    reporter: Any = config.pluginmanager.get_plugin("terminaldistreporter")
    if reporter is not None and config.option.verbose < 1:
        reporter.ensure_show_status = lambda: None


def pytest_report_teststatus(
    report: pytest.TestReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Count a test that passes, and print its dot only for somebody who watches."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if (
        report.when == "call"
        and report.passed
        and not reporter.isatty
        and config.option.verbose < 1
    ):
        return "passed", "", ""
    return None
