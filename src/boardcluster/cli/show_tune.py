"""What a tuning found, and what one would do, as tables."""

from __future__ import annotations

from boardcluster.campaign.tune import TunePreview
from boardcluster.cli.console import print_columns, print_json, say
from boardcluster.factors import setting_words
from boardcluster.tuning.space import RuledOut
from boardcluster.tuning.summary import TuningSummary
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = ["print_tune_preview", "print_tuning"]

_EFFECTS_SHOWN = 8


def print_tune_preview(preview: TunePreview, *, as_json: bool) -> None:
    """Print the space, what is ruled out of it, and what fits into the budget."""
    plan = preview.plan
    if as_json:
        print_json(
            {
                "request": plan.request,
                "space": plan.space,
                "ruled_out": plan.ruled_out,
                "known": plan.known,
                "sizes_bytes": preview.sizes_bytes,
                "run_seconds": preview.run_seconds,
                "proof_seconds": preview.proof_seconds,
                "runs": preview.runs,
            }
        )
        return
    print_columns(
        format_count(len(plan.space), "setting"),
        {
            "setting": lambda row: row.name,
            "values": lambda row: row.words,
            "properties": lambda row: ", ".join(row.tunable.properties),
        },
        plan.space,
    )
    _print_ruled_out(plan.ruled_out)
    known = ", ".join(row.origin for row in plan.known) or "nothing"
    say(f"tried first: the base {plan.request.base}, then {known}")
    sizes = ", ".join(format_bytes(size) for size in preview.sizes_bytes if size)
    of_program = "what a program reads is in its arguments"
    why = of_program if plan.request.is_program else "it takes no input"
    say(f"sizes: {sizes or f'none, because {why}'}")
    if preview.run_seconds is None or preview.proof_seconds is None or preview.runs is None:
        say("no run of it is stored yet, so how many fit into the budget is unknown")
        return
    say(
        f"a run takes about {format_seconds(preview.run_seconds)}, the proof"
        f" {format_seconds(preview.proof_seconds)}; the rest of"
        f" {format_seconds(plan.request.budget_seconds)} is enough for about"
        f" {format_count(preview.runs, 'run')} of the whole, or more smaller ones"
    )


def _print_ruled_out(rows: tuple[RuledOut, ...]) -> None:
    if rows:
        columns = {
            "ruled out": lambda row: row.what,
            "because": lambda row: row.reason,
        }
        print_columns(f"{len(rows)} left out", columns, rows)


def print_tuning(summary: TuningSummary) -> None:
    """Print what a tuning found."""
    history = {
        "run": lambda row: str(row.number),
        "why": lambda row: row.purpose,
        "size": lambda row: format_bytes(row.size_bytes) if row.size_bytes else "-",
        "outcome": lambda row: row.outcome,
        "seconds": lambda row: f"{row.seconds:.1f}" if row.seconds else "-",
        "times base": lambda row: "-" if row.times_base is None else f"{row.times_base:.2f}",
        "settings": lambda row: row.settings,
    }
    print_columns(f"tuning {summary.id}: {summary.title}", history, summary.rows)
    effects = {
        "setting": lambda row: row.name,
        "better": lambda row: row.better,
        "than": lambda row: row.worse,
        "times": lambda row: f"{row.times:.2f}",
        "points": lambda row: f"{row.points[0]} and {row.points[1]}",
    }
    if summary.effects:
        shown = summary.effects[:_EFFECTS_SHOWN]
        print_columns("effect of each setting (medians, not a proof)", effects, shown)
    for reason, count in summary.ruled_out:
        say(f"ruled out {format_count(count, 'time')}: {reason}")
    say(summary.drift_words)
    for key, value in sorted(summary.best.items()):
        say(f"  {setting_words(key, value)}")
    say(summary.words)
