"""Verdicts on synthetic telemetry, into which one fault at a time is planted."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.analysis.telemetry import NAN, Column, node, times, when, with_columns, world
from tests.unit.cluster.recordings import DESKTOP, PI_4, PI_5, VM, Recording

from boardcluster.analysis.trust import Expectations, Judgement, Thresholds, expect, judge
from boardcluster.analysis.trust.rules import RULES
from boardcluster.cluster.facts import parse_facts
from boardcluster.records import NodeFacts, NodeSamples, Telemetry, Verdict

HOST = Expectations(nodes=("host",))
AT = times()
GHZ = 1e9
HELD: dict[str, Column] = {"quota_throttled_seconds": 0.1}
"""A quota that held the run back for a tenth of the time."""


def judged(*nodes: NodeSamples, **settings: Any) -> Judgement:
    return judge(world(*nodes), expectations=Expectations(nodes=("host",), **settings))


def one_reason(*nodes: NodeSamples, **settings: Any) -> str:
    found = judged(*nodes, **settings)
    assert found.verdict is Verdict.TAINTED
    (reason,) = found.reasons
    assert "; explains at most " in reason
    return words_of(found)[0]


def words_of(found: Judgement) -> tuple[str, ...]:
    """The reasons without what they explain."""
    return tuple(line.partition("; explains at most ")[0] for line in found.reasons)


def facts_of(recording: Recording) -> NodeFacts:
    raw = {**recording.raw(), "folder": "/var/lib/boardcluster"}
    folder = "/var/lib/boardcluster"
    return parse_facts(raw, folder=folder, asked_seconds=0.0, answered_seconds=0.5)


def test_a_clean_machine_whose_cluster_keeps_it_busy_is_valid() -> None:
    workers = [
        node(f"worker{number}", scope="node", columns={"foreign_cpu_seconds": NAN})
        for number in (1, 2, 3)
    ]
    found = judge(
        world(*workers, node("host")),
        expectations=Expectations(nodes=("worker1", "worker2", "worker3", "host")),
    )
    assert (found.verdict, found.reasons) == (Verdict.VALID, ())
    # Its own programs and a little steal are there, and known to be little.
    assert {row.cause for row in found.disturbances} == {"foreign load", "steal"}
    assert sum(row.share for row in found.disturbances) < 0.02


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"throttle_bits": when(AT, 4.0, outside=0.0, start_seconds=48)},
            (
                "host: throttled for 12.6 s of 60 s (bit 2, from 47.4 s on): it is too hot or has"
                " too little power"
            ),
        ),
        (
            {"throttle_bits": when(AT, 1.0, outside=0.0, start_seconds=5, end_seconds=10)},
            (
                "host: under-voltage for 5 s of 60 s (bit 0, from 4.4 s to 9.4 s): its power supply"
                " or cable is too weak"
            ),
        ),
        (
            {"throttle_bits": 2.0},
            "host: clock capped for 60 s of 60 s (bit 1, all the time): by the firmware",
        ),
        (
            {"throttle_bits": 8.0},
            (
                "host: slowed at the soft temperature limit for 60 s of 60 s (bit 3, all the time):"
                " it is too hot"
            ),
        ),
        (
            {"cpu_steal_seconds": when(AT, 0.4, outside=0.0, start_seconds=20)},
            "host: the hypervisor took 14 % of the CPU time, 16.2 s (from 19.4 s on)",
        ),
        (
            {"swap_out_bytes": when(AT, 12e6, outside=0.0, start_seconds=12, end_seconds=31)},
            "host: swapped 217 MiB out and 0 B in (from 11.4 s to 30.4 s): its memory is too small",
        ),
        (
            {"quota_cores": when(AT, 0.5, outside=2.0, start_seconds=14), **HELD},
            "host: CPU quota cut from 2 to 0.5 cores at 14.4 s of 60 s",
        ),
        (
            {
                "quota_cores": when(AT, 0.5, outside=NAN, start_seconds=14, end_seconds=20),
                **HELD,
            },
            "host: CPU quota cut from all to 0.5 cores at 14.4 s of 60 s, and 1 more change",
        ),
        (
            {"quota_cores": when(AT, 2.0, outside=0.5, start_seconds=14), **HELD},
            "host: CPU quota raised from 0.5 to 2 cores at 14.4 s of 60 s",
        ),
        (
            {"quota_cores": 1.0, "quota_throttled_seconds": 0.3},
            (
                "host: held back by its CPU quota for 18 s, summed over its CPUs, of 60 s (all the"
                " time)"
            ),
        ),
        (
            {"link_bits_per_second/eth0": when(AT, 1e8, outside=1e9, start_seconds=14)},
            (
                "host: link eth0 renegotiated from 1 Gbit/s to 100 Mbit/s at 14.4 s of 60 s: check"
                " the cable and the switch"
            ),
        ),
        (
            {"net_dropped_packets/eth0": when(AT, 600.0, outside=0.0, start_seconds=30)},
            "host: interface eth0 dropped 18360 packets, 0.6 % of all (from 29.4 s on)",
        ),
        (
            {"clock_step_seconds": when(AT, -120.0, outside=0, start_seconds=20, end_seconds=21)},
            "host: its wall clock was set back by 120 s at 20.4 s of 60 s",
        ),
    ],
    ids=lambda value: value.split(" for ")[0][:40] if isinstance(value, str) else "",
)
def test_a_planted_fault_is_found_and_named(columns: dict[str, Column], reason: str) -> None:
    assert one_reason(node(columns=columns)) == reason


def test_a_cpu_hog_is_named_with_what_the_agent_saw() -> None:
    load = when(AT, 0.76, outside=0.02, start_seconds=14)
    hog = node(columns={"foreign_cpu_seconds": load}, notes=("stress-ng 37 %",))
    assert one_reason(hog) == (
        "host: other programs used 30 % of the machine (from 13.4 s on): stress-ng 37 %"
    )
    assert one_reason(replace(hog, notes=())).endswith("(from 13.4 s on)")


@pytest.mark.parametrize(
    ("columns", "settings", "reason"),
    [
        (  # a Raspberry Pi that lies
            {"clock_hertz/cpu0": 2.4 * GHZ, "clock_nominal_hertz": 2.4 * GHZ},
            {},
            "it said 2.40 GHz (the kernel said 2.40 GHz)",
        ),
        ({}, {"nominal_hertz": {"host": 2.4 * GHZ}}, "its nominal clock is 2.40 GHz"),
        ({}, {}, "its own best was 2.40 GHz"),
        ({}, {"best_hertz": {"host": 2.6 * GHZ}}, "its own best was 2.60 GHz"),
    ],
)
def test_a_clock_that_is_lower_than_it_should_be_is_found(
    columns: dict[str, Column], settings: dict[str, Any], reason: str
) -> None:
    slow = when(AT, 1.5 * GHZ, outside=2.4 * GHZ, start_seconds=40)
    found = one_reason(node(columns={"clock_measured_hertz": slow, **columns}), **settings)
    assert found == f"host: ran at 1.50 GHz for 20.6 s of 60 s (from 39.4 s on): {reason}"


def test_a_clock_that_is_slow_from_the_start_needs_a_yardstick() -> None:
    slow = node(columns={"clock_measured_hertz": 1.5 * GHZ})
    assert judged(slow).verdict is Verdict.VALID  # its own best says nothing
    assert "all the time" in one_reason(slow, nominal_hertz={"host": 2.4 * GHZ})
    assert "all the time" in one_reason(slow, best_hertz={"host": 2.4 * GHZ})


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        # idle clocks are low by right
        (
            {
                "clock_measured_hertz": when(AT, 0.6 * GHZ, outside=2.4 * GHZ, start_seconds=30),
                "cpu_user_seconds": when(AT, 0.1, outside=1.7, start_seconds=30),
            },
            {"nominal_hertz": {"host": 2.4 * GHZ}},
        ),
        # a virtual machine's kernel reports a constant and does not steer the clock
        ({"clock_measured_hertz": 2.2 * GHZ, "clock_hertz/cpu0": 2.6 * GHZ}, {}),
        # all cores at once are slower than one
        ({"clock_measured_hertz": when(AT, 2.1e9, outside=2.4e9, start_seconds=30)}, {}),
        # which CPU measured?
        (
            {"clock_measured_hertz": when(AT, 1.8 * GHZ, outside=2.4 * GHZ, start_seconds=30)},
            {"mixed": frozenset({"host"}), "nominal_hertz": {"host": 2.4 * GHZ}},
        ),
        # fast and slow cores of one name, as many processors of PCs have
        (
            {
                "clock_measured_hertz": when(AT, 3.3 * GHZ, outside=4.5 * GHZ, start_seconds=30),
                "clock_nominal_hertz": 4.7 * GHZ,
                "clock_nominal_least_hertz": 3.5 * GHZ,
            },
            {},
        ),
        # an idle CPU beside the busy one reports less: nobody lies
        (
            {
                "clock_measured_hertz": 2.0 * GHZ,
                "clock_nominal_hertz": 2.4 * GHZ,
                "clock_hertz/cpu0": 2.4 * GHZ,
                "clock_hertz/cpu1": 1.5 * GHZ,
            },
            {},
        ),
        # its own quota is how this node is meant to be
        ({"quota_cores": 1.0, "quota_throttled_seconds": 0.5}, {"quota_cores": {"host": 1.0}}),
        # throttled once, long before
        ({"throttle_bits": float(1 << 18)}, {}),
        # before the run, or after it
        ({"quota_cores": when(AT, 2.0, outside=0.5, start_seconds=-1)}, {}),
        ({"link_bits_per_second/eth0": when(AT, 1e8, outside=1e9, start_seconds=61)}, {}),
        ({"clock_step_seconds": when(AT, 99.0, outside=0, start_seconds=61)}, {}),
        # a rate that could not be read now and then
        ({"link_bits_per_second/eth0": when(AT, NAN, outside=1e9, start_seconds=30)}, {}),
        # one bad reading of a clock cannot be told from a loop that was interrupted
        ({"clock_measured_hertz": when(AT, 1e9, outside=2e9, start_seconds=9, end_seconds=10)}, {}),
        ({"pressure_cpu_seconds": 1.0, "pressure_io_full_seconds": 0.9}, {}),
    ],
)
def test_what_is_no_fault_is_valid(columns: dict[str, Column], settings: dict[str, Any]) -> None:
    found = judged(node(columns=columns), **settings)
    assert (found.verdict, found.reasons) == (Verdict.VALID, ())


@pytest.mark.parametrize(
    ("column", "at_most", "more"),
    [
        ("swap_in_bytes", 2**24 / 60, 2**24 / 60 + 1),
        ("quota_throttled_seconds", 0.035, 0.06),
        ("net_dropped_packets/eth0", 10.0, 60.0),  # 60 of 53,393 packets per second: 0.11 %
        ("clock_step_seconds", 0.5, 0.501),
        ("clock_step_seconds", -0.5, -0.501),
    ],
)
def test_at_the_threshold_it_does_not_count_and_beyond_it_does(
    column: str, at_most: float, more: float
) -> None:
    exact = np.arange(-1.0, 61.5)  # intervals that begin and end with the run
    below = judged(node(seconds=exact, columns={column: at_most * (1 - 1e-9)}))
    assert below.verdict is Verdict.VALID
    assert judged(node(seconds=exact, columns={column: more})).verdict is Verdict.TAINTED


def test_many_drops_on_a_link_that_carries_much_more_are_no_reason() -> None:
    drops = {"net_dropped_packets/eth0": 20.0}
    assert judged(node(columns=drops)).verdict is Verdict.VALID
    idle = {**drops, "net_received_bytes/eth0": 0.0, "net_sent_bytes/eth0": 1e4}
    assert judged(node(columns=idle)).verdict is Verdict.TAINTED


@pytest.mark.parametrize("bit", range(4))
def test_throttling_taints_once_it_may_explain_five_per_cent(bit: int) -> None:
    exact = np.arange(-1.0, 201.5)
    for seconds, verdict in ((9, Verdict.VALID), (11, Verdict.TAINTED)):
        bits = when(exact, float(1 << bit), outside=0.0, start_seconds=50, end_seconds=50 + seconds)
        quiet: dict[str, Column] = {"foreign_cpu_seconds": 0.0, "cpu_steal_seconds": 0.0}
        samples = node(seconds=exact, columns={"throttle_bits": bits, **quiet})
        found = judge(world(samples, duration_seconds=200), expectations=HOST)
        assert found.verdict is verdict


def test_throttling_between_two_samples_is_known_by_the_since_boot_bit() -> None:
    bits = when(AT, float(1 << 18), outside=0.0, start_seconds=30)
    found = judged(node(columns={"throttle_bits": bits}))
    assert found.disturbances[0].cause == "throttled"
    assert found.disturbances[0].share == pytest.approx(1 / 60)


# Cover


def test_a_node_without_samples_makes_a_run_invalid() -> None:
    found = judge(world(node()), expectations=Expectations(nodes=("pi1", "host", "pi2")))
    assert found.verdict is Verdict.INVALID
    assert found.reasons == ("pi1: gave no samples", "pi2: gave no samples")


def test_no_telemetry_at_all_is_invalid() -> None:
    found = judge(world(), expectations=Expectations(nodes=()))
    assert found == Judgement(verdict=Verdict.INVALID, reasons=("there is no telemetry at all",))


@pytest.mark.parametrize(
    ("seconds", "verdict", "reason"),
    [
        (
            times(end_seconds=12),
            Verdict.INVALID,
            "host: its agent stopped at 12.4 s of 60 s; samples cover 22 % of the run",
        ),
        (times(end_seconds=55), Verdict.TAINTED, "host: its agent stopped at 55.4 s of 60 s"),
        (times(end_seconds=58), Verdict.VALID, ""),
        (
            times(without=[(20, 34)]),
            Verdict.INVALID,
            (
                "host: no samples from 19.4 s to 34.4 s (15 intervals); samples cover 76 % of"
                " the run"
            ),
        ),
        (
            times(without=[(20, 25)]),
            Verdict.TAINTED,
            "host: no samples from 19.4 s to 25.4 s (6 intervals)",
        ),
        (
            times(without=[(20, 25), (30, 34)]),
            Verdict.TAINTED,
            "host: no samples from 19.4 s to 25.4 s (6 intervals, one of 2 gaps)",
        ),
        (times(without=[(20, 22)]), Verdict.VALID, ""),  # 3 intervals
        (times(without=[(20, 23)]), Verdict.TAINTED, "host: no samples from 19.4 s to 23.4 s"),
        (
            times(without=[(-9, 20)]),
            Verdict.INVALID,
            "host: no samples from 0 s to 20.4 s (20 intervals); samples cover 67 % of the run",
        ),
        (times(without=[(-9, 5)]), Verdict.TAINTED, "host: no samples from 0 s to 5.4 s"),
        (times(without=[(-9, 0.9)]), Verdict.VALID, ""),
        (times(without=[(-9, 99)]), Verdict.INVALID, "host: gave no sample in the run of 60 s"),
        (times(end_seconds=-1), Verdict.INVALID, "host: gave no sample in the run of 60 s"),
    ],
)
def test_samples_must_cover_the_run(
    seconds: np.ndarray[Any, Any], verdict: Verdict, reason: str
) -> None:
    found = judged(node(seconds=seconds))
    assert found.verdict is verdict
    assert found.reasons[0].startswith(reason) if reason else found.reasons == ()


def test_eighty_per_cent_is_enough_cover() -> None:
    # One pause of 13 intervals leaves 12 of 60 uncovered, one of 14 leaves 13.
    exact = np.arange(-1.0, 62.0)
    enough = exact[(exact <= 20) | (exact >= 33)]
    less = exact[(exact <= 20) | (exact >= 34)]
    assert judged(node(seconds=enough)).verdict is Verdict.TAINTED
    assert judged(node(seconds=less)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("duration_seconds", "seconds", "verdict"),
    [
        (0.4, [0.2], Verdict.VALID),
        (0.4, [1.0], Verdict.VALID),  # its interval holds the run
        (0.4, [-5.0, 6.0], Verdict.VALID),  # so does this one, although it is long
        (0.4, [-5.0, -4.0], Verdict.INVALID),
        (0.4, [3.0], Verdict.INVALID),
        (1.9, [0.5], Verdict.VALID),
        (2.1, [0.9], Verdict.VALID),
        (5.0, [0.5], Verdict.INVALID),
        (0.0, [0.5], Verdict.VALID),
        (0.0, [3.0], Verdict.INVALID),
        (-3.0, [], Verdict.INVALID),
        (NAN, [0.5], Verdict.VALID),
    ],
)
def test_a_short_run_needs_one_sample(
    duration_seconds: float, seconds: list[float], verdict: Verdict
) -> None:
    samples = node(seconds=np.array(seconds))
    telemetry = Telemetry(duration_seconds=duration_seconds, nodes=(samples,))
    assert judge(telemetry, expectations=HOST).verdict is verdict


def test_the_gravest_reason_comes_first() -> None:
    hog = node(columns={"foreign_cpu_seconds": 1.0})
    found = judge(world(hog), expectations=Expectations(nodes=("host", "pi1")))
    assert found.verdict is Verdict.INVALID
    assert found.reasons[0] == "pi1: gave no samples"
    assert found.reasons[1].startswith("host: other programs used 50 %")


# Wall clocks


@pytest.mark.parametrize(
    ("offsets", "error_seconds", "reason"),
    [
        ((0.0, 95.0, 1.0), 0.01, "pi1: its wall clock is 95 s ahead of that of pi0"),
        ((0.0, -95.0, 0.0), 0.01, "pi0: its wall clock is 95 s ahead of that of pi1"),
        ((0.0, 0.9, -0.05), 0.0, ""),
        ((0.0, 1.5, 0.0), 0.5, ""),  # not certain
        ((0.0, NAN, 0.0), 0.0, ""),
    ],
)
def test_wall_clocks_that_differ(
    offsets: tuple[float, ...], error_seconds: float, reason: str
) -> None:
    nodes = [
        node(f"pi{place}", offset_seconds=offset, error_seconds=error_seconds)
        for place, offset in enumerate(offsets)
    ]
    found = judge(world(*nodes), expectations=Expectations(nodes=()))
    assert words_of(found) == ((reason,) if reason else ())


# Bad input


@pytest.mark.parametrize(
    "samples",
    [
        with_columns(node()),
        with_columns(node(), cpu_user_seconds=np.zeros(3)),  # cut short
        node(columns=dict.fromkeys(node().columns, NAN)),
        node(columns={name: float("inf") for name in node().columns}),
        replace(node(), cores=0),
        replace(node(), interval_seconds=0.0),
        replace(node(), interval_seconds=NAN),
        replace(node(), seconds=node().seconds[::-1]),
    ],
    ids=[
        "no columns",
        "short",
        "nan",
        "inf",
        "no cores",
        "no interval",
        "nan interval",
        "reversed",
    ],
)
def test_what_cannot_be_read_says_nothing(samples: NodeSamples) -> None:
    assert judged(samples).reasons == ()


@pytest.mark.parametrize(
    "seconds", [np.array([]), np.array([NAN, NAN]), np.array([np.inf])], ids=["none", "nan", "inf"]
)
def test_samples_without_a_time_are_none(seconds: np.ndarray[Any, Any]) -> None:
    found = judged(node(seconds=seconds))
    assert found.reasons == ("host: gave no sample in the run of 60 s",)


def test_samples_that_came_twice_count_once() -> None:
    once = node(columns={"cpu_steal_seconds": 0.03})
    twice = node(seconds=np.concatenate([times(), times()]), columns={"cpu_steal_seconds": 0.03})
    assert judged(once) == judged(twice)
    assert judged(twice).verdict is Verdict.VALID


def test_negative_amounts_are_unknown() -> None:
    wrapped = when(AT, -1e12, outside=0.1, start_seconds=30, end_seconds=31)
    assert judged(node(columns={"cpu_steal_seconds": wrapped})).verdict is Verdict.TAINTED
    assert judged(node(columns={"swap_in_bytes": wrapped})).verdict is Verdict.VALID


def test_only_the_part_of_a_sample_within_the_run_counts() -> None:
    # 8 s of foreign load in one sample of 10 s, half of which is before the run of 40 s.
    ends = np.arange(-15.0, 46.0, 10.0)
    load = np.where(ends == 5.0, 8.0, 0.0)
    unknown: dict[str, Column] = {"pressure_cpu_seconds": NAN, "cpu_idle_seconds": NAN}
    samples = node(
        seconds=ends, interval_seconds=10.0, columns={"foreign_cpu_seconds": load, **unknown}
    )
    for duration_seconds in (39.0, 41.0):
        found = judge(world(samples, duration_seconds=duration_seconds), expectations=HOST)
        assert found.disturbances[0].cause == "foreign load"
        assert found.disturbances[0].share == pytest.approx(4 / duration_seconds)


def test_a_long_pause_says_little_about_its_state() -> None:
    # Throttled in the one sample after a pause of 10 s: 3.5 intervals, not 10, are certain.
    bits = when(times(without=[(20, 29)]), 4.0, outside=0.0, start_seconds=29, end_seconds=30)
    columns: dict[str, Column] = {"throttle_bits": bits, "cpu_user_seconds": 20.0}
    found = judged(node(seconds=times(without=[(20, 29)]), columns=columns))
    assert any("throttled for 3.5 s of 60 s" in line for line in found.reasons)
    assert {row.cause: row.share for row in found.disturbances}["throttled"] == pytest.approx(
        3.5 / 60
    )


# What is read less often than samples are taken


SPARSE = np.arange(len(AT)) % 5 == 0


def sparse(values: Column) -> np.ndarray[Any, Any]:
    """A column that is read with every fifth sample, the first one included."""
    return np.where(SPARSE, values, NAN)


def added(values: Column) -> np.ndarray[Any, Any]:
    """The same of an amount, which is not known before the second reading."""
    return np.where(np.arange(len(AT)) == 0, NAN, sparse(values))


@pytest.mark.parametrize(
    ("quota", "reason"),
    [
        (NAN, ""),
        (2.0, ""),
        (
            when(AT, 0.5, outside=2.0, start_seconds=14),
            "host: CPU quota cut from 2 to 0.5 cores at 18.4 s of 60 s",
        ),
        (
            when(AT, 0.5, outside=NAN, start_seconds=14),
            "host: CPU quota cut from all to 0.5 cores at 18.4 s of 60 s",
        ),
    ],
)
def test_between_two_readings_a_quota_is_unknown_and_not_gone(quota: Column, reason: str) -> None:
    columns: dict[str, Column] = {
        "quota_cores": sparse(quota),
        "quota_throttled_seconds": added(1.5 if reason else 0.0),
    }
    assert words_of(judged(node(columns=columns))) == ((reason,) if reason else ())


def test_a_quota_that_changed_and_held_nothing_back_explains_nothing() -> None:
    quota = when(AT, 1.5, outside=2.0, start_seconds=14)
    found = judged(node(columns={"quota_cores": quota}))
    assert found.verdict is Verdict.VALID
    assert "quota" not in {row.cause for row in found.disturbances}
    unknown = node(columns={"quota_cores": quota, "quota_throttled_seconds": NAN})
    assert "explains at most 100 % of the time" in judged(unknown).reasons[0]


def test_an_amount_that_is_read_rarely_is_from_the_reading_before() -> None:
    # 0.4 s in each 5 s: 4 % of two CPUs; 0.6 s: 6 %.
    assert judged(node(columns={"foreign_cpu_seconds": added(0.4)})).reasons == ()
    assert one_reason(node(columns={"foreign_cpu_seconds": added(0.6)})) == (
        "host: other programs used 5.8 % of the machine (all the time)"
    )
    assert one_reason(node(columns={"quota_throttled_seconds": added(0.6)})).startswith(
        "host: held back by its CPU quota for 7.01 s"
    )


def test_a_state_that_is_read_rarely_has_lasted_since_the_reading_before() -> None:
    bits = sparse(when(AT, 4.0, outside=0.0, start_seconds=30, end_seconds=40))
    assert one_reason(node(columns={"throttle_bits": bits})).startswith(
        "host: throttled for 10 s of 60 s (bit 2, from 28.4 s to 38.4 s)"
    )


def test_an_agent_that_halves_its_pace_after_thousands_of_samples_has_no_gaps() -> None:
    steady = np.arange(-1.0, 3000.0)
    halved = np.arange(3000.0, 6000.0, 2.0)
    quartered = np.arange(6000.0, 12001.0, 4.0)
    kept = np.concatenate((steady, halved, quartered))
    long = world(node(seconds=kept), duration_seconds=12_000)
    assert judge(long, expectations=HOST).reasons == ()

    broken = kept[(kept < 7000) | (kept > 7020)]
    found = judge(world(node(seconds=broken), duration_seconds=12_000), expectations=HOST)
    assert found.reasons == ()
    lost = {row.cause: row.share for row in found.disturbances}
    assert lost["gaps"] == pytest.approx(24 / 12_000)

    dead = judge(world(node(seconds=kept), duration_seconds=20_000), expectations=HOST)
    assert dead.verdict is Verdict.INVALID


def test_an_agent_that_is_slow_for_a_while_was_held_up() -> None:
    slow = np.concatenate(
        (np.arange(-1.0, 3000.0), np.arange(3000.0, 3200.0, 4.0), np.arange(3200.0, 6001.0))
    )
    found = judge(
        world(node(seconds=slow), duration_seconds=6000),
        expectations=HOST,
        tolerated_share=0.01,
    )
    assert "gaps)" in found.reasons[0]
    assert found.disturbances[0].share == pytest.approx(49 * 3 / 6000, rel=0.05)


def test_an_agent_that_is_slow_from_the_start_was_held_up() -> None:
    found = judge(
        world(node(seconds=np.arange(-1.0, 61.0, 4.0))), expectations=Expectations(nodes=("host",))
    )
    assert found.verdict is Verdict.INVALID
    assert "samples cover" in found.reasons[0]


# Expectations


def test_expectations_from_facts() -> None:
    facts = {
        "pi0": facts_of(PI_5),
        "pi1": facts_of(PI_4),
        "pc": facts_of(DESKTOP),
        "vm": facts_of(VM),
        "mixed": replace(facts_of(PI_5), cpu="Cortex-A76 + Cortex-A55"),
    }
    found = expect(facts, facts)
    assert found.nodes == ("pi0", "pi1", "pc", "vm", "mixed")
    assert found.nominal_hertz == {"pi0": 2.4e9, "pi1": 1.8e9}  # the PC's highest is a turbo
    assert found.mixed == {"mixed"}
    assert expect(["worker1", "host"], {}) == Expectations(nodes=("worker1", "host"))


def test_thresholds_can_be_set() -> None:
    strict, little = Thresholds(swap_bytes=1.0), node(columns={"swap_in_bytes": 4096.0})
    assert judged(little).verdict is Verdict.VALID
    assert judged(little, thresholds=strict).verdict is Verdict.TAINTED


# The table and its documentation


PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "verdicts.md").read_text()


def test_every_rule_is_documented_and_no_other() -> None:
    named = re.findall(r"^\| ([a-z ]+) \| (invalid|tainted) \|", PAGE, re.MULTILINE)
    assert sorted(named) == sorted((rule.name, rule.verdict.value) for rule in RULES)
    sections = PAGE.partition("## Rules")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert [part.partition("\n")[0] for part in sections] == [name for name, _ in named]
    assert all("\nWhy: " in part and "Source:" in part for part in sections)


def test_every_threshold_is_documented_with_its_default() -> None:
    table = PAGE.partition("## Rules")[2].partition("\n### ")[0]
    named = dict(re.findall(r"`(\w+)` ([\d.]+)", table))
    defaults = dataclasses.asdict(Thresholds())
    defaults["swap_bytes"] /= 2**20
    before_a_run = {"hot_celsius", "low_space_share", "low_space_bytes"}
    before_a_run |= {"steal_share", "foreign_share"}
    assert set(named) == set(defaults) - before_a_run
    assert all(float(text) == defaults[name] for name, text in named.items())
