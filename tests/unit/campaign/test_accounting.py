"""What a run wrote, from made-up nodes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from boardcluster.campaign.accounting import (
    StorageTotals,
    intermediate_bytes,
    left_out_between,
    read_between,
    storage_totals,
    written_between,
)
from boardcluster.records import Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.operation import LiveCluster

WRITTEN = "org.apache.hadoop.mapreduce.FileSystemCounter/FILE_BYTES_WRITTEN"


@pytest.fixture
def nodes(live: LiveCluster) -> dict[str, FakeRemote]:
    return {name: FakeRemote(name) for name in live.remotes}


@pytest.fixture
def cluster(live: LiveCluster, nodes: dict[str, FakeRemote]) -> LiveCluster:
    return replace(live, remotes=nodes)


@pytest.fixture
def make_totals() -> Callable[[int, int], StorageTotals]:
    def make(written_bytes: int, read_bytes: int) -> StorageTotals:
        return StorageTotals(
            read_bytes=read_bytes,
            written_bytes=written_bytes,
            charged_bytes=written_bytes + 1000,
            cancelled_bytes=3,
            read_call_bytes=4,
            written_call_bytes=5,
            unreadable_processes=0,
        )

    return make


def test_totals_of_every_node_that_answers(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    row = {"rchar": 1, "wchar": 2, "read_bytes": 3, "write_bytes": 4, "cancelled_write_bytes": 5}
    for number, name in enumerate(("master", "worker1", "worker3")):
        nodes[name].tell_node_agent("storage", {**row, "bounded": number, "unreadable": 0})

    totals = storage_totals(cluster)

    assert {name: value.written_bytes for name, value in totals.items()} == {
        "master": 0,
        "worker1": 1,
        "worker3": 2,
    }


def test_the_difference_per_node(make_totals: Callable[[int, int], StorageTotals]) -> None:
    before = {"a": make_totals(100, 10), "b": make_totals(5, 5)}
    after = {"a": make_totals(350, 10), "b": make_totals(5, 9)}

    assert written_between(before, after) == {"a": 250, "b": 0}
    assert read_between(before, after) == {"a": 0, "b": 4}
    assert left_out_between(before, after) == ()


def test_nodes_without_a_sound_difference_are_left_out_and_named(
    make_totals: Callable[[int, int], StorageTotals],
) -> None:
    before = {
        "lost": make_totals(1, 1),
        "reads-fell": make_totals(1, 5),
        "writes-fell": make_totals(5, 1),
        "well": make_totals(1, 1),
    }
    after = {
        "late": make_totals(1, 1),
        "reads-fell": make_totals(9, 4),
        "writes-fell": make_totals(4, 9),
        "well": make_totals(2, 3),
    }

    assert written_between(before, after) == {"well": 1}
    assert read_between(before, after) == {"well": 2}
    silent, fell = "the node did not answer", "its counters fell, as they do when a daemon ends"
    assert left_out_between(before, after) == (
        f"storage of late is not accounted for: {silent}",
        f"storage of lost is not accounted for: {silent}",
        f"storage of reads-fell is not accounted for: {fell}",
        f"storage of writes-fell is not accounted for: {fell}",
    )


@pytest.mark.parametrize(
    ("engine", "counters", "expected"),
    [
        (Engine.MAPREDUCE, {WRITTEN: 417, "spark/shuffleWriteBytes": 9}, 417),
        (Engine.MAPREDUCE, {WRITTEN: 0}, 0),
        (Engine.MAPREDUCE, {}, None),
        (Engine.SPARK, {"spark/shuffleWriteBytes": 300, "spark/diskBytesSpilled": 33}, 333),
        (Engine.SPARK, {"spark/shuffleWriteBytes": 300}, None),
        (Engine.SPARK, {WRITTEN: 417}, None),
        (Engine.MPI, {WRITTEN: 417}, None),
    ],
)
def test_intermediate_bytes(engine: Engine, counters: dict[str, int], expected: int | None) -> None:
    assert intermediate_bytes(engine, counters) == expected
