"""The verbs of NetPIPE, without a network; the waiting transmitter is run for real."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster.cluster.state import LiveState
from boardcluster.errors import UsageError, VerificationError
from boardcluster.records import Checksum, Engine
from boardcluster.remote.gate import run_program
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads.base import (
    Context,
    Job,
    JobSpec,
    PhaseOutcome,
    StagedInput,
    check_parameters,
)
from boardcluster.workloads.netpipe import workload as module
from boardcluster.workloads.netpipe.workload import WORKLOAD

HERE = Path(__file__).parent


def never(*_: Any) -> Any:
    raise AssertionError("not to be called")


@pytest.fixture
def make_context(
    make_spec: Callable[..., Any], make_layout: Callable[..., Layout], tmp_path: Path
) -> Callable[[int], Context]:
    def make(workers: int) -> Context:
        layout = make_layout(make_spec(workers=workers))
        live = LiveCluster(home=tmp_path, state=cast("LiveState", None), layout=layout, remotes={})
        return Context(
            live=live,
            hdfs=cast("WebHdfs", None),
            cache=tmp_path,
            progress=never,
            dataset=None,
            run_job=never,
            work=tmp_path,
        )

    return make


def job(workers: int = 2, **given: str) -> Job:
    spec = JobSpec(
        engine=Engine.MPI,
        size_bytes=0,
        replication=1,
        checksum=Checksum.CRC32C,
        parameters=check_parameters(WORKLOAD, given),
        workers=workers,
        least_memory_bytes=1 << 30,
        smallest_memory_bytes=1 << 30,
        worker_cores=4,
    )
    return Job(spec=spec, conf="", tag="t", output_path="/out")


def outcomes(tmp_path: Path, transport: str, pairs: list[str]) -> dict[str, PhaseOutcome]:
    (tmp_path / "empty").touch()
    made = {}
    for pair in pairs:
        for ending, stderr, results in (
            (" check", HERE / f"{transport}-check.txt", {}),
            ("", tmp_path / "empty", {"np.out": HERE / f"{transport}.out"}),
        ):
            name = f"{transport} {pair}{ending}"
            made[name] = PhaseOutcome(
                name=name,
                duration_seconds=1.0,
                stdout=tmp_path / "empty",
                stderr=stderr,
                results=results,
            )
    return made


def test_on_dilated_nodes_the_transmitter_waits_longer(
    make_context: Callable[[int], Context],
) -> None:
    context = make_context(2)
    slow = replace(context.live, layout=replace(context.live.layout, dilation=2.5))

    assert transmitter(context)[-1] == "30"
    assert transmitter(replace(context, live=slow))[-1] == "75"


def test_one_worker_is_refused() -> None:
    with pytest.raises(UsageError, match="needs at least two workers, but there is only 1"):
        WORKLOAD.check(job(1).spec)
    WORKLOAD.check(job(2).spec)


@pytest.mark.parametrize(("transport", "asked"), [("tcp", ["worker2", "worker3"]), ("mpi", [])])
def test_nobody_else_may_listen_where_a_receiver_will(
    make_context: Callable[[int], Context],
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    asked: list[str],
) -> None:
    seen: list[str] = []

    def check(remotes: object, ports: Mapping[str, list[int]], *, what: str) -> None:
        assert set(map(tuple, ports.values())) == {(5002,)}
        seen.extend(ports)

    monkeypatch.setattr(module, "check_ports", check)
    with WORKLOAD.serving(make_context(3), StagedInput(), job(3, transport=transport)):
        assert seen == asked


def test_every_pair_of_workers_is_checked_and_measured(
    make_context: Callable[[int], Context],
) -> None:
    phases = WORKLOAD.phases(make_context(3), StagedInput(), job(3))

    assert [phase.name for phase in phases] == [
        "tcp worker1-worker2 check",
        "tcp worker1-worker2",
        "tcp worker1-worker3 check",
        "tcp worker1-worker3",
        "tcp worker2-worker3 check",
        "tcp worker2-worker3",
    ]
    assert not any(phase.yarn for phase in phases)


def test_over_tcp_the_receiver_runs_beside_with_the_same_options(
    make_context: Callable[[int], Context],
) -> None:
    check, measure = WORKLOAD.phases(make_context(2), StagedInput(), job())

    options = ("-p", "0", "-u", "4194304", "-n", "7")
    assert measure.node == "worker1"
    assert measure.servers == (("worker2", ("NPtcp", *options)),)
    assert measure.command[-11:] == ("NPtcp", "-h", "worker2", *options, "-o", "np.out")
    assert check.servers == (("worker2", ("NPtcp", *options, "-i")),)
    assert measure.results == ("np.out",)
    assert measure.mpi_hosts == ()


def test_over_mpi_both_ends_are_ranks(make_context: Callable[[int], Context]) -> None:
    asked = job(transport="mpi", largest_bytes="1 MiB", repeats="0")
    _, measure = WORKLOAD.phases(make_context(2), StagedInput(), asked)

    assert measure.mpi_hosts == ("worker1", "worker2")
    assert measure.node == "worker1"
    assert measure.servers == ()
    assert measure.command[-7:] == ("NPopenmpi", "-p", "0", "-u", "1048576", "-o", "np.out")
    assert measure.command[measure.command.index("--host") + 1] == "worker1:1,worker2:1"


@pytest.mark.parametrize("transport", ["tcp", "mpi"])
def test_real_results_give_figures_of_each_pair_and_of_all(
    transport: str, make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    pairs = ["worker1-worker2", "worker1-worker3", "worker2-worker3"]
    asked = job(3, transport=transport)

    proof = WORKLOAD.verify(
        make_context(3), StagedInput(), asked, outcomes(tmp_path, transport, pairs)
    )

    seconds = float((HERE / f"{transport}.out").read_text().split()[2])
    assert proof.figures["latency_mean_microseconds"] == pytest.approx(seconds * 1e6)
    for pair in pairs:
        assert proof.figures[f"{pair}_latency_microseconds"] == pytest.approx(seconds * 1e6)
        assert 900 < proof.figures[f"{pair}_throughput_megabits_per_second"] < 1100
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256
    assert proof.verification.records == 3 * 44
    assert not proof.remarks


def test_a_pair_on_which_netpipe_ended_early_is_named(
    make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    """One message of over a second is the last; the check may end from 64 KiB on."""
    made = outcomes(tmp_path, "tcp", ["worker1-worker2"])
    lines = (HERE / "tcp.out").read_text().splitlines()[:-1]
    size = int(lines[-1].split()[0])
    lines[-1] = f"{size} {size * 8 / 2**20 / 1.5:.6f} 1.50000000"
    (tmp_path / "slow.out").write_text("\n".join(lines))
    timed = made["tcp worker1-worker2"]
    made[timed.name] = replace(timed, results={"np.out": tmp_path / "slow.out"})

    [remark] = WORKLOAD.verify(make_context(2), StagedInput(), job(2), made).remarks

    assert "between worker1-worker2 the largest had 3 MiB" in remark


def test_mean_least_and_most_are_over_all_pairs(
    make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    pairs = ["worker1-worker2", "worker1-worker3", "worker2-worker3"]
    made = outcomes(tmp_path, "tcp", pairs)
    slow = made["tcp worker1-worker3"]
    made[slow.name] = replace(slow, results={"np.out": HERE / "mpi.out"})

    figures = WORKLOAD.verify(make_context(3), StagedInput(), job(3), made).figures

    fast, late = (figures[f"{pair}_latency_microseconds"] for pair in pairs[:2])
    assert fast < late
    assert figures["latency_min_microseconds"] == fast
    assert figures["latency_max_microseconds"] == late
    assert figures["latency_mean_microseconds"] == pytest.approx((2 * fast + late) / 3)


def test_a_pair_that_failed_its_check_fails_the_job(
    make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    made = outcomes(tmp_path, "tcp", ["worker1-worker2"])
    check = made["tcp worker1-worker2 check"]
    made[check.name] = replace(check, stderr=tmp_path / "empty")

    with pytest.raises(
        VerificationError, match="tcp worker1-worker2: the integrity check covers 0"
    ):
        WORKLOAD.verify(make_context(2), StagedInput(), job(), made)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transport", "udp"),
        ("largest_bytes", "64"),
        ("largest_bytes", "1 GiB"),
        ("largest_bytes", "large"),
        ("repeats", "-1"),
        ("repeats", "100001"),
    ],
)
def test_refuses_parameters_that_make_no_sense(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        check_parameters(WORKLOAD, {name: value})


def transmitter(context: Context) -> tuple[str, ...]:
    """Return the waiting program, without what it starts."""
    phase = WORKLOAD.phases(context, StagedInput(), job())[1]
    return phase.command[: phase.command.index("NPtcp")]


def test_the_transmitter_tries_again_until_somebody_listens(
    make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    # As NPtcp: 246 while nobody listens; here until the third try.
    program = "echo try >> tries; [ $(wc -l < tries) -ge 3 ] || exit 246"

    done = run_program([*transmitter(make_context(2)), "sh", "-c", program], cwd=tmp_path)

    assert done.returncode == 0
    assert (tmp_path / "tries").read_text() == "try\n" * 3


def test_the_transmitter_ends_with_any_other_failure(
    make_context: Callable[[int], Context], tmp_path: Path
) -> None:
    program = "echo try >> tries; exit 145"

    done = run_program(
        [*transmitter(make_context(2)), "sh", "-c", program], cwd=tmp_path, check=False
    )

    assert done.returncode == 145
    assert (tmp_path / "tries").read_text() == "try\n"
