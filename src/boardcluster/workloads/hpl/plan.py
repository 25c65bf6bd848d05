"""What HPL will solve, decided before anything starts. Pure.

For workers with M bytes of declared memory each, and W of them:

    free    = M - system - daemons            as services/sizing.py counts, see ``available_mib``
    matrix  = the size that was asked for, or memory_share % of free x W
    N       = sqrt(matrix / 8)                 8 bytes per number; rounded down to a multiple of NB
    ranks   = W x ranks_per_node               one per core, if not said otherwise
    P x Q   = ranks                            P <= Q, near a square, if P is not given
    NB, P                                      of a large matrix by a search, see ``search.py``

No worker may hold more of the matrix than is free on it. What is not taken by the matrix is left to
HPL's own buffers and to Open MPI (measured with 4.1.4: about 20 MB per process).

Baun 2016, Eq. 2, multiplies N, not the memory, by its share R: "80 %" there is a matrix of 64 % of
the memory. To repeat a row of its Table 7, give the size 8 x N x N, and its P.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import NodeSpec
from boardcluster.services.sizing import available_mib
from boardcluster.units import format_bytes
from boardcluster.workloads.base import JobSpec

__all__ = ["NB_UNSEARCHED", "HplPlan", "plan", "process_grid"]

NB_UNSEARCHED = 128
"""Order of the blocks where it is neither given nor searched for."""

_MIB = 1 << 20
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HplPlan:
    """One system of equations and the processes that solve it."""

    n: int
    """Order of the matrix."""
    nb: int
    """Order of its blocks."""
    p: int
    """Rows of the grid of processes."""
    q: int
    """Columns of the grid of processes."""
    ranks_per_node: int
    """Processes on each worker."""
    workers: int
    """Number of workers."""
    free_bytes: int
    """Memory that a worker has for the matrix."""
    memory_words: str
    """The arithmetic of that."""

    @property
    def matrix_bytes(self) -> int:
        """Size of the matrix."""
        return _NUMBER_BYTES * self.n * self.n

    @property
    def operations(self) -> float:
        """Floating-point operations that HPL counts: 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c)."""
        return 2 / 3 * self.n**3 + 3 / 2 * self.n**2

    @property
    def fullest_bytes(self) -> int:
        """Part of the matrix on the worker that holds most of it."""
        return _fullest_bytes(self.n, self.nb, self.p, self.q, self.ranks_per_node)

    def __str__(self) -> str:
        return (
            f"N {self.n}, NB {self.nb}, {self.p} x {self.q} processes, {self.ranks_per_node} on "
            f"each of {self.workers} workers, {format_bytes(self.matrix_bytes)} matrix, at most "
            f"{format_bytes(self.fullest_bytes, binary=True)} on one worker ({self.memory_words})"
        )


def process_grid(ranks: int, p: int = 0) -> tuple[int, int]:
    """Return P and Q; without P as near to a square as possible, Q not smaller (HPL's own advice).

    Raises:
        UsageError: P does not divide the processes.
    """
    p = p or next(p for p in range(isqrt(ranks), 0, -1) if ranks % p == 0)
    if ranks % p:
        raise UsageError(
            f"hpl: {ranks} processes cannot form {p} rows; hpl.p must divide their number",
            hint="set hpl.p to 0 for a grid that is nearly square",
        )
    return p, ranks // p


def plan(spec: JobSpec) -> HplPlan:
    """Decide what a job spec solves.

    Raises:
        UsageError: the matrix is smaller than one block, or P does not divide the processes.
        CapacityError: the matrix does not fit into the workers' memory.
    """
    nb = int(spec.parameters["nb"]) or NB_UNSEARCHED
    ranks_per_node = int(spec.parameters["ranks_per_node"]) or spec.worker_cores
    p, q = process_grid(spec.workers * ranks_per_node, int(spec.parameters["p"]))
    smallest = NodeSpec(
        name="the smallest worker",
        roles=spec.smallest_roles,
        cores=spec.worker_cores,
        memory_bytes=spec.smallest_memory_bytes,
    )
    free_mib, words = available_mib(smallest)
    free_bytes = max(0, free_mib) * _MIB
    if spec.size_bytes:
        n = _order(spec.size_bytes, nb)
        if n < nb:
            raise UsageError(
                f"hpl: a matrix of {format_bytes(spec.size_bytes)} has N = "
                f"{isqrt(spec.size_bytes // _NUMBER_BYTES)}, less than one block of NB = {nb}",
                hint=f"give at least {_NUMBER_BYTES * nb * nb} bytes as size, or a smaller hpl.nb",
            )
    else:
        share = int(spec.parameters["memory_share"])
        n = _order(free_bytes * spec.workers * share // 100, nb)
        # Blocks are not dealt out quite evenly.
        while n >= nb and _fullest_bytes(n, nb, p, q, ranks_per_node) > free_bytes:
            n -= nb
    result = HplPlan(
        n=n,
        nb=nb,
        p=p,
        q=q,
        ranks_per_node=ranks_per_node,
        workers=spec.workers,
        free_bytes=free_bytes,
        memory_words=words,
    )
    if n < nb or result.fullest_bytes > free_bytes:
        raise CapacityError(
            f"hpl: N {max(n, nb)} needs {format_bytes(_NUMBER_BYTES * max(n, nb) ** 2)}, of which "
            f"{format_bytes(_fullest_bytes(max(n, nb), nb, p, q, ranks_per_node), binary=True)} on "
            f"one worker; {words}",
            hint="use a smaller size, or none to use what fits; or more workers or memory in "
            "cluster.toml",
        )
    return result


def _order(size_bytes: int, nb: int) -> int:
    return isqrt(size_bytes // _NUMBER_BYTES) // nb * nb


def _share(n: int, nb: int, place: int, places: int) -> int:
    """Return how many rows or columns one process holds: NUMROC of ScaLAPACK."""
    blocks = n // nb
    return (blocks // places + (place < blocks % places)) * nb


def _fullest_bytes(n: int, nb: int, p: int, q: int, ranks_per_node: int) -> int:
    """Return the bytes of the matrix on the fullest node; ranks go through the grid row by row."""
    cells = [_share(n, nb, rank // q, p) * _share(n, nb, rank % q, q) for rank in range(p * q)]
    nodes = range(0, p * q, ranks_per_node)
    return _NUMBER_BYTES * max(sum(cells[first : first + ranks_per_node]) for first in nodes)
