"""How precise a mean is, or a ratio."""

from __future__ import annotations

import math

import pytest
from tests.unit.analysis.runs import result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.inference import compare, observe, precision_of
from boardcluster.analysis.inference.sequential import anytime_quantile
from boardcluster.records import Engine


def test_the_half_width_is_that_of_the_interval() -> None:
    runs = [
        result(seconds * factor, engine=engine, position=2 * place + side, repetition=place + 1)
        for side, (engine, seconds) in enumerate(((Engine.MAPREDUCE, 40.0), (Engine.SPARK, 20.0)))
        for place, factor in enumerate((0.98, 1.0, 1.02))
    ]
    cells = summarise([*runs, result(9.0, size_bytes=5, position=9)])
    alone, mapreduce, spark = (observe(cell.results) for cell in cells)
    assert math.isinf(precision_of(alone).half_width()), "one run"
    interval = cells[1].interval_seconds
    assert interval is not None
    share = interval.half_width / cells[1].mean_seconds
    assert precision_of(mapreduce).half_width() == pytest.approx(share)
    together = precision_of(mapreduce, spark)
    assert together.half_width() == pytest.approx(0, abs=1e-9), "what both share is in no ratio"
    assert (together.count, together.starts, together.is_ratio) == (3, 1, True)


def test_a_ratios_half_width_reaches_to_its_upper_limit() -> None:
    over, under = (
        observe([result(seconds, position=place) for place, seconds in enumerate(times)])
        for times in ((9.0, 10.0, 11.0), (20.0, 21.0, 23.0))
    )
    ratio, known = compare(over, under), precision_of(over, under)
    assert ratio.interval is not None
    assert known.half_width() == pytest.approx(ratio.interval.high / ratio.value - 1)


def test_an_interval_that_holds_under_looking_is_wider() -> None:
    rows = observe([result(9.0 + place, position=place) for place in range(5)])
    known = precision_of(rows)
    assert known.half_width(anytime_quantile) > known.half_width()
    few = precision_of(rows[:3])
    assert math.isinf(few.half_width(anytime_quantile))
    assert few.deviation == pytest.approx(0.1)
