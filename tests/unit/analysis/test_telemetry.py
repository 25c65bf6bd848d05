"""Sums, rates and states of synthetic telemetry whose answers are known by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.analysis.telemetry import NAN, Column, node, times, when, world

from boardcluster.analysis.telemetry import (
    COLUMNS,
    busy_cores,
    column_names,
    column_summaries,
    disk_rate,
    grid,
    level,
    mean_rate,
    network_rate,
    node_summaries,
    own_interfaces,
    rate,
    throttled,
    window_of,
)
from boardcluster.analysis.trust.window import Window
from boardcluster.records import NodeSamples, Telemetry
from boardcluster.telemetry.agent import SCALES

TEN = 10.0


def samples(columns: dict[str, Column], **named: object) -> NodeSamples:
    """One sample a second from -1 s to 11 s, with nothing but these columns."""
    seconds = np.arange(-1.0, 12.0)
    made = node(seconds=seconds, columns=columns, **named)  # type: ignore[arg-type]
    return replace(made, columns={name: made.columns[name] for name in columns})


def run(*nodes: NodeSamples, phases: dict[str, tuple[float, float]] | None = None) -> Telemetry:
    return Telemetry(duration_seconds=TEN, nodes=nodes, phases=phases or {})


def window(columns: dict[str, Column], **named: object) -> Window:
    found = samples(columns, **named)
    return window_of(found, run(found))


def test_every_column_that_the_agent_writes_is_known_with_its_kind() -> None:
    assert set(COLUMNS) == {*SCALES, "clock_step_seconds"}
    for name, (kind, _) in SCALES.items():
        assert COLUMNS[name].amount == (kind == "c"), name


def test_a_steady_amount_has_its_rate_and_a_part_of_a_run_only_its_part() -> None:
    found = window({"cpu_user_seconds": 1.5, "cpu_system_seconds": 0.25})
    edges = grid(found)
    assert len(edges) == 11
    assert busy_cores(found, edges) == pytest.approx(np.full(10, 1.75))
    half = replace(found, end_seconds=2.5)
    assert mean_rate(half, ["cpu_user_seconds"]) == pytest.approx(1.5)


def test_a_column_that_is_read_rarely_is_spread_and_never_counted_twice() -> None:
    values = np.full(13, NAN)
    values[[5, 10]] = 4.0, 6.0  # read at -1, 4 and 9 s: 4 and 6 s of CPU in between
    found = window({"foreign_cpu_seconds": values})
    rates = rate(found, "foreign_cpu_seconds", grid(found))
    assert rates is not None
    assert rates[:4] == pytest.approx(np.full(4, 0.8))
    assert rates[4:9] == pytest.approx(np.full(5, 1.2))
    assert np.isnan(rates[9]), "nobody has looked yet"
    assert mean_rate(found, ["foreign_cpu_seconds"]) == pytest.approx((4 * 0.8 + 5 * 1.2) / 9)


def test_wider_intervals_keep_the_sum() -> None:
    values = np.arange(13.0)
    found = window({"disk_read_bytes/sda": values})
    fine, wide = grid(found), grid(found, most=3)
    assert len(wide) == 4
    sums = []
    for edges in (fine, wide):
        rates = rate(found, "disk_read_bytes/sda", edges)
        assert rates is not None
        sums.append(float(np.sum(rates * np.diff(edges))))
    assert sums[0] == pytest.approx(sums[1]) == pytest.approx(values[2:12].sum())


def test_where_the_agent_was_away_nothing_is_drawn_and_the_sum_is_kept() -> None:
    seconds = times(end_seconds=60.0, without=[(20.0, 40.0)])
    found = node(seconds=seconds, columns={"cpu_user_seconds": np.diff(seconds, prepend=-3.0)})
    cut = window_of(found, world(found))
    rates = rate(cut, "cpu_user_seconds", grid(cut))
    assert rates is not None
    assert np.isnan(rates[25:35]).all()
    assert rates[:19] == pytest.approx(np.ones(19))
    assert mean_rate(cut, ["cpu_user_seconds"]) == pytest.approx(1.0)
    clock = level(cut, "clock_measured_hertz", grid(cut))
    assert clock is not None
    assert np.isnan(clock[30])


def test_a_state_holds_until_it_is_read_again() -> None:
    values = np.full(13, NAN)
    values[[1, 6]] = 50.0, 60.0
    found = window({"temperature_celsius": values})
    shown = level(found, "temperature_celsius", grid(found))
    assert shown is not None
    assert shown[:4] == pytest.approx(np.full(4, 50.0))
    assert shown[4:] == pytest.approx(np.full(6, 60.0))


def test_disks_are_devices_of_a_machine_and_processes_of_an_emulated_node() -> None:
    machine = window({"disk_read_bytes/sda": 3e6, "disk_read_bytes/sdb": 1e6})
    rates = disk_rate(machine, "read", grid(machine))
    assert rates == pytest.approx(np.full(10, 4e6))
    emulated = window({"storage_read_bytes": 7e6}, scope="node")
    assert disk_rate(emulated, "read", grid(emulated)) == pytest.approx(np.full(10, 7e6))


def test_interfaces_that_count_the_packets_of_others_are_left_out() -> None:
    found = window({"net_sent_bytes/eth0": 5e6, "net_sent_bytes/ifb0": 5e6})
    assert network_rate(found, "sent", grid(found)) == pytest.approx(np.full(10, 5e6))


@pytest.mark.parametrize(
    ("names", "own"),
    [
        (["eth0", "eth0.10"], ["eth0"]),
        (["eth0.10", "eth0", "eth0.10.20", "eth1.10"], ["eth0", "eth1.10"]),
        (["eth0.10", "eth0.20"], ["eth0.10", "eth0.20"]),
        (["eth0", "eth0.lan", "eth0.", ".10", ""], ["eth0", "eth0.lan", "eth0.", ".10", ""]),
        (["enp1s0", "bond0", "br0.5", "vlan7"], ["enp1s0"]),
    ],
    ids=["carried", "twice", "in a container", "other names", "virtual"],
)
def test_a_vlan_counts_where_what_carries_it_does_not(names: list[str], own: list[str]) -> None:
    assert list(own_interfaces(names)) == own


def test_bytes_of_a_vlan_are_counted_once() -> None:
    found = window({"net_sent_bytes/eth0": 5e6, "net_sent_bytes/eth0.10": 5e6})
    assert network_rate(found, "sent", grid(found)) == pytest.approx(np.full(10, 5e6))


def test_a_summary_by_hand() -> None:
    seconds = np.arange(-1.0, 12.0)
    [row] = node_summaries(
        run(
            samples(
                {
                    "cpu_user_seconds": when(seconds, 2.0, outside=1.0, start_seconds=5.0),
                    "cpu_iowait_seconds": 0.2,
                    "clock_measured_hertz": when(
                        seconds, 1.2e9, outside=2.4e9, start_seconds=7.0, end_seconds=8.0
                    ),
                    "clock_hertz/cpu0": 2.4e9,
                    "clock_hertz/cpu1": 2.3e9,
                    "temperature_celsius": 50.0 + seconds,
                    "memory_available_bytes": 8e9 - 1e8 * seconds,
                    "group_memory_bytes/datanode": 1e8,
                    "group_memory_bytes/jobs": 2e8,
                    "swap_used_bytes": 0.0,
                    "throttle_bits": when(
                        seconds, 4.0, outside=0.0, start_seconds=2.0, end_seconds=5.0
                    ),
                    "quota_throttled_seconds": 0.1,
                },
                cores=4,
            )
        )
    )
    assert row.samples == 10
    assert row.cpu_busy_mean_cores == pytest.approx(1.5)
    assert row.cpu_busy_mean_share == pytest.approx(0.375)
    assert row.cpu_busy_most_cores == pytest.approx(2.0)
    assert row.cpu_iowait_mean_share == pytest.approx(0.05)
    assert row.clock_least_hertz == 1.2e9
    assert row.clock_reported_least_hertz == 2.3e9
    assert row.temperature_most_celsius == 60.0
    assert row.memory_available_least_bytes == 7e9
    assert row.memory_own_most_bytes == pytest.approx(3e8)
    assert row.swap_used_most_bytes == 0
    assert row.throttled_seconds == pytest.approx(3.0)
    assert row.quota_throttled_seconds == pytest.approx(1.0)
    assert row.cpu_steal_mean_share is None
    assert row.disk_read_bytes_per_second is None
    assert row.foreign_cpu_seconds is None


def test_a_phase_is_summed_up_by_itself() -> None:
    seconds = np.arange(-1.0, 12.0)
    busy = when(seconds, 2.0, outside=0.0, start_seconds=4.0)
    phases = {"write": (0.0, 4.0), "read": (4.0, 10.0)}
    telemetry = run(samples({"cpu_user_seconds": busy}), phases=phases)
    [write], [read] = (node_summaries(telemetry, name) for name in phases)
    assert write.cpu_busy_mean_cores == pytest.approx(0.0)
    assert write.duration_seconds == 4.0
    assert read.cpu_busy_mean_cores == pytest.approx(2.0)
    assert read.span == "read"
    with pytest.raises(KeyError):
        node_summaries(telemetry, "sort")


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_samples_are_unknown_and_no_error(count: int) -> None:
    full = node(seconds=np.arange(3.0, 3.0 + count))
    empty = replace(full, columns={name: np.full(count, NAN) for name in full.columns})
    for found in (full, empty):
        [row] = node_summaries(run(found))
        assert row.samples == count
        if not count or found is empty:
            assert row.cpu_busy_mean_cores is None
            assert row.clock_least_hertz is None
        rows = column_summaries(run(found), column_names(run(found)))
        assert len(rows) == len(found.columns)


def test_a_run_without_nodes_or_without_a_duration() -> None:
    assert node_summaries(run()) == ()
    assert column_names(run()) == ()
    [row] = node_summaries(Telemetry(duration_seconds=0.0, nodes=(node(),)))
    assert row.cpu_busy_mean_cores is None
    assert row.duration_seconds == 0.0


def test_single_columns_with_all_behind_the_slash() -> None:
    telemetry = run(samples({"disk_reads/sda": 3.0, "disk_reads/sdb": 5.0, "throttle_bits": 1.0}))
    rows = column_summaries(telemetry, ["disk_reads", "throttle_bits"])
    assert [(row.column, row.total, row.mean, row.least, row.most) for row in rows] == [
        ("disk_reads/sda", pytest.approx(30.0), pytest.approx(3.0), pytest.approx(3.0), 3.0),
        ("disk_reads/sdb", pytest.approx(50.0), pytest.approx(5.0), pytest.approx(5.0), 5.0),
        ("throttle_bits", None, 1.0, 1.0, 1.0),
    ]


def test_bits_since_boot_alone_hold_nothing_back() -> None:
    found = throttled(window({"throttle_bits": float(1 << 18)}))
    assert found is not None
    assert not found[1].any()
    assert throttled(window({"throttle_bits": NAN})) is None


def test_a_negative_amount_is_unknown_and_takes_nothing_away() -> None:
    values = np.ones(13)
    values[5] = -100.0
    found = window({"disk_reads/sda": values})
    assert mean_rate(found, ["disk_reads/sda"]) == pytest.approx(0.9)
    rates = rate(found, "disk_reads/sda", grid(found))
    assert rates is not None
    assert rates.min() == pytest.approx(0.0)


def test_a_state_that_nobody_read_for_long_is_unknown_again() -> None:
    seconds = np.arange(-1.0, 61.0)
    values = np.full(len(seconds), NAN)
    values[[1, 61]] = 50.0
    made = node(seconds=seconds, columns={"temperature_celsius": values})
    found = window_of(made, world(made))
    shown = level(found, "temperature_celsius", grid(found))
    assert shown is not None
    assert shown[5] == 50.0
    assert np.isnan(shown[30])
    assert shown[59] == 50.0


def test_an_interval_of_which_little_is_known_is_unknown() -> None:
    values = np.full(13, NAN)
    values[[1, 6]] = 1.0, 1.0  # the last value is of 5 s; nothing is known of what follows
    found = window({"cpu_user_seconds": values})
    rates = rate(found, "cpu_user_seconds", np.array([0.0, 4.5, 9.0]))
    assert rates is not None
    assert rates[0] == pytest.approx(0.2)
    assert np.isnan(rates[1])


@pytest.mark.parametrize(
    ("quota", "share"),
    [
        (0.5, 0.4),
        (NAN, 0.05),
        (8.0, 0.05),  # more than it has cores
        (when(times(), 0.25, outside=0.5, start_seconds=30), 0.4),  # the largest counts
        (when(times(), 0.25, outside=NAN, start_seconds=30), 0.05),
    ],
    ids=["quota", "none", "large", "cut", "set late"],
)
def test_a_node_is_busy_when_its_quota_is_used_up(quota: Column, share: float) -> None:
    columns: dict[str, Column] = {
        "cpu_user_seconds": 0.15,
        "cpu_system_seconds": 0.05,
        "cpu_irq_seconds": NAN,
        "quota_cores": quota,
    }
    found = node("worker1", scope="node", columns=columns, cores=4)
    [summary] = node_summaries(world(found))
    assert summary.cpu_busy_mean_share == pytest.approx(share)
    assert summary.cpu_busy_mean_cores == pytest.approx(0.2)
