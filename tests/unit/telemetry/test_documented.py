"""The page on telemetry names every column and metric, and its example reads a real archive."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.analysis.telemetry import NAN, node, times

from boardcluster.analysis.telemetry import COLUMNS
from boardcluster.records import Telemetry
from boardcluster.store.samples import write_telemetry
from boardcluster.telemetry.exposition import METRICS

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = (DOCS / "reference" / "telemetry.md").read_text()


def test_every_column_has_its_row_with_its_kind() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|[^|]*\| (amount|state)", REFERENCE, re.MULTILINE)
    written = {
        name.partition("/")[0]: kind == "amount"
        for names, kind in rows
        for name in re.findall(r"`([^`]+)`", names)
    }
    assert written == {name: column.amount for name, column in COLUMNS.items()}


def test_every_metric_is_named() -> None:
    text = (DOCS / "how-to" / "watch-with-grafana.md").read_text()
    written = set(re.findall(r"`(boardcluster_\w+)`", text))
    own = {"boardcluster_up", "boardcluster_cpu_cores", "boardcluster_node_info"}
    assert written == own | {metric.name for metric in METRICS.values()}


def test_the_example_reads_an_archive_with_numpy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user = np.arange(len(times()), dtype=np.float64)
    user[0] = NAN
    without = node("second")
    columns = {name: row for name, row in without.columns.items() if name != "cpu_user_seconds"}
    nodes = (
        node("first", columns={"cpu_user_seconds": user}),
        replace(without, columns=columns),
        node("third", columns={"cpu_user_seconds": 2 * user}),
    )
    write_telemetry(tmp_path, Telemetry(duration_seconds=60.0, nodes=nodes))
    [example] = re.findall(r"^```python\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
    assert "boardcluster" not in example
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "telemetry.md", "exec"), {})
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(printed["first"]) == pytest.approx(np.nansum(user))
    assert float(printed["second"]) == 0
    assert float(printed["third"]) == pytest.approx(2 * np.nansum(user))
