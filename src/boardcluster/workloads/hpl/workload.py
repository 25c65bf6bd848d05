"""The verbs of HPL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from boardcluster.records import Engine
from boardcluster.services.mpi import mpirun_command
from boardcluster.workloads.base import (
    Case,
    Context,
    Job,
    Need,
    Parameter,
    Phase,
    PhaseOutcome,
    Prepared,
    Proof,
    Takes,
)
from boardcluster.workloads.hpl.output import input_text, parse_output, prove
from boardcluster.workloads.hpl.plan import plan

__all__ = ["WORKLOAD", "Hpl"]

_PHASE = "solve"
_HPCC = "hpcc"
_HPCC_OUTPUT = "hpccoutf.txt"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}
"""Every core has a process of its own already."""


def _within(least: int, most: int, text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6 and least <= int(text) <= most


class Hpl:
    """See the package's docstring."""

    name = "hpl"
    engines = (Engine.MPI,)
    takes = Takes.MATRIX
    parameters: Mapping[str, Parameter] = {
        "nb": Parameter(
            default="128",
            allowed="a whole number from 1 to 1024",
            meaning="order of the blocks; 32 was best on a Raspberry Pi 1 (Baun 2016, Fig. 5)",
            is_allowed=lambda text: _within(1, 1024, text),
        ),
        "memory_share": Parameter(
            default="80",
            allowed="a whole number from 70 to 95",
            meaning="percent of the workers' free memory that the matrix takes if the size is 0",
            is_allowed=lambda text: _within(70, 95, text),
        ),
        "ranks_per_node": Parameter(
            default="0",
            allowed="a whole number from 0 to 256",
            meaning="processes on each worker; 0 is one per core",
            is_allowed=lambda text: _within(0, 256, text),
        ),
        "p": Parameter(
            default="0",
            allowed="a whole number from 0 to 4096 that divides the number of processes",
            meaning="rows of the grid of processes; 0 makes it nearly square",
            is_allowed=lambda text: _within(0, 4096, text),
        ),
        "binary": Parameter(
            default=_HPCC,
            allowed="hpcc, or the name or path of an xhpl on every worker, without blanks",
            meaning="the program that holds HPL",
            is_allowed=lambda text: bool(text) and text.isprintable() and " " not in text,
        ),
    }
    tools: Mapping[str, str] = {"hpcc": "hpcc", "mpirun": "openmpi-bin"}

    def check(self, case: Case) -> None:
        """See Workload."""
        plan(case)

    def need(self, case: Case) -> Need:
        """See Workload. HPL keeps everything in memory."""
        del case
        return Need(input_bytes=0, run_bytes=0)

    def describe(self, case: Case) -> str:
        """See Workload."""
        return str(plan(case))

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. There is no input, so this only says what will be solved."""
        context.progress(f"HPL: {plan(case)}", 0, 0)
        return Prepared()

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload. ``mpirun`` runs on the first worker, so that files are where rank 0 is."""
        del prepared
        planned = plan(job.case)
        binary = job.case.parameters["binary"]
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
            node=hosts[0],
            mpi_hosts=hosts,
            files={"hpccinf.txt" if hpcc else "HPL.dat": input_text(planned, hpcc=hpcc)},
            results=(_HPCC_OUTPUT,) if hpcc else (),
            yarn=False,
        )
        return (phase,)

    def verify(
        self,
        context: Context,
        prepared: Prepared,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        """See Workload."""
        del context, prepared
        outcome = outcomes[_PHASE]
        hpcc = _is_hpcc(job.case.parameters["binary"])
        path = outcome.results[_HPCC_OUTPUT] if hpcc else outcome.stdout
        result = parse_output(path.read_text(errors="replace"), hpcc=hpcc)
        verification = prove(plan(job.case), result)
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


WORKLOAD = Hpl()
