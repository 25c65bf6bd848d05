"""A watch in a bundle: its charts are in the report that is computed again, and after an import."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.bundle.laboratory import entries, rewritten
from tests.unit.report.watched import NAME, store_rounds, watch_record

import boardcluster as bc
from boardcluster.errors import StoreError
from boardcluster.queries.watches import watch_standing
from boardcluster.store.watches import write_watch


def test_charts_are_the_same_after_a_bundle(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    store_rounds(home, [20.0, 20.3, 19.8, 20.1, 19.9, 20.0, 41.0])
    written = bc.export_bundle(tmp_path / "night.zip", home=home)
    assert bc.recompute(written.path).differences == ()
    bc.import_bundle(written.path, home=tmp_path / "again")
    before, after = (watch_standing(place, NAME) for place in (home, tmp_path / "again"))
    assert after.cells == before.cells
    assert after.out


@pytest.mark.parametrize(
    ("field", "bad", "words"),
    [
        ('"baseline": 5', '"baseline": 1', "baseline is '1', allowed: at least 5 rounds"),
        ('"baseline": 5', '"baseline": "x"', "WatchRecord.baseline: it should be a valid integer"),
        ('"name": "watch-night"', '"name": "../../x"', "name is '../../x', allowed: 'watch-night'"),
        ("T12:00:00+00:00", "", "begun_utc is '2026-08-01', allowed: a date and time with offset"),
        ("abab", "zz", "spec_sha256 is 'zz.*', allowed: a SHA-256"),
        ('"record"', '"record', "watch-night.json"),
    ],
)
def test_a_record_that_makes_no_sense_is_not_imported(
    field: str, bad: str, words: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    store_rounds(home, [20.0, 20.3, 19.8, 20.1, 19.9, 20.0])
    written = bc.export_bundle(tmp_path / "night.zip", home=home)
    files = entries(written.path)
    [name] = [row for row in files if "/watches/" in row]
    assert field.encode() in files[name]
    files[name] = files[name].replace(field.encode(), bad.encode(), 1)
    damaged = rewritten(written.path, tmp_path / "damaged.zip", files, manifest=True)
    with pytest.raises(StoreError, match=words) as caught:
        bc.import_bundle(damaged, home=tmp_path / "again")
    assert "damaged.zip: " in caught.value.message
    assert "watches/watch-night.json: " in caught.value.message
    assert "from its authors" in caught.value.hint
    assert not (tmp_path / "again").exists()


def test_a_record_that_nobody_could_import_is_not_exported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    store_rounds(home, [20.0, 20.3])
    write_watch(home, watch_record(baseline=1))
    with pytest.raises(StoreError, match=r"watches/watch-night\.json: baseline is '1'"):
        bc.export_bundle(tmp_path / "night.zip", home=home)
    assert not (tmp_path / "night.zip").exists()
