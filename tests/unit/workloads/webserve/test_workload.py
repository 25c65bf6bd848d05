"""The verbs of the HTTP farm, without nodes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster.cluster.state import LiveState
from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import Checksum, Engine, PlannedFault
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads import load_workload
from boardcluster.workloads.base import (
    Context,
    Job,
    JobSpec,
    Phase,
    StagedInput,
    check_fault,
    check_parameters,
)
from boardcluster.workloads.webserve import workload as verbs
from boardcluster.workloads.webserve.workload import WORKLOAD


def case(
    fault: PlannedFault = PlannedFault.NONE, *, memory_bytes: int = 1 << 30, **given: str
) -> JobSpec:
    return JobSpec(
        engine=Engine.HTTP,
        size_bytes=0,
        replication=1,
        checksum=Checksum.CRC32C,
        parameters=check_parameters(WORKLOAD, given),
        workers=2,
        least_memory_bytes=memory_bytes,
        smallest_memory_bytes=memory_bytes,
        worker_cores=4,
        fault=fault,
    )


@pytest.fixture
def make_phases(
    make_spec: Callable[..., Any],
    make_layout: Callable[..., Layout],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., dict[str, Phase]]:
    monkeypatch.setattr(verbs, "have_loadgen", lambda *_, **__: "/cache/loadgen")

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


def options(phase: Phase) -> dict[str, str]:
    return dict(word.split("=", 1) for word in phase.command if "=" in word)


def test_only_the_timed_requests_are_measured(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case())

    assert [name for name, phase in phases.items() if not phase.aside] == ["saturation"]
    assert list(phases) == [
        *("warm-up", "counts before", "saturation", "direct"),
        *(f"load {share} percent" for share in (25, 50, 75, 90)),
        *("counts after", "null server"),
    ]
    assert all(phase.outside and not phase.yarn for phase in phases.values())


def test_loads_are_shares_of_what_was_measured_and_no_two_ask_alike(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case(seconds="7"))
    load = options(phases["load 75 percent"])

    assert (load["share"], load["of"], load["seconds"]) == (
        "0.75",
        "../saturation/result.json",
        "7",
    )
    runs = [options(phase) for phase in phases.values() if phase.results]
    assert len({each["seed"] for each in runs}) == len(runs)


def test_nodes_that_are_slower_get_so_much_more_time(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    load = options(make_phases(case(seconds="7"), dilation=3.0)["load 25 percent"])

    assert (load["seconds"], load["timeout"], load["pause"]) == ("21", "90", "0.03")
    phases = make_phases(case(PlannedFault.KILL), dilation=3.0)
    waits = {name: options(phase)["timeout"] for name, phase in phases.items() if phase.results}
    # What a user has patience for, while a server is away; else a late answer is only late.
    assert waits == {
        "warm-up": "90",
        "saturation": "15",
        "load 50 percent": "15",
        "null server": "90",
    }


def test_a_fault_happens_to_the_last_worker_in_both_its_phases(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case(PlannedFault.KILL, requests="8000", seconds="8", down_seconds="3"))

    asked = {}
    for name, phase in phases.items():
        for node, command in phase.servers:
            if "saturation" in name or "load" in name:
                assert node == "worker2"
                asked[name] = json.loads(command[-1])
    assert list(asked) == ["saturation", "load 50 percent"]
    assert asked["saturation"]["after"] == 1000
    assert asked["load 50 percent"]["delay_seconds"] == 2
    assert {row["kind"] for row in asked.values()} == {"kill"}
    assert {row["down_seconds"] for row in asked.values()} == {3}
    assert len({row["record"] for row in asked.values()}) == 2


def test_a_page_that_memory_cannot_hold_is_refused_with_the_arithmetic() -> None:
    """Four pages in two programs, and a quarter of the memory."""
    WORKLOAD.check(case(largest_page="32 MiB"))
    words = (
        r"4 pages of .* in two programs at once, 277 MB, are more than a quarter of the smallest"
    )
    with pytest.raises(CapacityError, match=words):
        WORKLOAD.check(case(largest_page="33 MiB"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requests", "99"),
        ("connections", "0"),
        ("connections", "1025"),
        ("computed_percent", "101"),
        ("largest_page", "999"),
        ("largest_page", "65 GiB"),
        ("largest_page", "big"),
        ("down_seconds", "0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"webserve\.{name}"):
        check_parameters(WORKLOAD, {name: value})


def test_faults_are_for_services_and_the_link_for_nodes_with_a_network_of_their_own(
    make_spec: Callable[..., Any],
) -> None:
    spec = make_spec(workers=2)
    check_fault(WORKLOAD, PlannedFault.LINK, spec)
    boards = replace(spec, kind="boards")
    check_fault(WORKLOAD, PlannedFault.KILL, boards)
    with pytest.raises(UsageError, match='fault "link" takes a node'):
        check_fault(WORKLOAD, PlannedFault.LINK, boards)
    with pytest.raises(UsageError, match='netpipe has no fault "kill"'):
        check_fault(load_workload("netpipe"), PlannedFault.KILL, spec)
