"""What the store holds, for the page: every run with its factors, one run, and its curves."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from boardcluster.analysis.bottleneck import diagnose
from boardcluster.analysis.cells import verdict_if_ok
from boardcluster.analysis.telemetry import (
    busy_cores,
    disk_rate,
    grid,
    level,
    members,
    network_rate,
    node_memory,
    rate,
    window_of,
)
from boardcluster.analysis.trust.window import Series, Window
from boardcluster.cluster.state import load_state
from boardcluster.errors import BoardclusterError, EmptySelectionError, StoreError, UsageError
from boardcluster.factors import FACTORS
from boardcluster.queries.runs import find_attempt
from boardcluster.records import Attempt, Campaign, ClusterSpec, Result, Telemetry
from boardcluster.services.declaration import read_spec
from boardcluster.services.settings import of_daemons
from boardcluster.store import Store
from boardcluster.store.samples import read_telemetry
from boardcluster.web.watching import store_stamp
from boardcluster.web.words import outcome_words, trial_title

__all__ = ["CURVES", "StoredRuns"]

_POINTS_MOST = 2000
_KEPT_RUNS = 2
"""So many runs' samples are kept for zooming; a day of eight nodes is about 50 MB."""
_BIG_SAMPLES = 200_000

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds"),
    "read": ("disk_read_bytes", "storage_read_bytes"),
    "written": ("disk_written_bytes", "storage_written_bytes"),
    "received": ("net_received_bytes",),
    "sent": ("net_sent_bytes",),
    "memory": ("group_memory_bytes",),
    "celsius": ("temperature_celsius",),
    "hertz": ("clock_measured_hertz",),
    "iowait": ("cpu_iowait_seconds",),
    "steal": ("cpu_steal_seconds",),
}
_IN_FORM = frozenset({"workload", "engine", "size_bytes", "parameters", "settings"})
"""The factors of which the form can say another level than what the cluster is."""
CURVES = tuple(_COLUMNS)
"""The curves that a run's page can draw: cores, bytes per second, bytes, °C and Hz."""


def _single(name: str) -> Callable[[Window, Series], Series | None]:
    return lambda window, edges: rate(window, name, edges)


def _state(name: str) -> Callable[[Window, Series], Series | None]:
    return lambda window, edges: (
        level(window, name, edges) if members(window, name) or name in window.columns else None
    )


_VALUES: Mapping[str, Callable[[Window, Series], Series | None]] = {
    "cpu": busy_cores,
    "read": lambda window, edges: disk_rate(window, "read", edges),
    "written": lambda window, edges: disk_rate(window, "written", edges),
    "received": lambda window, edges: network_rate(window, "received", edges),
    "sent": lambda window, edges: network_rate(window, "sent", edges),
    "memory": node_memory,
    "celsius": _state("temperature_celsius"),
    "hertz": _state("clock_measured_hertz"),
    "iowait": _single("cpu_iowait_seconds"),
    "steal": _single("cpu_steal_seconds"),
}


