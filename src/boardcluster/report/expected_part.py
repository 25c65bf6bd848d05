"""What would change it: measured cells beside their predictions, and configurations untried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, present
from boardcluster.report.plots.cells import is_emulated
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

if TYPE_CHECKING:
    from boardcluster.plan.expected import ExpectedRun

__all__ = ["expected_section"]

_TEXT = (
    "Measured cells that have comparable ones are shown, 60 of them at most, with the time "
    "predicted without their own runs, from the other cells and the published series. Where the "
    "two differ, something matters that the model does not know."
)
_UNTRIED = (
    "The nearest configurations that were not tried are predicted from all cells. The intervals "
    "hold 90 % of runs; for a time that is not reliable, the reason is given."
)

_SAME: Getters[ExpectedRun] = (
    Getter("Workload", lambda row: words.workload_name(row.question.workload)),
    Getter("Engine", lambda row: words.engine_name(row.question.engine), Display.ENGINE),
    Getter("Input", lambda row: format_bytes(row.question.size_bytes), Display.NUMBER),
    Getter("Workers", lambda row: str(row.question.workers), Display.NUMBER),
)
_PREDICTED: Getters[ExpectedRun] = (
    Getter("Predicted (s)", lambda row: _seconds(row.seconds), Display.NUMBER),
    Getter("90 % interval (s)", lambda row: words.interval(row.interval), Display.NUMBER),
)
_LAST: Getters[ExpectedRun] = (
    Getter("Not reliable", lambda row: row.unknown),
    Getter("Profile", lambda row: row.question.profile),
)
_MEASURED: Getters[ExpectedRun] = (
    *_SAME,
    Getter("Runs", lambda row: str(row.runs), Display.NUMBER),
    Getter("Measured, median (s)", lambda row: _seconds(row.measured_seconds), Display.NUMBER),
    *_PREDICTED,
    Getter("Predicted / measured", lambda row: _number(_ratio(row)), Display.NUMBER),
    *_LAST,
)


def expected_section(material: Material) -> Iterator[Part]:
    """The section, where cells can be predicted from others."""
    rows = material.evidence.expected
    if not rows:
        return
    told = [row for row in rows if row.seconds is not None]
    reasons = dict.fromkeys(row.unknown for row in rows if row.seconds is None and row.unknown)
    nothing = f"Nothing is predicted for some cells: {'; '.join(reasons)}." if reasons else ""
    emulated = is_emulated(material.source.cells)
    yield Part(
        title="What changes would bring",
        name="expected",
        contents="Predictions",
        text=(_TEXT, _UNTRIED) if told else (),
        tables=present(
            _table(
                [row for row in told if row.runs],
                _MEASURED,
                "Measured, and predicted without",
                emulated=emulated,
            ),
            _table(
                [row for row in told if not row.runs],
                (*_SAME, *_PREDICTED, *_LAST),
                "Not tried yet",
                emulated=emulated,
            ),
        ),
        notes=(nothing,) if nothing else (),
    )


def _table(
    rows: list[ExpectedRun], getters: Getters[ExpectedRun], caption: str, *, emulated: bool
) -> ReportTable | None:
    return tabulate(rows, getters, caption=caption, emulated=emulated, hide=("Profile",))


def _seconds(value: float | None) -> str:
    return words.NONE if value is None else words.seconds(value)


def _number(value: float | None) -> str:
    return words.NONE if value is None else f"{value:.2f}"


def _ratio(row: ExpectedRun) -> float | None:
    return row.seconds / row.measured_seconds if row.seconds and row.measured_seconds else None
