"""What a watch of the performance says now: its charts, what left its limits, and what changed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from boardcluster.analysis.cells import security_of, summarise
from boardcluster.analysis.cells import settings as level_words
from boardcluster.analysis.control_chart import (
    ChangePoint,
    ControlChart,
    RoundValue,
    control_chart,
)
from boardcluster.analysis.inference import find_drift, observe_values
from boardcluster.analysis.watched import WatchedCell, WatchStanding
from boardcluster.analysis.what_changed import RoundFacts, what_changed
from boardcluster.errors import EmptySelectionError, StoreError
from boardcluster.factors import FACTORS, levels
from boardcluster.records import Campaign, MasterPlacement, Result, Trial
from boardcluster.report.watch_words import cell_words, silent_words
from boardcluster.store import Store
from boardcluster.store.watches import WatchRecord, read_watch, watch_files
from boardcluster.units import format_bytes

__all__ = ["watch_standing", "watch_standings"]

_SAID_APART = ("profile", "workers")
_SHORTENED = ("profile", "size_bytes", "input")
"""Factors that the words of a cell shorten: to the name of a file, or to three digits."""

_OF_THE_CLUSTER: Mapping[str, Any] = {
    "profile": "",
    "workers": 0,
    "master": MasterPlacement.DECLARED,
}
"""Factors that are the cluster's where the file does not name them, and what stands for that."""

_Key: TypeAlias = "tuple[object, ...]"
"""What tells a cell from others: all that the file says of it."""

_Round: TypeAlias = "Mapping[_Key, Sequence[Result]]"
"""The runs of a round that count, by cell."""

_LOOKED_AT = 20
"""So many rounds before a change, and after it, are looked at for what changed."""


def watch_standing(home: Path, name: str) -> WatchStanding:
    """Return how a watch stands, by the name that its rounds have as campaigns.

    Raises:
        EmptySelectionError: nothing was watched with it yet.
        StoreError: the store or the record is damaged.
    """
    with Store.open(home, read_only=True) as store:
        if (record := read_watch(home, name)) is not None:
            return _standing(store, record)
    raise EmptySelectionError(
        f"no round of {name} was run on this cluster yet",
        hint="run the first: boardcluster watch-performance FILE",
    )


def watch_standings(
    store: Store, *, unusable: Callable[[str], object] | None = None
) -> tuple[WatchStanding, ...]:
    """Return how every watch of a store stands.

    Args:
        store: the results.
        unusable: told why a record cannot be used, whose watch is then left out; None raises that.

    Raises:
        StoreError: a record is damaged or makes no sense, and nobody is told.
    """
    found = []
    for path in watch_files(store.home):
        try:
            record = read_watch(store.home, path.stem)
        except StoreError as error:
            if unusable is None:
                raise
            unusable(error.message)
            continue
        if record is not None:
            found.append(_standing(store, record))
    return tuple(found)


def _standing(store: Store, record: WatchRecord) -> WatchStanding:
    at_work = [attempt.trial_id for attempt in store.running()]
    rounds = tuple(
        row
        for row in store.find_campaigns(record.name)
        if row.created_utc >= record.begun_utc
        # While one of its runs is being made, a round does not count.
        if not any(name.startswith(f"{row.id}-") for name in at_work)
    )
    results = [store.results(row.id, all_attempts=True) for row in rounds]
    found = [_cells(rows, record, tainted=record.tainted) for rows in results]
    # Why none of the last round's runs counts, where none does.
    disturbed = _cells(results[-1], record, tainted=True) if results else {}
    names = _names([*found, disturbed], record)
    return WatchStanding(
        name=record.name,
        file=record.file,
        baseline=record.baseline,
        rounds=tuple(row.id for row in rounds),
        cells=tuple(
            _watched(
                store,
                record,
                name,
                [(row, cells.get(key, ())) for row, cells in zip(rounds, found, strict=True)],
                count=len(names),
                disturbed=disturbed.get(key, ()),
            )
            for key, name in names.items()
        ),
    )


def _cells(results: Sequence[Result], record: WatchRecord, *, tainted: bool) -> _Round:
    """Return the cells of a round. What the cluster changed in mid-round makes none of its own."""
    found: dict[_Key, list[Result]] = {}
    for cell in summarise(results, tainted=tainted):
        key = (security_of(cell.results[0]), *levels(_of_file(cell.trial, record)))
        found.setdefault(key, []).extend(cell.results)
    return {key: sorted(runs, key=_began_utc) for key, runs in found.items()}


def _began_utc(run: Result) -> str:
    return run.attempt.started_utc if run.attempt else ""


def _of_file(trial: Trial, record: WatchRecord) -> Trial:
    """Return a trial with what the file says of it alone: the cluster may change under a chart."""
    settings = {key: row for key, row in trial.settings.items() if key in record.settings}
    other = {name: row for name, row in _OF_THE_CLUSTER.items() if name not in record.factors}
    return replace(trial, settings=settings, **other)


def _names(rounds: Sequence[_Round], record: WatchRecord) -> dict[_Key, str]:
    """Name the cells of all rounds, in the order in which they came; no two have one name."""
    firsts = {key: runs[0] for cells in rounds for key, runs in cells.items()}
    trials = {key: _of_file(run.trial, record) for key, run in firsts.items()}
    alike: dict[str, list[_Key]] = {}
    for key, run in firsts.items():
        alike.setdefault(_cell_name(trials[key], run, record), []).append(key)
    names = {
        key: ", ".join(filter(None, [words, _exactly(trials[key], [trials[one] for one in keys])]))
        for words, keys in alike.items()
        for key in keys
    }
    return {key: names[key] for cells in rounds for key in sorted(cells, key=names.__getitem__)}


