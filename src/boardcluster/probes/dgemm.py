"""The peak of linear algebra: double-precision matrix multiplication with HPL's own library."""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from statistics import fmean

from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes.base import Probe, Site
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.services.linpack import DgemmRates, Linpack, have_linpack, read_dgemm
from boardcluster.units import format_bytes

__all__ = ["FIGURE", "PROBE", "order_for"]

FIGURE = "dgemm_gflops_per_second"
"""10^9 operations of double precision per second, of all processes together."""

_MOST = 2000
_STEP = 64
_LEAST = 256
_MATRICES_BYTES = 3 * 8
_MEMORY_SHARE = 4
"""The matrices may take a quarter of a node's memory: the rest is the daemons'."""

_ONE_SECONDS = 0.5
"""About how long one multiplication takes on a slow core."""

_PAPER_RUNS = 5
_QUICK_SECONDS = 2.0
_PAPER_SECONDS = 10.0
_LIMIT_SECONDS = 600.0


def order_for(memory_bytes: int, processes: int, flops_per_second: float) -> int:
    """Return the order of the matrices.

    Args:
        memory_bytes: of the node.
        processes: how many multiply at once, each with three matrices.
        flops_per_second: about, of one process.

    Raises:
        CapacityError: the node's memory holds no matrices that are larger than its caches.
    """
    holds = isqrt(memory_bytes // _MEMORY_SHARE // processes // _MATRICES_BYTES)
    quick = int((flops_per_second * _ONE_SECONDS / 2) ** (1 / 3))
    order = min(_MOST, holds, max(_LEAST, quick)) // _STEP * _STEP
    if order < _LEAST:
        raise CapacityError(
            f"a quarter of {format_bytes(memory_bytes, binary=True)} cannot hold three matrices of "
            f"order {_LEAST} for each of {processes} processes",
            hint="leave the probe out on this node",
        )
    return order


def _run(site: Site, program: Linpack, processes: int, order: int, seconds: float) -> DgemmRates:
    done = site.remote.run(
        [program.dgemm, str(processes), str(order), str(seconds)],
        env=program.environment,
        timeout_seconds=_LIMIT_SECONDS,
    )
    found = read_dgemm(done.text)
    if found is None or (found.order, len(found.flops)) != (order, processes):
        raise ProbeOutputError(
            f"dgemm with {processes} processes and order {order} printed {done.text[:200]!r}"
        )
    return found


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    program = have_linpack(
        site.remote, cache=Path(site.settings["cache"]), folder=site.folder, tell=site.tell
    )
    paper = site.mode is ProbeMode.PAPER
    about = _run(site, program, 1, _LEAST, 0.1).flops_per_second
    figures = []
    for processes in sorted({1, site.cores}):
        order = order_for(site.memory_bytes, processes, about)
        site.tell(f"DGEMM of order {order}, {processes} processes")
        runs = [
            _run(site, program, processes, order, _PAPER_SECONDS if paper else _QUICK_SECONDS)
            for _ in range(_PAPER_RUNS if paper else 1)
        ]
        conditions = {
            "processes": str(processes),
            "order": str(order),
            "runs": str(len(runs)),
            "blas": program.blas,
        }
        rate = fmean(run.flops_per_second for run in runs) / 1e9
        figures.append(ProbeFigure(name=FIGURE, value=rate, conditions=conditions))
    return tuple(figures)


PROBE = Probe(
    name="dgemm",
    area="cpu",
    summary="peak of linear algebra: matrix multiplication with the OpenBLAS of hpl",
    matches=("none of the papers: it is the peak that HPL is compared with",),
    tools=(),
    measure=_measure,
    quick_seconds=5,
    paper_seconds=105,
    default=False,
)
