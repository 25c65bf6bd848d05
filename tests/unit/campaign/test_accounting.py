"""What a run wrote, from made-up nodes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.campaign.accounting import (
    StorageTotals,
    intermediate_bytes,
    left_out_between,
    read_between,
    sampling,
    storage_totals,
    written_between,
)
from boardcluster.errors import RemoteError
from boardcluster.records import Engine
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.operation import LiveCluster

WRITTEN = "org.apache.hadoop.mapreduce.FileSystemCounter/FILE_BYTES_WRITTEN"


class Node(FakeRemote):
    """A node whose sampler writes one line at once."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.started: list[tuple[dict[str, object], dict[str, str]]] = []
        self.refuses_to_start = False
        self.tell_nodeside("end", {"killed": 0})

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        if self.refuses_to_start:
            raise RemoteError(f"{self.name}: out\nof reach")
        request = json.loads(argv[-1])
        self.started.append((request, dict(env or {})))
        target = request["target"]
        self.files[target] = f"samples of {self.name}\n".encode()
        self.tell("rm", "-f", target, log)
        return ProcessRef(40, 2)


@pytest.fixture
def nodes(live: LiveCluster) -> dict[str, Node]:
    return {name: Node(name) for name in live.remotes}


@pytest.fixture
def cluster(live: LiveCluster, nodes: dict[str, Node]) -> LiveCluster:
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


def test_totals_of_every_node_that_answers(cluster: LiveCluster, nodes: dict[str, Node]) -> None:
    row = {"rchar": 1, "wchar": 2, "read_bytes": 3, "write_bytes": 4, "cancelled_write_bytes": 5}
    for number, name in enumerate(("master", "worker1", "worker3")):
        nodes[name].tell_nodeside("storage", {**row, "bounded": number, "unreadable": 0})

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


def test_samples_are_taken_on_every_node_and_fetched(
    cluster: LiveCluster, nodes: dict[str, Node], tmp_path: Path
) -> None:
    with sampling(cluster, tmp_path, {"MARK": "7"}, interval_seconds=0.5) as remarks:
        assert all(len(node.started) == 1 for node in nodes.values())
        assert not any(node.requests for node in nodes.values())

    assert remarks == []
    for name, node in nodes.items():
        request, env = node.started[0]
        assert request["do"] == "sample_storage"
        assert request["interval_seconds"] == 0.5
        assert str(request["target"]).startswith(f"/nodes/{name}/tmp/storage-")
        assert env == {"MARK": "7"}
        assert node.requests[0]["processes"] == [[40, 2]]
        assert (tmp_path / "storage" / f"{name}.jsonl").read_text() == f"samples of {name}\n"
        assert node.calls[-1][:2] == ("rm", "-f")


def test_samples_are_fetched_though_the_run_fails(
    cluster: LiveCluster, nodes: dict[str, Node], tmp_path: Path
) -> None:
    with pytest.raises(KeyError), sampling(cluster, tmp_path, {}):
        raise KeyError

    assert len(list((tmp_path / "storage").iterdir())) == len(nodes)


def test_a_node_that_dies_does_not_disturb_the_run(
    cluster: LiveCluster, nodes: dict[str, Node], tmp_path: Path
) -> None:
    nodes["worker1"].refuses_to_start = True

    with sampling(cluster, tmp_path, {}) as remarks:
        assert remarks == ["no storage samples of worker1: worker1: out of reach"]
        nodes["worker2"].tell("nodeside", "end", returncode=1)
        nodes["worker2"]._answers[("nodeside", "end")].pop(0)

    assert remarks[1:] == ["no storage samples of worker2: worker2: command failed with status 1"]
    found = {path.stem for path in (tmp_path / "storage").iterdir()}
    assert found == set(nodes) - {"worker1", "worker2"}
