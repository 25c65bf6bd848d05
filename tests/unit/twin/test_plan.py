"""How this machine is shared out among emulated boards."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_node

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import (
    ClusterSpec,
    DiskLimits,
    NodeSpec,
    NodeTwin,
    Role,
    TwinSpec,
)
from boardcluster.spec.cluster import load_cluster
from boardcluster.twin.parts import catalog_parts
from boardcluster.twin.plan import IDLE_HEADROOM, Host, plan_limits
from boardcluster.units import GIB, MIB

FIVE = "rpi-5b-8gb-2400mhz"
FIVE_EVENTS = 98699.69
NVME = "sk-hynix-gold-p31-500gb"
REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def _host(
    cores: int = 2, speed: float = 50_900.0, memory: int = 24 * GIB, disk: int = 100 * GIB
) -> Host:
    return Host(
        cores=cores,
        events_per_second_per_core=speed,
        memory_available_bytes=memory,
        disk_free_bytes=disk,
        limits_unwritten=True,
    )


def _node(name: str, *roles: Role, memory: int = GIB, medium: str = NVME) -> NodeSpec:
    twin = NodeTwin(
        board=FIVE,
        medium=medium,
        pcie="3.0" if medium else "",
        disk_bytes=8 * GIB if medium else 0,
    )
    return make_node(name, *roles, memory_bytes=memory, twin=twin)


def _spec(
    workers: int = 8, dilation: float | None = None, memory: int = GIB, medium: str = NVME
) -> ClusterSpec:
    return make_cluster(
        _node("master", memory=memory, medium=""),
        *(_node(f"worker{n}", memory=memory, medium=medium) for n in range(1, workers + 1)),
        name="fives",
        twin=TwinSpec(dilation=dilation),
    )


def test_the_least_dilation_leaves_the_headroom_and_is_said() -> None:
    plan = plan_limits(_spec(), _host())
    demand = 9 * FIVE_EVENTS / 50_900
    assert plan.dilation == 11.7
    assert demand / plan.dilation <= 2 * (1 - IDLE_HEADROOM) < demand / (plan.dilation - 0.1)
    assert plan.words[0] == "9 nodes need 17.5 cores of this machine's 2: dilation 11.7"


def test_rates_are_divided_and_sizes_are_not() -> None:
    plan = plan_limits(_spec(dilation=20.0), _host())
    assert [limits.node for limits in plan.limits] == [
        "master",
        *(f"worker{n}" for n in range(1, 9)),
    ]
    worker = plan.limits[1]
    assert worker.cpu_cores == pytest.approx(FIVE_EVENTS / 50_900 / 20)
    assert worker.memory_bytes == GIB
    assert worker.link_bits_per_second == round(46_850_000 * 1514 / 1448)
    assert worker.disk == DiskLimits(
        size_bytes=8 * GIB,
        read_bytes_per_second=45_602_570,
        write_bytes_per_second=42_701_685,
        read_iops=889,
        write_iops=2233,
        unwritten_bytes=GIB // 10,
    )
    assert plan.limits[0].disk is None
    older = plan_limits(_spec(dilation=20.0), replace(_host(), limits_unwritten=False))
    assert older.limits[1].disk == replace(worker.disk, unwritten_bytes=None)
    assert plan.words[0].endswith("dilation 20 as declared; 11.7 would be enough")


def test_what_a_board_has_is_the_same_at_every_start() -> None:
    first, second = (plan_limits(_spec(), _host(speed=speed)) for speed in (50_900.0, 49_100.0))
    assert first.dilation != second.dilation
    for one, other in zip(first.limits, second.limits, strict=True):
        assert one.board == other.board
        assert one.link_bits_per_second != other.link_bits_per_second
    assert first.limits[0].board == (
        "98,700 events/s of sysbench, 4 cores, 1 GiB memory, link 937 Mbit/s"
    )
    assert first.limits[1].board == (
        "98,700 events/s of sysbench, 4 cores, 1 GiB memory, disk 8 GiB reading 912 MB/s"
        " and 17787 requests/s, writing 854 MB/s and 44652 requests/s, at most 107 MB unwritten,"
        " link 937 Mbit/s"
    )


def test_a_dilation_that_was_chosen_is_part_of_it() -> None:
    chosen = plan_limits(_spec(dilation=20.0), _host()).limits[1].board
    assert chosen == f"{plan_limits(_spec(), _host()).limits[1].board}, dilation 20"


def test_nothing_is_divided_on_a_large_machine() -> None:
    plan = plan_limits(_spec(), _host(cores=64))
    assert plan.dilation == 1.0
    assert plan.limits[1].link_bits_per_second == round(937_000_000 * 1514 / 1448)
    assert plan.words[0].endswith(": dilation 1")


def test_one_node_asks() -> None:
    spec = _spec(workers=1)
    both = _node("only", Role.MASTER, Role.WORKER)
    plan = plan_limits(replace(spec, nodes=(both,)), _host(cores=4))
    assert plan.words[0] == "1 node needs 1.9 cores of this machine's 4: dilation 1"


def test_a_dilation_of_whole_tenths_is_not_rounded_up_further() -> None:
    # 9 boards on 2 cores, 75 % of which are usable: a machine on which that is exactly 3.3.
    speed = 9 * FIVE_EVENTS / (2 * (1 - IDLE_HEADROOM) * 3.3)
    assert plan_limits(_spec(), _host(speed=speed)).dilation == 3.3
    assert plan_limits(_spec(), _host(speed=speed * 0.999)).dilation == 3.4


def test_a_core_of_a_board_is_not_faster_than_one_of_this_machine() -> None:
    host = _host(cores=64, speed=FIVE_EVENTS / 4 / 1.5)
    plan = plan_limits(_spec(workers=1), host)
    assert plan.dilation == 1.5
    assert plan.limits[0].cpu_cores == pytest.approx(4.0)
    with pytest.raises(CapacityError, match=r"as fast as 1\.50 cores of this machine") as caught:
        plan_limits(_spec(workers=1, dilation=1.2), host)
    assert "that is" not in caught.value.message


def test_the_least_dilation_may_be_declared() -> None:
    plan = plan_limits(_spec(dilation=11.7), _host())
    assert plan.words[0].endswith("dilation 11.7 as declared")
    assert not any("warning" in line for line in plan.words)


def test_a_dilation_between_what_is_needed_and_the_next_tenth_is_enough() -> None:
    plan = plan_limits(_spec(dilation=11.65), _host())  # 11.634 is needed
    assert plan.words[0].endswith("2: dilation 11.65 as declared")
    assert not any("warning" in line for line in plan.words)
    warning = plan_limits(_spec(dilation=11.62), _host()).words[1]
    assert "leaves 24 % of this machine idle when all nodes are busy, 25 % is required" in warning


def test_a_dilation_that_leaves_too_little_idle_is_a_warning() -> None:
    plan = plan_limits(_spec(dilation=9.0), _host())
    assert plan.dilation == 9.0
    assert plan.words[1] == (
        "warning: dilation 9 leaves 3 % of this machine idle when all nodes are busy, 25 % is "
        "required: a run in which it is too slow is invalid; 11.7 would be enough"
    )


def test_a_dilation_for_which_the_machine_is_too_small_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(CapacityError) as caught:
        plan_limits(_spec(dilation=8.0), _host())
    assert caught.value.message == (
        "9 nodes need 17.5 cores of this machine's 2; at the declared dilation 8 that is 2.2 "
        "cores; 25 % of this machine must stay idle, which leaves 1.5 cores: the least dilation "
        "is 11.7"
    )
    assert caught.value.hint.startswith('in [twin] declare dilation = 11.7, or "auto"')


def test_too_little_memory_shows_the_sum_and_what_fits() -> None:
    with pytest.raises(CapacityError) as caught:
        plan_limits(_spec(memory=4 * GIB), _host(memory=24 * GIB))
    assert caught.value.message == (
        "this machine is too small for the 9 nodes of fives:\n"
        f"  memory: 9 x 4 GiB ({FIVE}) = 36 GiB, but 24 GiB is available; the largest number of "
        "workers that fits is 5"
    )
    assert caught.value.hint == (
        'declare at most 5 workers, or declare memory = "2688 MiB" for each of the 9 nodes'
    )


def test_memory_that_just_fits_is_accepted() -> None:
    assert len(plan_limits(_spec(memory=2 * GIB), _host(memory=18 * GIB)).limits) == 9
    with pytest.raises(CapacityError):
        plan_limits(_spec(memory=2 * GIB), _host(memory=18 * GIB - 1))


def test_kinds_of_nodes_are_summed_apart() -> None:
    spec = _spec(workers=2, memory=4 * GIB)
    nodes = (_node("master", memory=2 * GIB, medium=""), *spec.nodes[1:])
    changed = replace(spec, nodes=nodes)
    with pytest.raises(CapacityError) as caught:
        plan_limits(changed, _host(memory=7 * GIB))
    assert f"1 x 2 GiB ({FIVE}) + 2 x 4 GiB ({FIVE}) = 10 GiB" in caught.value.message
    assert "fits is 1" in caught.value.message
    # No more than the master's board has: 5 GiB are for the two workers.
    assert caught.value.hint == (
        'declare at most 1 worker, or declare memory = "2560 MiB" for each node that has more'
    )


def test_memory_and_disk_are_refused_together() -> None:
    with pytest.raises(CapacityError) as caught:
        plan_limits(_spec(memory=4 * GIB), _host(memory=24 * GIB, disk=20 * GIB))
    assert f"disk: 8 x 8 GiB ({FIVE}) = 64 GiB, but 20 GiB is free" in caught.value.message
    assert "memory: 9 x 4 GiB" in caught.value.message
    assert "declare at most 2 workers" in caught.value.hint
    # The master has no medium and so no disk: 20 GiB are for 8 nodes.
    assert 'memory = "2688 MiB" for each of the 9 nodes' in caught.value.hint
    assert 'disk = "2560 MiB" for each of the 8 nodes' in caught.value.hint


def test_a_machine_on_which_nothing_fits_offers_no_number() -> None:
    with pytest.raises(CapacityError) as caught:
        plan_limits(_spec(), _host(memory=100 * MIB))
    assert "fits is 0" in caught.value.message
    assert caught.value.hint == "free memory or disk, or use a larger machine"


def test_a_board_that_the_kernel_cannot_hold_to_so_little_is_named() -> None:
    small = make_node("worker1", twin=NodeTwin(board="rpi-3b"))
    spec = replace(_spec(workers=0), nodes=(_node("master", medium=""), small, small))
    for dilation, warnings in ((9.5, 0), (9.6, 1)):
        words = plan_limits(replace(spec, twin=TwinSpec(dilation=dilation)), _host()).words
        assert sum("warning" in row for row in words) == warnings
    words = plan_limits(replace(spec, twin=TwinSpec(dilation=20.0)), _host()).words
    assert words[1] == (
        "warning: at dilation 20 a core of rpi-3b is to have 0.48 % of a core of this machine, but "
        "the kernel can limit nothing to less than 1 %: a thread there is 2.1 times as fast as it "
        "should be; the largest dilation without that is 9.5"
    )


def test_notes_of_set_points_are_told_once() -> None:
    words = plan_limits(_spec(memory=2 * GIB), _host()).words
    assert words[1:] == (f"{FIVE}: 2 GiB of memory, the board has 8 GiB",)


def test_a_cluster_without_boards_is_refused() -> None:
    plain = replace(_spec(), twin=None)
    with pytest.raises(UsageError, match="no boards"):
        plan_limits(plain, _host())


def test_the_example_of_the_reference_is_planned(tmp_path: Path) -> None:
    text = (REFERENCE / "cluster-toml.md").read_text()
    example = next(
        block
        for block in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if "[twin]" in block
    )
    (tmp_path / "cluster.toml").write_text(example)
    spec = load_cluster(
        tmp_path / "cluster.toml",
        engine_pairs=("hadoop-3.4.2-spark-4.1.4",),
        profiles=("default",),
        parts=catalog_parts(),
    )
    plan = plan_limits(spec, _host())
    assert [limits.memory_bytes for limits in plan.limits] == [2 * GIB, 4 * GIB]
    assert plan.limits[1].disk
    assert plan.limits[1].disk.size_bytes == 6 * GIB


def test_the_example_of_the_page_is_right() -> None:
    text = " ".join((REFERENCE / "twin.md").read_text().split())
    plan = plan_limits(_spec(), _host())
    assert "9 nodes that need 17.5 cores of a machine with 2" in text
    assert f"so {plan.dilation:g}." in text
    assert f"{IDLE_HEADROOM * 100:g} % of it stays idle" in text


def test_cooling_that_cannot_be_modelled_is_refused_before_anything_starts() -> None:
    spec = _spec()
    nodes = tuple(
        replace(node, twin=replace(node.twin, cooling="rpi-4b-closed-case"))
        for node in spec.nodes
        if node.twin
    )
    with pytest.raises(UsageError, match="cannot be modelled") as caught:
        plan_limits(replace(spec, nodes=nodes), _host())
    assert "rpi-5b-fan" in caught.value.hint
