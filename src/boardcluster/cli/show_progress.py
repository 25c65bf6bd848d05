"""Shows the progress of a campaign."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table

from boardcluster.analysis.cells import label_of, verdict_of
from boardcluster.analysis.twins import node_words
from boardcluster.cli.console import plain
from boardcluster.queries.progress import Progress, left_seconds, seconds_since, typical_seconds
from boardcluster.records import AttemptState, Result
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = ["progress_picture", "progress_title", "progress_words"]

_BAR_WIDTH = 40


def _trial_words(result: Result) -> str:
    trial = result.trial
    words = [f"{trial.workload} on {trial.engine.value}"]
    words += [format_bytes(trial.size_bytes)] if trial.size_bytes else []
    words += [format_count(trial.workers, "worker"), label_of([result])]
    words += [f"{'warm-up' if trial.warm_up else 'repetition'} {trial.repetition}"]
    return ", ".join(word for word in words if word)


def _count_words(progress: Progress) -> str:
    parts = [f"{count} {name}" for name, count in progress.verdicts.items()]
    bad = (AttemptState.FAILED, AttemptState.INVALID)
    parts += [f"{progress.count(state)} {state.value}" for state in bad if progress.count(state)]
    said = f" ({', '.join(parts)})" if parts else ""
    return f"{progress.done} of {len(progress.results)} done{said}"


def _running_words(progress: Progress, driver: str, now_utc: datetime.datetime) -> str:
    running = progress.running
    if running is None:
        return ""
    trial, attempt = running
    words = _trial_words(Result(trial=trial, attempt=attempt, measurement=None))
    if not driver:
        return f"left by a killed driver: {words}"
    took = typical_seconds(progress, trial)
    usually = "" if took is None else f"; the run itself usually takes {format_seconds(took)}"
    again = f", attempt {attempt.number}" if attempt.number > 1 else ""
    elapsed = format_seconds(seconds_since(attempt.started_utc, now_utc))
    return f"now {words}{again}: for {elapsed}{usually}"


def _last_words(progress: Progress) -> str:
    last = progress.last
    if last is None or last.attempt is None:
        return ""
    took = f"{format_seconds(last.measurement.duration_seconds)}, " if last.measurement else ""
    if last.measurement is None or last.attempt.state is not AttemptState.OK:
        words = f"{took}{last.attempt.state.value}: {last.attempt.reason}"
    else:
        words = f"{took}{verdict_of(last).value}"
    return f"last {_trial_words(last)}: {words}"


def _left_words(progress: Progress, now_utc: datetime.datetime) -> str:
    left = len(progress.results) - progress.done
    if not left:
        return ""
    seconds, unknown = left_seconds(progress, now_utc)
    if unknown == left:
        return f"{left} left: unknown time, because nothing similar was measured yet"
    more = f", and {unknown} of unknown time" if unknown else ""
    return f"{left} left: about {format_seconds(seconds)}{more}"


def progress_title(progress: Progress) -> str:
    """Name the campaign that is followed."""
    campaign = progress.campaign
    name = f" ({campaign.name})" if campaign.name else ""
    emulated = node_words(progress.results) or ("emulated nodes" if campaign.emulated else "")
    return f"campaign {campaign.id}{name} on {campaign.cluster}" + (
        f", {emulated}" if emulated else ""
    )


def _end_words(progress: Progress) -> str:
    # An invalid run is made again by a resume, so it is left, too.
    left = len(progress.results) - progress.done + progress.count(AttemptState.INVALID)
    if not left:
        return "nothing is running: the campaign is finished"
    if not progress.campaign.name:  # of a single command, which nothing resumes
        return f"nothing is running: {left} of {len(progress.results)} unfinished"
    again = "resume with `boardcluster run FILE --resume`"
    if not progress.campaign.is_resumable:
        again = "the command that began it continues it"
    return f"nothing is running: {left} left; {again}"


def progress_words(progress: Progress, driver: str, now_utc: datetime.datetime) -> Iterator[str]:
    """What there is to say, most important first; nothing that is empty."""
    lines = (
        _count_words(progress),
        _last_words(progress),
        _running_words(progress, driver, now_utc),
        _left_words(progress, now_utc) if driver else _end_words(progress),
    )
    return filter(None, lines)


def progress_picture(progress: Progress, driver: str, now_utc: datetime.datetime) -> Group:
    """Draw the progress of a campaign."""
    total = max(1, len(progress.results))
    counted, *others = progress_words(progress, driver, now_utc)
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=progress.done, width=_BAR_WIDTH), plain(counted))
    title = plain(progress_title(progress), "bold")
    return Group(title, bar, *(plain(words) for words in others))
