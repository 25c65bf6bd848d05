"""The rule of the profile ``default``, against numbers worked out by hand and by its promises."""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest

from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec, NetworkSpec, NodeSpec, Role
from boardcluster.services.sizing import STEP_MIB, Sizing, available_mib, size_cluster

MIB = 1 << 20
MakeSpec = Callable[..., ClusterSpec]

# Worked out by hand from the rule in the module's docstring:
# MiB, cores: available, slots, task, its heap, am, its heap, sort, executor heap, overhead
TABLE = {
    # system 192; 1024 - 192 - 256 = 576; 576 / 384 = 1 slot; executor 192 - 128 = 64 < 450
    (1024, 1): (576, 1, 576, 460, 512, 409, 115, 0, 128),
    # system 192; 2048 - 448 = 1600; 1600 / 384 = 4; 400 -> 384; executor 1216 - 128
    (2048, 4): (1600, 4, 384, 307, 384, 307, 76, 1088, 128),
    # system 327; 4096 - 583 = 3513 -> 3488; 5 slots; 697.6 -> 672; executor 3104 - 288
    (4096, 4): (3488, 5, 672, 537, 512, 409, 134, 2816, 288),
    # system 655; 8192 - 911 = 7281 -> 7264; 5 slots; 1452.8 -> 1440; executor 6880 - 672
    (8192, 4): (7264, 5, 1440, 1152, 512, 409, 256, 6208, 672),
    # system 1310; 16384 - 1566 = 14818 -> 14816; 2963 -> 1536; executor 14432 - 1440
    (16384, 4): (14816, 5, 1536, 1228, 512, 409, 256, 12992, 1440),
}


@pytest.mark.parametrize(("memory_mib", "cores"), list(TABLE))
def test_boards_get_the_documented_sizes(memory_mib: int, cores: int, make_spec: MakeSpec) -> None:
    sizing = size_cluster(make_spec(workers=4, memory_mib=memory_mib, cores=cores))

    assert (
        sizing.available["worker1"],
        sizing.slots,
        sizing.task,
        sizing.task_heap,
        sizing.am,
        sizing.am_heap,
        sizing.sort,
        sizing.executor_heap,
        sizing.executor_overhead,
    ) == TABLE[memory_mib, cores]
    assert sizing.executor_cores == cores
    assert bool(sizing.spark_refusal) == (memory_mib == 1024)


def test_master_that_works_too_gives_up_memory(make_spec: MakeSpec) -> None:
    # system 327; 4096 - 327 - 256 - 896 = 2617 -> 2592
    spec = make_spec(workers=1, memory_mib=4096, combined=True)
    sizing = size_cluster(spec)

    assert sizing.available == {"master": 2592}
    assert (sizing.task, sizing.am) == (512, 512)
    assert available_mib(spec.master) == (
        2592,
        "master: 4096 MiB - 327 system - 1152 daemons = 2592 MiB",
    )


def test_the_smallest_worker_decides_and_each_offers_its_own_memory() -> None:
    def node(name: str, role: Role, memory_mib: int, cores: int) -> NodeSpec:
        return NodeSpec(
            name=name, roles=frozenset({role}), cores=cores, memory_bytes=memory_mib * MIB
        )

    spec = ClusterSpec(
        name="mixed",
        kind="emulated",
        engines="",
        profile="default",
        network=NetworkSpec(subnet="198.18.0.0/24", link_bits_per_second=1),
        nodes=(
            node("master", Role.MASTER, 1024, 1),
            node("large", Role.WORKER, 8192, 8),
            node("small", Role.WORKER, 2048, 4),
        ),
    )
    sizing = size_cluster(spec)

    assert sizing.available == {"large": 7264, "small": 1600}
    assert (sizing.task, sizing.executor_heap, sizing.executor_cores) == (384, 1088, 4)


def test_refuses_a_worker_that_holds_no_task_with_the_arithmetic(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(memory_mib=800))

    assert caught.value.message == (
        "worker1: 800 MiB - 192 system - 256 daemons = 352 MiB, "
        "but one task container needs 384 MiB"
    )
    assert "cluster.toml" in caught.value.hint


