"""The verbs of the replicated database, without nodes."""

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
from boardcluster.workloads.base import Context, Job, JobSpec, Phase, StagedInput, check_parameters
from boardcluster.workloads.oltp.workload import WORKLOAD

MODES = ("read_only", "read_write", "write_only")


def case(fault: PlannedFault = PlannedFault.NONE, *, workers: int = 3, **given: str) -> JobSpec:
    return JobSpec(
        engine=Engine.GALERA,
        size_bytes=0,
        replication=1,
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
        layout = replace(make_layout(make_spec(workers=3)), dilation=dilation)
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
            mark={"BOARDCLUSTER_ATTEMPT": "a-1"},
        )
        job = Job(spec=spec, conf="", tag="t", output_path="/out")
        return {each.name: each for each in WORKLOAD.phases(context, StagedInput(), job)}

    return make


def asked(phase: Phase) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(phase.command[-1])
    return found


def test_only_the_timed_transactions_are_measured(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case())

    assert [name for name, phase in phases.items() if not phase.aside] == ["saturation"]
    assert list(phases)[-2:] == ["audit after", "counts after"]
    assert asked(phases["saturation"])["transactions"] == 20_000
    assert asked(phases["warm-up"])["transactions"] == 2000
    assert len(asked(phases["direct"])["hosts"]) == 3
    assert asked(phases["load 75 percent"])["share"] == 75
    seeds = [asked(phase)["seed"] for name, phase in phases.items() if "-u" in name or " p" in name]
    assert len(seeds) == len(set(seeds)) == 5


@pytest.mark.parametrize("mode", MODES)
def test_what_writes_is_in_the_ledger(
    make_phases: Callable[..., dict[str, Phase]], mode: str
) -> None:
    phases = make_phases(case(mode=mode))

    writes = mode != "read_only"
    assert asked(phases["saturation"])["ledger"] is writes
    assert ("plain" in phases) is writes  # the ledger's cost, where there is one
    if writes:
        assert asked(phases["plain"])["ledger"] is False


def test_no_argument_holds_a_password(make_phases: Callable[..., dict[str, Phase]]) -> None:
    for phase in make_phases(case(PlannedFault.KILL)).values():
        words = [*phase.command, *(word for _, command in phase.servers for word in command)]
        assert not any("--password" in word or "mysql-password" in word for word in words)


def test_a_fault_is_in_two_phases_and_follows_the_nodes(
    make_phases: Callable[..., dict[str, Phase]],
) -> None:
    phases = make_phases(case(PlannedFault.KILL, down_seconds="4"), dilation=2.5)

    assert [name for name, phase in phases.items() if phase.servers] == [
        "saturation",
        "load 50 percent",
    ]
    assert not {"direct", "plain", "load 25 percent"} & set(phases)
    ((node, command),) = phases["load 50 percent"].servers
    fault = json.loads(command[-1])
    assert node == "worker3"
    assert (fault["kind"], fault["down_seconds"], fault["delay_seconds"]) == ("kill", 10.0, 6.25)
    assert fault["after"] > 10  # more than the balancer's checks make while the load begins
    for name in ("saturation", "load 50 percent"):
        returns = asked(phases[name])["returns"]
        assert (returns["server"], returns["patience_seconds"]) == ("worker3", 235.0)
        # What the fault itself sees of its end is written down before the load ends.
        assert returns["steady_seconds"] > fault["steady_seconds"] == 5.0
    assert not asked(phases["warm-up"]).get("returns")
    assert asked(phases["saturation"])["pause_milliseconds"] == 50
    assert "a-1" in fault["record"]  # no record of an earlier run is taken for this one's


@pytest.mark.parametrize("fault", [PlannedFault.KILL, PlannedFault.LINK])
def test_only_a_link_is_taken_away_as_root(
    make_phases: Callable[..., dict[str, Phase]], fault: PlannedFault
) -> None:
    for name, phase in make_phases(case(fault)).items():
        if phase.servers:
            assert phase.servers_as_root is (fault is PlannedFault.LINK), name


@pytest.mark.parametrize("workers", [1, 2])
def test_fewer_nodes_than_three_are_refused(workers: int) -> None:
    with pytest.raises(CapacityError, match=f"at least 3 workers, not {workers}: only then do two"):
        WORKLOAD.check(case(workers=workers))


@pytest.mark.parametrize("workers", [4, 6])
def test_an_even_number_is_refused_with_the_reason(workers: int) -> None:
    half = workers // 2
    with pytest.raises(UsageError, match=rf"into {half} and {half}, .* \(split brain\)") as caught:
        WORKLOAD.check(case(workers=workers))
    assert f"workers = {workers - 1} or {workers + 1}" in caught.value.hint


@pytest.mark.parametrize("workers", [3, 5])
def test_odd_numbers_are_right(workers: int) -> None:
    WORKLOAD.check(case(workers=workers))


def test_a_table_needs_its_room_on_every_worker() -> None:
    small, large = (
        WORKLOAD.need(case(rows=rows, mode="read_only")).run_bytes for rows in ("100", "1000100")
    )
    assert large - small == 3 * 4 * 1_000_000 * 280
    assert WORKLOAD.need(case(rows="100")).run_bytes > small  # what writes needs more


def test_other_modes_are_refused() -> None:
    with pytest.raises(UsageError, match="allowed: read_only, read_write or write_only"):
        case(mode="delete")


@pytest.mark.parametrize(
    ("given", "fault", "fits"),
    [
        ({"tables": "300", "threads": "16"}, PlannedFault.NONE, True),
        ({"tables": "304", "threads": "16"}, PlannedFault.NONE, False),
        ({"tables": "1000", "threads": "3"}, PlannedFault.NONE, True),
        ({"threads": "900"}, PlannedFault.NONE, True),
        ({"threads": "900"}, PlannedFault.KILL, False),
    ],
)
def test_more_statements_than_a_server_holds_are_refused(
    given: dict[str, Any], fault: PlannedFault, fits: bool
) -> None:
    spec = case(fault, **given)
    if fits:
        WORKLOAD.check(spec)
    else:
        with pytest.raises(UsageError, match=r"statements for .*; MariaDB holds 16,382"):
            WORKLOAD.check(spec)
