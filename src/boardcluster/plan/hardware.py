"""What the model needs to know of a board and a medium, from the catalog or from own probes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import entry_names, entry_path, find_board, find_part
from boardcluster.catalog.published import read_cells, read_index
from boardcluster.catalog.stated import read_conditions
from boardcluster.errors import SpecError
from boardcluster.records import NodeSpec
from boardcluster.units import parse_size

__all__ = [
    "OWN_HARDWARE",
    "PROBE_BYTES",
    "REFERENCE_BOARD",
    "REFERENCE_MEDIUM",
    "BoardRates",
    "MediumRates",
    "board_of",
    "board_rates",
    "board_rates_of",
    "medium_of",
    "medium_rates",
    "reference_mips",
    "reference_write",
    "write_probe",
]

OWN_HARDWARE = "own nodes"
"""Board and medium of nodes that stand for none of the catalog."""

REFERENCE_BOARD = "rpi-4b-4gb-1500mhz"
"""The board of the tables that most is learned from; every rate is a multiple of its."""

REFERENCE_MEDIUM = "samsung-ufs-256gb"
"""Its fastest medium; every slowness is a multiple of its."""

_HINT = "restore the file from the package"
_CPU = "seven_zip_total_mips"
PROBE_BYTES = 10e9
"""TestDFSIO's size at which media are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRates:
    """What the model needs of a board."""

    name: str
    """Its name in the catalog, or the path of its file."""
    cores: int
    """CPUs."""
    memory_bytes: int
    """Memory that the kernel manages."""
    cpu_rate: float | None
    """How fast all cores compute, by 7-zip, in multiples of the Raspberry Pi 4B at 1.5 GHz; None
    where neither a probe nor a paper says it."""
    cpu_source: str
    """Where that is from, in words."""
    idle_watts: float | None
    """Power when it does nothing; None where not known."""
    stress_watts: float | None
    """Power with every core busy; None where not known."""
    link_bits_per_second: float | None = None
    """What its Ethernet carries; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediumRates:
    """What the model needs of a medium."""

    name: str
    """Its name in the catalog, or the path of its file."""
    capacity_bytes: float | None
    """Its size; None where not known."""
    slowness: float | None
    """How much slower TestDFSIO writes 10 GB to it than to the UFS card of the 2021 paper; None
    without such a probe."""
    source: str
    """Where that is from, in words."""


def _processor(entry: BoardEntry) -> str:
    return entry.hardware.replace(";", ",").partition(",")[0]


def _figures(rows: Iterable[SourcedFigure], name: str) -> list[SourcedFigure]:
    return [row for row in rows if row.figure.name == name]


def _most(entry: BoardEntry, name: str) -> SourcedFigure | None:
    return max(_figures(entry.figures, name), key=lambda row: row.figure.value, default=None)


@cache
def _boards_with(figure: str) -> tuple[BoardEntry, ...]:
    """Return the boards of the catalog that have a figure; only those files are parsed."""
    return tuple(
        find_board(name)
        for name in entry_names("boards")
        if f'"{figure}"' in entry_path("boards", name).read_text(encoding="utf-8")
    )


def _mips(entry: BoardEntry) -> tuple[float | None, str]:
    """Return 7-zip's rating and its source; of a board without one that of its processor.

    A rating at another clock is scaled by the clocks, as 7-zip's are on one processor.
    """
    if own := _most(entry, _CPU):
        return own.figure.value, own.source
    for other in _boards_with(_CPU):
        found = _most(other, _CPU)
        same = _processor(other) == _processor(entry)
        if found and same and entry.clock_hertz and other.clock_hertz:
            share = entry.clock_hertz / other.clock_hertz
            how = "" if share == 1 else ", scaled by the clock"
            return found.figure.value * share, f"{found.source}, of {other.id}{how}"
    return None, ""


def board_rates_of(entry: BoardEntry, *, name: str = "") -> BoardRates:
    """Return what the model needs of a board's entry."""
    mips, source = _mips(entry)
    watts = [
        median(row.figure.value for row in found) if found else None
        for found in (
            _figures(entry.figures, "power_idle_mean_watts"),
            _figures(entry.figures, "power_stress_mean_watts"),
        )
    ]
    if None in watts:
        measured = _boards_with("power_stress_mean_watts")
        same = [row for row in measured if _processor(row) == _processor(entry)]
        nearest = min(
            same,
            key=lambda row: abs((row.clock_hertz or 0) - (entry.clock_hertz or 0)),
            default=None,
        )
        if nearest is not None and nearest.id != entry.id:
            other = board_rates_of(nearest)
            watts = [other.idle_watts, other.stress_watts]
    return BoardRates(
        name=name or entry.id,
        cores=entry.cores,
        memory_bytes=entry.memory_bytes,
        cpu_rate=mips / reference_mips() if mips else None,
        cpu_source=source,
        idle_watts=watts[0],
        stress_watts=watts[1],
        link_bits_per_second=max(
            (
                row.figure.value
                for row in _figures(entry.figures, "link_bits_per_second")
                if row.figure.conditions.get("interface") == "Ethernet"
            ),
            default=None,
        ),
    )


