"""Whether the cells of the papers' tables agree with each other, as what they are of says.

A rate times a time is a size, a speed-up is a quotient of rates, operations of 4 KB per second are
a rate, a rate over watts is an efficiency, a total is the sum of its parts. Each number is printed
to some digits, rounded or cut off, so it stands for a range; cells contradict each other only where
their ranges do. Nothing here decides which of two contradicting cells is right: both get the doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from boardcluster.catalog.published import Index, TableCell, read_cells, read_index

__all__ = ["CellDoubt", "cell_doubts", "doubt_of"]

_Range = tuple[float, float]
_TOTALS = ("total", "sum", "all together")
"""Values of a key by which a row is of all others together."""
_SLACK = 1e-9  # of the rounding of binary fractions


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDoubt:
    """Why a printed number is doubtful."""

    table: str
    """Id of its table."""
    cell: TableCell
    """The cell."""
    words: str
    """What contradicts it, in one line."""


def doubt_of(table: str, cell: TableCell) -> str:
    """Return what contradicts a cell of the package's tables; empty if nothing does."""
    return "; ".join(
        row.words for row in _package_doubts() if row.table == table and row.cell == cell
    )


@cache
def _package_doubts() -> tuple[CellDoubt, ...]:
    return cell_doubts(read_index())


def cell_doubts(index: Index) -> tuple[CellDoubt, ...]:
    """Return every cell that contradicts others, in the order of the tables.

    Raises:
        SpecError: a table's file is missing or wrong.
    """
    tables = {
        name: read_cells(table, folder=index.folder)
        for name, table in index.tables.items()
        if table.file
    }
    found: list[CellDoubt] = []
    for name, cells in tables.items():
        found += _hpl(name, cells)
        found += _speedups(name, cells)
        found += _efficiencies(name, cells)
        found += _totals(name, cells)
    for paper in index.papers:
        own = {name: cells for name, cells in tables.items() if index.tables[name].paper == paper}
        found += _operations(own)
    return tuple(found)


def _range(text: str) -> _Range | None:
    """Return what a printed number may have been before it was rounded or cut; None for text."""
    try:
        value = float(text)
    except ValueError:
        return None
    last_digit = 10.0 ** -len(text.partition(".")[2])
    return value - last_digit / 2, value + last_digit


def _agree(one: _Range, other: _Range) -> bool:
    return one[0] <= other[1] * (1 + _SLACK) and other[0] <= one[1] * (1 + _SLACK)


def _quotient(over: _Range, under: _Range) -> _Range:
    return over[0] / under[1], over[1] / under[0]


def _by_keys(
    cells: Sequence[TableCell], *, without: str = ""
) -> dict[tuple[str, ...], dict[str, list[TableCell]]]:
    """Group cells by their keys but one, and by quantity."""
    groups: dict[tuple[str, ...], dict[str, list[TableCell]]] = {}
    for cell in cells:
        keys = tuple(value for key, value in cell.keys.items() if key != without)
        groups.setdefault(keys, {}).setdefault(cell.quantity, []).append(cell)
    return groups


def _numbers(row: Mapping[str, list[TableCell]], *names: str) -> list[_Range] | None:
    """Return the ranges of the one cell of each quantity; None unless there is one of each."""
    found = [_range(row[name][0].value) for name in names if len(row.get(name, ())) == 1]
    known = [value for value in found if value is not None]
    return known if len(known) == len(names) else None


def _hpl(table: str, cells: Sequence[TableCell]) -> Iterator[CellDoubt]:
    """Rate x time = operations: 2/3 N^3 + 2 N^2 (HPL's own count, HPL_pdtest.c)."""
    for row in _by_keys(cells).values():
        known = _numbers(row, "performance", "execution_time", "problem_size")
        if known is None or row["performance"][0].unit != "Gflops":
            continue
        rate, seconds, _ = known
        size = float(row["problem_size"][0].value)
        work = (2 / 3 * size**3 + 2 * size**2) / 1e9
        given = _quotient((work, work), seconds)
        if not _agree(rate, given):
            words = f"its size and time give {work / float(row['execution_time'][0].value):.3f}"
            yield CellDoubt(table=table, cell=row["performance"][0], words=f"{words} Gflops")


