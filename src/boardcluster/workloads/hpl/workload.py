"""The verbs of HPL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from boardcluster.cluster.each_node import each_node
from boardcluster.errors import HostError
from boardcluster.fetch.cache import Progress, write_whole
from boardcluster.foreign import start_of
from boardcluster.records import Engine
from boardcluster.services.linpack import BUILD_TOOLS, Linpack, have_linpack
from boardcluster.services.mpi import mpirun_command
from boardcluster.workloads.base import (
    Context,
    InputKind,
    InstallContext,
    Job,
    JobSpec,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
    number_parameter,
)
from boardcluster.workloads.hpl.output import (
    input_text,
    parse_output,
    parse_several,
    prove,
    several_text,
)
from boardcluster.workloads.hpl.plan import plan
from boardcluster.workloads.hpl.search import (
    FIRST_N,
    Candidates,
    candidates,
    chosen,
    fastest,
    fits,
    search_key,
    second_n,
)

if TYPE_CHECKING:
    from boardcluster.services.operation import LiveCluster

__all__ = ["WORKLOAD"]

_PHASE = "solve"
_BUILT = "built"
_HPCC = "hpcc"
_OUTPUT = "hpccoutf.txt"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}
"""Every core has a process of its own already."""
_PROGRAM_AND_BLAS = (
    'sha256sum "$(command -v "$0")" /usr/lib/*/libblas.so.3; readlink -f /usr/lib/*/libblas.so.3'
)


class _Hpl(Workload):
    name = "hpl"
    engines = (Engine.MPI,)
    input_kind = InputKind.MATRIX
    work_parameters = ("memory_share",)
    parameters: Mapping[str, Parameter] = {
        "nb": number_parameter(
            "order of the blocks; 0 takes the search's, or 128 without one; 32 was best on a "
            "Raspberry Pi 1 (Baun 2016, Fig. 5)",
            default=0,
            least=0,
            most=1024,
        ),
        "memory_share": number_parameter(
            "percent of the workers' free memory that the matrix uses if the size is 0",
            default=80,
            least=70,
            most=95,
        ),
        "ranks_per_node": number_parameter(
            "processes on each worker; 0 is one per core", default=0, least=0, most=256
        ),
        "p": number_parameter(
            "rows of the grid of processes; 0 takes the search's, or makes it nearly square",
            default=0,
            least=0,
            most=4096,
            note=" that divides the number of processes",
        ),
        "search": number_parameter(
            "seconds that the search for NB and P may take, before the first run of a campaign; 0 "
            "is no search",
            default=60,
            least=0,
            most=86400,
        ),
        "binary": Parameter(
            default=_BUILT,
            allowed=f"{_BUILT}, {_HPCC}, or the name or path of an xhpl on every worker, without "
            "blanks",
            meaning="the program that holds HPL: built here with OpenBLAS, Debian's hpcc, or your "
            "own",
            is_allowed=lambda text: bool(text) and text.isprintable() and " " not in text,
        ),
    }
    tools: Mapping[str, str] = {"mpirun": "openmpi-bin"}

    def tools_for(self, spec: JobSpec) -> Mapping[str, str]:
        binary = spec.parameters["binary"]
        if binary == _BUILT:
            return {**self.tools, **BUILD_TOOLS}
        return {**self.tools, _HPCC: _HPCC} if _is_hpcc(binary) else self.tools

    def check(self, spec: JobSpec) -> None:
        plan(spec)

    def describe(self, spec: JobSpec) -> str:
        tried = candidates(spec)
        if tried is None:
            return str(plan(spec))
        longer = _is_debians(spec.parameters["binary"])
        return (
            f"{plan(spec)}; before the first run a search of at most {tried.seconds:g} s among "
            f"{len(tried.nbs)} NB and {len(tried.grids)} grids"
            + (f", and twice the time of {_HPCC}'s other tests" if longer else "")
        )

    def install(self, context: InstallContext, spec: JobSpec) -> str:
        if spec.parameters["binary"] != _BUILT:
            return ""
        found = _programs(context.live, context.cache, context.progress)
        if len({each.kernels for each in found}) == 1:
            return ", ".join(dict.fromkeys(each.blas for each in found))
        versions = dict.fromkeys(each.blas.partition(",")[0] for each in found)
        return f"{', '.join(versions)}, its own choice of kernels on each worker"

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        tried = candidates(spec)
        staged = StagedInput(expected=None)
        if tried is not None:
            path = context.cache / "expected" / "hpl" / f"{self._key(context, spec)}.json"
            if not path.exists():
                found = self._search(context, spec, tried)
                write_whole(path, json.dumps(found))
            staged = StagedInput(expected=path)
        context.progress(f"HPL: {plan(_settled(spec, staged))}", 0, 0)
        return staged

    def _key(self, context: Context, spec: JobSpec) -> str:
        live = context.live
        program = self.install(_installing(context), spec)
        if not program:  # not ours: it and its BLAS may be replaced at any time
            first = live.remotes[live.spec.workers[0].name]
            asked = ["sh", "-c", _PROGRAM_AND_BLAS, spec.parameters["binary"]]
            program = first.run(asked, check=False).text
        link = live.spec.network.link_bits_per_second
        return search_key(spec, live.home, live.spec.workers, program, link)

    def _search(self, context: Context, spec: JobSpec, tried: Candidates) -> dict[str, object]:
        """Run HPL twice, outside of all measurement, and return what was fastest."""
        planned = plan(spec)
        first = self._several(context, spec, FIRST_N, [planned.nb], [(planned.p, planned.q)])
        n = second_n(tried, gflops=first[0][3], most=planned.n)
        context.progress(
            f"HPL: trying {len(tried.nbs)} NB and {len(tried.grids)} grids with N {n}",
            0,
            0,
        )
        rows = self._several(context, spec, n, tried.nbs, tried.grids)
        nb, p = fastest([row for row in rows if fits(spec, row[0], row[1])])
        return {"nb": nb, "p": p, "n": n, "tried": rows}

    def _several(
        self,
        context: Context,
        spec: JobSpec,
        n: int,
        nbs: Sequence[int],
        grids: Sequence[tuple[int, int]],
    ) -> tuple[tuple[int, int, int, float], ...]:
        text = several_text(n, nbs=nbs, grids=grids)
        phase = self._phase(context, spec, text, name="search")
        outcome = context.run_job(Engine.MPI, lambda _conf: phase)
        path = outcome.results[_OUTPUT] if phase.results else outcome.stdout
        return parse_several(start_of(path), n=n, solutions=len(nbs) * len(grids))

    def _phase(self, context: Context, spec: JobSpec, text: str, *, name: str) -> Phase:
        """Return the phase that runs HPL with an input."""
        binary = spec.parameters["binary"]
        environment = dict(_ONE_THREAD)
        program = binary
        if binary == _BUILT:
            found = _programs(context.live, context.cache, context.progress)
            program = _same_path(found)
            if len({each.kernels for each in found}) == 1:
                environment |= found[0].environment
        hosts = tuple(worker.name for worker in context.live.spec.workers)
        command = mpirun_command(
            context.live.layout.spec.network.subnet,
            hosts=hosts,
            ranks_per_host=plan(spec).ranks_per_node,
            program=[program],
            environment=environment,
        )
        return Phase(
            name=name,
            command=tuple(command),
            node=hosts[0],  # mpirun runs there, so that files are where rank 0 is
            mpi_hosts=hosts,
            files={"hpccinf.txt" if _is_hpcc(binary) else "HPL.dat": text},
            results=(_OUTPUT,) if _is_hpcc(binary) else (),
            dated=binary == _BUILT,
            yarn=False,
        )

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        spec = _settled(job.spec, staged)
        text = input_text(plan(spec), hpcc=_is_hpcc(spec.parameters["binary"]))
        return (self._phase(context, spec, text, name=_PHASE),)

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del context
        outcome = outcomes[_PHASE]
        hpcc = _is_hpcc(job.spec.parameters["binary"])
        path = outcome.results[_OUTPUT] if hpcc else outcome.stdout
        result = parse_output(start_of(path), hpcc=hpcc)
        verification = prove(plan(_settled(job.spec, staged)), result)
        return Proof(
            verification=verification,
            figures={
                "gflops_per_second": result.gflops_per_second,
                "solve_seconds": result.solve_seconds,
                "n": result.n,
                "nb": result.nb,
                "p": result.p,
                "q": result.q,
                "residual": max(result.residuals),
            },
        )


def _installing(context: Context) -> InstallContext:
    return InstallContext(live=context.live, cache=context.cache, progress=context.progress)


def _settled(spec: JobSpec, staged: StagedInput) -> JobSpec:
    """Return the job spec with what the search found for it, if there was one."""
    if staged.expected is None:
        return spec
    found = json.loads(staged.expected.read_text())
    return chosen(spec, int(found["nb"]), int(found["p"]))


def _programs(live: LiveCluster, cache: Path, progress: Progress) -> tuple[Linpack, ...]:
    """Return HPL on every worker; fetched, built and copied where it is not there."""
    workers = {worker.name: worker for worker in live.spec.workers}

    def one(name: str) -> Linpack:
        return have_linpack(
            live.remotes[name],
            cache=cache,
            folder=live.layout.folder(workers[name], "tmp"),
            shared=live.layout.shares_files,
            tell=lambda words: progress(words, 0, 0),
        )

    first, *others = workers
    found = {first: one(first)}  # it builds what the others then have
    more, errors = each_node(others, one)
    for error in errors.values():
        raise error
    return tuple((found | more)[name] for name in workers)


def _same_path(found: Sequence[Linpack]) -> str:
    """Return where HPL is on every worker: mpirun starts one path everywhere.

    Raises:
        HostError: it is not the same path, because the workers are of different kinds or their
            folders have different names.
    """
    paths = {each.xhpl for each in found}
    if len(paths) > 1:
        raise HostError(
            f"HPL is in different folders on the workers: {', '.join(sorted(paths))}",
            hint="give all workers the same folder in cluster.toml and the same system, or set "
            "hpl.binary to the path of an xhpl that is on every worker",
        )
    return paths.pop()


def _is_debians(binary: str) -> bool:
    """Whether a program is hpcc itself, which runs seven other tests before HPL."""
    return PurePosixPath(binary).name == _HPCC


def _is_hpcc(binary: str) -> bool:
    """Whether a program reads and writes as hpcc does; the one that is built here does, too."""
    return binary == _BUILT or _is_debians(binary)


WORKLOAD = _Hpl()
