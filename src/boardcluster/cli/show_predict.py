"""Shows predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from boardcluster.cli.console import print_columns, say
from boardcluster.errors import PredictionUnknownError
from boardcluster.plan.prediction import PredictedAmount, RuntimePrediction, TimeShares
from boardcluster.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from boardcluster.campaign.prediction import CampaignPrediction
    from boardcluster.plan.backtest import ProtocolScore
    from boardcluster.queries.backtests import Backtests

__all__ = ["print_backtest", "print_campaign_prediction", "print_prediction", "unknown_error"]

_LEAST_SHARE = 0.005
_INSIDE = 1.005
_SHARES = {
    "start": "start",
    "fixed_tasks": "fixed tasks",
    "cpu": "CPU",
    "storage": "storage",
    "network": "network",
    "serial": "serial",
    "spill": "spill",
}


def _between(amount: PredictedAmount, shown: Callable[[float], str]) -> str:
    low, high = shown(amount.interval.low), shown(amount.interval.high)
    return f"{shown(amount.median)} (90 %: {low} to {high})"


def _joules(value: float) -> str:
    for size, unit in ((1e6, "MJ"), (1e3, "kJ")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} J"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def print_prediction(answer: RuntimePrediction) -> None:
    """Print an answer on one screen."""
    if answer.seconds is not None:
        least = "at least " if answer.lower_bound else ""
        parts = f": {_parts(answer.shares)}" if answer.shares else ""
        say(f"time {least}{_between(answer.seconds, format_seconds)}{parts}")
    if answer.intermediate_bytes is not None:
        say(f"intermediate {_between(answer.intermediate_bytes, format_bytes)}")
    if answer.joules is not None:
        say(f"energy of the workers {_between(answer.joules, _joules)}")
    if answer.fit is not None:
        say(f"fits: {answer.fit.words}")
    for name, amount in (answer.figures or {}).items():
        say(f"{name.replace('_', ' ')} {_between(amount, lambda value: f'{value:.3g}')}")
    for place, said in enumerate(answer.provenance):
        say(f"{'from: ' if not place else '      '}{said}")
    if answer.distance is not None:
        say(f"distance: {_distance(answer)}")
    if answer.backtest is not None:
        found = answer.backtest
        say(
            f"backtest at this distance: error {100 * found.mean_error:.0f} %,"
            f" {100 * found.within_20_percent:.0f} % within 20 %, the interval covers"
            f" {100 * found.coverage:.0f} % (cells as far away: {found.cells}, most of"
            f" {found.protocol!r})"
        )
    if answer.is_known and answer.run_next is not None:
        say(f"run next: {_next(answer)}")


def _parts(shares: TimeShares) -> str:
    named = [(_SHARES[row.name], getattr(shares, row.name)) for row in fields(shares)]
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in named if share > _LEAST_SHARE)


def _distance(answer: RuntimePrediction) -> str:
    away = answer.distance
    if away is None:
        return ""
    named = {
        "workers": away.workers,
        "size": away.size,
        "medium": away.medium,
        "CPU": away.cpu,
    }
    outside = [
        f"{_times(value)} times the {name}" for name, value in named.items() if value > _INSIDE
    ]
    inside = [name for name, value in named.items() if value <= _INSIDE]
    return ", ".join([*outside, f"{' and '.join(inside)} inside" if inside else ""]).rstrip(", ")


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _next(answer: RuntimePrediction) -> str:
    run = answer.run_next
    if run is None:
        return ""
    size = f", {format_bytes(run.size_bytes)}" if run.size_bytes else ""
    workers = format_count(run.workers, "worker")
    narrows = (
        ""
        if run.narrows_to is None
        else f"makes the interval {100 * (1 - run.narrows_to):.0f} % narrower"
    )
    takes = "" if run.seconds is None else f"about {format_seconds(run.seconds)}"
    why = ", ".join(word for word in (narrows, takes) if word)
    return f"{workers}{size}" + (f" ({why})" if why else "")


def unknown_error(answer: RuntimePrediction) -> PredictionUnknownError:
    """Return the error that says what is not known, and which run would help."""
    question = answer.question
    reasons = "; ".join(f"{row.reason}: {row.words}" for row in answer.unknown)
    hint = f"run {question.workload} on {question.engine} with {_next(answer)}"
    return PredictionUnknownError(
        f"I do not know how long it takes: {reasons}",
        hint=hint if answer.run_next else "ask for something closer to what was measured",
    )


def print_campaign_prediction(found: CampaignPrediction) -> None:
    """Print what a campaign will take, as predicted."""
    if found.known_runs:
        energy = f", {_joules(found.joules)}" if found.joules is not None else ""
        runs = format_count(found.known_runs, "run")
        say(f"predicted: {_between(found.seconds, format_seconds)} for {runs}{energy}")
        if found.dilation is None:
            say("this is the time of real boards; `up` decides how much longer this machine takes")
        elif found.dilation > 1:
            here = format_seconds(found.dilation * found.seconds.median)
            say(
                f"this is the time of real boards; this machine takes {found.dilation:g} times as"
                f" long: {here}"
            )
    for words in found.unknown:
        say(f"not predicted: {words}")


def print_backtest(done: Backtests) -> None:
    """Print how good predictions are."""
    columns: Mapping[str, Callable[[ProtocolScore], str]] = {
        "held out": lambda row: row.protocol,
        "cells": lambda row: str(row.cells),
        "mean error": lambda row: _percent(row.mean_error),
        "median": lambda row: _percent(row.median_error),
        "within 10 %": lambda row: _percent(row.within_10_percent),
        "within 20 %": lambda row: _percent(row.within_20_percent),
        "in 90 % interval": lambda row: _percent(row.coverage),
    }
    print_columns("published tables", columns, done.published.protocols)
    if done.own:
        print_columns("own runs", columns, done.own)
    for row in done.published.aside:
        say(
            f"{row.source}: predicted {format_seconds(row.predicted_seconds)}, measured"
            f" {format_seconds(row.measured_seconds)} ({100 * row.error:+.1f} %)"
        )
    for name, error in done.published.intermediate.items():
        say(f"intermediate bytes, {name}: mean error {_percent(error)}")
    errors = done.published.linpack_errors
    mean = _percent(sum(errors) / len(errors))
    say(f"HPL from one node: mean error {mean}, most {_percent(max(errors))}")
    say(f"Hadoop Pi on another board by 7-zip: mean error {_percent(done.published.board_error)}")