@dataclass(slots=True)
class StoredRuns:
    """Reads a store; what was read is kept until the store changes.

    Args:
        home: the cluster's state folder.
    """

    home: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stamp: object = None
    _table: dict[str, Any] | None = None
    _folders_stamp: object = None
    _folders: Mapping[str, str] = field(default_factory=dict)
    _samples: OrderedDict[tuple[str, str], Telemetry] = field(default_factory=OrderedDict)

    def table(self) -> dict[str, Any]:
        """Every campaign and every attempt with its factors, as JSON takes it.

        Raises:
            StoreError: the store is damaged.
        """
        stamp = store_stamp(self.home)
        with self._lock:
            if self._table is None or stamp != self._stamp:
                with Store.open(self.home, read_only=True) as store:
                    campaigns, results = store.campaigns(), store.results(all_attempts=True)
                self._table, self._stamp = _table(campaigns, results), stamp
            return self._table

    def run(self, name: str) -> dict[str, Any]:
        """One attempt: what it did, what is known of it, and what bound it.

        Raises:
            EmptySelectionError: there is no such attempt.
            UsageError: the name is none.
            StoreError: the store is damaged.
        """
        with Store.open(self.home, read_only=True, whole=False) as store:
            result, attempt = find_attempt(store, name)
            telemetry, damage = _samples(store, attempt)
            campaigns = {row.id: row for row in store.campaigns()}
        campaign = campaigns.get(result.trial.campaign_id)
        measured = result.measurement
        found: dict[str, Any] = {
            **_row(result, campaign),
            "started_utc": attempt.started_utc,
            "ended_utc": attempt.ended_utc,
            "reason": attempt.reason,
            "words": outcome_words(result),
            "machine": {
                "cpu": attempt.fingerprint.cpu,
                "kernel": attempt.fingerprint.kernel,
                "hadoop": attempt.fingerprint.hadoop,
                "spark": attempt.fingerprint.spark,
                "java": attempt.fingerprint.java,
                "nodes": attempt.fingerprint.nodes,
                "boardcluster": attempt.fingerprint.boardcluster,
            },
            "repeat": _repeat(result, self.home),
        }
        if measured is not None:
            found |= {
                "verdict_reasons": list(measured.verdict_reasons),
                "remarks": list(measured.remarks),
                "phases_seconds": measured.phases_seconds,
                "figures": measured.figures,
                "input_bytes": measured.input_bytes,
                "output_bytes": measured.output_bytes,
                "intermediate_bytes": measured.intermediate_bytes,
                "joules": measured.energy.energy_joules if measured.energy else None,
                "energy_method": measured.energy.method.value if measured.energy else None,
                "verified": None
                if measured.verification is None
                else {
                    "method": measured.verification.method,
                    "records": measured.verification.records,
                },
            }
        if telemetry is not None:
            found |= _of_samples(result, telemetry)
        if damage:
            found["remarks"] = [*found.get("remarks", ()), damage]
        return found

    def curves(
        self,
        name: str,
        curve: str,
        *,
        begin_seconds: float | None = None,
        end_seconds: float | None = None,
        points: int = 600,
    ) -> dict[str, Any]:
        """One curve of each node of a run, over all of it or a part, as means of equal steps.

        Raises:
            EmptySelectionError: there is no such run, or it has no samples.
            UsageError: there is no such curve, or the part is none.
            StoreError: the samples are damaged.
        """
        if curve not in _COLUMNS:
            raise UsageError(f"no curve {curve!r}", hint=f"known: {', '.join(CURVES)}")
        telemetry = self._telemetry(name, curve)
        begin = 0.0 if begin_seconds is None else begin_seconds
        end = telemetry.duration_seconds if end_seconds is None else end_seconds
        begin, end = max(0.0, begin), min(telemetry.duration_seconds, end)
        if not end > begin:
            raise UsageError("this part of the run is empty", hint="zoom out")
        lines: dict[str, list[float | None]] = {}
        times: list[float] = []
        part = Telemetry(
            duration_seconds=end - begin, nodes=telemetry.nodes, phases={"part": (begin, end)}
        )
        for node in telemetry.nodes:
            window = window_of(node, part, "part")
            if not times:
                edges = grid(window, most=min(_POINTS_MOST, max(10, points)))
                times = [round(float(at), 3) for at in (edges[:-1] + edges[1:]) / 2]
            values = _VALUES[curve](window, edges)
            if values is not None and not bool(np.isnan(values).all()):
                lines[node.node] = [
                    None if math.isnan(value) else float(f"{value:.5g}") for value in values
                ]
        return {
            "run": name,
            "curve": curve,
            "duration_seconds": telemetry.duration_seconds,
            "phases": {key: list(span) for key, span in telemetry.phases.items()},
            "seconds": times,
            "nodes": lines,
        }

    def _telemetry(self, name: str, curve: str) -> Telemetry:
        """The samples of a run that a curve needs, read once for several zooms."""
        with self._lock:
            found = self._samples.get((name, curve))
            if found is None:
                found = self._read(name, curve)
                self._samples[name, curve] = found
                size = sum(len(node.seconds) for node in found.nodes)
                most = _KEPT_RUNS if size > _BIG_SAMPLES else 4 * _KEPT_RUNS
                while len(self._samples) > most:
                    self._samples.popitem(last=False)
            self._samples.move_to_end((name, curve))
            return found

    def _read(self, name: str, curve: str) -> Telemetry:
        trial, _, number = name.partition("/")
        rows = self._attempts()
        if name not in rows:
            raise EmptySelectionError(f"no run {trial}/{number}", hint="go back to the table")
        found = read_telemetry(self.home / rows[name], columns=_COLUMNS[curve])
        if found is None:
            raise EmptySelectionError(f"{name} has no samples", hint="look at another run")
        return found

    def _attempts(self) -> Mapping[str, str]:
        """Folder of each attempt by its name; called with the lock held."""
        stamp = store_stamp(self.home)
        if stamp != self._folders_stamp:
            with Store.open(self.home, read_only=True, whole=False) as store:
                self._folders = {
                    row.attempt.name: row.attempt.artefacts
                    for row in store.results(all_attempts=True)
                    if row.attempt is not None
                }
            self._folders_stamp = stamp
        return self._folders


