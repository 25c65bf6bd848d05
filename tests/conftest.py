"""What all rooms of tests share: a passing run is quiet, and what it starts is compiled once."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Tests start the program hundreds of times. A shell that forbids to keep what was compiled, as
images of containers do, would have each of them compile all modules again: a third of its CPU time.
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
