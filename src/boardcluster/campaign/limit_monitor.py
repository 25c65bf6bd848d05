"""Emulated boards during a run: their limits are read back, and modelled heat slows them down.

What firmware does on a board that is too hot or has a weak supply is done here to the node's CPU
quota, once a second, by the model of twin/heat.py. Everything of it is labelled ``modelled``.
"""

from __future__ import annotations

import contextlib
import csv
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from boardcluster.catalog.lookup import find_board
from boardcluster.cluster.limits.limiter import Limiter
from boardcluster.errors import BoardclusterError, ClusterError, HostError, RemoteError
from boardcluster.fetch.cache import write_atomically
from boardcluster.records import NodeLimits, PowerModel
from boardcluster.services.operation import LiveCluster
from boardcluster.twin.heat import HeatModel, HeatState, heat_models, power_model_of, start, step

__all__ = ["HEAT_FILE", "LimitMonitor"]

HEAT_FILE = "heat-modelled.csv"
"""Artefact of a run: what the model said of each board, once a second."""

_STATE_FILE = "heat-modelled.json"
_TURN_SECONDS = 1.0
_JOIN_SECONDS = 30.0
_REASONS_MOST = 5


class _Moment(NamedTuple):
    """A row of HEAT_FILE: one board at one moment."""

    seconds: float
    """Since the run began, as on the board."""
    node: str
    """Its name."""
    celsius: float | str
    """Its temperature; empty where only its supply is modelled."""
    watts: float
    """What it draws."""
    clock_share: float
    """Of its full clock."""
    limited_by: str
    """``heat`` or ``supply``; empty where nothing slows it down."""


@dataclass(slots=True)
class _Heat:
    """The modelled heat of all boards that have a model."""

    models: Mapping[str, HeatModel]
    states: dict[str, HeatState]
    rows: list[_Moment] = field(default_factory=list)

    def shares(self) -> dict[str, float]:
        return {name: state.clock_share for name, state in self.states.items()}


