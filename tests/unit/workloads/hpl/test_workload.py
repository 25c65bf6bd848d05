"""The verbs of HPL, without running it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster.cluster.state import LiveState
from boardcluster.errors import HostError, VerificationError
from boardcluster.records import Checksum, Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.layout import Layout
from boardcluster.services.linpack import Linpack
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads.base import (
    Context,
    InstallContext,
    Job,
    JobSpec,
    Phase,
    PhaseOutcome,
    StagedInput,
    check_parameters,
)
from boardcluster.workloads.hpl import workload as module
from boardcluster.workloads.hpl.workload import WORKLOAD

OUTPUT = Path(__file__).with_name("hpccoutf.txt")


def never(*_: Any) -> Any:
    raise AssertionError("not to be called")


BUILT = Linpack(folder="/cache/linpack/k", blas="OpenBLAS 1", kernels="SKYLAKEX", key="k")


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Linpack]:
    """HPL is on each node, as told by its name; nothing is fetched or built."""
    nodes = {"worker1": BUILT, "worker2": BUILT}

    def have(remote: Any, **_: Any) -> Linpack:
        return nodes[remote.name]

    monkeypatch.setattr("boardcluster.workloads.hpl.workload.have_linpack", have)
    return nodes


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
    remotes = {name: FakeRemote(name) for name in ("worker1", "worker2")}
    live = LiveCluster(home=tmp_path, state=cast("LiveState", None), layout=layout, remotes=remotes)
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
        least_memory_bytes=1 << 30,
        smallest_memory_bytes=1 << 30,
        worker_cores=4,
    )
    return Job(spec=spec, conf="", tag="t", output_path="/out")


@pytest.mark.parametrize(
    ("binary", "programs"),
    [
        ("built", {"mpirun", "gcc", "/usr/lib/apt/apt-helper"}),
        ("hpcc", {"mpirun", "hpcc"}),
        ("/opt/xhpl", {"mpirun"}),
    ],
)
def test_what_nodes_must_have_depends_on_the_binary(binary: str, programs: set[str]) -> None:
    assert set(WORKLOAD.tools_for(job(binary=binary).spec)) == programs


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
    assert phase.command[-1] == "/cache/linpack/k/xhpl"
    assert "OMP_NUM_THREADS=1" in phase.command
    assert "OPENBLAS_CORETYPE=SKYLAKEX" in phase.command
    assert list(phase.files) == ["hpccinf.txt"]
    assert phase.results == ("hpccoutf.txt",)
    assert phase.dated
    assert not phase.yarn


def test_debians_hpcc_can_still_be_asked_for(context: Context) -> None:
    (phase,) = WORKLOAD.phases(context, StagedInput(), job(binary="hpcc"))
    assert phase.command[-1] == "hpcc"
    assert not any("CORETYPE" in word for word in phase.command)
    assert not phase.dated
    assert WORKLOAD.install(installing(context), job(binary="hpcc").spec) == ""


def installing(context: Context) -> InstallContext:
    return InstallContext(live=context.live, cache=context.cache, progress=context.progress)


def test_says_which_blas_it_brings_of_every_kind_of_worker(
    context: Context, built: dict[str, Linpack]
) -> None:
    assert WORKLOAD.install(installing(context), job().spec) == "OpenBLAS 1"
    built["worker2"] = replace(BUILT, blas="OpenBLAS 2")
    assert WORKLOAD.install(installing(context), job().spec) == "OpenBLAS 1, OpenBLAS 2"


def test_workers_that_need_different_kernels_choose_their_own(
    context: Context, built: dict[str, Linpack]
) -> None:
    built["worker2"] = replace(BUILT, kernels="HASWELL")
    (phase,) = WORKLOAD.phases(context, StagedInput(), job())
    assert not any("CORETYPE" in word for word in phase.command)


def test_refuses_workers_that_have_hpl_in_different_folders(
    context: Context, built: dict[str, Linpack]
) -> None:
    built["worker2"] = replace(BUILT, folder="/elsewhere")
    with pytest.raises(HostError, match="/cache/linpack/k/xhpl, /elsewhere/xhpl"):
        WORKLOAD.phases(context, StagedInput(), job())


LARGE = 8 * 6144 * 6144


def answering(tmp_path: Path, rates: dict[tuple[int, int], float]) -> tuple[list[str], Any]:
    """HPL that solves whatever it is given, at rates by NB and P."""
    asked: list[str] = []

    def run(engine: Engine, maker: Callable[[str], Phase]) -> PhaseOutcome:
        assert engine is Engine.MPI
        phase = maker("/conf")
        text = phase.files["hpccinf.txt"]
        asked.append(text)
        lines = [line.split() for line in text.splitlines()]
        count, grids = int(lines[6][0]), int(lines[9][0])
        n, nbs = lines[5][0], lines[7][:count]
        rows = [
            f"WR11C2R4 {n} {nb} {p} {q} 1.00 {rates.get((int(nb), int(p)), 1.0):.3e}"
            for p, q in zip(lines[10][:grids], lines[11][:grids], strict=True)
            for nb in nbs
        ]
        right = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.005 ...... PASSED"
        path = tmp_path / f"search-{len(asked)}"
        path.write_text("\n".join([*(f"{row}\n{right}" for row in rows), "End of Tests."]))
        results = {"hpccoutf.txt": path}
        return PhaseOutcome(
            name=phase.name, duration_seconds=1.0, stdout=path, stderr=path, results=results
        )

    return asked, run


def test_a_search_decides_once_and_what_it_found_is_run_and_proved(
    context: Context, tmp_path: Path, said: list[str]
) -> None:
    asked, run = answering(tmp_path, {(128, 2): 10.0, (192, 1): 30.0, (192, 2): 20.0})
    searching = replace(context, run_job=run)
    wanted = job()
    wanted = replace(
        wanted,
        spec=replace(
            wanted.spec,
            size_bytes=LARGE,
            parameters={**wanted.spec.parameters, "ranks_per_node": "2"},
        ),
    )

    staged = WORKLOAD.prepare(searching, wanted.spec)

    first, second = ([line.split() for line in text.splitlines()] for text in asked)
    assert first[5][0] == "2048"
    assert second[7][:4] == ["64", "128", "192", "256"]
    assert (second[10][:2], second[11][:2]) == (["2", "1"], ["2", "4"])
    assert "N 6144, NB 192, 1 x 4 processes" in said[-1]
    (phase,) = WORKLOAD.phases(searching, staged, wanted)
    lines = phase.files["hpccinf.txt"].splitlines()
    assert [lines[at].split()[0] for at in (7, 10, 11)] == ["192", "1", "4"]
    assert WORKLOAD.prepare(searching, wanted.spec) == staged
    assert len(asked) == 2
    wrong = outcome(tmp_path, OUTPUT.read_text())
    with pytest.raises(VerificationError, match="NB: expected 192, found 128"):
        WORKLOAD.verify(searching, staged, wanted, wrong)


def test_a_search_with_a_program_that_is_not_ours_is_for_it_and_its_blas(
    context: Context, tmp_path: Path
) -> None:
    asked, run = answering(tmp_path, {})
    searching, wanted = replace(context, run_job=run), job(binary="hpcc", ranks_per_node="2").spec
    wanted = replace(wanted, size_bytes=LARGE)
    look = ("sh", "-c", module._PROGRAM_AND_BLAS, "hpcc")
    first = cast("FakeRemote", context.live.remotes["worker1"])
    for blas in ("blas", "blas", "openblas-serial"):
        first.tell(*look, stdout=f"0f  /usr/bin/hpcc\n/usr/lib/x/{blas}/libblas.so.3\n")
    staged = [WORKLOAD.prepare(searching, wanted) for _ in range(3)]
    assert staged[0] == staged[1] != staged[2]
    assert len(asked) == 4


def test_a_search_that_got_a_wrong_solution_is_an_error(context: Context, tmp_path: Path) -> None:
    _, run = answering(tmp_path, {})

    def failing(engine: Engine, maker: Callable[[str], Phase]) -> PhaseOutcome:
        done = run(engine, maker)
        path = done.results["hpccoutf.txt"]
        path.write_text(path.read_text().replace("0.005 ...... PASSED", "16.1 ...... FAILED"))
        return cast("PhaseOutcome", done)

    with pytest.raises(VerificationError, match="search of HPL did not give 1 right solutions"):
        WORKLOAD.prepare(replace(context, run_job=failing), replace(job().spec, size_bytes=LARGE))


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


def test_what_a_search_found_and_cannot_be_kept_is_an_error_with_words(
    context: Context, tmp_path: Path
) -> None:
    _, run = answering(tmp_path, {})
    (tmp_path / "expected").write_text("no folder")
    with pytest.raises(HostError, match=r"cannot write .*expected/hpl/"):
        WORKLOAD.prepare(replace(context, run_job=run), replace(job().spec, size_bytes=LARGE))


def test_a_search_with_debians_program_is_told_to_take_longer() -> None:
    large = replace(job(binary="hpcc").spec, size_bytes=LARGE)
    assert WORKLOAD.describe(large).endswith("grids, and twice the time of hpcc's other tests")
    own = replace(job().spec, size_bytes=LARGE)
    assert WORKLOAD.describe(own).endswith("grids")
