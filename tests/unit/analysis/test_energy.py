"""Energy from the readings of meters, from a model, and its level."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_power, make_samples

from boardcluster.analysis.energy import (
    Instrument,
    Integral,
    Trace,
    Trouble,
    busy_cores,
    core_span,
    energy_of_run,
    gap_limit_seconds,
    idle_power,
    integrate,
    model_power,
    sum_energy,
    undilated_energy,
)
from boardcluster.records import (
    Coverage,
    EnergyMethod,
    NodeSamples,
    Power,
    PowerModel,
    Telemetry,
)


def trace(
    seconds: list[float],
    watts: list[float] | None = None,
    counted: list[float] | None = None,
    *,
    interval: float = 1.0,
    wraps: float | None = None,
    troubles: tuple[Trouble, ...] = (),
) -> Trace:
    nothing = [math.nan] * len(seconds)
    return Trace(
        seconds=np.array(seconds, dtype=np.float64),
        watts=np.array(nothing if watts is None else watts, dtype=np.float64),
        counted_joules=np.array(nothing if counted is None else counted, dtype=np.float64),
        interval_seconds=interval,
        wraps_at_joules=wraps,
        troubles=troubles,
    )


def over(row: Trace, ended: float = 60.0, load: tuple[list[float], list[float]] | None = None):  # type: ignore[no-untyped-def]
    shares = (np.array(load[0]), np.array(load[1])) if load else None
    return integrate(row, started_seconds=0.0, ended_seconds=ended, load=shares)


def each(start: float, end: float, step: float = 1.0) -> list[float]:
    return [float(second) for second in np.arange(start, end + step / 2, step)]


# Integration


def test_a_ramp_is_integrated_exactly_and_the_ends_are_read_off_the_line() -> None:
    at = each(-0.5, 60.5)
    found = over(trace(at, [10 + second for second in at]))
    assert found.energy_joules == pytest.approx(10 * 60 + 60**2 / 2)
    assert found.mean_watts == pytest.approx(40)
    assert found.most_watts == 69.5
    assert found.readings == 60
    assert found.rate_hertz == pytest.approx(1.0)
    assert (found.remarks, found.reason) == ((), "")


def test_beyond_the_first_and_last_reading_the_power_is_theirs() -> None:
    found = over(trace([2.0, 8.0], [10.0, 20.0]), ended=10.0)
    assert found.energy_joules == pytest.approx(2 * 10 + 6 * 15 + 2 * 20)


def test_a_run_between_two_readings_has_energy_but_few_readings() -> None:
    found = over(trace([-1.0, 1.0], [10.0, 10.0]), ended=0.5)
    assert found.energy_joules == pytest.approx(5.0)
    assert (found.readings, found.rate_hertz) == (0, 0.0)


def test_the_order_of_readings_does_not_matter() -> None:
    at = each(0, 60)
    assert over(trace(at[::-1], [5.0] * 61)).energy_joules == pytest.approx(300)


def test_no_reading_at_all() -> None:
    told = (Trouble(seconds=3, text="http://plug cannot be asked: No route to host"),)
    found = over(trace([], [], troubles=told))
    assert found.energy_joules is None
    assert found.mean_watts is found.most_watts is None
    assert found.reason == "it gave no reading: http://plug cannot be asked: No route to host"


def test_a_meter_that_goes_away_in_mid_run() -> None:
    at = each(0, 20)
    told = (Trouble(seconds=21, text="timed out"), Trouble(seconds=55, text="no route"))
    found = over(trace(at, [5.0] * 21, troubles=told))
    assert found.energy_joules is None
    assert found.reason == "it was silent from 20 s to 60 s of the run: no route"
    assert found.readings == 21


def test_a_meter_that_comes_back_too_late() -> None:
    at = [*each(0, 20), *each(40, 60)]
    found = over(trace(at, [5.0] * len(at)))
    assert found.energy_joules is None
    assert found.reason == "it was silent from 20 s to 40 s of the run"


def test_a_meter_that_comes_back_in_time_is_bridged_and_said() -> None:
    at = [*each(0, 20), *each(29, 60)]
    told = (Trouble(seconds=22, text="timed out"), Trouble(seconds=24, text="timed out"))
    found = over(trace(at, [5 + 0.1 * (second % 2) for second in at], troubles=told))
    assert found.energy_joules == pytest.approx(303, abs=1)
    words = "it failed to answer 2 times, first at 22 s of the run, and recovered: timed out"
    assert found.remarks == (words,)


def test_the_longest_hole_follows_the_interval() -> None:
    assert gap_limit_seconds(1.0) == 10.0
    assert gap_limit_seconds(60.0) == 180.0
    at = each(0, 600, 100)
    assert over(trace(at, [5.0] * 7, interval=60.0), ended=600).energy_joules == pytest.approx(3000)


def test_readings_long_before_the_run_do_not_cover_it() -> None:
    found = over(trace(each(-300, -100), [5.0] * 201))
    assert found.energy_joules is None
    assert found.reason == "it gave no reading"


# Odd readings


def test_negative_readings_are_left_out_and_said() -> None:
    watts = [5.0] * 61
    watts[10] = watts[11] = -40.0
    found = over(trace(each(0, 60), watts))
    assert found.energy_joules == pytest.approx(300)
    assert "2 of 61 readings were negative, down to -40.0 W" in found.remarks[0]


def test_a_sensor_the_wrong_way_round_gives_no_energy() -> None:
    found = over(trace(each(0, 60), [-5.0] * 61))
    assert found.energy_joules is None
    assert "a reversed sensor" in found.remarks[0]


def test_noise_around_zero_is_no_sensor_the_wrong_way_round() -> None:
    found = over(trace(each(0, 60), [-0.1] * 61))
    assert found.energy_joules == 0
    assert not found.remarks[:-1]


def test_infinite_readings_are_left_out() -> None:
    watts = [5.0] * 61
    watts[3] = math.inf
    assert over(trace(each(0, 60), watts)).energy_joules == pytest.approx(300)


def test_a_frozen_meter_is_found_by_the_load() -> None:
    at = each(0, 200)
    row = trace(at, [5.0 + 0.1 * (second % 3) if second < 50 else 7.0 for second in at])
    changing = (each(0, 200), [0.1 if second < 120 else 0.9 for second in at])
    (words,) = over(row, 200.0, changing).remarks
    assert words == (
        "it showed exactly 7 W for 150 s while 10% to 90% of the cores were busy: it is frozen"
    )
    steady = (each(0, 200), [0.5] * 201)
    assert over(row, 200.0, steady).remarks == ()
    assert over(row, 200.0).remarks == ("it showed exactly 7 W for 150 s: it may be frozen",)


def test_a_value_that_stays_for_half_a_minute_is_not_frozen() -> None:
    assert over(trace(each(0, 40), [26.0] * 41), 40.0).remarks == ()


# Counts


def test_a_count_alone_is_read_at_the_ends_of_the_run() -> None:
    at = each(-1, 61)
    found = over(trace(at, counted=[1000 + 12 * second for second in at]))
    assert found.energy_joules == pytest.approx(720)
    assert found.most_watts == pytest.approx(12)


def test_a_count_that_wraps_is_undone_and_said() -> None:
    at = each(0, 60)
    counted = [(262_000 + 12 * second) % 262_143.328850 for second in at]
    found = over(trace(at, counted=counted, wraps=262_143.328850))
    assert found.energy_joules == pytest.approx(720)
    assert found.remarks == ("its energy counter wrapped at 12 s of the run; corrected",)


def test_a_count_that_is_set_back_gives_no_energy() -> None:
    at = each(0, 60)
    counted = [5000 + 12 * second if second < 30 else 12 * (second - 30) for second in at]
    found = over(trace(at, counted=counted))
    assert found.energy_joules is None
    assert found.reason == "its energy counter was reset at 30 s of the run"


def test_a_reboot_is_not_taken_for_a_wrap() -> None:
    at = each(0, 60)
    counted = [5000 + 12 * second if second < 30 else 12 * (second - 30) for second in at]
    found = over(trace(at, counted=counted, wraps=262_143.0))
    assert found.energy_joules is None
    assert "was reset at 30 s" in found.reason


def test_a_count_that_is_set_back_is_bridged_by_power() -> None:
    at = each(0, 60)
    counted = [5000 + 12 * second if second < 30 else 12 * (second - 30) for second in at]
    found = over(trace(at, [12.0] * 61, counted))
    assert found.energy_joules == pytest.approx(720)
    assert "its energy counter was reset at 30 s of the run; its power is used" in found.remarks[0]


def test_a_count_that_jumps_is_bridged_or_given_up() -> None:
    at = each(0, 60)
    counted = [12 * second + (1e6 if second >= 30 else 0) for second in at]
    found = over(trace(at, [12.0] * 61, counted))
    assert found.energy_joules == pytest.approx(720)
    assert "its energy counter jumped by 1000012 J at 30 s" in found.remarks[0]
    alone = over(trace(at, counted=counted))
    assert alone.energy_joules is None
    assert "jumped" in alone.reason


def test_a_coarse_count_leaves_it_to_the_power() -> None:
    at = each(0, 60)
    counted = [3600.0 * math.floor(30 * second / 3600) for second in at]  # in steps of 1 Wh
    found = over(trace(at, [30.0] * 61, counted))
    assert found.energy_joules == pytest.approx(1800)
    assert not found.counted


@pytest.mark.parametrize(("step", "watts"), [(3600.0, 60.0), (60.0, 5.0)])
def test_steps_of_a_count_that_is_fine_for_a_long_run_are_no_jumps(
    step: float, watts: float
) -> None:
    """Each step is the energy since the one before, not that of the second in which it shows."""
    at = each(-5, 10_005)
    counted = [step * math.floor(watts * (second + 70) / step) for second in at]
    drawn = [watts + 0.01 * (second % 3) for second in at]
    found = over(trace(at, drawn, counted), ended=10_000.0)
    assert found.counted
    assert found.energy_joules == pytest.approx(watts * 10_000, abs=step)
    assert found.remarks == ()
    alone = over(trace(at, counted=counted), ended=10_000.0)
    assert alone.energy_joules == pytest.approx(watts * 10_000, abs=step)
    assert alone.most_watts == pytest.approx(watts, rel=0.2)
    assert alone.remarks == ()


@pytest.mark.parametrize("back", [1605, 1607, 1609, 1610])
def test_a_step_during_a_silence_is_no_jump(back: int) -> None:
    """Where the step after it comes soon, it is not the energy of those few seconds."""
    at = [second for second in each(-5, 20_005) if not 1000 < second < back]
    counted = [3600.0 * math.floor(60 * (second + 70) / 3600) for second in at]
    found = over(trace(at, [60 + 0.01 * (second % 3) for second in at], counted), ended=20_000.0)
    assert found.counted
    assert found.energy_joules == pytest.approx(60 * 20_000, abs=3600)
    assert not [row for row in found.remarks if "jumped" in row]


def test_of_a_count_that_is_not_used_nothing_is_said() -> None:
    at = each(0, 60)
    counted = [3600.0 * (second >= 5) for second in at]
    found = over(trace(at, [29.0 + second % 3 for second in at], counted))
    assert found.energy_joules == pytest.approx(1800, rel=0.01)
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (0.0, "its energy counter did not move during the run"),
        (3600.0, "its energy counter moves in steps that are too large for the run"),
    ],
)
def test_a_coarse_count_without_power_tells_nothing(last: float, reason: str) -> None:
    at = each(0, 60)
    found = over(trace(at, counted=[7200.0 + last * (second > 40) for second in at]))
    assert (found.energy_joules, found.reason) == (None, reason)
    assert not found.counted


def test_two_counts_of_one_second_are_no_jump() -> None:
    """A logger that writes whole seconds has two lines of some of them, and none of others."""
    at = [10.0 if second == 11 else second for second in each(-1, 61)]
    found = over(trace(at, counted=[12 * second for second in each(-1, 61)]))
    assert found.energy_joules == pytest.approx(720)
    assert found.most_watts is not None
    assert found.most_watts <= 24


def test_a_count_alone_is_enough_for_a_short_run() -> None:
    found = over(trace(each(-1, 5), counted=[12.0 * second for second in each(9, 15)]), ended=4.0)
    assert found.energy_joules == pytest.approx(48)


def test_a_fine_count_sees_what_lay_between_the_readings() -> None:
    at = each(0, 60)
    found = over(trace(at, [10.0] * 61, [10.4 * second for second in at]))
    assert found.energy_joules == pytest.approx(624)
    assert found.counted


def test_a_count_that_contradicts_the_power_is_said() -> None:
    at = each(0, 60)
    found = over(trace(at, [10.0] * 61, [20 * second for second in at]))
    assert "its energy counter says 1200 J, its power adds up to 600 J" in found.remarks


def test_a_count_goes_on_while_the_meter_is_away() -> None:
    at = [*each(0, 20), *each(40, 60)]
    found = over(trace(at, [10.0] * len(at), [10 * second for second in at]))
    assert found.energy_joules == pytest.approx(600)
    assert (
        "silent from 20 s to 40 s of the run; its own energy counter kept counting"
        in found.remarks[0]
    )


def test_a_coarse_count_does_not_bridge_a_silence() -> None:
    at = [*each(0, 20), *each(40, 60)]
    for counted in ([18.0] * len(at), [3600.0 * (second > 30) for second in at]):
        found = over(trace(at, [10.0] * len(at), counted))
        assert found.energy_joules is None
        assert found.reason == "it was silent from 20 s to 40 s of the run"


# Modelled


def samples(node: str, busy: list[float], *, cores: int = 4, first: float = 1.0) -> NodeSamples:
    return make_samples(
        node,
        cores=cores,
        seconds=np.arange(first, first + len(busy)),
        columns={
            "cpu_user_seconds": np.array(busy) * 0.75,
            "cpu_system_seconds": np.array(busy) * 0.25,
            "cpu_idle_seconds": cores - np.array(busy),
        },
    )


MODEL = PowerModel(node="pi0", idle_watts=2.7, stress_watts=6.7)


def test_modelled_power_lies_between_idle_and_stress() -> None:
    row = samples("pi0", [0.0] * 30 + [4.0] * 20 + [2.0] * 10)
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(row,)))
    assert power.energy_joules == pytest.approx(30 * 2.7 + 20 * 6.7 + 10 * 4.7)
    assert power.method is EnergyMethod.MODELLED
    assert power.most_watts == pytest.approx(6.7)
    assert "modelled" in power.accuracy
    assert power.remarks == ("modelled from 2.7 W idle, 6.7 W under stress and 42% utilisation",)


def test_modelled_power_counts_only_the_run() -> None:
    row = samples("pi0", [4.0] * 10 + [0.0] * 60 + [4.0] * 10, first=-9.0)
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(row,)))
    assert power.energy_joules == pytest.approx(60 * 2.7)


def rarely(node: str, busy: list[float], *, every: int = 3, scope: str = "node") -> NodeSamples:
    """CPU times of processes that are looked at in one sample of three; each covers all three."""
    cpu = np.full(every * len(busy) + 1, math.nan)
    cpu[every::every] = every * np.array(busy)
    return make_samples(
        node,
        scope=scope,
        seconds=np.arange(len(cpu)),
        columns={"cpu_user_seconds": cpu * 0.75, "cpu_system_seconds": cpu * 0.25},
    )


def test_an_amount_that_is_read_rarely_covers_all_the_time_since_the_reading_before() -> None:
    row = rarely("pi0", [0.0] * 10 + [4.0] * 10)
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(row,)))
    assert power.reason == ""
    assert power.energy_joules == pytest.approx(30 * 2.7 + 30 * 6.7)
    assert power.most_watts == pytest.approx(6.7)
    assert power.readings == 20
    assert power.remarks == ("modelled from 2.7 W idle, 6.7 W under stress and 50% utilisation",)


def test_of_an_amount_only_what_lies_in_the_run_counts() -> None:
    row = rarely("pi0", [0.0] * 5 + [2.0] * 15)
    (power,) = model_power([MODEL], Telemetry(duration_seconds=58.0, nodes=(row,)))
    assert power.energy_joules == pytest.approx(15 * 2.7 + 43 * 4.7)


def test_more_cpu_than_the_node_has_cores_is_said() -> None:
    row = rarely("pi0", [2.0] * 10 + [6.0] * 10)
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(row,)))
    assert power.energy_joules == pytest.approx(30 * 4.7 + 30 * 6.7)
    assert power.remarks[1] == (
        "it used 60.0 s more CPU time than its 4 cores have; the model has no power for that "
        "and ignores it"
    )
    little = rarely("pi0", [4.0] * 19 + [4.04])
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(little,)))
    assert len(power.remarks) == 1


def test_an_emulated_board_is_busy_when_its_quota_is_used_up() -> None:
    row = rarely("pi0", [0.0] * 10 + [0.1] * 5 + [0.2] * 5)
    seen = Telemetry(duration_seconds=60.0, nodes=(row,))
    (power,) = model_power([MODEL], seen, capacity_cores={"pi0": 0.2})
    assert power.energy_joules == pytest.approx(30 * 2.7 + 15 * 4.7 + 15 * 6.7)
    assert power.most_watts == pytest.approx(6.7)
    assert power.remarks == ("modelled from 2.7 W idle, 6.7 W under stress and 38% utilisation",)
    # of another node's quota nothing follows for this one: it has four cores
    (other,) = model_power([MODEL], seen, capacity_cores={"pi1": 0.2})
    assert other.energy_joules == pytest.approx(30 * 2.7 + 15 * 2.8 + 15 * 2.9)


@pytest.mark.parametrize(("used", "said"), [(0.204, False), (0.3, True)])
def test_more_cpu_than_a_quota_is_said(*, used: float, said: bool) -> None:
    seen = Telemetry(duration_seconds=60.0, nodes=(rarely("pi0", [used] * 20),))
    (power,) = model_power([MODEL], seen, capacity_cores={"pi0": 0.2})
    assert power.energy_joules == pytest.approx(60 * 6.7)
    more = (
        "it used 6.0 s more CPU time than its quota of 0.2 cores has; the model has no power "
        "for that and ignores it"
    )
    assert power.remarks[1:] == ((more,) if said else ())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (samples("pi1", [0.0] * 60), "no telemetry of pi0"),
        (samples("pi0", [0.0] * 30), "cover only 30 s of 60 s"),
        (samples("pi0", [math.nan] * 60), "cover only 0 s of 60 s"),
        (samples("pi0", []), "no telemetry of pi0"),
    ],
)
def test_modelled_power_without_telemetry_is_none(row: NodeSamples, words: str) -> None:
    (power,) = model_power([MODEL], Telemetry(duration_seconds=60.0, nodes=(row,)))
    assert power.energy_joules is None
    assert words in power.reason
    assert "modelled" in power.reason


def test_busy_cores_are_those_of_the_nodes_that_are_asked_for() -> None:
    telemetry = Telemetry(
        duration_seconds=3.0, nodes=(samples("pi0", [4.0] * 3), samples("pi1", [0.0] * 3))
    )
    assert busy_cores(telemetry, ["pi0"])[1] == pytest.approx([1.0] * 3)
    assert busy_cores(telemetry, ["pi0", "pi1"])[1] == pytest.approx([0.5] * 3)
    assert len(busy_cores(telemetry, ["pi9"])[0]) == 0


def test_busy_cores_of_nodes_that_are_read_rarely() -> None:
    telemetry = Telemetry(
        duration_seconds=30.0,
        nodes=(rarely("pi0", [1.0] * 5 + [3.0] * 5), rarely("pi1", [1.0] * 6, every=5)),
    )
    at, share = busy_cores(telemetry, ["pi0", "pi1"])
    assert at == pytest.approx(np.arange(3.0, 31.0, 3.0))
    assert share == pytest.approx([2 / 8] * 5 + [4 / 8] * 5)
    silent = replace(telemetry.nodes[1], columns={})
    assert len(busy_cores(replace(telemetry, nodes=(telemetry.nodes[0], silent)), ["pi1"])[0]) == 0


def test_a_machine_holds_its_emulated_nodes_already() -> None:
    machine = rarely("host", [2.0] * 10, scope="machine")
    telemetry = Telemetry(duration_seconds=30.0, nodes=(rarely("pi0", [1.0] * 10), machine))
    assert busy_cores(telemetry, ["pi0", "host"])[1] == pytest.approx([0.5] * 10)


def test_a_steady_load_that_is_read_rarely_does_not_make_a_meter_frozen() -> None:
    at = each(0, 120)
    load = busy_cores(
        Telemetry(duration_seconds=120.0, nodes=(rarely("pi0", [1.0] * 40),)), ["pi0"]
    )
    found = integrate(trace(at, [7.0] * 121), started_seconds=0.0, ended_seconds=120.0, load=load)
    assert found.remarks == ()


# The whole cluster


def power(name: str, nodes: str, joules: float | None = 100.0, **more: object) -> Power:
    own = {"meter": name, "nodes": tuple(nodes.split()), "switch": False, "readings": 60}
    own |= {"idle_watts": 2.0}
    return make_power(joules, **(own | more))


GOOD = Instrument(integrates=True, accuracy_percent=0.5)


def summed(*powers: Power, nodes: str = "a b", **instruments: Instrument):  # type: ignore[no-untyped-def]
    known = {row.meter: GOOD for row in powers} | instruments
    return sum_energy(powers, nodes=nodes.split(), instruments=known)


def test_nothing_to_measure_with_is_no_energy() -> None:
    assert summed() is None


def test_meters_of_all_nodes_add_up() -> None:
    found = summed(power("p", "a", 100), power("q", "b", 50), power("s", "", 7, switch=True))
    assert found.energy_joules == 157
    assert found.method is EnergyMethod.METERED
    assert (found.level, found.level_reason) == (3, "the highest")


def test_one_meter_for_all_with_the_switch() -> None:
    found = summed(power("p", "a b", switch=True))
    assert (found.energy_joules, found.level) == (100, 3)


@pytest.mark.parametrize(
    ("powers", "reason"),
    [
        ([power("p", "a")], "no meter covers b"),
        ([power("p", "a b", None)], "p: it was silent"),
        ([power("p", "a b"), power("q", "b")], "b is measured twice, by p and q"),
        ([power("p", "a b c")], "p also measures c, which took no part in the run"),
        (
            [power("p", "a"), power("q", "b", coverage=Coverage.PACKAGE)],
            (
                "q sees only the processor's package, other meters see whole nodes; they cannot be"
                " added up"
            ),
        ),
        (
            [power("p", "a"), power("q", "a b", coverage=Coverage.NODE)],
            "q measures nodes that p also measures",
        ),
        (
            [power("p", "a b", switch=True), power("q", "", switch=True)],
            "the switch is measured twice, by p and q",
        ),
        (
            [power("p", "a", switch=True), power("q", "b", switch=True)],
            "the switch is measured twice, by p and q",
        ),
        (
            [
                power("poe", "a b", coverage=Coverage.PORT),
                power("plug", "", 40, switch=True),
            ],
            "plug measures the switch, and its plug also feeds the boards that poe measures",
        ),
        (
            [
                power("poe", "b", coverage=Coverage.PORT),
                power("plug", "a", 40, switch=True),
            ],
            "plug measures the switch, and its plug also feeds the boards that poe measures",
        ),
    ],
)
def test_there_is_no_sum_unless_every_node_is_covered_once(
    powers: list[Power], reason: str
) -> None:
    found = summed(*powers)
    assert found.energy_joules is None
    assert found.reason == reason
    assert found.level == 0
    assert found.powers == tuple(powers)


def test_the_meter_that_sees_more_counts() -> None:
    inner = power("cpu", "a", 20, coverage=Coverage.PACKAGE)
    found = summed(power("p", "a b"), inner)
    assert found.energy_joules == 100
    assert inner in found.powers


def test_a_port_meter_behind_the_plug_of_everything_is_not_added() -> None:
    inner = power("poe", "a b", 60, coverage=Coverage.PORT)
    assert summed(power("p", "a b", switch=True), inner).energy_joules == 100


def test_a_failed_plug_is_not_replaced_by_a_meter_that_sees_less() -> None:
    inner = power("cpu", "a b", 20, coverage=Coverage.PACKAGE)
    assert summed(power("p", "a b", None), inner).energy_joules is None


def test_modelled_nodes_fill_in_and_are_labelled() -> None:
    model = power("model of b", "b", 30, method=EnergyMethod.MODELLED)
    twice = power("model of a", "a", 31, method=EnergyMethod.MODELLED)
    found = summed(power("p", "a", switch=True), model, twice)
    assert found.energy_joules == 130
    assert found.method is EnergyMethod.MODELLED
    assert found.level == 0
    assert "modelled, not measured" in found.level_reason


def test_only_nodes_without_a_meter_are_modelled() -> None:
    telemetry = Telemetry(
        duration_seconds=10.0, nodes=(samples("a", [0.0] * 10), samples("b", [4.0] * 10))
    )
    models = [PowerModel(node=name, idle_watts=2.0, stress_watts=5.0) for name in ("a", "b", "c")]

    def run(*powers: Power, seen: Telemetry | None = telemetry):  # type: ignore[no-untyped-def]
        return energy_of_run(
            powers, nodes=["a", "b"], instruments={}, models=models, telemetry=seen
        )

    found = run(power("p", "a", 100))
    assert found.energy_joules == pytest.approx(150)
    assert [row.meter for row in found.powers] == ["p", "model of b"]
    assert found.method is EnergyMethod.MODELLED
    assert run().energy_joules == pytest.approx(70)
    assert run(power("p", "a", 100), seen=None).reason == "no meter covers b"
    assert run(seen=None) is None


def test_of_emulated_boards_only_the_model_counts() -> None:
    models = [PowerModel(node=name, idle_watts=2.0, stress_watts=6.0) for name in "ab"]
    rows = tuple(rarely(name, [0.1] * 20) for name in "ab")
    quotas = {"a": 0.1, "b": 0.2}

    def run(*powers: Power, seen: bool = True, quota: dict[str, float] = quotas) -> Any:
        return energy_of_run(
            powers,
            nodes=["a", "b"],
            instruments={},
            models=models if seen else (),
            telemetry=Telemetry(duration_seconds=60.0, nodes=rows),
            capacity_cores=quota,
        )

    found = run(power("package", "a", 900))
    assert found.energy_joules == pytest.approx(60 * 6.0 + 60 * 4.0)
    assert found.method is EnergyMethod.MODELLED
    *modelled, metered = found.powers
    assert [row.meter for row in modelled] == ["model of a", "model of b"]
    assert (metered.meter, metered.energy_joules, metered.mean_watts, metered.most_watts) == (
        *("package", None, None),
        None,
    )
    assert metered.reason == "it measures this machine, not the boards that the nodes stand for"

    found = run(power("package", "a", 900), seen=False)
    assert (found.energy_joules, found.reason) == (None, metered.reason)
    assert found.powers == (metered,)
    assert run(seen=False) is None
    assert run(power("wall", "a b", 900), quota={}).energy_joules == pytest.approx(900)


def test_modelled_energy_of_a_dilated_run_is_divided_and_watts_are_the_boards() -> None:
    models = [PowerModel(node=name, idle_watts=2.0, stress_watts=6.0) for name in "ab"]
    rows = tuple(rarely(name, [0.1] * 20) for name in "ab")
    found = energy_of_run(
        [power("package", "a", 900)],
        nodes=["a", "b"],
        instruments={},
        models=models,
        telemetry=Telemetry(duration_seconds=60.0, nodes=rows),
        capacity_cores={"a": 0.1, "b": 0.1},
    )
    assert found is not None
    divided = undilated_energy(found, 4.0)
    assert found.energy_joules == pytest.approx(720)
    assert divided.energy_joules == pytest.approx(180)
    assert [row.energy_joules for row in divided.powers] == [
        pytest.approx(90),
        pytest.approx(90),
        None,
    ]
    assert [row.mean_watts for row in divided.powers[:2]] == [
        row.mean_watts for row in found.powers[:2]
    ]
    assert (divided.method, divided.level) == (found.method, found.level)


def test_metered_energy_of_a_dilated_run_is_removed() -> None:
    found = summed(power("p", "a b", 100, switch=True))
    assert found.energy_joules == pytest.approx(100)
    divided = undilated_energy(found, 4.0)
    assert divided.energy_joules is None
    assert "this machine, not the boards" in divided.reason
    assert divided.level == 0
    assert [(row.energy_joules, bool(row.reason)) for row in divided.powers] == [(None, True)]


@pytest.mark.parametrize(
    ("change", "instrument", "level", "words"),
    [
        ({}, GOOD, 3, "the highest"),
        ({"switch": False}, GOOD, 0, "the network switch is not measured"),
        ({}, Instrument(integrates=False, accuracy_percent=0.5), 2, "does not integrate"),
        ({}, Instrument(integrates=True, accuracy_percent=1.5), 2, "accurate to 1.5 %, not 1 %"),
        ({}, Instrument(integrates=True, accuracy_percent=3.0), 1, "accurate to 3 %, not 2 %"),
        ({}, Instrument(integrates=True, accuracy_percent=9.0), 0, "accurate to 9 %, not 5 %"),
        ({}, Instrument(integrates=True, accuracy_percent=None), 0, "no accuracy is stated"),
        ({"rate_hertz": 0.2}, GOOD, 0, "0.20 readings a second, not 1"),
        ({"readings": 9}, GOOD, 1, "9 readings in the run, not 10"),
        ({"coverage": Coverage.NODE}, GOOD, 0, "behind a power supply"),
        ({"coverage": Coverage.PORT}, GOOD, 0, "behind a power supply"),
        ({"coverage": Coverage.BOARD}, GOOD, 0, "without USB, HAT and NVMe"),
    ],
)
def test_the_lowest_aspect_decides_the_level(
    change: dict[str, object], instrument: Instrument, level: int, words: str
) -> None:
    found = summed(power("p", "a b", **{"switch": True, **change}), p=instrument)  # type: ignore[arg-type]
    assert found.level == level
    assert words in found.level_reason


def test_without_idle_power_there_is_no_second_level() -> None:
    found = summed(power("p", "a b", switch=True, idle_watts=None))
    assert (found.level, found.level_reason) == (1, "idle power is not measured")
    busy = power("p", "a b", switch=True, idle_watts=None, idle_reason="p: 40% of the cores busy")
    assert summed(busy).level_reason == "idle power is not measured: p: 40% of the cores busy"


def test_a_run_whose_idle_power_was_read_reaches_the_third_level() -> None:
    """It had level 1 at most while nothing read idle power."""
    found = energy_of_run(
        [power("p", "a", switch=True, idle_watts=3.0), power("q", "b", idle_watts=2.5)],
        nodes=["a", "b"],
        instruments={"p": GOOD, "q": GOOD},
    )
    assert found is not None
    assert (found.level, found.level_reason) == (3, "the highest")
    assert found.idle_watts == 5.5


# Before the run, and how wrong it may be


def quiet(busy: float) -> tuple[Any, Any]:
    at = np.arange(-9.0, 1.0)
    return at, np.full(len(at), busy)


def test_idle_power_is_the_mean_of_the_ten_seconds_before() -> None:
    seconds = each(-20, 29)
    watts = [9.0] * 9 + [3.0] * 12 + [12.0] * 29
    found, reason = idle_power(trace(seconds, watts), load=quiet(0.02))
    assert (found, reason) == (3.0, "")


def test_idle_power_of_a_meter_that_is_read_every_five_seconds() -> None:
    seconds = [-20.0, -15.0, -10.0, -5.0, 0.0, 5.0]
    slow = trace(seconds, [9.0, 3.0, 3.0, 3.0, 3.0, 12.0])
    found, reason = idle_power(replace(slow, interval_seconds=5.0), load=quiet(0.02))
    assert (found, reason) == (3.0, "")


def test_idle_power_of_a_mere_count_is_its_rise() -> None:
    seconds = each(-12, 4)
    counts = trace(seconds, counted=[100 + 3.0 * at for at in seconds])
    assert idle_power(counts, load=quiet(0.02))[0] == pytest.approx(3.0)


def test_idle_power_of_a_mere_count_that_stands_still_is_not_known() -> None:
    seconds = each(-20, 5)
    for counted in ([7.0] * len(seconds), [3600.0 * (second > -5) for second in seconds]):
        watts, why = idle_power(trace(seconds, counted=counted), load=quiet(0.02))
        assert watts is None
        assert "steps that are too large" in why


def test_idle_power_of_a_count_in_small_steps_is_its_rise() -> None:
    """A logger that counts joules ten times a second, at 3 W."""
    seconds = each(-20, 5, 0.1)
    counts = trace(seconds, counted=[math.floor(3 * (second + 20)) for second in seconds])
    assert idle_power(counts, load=quiet(0.02))[0] == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize(
    ("first", "load", "reason"),
    [
        (-5.0, quiet(0.0), "not read for 10 s before"),
        (-20.0, None, "not known whether the nodes were idle"),
        (-20.0, quiet(0.4), "40% of the cores were busy"),
    ],
)
def test_power_that_may_not_be_idle_is_none(first: float, load: Any, reason: str) -> None:
    seconds = each(first, 4)
    watts, why = idle_power(trace(seconds, [3.0] * len(seconds)), load=load)
    assert watts is None
    assert reason in why


def test_a_late_meter_may_be_wrong_by_the_steps_at_both_ends() -> None:
    seconds = each(-10, 69)
    step = trace(seconds, [2.0] * 10 + [12.0] * 60 + [2.0] * 10)
    assert over(step).lag_joules == pytest.approx(2 * 1.0 * 10.0)
    assert over(trace(seconds, [5.0] * 80)).lag_joules == 0


def test_what_meters_may_be_wrong_by_adds_up_and_one_unknown_makes_all_unknown() -> None:
    first, second = power("p", "a", 100), power("q", "b", 50)
    known = [replace(row, uncertainty_joules=error) for row, error in ((first, 2.0), (second, 1.0))]
    assert summed(*known).uncertainty_joules == 3.0
    assert summed(known[0], second).uncertainty_joules is None


# The core phase


def test_the_core_phase_is_found_by_its_name() -> None:
    def phased(**phases: tuple[float, float]) -> Telemetry:
        named = {name.replace("_", "/"): span for name, span in phases.items()}
        return Telemetry(duration_seconds=60.0, nodes=(), phases=named)

    assert core_span(phased(solve=(0, 60), solve_core=(20, 40))) == (20, 40)
    assert core_span(phased(solve=(0, 60))) is None
    assert core_span(phased(a_core=(0, 6), b_core=(10, 20))) is None


def test_power_of_a_core_phase_is_not_that_of_the_job() -> None:
    """Of a job of 146 s HPL takes a few, and its power was averaged over all of it."""
    models = [PowerModel(node="a", idle_watts=2.0, stress_watts=6.0)]
    busy = [0.0] * 100 + [4.0] * 20 + [0.0] * 26
    telemetry = Telemetry(duration_seconds=146.0, nodes=(samples("a", busy),))

    def run(span: tuple[float, float] | None) -> float | None:
        found = energy_of_run(
            (), nodes=["a"], instruments={}, models=models, telemetry=telemetry, span_seconds=span
        )
        assert found is not None
        return found.powers[0].mean_watts

    assert run(None) == pytest.approx(2 + 4 * 20 / 146, rel=0.05)
    assert run((101.0, 119.0)) == pytest.approx(6.0, rel=0.01)


def test_a_core_phase_is_divided_by_the_dilation_too() -> None:
    whole = summed(replace(power("m", "a b", 100, method=EnergyMethod.MODELLED), mean_watts=5.0))
    core = summed(replace(power("m", "a b", 40, method=EnergyMethod.MODELLED), mean_watts=8.0))
    found = undilated_energy(replace(whole, core=core), 4.0)
    assert found.core is not None
    assert found.core.energy_joules == pytest.approx(10)


def test_all_that_limits_is_named() -> None:
    found = summed(power("p", "a b", rate_hertz=0.1, idle_watts=None))
    assert found.level_reason == (
        "p gave 0.10 readings a second, not 1; the network switch is not measured"
    )


def test_an_integral_is_plain() -> None:
    assert isinstance(over(trace([0.0, 60.0], [1.0, 1.0], interval=60.0)), Integral)
