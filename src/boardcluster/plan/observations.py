"""What a prediction is learned from: runs of the papers' tables, and one's own, in one form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from boardcluster.catalog.published import TableCell, find_cell, read_cells, read_index
from boardcluster.catalog.stated import (
    TableConditions,
    read_cell_conditions,
    read_conditions,
)
from boardcluster.records import Engine, Security
from boardcluster.units import parse_size

__all__ = [
    "GIGABYTE",
    "NodesOfRun",
    "RunObservation",
    "WorkArrays",
    "amount_of",
    "amount_words",
    "observations_kept_aside",
    "published_observations",
    "work_arrays",
]

GIGABYTE = 1e9
"""The papers' sizes are powers of ten."""

_TASKS = "pi.maps"
_SAMPLES = "pi.samples"
_TASKS_UNIT = 100.0


NodesOfRun = Mapping[str, str]
"""What each node of a run was, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """One measured time: a cell of a table, or one run."""

    workload: str
    """Name of the workload, or ``submit``."""
    engine: Engine
    """The engine."""
    amount: float
    """How much it works on: gigabytes of input, or hundreds of tasks (``amount_of``)."""
    workers: int
    """Number of workers."""
    seconds: float
    """How long it took."""
    board: str
    """A board of the catalog, or the name of one's own cluster."""
    medium: str
    """A medium of the catalog; that of one's own cluster where it is not known."""
    replication: int
    """Copies of each HDFS block."""
    source: str
    """Where it is from, in words."""
    own: bool = False
    """Whether it is a run of one's own."""
    start_seconds: float | None = None
    """Until the first task of the engine began; None where not known."""
    link_bits_per_second: float = 1e9
    """Rate of a worker's link."""
    intermediate_bytes: float | None = None
    """What it wrote to local storage besides the output; None where not known."""
    joules: float | None = None
    """Energy of its workers; None where it is not known."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines that were set."""
    engines: str = ""
    """Versions of the engines, in words; empty for a paper's."""
    security: Security | None = None
    """Who could reach the cluster; None for a paper's."""
    program: str = ""
    """The user's own program with its arguments, or the workload's parameters that are not the
    default and that change what a task does."""
    nodes: NodesOfRun = field(default_factory=dict)
    """The nodes of one's own that it was on (``own_runs.nodes_of``); none for a paper's."""
    started_utc: str = ""
    """When it began: ISO 8601 with offset; empty for a paper's."""


def amount_words(workload: str, amount: float) -> str:
    """Return how much a run works on, in words; empty where that has no size."""
    if workload == "pi":
        return f"{amount * _TASKS_UNIT:g} maps"
    return f"{amount:g} GB" if amount else ""


def amount_of(workload: str, size_bytes: float, parameters: dict[str, str]) -> float:
    """Return how much a run works on: gigabytes, or hundreds of tasks where it has no input."""
    if workload == "pi":
        return float(parameters.get(_TASKS, _TASKS_UNIT)) / _TASKS_UNIT
    return size_bytes / GIGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkArrays:
    """Runs as the model sees them; arrays of one length."""

    amount: NDArray[np.float64]
    """Gigabytes of input, or hundreds of tasks."""
    workers: NDArray[np.float64]
    """Number of workers."""
    slowness: NDArray[np.float64]
    """Of the medium (``MediumRates``)."""
    cpu_rate: NDArray[np.float64]
    """Of the board (``BoardRates``)."""
    replication: NDArray[np.float64]
    """Copies of each HDFS block."""

    def __len__(self) -> int:
        return len(self.amount)

    def taken(self, places: NDArray[np.bool_] | NDArray[np.intp]) -> WorkArrays:
        """Return some of them."""
        return WorkArrays(
            amount=self.amount[places],
            workers=self.workers[places],
            slowness=self.slowness[places],
            cpu_rate=self.cpu_rate[places],
            replication=self.replication[places],
        )


def work_arrays(
    runs: Sequence[RunObservation], *, slowness: Sequence[float], cpu_rate: Sequence[float]
) -> WorkArrays:
    """Return observed runs as arrays, with the rates of their media and boards."""
    return WorkArrays(
        amount=np.array([row.amount for row in runs], float),
        workers=np.array([row.workers for row in runs], float),
        slowness=np.array(slowness, float),
        cpu_rate=np.array(cpu_rate, float),
        replication=np.array([row.replication for row in runs], float),
    )


@cache
def published_observations() -> tuple[RunObservation, ...]:
    """Return every published time of a workload whose board, media and settings are known.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    index = read_index()
    return tuple(
        row
        for known in read_conditions().values()
        if known.board and known.quantities.get("execution_time") == "duration_seconds"
        for row in _of_table(
            known,
            read_cells(index.tables[known.id], folder=index.folder),
            index.tables[known.id].table,
        )
    )


@cache
def observations_kept_aside() -> tuple[RunObservation, ...]:
    """Return the published times that nothing is learned from.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    index = read_index()
    found = []
    for known in read_cell_conditions():
        table = index.tables[known.table]
        cell = find_cell(table, {"what": known.what}, "execution_time", folder=index.folder)
        found.append(
            RunObservation(
                workload=known.workload,
                engine=Engine(known.engine),
                amount=parse_size(known.size) / GIGABYTE,
                workers=known.workers,
                seconds=float(cell.value),
                board=known.board,
                medium=known.medium,
                replication=known.replication,
                source=f"{table.paper}, {known.what}",
            )
        )
    return tuple(found)


def _of_table(
    known: TableConditions, cells: Iterable[TableCell], table: str
) -> Iterator[RunObservation]:
    for cell in cells:
        if cell.quantity != "execution_time" or not cell.value:
            continue
        tasks = {_TASKS: cell.keys["maps"]} if cell.keys.get("maps") else {}
        samples = cell.keys.get("samples", "")
        size_bytes = parse_size(cell.keys["data_size"]) if "data_size" in cell.keys else 0
        yield RunObservation(
            workload=known.workload,
            engine=Engine(known.engine),
            amount=amount_of(known.workload, size_bytes, tasks),
            workers=int(cell.keys["nodes"]),
            seconds=float(cell.value),
            board=known.board,
            medium=known.media[cell.keys["storage"]],
            replication=known.replication,
            source=f"{known.id.partition('-table')[0]} {table}",
            settings=known.settings,
            program=f"{_SAMPLES}={samples}" if samples else "",
        )
