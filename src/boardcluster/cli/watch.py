"""Follow a campaign that another process runs: ``boardcluster results --watch``.

Nothing is written, locked or asked of the cluster: all is read from the store and from the kernel's
list of locks, so that watching disturbs no run.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from boardcluster.analysis import label_of, node_words, verdict_of
from boardcluster.cli.console import say
from boardcluster.cluster.lock import driver_at_work
from boardcluster.errors import EmptySelectionError
from boardcluster.records import Attempt, AttemptState, Campaign, Result, Trial, Verdict
from boardcluster.store import Store
from boardcluster.store.files import DATABASE_NAME
from boardcluster.units import format_bytes, format_seconds

__all__ = ["Progress", "document", "follow", "left_seconds", "progress_of"]

_REFRESH_SECONDS = 1.0
_RUNS_TRIALS = frozenset({"run", "submit", "demo", "experiment", "unknown"})
"""What a driver does that may bring results; unknown in the moment in which it takes the lock."""

_ENDED = (AttemptState.OK, AttemptState.FAILED, AttemptState.INVALID)
_BAR_WIDTH = 40

Typical = Mapping[tuple[str, str, int, int], float]
"""Mean seconds of earlier runs by workload, engine, size in bytes and number of workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a campaign stands.

    Attributes:
        campaign: the campaign.
        results: each of its trials with its latest attempt.
        typical_seconds: what runs like these took before, on this machine.
        newest: whether no later campaign is in the store.
    """

    campaign: Campaign
    results: tuple[Result, ...]
    typical_seconds: Typical
    newest: bool = True

    def count(self, state: AttemptState) -> int:
        """How many trials' latest attempt is in a state."""
        return sum(row.attempt is not None and row.attempt.state is state for row in self.results)

    @property
    def done(self) -> int:
        """Trials whose latest attempt has ended."""
        return sum(self.count(state) for state in _ENDED)

    @property
    def running(self) -> tuple[Trial, Attempt] | None:
        """The trial that runs now, or that a killed driver left so."""
        found = (
            (row.trial, row.attempt)
            for row in self.results
            if row.attempt is not None and row.attempt.state is AttemptState.RUNNING
        )
        return next(found, None)

    @property
    def last(self) -> Result | None:
        """The attempt that ended last."""
        ended = [row for row in self.results if row.attempt is not None and row.attempt.ended_utc]
        return max(ended, key=_ended_utc, default=None)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many of the measured runs have each verdict."""
        tally = Counter(verdict_of(row) for row in self.results if row.measurement is not None)
        return {verdict.value: tally[verdict] for verdict in Verdict if tally[verdict]}


def _ended_utc(row: Result) -> str:
    return row.attempt.ended_utc if row.attempt is not None else ""


def progress_of(home: Path, campaign_id: str | None) -> Progress | None:
    """Read how a campaign stands; None while the store has none.

    Args:
        home: the cluster's state folder.
        campaign_id: the campaign; None for the one that runs, else that was planned last.

    Raises:
        EmptySelectionError: there is no such campaign.
        StoreError: the store cannot be read.
    """
    with Store.open(home, read_only=True) as store:
        campaigns = {row.id: row for row in store.campaigns()}
        newest = max(campaigns, key=lambda name: (campaigns[name].created_utc, name), default=None)
        running = max(store.running(), key=lambda attempt: attempt.started_utc, default=None)
        at_work = (
            name for name in campaigns if running and running.trial_id.startswith(f"{name}-")
        )
        wanted = campaign_id or next(at_work, newest)
        if wanted is None:
            return None
        return Progress(
            results=store.results(wanted),
            campaign=campaigns[wanted],
            typical_seconds=store.typical_seconds(),
            newest=wanted == newest,
        )


def left_seconds(progress: Progress, now_utc: datetime.datetime) -> tuple[float, int]:
    """Estimate what the trials that have not ended will still take, on this machine.

    Each takes what runs of the same workload, engine, size and workers took before on average, and
    what lies around a run (preparing, proving, cooling down): the mean of what it was in this
    campaign. What ran already of the present one is taken off. Repeats of disturbed runs and
    changes of the cluster's form are not foreseen.

    Returns:
        The time in seconds, and for how many trials nothing is known, which are not in it.
    """
    around = _around_seconds(progress)
    running = progress.running
    seconds, unknown = 0.0, 0
    for row in progress.results:
        if row.attempt is not None and row.attempt.state in _ENDED:
            continue
        took = _typical(progress, row.trial)
        if took is None:
            unknown += 1
        elif running is not None and row.trial is running[0]:
            seconds += max(0.0, took + around - _since(running[1].started_utc, now_utc))
        else:
            seconds += took + around
    return seconds, unknown


def _typical(progress: Progress, trial: Trial) -> float | None:
    key = (trial.workload, str(trial.engine), trial.size_bytes, trial.workers)
    return progress.typical_seconds.get(key)


def _around_seconds(progress: Progress) -> float:
    """Mean time of an attempt beside what was measured; 0 while none has ended."""
    found = [
        max(0.0, _since(row.attempt.started_utc, _moment(row.attempt.ended_utc)) - took)
        for row in progress.results
        if row.attempt is not None and row.attempt.ended_utc and row.measurement is not None
        for took in [row.measurement.duration_seconds * row.measurement.dilation]
    ]
    return sum(found) / len(found) if found else 0.0


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _since(text: str, now_utc: datetime.datetime) -> float:
    """Seconds since a stored moment; none where the clock was set back."""
    return max(0.0, (now_utc - _moment(text)).total_seconds())


def document(progress: Progress, driver: str, now_utc: datetime.datetime) -> dict[str, object]:
    """What ``--watch --json`` prints on each change, in a line."""
    campaign, running, last = progress.campaign, progress.running, progress.last
    seconds, unknown = left_seconds(progress, now_utc)
    return {
        "moment_utc": now_utc.isoformat(timespec="seconds"),
        "campaign": campaign.id,
        "name": campaign.name,
        "cluster": campaign.cluster,
        "emulated": campaign.emulated,
        "driver": driver or None,
        "planned": len(progress.results),
        "done": progress.done,
        **{state.value: progress.count(state) for state in _ENDED},
        "verdicts": progress.verdicts,
        "running": None
        if running is None
        else {
            **_trial(running[0]),
            "attempt": running[1].number,
            "elapsed_seconds": _since(running[1].started_utc, now_utc),
            "typical_seconds": _typical(progress, running[0]),
        },
        "last": None
        if last is None or last.attempt is None
        else {
            **_trial(last.trial),
            "attempt": last.attempt.number,
            "state": last.attempt.state.value,
            "reason": last.attempt.reason,
            "duration_seconds": last.measurement.duration_seconds if last.measurement else None,
            "verdict": verdict_of(last).value if last.measurement else None,
        },
        "left_seconds": seconds,
        "left_unknown_runs": unknown,
    }


def _trial(trial: Trial) -> dict[str, object]:
    return {
        "trial": trial.id,
        "workload": trial.workload,
        "engine": trial.engine.value,
        "size_bytes": trial.size_bytes,
        "workers": trial.workers,
        "repetition": trial.repetition,
        "warm_up": trial.warm_up,
    }


def _trial_words(result: Result) -> str:
    trial = result.trial
    words = [f"{trial.workload} on {trial.engine.value}"]
    words += [format_bytes(trial.size_bytes)] if trial.size_bytes else []
    words += [f"{trial.workers} workers", label_of([result])]
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
        return f"left by a driver that was killed: {words}"
    took = _typical(progress, trial)
    usually = "" if took is None else f", the run itself usually {format_seconds(took)}"
    again = f", attempt {attempt.number}" if attempt.number > 1 else ""
    elapsed = format_seconds(_since(attempt.started_utc, now_utc))
    return f"now {words}{again}: since {elapsed}{usually}"


def _last_words(progress: Progress) -> str:
    last = progress.last
    if last is None or last.attempt is None:
        return ""
    if last.measurement is None:
        return f"last {_trial_words(last)}: {last.attempt.state.value}: {last.attempt.reason}"
    took = format_seconds(last.measurement.duration_seconds)
    return f"last {_trial_words(last)}: {took}, {verdict_of(last).value}"


def _left_words(progress: Progress, now_utc: datetime.datetime) -> str:
    left = len(progress.results) - progress.done
    if not left:
        return ""
    seconds, unknown = left_seconds(progress, now_utc)
    if unknown == left:
        return f"{left} left; how long is not known: nothing like them was measured yet"
    more = f", and {unknown} that nobody has measured yet" if unknown else ""
    return f"{left} left: about {format_seconds(seconds)}{more}"


def _title(progress: Progress) -> str:
    campaign = progress.campaign
    name = f" ({campaign.name})" if campaign.name else ""
    emulated = node_words(progress.results) or ("emulated nodes" if campaign.emulated else "")
    return f"campaign {campaign.id}{name} on {campaign.cluster}" + (
        f", {emulated}" if emulated else ""
    )


def _end_words(progress: Progress) -> str:
    left = len(progress.results) - progress.done
    if not left:
        return "nothing runs: the campaign is done"
    return f"nothing runs: {left} left; go on with `boardcluster run ... --resume`"


class _Screen:
    """Shows progress: in place on a terminal, else a line for each change."""

    def __init__(self, live: Live | None, *, as_json: bool) -> None:
        self._live = live
        self._as_json = as_json
        self._shown: object = None

    def show(self, progress: Progress, driver: str, now_utc: datetime.datetime) -> None:
        if self._live is not None:
            self._live.update(_picture(progress, driver, now_utc), refresh=True)
            return
        running, last = progress.running, progress.last
        changing = (
            progress.campaign.id,
            bool(driver),
            progress.done,
            running and (running[1].trial_id, running[1].number),
            last and last.attempt and (last.attempt.trial_id, last.attempt.number),
        )
        if changing == self._shown:
            return
        if self._as_json:
            words = json.dumps(document(progress, driver, now_utc), ensure_ascii=False)
            sys.stdout.write(words + "\n")
            sys.stdout.flush()
        else:
            if not isinstance(self._shown, tuple) or self._shown[0] != progress.campaign.id:
                say(_title(progress))
            say("; ".join(_words(progress, driver, now_utc)))
        self._shown = changing

    def wait_for_campaign(self, driver: str) -> None:
        words = f"`boardcluster {driver}` is at work; it has not planned a campaign yet"
        if self._live is not None:
            self._live.update(Text(words), refresh=True)
        elif not self._as_json and self._shown is None:
            say(words)
            self._shown = words


def _words(progress: Progress, driver: str, now_utc: datetime.datetime) -> Iterator[str]:
    """What there is to say, most important first; nothing that is empty."""
    lines = (
        _count_words(progress),
        _last_words(progress),
        _running_words(progress, driver, now_utc),
        _left_words(progress, now_utc) if driver else _end_words(progress),
    )
    return filter(None, lines)


def _picture(progress: Progress, driver: str, now_utc: datetime.datetime) -> Group:
    total = max(1, len(progress.results))
    counted, *others = _words(progress, driver, now_utc)
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=progress.done, width=_BAR_WIDTH), counted)
    title = Text(_title(progress), style="bold")
    return Group(title, bar, *(Text(words) for words in others))


@contextlib.contextmanager
def _screen(*, as_json: bool) -> Iterator[_Screen]:
    if as_json or not sys.stdout.isatty():
        yield _Screen(None, as_json=as_json)
        return
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        yield _Screen(live, as_json=False)


def follow(
    home: Path,
    campaign_id: str | None,
    *,
    as_json: bool,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Show how a campaign stands until the command that runs it has ended.

    Args:
        home: the cluster's state folder.
        campaign_id: the campaign; None for the newest, also one that is planned meanwhile.
        as_json: print a JSON document in a line for each change.
        pause: waits so many seconds between two looks.

    Raises:
        EmptySelectionError: there is no such campaign; or none at all, and nothing runs.
        StoreError: the store cannot be read.
    """
    seen: object = None
    progress: Progress | None = None
    with _screen(as_json=as_json) as screen:
        while True:
            driver = driver_at_work(home)  # first: what it wrote before it ended is read then
            driver = driver if driver.partition(" ")[0] in _RUNS_TRIALS else ""
            stamp = _stamp(home)
            if progress is None or stamp != seen:
                progress, seen = progress_of(home, campaign_id), stamp
            if progress is not None:
                screen.show(progress, driver, datetime.datetime.now(datetime.UTC))
            elif driver:
                screen.wait_for_campaign(driver)
            else:
                raise EmptySelectionError(
                    f"no results in {home}, and nothing runs",
                    hint="run something first: `boardcluster run wordcount`",
                )
            if not driver or (progress and not progress.newest and not _open(progress)):
                return
            pause(_REFRESH_SECONDS)


def _open(progress: Progress) -> bool:
    return progress.done < len(progress.results)


def _stamp(home: Path) -> tuple[tuple[int, int], ...]:
    """What changes with every write: times and sizes of the store's files."""
    found = []
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
        with contextlib.suppress(OSError):
            seen = (home / name).stat()
            found.append((seen.st_mtime_ns, seen.st_size))
    return tuple(found)
