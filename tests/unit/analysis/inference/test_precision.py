"""How precise a campaign is."""

from __future__ import annotations

import pytest
from tests.unit.analysis.runs import result

from boardcluster.analysis import summarise
from boardcluster.analysis.inference import half_width, half_widths, observe
from boardcluster.records import Engine


def test_half_widths_of_means_and_of_engines() -> None:
    runs = [
        result(seconds * factor, engine=engine, position=2 * place + side, repetition=place + 1)
        for side, (engine, seconds) in enumerate(((Engine.MAPREDUCE, 40.0), (Engine.SPARK, 20.0)))
        for place, factor in enumerate((0.98, 1.0, 1.02))
    ]
    cells = summarise([*runs, result(9.0, size_bytes=5, position=9)])
    found = half_widths(cells)
    assert [len(row.cells) for row in found] == [1, 1, 1, 2]
    assert found[0].share is None, "one run"
    interval = cells[1].interval_seconds
    assert interval is not None
    assert found[1].share == pytest.approx(interval.half_width / cells[1].mean_seconds)
    assert found[3].share == pytest.approx(0, abs=1e-9), "what both share is in no ratio"


def test_a_higher_confidence_is_wider() -> None:
    rows = observe([result(seconds, position=place) for place, seconds in enumerate((9, 10, 11))])
    narrow, wide = half_width(rows), half_width(rows, confidence=0.99)
    assert narrow is not None
    assert wide is not None
    assert wide > narrow
