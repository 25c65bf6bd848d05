"""Verdicts on runs of emulated boards: the machine below them, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.analysis.telemetry import NAN, Column, node, times, when, world

from boardcluster.analysis.trust import Judgement, expect, judge
from boardcluster.records import QUOTA_CORES_LEAST, NodeLimits, Verdict

AT = times()
LIMITS = tuple(
    NodeLimits(
        node=name,
        cpu_cores=0.35,
        memory_bytes=8 << 30,
        disk=None,
        link_bits_per_second=85_000_000,
    )
    for name in ("worker1", "worker2")
)
IDLE: dict[str, Column] = {"cpu_idle_seconds": 0.5, "cpu_iowait_seconds": 0.0}


def judged(
    host: Mapping[str, Column],
    *,
    worker: Mapping[str, Column] | None = None,
    duration_seconds: float = 60.0,
    limits: tuple[NodeLimits, ...] = LIMITS,
    **settings: Any,
) -> Judgement:
    """Judge two limited nodes, the first with a fault, on a 2-core machine with another."""
    of_node: dict[str, Column] = {
        "foreign_cpu_seconds": NAN,
        "cpu_idle_seconds": NAN,
        "cpu_iowait_seconds": NAN,
        "quota_cores": 0.35,
        "quota_throttled_seconds": 0.6,
    }
    telemetry = world(
        node("worker1", scope="node", columns={**of_node, **(worker or {})}),
        node("worker2", scope="node", columns=of_node),
        node("host", columns={**IDLE, **host}),
        duration_seconds=duration_seconds,
    )
    expectations = expect(("worker1", "worker2", "host"), {}, limits=limits, **settings)
    return judge(telemetry, expectations=expectations)


def test_nodes_that_are_held_back_by_their_own_quota_are_valid() -> None:
    found = judged({})
    assert (found.verdict, found.reasons) == (Verdict.VALID, ())


def test_without_limits_the_machine_may_be_busy_and_quotas_are_judged_as_ever() -> None:
    found = judged({"cpu_idle_seconds": 0.0}, limits=())
    assert found.verdict is Verdict.TAINTED
    assert all("held back by its CPU quota" in reason for reason in found.reasons)


def test_expectations_follow_from_limits() -> None:
    found = expect(("worker1", "host"), {}, limits=LIMITS, steered=["worker2"])
    assert found.quota_cores == {"worker1": 0.35, "worker2": 0.35}
    assert found.host_idle_share == found.thresholds.host_idle_share == 0.10
    assert found.steered == {"worker2"}
    plain = expect(("worker1", "host"), {})
    assert (plain.quota_cores, plain.host_idle_share) == ({}, None)


def test_a_quota_below_the_kernels_least_is_expected_to_be_that() -> None:
    little = tuple(replace(row, cpu_cores=0.0078) for row in LIMITS)
    assert expect(("worker1",), {}, limits=little).quota_cores["worker1"] == QUOTA_CORES_LEAST
    quotas: dict[str, Column] = {"quota_cores": QUOTA_CORES_LEAST}
    found = judged({}, worker=quotas, limits=(little[0],))
    assert "changed from outside" not in "; ".join(found.reasons)


def test_a_machine_without_time_to_spare_makes_a_run_invalid() -> None:
    host = {"cpu_idle_seconds": when(AT, 0.05, outside=0.6, start_seconds=40, end_seconds=46)}
    found = judged(host)
    assert found.verdict is Verdict.INVALID
    assert found.reasons == (
        (
            "host: only 2.5 % idle for 5 s at 39.4 s of 60 s, where 10 % is needed: this"
            " machine was too slow for its nodes; raise the dilation"
        ),
    )


@pytest.mark.parametrize(
    ("idle", "iowait", "valid"),
    [
        (0.2, 0.0, True),  # of two cores, exactly what is asked
        (0.19, 0.0, False),
        (0.0, 0.2, True),  # waiting for a disk leaves the cores free
        (0.1, NAN, False),
        (NAN, 2.0, True),  # unknown: the rule on samples judges that
        # too little for 4 s, and enough in each time of 5 s
        (when(AT, 0.15, outside=1.0, start_seconds=20, end_seconds=24), 0.0, True),
        # before the run and after it
        (when(AT, 0.5, outside=0.0, start_seconds=0, end_seconds=60.4), 0.0, True),
    ],
    ids=["enough", "less", "waiting", "wait unknown", "unknown", "short", "outside"],
)
def test_what_idle_is_enough(*, idle: Column, iowait: Column, valid: bool) -> None:
    found = judged({"cpu_idle_seconds": idle, "cpu_iowait_seconds": iowait})
    assert (found.verdict is Verdict.VALID) == valid, found.reasons


def test_the_worst_time_is_found_wherever_it_begins() -> None:
    """Idle time is known once in four seconds: the window that ends with a reading is the worst."""
    idle = np.full(len(AT), NAN)
    idle[::4] = 4.0
    place = int(np.flatnonzero(~np.isnan(idle) & (AT > 30))[0])
    idle[place] = 0.0
    found = judged({"cpu_idle_seconds": idle})
    assert found.verdict is Verdict.VALID  # 4 s of nothing, and 1 s of 1 core of 2: 10 %
    idle[place + 4] = 0.0
    [reason] = judged({"cpu_idle_seconds": idle}).reasons
    assert reason.startswith("host: only 0.0 % idle for 5 s at ")


def test_a_machine_that_lacks_a_little_is_not_said_to_have_enough() -> None:
    [reason] = judged({"cpu_idle_seconds": 0.1999}).reasons
    assert reason.startswith("host: only 9.9 % idle")
    assert "where 10 % is needed" in reason


def test_a_run_shorter_than_the_window_is_looked_at_as_a_whole() -> None:
    host = {"cpu_idle_seconds": when(AT, 0.1, outside=1.0, start_seconds=0, end_seconds=3.4)}
    [reason] = judged(host, duration_seconds=2.5).reasons
    assert reason.startswith(
        "host: only 5.0 % idle for 2.5 s at 0 s of 2.5 s, where 10 % is needed"
    )
    assert judged({}, duration_seconds=2.5).verdict is Verdict.VALID


def test_a_busy_node_is_not_a_busy_machine() -> None:
    assert judged({}, worker={"cpu_idle_seconds": 0.0}).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (when(AT, 0.5, outside=0.35, start_seconds=14), "0.5 cores at 14.4 s of 60 s"),
        (when(AT, 0.2, outside=0.35, start_seconds=14), "0.2 cores at 14.4 s of 60 s"),
        (when(AT, NAN, outside=0.35, start_seconds=14), "all cores at 14.4 s of 60 s"),
        (0.5, "0.5 cores at 0.4 s of 60 s"),  # from the start, so it did not change
    ],
    ids=["raised", "cut", "gone", "never"],
)
def test_another_quota_than_the_one_that_is_meant_makes_a_run_invalid(
    quota: Column, words: str
) -> None:
    found = judged({}, worker={"quota_cores": quota})
    assert found.verdict is Verdict.INVALID
    assert found.reasons == (
        (
            f"worker1: its CPU quota was {words} instead of 0.35: its limits were changed from"
            " outside"
        ),
    )


def test_limits_are_lifted_before_and_after_a_run() -> None:
    quota = when(AT, 0.35, outside=NAN, start_seconds=0, end_seconds=60)
    assert judged({}, worker={"quota_cores": quota}).verdict is Verdict.VALID


def test_a_quota_is_read_in_thousandths_of_a_core_and_may_be_unreadable() -> None:
    tiny = tuple(replace(row, cpu_cores=0.0129) for row in LIMITS)
    read: dict[str, Column] = {"quota_cores": 0.012}
    assert not any("worker1" in row for row in judged({}, worker=read, limits=tiny).reasons)
    assert judged({}, worker={"quota_cores": NAN}).verdict is Verdict.VALID


def test_a_quota_that_follows_modelled_heat_may_fall_and_never_rise_above_it() -> None:
    hot: dict[str, Column] = {"quota_cores": when(AT, 0.2, outside=0.35, start_seconds=14)}
    assert judged({}, worker=hot, steered=["worker1"]).verdict is Verdict.VALID
    above: dict[str, Column] = {"quota_cores": when(AT, 0.5, outside=0.2, start_seconds=14)}
    assert judged({}, worker=above, steered=["worker1"]).verdict is Verdict.INVALID


def test_other_programs_on_the_machine_still_taint() -> None:
    """Here no core is idle for a whole second, so what they used the nodes may have lacked."""
    assert judged({"foreign_cpu_seconds": 0.3}).verdict is Verdict.TAINTED
    idle = {"foreign_cpu_seconds": 0.3, "cpu_idle_seconds": 1.2}
    assert judged(idle).verdict is Verdict.VALID
