"""What ``watch-performance`` found, and what it would do, as tables."""

from __future__ import annotations

from boardcluster.analysis.watched import WatchedCell, WatchStanding
from boardcluster.campaign.bisect import BisectOutcome, BisectPlan, BisectStep
from boardcluster.campaign.life import Preview, refuse_problems
from boardcluster.cli.console import print_columns, print_json, say
from boardcluster.cli.show_predict import print_campaign_prediction
from boardcluster.cli.show_preflight import print_preflight
from boardcluster.report.watch_words import between_words
from boardcluster.services.user_timer import TimerState
from boardcluster.units import format_count, format_seconds

__all__ = [
    "print_bisect_plan",
    "print_bisection",
    "print_round_plan",
    "print_standing",
    "print_timer",
]


_TITLE_LENGTH_MOST = 30


def print_standing(standing: WatchStanding, *, as_json: bool) -> None:
    """Print one row for each cell, and what changed where one is out of its limits."""
    if as_json:
        print_json({"watch": standing, "out": [row.name for row in standing.out]})
        return
    columns = {
        "cell": lambda row: row.name,
        "latest (s)": _latest,
        "limits (s)": _limits,
        "baseline": lambda row: f"{row.chart.have} of {row.chart.wanted}",
        "stands": _stands,
        "changed": lambda row: between_words(row.chart.change) if row.chart.change else "",
    }
    title = f"{standing.name}: {format_count(len(standing.rounds), 'round')} of {standing.file}"
    print_columns(title, columns, standing.cells)
    for row in standing.cells:
        for line in row.changed:
            say(f"{row.name}: {line}")
        if row.baseline_drifts:
            say(
                f"warning: {row.name} changed while its baseline was measured, so its limits mean"
                " little; start a new baseline with --new"
            )


def _latest(row: WatchedCell) -> str:
    latest = row.chart.latest
    return f"{latest.value.seconds:.2f}" if latest and latest.value.seconds else "-"


def _limits(row: WatchedCell) -> str:
    limits = row.chart.limits_seconds
    return f"{limits.low:.2f} to {limits.high:.2f}" if limits else "-"


def _stands(row: WatchedCell) -> str:
    return "; ".join(filter(None, [_within(row), row.silent]))


def _within(row: WatchedCell) -> str:
    if row.chart.limits_seconds is None:
        return "no limits yet"
    if not row.chart.is_out or row.chart.latest is None:
        return "within"
    return "OUT" if row.chart.latest.out == "round" else "OUT (moving average)"


def print_round_plan(preview: Preview, *, as_json: bool) -> None:
    """Print what the next round would run and need.

    Raises:
        CapacityError: it cannot run.
    """
    if as_json:
        print_json({"outlook": preview.preflight, "trials": preview.work.chosen})
    else:
        print_preflight(preview.preflight, reporter=None)
        print_campaign_prediction(preview.prediction)
    refuse_problems(preview.preflight)


def print_timer(state: TimerState, *, as_json: bool) -> None:
    """Print the units that were written, and what to do with them; nothing where nothing is new."""
    if as_json:
        files = {str(path): text for path, text in state.files.items()}
        changed = [str(path) for path in state.changed]
        print_json({"files": files, "changed": changed, "lines": state.lines})
        return
    if not state.changed:
        say("the timer is already as asked for" if state.files else "there is no timer")
        return
    for path in state.changed:
        if path in state.files:
            say(f"wrote {path}:")
            say(state.files[path])
        else:
            say(f"deleted {path}")
    for line in state.lines:
        say(line)


def print_bisect_plan(plan: BisectPlan, *, as_json: bool) -> None:
    """Print in what two sides differ, and how many runs a bisection may take."""
    if as_json:
        print_json(plan)
        return
    if plan.sides is None:
        say("there is nothing to search between two engine pairs: the two are compared")
    else:
        short = max(map(len, plan.sides.names)) <= _TITLE_LENGTH_MOST
        first, second = plan.sides.names if short else ("first", "second")
        columns = {
            "property": lambda row: row.key,
            first: lambda row: row.old,
            second: lambda row: row.new,
        }
        found = plan.sides.differences
        print_columns(format_count(len(found), "difference"), columns, found)
        for key, why in plan.sides.refused.items():
            say(f"left out: {key}: {why}")
    runs = format_count(plan.runs_least, "run")
    if plan.runs_most > plan.runs_least:
        runs += f", at most {plan.runs_most}"
    took = "no run of these cells is stored yet, so how long it takes is unknown"
    if plan.run_seconds is not None:
        took = f"about {format_seconds(plan.runs_least * plan.run_seconds)}"
        if plan.runs_most > plan.runs_least:
            took += f", at most {format_seconds(plan.runs_most * plan.run_seconds)}"
        took += " and what the cluster needs to start"
    cells = format_count(len(plan.cells), "cell")
    each = format_count(plan.runs_of_each, "run")
    say(f"{cells}, {each} of each side in a step: {runs}; {took}")


def print_bisection(done: BisectOutcome, *, as_json: bool) -> None:
    """Print every comparison, and what was found."""
    if as_json:
        print_json(done)
        return
    columns = {
        "cell": lambda row: row.cell,
        "set as in the second": _set,
        "times the first": _ratio,
        "makes it": lambda row: "yes" if row.makes_it else row.reason or "no",
    }
    print_columns(f"{done.sides[1]} against {done.sides[0]}", columns, done.steps)
    say(done.words)


def _set(step: BisectStep) -> str:
    return ", ".join(row.key for row in step.changed) or "engine pair"


def _ratio(step: BisectStep) -> str:
    if step.ratio is None:
        return "-"
    span = step.ratio.interval
    return f"{step.ratio.value:.2f}" + (f" ({span.low:.2f} to {span.high:.2f})" if span else "")
