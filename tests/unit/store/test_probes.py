"""Runs of probes in the store: read back, kept, refused, and found again after damage."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_probe_run

from boardcluster.errors import StoreError
from boardcluster.records import Disturbance, ProbeFigure, ProbeMode, ProbeRun, Verdict
from boardcluster.store import Store, files, probes, rebuild
from boardcluster.store.probes import probe_path

FIGURES = (
    ProbeFigure(name="a_mips", value=2.5, conditions={"threads": "1", "ü": "4"}),
    ProbeFigure(name="a_mips", value=-5.25, conditions={"threads": "2"}),
    ProbeFigure(name="b_seconds", value=1e300),
)
RUN = make_probe_run(
    "iperf3",
    id="20260801-120000-123abcd",
    mode=ProbeMode.PAPER,
    node="pi1",
    peer="pi2",
    duration_seconds=9.5,
    cluster="lab",
    emulated=True,
    versions=("iperf 3.12", "tool ü"),
    hardware="pi1: a machine",
    figures=FIGURES,
    verdict=Verdict.TAINTED,
    verdict_reasons=("pi1: slow",),
    disturbances=(Disturbance(cause="steal", node="pi1", share=0.25, adjustable=True),),
)
FAILED = replace(RUN, id="20260801-130000-1", figures=(), reason="it hung", versions=())


def test_the_tests_record_leaves_no_field_at_its_default() -> None:
    for field in fields(ProbeRun):
        assert field.name == "reason" or getattr(RUN, field.name) != field.default, field.name


def test_runs_read_back_as_they_were_written(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_probe_run(FAILED)
        store.add_probe_run(replace(RUN, started_utc="2026-07-01T12:00:00+00:00"))
    with Store.open(tmp_path, read_only=True) as store:
        older, newer = store.probe_runs()
        assert newer == FAILED
        assert older == replace(RUN, started_utc="2026-07-01T12:00:00+00:00")
        assert store.probe_runs(node="pi1", probe="iperf3") == (older, newer)
        assert store.probe_runs(node="pi2") == store.probe_runs(probe="fio") == ()


def test_a_store_without_runs_has_none(tmp_path: Path) -> None:
    with Store.open(tmp_path, read_only=True) as store:
        assert store.probe_runs() == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"figures": ()},
        {"reason": "it hung"},
        {"duration_seconds": -1.0},
        {"duration_seconds": float("nan")},
        {"figures": (replace(FIGURES[0], value=float("inf")),)},
        {"id": "../escape"},
        {"figures": (FIGURES[0], FIGURES[0])},
    ],
)
def test_what_cannot_be_a_run_is_refused_whole(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError):
            store.add_probe_run(replace(RUN, **wrong))
        assert store.probe_runs() == ()
    assert not list(tmp_path.rglob("*.json"))


def test_a_run_is_never_overwritten_changed_or_deleted(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_probe_run(RUN)
        with pytest.raises(StoreError):
            store.add_probe_run(replace(RUN, node="other"))
        assert store.probe_runs() == (RUN,)
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="never overwritten"):
        connection.execute("UPDATE probe_runs SET reason = 'x'")
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        connection.execute("DELETE FROM probe_runs")
    connection.close()


def test_a_damaged_store_is_made_anew_with_its_probes(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_probe_run(RUN)
        store.add_probe_run(FAILED)
    (tmp_path / "store.sqlite").write_bytes(b"\xff" * 5000)
    rebuild(tmp_path)
    with Store.open(tmp_path, read_only=True) as store:
        assert store.probe_runs() == (RUN, FAILED)


def test_a_run_whose_rows_were_lost_in_a_crash_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CrashError(Exception):
        pass

    def crash(home: Path, run: ProbeRun) -> None:
        probes.write_probe_run(home, run)
        raise CrashError

    with Store.open(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr("boardcluster.store.database.write_probe_run", crash)
            with pytest.raises(CrashError):
                store.add_probe_run(RUN)
        assert store.probe_runs() == ()
        store.add_probe_run(FAILED)
        assert store.probe_runs() == (RUN, FAILED)


@pytest.mark.parametrize("text", ["", "{}", '{"format": 99, "record": {}}', "[1]", "renamed"])
def test_a_file_that_is_no_run_is_named_and_left(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Store.open(tmp_path) as store:
        store.add_probe_run(RUN)
    other = probe_path(tmp_path, "20260801-120000-other")
    whole = probe_path(tmp_path, RUN.id).read_text()
    assert json.loads(whole)["format"] == 1
    other.write_text(whole if text == "renamed" else text)
    with caplog.at_level(logging.WARNING):
        rebuild(tmp_path)
    assert other.name in caplog.text
    assert other.exists()
    with Store.open(tmp_path, read_only=True) as store:
        assert store.probe_runs() == (RUN,)


def test_no_file_is_left_by_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "put_in_place", full)
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError, match="No space"):
            store.add_probe_run(RUN)
        assert store.probe_runs() == ()
    assert list((tmp_path / "probes").iterdir()) == []
