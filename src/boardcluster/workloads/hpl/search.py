"""Which NB and which grid are fastest, found out by HPL itself on smaller systems. Pure.

Two runs, both shorter than the time that is allowed:

    first   N 2048 with the settings that hold without a search; its rate r says what is affordable
    second  every NB on every grid, one after the other, with
            N = cube root(3/2 x r x seconds / settings), at most the N of the plan

The fastest of the second run is taken. What is given is not searched for. N is not searched for at
all: HPL's rate only rises with N (the work grows with its cube, all else at most with its square)
until memory is short, so the N of the plan, from the size or the share of the memory, stands. Of a
matrix below N 4096 starting and ending decide, and nothing is searched for.

Source of the candidates: HPL 2.0, TUNING: NB of 32 to 256, and grids that are square or slightly
flat, P <= Q.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from boardcluster.errors import CapacityError
from boardcluster.workloads.base import JobSpec
from boardcluster.workloads.hpl.plan import plan, process_grid

__all__ = [
    "FIRST_N",
    "Candidates",
    "candidates",
    "chosen",
    "fastest",
    "fits",
    "search_key",
    "second_n",
]

FIRST_N = 2048
"""Order of the system that tells how fast the cluster is about."""

_LEAST_N = 4096
_BLOCKS = (64, 128, 192, 256)
_STEP = 768
"""A multiple of every NB, so that no system has a part of a block."""
_MOST_GRIDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What is tried."""

    nbs: tuple[int, ...]
    """Orders of blocks."""
    grids: tuple[tuple[int, int], ...]
    """P and Q."""
    seconds: float
    """How long all of them may take together."""

    @property
    def count(self) -> int:
        """How many systems are solved."""
        return len(self.nbs) * len(self.grids)


def candidates(spec: JobSpec) -> Candidates | None:
    """Return what is to be tried for a job spec; None if nothing is.

    Raises:
        UsageError: as ``plan``.
        CapacityError: as ``plan``.
    """
    seconds = float(spec.parameters["search"])
    planned = plan(spec)
    if not seconds or planned.n < _LEAST_N:
        return None
    nbs = _BLOCKS if spec.parameters["nb"] == "0" else (planned.nb,)
    grids = [(planned.p, planned.q)]
    if spec.parameters["p"] == "0":
        ranks = planned.p * planned.q
        grids += [process_grid(ranks, p) for p in range(planned.p - 1, 0, -1) if ranks % p == 0]
    found = Candidates(nbs=nbs, grids=tuple(grids[:_MOST_GRIDS]), seconds=seconds)
    return found if found.count > 1 else None


def second_n(tried: Candidates, *, gflops: float, most: int) -> int:
    """Return the order of the systems that all settings are tried with.

    Args:
        tried: the settings.
        gflops: rate of the first run, in 10^9 operations per second. Larger systems are faster, so
            that the search takes less time than it may.
        most: N of the plan.
    """
    wanted = (1.5 * gflops * 1e9 * tried.seconds / tried.count) ** (1 / 3)
    return max(_STEP, int(min(wanted, most)) // _STEP * _STEP)


def fastest(rows: Sequence[tuple[int, int, int, float]]) -> tuple[int, int]:
    """Return NB and P of the fastest of the second run.

    Args:
        rows: NB, P, Q and rate of each solution.
    """
    nb, p, _, _ = max(rows, key=lambda row: row[3])
    return nb, p


def fits(spec: JobSpec, nb: int, p: int) -> bool:
    """Whether a job spec fits its workers with an NB and a P, both of which its N depends on."""
    try:
        plan(chosen(spec, nb, p))
    except CapacityError:
        return False
    return True


def chosen(spec: JobSpec, nb: int, p: int) -> JobSpec:
    """Return a job spec with the NB and P that a search found."""
    return replace(spec, parameters={**spec.parameters, "nb": str(nb), "p": str(p)})


def search_key(spec: JobSpec, *on: object) -> str:
    """Return a name for what a search found: equal for equal job specs on equal nodes.

    Args:
        spec: the job spec.
        on: what else decides, as far as its text tells: the cluster, the BLAS.
    """
    told = [sorted(spec.parameters.items()), spec.size_bytes, spec.workers, spec.worker_cores]
    text = json.dumps([*told, spec.smallest_memory_bytes, *map(str, on)])
    return hashlib.sha256(text.encode()).hexdigest()[:24]
