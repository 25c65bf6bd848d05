"""Telemetry condensed for advice: synthetic samples, into which one thing is planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.analysis.advising import run
from tests.unit.analysis.telemetry import NAN, Column, node, times, when, world

from boardcluster.analysis.advice import NodeUse, run_facts

AT = times()
MIB = 2**20


def used(**columns: Column) -> NodeUse:
    named = {name.replace("__", "/"): values for name, values in columns.items()}
    found = run_facts(run(), world(node("pi1", columns=named)))
    assert found is not None
    (row,) = found.nodes
    return row


def test_what_a_healthy_node_did() -> None:
    row = used(group_cpu_seconds__namenode=0.1, group_cpu_seconds__resourcemanager=0.05)
    assert row.node == "pi1"
    assert row.capacity_cores == 2
    assert row.busy_share == pytest.approx((1.70 + 0.22 + 0.01) / 2)
    assert row.jobs_cpu_seconds == pytest.approx(1.5 * 60)
    assert row.master_cpu_seconds == pytest.approx(0.15 * 60)
    assert row.swap_bytes == 0
    assert row.memory_available_least_bytes == 8e9
    assert row.link_bits_per_second == 1e9
    assert row.received_bytes_per_second == pytest.approx(40e6)
    assert (row.heat_seconds, row.weak_supply_seconds, row.slowed_clock_ratio) == (None,) * 3


def test_only_what_lies_within_the_run_counts() -> None:
    before = when(AT, 90.0, outside=60.0, start_seconds=-10, end_seconds=0)
    row = used(
        temperature_celsius=before, swap_out_bytes=when(AT, 0.0, outside=1e9, start_seconds=0.5)
    )
    assert row.temperature_most_celsius == 60
    # The interval from -0.6 to 0.4 s lies in the run for 0.4 s.
    assert row.swap_bytes == pytest.approx(0.4e9)


def test_heat_is_told_from_a_weak_supply() -> None:
    hot = when(AT, 4.0, outside=0.0, start_seconds=20, end_seconds=40)
    clock = when(AT, 1.2e9, outside=2.4e9, start_seconds=20, end_seconds=40)
    row = used(throttle_bits=hot, clock_measured_hertz=clock)
    assert row.heat_seconds == pytest.approx(20, abs=1)
    assert row.weak_supply_seconds == 0
    assert row.slowed_clock_ratio == pytest.approx(0.5)
    # Throttled and under-voltage at once: the supply is why.
    row = used(throttle_bits=when(AT, 5.0, outside=0.0, start_seconds=20, end_seconds=40))
    assert row.heat_seconds == 0
    assert row.weak_supply_seconds == pytest.approx(20, abs=1)


def test_the_nominal_clock_is_the_yardstick_where_it_is_known() -> None:
    row = used(throttle_bits=4.0, clock_measured_hertz=1.5e9, clock_nominal_hertz=2.0e9)
    assert row.heat_seconds == pytest.approx(60)
    assert row.slowed_clock_ratio == pytest.approx(0.75)


def test_a_quota_is_the_capacity() -> None:
    row = used(
        quota_cores=0.5,
        quota_throttled_seconds=0.0,
        cpu_user_seconds=0.4,
        cpu_system_seconds=0.0,
        cpu_irq_seconds=0.0,
    )
    assert row.capacity_cores == 0.5
    assert row.busy_share == pytest.approx(0.8)


def test_the_lowest_rate_of_the_fastest_interface() -> None:
    fell = when(AT, 1e8, outside=1e9, start_seconds=30)
    row = used(link_bits_per_second__eth0=fell, link_bits_per_second__eth1=1e7)
    assert row.link_bits_per_second == 1e8


def test_what_is_not_known_is_none() -> None:
    samples = node("pi1")
    nothing = replace(samples, columns={name: np.full(len(AT), NAN) for name in samples.columns})
    found = run_facts(run(), world(nothing, replace(samples, node="pi2", columns={})))
    assert found is not None
    for row in found.nodes:
        assert (row.busy_share, row.swap_bytes, row.link_bits_per_second) == (None, None, None)


def test_no_telemetry_no_facts() -> None:
    assert run_facts(run(), None) is None
    assert run_facts(run(), world(node("pi1"), duration_seconds=0.0)) is None
    assert run_facts(run(), world(node("pi1"), duration_seconds=NAN)) is None
    assert run_facts(replace(run(), measurement=None), world(node("pi1"))) is None


def test_names_of_nodes() -> None:
    found = run_facts(run(), world(node("pi1"), node("pi2")))
    assert found is not None
    assert found.node("pi2") is found.nodes[1]
    assert found.node("pi9") is None
