"""A watch in a bundle: its charts are in the report that is computed again, and after an import."""

from __future__ import annotations

from pathlib import Path

from tests.unit.report.watched import NAME, store_rounds

import boardcluster as bc
from boardcluster.queries.watches import watch_standing


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
