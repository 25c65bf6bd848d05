"""The verbs of the replicated file system, without nodes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster import foreign
from boardcluster.cluster.state import LiveState
from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import Checksum, Engine, PlannedFault
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads.base import (
    Context,
    Job,
    JobSpec,
    Phase,
    StagedInput,
    check_parameters,
)
from boardcluster.workloads.filestore.load import STEP_BYTES, TREE
from boardcluster.workloads.filestore.tree import name_of
from boardcluster.workloads.filestore.workload import WORKLOAD


def case(
    fault: PlannedFault = PlannedFault.NONE,
    *,
    replication: int = 2,
    workers: int = 2,
    size_bytes: int = STEP_BYTES,
    **given: str,
) -> JobSpec:
    return JobSpec(
        engine=Engine.GLUSTER,
        size_bytes=size_bytes,
        replication=replication,
        checksum=Checksum.CRC32C,
        parameters=check_parameters(WORKLOAD, given),
        workers=workers,
        least_memory_bytes=1 << 30,
        smallest_memory_bytes=1 << 30,
        worker_cores=4,
        fault=fault,
    )


@pytest.fixture
def make_phases(
    make_spec: Callable[..., Any], make_layout: Callable[..., Layout], tmp_path: Path
) -> Callable[..., dict[str, Phase]]:
    def make(spec: JobSpec, *, dilation: float = 1.0) -> dict[str, Phase]:
        layout = replace(make_layout(make_spec(workers=2)), dilation=dilation)
        live = LiveCluster(
            home=tmp_path,
            state=cast("LiveState", None),
            layout=layout,
            remotes={node.name: FakeRemote(node.name) for node in layout.spec.nodes},
        )
        context = Context(
            live=live,
            hdfs=cast("WebHdfs", None),
            cache=tmp_path,
            progress=lambda *_: None,
            dataset=None,
            run_job=cast("Any", None),
            work=tmp_path,
        )
        job = Job(spec=spec, conf="", tag="t", output_path="/out")
        return {each.name: each for each in WORKLOAD.phases(context, StagedInput(), job)}

    return make


def test_what_proves_the_files_is_not_measured(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case())

    assert list(phases) == [
        *("sequential write", "sequential read", "random write", "random read"),
        *("tree make", "tree read", "healed", "bricks of worker1", "bricks of worker2"),
    ]
    assert [name for name, each in phases.items() if each.aside] == [
        *("healed", "bricks of worker1", "bricks of worker2")
    ]
    assert phases["bricks of worker2"].node == "worker2"
    assert phases["bricks of worker2"].command[-1] == "/nodes/worker2/gluster/brick-0"


def test_after_a_fault_the_client_must_have_every_brick_again(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case(PlannedFault.KILL))

    again = phases["connected again"]
    assert again.aside
    assert again.command[-1].endswith("/.meta/graphs/active/boardcluster-client-1/private")


def test_nodes_that_are_slower_get_so_much_more_time(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    asked = json.loads(make_phases(case(down_seconds="5"), dilation=3.0)["healed"].command[-1])

    assert (asked["kind"], asked["down_seconds"], asked["limit_seconds"]) == ("none", 15, 1800)
    assert asked["connect_seconds"] == 180
    away = case(PlannedFault.KILL, down_seconds="5")  # it is back only after these five, maybe
    asked = json.loads(make_phases(away, dilation=3.0)["healed"].command[-1])
    assert asked["connect_seconds"] == 195


@pytest.mark.parametrize(("replication", "workers"), [(1, 1), (1, 4), (3, 2)])
def test_fewer_workers_than_copies_or_one_copy_are_refused(replication: int, workers: int) -> None:
    with pytest.raises(CapacityError, match=f"keeps {replication} cop"):
        WORKLOAD.check(case(replication=replication, workers=workers))


def test_more_than_three_copies_and_a_size_below_one_block_are_refused() -> None:
    WORKLOAD.check(case(replication=3, workers=3))
    with pytest.raises(UsageError, match="allowed: 2 or 3"):
        WORKLOAD.check(case(replication=4, workers=4))
    with pytest.raises(UsageError, match="allowed: at least 128 MiB"):
        WORKLOAD.check(case(size_bytes=STEP_BYTES - 1))


def test_two_copies_are_told_of_split_brain_and_space_counts_every_copy() -> None:
    assert "split brain" in WORKLOAD.describe(case())
    assert "split brain" not in WORKLOAD.describe(case(replication=3, workers=3))
    need = WORKLOAD.need(case(files="10", file_bytes="100"))
    assert need.run_bytes == 2 * (STEP_BYTES + 10 * 2 * 4096), "whole blocks, and a record of each"
    assert WORKLOAD.need(case(files="10", file_bytes="4097")).run_bytes > need.run_bytes


def test_what_a_worker_holds_of_the_most_files_is_read_whole() -> None:
    most = 600_000
    check_parameters(WORKLOAD, {"files": str(most)})
    row = json.dumps({f"{TREE}/{name_of(most - 1)}": [1 << 20, "0" * 64]})
    assert most * len(row) < foreign._FILE_BYTES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("files", "0"), ("files", "600001"), ("file_bytes", "0")),
        *(("ping_seconds", "1014"), ("down_seconds", "0")),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"filestore\.{name}"):
        check_parameters(WORKLOAD, {name: value})