def _cell_name(trial: Trial, run: Result, record: WatchRecord) -> str:
    """Name a cell by what the file says of it."""
    size = [format_bytes(trial.size_bytes)] if trial.size_bytes else []
    own = [row for row in FACTORS if row.name in _SAID_APART and row.name in record.factors]
    said = [row.words(row.level(trial)) for row in own]
    other = level_words(trial, security=security_of(run))
    parts = [f"{trial.workload} on {trial.engine}", *size, *said, other]
    return ", ".join(part for part in parts if part)


def _exactly(trial: Trial, alike: Sequence[Trial]) -> str:
    """Say in full what tells a cell from those that short words name alike; empty for one alone."""
    return ", ".join(
        f"{row.label} {row.level(trial)} {row.unit}".strip()
        for row in FACTORS
        if row.name in _SHORTENED and len({row.level(one) for one in alike}) > 1
    )


def _watched(
    store: Store,
    record: WatchRecord,
    name: str,
    rounds: Sequence[tuple[Campaign, Sequence[Result]]],
    *,
    count: int,
    disturbed: Sequence[Result],
) -> WatchedCell:
    values = [_value(campaign, runs) for campaign, runs in rounds]
    chart = control_chart(values, baseline=record.baseline, cells=count)
    changed: tuple[str, ...] = ()
    if chart.change is not None:
        changed = _changed(store, record, chart.change, [runs for _, runs in rounds])
    silent = silent_words(chart, _reasons(disturbed))
    said = cell_words(name, chart, changed)
    return WatchedCell(
        name=name,
        chart=chart,
        changed=changed,
        baseline_drifts=_drifts(chart),
        words=f"{said}; {silent}" if silent else said,
        silent=silent,
    )


def _reasons(runs: Sequence[Result]) -> list[str]:
    """Why runs of a cell were too disturbed."""
    measured = [row.measurement for row in runs]
    return [why for found in measured if found for why in found.verdict_reasons]


def _value(campaign: Campaign, runs: Sequence[Result]) -> RoundValue:
    """What a cell took in one round, the runs of which count alike."""
    logs = [math.log(row.measurement.duration_seconds) for row in runs if row.measurement]
    return RoundValue(
        round=campaign.id,
        started_utc=campaign.created_utc,
        seconds=math.exp(math.fsum(logs) / len(logs)) if logs else None,
        runs=len(logs),
    )


def _drifts(chart: ControlChart) -> bool:
    """Whether the rounds of a whole baseline show a trend or a step, by the house's one test."""
    if chart.limits_seconds is None:
        return False
    seconds = [row.value.seconds for row in chart.points if row.in_baseline]
    rows = observe_values([value for value in seconds if value is not None])
    placed = [replace(row, position=place) for place, row in enumerate(rows)]
    return any(row.is_shown for row in find_drift([placed]))


# What changed


def _changed(
    store: Store, record: WatchRecord, change: ChangePoint, rounds: Sequence[Sequence[Result]]
) -> tuple[str, ...]:
    """Compare what the cell ran on before and after its change."""
    before = [runs for runs in rounds[: change.before] if runs][-_LOOKED_AT:]
    after = [runs for runs in rounds[change.after - 1 :] if runs][:_LOOKED_AT]
    facts = [[_facts(store, record, runs) for runs in side] for side in (before, after)]
    return what_changed(*facts)


def _facts(store: Store, record: WatchRecord, runs: Sequence[Result]) -> RoundFacts:
    last = runs[-1]
    if last.attempt is None:
        raise ValueError("a run of a cell has an attempt")
    return RoundFacts(
        fingerprint=last.attempt.fingerprint,
        levels=_levels(last, record),
        numbers=_numbers(store, runs),
    )


def _levels(result: Result, record: WatchRecord) -> Mapping[str, str]:
    """What the cluster set of a run."""
    trial = result.trial
    found = {
        row.label: str(row.level(trial))
        for row in FACTORS
        if row.name not in record.factors and row.kind is not dict
    }
    own = {key: value for key, value in trial.settings.items() if key not in record.settings}
    return found | own


def _numbers(store: Store, runs: Sequence[Result]) -> dict[str, float]:
    """What is known of heat, clocks and other work, over the runs of a cell in a round."""
    found: dict[str, list[float]] = {}
    for row in runs:
        measured = row.measurement
        if measured is None or row.attempt is None:
            continue
        for name in ("foreign load", "steal", "throttled"):
            shares = [each.share for each in measured.disturbances if each.cause == name]
            found.setdefault(name, []).append(100 * max(shares, default=0.0))
        if measured.clock_hertz:
            slowest = min(measured.clock_hertz.values())
            found.setdefault("clock", []).append(slowest / 1e9)
        if (hottest := _hottest_celsius(store, row)) is not None:
            found.setdefault("temperature", []).append(hottest)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def _hottest_celsius(store: Store, result: Result) -> float | None:
    """The highest temperature of any node during a run; None where nothing readable says any."""
    import numpy as np  # noqa: PLC0415  most rounds change nothing

    telemetry = None
    with contextlib.suppress(StoreError):  # one damaged file must not cost the watch, or a report
        telemetry = store.telemetry(result.attempt) if result.attempt else None
    columns = [
        node.columns["temperature_celsius"]
        for node in (telemetry.nodes if telemetry else ())
        if "temperature_celsius" in node.columns
    ]
    known = [float(np.nanmax(row)) for row in columns if np.isfinite(row).any()]
    return max(known, default=None)