def reference_mips() -> float:
    """Return the rating of ``REFERENCE_BOARD``."""
    found, _ = _mips(find_board(REFERENCE_BOARD))
    if found is None:
        raise SpecError(f"the catalog has no {_CPU} for {REFERENCE_BOARD}", hint=_HINT)
    return found


def reference_write() -> float:
    """Return TestDFSIO's write throughput on ``REFERENCE_MEDIUM``, in MiB/s."""
    return write_probe()[REFERENCE_MEDIUM][0]


@cache
def board_rates(name: str) -> BoardRates:
    """Return what the model needs of a board of the catalog, or of a file of one's own.

    Raises:
        UsageError: there is none; the nearest name is offered.
        SpecError: the file is missing or wrong.
    """
    return board_rates_of(find_board(name), name=name)


@cache
def write_probe() -> dict[str, tuple[float, str]]:
    """Return TestDFSIO's write throughput by medium, at the size nearest 10 GB, with its source.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    index = read_index()
    found: dict[str, tuple[float, str]] = {}
    for known in read_conditions().values():
        if (known.workload, known.engine) != ("dfsio", "mapreduce") or not known.media:
            continue
        cells = [
            cell
            for cell in read_cells(index.tables[known.id], folder=index.folder)
            if cell.quantity == "throughput" and cell.keys["operation"] == "write"
        ]
        for storage, medium in known.media.items():
            at = min(
                (cell for cell in cells if cell.keys["storage"] == storage),
                key=lambda cell: abs(
                    math.log(parse_size(cell.keys["data_size"]) * known.size_times / PROBE_BYTES)
                ),
            )
            table = index.tables[known.id]
            found[medium] = (float(at.value), f"{table.paper} {table.table}")
    return found


@cache
def medium_rates(name: str) -> MediumRates:
    """Return what the model needs of a medium of the catalog, or of a file of one's own.

    A file may have the figure ``hdfs_write_bytes_per_second``: TestDFSIO's throughput at 10 GB.

    Raises:
        UsageError: there is none; the nearest name is offered.
        SpecError: the file is missing or wrong.
    """
    entry = find_part("media", name)
    rate, source = write_probe().get(entry.id, (None, ""))
    if own := _figures(entry.figures, "hdfs_write_bytes_per_second"):
        rate, source = own[-1].figure.value / 2**20, own[-1].source
    capacity = _figures(entry.figures, "capacity_bytes")
    return MediumRates(
        name=name,
        capacity_bytes=capacity[-1].figure.value if capacity else None,
        slowness=reference_write() / rate if rate else None,
        source=source,
    )


def board_of(workers: Iterable[NodeSpec]) -> str:
    """Return the board that workers stand for; of several the slowest, which jobs wait for."""
    names = {node.twin.board if node.twin else "" for node in workers}
    if "" in names:
        return OWN_HARDWARE
    return min(names, key=lambda name: board_rates(name).cpu_rate or 0.0)


def medium_of(workers: Iterable[NodeSpec]) -> str:
    """Return the medium that workers stand for; of several the slowest."""
    names = {node.twin.medium if node.twin else "" for node in workers}
    if "" in names:
        return OWN_HARDWARE
    return max(names, key=lambda name: medium_rates(name).slowness or math.inf)
