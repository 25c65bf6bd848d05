"""The verbs of HPL, without running it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster.cluster.state import LiveState
from boardcluster.errors import VerificationError
from boardcluster.records import Checksum, Engine
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
from boardcluster.workloads.hpl.workload import WORKLOAD

OUTPUT = Path(__file__).with_name("hpccoutf.txt")


def never(*_: Any) -> Any:
    raise AssertionError("not to be called")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def context(
    make_spec: Callable[..., Any],
    make_layout: Callable[..., Layout],
    tmp_path: Path,
    said: list[str],
) -> Context:
    layout = make_layout(make_spec(workers=2))
    live = LiveCluster(home=tmp_path, state=cast("LiveState", None), layout=layout, remotes={})
    return Context(
        live=live,
        hdfs=cast("WebHdfs", None),
        cache=tmp_path,
        progress=lambda words, _done, _total: said.append(words),
        dataset=None,
        run_job=never,
        work=tmp_path,
    )


def job(**given: str) -> Job:
    spec = JobSpec(
        engine=Engine.MPI,
        size_bytes=8 * 1024 * 1024,
        replication=1,
        checksum=Checksum.CRC32C,
        parameters=check_parameters(WORKLOAD, {"ranks_per_node": "1", **given}),
        workers=2,
        worker_memory_bytes=1 << 30,
        worker_cores=4,
    )
    return Job(spec=spec, conf="", tag="t", output_path="/out")


def outcome(tmp_path: Path, text: str, *, name: str = "hpccoutf.txt") -> dict[str, PhaseOutcome]:
    (tmp_path / name).write_text(text)
    (tmp_path / "stderr").write_text("")
    results = {name: tmp_path / name} if name == "hpccoutf.txt" else {}
    return {
        "solve": PhaseOutcome(
            name="solve",
            duration_seconds=1.0,
            stdout=tmp_path / name,
            stderr=tmp_path / "stderr",
            results=results,
        )
    }


def test_says_before_the_start_what_will_be_solved(context: Context, said: list[str]) -> None:
    WORKLOAD.prepare(context, job().spec)

    assert said[0].startswith("HPL: N 1024, NB 128, 1 x 2 processes")


def test_runs_on_the_workers_only_and_from_the_first(context: Context) -> None:
    (phase,) = WORKLOAD.phases(context, StagedInput(), job())

    assert phase.node == "worker1"
    assert phase.mpi_hosts == ("worker1", "worker2")
    assert phase.command[0] == "mpirun"
    assert phase.command[phase.command.index("--host") + 1] == "worker1:1,worker2:1"
    assert phase.command[-1] == "hpcc"
    assert "OMP_NUM_THREADS=1" in phase.command
    assert list(phase.files) == ["hpccinf.txt"]
    assert phase.results == ("hpccoutf.txt",)
    assert not phase.yarn


def test_another_binary_reads_its_own_file_and_prints_its_result(
    context: Context, tmp_path: Path
) -> None:
    own = job(binary="/opt/hpl/xhpl")
    (phase,) = WORKLOAD.phases(context, StagedInput(), own)
    assert (list(phase.files), phase.results) == (["HPL.dat"], ())
    assert phase.command[-1] == "/opt/hpl/xhpl"
    section = OUTPUT.read_text().partition("Begin of HPL section.")[2]
    printed = section.partition("End of HPL section.")[0]

    proof = WORKLOAD.verify(context, StagedInput(), own, outcome(tmp_path, printed, name="stdout"))

    assert proof.figures["gflops_per_second"] == 7.198


def test_a_real_result_gives_its_figures(context: Context, tmp_path: Path) -> None:
    outcomes = outcome(tmp_path, OUTPUT.read_text())

    proof = WORKLOAD.verify(context, StagedInput(), job(), outcomes)

    assert proof.figures == {
        "gflops_per_second": pytest.approx(7.19813),
        "solve_seconds": 0.0996649,
        "n": 1024,
        "nb": 128,
        "p": 1,
        "q": 2,
        "residual": 0.0056144,
    }
    assert proof.output_bytes == 0


def test_a_result_of_another_plan_is_wrong(context: Context, tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="NB: expected 64, found 128"):
        WORKLOAD.verify(context, StagedInput(), job(nb="64"), outcome(tmp_path, OUTPUT.read_text()))


def test_takes_no_space_in_hdfs() -> None:
    need = WORKLOAD.need(job().spec)

    assert (need.input_bytes, need.run_bytes) == (0, 0)