def _table(campaigns: Sequence[Campaign], results: Sequence[Result]) -> dict[str, Any]:
    known = {campaign.id: campaign for campaign in campaigns}
    factors = [
        {"name": factor.name, "label": factor.label, "unit": factor.unit}
        for factor in FACTORS
        if any(not factor.is_default(row.trial) for row in results)
    ]
    counts: dict[str, dict[str, int]] = {row.id: {} for row in campaigns}
    for row in results:
        state = row.attempt.state.value if row.attempt is not None else "pending"
        of = counts.setdefault(row.trial.campaign_id, {})
        of[state] = of.get(state, 0) + 1
    return {
        "campaigns": [
            {
                "id": row.id,
                "name": row.name,
                "kind": row.kind.value,
                "created_utc": row.created_utc,
                "cluster": row.cluster,
                "emulated": row.emulated,
                "runs": counts[row.id],
            }
            for row in campaigns
        ],
        "factors": factors,
        "runs": [
            _row(row, known.get(row.trial.campaign_id))
            for row in results
            if row.attempt is not None
        ],
    }


def _row(result: Result, campaign: Campaign | None) -> dict[str, Any]:
    trial, attempt, measured = result.trial, result.attempt, result.measurement
    assert attempt is not None  # noqa: S101  rows are made of attempts
    factors = {}
    for factor in FACTORS:
        if not factor.is_default(trial):
            value = factor.level(trial)
            factors[factor.name] = {
                "value": value if isinstance(value, int | float) else None,
                "words": factor.words_alone(value),
            }
    return {
        "run": attempt.name,
        "campaign": trial.campaign_id,
        "campaign_name": campaign.name if campaign is not None else "",
        "emulated": campaign.emulated if campaign is not None else False,
        "title": trial_title(trial),
        "factors": factors,
        "repetition": trial.repetition,
        "warm_up": trial.warm_up,
        "state": attempt.state.value,
        "verdict": verdict_if_ok(result),
        "seconds": measured.duration_seconds if measured is not None else None,
        "joules": measured.energy.energy_joules
        if measured is not None and measured.energy is not None
        else None,
        "started_utc": attempt.started_utc,
    }


def _samples(store: Store, attempt: Attempt) -> tuple[Telemetry | None, str]:
    """Return the samples of a run, and why they cannot be read: all else of it is shown."""
    try:
        return store.telemetry(attempt), ""
    except StoreError as error:
        return None, f"its samples cannot be shown: {error.message}"


def _of_samples(result: Result, telemetry: Telemetry) -> dict[str, Any]:
    found = diagnose(result, telemetry)
    spans = (found.run, *found.phases)
    return {
        "duration_seconds": telemetry.duration_seconds,
        "nodes": [node.node for node in telemetry.nodes],
        "phases": {name: list(span) for name, span in telemetry.phases.items()},
        "bottleneck": [
            {
                "phase": span.phase,
                "seconds": span.duration_seconds,
                "shares": {bound.value: round(share, 4) for bound, share in span.shares.items()},
                "first": span.first.value if span.first else None,
                "gain": _finite(span.gains.get(span.first)) if span.first else None,
                "evidence": list(span.evidence),
            }
            for span in spans
            if span.shares
        ],
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 3)


def _repeat(result: Result, home: Path) -> dict[str, Any] | None:
    """What to ask for to run the same again on this cluster.

    None where that would be something else: for the user's own programs and mixes, without a
    cluster, and for levels that neither the form can say nor the cluster has.
    """
    trial, cluster = result.trial, _cluster_of(home)
    if trial.workload == "submit" or "+" in trial.workload or cluster is None:
        return None
    as_it_is = {"workers": len(cluster.workers), "profile": cluster.profile}
    if any(
        factor.level(trial) != as_it_is.get(factor.name, factor.empty)
        for factor in FACTORS
        if factor.name not in _IN_FORM
    ):
        return None
    own = {k: v for k, v in trial.settings.items() if v != cluster.settings.get(k)}
    if of_daemons(own) or cluster.settings.keys() - trial.settings.keys():
        return None
    return {
        "workload": trial.workload,
        "engine": trial.engine.value,
        "size": f"{trial.size_bytes} B" if trial.size_bytes else "",
        "parameters": dict(trial.parameters),
        "settings": own,
    }


def _cluster_of(home: Path) -> ClusterSpec | None:
    """Return what a run from the page is on: the cluster as it is up, else as ``up`` will make it.

    None without a cluster, or if its files cannot be read.
    """
    try:
        state = load_state(home)
        # One that a campaign changed has to be returned to its declaration first.
        as_declared = state is None or state.form
        return read_spec(home / ("cluster.toml" if as_declared else "running.toml"))
    except BoardclusterError:
        return None
