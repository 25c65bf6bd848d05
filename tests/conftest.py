"""What all rooms of tests share: a passing run is quiet."""

from __future__ import annotations

from typing import Any

import pytest


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
