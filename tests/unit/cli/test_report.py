"""What `report` hands on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.report.stored import Run, fill
from typer.testing import CliRunner

from boardcluster import api
from boardcluster.cli.app import app
from boardcluster.errors import UsageError
from boardcluster.queries import samples
from boardcluster.records import Engine, Verdict
from boardcluster.report import Written


@pytest.mark.parametrize("options", [[], ["--tainted"]])
def test_tainted_runs_count_only_if_asked_for(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def write(home: Path, folder: Path, *, tainted: bool, **_: object) -> Written:
        asked.append(tainted)
        html, markdown = folder / "report.html", folder / "report.md"
        return Written(html=html, markdown=markdown, data=(), tables=(), figures=())

    monkeypatch.setattr("boardcluster.api.write_home_report", write)
    done = CliRunner().invoke(app, ["report", "--home", str(tmp_path), *options])

    assert done.exit_code == 0
    assert asked == [bool(options)]


def test_figures_for_print_are_written_only_if_asked_for(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            Run(engine=engine, seconds=seconds, watched=False, verdict=Verdict.UNJUDGED)
            for engine, seconds in ((Engine.SPARK, 20.0), (Engine.MAPREDUCE, 30.0))
        ],
    )
    runner = CliRunner()
    done = runner.invoke(app, ["report", "--home", str(tmp_path), "-o", str(tmp_path / "plain")])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "plain" / "figures").exists()
    drawn = {path.stem for path in (tmp_path / "plain" / "data").glob("*-times*.csv")}
    assert drawn

    options = ["report", "--home", str(tmp_path), "-o", str(tmp_path / "drawn"), "--figures"]
    assert runner.invoke(app, options).exit_code == 0
    files = {path.name for path in (tmp_path / "drawn" / "figures").iterdir()}
    for name in drawn:
        assert {f"{name}.svg", f"{name}.png", f"{name}.pdf"} <= files
    tables = list((tmp_path / "drawn" / "tables").glob("*.tex"))
    assert {path.name for path in tables} >= {"workload-terasort-times.tex", "methods.tex"}
    for path in tables:
        text = path.read_text(encoding="utf-8")
        assert text.count("\\begin{") == text.count("\\end{")


def test_figures_are_not_of_one_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["report", "--home", str(tmp_path), "--run", "a-1/1", "--figures"]
    )
    assert isinstance(done.exception, UsageError)
    assert "--figures" in done.exception.message


def test_long_work_is_followed(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            Run(
                engine=Engine.SPARK,
                seconds=20.0 + place / 100,
                watched=False,
                verdict=Verdict.UNJUDGED,
            )
            for place in range(120)
        ],
    )
    done = CliRunner().invoke(app, ["report", "--home", str(tmp_path)])
    assert done.exit_code == 0
    assert "reading samples" in done.stderr
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<summary>120 rows; open this table to print it</summary>" in html


def test_several_processes_give_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(
        tmp_path,
        [
            Run(engine=engine, seconds=20.0 + place)
            for engine in (Engine.SPARK, Engine.MAPREDUCE)
            for place in range(3)
        ],
    )
    damaged = sorted(tmp_path.rglob("telemetry.npz"))[0]
    damaged.write_bytes(b"no samples")
    texts = []
    for name, many in (("one", 100), ("several", 2)):
        monkeypatch.setattr(samples, "_MANY", many)
        html = api.report(home=tmp_path, out=tmp_path / name).html
        texts.append(html.read_text(encoding="utf-8"))
        pages = sorted(path.name for path in (tmp_path / name / "runs").iterdir())
        assert len(pages) == 5
    assert texts[0] == texts[1]
    assert "damaged" in texts[0]