def _kept_states(file: Path) -> dict[str, Any]:
    """Return what earlier runs kept of each node, with the moment; nothing of a damaged file."""
    try:
        kept = json.loads(file.read_text())
        moment = {"at": kept["at"]} if "at" in kept else {}  # of all nodes, in earlier versions
        return {name: moment | row for name, row in kept["nodes"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


class LimitMonitor:
    """Keeps watch over the limits of a cluster while a run lasts; does nothing without limits.

    Args:
        live: the cluster.
        folder: the attempt's folder of artefacts.
    """

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        self._limiter = live.limiter
        self._dilation = live.state.dilation
        self._folder = folder
        self._state_file = live.home / _STATE_FILE
        self._nodes = live.spec.nodes
        self._wrong: list[str] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = time.monotonic()
        self._kept = _kept_states(self._state_file)
        models = heat_models(live.spec.nodes) if self._limiter is not None else {}
        self._heat = _Heat(models=models, states=self._remembered(models))

    def __enter__(self) -> Self:
        if self._limiter is not None:
            self._began = time.monotonic()
            self._set(self._limiter)
            self._look(self._limiter, links=True)
            self._thread = threading.Thread(target=self._keep, args=(self._limiter,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> tuple[str, ...]:
        """Stop; return how limits were changed from outside, in one line each. Safe to repeat."""
        if self._limiter is None or self._thread is None:
            return tuple(self._wrong)
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)
        self._thread = None
        self._look(self._limiter, links=True)
        with contextlib.suppress(BoardclusterError):  # found by the look just before
            self._limiter.set_shares({})
        self._write()
        return tuple(dict.fromkeys(self._wrong))[:_REASONS_MOST]

    def remarks(self, started_seconds: float, ended_seconds: float) -> tuple[str, ...]:
        """What the model did between two moments of the monotonic clock, in one line each.

        The monitor begins with the pauses before a run, and ends after its logs were gathered.
        """
        rows = [
            row
            for row in self._heat.rows
            if started_seconds <= self._began + row.seconds * self._dilation <= ended_seconds
        ]
        turns = Counter(row.node for row in rows)
        slowed = Counter((row.node, row.limited_by) for row in rows if row.limited_by)
        return tuple(
            f"modelled: {node} was slowed down by {cause} for "
            f"{100 * count / turns[node]:.0f} % of the run"
            for (node, cause), count in slowed.items()
        )

    @property
    def limits(self) -> tuple[NodeLimits, ...]:
        """What nodes may have in this run, before heat takes its share; empty without limits."""
        return () if self._limiter is None else self._limiter.limits

    @property
    def steered(self) -> frozenset[str]:
        """Nodes whose CPU limit follows modelled heat or a modelled supply."""
        return frozenset(self._heat.models)

    @property
    def power_models(self) -> tuple[PowerModel, ...]:
        """What the boards draw by the catalog; none unless it has figures for all of them."""
        models = [
            power_model_of(find_board(node.twin.board), node.name)
            for node in self._nodes
            if node.twin is not None
        ]
        known = tuple(model for model in models if model is not None)
        return known if len(known) == len(self._nodes) else ()

    def _set(self, limiter: Limiter) -> None:
        """Set all limits: a driver that was killed while it prepared left them lifted.

        Raises:
            HostError: one cannot be set, which says nothing about the trial.
        """
        try:
            limiter.set_shares(self._heat.shares())
            limiter.set()
        except (ClusterError, RemoteError) as error:
            raise HostError(f"limits cannot be set: {error.message}", hint=error.hint) from error

    def _keep(self, limiter: Limiter) -> None:
        try:
            used = limiter.cpu_seconds()
            last = time.monotonic()
            while not self._stop.wait(_TURN_SECONDS):
                self._look(limiter, links=False)
                limiter.renew()
                now, spent = time.monotonic(), limiter.cpu_seconds()
                self._warm(limiter, used, spent, now - last)
                used, last = spent, now
        except (BoardclusterError, OSError, ValueError) as error:
            self._unread(error)

    def _look(self, limiter: Limiter, *, links: bool) -> None:
        try:
            self._wrong += limiter.changed(links=links)
        except (BoardclusterError, OSError) as error:
            self._unread(error)

    def _unread(self, error: Exception) -> None:
        self._wrong.append(f"limits cannot be read: {' '.join(str(error).split())[:200]}")

    def _warm(
        self,
        limiter: Limiter,
        used: Mapping[str, float],
        spent: Mapping[str, float],
        seconds: float,
    ) -> None:
        """Let the boards' temperatures follow what they did, and set what they may do next."""
        if not self._heat.models:
            return
        quotas = {node.node: node.cpu_cores for node in limiter.limits}
        board_seconds = (time.monotonic() - self._began) / self._dilation
        for name, model in self._heat.models.items():
            state = self._heat.states[name]
            granted = quotas[name] * state.clock_share * seconds
            busy = min(1.0, (spent[name] - used[name]) / granted)
            state = step(model, state, busy_share=busy, seconds=seconds / self._dilation)
            self._heat.states[name] = state
            self._heat.rows.append(
                _Moment(
                    seconds=round(board_seconds, 3),
                    node=name,
                    celsius="" if state.celsius is None else round(state.celsius, 2),
                    watts=round(state.watts, 3),
                    clock_share=round(state.clock_share, 4),
                    limited_by=state.limited_by,
                )
            )
        limiter.set_shares(self._heat.shares())

    def _remembered(self, models: Mapping[str, HeatModel]) -> dict[str, HeatState]:
        """Return where the boards are now: they have cooled since the last run."""
        states = {name: start(model) for name, model in models.items()}
        for name, model in models.items():
            with contextlib.suppress(ValueError, TypeError, KeyError):  # never run before
                kept = dict(self._kept[name])
                passed = max(0.0, time.time() - float(kept.pop("at")))
                state = HeatState(**kept)
                if (state.celsius is None) == (states[name].celsius is None):  # else a new model
                    seconds = passed / self._dilation
                    states[name] = step(model, state, busy_share=0.0, seconds=seconds)
        return states

    def _write(self) -> None:
        if not self._heat.rows:
            return
        with (self._folder / HEAT_FILE).open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(_Moment._fields)
            rows.writerows(self._heat.rows)
        now = {"at": time.time()}
        own = {name: now | asdict(state) for name, state in self._heat.states.items()}
        # Of nodes that this variant of the cluster lacks, what was known stays.
        write_atomically(self._state_file, json.dumps({"nodes": {**self._kept, **own}}))
