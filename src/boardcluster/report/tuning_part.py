"""What tunings found: their history, what each setting brought, what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.factors import setting_words
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, named, present
from boardcluster.report.plots import Figure
from boardcluster.report.plots.figure import Lines, Point, Series, Style
from boardcluster.report.tables import Display, Getter, Getters, tabulate
from boardcluster.tuning.record import Outcome
from boardcluster.tuning.summary import SettingEffect, TuningRow, TuningSummary
from boardcluster.units import format_bytes, format_seconds

__all__ = ["tuning_section"]

_TEXT = (
    "`boardcluster tune` searched engine settings on small inputs first, and measured the best"
    " against the base in pairs. The runs of a search are left out of all other sections, because "
    "each point ran only once or twice and was chosen for its promise. The pairs are included."
)
_TICKS_MOST = 8
_BROUGHT = "Effect of each setting"
_EFFECTS_NOTE = (
    "Medians over the points of the smallest size, against the base at the same moment. Points "
    "differ in several settings at once and cluster where the search found gains, so this is a "
    "hint, not a proof."
)

_HISTORY: Getters[TuningRow] = (
    Getter("Run", lambda row: str(row.number), Display.NUMBER),
    Getter("Why", lambda row: row.purpose),
    Getter(
        "Input", lambda row: format_bytes(row.size_bytes) if row.size_bytes else "", Display.NUMBER
    ),
    Getter("Outcome", lambda row: row.outcome),
    Getter(
        "Time (s)", lambda row: words.seconds(row.seconds) if row.seconds else "", Display.NUMBER
    ),
    Getter(
        "Times the base",
        lambda row: "" if row.times_base is None else f"{row.times_base:.2f}",
        Display.NUMBER,
    ),
    Getter("Settings", lambda row: row.settings, Display.LONG),
    Getter("Reason", lambda row: row.reason, Display.LONG),
)
_EFFECTS: Getters[SettingEffect] = (
    Getter("Setting", lambda row: row.name),
    Getter("Better", lambda row: row.better),
    Getter("Than", lambda row: row.worse),
    Getter("Times", lambda row: f"{row.times:.2f}", Display.NUMBER),
    Getter("Points", lambda row: f"{row.points[0]} and {row.points[1]}", Display.NUMBER),
)
_RULED_OUT: Getters[tuple[str, int]] = (
    Getter("Reason", lambda row: row[0], Display.LONG),
    Getter("Met", lambda row: str(row[1]), Display.NUMBER),
)


def tuning_section(material: Material) -> Iterator[Part]:
    """The section, where something was tuned."""
    if not material.tunings:
        return
    yield Part(
        title="Tuning",
        name="tuning",
        contents="Tuning",
        text=(_TEXT,),
        parts=tuple(
            _part(row, number, material) for number, row in enumerate(material.tunings, start=1)
        ),
    )


def _part(summary: TuningSummary, number: int, material: Material) -> Part:
    name = f"tuning-{number}"
    cluster = material.cluster
    emulated = cluster is not None and bool(cluster.capabilities.mark)
    stopped = summary.outcomes.get(Outcome.STOPPED, 0)
    bad = sum(summary.outcomes.get(row, 0) for row in (Outcome.FAILED, Outcome.INVALID))
    told = (
        f"{words.count(len(summary.rows), 'run')} of the search in"
        f" {format_seconds(summary.spent_seconds)} of {format_seconds(summary.budget_seconds)};"
        f" {stopped} stopped early, {bad} failed or invalid. {summary.drift_words}."
    )
    best = ", ".join(setting_words(key, summary.best[key]) for key in sorted(summary.best))
    return Part(
        title=summary.title[:1].upper() + summary.title[1:],
        name=name,
        text=(summary.words[:1].upper() + summary.words[1:] + ".", told),
        figures=named(_figures(summary, emulated=emulated, twins=material.twins), name),
        tables=present(
            tabulate(
                summary.effects, _EFFECTS, caption="Effect of each setting", emulated=emulated
            ),
            tabulate(summary.ruled_out, _RULED_OUT, caption="Ruled out, not tried"),
            tabulate(summary.rows, _HISTORY, caption="History of the search", emulated=emulated),
        ),
        notes=(_EFFECTS_NOTE, *([f"The best at the whole size: {best}."] if best else [])),
    )


def _figures(summary: TuningSummary, *, emulated: bool, twins: str) -> tuple[Figure, ...]:
    """Every run that gave a time, and the best so far, over the runs of the search."""
    runs = [
        Point(x=row.number, y=row.times_base, low=None, high=None, runs=1)
        for row in summary.rows
        if row.times_base is not None and row.outcome is Outcome.OK
    ]
    best = [
        Point(x=row.number, y=row.best_so_far, low=None, high=None, runs=1) for row in summary.rows
    ]
    if len(runs) < 2:
        return ()
    alone = ((runs[0].x, runs[0].y),) * 2  # a fit of no length: runs are not joined by a line
    step = -(-len(best) // _TICKS_MOST)
    return (
        Figure(
            name="search",
            title="Runs of the search, and the best so far",
            caption="Each run against the base at the same size and moment; the line is the best "
            "one at the largest size measured so far.",
            emulated=emulated,
            twins=twins,
            x_label="run of the search",
            y_label="times the base at that moment",
            body=Lines(
                series=(
                    Series(label="a run", style=Style(0, 0), points=tuple(runs), fit=alone),
                    Series(label="best so far", style=Style(1, 1), points=tuple(best)),
                ),
                ticks=tuple(float(x) for x in range(step, len(best) + 1, step)),
            ),
            rows=tuple(
                {
                    "run": row.number,
                    "candidate": row.candidate,
                    "why": row.purpose,
                    "size_bytes": row.size_bytes,
                    "outcome": row.outcome,
                    "seconds": row.seconds or None,
                    "times_base": row.times_base,
                    "best_so_far": row.best_so_far,
                    "settings": row.settings,
                }
                for row in summary.rows
            ),
        ),
    )
