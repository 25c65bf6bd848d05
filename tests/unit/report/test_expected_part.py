"""What the report says of predictions; the model itself is not asked."""

from __future__ import annotations

from tests.builders import make_result

from boardcluster.analysis.statistics import Interval
from boardcluster.plan.expected import ExpectedRun
from boardcluster.plan.question import Question
from boardcluster.records import Engine
from boardcluster.report.evidence import Evidence
from boardcluster.report.expected_part import expected_section
from boardcluster.report.material import Material
from boardcluster.report.parts import Part
from boardcluster.report.source import Source


def row(*, workers: int = 4, seconds: float | None = 50.0, runs: int = 3) -> ExpectedRun:
    return ExpectedRun(
        question=Question(
            workload="terasort",
            engine=Engine.SPARK,
            size_bytes=10**9,
            workers=workers,
            board="b",
            medium="m",
            profile="default",
        ),
        measured_seconds=40.0 if runs else None,
        runs=runs,
        seconds=seconds,
        interval=None if seconds is None else Interval(low=45.0, high=56.0),
        unknown="" if seconds else "no probe",
    )


def section(*rows: ExpectedRun) -> list[Part]:
    results = [make_result(position=place) for place in range(2)]
    material = Material(
        source=Source.of(results, []),
        cluster=None,
        evidence=Evidence(expected=rows),
        probes=(),
    )
    return list(expected_section(material))


def test_measured_cells_stand_beside_their_predictions() -> None:
    [part] = section(row(), row(workers=8, runs=0))
    measured, untried = part.tables
    titles = [column.title for column in measured.columns]
    [cells] = measured.rows
    assert cells[titles.index("Predicted / measured")] == "1.25"
    assert cells[titles.index("90 % interval (s)")].startswith("45")
    assert cells[titles.index("Measured, median (s)")] == "40.0"
    assert [cells[3] for cells in untried.rows] == ["8"]
    assert not any("Measured" in column.title for column in untried.columns)
    assert "60 of them at most" in part.text[0]


def test_what_cannot_be_predicted_is_said_and_not_shown() -> None:
    [part] = section(row(seconds=None), row(workers=8, seconds=None, runs=0))
    assert part.tables == ()
    assert part.notes == ("Nothing is predicted for some cells: no probe.",)


def test_without_predictions_there_is_no_section() -> None:
    assert section() == []
