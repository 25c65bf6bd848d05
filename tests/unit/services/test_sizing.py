"""The rule of the profile ``default``, against numbers worked out by hand and by its promises."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.builders import make_node

from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec, Role
from boardcluster.services.sizing import STEP_MIB, Sizing, available_mib, size_cluster

MIB = 1 << 20
MakeSpec = Callable[..., ClusterSpec]
LEAST_MASTER = 192 + 640 + 640  # system, daemons, client; MiB

# Worked out by hand from the rule in the module's docstring:
# MiB, cores: available, slots, task, its heap, am, its heap, sort, executor heap, overhead
TABLE = {
    # system 192; 1024 - 192 - 256 = 576; 576 / 384 = 1 slot; executor 192 - 128 = 64 < 450
    (1024, 1): (576, 1, 576, 460, 512, 409, 115, 0, 128),
    # system 192; 2048 - 448 = 1600; 1600 / 384 = 4; 400 -> 384; executor 1216 - 128
    (2048, 4): (1600, 4, 384, 307, 384, 307, 76, 1088, 128),
    # system 327; 4096 - 583 = 3513 -> 3488; 5 slots; 697.6 -> 672; executor 3104; 310.4 -> 320
    (4096, 4): (3488, 5, 672, 537, 512, 409, 134, 2784, 320),
    # system 655; 8192 - 911 = 7281 -> 7264; 5 slots; 1452.8 -> 1440; executor 6880; 688 -> 704
    (8192, 4): (7264, 5, 1440, 1152, 512, 409, 256, 6176, 704),
    # system 1310; 16384 - 1566 = 14818 -> 14816; 2963.2 -> 2944; executor 14432; 1443.2 -> 1472
    (16384, 4): (14816, 5, 2944, 2355, 512, 409, 256, 12960, 1472),
    # system 2621; 32768 - 2877 = 29891 -> 29888; 5977.6 -> 4096; executor 29504; 2950.4 -> 2976
    (32768, 4): (29888, 5, 4096, 3276, 512, 409, 256, 26528, 2976),
}


@pytest.mark.parametrize(("memory_mib", "cores"), list(TABLE))
def test_boards_get_the_documented_sizes(memory_mib: int, cores: int, make_spec: MakeSpec) -> None:
    sizing = size_cluster(
        make_spec(workers=4, memory_mib=memory_mib, master_memory_mib=LEAST_MASTER, cores=cores)
    )

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
    # system 327; 4096 - 327 - 256 - 1280 = 2233 -> 2208; 5 slots; 441.6 -> 416
    spec = make_spec(workers=1, memory_mib=4096, combined=True)
    sizing = size_cluster(spec)

    assert sizing.available == {"master": 2208}
    assert (sizing.slots, sizing.task, sizing.am) == (5, 416, 416)
    assert available_mib(spec.master) == (
        2208,
        "master: 4096 MiB - 327 system - 1536 daemons = 2208 MiB",
    )


def mixed(make_spec: MakeSpec, *workers: tuple[int, int], combined: bool = False) -> ClusterSpec:
    """Return a cluster whose workers have these (MiB, cores); its master has one core."""
    spec = make_spec(workers=len(workers), combined=combined)
    if combined:
        master, *others = (
            replace(node, memory_bytes=memory_mib * MIB, cores=cores)
            for node, (memory_mib, cores) in zip(spec.nodes, workers, strict=True)
        )
        return replace(spec, nodes=(master, *others))
    master = replace(spec.master, memory_bytes=2048 * MIB, cores=1)
    nodes = [
        make_node(f"{memory_mib}-{cores}", cores=cores, memory_bytes=memory_mib * MIB)
        for memory_mib, cores in workers
    ]
    return replace(spec, nodes=(master, *nodes))


def test_the_smallest_worker_decides_and_each_offers_its_own_memory(make_spec: MakeSpec) -> None:
    sizing = size_cluster(mixed(make_spec, (8192, 8), (2048, 4)))

    assert sizing.available == {"8192-8": 7264, "2048-4": 1600}
    assert (sizing.task, sizing.executor_heap, sizing.executor_cores) == (384, 1088, 4)


def test_the_fewest_cores_of_any_worker_are_those_of_an_executor(make_spec: MakeSpec) -> None:
    # The worker of least memory has 4 cores, the largest only 2: an executor lands on either.
    sizing = size_cluster(mixed(make_spec, (2048, 4), (8192, 2), (4096, 8)))

    assert sizing.executor_cores == 2
    assert sizing.executor_heap == 1088
    # A master that only manages runs no executor: its single core does not count.
    assert size_cluster(mixed(make_spec, (2048, 4), (2048, 3))).executor_cores == 3
    # One that works as well does.
    assert size_cluster(mixed(make_spec, (8192, 1), (4096, 4), combined=True)).executor_cores == 1


def test_an_executor_never_has_more_cores_than_any_worker(make_spec: MakeSpec) -> None:
    for memories in itertools.product((2048, 3000, 8192), repeat=3):
        for cores in itertools.product((1, 2, 4, 64), repeat=3):
            spec = mixed(make_spec, *zip(memories, cores, strict=True))
            sizing = size_cluster(spec)
            assert all(1 <= sizing.executor_cores <= node.cores for node in spec.workers), spec


def test_refuses_a_master_without_memory_for_daemons_and_client_with_the_arithmetic(
    make_spec: MakeSpec,
) -> None:
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(memory_mib=8192, master_memory_mib=1024))

    assert caught.value.message == (
        "master: 192 system + 640 daemons + 640 client of a job = 1472 MiB, but it has 1024 MiB"
    )
    assert caught.value.hint.startswith("give the master more memory in cluster.toml")


def test_the_least_memory_of_a_master(make_spec: MakeSpec) -> None:
    # 8 % of 1472 are 117, so the system takes its least, 192.
    assert LEAST_MASTER == 1472
    with_least = size_cluster(make_spec(master_memory_mib=1472))
    with pytest.raises(CapacityError, match="= 1472 MiB, but it has 1471 MiB"):
        size_cluster(make_spec(master_memory_mib=1471))

    assert with_least == size_cluster(make_spec(master_memory_mib=64 << 10))


def test_the_least_memory_of_a_master_that_works_too(make_spec: MakeSpec) -> None:
    least = 192 + 256 + 640 + 640 + 384

    spec = make_spec(workers=2, combined=True, master_memory_mib=least)
    assert size_cluster(spec).available == {"master": 384, "worker1": 1600}
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(workers=2, combined=True, master_memory_mib=least - 1))
    # 2111 - 1728 = 383 -> 352
    assert caught.value.message == (
        "master: 2111 MiB - 192 system - 1536 daemons = 352 MiB, "
        "but one task container needs 384 MiB"
    )


def test_refuses_a_worker_that_holds_no_task_with_the_arithmetic(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(memory_mib=800, master_memory_mib=LEAST_MASTER))

    assert caught.value.message == (
        "worker1: 800 MiB - 192 system - 256 daemons = 352 MiB, "
        "but one task container needs 384 MiB"
    )
    assert "cluster.toml" in caught.value.hint


def test_the_least_memory_that_holds_a_task(make_spec: MakeSpec) -> None:
    least = 192 + 256 + 384

    assert size_cluster(make_spec(memory_mib=least, master_memory_mib=2048)).task == 384
    with pytest.raises(CapacityError, match=r"worker1: 831 MiB .* = 352 MiB, .* 384 MiB"):
        size_cluster(make_spec(memory_mib=least - 1, master_memory_mib=2048))


def test_refuses_a_single_worker_that_cannot_hold_master_and_task(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError) as caught:
        size_cluster(make_spec(workers=1, memory_mib=1024, master_memory_mib=2048))

    assert "= 576 MiB" in caught.value.message
    assert "application master (512 MiB) and a task (576 MiB) at once: 1088 MiB" in (
        caught.value.message
    )
    assert "add a worker" in caught.value.hint
    two = make_spec(workers=2, memory_mib=1024, master_memory_mib=2048)
    assert size_cluster(two).task == 576


def test_refuses_a_combined_node_without_memory_for_the_masters(make_spec: MakeSpec) -> None:
    with pytest.raises(
        CapacityError, match=r"master: 192 system .* = 1472 MiB, but it has 1024 MiB"
    ):
        size_cluster(make_spec(workers=2, memory_mib=1024, combined=True))
    # Room for the masters, none for a worker beside them: 1600 - 1728 = -128.
    with pytest.raises(CapacityError, match=r"1600 MiB - 192 system - 1536 daemons = -128 MiB"):
        size_cluster(make_spec(workers=2, memory_mib=1600, combined=True))


def test_spark_refusal_shows_the_arithmetic(make_spec: MakeSpec) -> None:
    sizing = size_cluster(make_spec(memory_mib=1024, master_memory_mib=LEAST_MASTER))

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
        spec = make_spec(
            memory_mib=memory_mib,
            master_memory_mib=None if combined else LEAST_MASTER,
            cores=cores,
            workers=workers,
            combined=combined,
        )
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
        assert 384 <= sizing.task <= 4096, where
        for worker in spec.workers:
            masters = 1280 if Role.MASTER in worker.roles else 0
            assert sizing.available[worker.name] + 192 + 256 + masters <= memory_mib, where
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
        assert 1 <= sizing.executor_cores <= min(worker.cores for worker in spec.workers), where
        # A Spark executor fits beside Spark's application master, with a heap Spark accepts.
        if sizing.spark_refusal:
            assert sizing.executor_heap == 0, where
        else:
            assert sizing.executor_heap >= 450, where
            assert sizing.executor_heap + sizing.executor_overhead + 384 <= available, where
            # Spark itself takes a tenth beside the heap, and no step more than that is lost.
            executor = sizing.executor_heap + sizing.executor_overhead
            assert sizing.executor_overhead * 10 >= executor, where
            assert sizing.executor_overhead < max(129, executor / 10 + STEP_MIB), where


def test_more_memory_never_means_less(make_spec: MakeSpec) -> None:
    previous = 0
    for memory_mib in range(832, 20_000, 64):
        sizing = size_cluster(make_spec(memory_mib=memory_mib, master_memory_mib=LEAST_MASTER))
        assert sizing.available["worker1"] >= previous
        previous = sizing.available["worker1"]
