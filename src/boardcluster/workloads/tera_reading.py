"""Rows of TeraGen's format read from part files: counted, summed up, and their order judged."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boardcluster.errors import VerificationError
from boardcluster.workloads.tera_rows import KEY_BYTES, ROW_BYTES, checksum_text

__all__ = ["Misorder", "PartReader", "Totals", "hexadecimal_key"]

_CHUNK_ROWS = 40_960
"""Rows in memory at a time: 4 MB."""

_SHOWN_MISORDERS = 5
_HIGH_BYTES = 8
"""A key is compared as its first eight bytes and its last two, each as one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What is the same for every order of a set of rows."""

    rows: int
    """How many."""
    checksum: int
    """Sum of the CRC-32 of each, modulo 2^128."""

    @property
    def text(self) -> str:
        """The canonical form, whose digest is stored with a result."""
        return f"rows\t{self.rows}\nchecksum\t{checksum_text(self.checksum)}\n"

    def __str__(self) -> str:
        return f"{self.rows} rows with the checksum {checksum_text(self.checksum)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Misorder:
    """A row whose key is smaller than the key before it."""

    part: str
    """Name of the file it is in."""
    row: int
    """Its place in that file, from 0; at 0 the key before it is of an earlier file."""
    before: bytes
    """The key before it."""
    key: bytes
    """Its key."""

    def __str__(self) -> str:
        return (
            f"row {self.row} of {self.part} has the key {hexadecimal_key(self.key)} after "
            f"{hexadecimal_key(self.before)}"
        )


def hexadecimal_key(key: bytes) -> str:
    """Return a key as TeraValidate prints it (Hadoop's BytesWritable)."""
    return key.hex(" ")


class PartReader:
    """Takes part files one after the other, in bounded memory, and adds up what it reads.

    Attributes:
        misorders: how many keys were smaller than the key before, across files too.
        first_misorders: the first few of them.
    """

    def __init__(self) -> None:
        self.misorders = 0
        self.first_misorders: list[Misorder] = []
        self._rows = 0
        self._checksum = 0
        self._last_key = b""  # smaller than every key

    @property
    def totals(self) -> Totals:
        """Rows and checksum of everything so far."""
        return Totals(rows=self._rows, checksum=self._checksum % (1 << 128))

    def read(self, part: Path) -> None:
        """Read the next file.

        Raises:
            VerificationError: its size is not a multiple of 100 bytes.
        """
        size_bytes = part.stat().st_size
        if size_bytes % ROW_BYTES:
            raise VerificationError(
                f"{part.name} has {size_bytes} bytes, which is not a multiple of {ROW_BYTES}",
                hint="look at the engine's logs in the attempt's folder",
            )
        row = 0
        with part.open("rb") as stream:
            while data := stream.read(_CHUNK_ROWS * ROW_BYTES):
                table = np.frombuffer(data, dtype=np.uint8).reshape(-1, ROW_BYTES)
                self._rows += len(table)
                self._checksum += _checksum(data)
                self._judge_order(table, part=part.name, row=row)
                row += len(table)

    def _judge_order(self, table: NDArray[np.uint8], *, part: str, row: int) -> None:
        first = table[0, :KEY_BYTES].tobytes()
        if first < self._last_key:
            self.misorders += 1
            if len(self.first_misorders) < _SHOWN_MISORDERS:
                self.first_misorders.append(
                    Misorder(part=part, row=row, before=self._last_key, key=first)
                )
        places = _misplaced_rows(table)
        self.misorders += len(places)
        for place in places[: _SHOWN_MISORDERS - len(self.first_misorders)].tolist():
            before, key = (table[at, :KEY_BYTES].tobytes() for at in (place, place + 1))
            self.first_misorders.append(
                Misorder(part=part, row=row + place + 1, before=before, key=key)
            )
        self._last_key = table[-1, :KEY_BYTES].tobytes()


def _checksum(data: bytes) -> int:
    """Return the sum of the CRC-32 of every 100 bytes."""
    view = memoryview(data)
    ends = range(ROW_BYTES, len(data) + 1, ROW_BYTES)
    return sum([zlib.crc32(view[end - ROW_BYTES : end]) for end in ends])


def _misplaced_rows(table: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return every row whose successor has a smaller key."""
    high = table[:, :_HIGH_BYTES].copy().view(">u8").ravel()
    low = table[:, _HIGH_BYTES:KEY_BYTES].copy().view(">u2").ravel()
    smaller = high[1:] < high[:-1]
    smaller |= (high[1:] == high[:-1]) & (low[1:] < low[:-1])
    return np.flatnonzero(smaller)
