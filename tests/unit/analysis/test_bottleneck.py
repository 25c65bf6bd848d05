"""What bound a run, on samples that were made up so that the answer is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.builders import make_fingerprint, make_result, make_samples

from boardcluster.analysis.bottleneck import Bound, PhaseDiagnosis, diagnose
from boardcluster.records import (
    AttemptState,
    Engine,
    Fingerprint,
    NodeSamples,
    Result,
    Telemetry,
)

DURATION_SECONDS = 60.0
NAN = float("nan")

IDLE: Mapping[str, float] = {
    "cpu_user_seconds": 0.0,
    "cpu_system_seconds": 0.0,
    "cpu_iowait_seconds": 0.0,
    "disk_busy_seconds/sda": 0.0,
    "disk_read_bytes/sda": 0.0,
    "disk_written_bytes/sda": 0.0,
    "disk_writes/sda": 0.0,
    "pressure_io_seconds": 0.0,
    "pressure_io_full_seconds": 0.0,
    "pressure_memory_seconds": 0.0,
    "net_received_bytes/eth0": 0.0,
    "net_sent_bytes/eth0": 0.0,
    "link_bits_per_second/eth0": 1e9,
}
"""A board whose kernel says everything, and on which nothing happens."""


def times(interval_seconds: float = 1.0, end_seconds: float = DURATION_SECONDS) -> Any:
    return np.arange(-2 * interval_seconds, end_seconds + 2 * interval_seconds, interval_seconds)


def board(
    name: str = "worker1",
    *,
    seconds: Any = None,
    cores: int = 4,
    without: tuple[str, ...] = (),
    scope: str = "machine",
    base: Mapping[str, float] = IDLE,
    **columns: Any,
) -> NodeSamples:
    """A node; columns are amounts per second, or states; ``__`` in a name stands for a slash."""
    at = times() if seconds is None else np.asarray(seconds)
    wanted = {**base, **{key.replace("__", "/"): value for key, value in columns.items()}}
    wanted = {key: value for key, value in wanted.items() if key.partition("/")[0] not in without}
    return make_samples(name, seconds=at, columns=wanted, scope=scope, cores=cores)


def world(*nodes: NodeSamples, **phases: tuple[float, float]) -> Telemetry:
    return Telemetry(duration_seconds=DURATION_SECONDS, nodes=nodes, phases=phases)


SETUP = make_fingerprint(nodes=1, node_cores=4, emulated=False)


def result(setup: Fingerprint | None = SETUP) -> Result:
    return make_result(
        None,
        setup=setup,
        state=None if setup is None else AttemptState.OK,
        workload="terasort",
        engine=Engine.MAPREDUCE,
        workers=1,
    )


def of_run(*nodes: NodeSamples, setup: Fingerprint = SETUP) -> PhaseDiagnosis:
    return diagnose(result(replace(setup, nodes=len(nodes))), world(*nodes)).run


def half(first: float, second: float = 0.0, *, at_seconds: float = 30.0) -> Any:
    """One value until a moment of the run, and another one from then on."""
    return np.where(times() <= at_seconds, first, second)


# One resource


def test_one_busy_core_of_four_is_bound_by_the_cpu() -> None:
    found = of_run(board(cpu_user_seconds=0.9, cpu_system_seconds=0.1))
    assert found.first is Bound.CPU
    assert found.second is None
    assert found.shares[Bound.CPU] == pytest.approx(1.0)
    assert found.gains[Bound.CPU] == pytest.approx(2.0)
    assert found.limits[Bound.CPU] == math.inf
    assert found.evidence == ("worker1 used 1 of 4 cores for 60 s of 60 s",)


def test_waiting_for_a_disk_alone_is_bound_by_storage() -> None:
    found = of_run(
        board(
            pressure_io_seconds=0.9,
            pressure_io_full_seconds=0.9,
            disk_read_bytes__sda=40e6,
            cpu_user_seconds=0.1,
        )
    )
    assert (found.first, found.second) == (Bound.STORAGE, Bound.CPU)
    assert found.shares[Bound.STORAGE] == pytest.approx(0.9)
    assert found.gains[Bound.STORAGE] == pytest.approx(1 / 0.55)
    assert found.limits[Bound.STORAGE] == pytest.approx(10)
    assert "worker1 waited for its disk 90 % of the time, reading 40 MB/s" in found.evidence[0]


def test_a_full_link_is_bound_by_the_network_in_its_busier_direction() -> None:
    found = of_run(board(net_received_bytes__eth0=10e6, net_sent_bytes__eth0=100e6))
    assert (found.first, found.second) == (Bound.NETWORK, Bound.START_UP)
    assert found.shares[Bound.NETWORK] == pytest.approx(0.8)
    assert "had 800 Mbit/s on its link of 1 Gbit/s" in found.evidence[0]


@pytest.mark.parametrize("name", ["docker0", "boardcluster0", "br0"])
def test_interfaces_that_others_count_too_are_left_out(name: str) -> None:
    columns: dict[str, Any] = {f"net_sent_bytes__{name}": 100e6, "net_sent_bytes__eth0": 1e6}
    found = of_run(board(**columns))
    assert found.shares[Bound.NETWORK] == pytest.approx(0.008)


def test_nothing_busy_is_waiting() -> None:
    found = of_run(board(cpu_user_seconds=0.05))
    assert (found.first, found.second) == (Bound.START_UP, Bound.CPU)
    assert found.gains[Bound.START_UP] == pytest.approx(1 / 0.525)
    assert found.evidence[0] == (
        "no node was busy for most of 60 s of 60 s; the busiest node was busy 5 % of that time"
    )


def test_memory_takes_its_time_away_from_the_disk_that_swaps() -> None:
    found = of_run(board(pressure_memory_seconds=0.6, pressure_io_seconds=0.7))
    assert found.first is Bound.MEMORY
    assert found.shares[Bound.STORAGE] == pytest.approx(0.1)
    assert found.gains[Bound.MEMORY] == found.limits[Bound.MEMORY] == pytest.approx(2.5)


def test_without_pressure_swap_is_seen_by_its_share_of_the_disk() -> None:
    found = of_run(
        board(
            without=("pressure_memory_seconds", "pressure_io_seconds", "pressure_io_full_seconds"),
            disk_busy_seconds__sda=0.8,
            cpu_iowait_seconds=0.8,
            disk_read_bytes__sda=4e6,
            disk_written_bytes__sda=4e6,
            disk_writes__sda=1000.0,
            swap_in_bytes=3e6,
            swap_out_bytes=3e6,
        )
    )
    assert found.shares[Bound.MEMORY] == pytest.approx(0.6)
    assert found.shares[Bound.STORAGE] == pytest.approx(0.2)


def test_what_other_programs_used_is_not_what_the_run_waited_for() -> None:
    found = of_run(board(cpu_user_seconds=2.0, foreign_cpu_seconds=1.8))
    assert found.shares[Bound.CPU] == pytest.approx(0.2)
    assert found.gains[Bound.CPU] == pytest.approx(1 / 0.9)
    assert found.evidence[1] == (
        "worker1 used 0.2 of 4 cores (other programs 1.8) for 60 s of 60 s"
    )


# Heat


def test_a_clock_that_the_firmware_lowered_is_heat() -> None:
    hot = board(
        cpu_user_seconds=3.9,
        clock_measured_hertz=0.9e9,
        clock_nominal_hertz=1.8e9,
        throttle_bits=4.0,
    )
    found = of_run(hot)
    assert found.shares[Bound.HEAT] == pytest.approx(0.5)
    assert found.gains[Bound.HEAT] == found.limits[Bound.HEAT] == pytest.approx(2.0)
    assert {found.first, found.second} == {Bound.CPU, Bound.HEAT}
    assert "worker1 ran at 50 % of its clock for 60 s of 60 s" in found.evidence


def test_a_low_clock_without_heat_is_the_governors() -> None:
    clocks: dict[str, Any] = {
        "clock_measured_hertz": 0.9e9,
        "clock_nominal_hertz": 1.8e9,
        "cpu_user_seconds": 3.9,
    }
    assert of_run(board(**clocks, throttle_bits=0.0)).shares[Bound.HEAT] == 0
    assert of_run(board(**clocks, temperature_celsius=45.0)).shares[Bound.HEAT] == 0
    assert of_run(board(**clocks, temperature_celsius=85.0)).shares[Bound.HEAT] > 0.4


# Several resources


def test_resources_that_took_turns_are_added() -> None:
    found = of_run(
        board(cpu_user_seconds=0.5, pressure_io_seconds=0.4, pressure_io_full_seconds=0.4)
    )
    assert found.gains[Bound.CPU] == pytest.approx(1 / 0.75)
    assert found.gains[Bound.STORAGE] == pytest.approx(1 / 0.8)
    assert found.limits[Bound.CPU] == pytest.approx(2.0)


def test_a_resource_behind_another_gains_nothing() -> None:
    both = board(cpu_user_seconds=4.0, pressure_io_seconds=0.8, pressure_io_full_seconds=0.0)
    found = of_run(both)
    assert (found.first, found.second) == (Bound.CPU, Bound.STORAGE)
    assert found.gains[Bound.CPU] == pytest.approx(1.25)  # then the disk is the longest
    assert found.gains[Bound.STORAGE] == pytest.approx(1.0)


def test_overlap_that_the_kernel_saw_leaves_time_to_wait() -> None:
    beside = board(cpu_user_seconds=0.5, pressure_io_seconds=0.5, pressure_io_full_seconds=0.0)
    found = of_run(beside)
    assert found.shares[Bound.START_UP] == pytest.approx(0.5)
    assert found.gains[Bound.CPU] == pytest.approx(1.0)


def test_without_pressure_waiting_that_hides_behind_programs_is_inferred() -> None:
    pressure = ("pressure_io_seconds", "pressure_io_full_seconds")
    hidden = board(without=pressure, cpu_user_seconds=0.9, disk_busy_seconds__sda=0.9)
    found = of_run(hidden)
    assert found.shares[Bound.CPU] == pytest.approx(0.9)
    assert found.gains[Bound.STORAGE] == pytest.approx(1.0)
    alone = board(
        without=pressure,
        cpu_user_seconds=0.1,
        cpu_iowait_seconds=0.7,
        disk_busy_seconds__sda=0.9,
    )
    assert 0.69 < of_run(alone).shares[Bound.STORAGE] < 0.81


def test_the_busiest_node_is_the_one_that_counts() -> None:
    slow = board("wörker2", pressure_io_seconds=0.8, pressure_io_full_seconds=0.8)
    found = of_run(board(cpu_user_seconds=0.3), slow)
    assert found.shares[Bound.STORAGE] == pytest.approx(0.8)
    assert found.shares[Bound.CPU] == 0
    assert found.evidence[0].startswith("wörker2 waited for its disk 80 %")


def test_another_node_takes_over_once_the_first_is_faster() -> None:
    computes = board(cpu_user_seconds=1.0)
    reads = board("worker2", pressure_io_seconds=0.8, pressure_io_full_seconds=0.8)
    found = of_run(computes, reads)
    assert (found.first, found.second) == (Bound.CPU, Bound.STORAGE)
    assert found.gains[Bound.CPU] == pytest.approx(1.25)
    assert found.gains[Bound.STORAGE] == pytest.approx(1.0)


# Phases


def test_each_phase_has_its_own_bound_and_names_with_a_slash_are_phases_too() -> None:
    node = board(
        cpu_user_seconds=half(1.0), pressure_io_seconds=half(0, 1.0),
        pressure_io_full_seconds=half(0, 1.0),
    )  # fmt: skip
    telemetry = Telemetry(
        duration_seconds=60,
        nodes=(node,),
        phases={"sort/reduce": (30, 60), "sort": (0, 60), "sort/map": (0, 30), "never": (60, 60)},
    )
    found = diagnose(result(), telemetry)
    assert [row.phase for row in found.phases] == ["sort", "sort/map", "sort/reduce", "never"]
    assert [row.first for row in found.phases[1:3]] == [Bound.CPU, Bound.STORAGE]
    assert found.phases[1].gains[Bound.CPU] == pytest.approx(2.0)
    assert found.phases[0].shares == found.run.shares
    assert found.run.gains[Bound.CPU] == pytest.approx(1 / 0.75)
    assert (found.phases[2].begin_seconds, found.phases[2].duration_seconds) == (30, 30)
    assert (found.phases[3].first, found.phases[3].missing) == (None, ("it took no time",))


def test_a_phase_between_two_samples_takes_its_part_of_them() -> None:
    node = board(cpu_user_seconds=half(1.0))
    found = diagnose(result(), world(node, short=(29.5, 30.5))).phases[0]
    assert found.known_seconds == pytest.approx(1.0)
    assert found.shares[Bound.CPU] == pytest.approx(0.5)


def test_slowed_down_time_changes_no_ratio() -> None:
    columns = {"cpu_user_seconds": half(1.0, 0.3), "pressure_io_seconds": half(0.2, 0.6)}
    plain = of_run(board(**columns))
    slow = Telemetry(
        duration_seconds=4 * DURATION_SECONDS,
        nodes=(
            replace(
                board(seconds=4 * times(), **{key: 4 * row for key, row in columns.items()}),
                interval_seconds=4.0,
            ),
        ),
    )
    found = diagnose(result(), slow).run
    for bound in Bound:
        assert found.shares[bound] == pytest.approx(plain.shares[bound])
        assert found.gains[bound] == pytest.approx(plain.gains[bound])


# Emulated nodes

LIMITS = (
    "worker1: 0.5 cores of this machine, 4 GiB memory, disk 8 GiB reading 8 MB/s and 1000"
    " requests/s, writing 4 MB/s and 1000 requests/s, link 30 Mbit/s"
)
NODE: Mapping[str, float] = {
    "cpu_user_seconds": 0.0,
    "cpu_system_seconds": 0.0,
    "storage_read_bytes": 0.0,
    "storage_written_bytes": 0.0,
    "net_received_bytes/eth0": 0.0,
    "net_sent_bytes/eth0": 0.0,
    "quota_cores": 0.5,
}
HOST: Mapping[str, float] = {
    "cpu_user_seconds": 0.5,
    "pressure_io_seconds": 0.0,
    "pressure_io_full_seconds": 0.0,
    "pressure_memory_seconds": 0.0,
}


def twin(name: str = "worker1", **columns: Any) -> NodeSamples:
    return board(name, scope="node", base=NODE, cores=2, **columns)


def host(**columns: Any) -> NodeSamples:
    return board("host", base=HOST, cores=2, **columns)


def of_twins(*nodes: NodeSamples, unwritten: str = "") -> PhaseDiagnosis:
    own = sum(node.scope == "node" for node in nodes)
    words = LIMITS.replace(", link", f"{unwritten}, link")
    limits = "\n".join(words.replace("worker1", f"worker{place + 1}") for place in range(own))
    setup = replace(SETUP, limits=limits, emulated=True, nodes=own, link_bits_per_second=10**9)
    return diagnose(result(setup), world(*nodes)).run


def test_a_used_up_cpu_limit_binds_an_emulated_board() -> None:
    found = of_twins(twin(cpu_user_seconds=0.5, quota_throttled_seconds=0.5), host())
    assert found.shares[Bound.CPU] == pytest.approx(1.0)
    assert found.gains[Bound.CPU] == pytest.approx(2.0)
    assert found.evidence == ("worker1 used 0.5 of 0.5 cores for 60 s of 60 s",)


def test_cpu_time_that_no_limit_held_back_gains_nothing_from_a_higher_one() -> None:
    free = of_twins(twin(cpu_user_seconds=0.3, quota_throttled_seconds=0.0), host())
    assert free.shares[Bound.CPU] == pytest.approx(0.3)
    assert free.gains[Bound.CPU] == pytest.approx(1.0)
    held = of_twins(twin(cpu_user_seconds=0.3, quota_throttled_seconds=0.3), host())
    assert held.shares[Bound.CPU] == pytest.approx(0.6)
    assert held.gains[Bound.CPU] == pytest.approx(1 / 0.7)


def test_emulated_boards_may_have_waited_for_one_another() -> None:
    """Of 50 and 30 % of each second nobody knows whether they were the same part of it."""
    nodes = (
        twin(cpu_user_seconds=0.25, quota_throttled_seconds=0.25),
        twin("worker2", cpu_user_seconds=0.15, quota_throttled_seconds=0.15),
    )
    found = of_twins(*nodes, host())
    low, high = found.gain_bounds[Bound.CPU]
    assert low == found.gains[Bound.CPU] == pytest.approx(1 / 0.75)
    assert high == pytest.approx(1 / 0.6)
    low, high = found.gain_bounds[Bound.START_UP]
    assert low == pytest.approx(1 / 0.9)
    assert high == found.gains[Bound.START_UP]


def test_a_limit_that_is_read_rarely_is_compared_with_all_the_time_between() -> None:
    """In every five seconds one at the limit and three at a fifth of it."""
    at = times()
    place = np.arange(len(at)) % 5
    used = np.where(place == 0, 0.5, np.where(place < 4, 0.1, 0.0))
    throttled = np.where(place == 4, 0.5, NAN)
    quota = np.where(place == 4, 0.5, NAN)
    quota[0], throttled[0] = 0.5, NAN
    node = twin(cpu_user_seconds=used, quota_throttled_seconds=throttled, quota_cores=quota)
    found = of_twins(node, host())
    # The limit gave 1.6 of 5 s; standing still for 0.5 s says that 1 s of them met it.
    assert found.shares[Bound.CPU] == pytest.approx((1 + 3 * 0.2) / 5, abs=0.06)
    saved = 1 - 1 / found.gains[Bound.CPU]
    assert 0.5 / 5 <= saved < 0.8 / 5


def test_a_limit_that_heat_lowered_is_heat() -> None:
    quota = half(0.5, 0.25)
    found = of_twins(twin(cpu_user_seconds=quota, quota_cores=quota), host())
    assert found.shares[Bound.HEAT] == pytest.approx(0.25)
    assert found.gains[Bound.HEAT] == pytest.approx(4 / 3)


def test_the_shared_kernels_pressure_goes_to_the_node_whose_disk_works() -> None:
    reads = twin(storage_read_bytes=6e6)
    little = twin("worker2", storage_read_bytes=1.5e6, cpu_user_seconds=0.1)
    found = of_twins(reads, little, host(pressure_io_seconds=0.8))
    assert found.first is Bound.STORAGE
    assert found.shares[Bound.STORAGE] == pytest.approx(0.8)
    assert found.evidence[0].startswith("worker1 waited for its disk 80 %")


def test_writing_back_beside_other_work_holds_nobody_up() -> None:
    room: dict[str, Any] = {"memory_dirty_bytes": 0.1e9, "memory_available_bytes": 2e9}
    full = {**room, "memory_dirty_bytes": 0.4e9}
    waits: dict[str, Any] = {
        "pressure_io_seconds": 0.9,
        "disk_written_bytes__sda": 50e6,
        "disk_writes__sda": 100.0,
    }
    busy: dict[str, Any] = {"net_sent_bytes__eth0": 0.9e9 / 8}
    beside = of_run(board(**waits, **busy, **room))
    assert beside.shares[Bound.STORAGE] < 1e-9
    assert beside.shares[Bound.NETWORK] == pytest.approx(0.9)
    alone = of_run(board(**waits, **room))
    assert alone.shares[Bound.STORAGE] == pytest.approx(0.9)
    held_up = of_run(board(**waits, **busy, **full))
    assert held_up.gains[Bound.NETWORK] < beside.gains[Bound.NETWORK]
    # Small requests are a journal's, or of programs that want what they wrote to be on the disk.
    small = of_run(board(**{**waits, "disk_writes__sda": 1e4}, **busy, **room))
    assert small.gains == held_up.gains


def test_a_twin_waits_for_what_it_wrote_once_nothing_else_is_left_to_do() -> None:
    """Written in ten seconds beside computing, then waited for, as fsync does."""
    written = np.where((times() > 0) & (times() <= 10), 8e6, 0.0)
    node = twin(storage_written_bytes=written, cpu_user_seconds=half(0.5, at_seconds=10))
    found = of_twins(node, host(pressure_io_seconds=half(1.0, at_seconds=25)))
    assert found.shares[Bound.CPU] == pytest.approx(10 / 60, abs=0.01)
    assert found.shares[Bound.STORAGE] == pytest.approx(15 / 60, abs=0.01)


def test_a_twin_whose_disk_holds_little_unwritten_waits_beside_its_work() -> None:
    """Twice as fast as its disk: half of the limit is full after 2.5 s, three quarters after 5."""
    node = twin(storage_written_bytes=8e6, cpu_user_seconds=0.3)
    below = host(pressure_io_seconds=0.8, memory_dirty_bytes=0.1e9, memory_available_bytes=20e9)
    free = of_twins(node, below)
    assert free.shares[Bound.STORAGE] == pytest.approx(0.2)  # what is left beside the CPU
    little_room = ", at most 40.5 MB unwritten"
    # Once it is held it writes as fast as the disk, which its journal makes a little slower.
    written = np.where(times() <= 6, 8e6, 3.9e6)
    node = twin(storage_written_bytes=written, cpu_user_seconds=0.3)
    held = of_twins(node, below, unwritten=little_room)
    assert held.shares[Bound.STORAGE] == pytest.approx((5 * 0.2 + 55 * 0.8) / 60, abs=0.02)
    # One that its disk keeps up with is never held, nor one that has written only a little.
    slower = twin(storage_written_bytes=3.5e6, cpu_user_seconds=0.3)
    little = twin(storage_written_bytes=np.where(times() <= 3, 8e6, 0.0), cpu_user_seconds=0.3)
    for other in (slower, little):
        assert of_twins(other, below, unwritten=little_room) == of_twins(other, below)
    # Where the whole machine has too much unwritten, all writers are held.
    full = host(pressure_io_seconds=0.8, memory_dirty_bytes=4e9, memory_available_bytes=20e9)
    assert of_twins(slower, full, unwritten=little_room) == of_twins(slower, full)
    assert of_twins(slower, full).shares[Bound.STORAGE] > 0.7


def test_without_the_shared_kernel_a_disk_at_its_limit_counts_as_waited_for() -> None:
    found = of_twins(twin(storage_read_bytes=4e6))
    assert found.shares[Bound.STORAGE] == pytest.approx(0.5)
    assert "no samples of the machine that all nodes share" in found.missing
    assert any("disks at their limit count as waited for" in words for words in found.missing)


def test_a_twins_link_is_that_of_its_limits() -> None:
    found = of_twins(twin(net_received_bytes__eth0=30e6 / 8), host())
    assert found.shares[Bound.NETWORK] == pytest.approx(1.0)


def test_nodes_without_limits_are_bound_by_the_machine_that_they_share() -> None:
    nodes = [twin(f"worker{place}", cpu_user_seconds=0.4, quota_cores=NAN) for place in (1, 2)]
    machine = host(cpu_user_seconds=1.9, pressure_io_seconds=0.1, pressure_io_full_seconds=0.0)
    found = diagnose(result(replace(SETUP, nodes=2)), world(*nodes, machine)).run
    assert found.first is Bound.CPU
    assert found.shares[Bound.CPU] == pytest.approx(0.95)  # more than one program: one waits
    assert found.evidence[0] == "host used 1.9 of 2 cores for 60 s of 60 s"
    assert found.missing == ()


# What is missing


def test_without_telemetry_nothing_is_said() -> None:
    found = diagnose(result(), None)
    assert found.run.first is None
    assert found.run.missing == ("no telemetry",)
    assert (found.run.shares, found.run.gains, found.phases) == ({}, {}, ())


@pytest.mark.parametrize(
    ("telemetry", "words"),
    [
        (Telemetry(duration_seconds=60, nodes=()), "no samples"),
        (Telemetry(duration_seconds=0, nodes=(board(),)), "the run took no time"),
        (Telemetry(duration_seconds=NAN, nodes=(board(),)), "the run took no time"),
        (Telemetry(duration_seconds=60, nodes=(board(seconds=[]),)), "no samples"),
        (Telemetry(duration_seconds=60, nodes=(board(seconds=[NAN, NAN]),)), "no samples"),
        (Telemetry(duration_seconds=60, nodes=(board(seconds=[500.0, 501.0]),)), "no samples"),
    ],
)
def test_samples_that_say_nothing_give_no_bound(telemetry: Telemetry, words: str) -> None:
    found = diagnose(result(), replace(telemetry, phases={"sort": (0.0, 30.0)}))
    assert (found.run.first, found.run.missing) == (None, (words,))
    assert [row.phase for row in found.phases] == ["sort"]


def test_one_sample_is_known_as_far_as_it_reaches() -> None:
    found = of_run(board(seconds=[0.9], cpu_user_seconds=0.5))
    assert found.known_seconds == pytest.approx(1.0)
    assert found.missing[-1] == "no samples in 59 s of 60 s"
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_a_gap_is_left_out_and_said() -> None:
    at = times()
    kept = at[(at <= 20) | (at >= 40)]
    found = of_run(board(seconds=kept, cpu_user_seconds=np.where(kept <= 20, 1.0, 0.0)))
    assert found.known_seconds == pytest.approx(40, abs=1)
    assert found.shares[Bound.CPU] == pytest.approx(0.5, abs=0.02)
    assert any(words.startswith("no samples in 20 s") for words in found.missing)


def test_lost_nodes_and_columns_are_named() -> None:
    node = board(without=("cpu_user_seconds", "link_bits_per_second"), pressure_io_seconds=0.5)
    setup = replace(SETUP, nodes=3, link_bits_per_second=0)
    found = diagnose(result(setup), world(node)).run
    assert found.missing == (
        "no samples of 2 of 3 nodes",
        "worker1: CPU time is not known",
        "worker1: rate of its link is not known",
    )
    assert found.first is not None


def test_a_node_without_any_known_column_is_waiting_and_says_what_is_missing() -> None:
    node = board(base={"cpu_user_seconds": NAN, "surprise/ä": 1.0})
    found = of_run(node)
    assert "worker1: waiting for storage is not known" in found.missing
    assert found.shares[Bound.START_UP] == pytest.approx(1.0)


def test_unreadable_values_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        columns: dict[str, Any] = {}
        for name in IDLE:
            row = rng.choice([0.0, 0.3, 1.0, 5e9, -1.0, NAN, np.inf, -np.inf], len(times()))
            columns[name.replace("/", "__")] = row
        at = rng.permutation(times())
        found = of_run(board(seconds=at, **columns), board("worker2", cpu_user_seconds=0.2))
        check(found)


def check(found: PhaseDiagnosis) -> None:
    """What holds of every diagnosis."""
    assert sum(found.shares.values()) == pytest.approx(1.0)
    for bound in Bound:
        assert 0 <= found.shares[bound] <= 1 + 1e-9
        assert 1 <= found.gains[bound] <= found.limits[bound] * (1 + 1e-9)
        low, high = found.gain_bounds[bound]
        assert 1 <= low <= found.gains[bound] <= high
        if bound not in (Bound.MEMORY, Bound.HEAT):
            assert found.gains[bound] <= 2 + 1e-9
    assert len(found.evidence) == sum(bound is not None for bound in (found.first, found.second))


def test_shares_and_gains_stay_within_their_bounds_whatever_is_seen() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        nodes = [
            board(
                f"worker{place}",
                throttle_bits=float(rng.choice([0, 4])),
                clock_measured_hertz=1.2e9,
                clock_nominal_hertz=1.8e9,
                **{
                    name.replace("/", "__"): rng.random(len(times())) * rng.choice([0.1, 1, 2e8])
                    for name in IDLE
                    if name != "link_bits_per_second/eth0"
                },
            )
            for place in range(3)
        ]
        check(of_run(*nodes))
