"""What `report` hands on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from boardcluster.cli import report
from boardcluster.cli.app import app
from boardcluster.cli.console import Reporter


@pytest.mark.parametrize("options", [[], ["--tainted"]])
def test_tainted_runs_count_only_if_asked_for(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def write(
        home: Path,
        folder: Path,
        *,
        campaign: str | None,
        tainted: bool,
        figures: bool,
        reporter: Reporter,
    ) -> tuple[Path, Path]:
        asked.append(tainted)
        return folder / "report.html", folder / "report.md"

    monkeypatch.setattr(report, "write", write)
    done = CliRunner().invoke(app, ["report", "--home", str(tmp_path), *options])

    assert done.exit_code == 0
    assert asked == [bool(options)]