def test_the_least_memory_that_holds_a_task(make_spec: MakeSpec) -> None:
    assert size_cluster(make_spec(memory_mib=192 + 256 + 384)).task == 384
    with pytest.raises(CapacityError):
        size_cluster(make_spec(memory_mib=192 + 256 + 383))


def test_refuses_a_single_worker_that_cannot_hold_master_and_task(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(workers=1, memory_mib=1024))

    assert "= 576 MiB" in caught.value.message
    assert "application master (512 MiB) and a task (576 MiB) at once: 1088 MiB" in (
        caught.value.message
    )
    assert "add a worker" in caught.value.hint
    assert size_cluster(make_spec(workers=2, memory_mib=1024)).task == 576


def test_refuses_a_combined_node_without_memory_for_the_masters(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError, match=r"1024 MiB - 192 system - 1152 daemons = -320 MiB"):
        size_cluster(make_spec(workers=2, memory_mib=1024, combined=True))


def test_spark_refusal_shows_the_arithmetic(make_spec: MakeSpec) -> None:
    sizing = size_cluster(make_spec(memory_mib=1024))

    assert sizing.executor_heap == 0
    assert sizing.spark_refusal == (
        "worker1: 1024 MiB - 192 system - 256 daemons = 576 MiB; - 384 application master "
        "- 128 overhead = 64 MiB of heap, but a Spark executor needs 450 MiB"
    )


def every_size(make_spec: MakeSpec) -> Iterator[tuple[ClusterSpec, Sizing]]:
    """Yield every accepted combination of a wide range of sizes, odd ones too."""
    accepted = 0
    memories = (*range(256, 3200, 37), *range(3200, 70_000, 1999), 16 << 20)
    for memory_mib, cores, workers, combined in itertools.product(
        memories, (1, 2, 3, 4, 8, 128), (1, 2, 5), (False, True)
    ):
        spec = make_spec(memory_mib=memory_mib, cores=cores, workers=workers, combined=combined)
        try:
            sizing = size_cluster(spec)
        except CapacityError as refusal:
            numbers = [int(number) for number in re.findall(r"-?\d+", str(refusal))]
            assert memory_mib in numbers
            continue
        accepted += 1
        yield spec, sizing
    assert accepted > 2000


def test_promises_hold_for_every_size(make_spec: MakeSpec) -> None:
    for spec, sizing in every_size(make_spec):
        available = min(sizing.available.values())
        memory_mib = spec.workers[0].memory_bytes // MIB
        where = f"{memory_mib} MiB, {spec.workers[0].cores} cores, {len(spec.workers)} workers"

        # Every container fits a node, and so do as many as were meant to.
        assert 0 < sizing.am <= sizing.task <= available, where
        assert sizing.slots * sizing.task <= available, where
        assert sizing.task >= 384, where
        assert available + 192 + 256 <= memory_mib, where
        # A job can make progress: master and task at once, wherever there is only one worker.
        if len(spec.workers) == 1:
            assert sizing.am + sizing.task <= available, where
        # Heaps leave room for the JVM itself; the sort buffer fits the heap.
        assert sizing.task_heap < sizing.task, where
        assert sizing.am_heap < sizing.am, where
        assert sizing.sort <= sizing.task_heap // 4 <= 2048, where
        # YARN rounds up to its step: only multiples mean what they say.
        for size in (*sizing.available.values(), sizing.task, sizing.am, sizing.executor_overhead):
            assert size % STEP_MIB == 0, where
        # A Spark executor fits beside Spark's application master, with a heap Spark accepts.
        if sizing.spark_refusal:
            assert sizing.executor_heap == 0, where
        else:
            assert sizing.executor_heap >= 450, where
            assert sizing.executor_heap + sizing.executor_overhead + 384 <= available, where
            executor = sizing.executor_heap + sizing.executor_overhead
            assert sizing.executor_overhead + STEP_MIB > executor // 10, where


def test_more_memory_never_means_less(make_spec: MakeSpec) -> None:
    previous = 0
    for memory_mib in range(832, 20_000, 64):
        sizing = size_cluster(make_spec(memory_mib=memory_mib))
        assert sizing.available["worker1"] >= previous
        previous = sizing.available["worker1"]
