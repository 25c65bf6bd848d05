"""Readings of meters go into one file and come back as they were."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from boardcluster.errors import StoreError
from boardcluster.records import Campaign, Coverage, Fingerprint, PowerSamples, Trial
from boardcluster.store import Store
from boardcluster.store.files import POWER_NAME
from boardcluster.store.power import read_power, write_power

GIVEN = (
    PowerSamples(
        meter="Steckdose Küche",
        coverage=Coverage.WALL,
        nodes=("master", "worker1"),
        seconds=np.array([-0.5, 0.5, 1.5]),
        watts=np.array([4.25, math.nan, 7.125]),
    ),
    PowerSamples(
        meter="pmic",
        coverage=Coverage.BOARD,
        nodes=("worker2",),
        seconds=np.array([0.1]),
        watts=np.array([2.0]),
    ),
)
METER = (
    '{"format": 1, "meters": [{"meter": "plug", "coverage": "%s", "nodes": [],'
    ' "seconds": %s, "watts": [1]}]}'
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_power(tmp_path, GIVEN)
    found = read_power(tmp_path)
    assert [(row.meter, row.coverage, row.nodes) for row in found] == [
        (row.meter, row.coverage, row.nodes) for row in GIVEN
    ]
    for given, read in zip(GIVEN, found, strict=True):
        np.testing.assert_allclose(read.seconds, given.seconds, atol=5e-4)
        np.testing.assert_allclose(read.watts, given.watts, atol=5e-5)
    assert [path.name for path in tmp_path.iterdir()] == [POWER_NAME]


def test_the_file_is_json_that_anybody_reads(tmp_path: Path) -> None:
    body = json.loads(write_power(tmp_path, GIVEN).read_text())
    assert body["meters"][0]["watts"] == [4.25, None, 7.125]


def test_no_file_is_no_reading(tmp_path: Path) -> None:
    assert read_power(tmp_path) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[" * 200_000,
        "[]",
        '{"format": 2, "meters": []}',
        '{"format": 1}',
        '{"format": 1, "meters": [{"meter": "plug"}]}',
        METER % ("wall", "[1, 2]"),
        METER % ("moon", "[1]"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / POWER_NAME).write_text(text)
    with pytest.raises(StoreError, match=POWER_NAME):
        read_power(tmp_path)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("boardcluster.store.files.put_in_place", full)
    with pytest.raises(OSError, match="No space"):
        write_power(tmp_path, GIVEN)
    assert list(tmp_path.iterdir()) == []


def test_the_store_finds_the_readings_of_an_attempt(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...], fingerprint: Fingerprint
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
        attempt = store.begin_attempt(trials[0].id, fingerprint, "2026-08-01T12:00:00+00:00")
        assert store.power_samples(attempt) == ()
        write_power(store.artefact_folder(attempt), GIVEN)
        assert [row.meter for row in store.power_samples(attempt)] == ["Steckdose Küche", "pmic"]
