"""Which own runs a plan learns from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign, make_fingerprint, make_measurement, make_trial, store_run

from boardcluster.plan.learning import learn
from boardcluster.plan.observations import RunObservation
from boardcluster.queries import plan_model
from boardcluster.records import PlannedFault, Variant
from boardcluster.services.containers import copies_of_profile
from boardcluster.store import Store
from boardcluster.workloads import parameter_defaults

BOARD, MEDIUM = "rpi-4b-4gb-1500mhz", "samsung-ufs-256gb"


def learned_from(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunObservation]:
    """Return the own runs that a plan of TeraSort learns from."""
    found: list[RunObservation] = []

    def note(*parts: Any, own: Any) -> Any:
        found.extend(run for runs in own.values() for run in runs)
        return learn(*parts, own=own)

    monkeypatch.setattr(plan_model, "learn", note)
    defaults = parameter_defaults("terasort")
    plan_model.learn_for_plan(
        home, "terasort", [BOARD], [MEDIUM], defaults=defaults, copies_of=copies_of_profile
    )
    return found


@pytest.mark.parametrize(
    "other",
    [
        {"variant": Variant.TEXTBOOK},
        {"fault": PlannedFault.KILL},
        {"parameters": {"terasort.reduces": "8"}},
        {"settings": {"dfs.blocksize": "64m"}},
    ],
)
def test_a_plan_learns_from_runs_of_the_usual_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    """However many there are of another."""
    usual = make_trial("terasort", id="t0", campaign_id=make_campaign().id, size_bytes=10**9)
    others = [replace(usual, id=f"t{place}", position=place, **other) for place in (1, 2, 3)]
    stands_for = make_fingerprint(twin=f"5 x {BOARD} with {MEDIUM}")
    with Store.open(tmp_path) as store:
        store.add_campaign(make_campaign(), [usual, *others])
        for trial in (usual, *others):
            store_run(store, trial, make_measurement(30.0), fingerprint=stands_for)
    assert [run.source for run in learned_from(tmp_path, monkeypatch)] == ["t0/1"]


def test_a_run_kept_the_copies_of_its_own_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_trial(
        "terasort",
        campaign_id=make_campaign().id,
        size_bytes=10**9,
        workers=4,
        profile="paper-2026",
    )
    stands_for = make_fingerprint(twin=f"5 x {BOARD} with {MEDIUM}")
    with Store.open(tmp_path) as store:
        store.add_campaign(make_campaign(), [trial])
        store_run(store, trial, make_measurement(30.0), fingerprint=stands_for)
    assert [run.replication for run in learned_from(tmp_path, monkeypatch)] == [1]
