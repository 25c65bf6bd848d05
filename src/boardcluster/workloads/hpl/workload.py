"""The verbs of HPL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from boardcluster.records import Engine
from boardcluster.services.mpi import mpirun_command
from boardcluster.workloads.base import (
    Context,
    InputKind,
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
from boardcluster.workloads.hpl.output import input_text, parse_output, prove
from boardcluster.workloads.hpl.plan import plan

__all__ = ["WORKLOAD"]

_PHASE = "solve"
_HPCC = "hpcc"
_HPCC_OUTPUT = "hpccoutf.txt"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}
"""Every core has a process of its own already."""


class _Hpl(Workload):
    name = "hpl"
    engines = (Engine.MPI,)
    input_kind = InputKind.MATRIX
    parameters: Mapping[str, Parameter] = {
        "nb": number_parameter(
            "order of the blocks; 32 was best on a Raspberry Pi 1 (Baun 2016, Fig. 5)",
            default=128,
            least=1,
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
            "rows of the grid of processes; 0 makes it nearly square",
            default=0,
            least=0,
            most=4096,
            note=" that divides the number of processes",
        ),
        "binary": Parameter(
            default=_HPCC,
            allowed="hpcc, or the name or path of an xhpl on every worker, without blanks",
            meaning="the program that holds HPL",
            is_allowed=lambda text: bool(text) and text.isprintable() and " " not in text,
        ),
    }
    tools: Mapping[str, str] = {"hpcc": "hpcc", "mpirun": "openmpi-bin"}

    def check(self, spec: JobSpec) -> None:
        plan(spec)

    def describe(self, spec: JobSpec) -> str:
        return str(plan(spec))

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        context.progress(f"HPL: {plan(spec)}", 0, 0)
        return StagedInput()

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged
        planned = plan(job.spec)
        binary = job.spec.parameters["binary"]
        hpcc = _is_hpcc(binary)
        hosts = tuple(worker.name for worker in context.live.spec.workers)
        command = mpirun_command(
            context.live.layout.spec.network.subnet,
            hosts=hosts,
            ranks_per_host=planned.ranks_per_node,
            program=[binary],
            environment=_ONE_THREAD,
        )
        phase = Phase(
            name=_PHASE,
            command=tuple(command),
            node=hosts[0],  # mpirun runs there, so that files are where rank 0 is
            mpi_hosts=hosts,
            files={"hpccinf.txt" if hpcc else "HPL.dat": input_text(planned, hpcc=hpcc)},
            results=(_HPCC_OUTPUT,) if hpcc else (),
            yarn=False,
        )
        return (phase,)

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del context, staged
        outcome = outcomes[_PHASE]
        hpcc = _is_hpcc(job.spec.parameters["binary"])
        path = outcome.results[_HPCC_OUTPUT] if hpcc else outcome.stdout
        result = parse_output(path.read_text(errors="replace"), hpcc=hpcc)
        verification = prove(plan(job.spec), result)
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


def _is_hpcc(binary: str) -> bool:
    return PurePosixPath(binary).name == _HPCC


WORKLOAD = _Hpl()
