"""Which points are alike, and what a match says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_energy, make_fingerprint
from tests.unit.cli.test_results import result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.inference import compare_values, estimate
from boardcluster.analysis.result_sets import (
    DURATION,
    ENERGY,
    INTERMEDIATE,
    POWER,
    PUBLISHED_REASON,
    MatchOutcome,
    ResultPoint,
    ResultSet,
    compare_result_sets,
    nearest_points,
    own_result_set,
)
from boardcluster.records import Disturbance, Engine, Fingerprint

SLOW = (40.0, 41.0, 42.0)
FAST = (20.0, 20.5, 21.0)


def side(name: str, *groups: tuple[tuple[float, ...], dict[str, Any]]) -> ResultSet:
    rows = [
        result(place, seconds, campaign_id=name, repetition=place + 1, **fields)
        for values, fields in groups
        for place, seconds in enumerate(values)
    ]
    return own_result_set(name, name, summarise(rows))


def published(value: float, **conditions: Any) -> ResultPoint:
    machine = conditions.pop("machine", {})
    return ResultPoint(
        quantity=DURATION,
        conditions={"workload": "grep", "engine": "spark", "workers": 4, **conditions},
        machine=machine,
        values=(value,),
        source="a paper",
    )


def test_cells_are_matched_if_all_but_the_sides_own_is_equal() -> None:
    one = side("a", (SLOW, {"profile": "p"}), (FAST, {"profile": "p", "size_bytes": 10**9}))
    other = side("b", (FAST, {"profile": "q"}), (FAST, {"profile": "q", "workers": 2}))
    found = compare_result_sets(one, other)

    assert [(row.name, row.first, row.second) for row in found.apart] == [("profile", "p", "q")]
    (match,) = found.matches
    assert match.ratio is not None
    assert match.ratio.value == pytest.approx(compare_values(SLOW, FAST).value)
    assert match.ratio.allows_for_starts
    assert match.outcome is MatchOutcome.HIGHER
    assert [point.conditions["size_bytes"] for point in found.only_first] == [10**9]
    assert [point.conditions["workers"] for point in found.only_second] == [2]


def test_sides_on_several_kernels_are_matched_kernel_by_kernel() -> None:
    """A slow kernel and a fast one; profile p is slower than q on either."""
    kernels = {"6.1": 1.0, "6.6": 0.5}

    def measured(name: str, values: tuple[float, ...], *on: str) -> ResultSet:
        groups = (
            (
                tuple(value * kernels[kernel] for value in values),
                {"profile": name, "fingerprint": make_fingerprint(kernel=kernel)},
            )
            for kernel in on
        )
        return side(name, *groups)

    one, other = measured("p", SLOW, "6.1", "6.6"), measured("q", FAST, "6.1", "6.6")
    found = compare_result_sets(one, other).matches
    assert [match.outcome for match in found] == [MatchOutcome.HIGHER] * 2
    assert [(match.first.label, match.second.label) for match in found] == [
        ("kernel 6.1", "kernel 6.1"),
        ("kernel 6.6", "kernel 6.6"),
    ]
    new = measured("q", FAST, "6.6")
    (newer,) = compare_result_sets(one, new).matches
    (turned,) = compare_result_sets(new, one).matches
    assert (newer.first.label, newer.first.mean) == ("kernel 6.6", 20.5)
    assert (turned.second.label, turned.second.mean) == ("kernel 6.6", 20.5)


def test_sides_with_several_profiles_are_matched_profile_by_profile() -> None:
    one = side("a", (SLOW, {"profile": "p"}), (FAST, {"profile": "q"}))
    other = side("b", (SLOW, {"profile": "p"}))
    found = compare_result_sets(one, other)
    assert found.apart == ()
    assert [match.first.conditions["profile"] for match in found.matches] == ["p"]
    assert found.matches[0].outcome is MatchOutcome.NOT_SHOWN


@pytest.mark.parametrize(
    "fields",
    [
        {"workload": "wordcount"},
        {"size_bytes": 10**9},
        {"input": "/data/mine.txt"},
        {"parameters": {"grep.pattern": "ORD"}},
    ],
)
def test_other_work_is_never_compared(fields: dict[str, Any]) -> None:
    found = compare_result_sets(side("a", (SLOW, {})), side("b", (FAST, fields)))
    assert found.matches == ()
    near = nearest_points(found.first, found.second)
    assert near is not None
    assert set(near[2]) == set(fields)


def test_the_faster_side_may_be_either() -> None:
    found = compare_result_sets(side("a", (FAST, {})), side("b", (SLOW, {})))
    assert found.matches[0].outcome is MatchOutcome.LOWER


def test_one_run_shows_nothing() -> None:
    found = compare_result_sets(side("a", (FAST[:1], {})), side("b", (SLOW, {})))
    (match,) = found.matches
    assert match.outcome is MatchOutcome.NO_INTERVAL
    assert match.first.interval is None
    assert match.ratio is not None
    assert match.ratio.interval is None
    assert match.ratio.reason


def test_runs_of_one_campaign_in_turn_are_paired() -> None:
    rows = [
        result(
            2 * place + turn,
            seconds,
            engine=engine,
            campaign_id="c",
            repetition=place + 1,
        )
        for turn, (engine, values) in enumerate(((Engine.SPARK, FAST), (Engine.MAPREDUCE, SLOW)))
        for place, seconds in enumerate(values)
    ]
    cells = {cell.engine: cell for cell in summarise(rows)}
    found = compare_result_sets(
        own_result_set("m", "m", [cells[Engine.MAPREDUCE]]),
        own_result_set("s", "s", [cells[Engine.SPARK]]),
    )
    (match,) = found.matches
    assert match.ratio is not None
    assert match.ratio.pairs == 3


def test_what_every_run_has_is_compared_too() -> None:
    def cells(joules: float | None) -> ResultSet:
        rows = []
        for place, seconds in enumerate(FAST):
            row = result(place, seconds, figures={"read_bytes_per_second": 5.0, "n_ratio": 1.0})
            assert row.measurement is not None
            energy = make_energy(100.0 if place else joules)
            measurement = replace(row.measurement, energy=energy, intermediate_bytes=7)
            rows.append(replace(row, measurement=measurement))
        return own_result_set("x", "x", summarise(rows))

    assert [point.quantity for point in cells(100.0).points] == [
        DURATION,
        "read_bytes_per_second",
        ENERGY,
        POWER,
        INTERMEDIATE,
    ]
    power = next(point for point in cells(100.0).points if point.quantity == POWER)
    assert power.values == tuple(100.0 / seconds for seconds in FAST)
    assert ENERGY not in {point.quantity for point in cells(None).points}


def test_intervals_of_energy_and_power_have_what_meters_may_be_wrong_by() -> None:
    rows = []
    for place, seconds in enumerate(FAST):
        row = result(place, seconds)
        assert row.measurement is not None
        energy = replace(make_energy(100.0 + place), uncertainty_joules=0.05 * (100.0 + place))
        rows.append(replace(row, measurement=replace(row.measurement, energy=energy)))
    points = {point.quantity: point for point in own_result_set("x", "x", summarise(rows)).points}
    for name in (ENERGY, POWER):
        plain = estimate(points[name].runs).interval
        interval = points[name].interval
        assert plain is not None
        assert interval is not None
        assert interval.low == pytest.approx(plain.low / 1.05)
        assert interval.high == pytest.approx(plain.high / 0.95)
    assert points[DURATION].interval == estimate(points[DURATION].runs).interval


def test_rates_are_adjusted_for_what_makes_them_smaller_and_power_for_nothing() -> None:
    """One side loses 8 to 13 % of its time to others; undisturbed, both sides are as fast."""

    def cells(name: str, shares: tuple[float, ...]) -> ResultSet:
        rows = []
        for place, share in enumerate(shares):
            seconds = 100 / (1 - share) * (1 + 0.002 * (place % 3))
            row = result(
                place,
                seconds,
                campaign_id=name,
                repetition=place + 1,
                figures={"bytes_per_second": 1e10 / seconds},
            )
            assert row.measurement is not None
            steal = Disturbance(cause="steal", node="host", share=share, adjustable=True)
            measurement = replace(
                row.measurement, disturbances=(steal,) if share else (), intermediate_bytes=7
            )
            rows.append(replace(row, measurement=measurement))
        return own_result_set(name, name, summarise(rows))

    shares = tuple(0.08 + 0.005 * (place % 11) for place in range(20))
    found = compare_result_sets(cells("a", shares), cells("b", (0.0,) * 20))
    by_quantity = {match.first.quantity: match.ratio for match in found.matches}
    for quantity in (DURATION, "bytes_per_second"):
        ratio = by_quantity[quantity]
        assert ratio is not None
        assert ratio.value == pytest.approx(1.0, abs=0.01), quantity
        assert not ratio.is_shown, quantity
    written = by_quantity[INTERMEDIATE]
    assert written is not None
    assert written.value == written.unadjusted == pytest.approx(1.0)


def test_emulated_boards_of_two_dilations_are_not_compared_with_each_other() -> None:
    def setup(quota: str, dilation: str) -> Fingerprint:
        given = f"worker1: {quota} cores of this machine as 4 of the board, link 117 Mbit/s"
        return make_fingerprint(limits=f"{given}; of a board with 4 cores{dilation}")

    def cells(profile: str, first: str, second: str) -> ResultSet:
        setups = [setup(first, "")] * 2 + [setup(second, ", dilation 20")] * 2
        rows = []
        for place, (seconds, own) in enumerate(
            zip((100.0, 101.0, 115.0, 116.0), setups, strict=True)
        ):
            row = result(place, seconds, profile=profile, repetition=place + 1, campaign_id=profile)
            assert row.attempt is not None
            rows.append(replace(row, attempt=replace(row.attempt, fingerprint=own)))
        return own_result_set(profile, profile, summarise(rows))

    found = compare_result_sets(cells("p", "0.4123", "0.1"), cells("q", "0.4151", "0.11"))
    assert len([row for row in found.matches if row.first.quantity == DURATION]) == 2


def test_a_published_number_has_no_interval_and_gets_none() -> None:
    paper = ResultSet(name="p", title="p", points=(published(20.6), published(60.0, workers=8)))
    found = compare_result_sets(side("a", (FAST, {})), paper)
    (match,) = found.matches
    assert match.second.interval is None
    assert match.ratio is not None
    assert match.ratio.interval is None
    assert match.ratio.reason == PUBLISHED_REASON
    assert match.outcome is MatchOutcome.INSIDE
    assert (
        compare_result_sets(paper, side("a", (SLOW, {}))).matches[0].outcome is MatchOutcome.OUTSIDE
    )


def test_a_paper_is_matched_strictly() -> None:
    """Sides may not differ in the engine as a whole where one of them is a paper."""
    paper = ResultSet(name="p", title="p", points=(published(20.6, engine="mapreduce"),))
    assert compare_result_sets(side("a", (FAST, {})), paper).matches == ()


def test_what_a_paper_does_not_say_matches_anything() -> None:
    conditions = {"workload": "grep", "engine": "spark"}
    point = ResultPoint(quantity=DURATION, conditions=conditions, values=(20.6,), source="a paper")
    found = compare_result_sets(
        side("a", (FAST, {}), (SLOW, {"workers": 2})),
        ResultSet(name="p", title="p", points=(point,)),
    )
    assert len(found.matches) == 2


def test_the_machine_decides_between_several_and_only_then() -> None:
    media = [
        published(10.0, machine={"storage": "ssd"}),
        published(30.0, machine={"storage": "ufs"}),
    ]
    paper = ResultSet(name="p", title="p", points=tuple(media))
    own = side("a", (FAST, {}))

    def with_medium(name: str) -> ResultSet:
        points = tuple(replace(point, machine={"storage": name}) for point in own.points)
        return replace(own, points=points)

    found = compare_result_sets(with_medium("ufs"), paper)
    assert [match.second.values for match in found.matches] == [(30.0,)]
    assert len(compare_result_sets(with_medium("tape"), paper).matches) == 2
    assert len(compare_result_sets(own, paper).matches) == 2


def test_two_papers_may_differ_in_what_they_were_narrowed_by() -> None:
    one = ResultSet(name="p", title="p", points=(published(20.0, threads="1"),))
    other = ResultSet(name="q", title="q", points=(published(5.0, threads="4"),))
    assert compare_result_sets(one, other).matches == ()
    found = compare_result_sets(one, replace(other, chosen=frozenset({"threads"})))
    assert found.matches[0].ratio is not None
    assert found.matches[0].ratio.value == 4.0
    assert found.matches[0].outcome is MatchOutcome.NO_INTERVAL


def test_what_differs_between_the_machines_is_named_in_full() -> None:
    one = side("a", (FAST, {}))
    other = side("b", (SLOW, {}))
    setups = (make_fingerprint(kernel="6.6"), make_fingerprint(java="21"))
    found = compare_result_sets(one, replace(other, fingerprints=setups))
    assert found.machines == ("kernel: 6.18.0 x86_64, 6.6", "Java: Temurin 21.0.8, 21")


def test_emulated_sides_are_known_as_such() -> None:
    assert side("a", (FAST, {})).emulated
    assert side("a", (FAST, {})).is_published is False


def test_a_mean_of_nothing_has_no_ratio() -> None:
    zero = ResultSet(name="p", title="p", points=(published(0.0),))
    (match,) = compare_result_sets(side("a", (FAST, {})), zero).matches
    assert match.ratio is None
