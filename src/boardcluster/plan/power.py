"""Power of a worker under a workload: between idle and stress, as the 2026 paper measured it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import fmean

from boardcluster.catalog.published import read_cells, read_index
from boardcluster.plan.hardware import BoardRates, board_rates
from boardcluster.records import Engine

__all__ = ["POWER_LOG_SPREAD", "WorkloadLoad", "load_of", "worker_watts"]

_TABLE = "lee-park-2026-table-21"
_COMPUTER = "8 \N{MULTIPLICATION SIGN} RPi 5B"
_WORKERS = 8
_BOARD = "rpi-5b-8gb-2400mhz"
_ENGINES = {"Hadoop": Engine.MAPREDUCE, "Spark": Engine.SPARK}

POWER_LOG_SPREAD = 0.1
"""How far the power of a workload is from that of the same on the other engine: 8 % but for Grep
(47 %), lee-park-2026 Table 21; as a standard deviation of the logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadLoad:
    """How hard a workload drives a board."""

    share: float
    """Of the way from idle to stress power, 0 to 1."""
    source: str
    """Where that is from, in words."""


@cache
def _loads() -> dict[tuple[str, Engine], float]:
    board = board_rates(_BOARD)
    index = read_index()
    idle, stress = board.idle_watts or 0.0, board.stress_watts or 0.0
    return {
        (cell.keys["benchmark"].lower(), _ENGINES[cell.keys["platform"]]): (
            (float(cell.value) / _WORKERS - idle) / (stress - idle)
        )
        for cell in read_cells(index.tables[_TABLE], folder=index.folder)
        if cell.keys["computer"] == _COMPUTER
    }


def load_of(workload: str, engine: Engine) -> WorkloadLoad:
    """Return how hard a workload drives a board; the mean of all where it was not measured.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    loads = _loads()
    if (workload, engine) in loads:
        return WorkloadLoad(share=loads[workload, engine], source="lee-park-2026 Table 21")
    mean = fmean(loads.values())
    return WorkloadLoad(share=mean, source="lee-park-2026 Table 21, mean of its workloads")


def worker_watts(board: BoardRates, load: WorkloadLoad) -> float | None:
    """Return the power of one worker; None where the board's is not known."""
    if board.idle_watts is None or board.stress_watts is None:
        return None
    return board.idle_watts + load.share * (board.stress_watts - board.idle_watts)
