"""A made-up cluster that is all arithmetic: how long a point takes follows from its values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boardcluster.records import Engine
from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Objective,
    Outcome,
    Sitting,
    TrialRecord,
    TuningRecord,
    TuningRequest,
    begin_record,
)
from boardcluster.tuning.search import SearchEnd, SearchField, Step, next_step, sizes_of
from boardcluster.tuning.space import Dimension, Tunable, params_of, settings_of_params

BASE_SETTINGS = {"a.instances": "1", "a.fraction": "0.2", "a.compiler": "slow", "a.idle": "50"}


def row(name: str, kind: str, **changes: Any) -> Dimension:
    fields: dict[str, Any] = {"values": (), "low": 0.0, "high": 0.0} | changes
    tunable = Tunable(
        name=name,
        properties=(f"a.{name}",),
        engines=(Engine.SPARK,),
        kind=kind,
        why="a test",
        **fields,
    )
    return Dimension(
        tunable=tunable, values=fields["values"], low=fields["low"], high=fields["high"]
    )


SPACE = (
    row("instances", "whole", low=1, high=32, log=True),
    row("fraction", "share", low=0.1, high=0.9, step=0.05),
    row("compiler", "choice", values=("slow", "fast")),
    row("idle", "whole", low=1, high=100),
)


def work_seconds(settings: dict[str, str]) -> float:
    """Best at 8 instances, a fraction of 0.6 and the fast compiler: 20 of the base's 60."""
    all_settings = BASE_SETTINGS | settings
    far = abs(math.log2(float(all_settings["a.instances"]) / 8))
    wrong = abs(float(all_settings["a.fraction"]) - 0.6)
    slow = 10.0 if all_settings["a.compiler"] == "slow" else 0.0
    return 20.0 + 7.0 * far + 22.5 * wrong + slow


class World:
    """Runs points; its clock is the record's."""

    def __init__(
        self,
        *,
        noise: float = 0.02,
        speed: Callable[[float], float] = lambda _: 1.0,
        fails: Callable[[dict[str, str]], bool] = lambda _: False,
        start_seconds: float = 2.0,
        times: float = 1.0,
        dilation: float = 1.0,
        loses: Callable[[TuningRecord, Step], bool] = lambda *_: False,
        fails_at: Callable[[TuningRecord, Step], bool] = lambda *_: False,
    ) -> None:
        self._fails_at = fails_at
        self._dilation = dilation
        self._loses = loses
        self._times = times
        self._noise = noise
        self._speed = speed
        self._fails = fails
        self._start_seconds = start_seconds

    def run(self, record: TuningRecord, step: Step) -> TrialRecord:
        whole, *_ = sizes_of(record.request.size_bytes)
        share = sizes_of(record.request.size_bytes)[step.rung] / whole
        draw = random.Random(f"{record.request.seed} {len(record.runs)}")
        spent = record.spent_seconds
        seconds = self._start_seconds + work_seconds(step.candidate.settings) * share * self._times
        seconds *= self._speed(spent) * math.exp(draw.gauss(0, self._noise))
        outcome, reason = Outcome.OK, ""
        if self._fails(step.candidate.settings) or self._fails_at(record, step):
            outcome, reason = Outcome.FAILED, "oom: too little"
        elif step.limit_seconds is not None and seconds > step.limit_seconds:
            outcome, seconds, reason = Outcome.STOPPED, step.limit_seconds, "stopped"
        if self._loses(record, step):
            outcome, reason = Outcome.INVALID, "node_lost: worker2"
        return TrialRecord(
            candidate=step.candidate.id,
            rung=step.rung,
            purpose=step.purpose,
            outcome=outcome,
            seconds=seconds,
            value=seconds if outcome in {Outcome.OK, Outcome.STOPPED} else 0.0,
            wall_seconds=seconds * self._dilation + 1,
            spent_seconds=spent + seconds * self._dilation + 1,
            dilation=self._dilation,
            run=f"t-{len(record.runs)}/1",
            reason=reason,
        )


def request(**changes: Any) -> TuningRequest:
    plain: dict[str, Any] = {
        "id": "20260801-120000-abcd",
        "target": "wordcount",
        "engine": Engine.SPARK,
        "objective": Objective.TIME,
        "budget_seconds": 1600.0,
        "size_bytes": 256_000_000,
        "base": "default",
        "seed": 7,
        "pairs": 5,
    }
    return TuningRequest(**{**plain, **changes})


def begin(home: Path | None = None, **changes: Any) -> TuningRecord:
    asked = request(**changes)
    record = TuningRecord(asked, write=None) if home is None else begin_record(home, asked)
    sit(record)
    return record


def sit(record: TuningRecord) -> None:
    budget_seconds = record.request.budget_seconds
    record.add(Sitting(started_utc="2026-08-01T12:00:00+00:00", budget_seconds=budget_seconds))
    if BASE not in record.candidates:
        params = params_of(SPACE, BASE_SETTINGS)
        record.add(Candidate(id=BASE, origin=BASE, settings={}, params=params))


def field(
    known: dict[str, dict[str, str]] | None = None,
    refusal_of: Callable[[Any], str] = lambda _: "",
) -> SearchField:
    rows = [
        Candidate(
            id=name,
            origin=f"profile {name}",
            settings=settings,
            params=params_of(SPACE, BASE_SETTINGS | settings),
        )
        for name, settings in (known or {}).items()
    ]
    return SearchField(space=SPACE, known=rows, refusal_of=refusal_of, checked=dict)


def search(
    record: TuningRecord, world: World, where: SearchField, *, runs_most: int = 400
) -> SearchEnd | None:
    """Search until it ends, or for so many runs; return why it ended."""
    for _ in range(runs_most):
        found = next_step(record, where, spent_seconds=record.spent_seconds)
        for gone in found.ruled_out:
            record.add(gone)
        if found.step is None:
            return found.end
        if found.step.candidate.id not in record.candidates:
            record.add(found.step.candidate)
        record.add(world.run(record, found.step))
    return None


def seconds_of(params: Any) -> float:
    return work_seconds(settings_of_params(SPACE, params))