def _speedups(table: str, cells: Sequence[TableCell]) -> Iterator[CellDoubt]:
    """A speed-up is the rate with so many nodes over that with one."""
    for row in _by_keys(cells, without="nodes").values():
        rates = {cell.keys.get("nodes"): cell for cell in row.get("performance", ())}
        one = _range(rates["1"].value) if "1" in rates else None
        for cell in row.get("speedup", ()):
            rate = rates.get(cell.keys.get("nodes"))
            said, over = _range(cell.value), _range(rate.value) if rate else None
            if rate is None or one is None or said is None or over is None:
                continue
            if not _agree(said, _quotient(over, one)):
                given = float(rate.value) / float(rates["1"].value)
                words = f"the rates beside it give {given:.2f}"
                yield CellDoubt(table=table, cell=cell, words=words)


def _operations(tables: Mapping[str, Sequence[TableCell]]) -> Iterator[CellDoubt]:
    """Operations of 4 KB per second are a rate: of 4,096 bytes, in MB of 2^20 or 10^6 bytes."""
    every = [(name, cell) for name, cells in tables.items() for cell in cells]
    for name, cell in every:
        said = _range(cell.value)
        if cell.unit != "IOPS" or not cell.quantity.endswith("_4k") or said is None:
            continue
        own = cell.keys.items()
        for other_name, other in every:
            rate = _range(other.value)
            same = other.quantity == cell.quantity.removesuffix("_4k") and own <= other.keys.items()
            if not same or other.keys.get("record_kb") != "4" or rate is None:
                continue
            given = (said[0] * 4096 / 2**20, said[1] * 4096 / 1e6)
            if _agree(rate, given):
                continue
            low = float(cell.value) * 4096 / 2**20
            yield CellDoubt(
                table=other_name,
                cell=other,
                words=f"{cell.value} operations of 4 KB per second ({name}) are {low:.2f} MB/s",
            )
            yield CellDoubt(
                table=name,
                cell=cell,
                words=f"{other.value} MB/s ({other_name}) are not that many operations of 4 KB",
            )


def _efficiencies(table: str, cells: Sequence[TableCell]) -> Iterator[CellDoubt]:
    """An efficiency in Mflops/W is the rate in Gflops beside it over the power beside it."""
    for row in _by_keys(cells).values():
        known = _numbers(row, "performance", "power", "efficiency")
        units = (
            [row[name][0].unit for name in ("performance", "power", "efficiency")] if known else []
        )
        if known is None or units != ["Gflops", "W", "Mflops/W"]:
            continue
        rate, power, said = known
        low, high = _quotient(rate, power)
        if not _agree(said, (1000 * low, 1000 * high)):
            given = 1000 * float(row["performance"][0].value) / float(row["power"][0].value)
            words = f"the rate and the power beside it give {given:.1f} Mflops/W"
            yield CellDoubt(table=table, cell=row["efficiency"][0], words=words)


def _totals(table: str, cells: Sequence[TableCell]) -> Iterator[CellDoubt]:
    """A row that is called a total is the sum of the other rows of its quantity and unit."""
    for key in dict.fromkeys(name for cell in cells for name in cell.keys):
        for row in _by_keys(cells, without=key).values():
            for same in row.values():
                totals = [cell for cell in same if cell.keys.get(key, "").lower() in _TOTALS]
                parts = [cell for cell in same if cell not in totals and key in cell.keys]
                ranges = [_range(cell.value) for cell in (*totals, *parts)]
                known = [found for found in ranges if found is not None]
                units = {cell.unit for cell in (*totals, *parts)}
                if len(totals) != 1 or len(parts) < 2 or len(units) > 1 or len(known) < len(ranges):
                    continue
                summed = (sum(low for low, _ in known[1:]), sum(high for _, high in known[1:]))
                if not _agree(known[0], summed):
                    given = sum(float(cell.value) for cell in parts)
                    words = f"the rows beside it add up to {given:g} {totals[0].unit}".rstrip()
                    yield CellDoubt(table=table, cell=totals[0], words=words)
