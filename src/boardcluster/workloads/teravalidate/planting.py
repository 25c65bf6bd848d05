"""Two faults planted into a sorted file, and the report that must follow from them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import writing
from boardcluster.workloads.tera_reading import Totals, hexadecimal_key
from boardcluster.workloads.tera_rows import KEY_BYTES, ROW_BYTES, checksum_text

__all__ = ["Planted", "plant_faults"]

_LEAST_ROWS = 5
_CHUNK_BYTES = 1 << 20
_CHECKSUM_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What was done to a file."""

    part: str
    """Its name."""
    larger: bytes
    """The key that now stands before ``smaller``."""
    smaller: bytes
    """The key that now stands after ``larger``."""
    lost_crc: int
    """CRC-32 of the row that was taken out."""

    def report(self, whole: Totals) -> str:
        """Return the report of a right validator over all files.

        Args:
            whole: the rows as they were before.
        """
        checksum = checksum_text((whole.checksum - self.lost_crc) % _CHECKSUM_MODULUS)
        larger, smaller = hexadecimal_key(self.larger), hexadecimal_key(self.smaller)
        return (
            f"checksum\t{checksum}\nerror\tmisorder in {self.part} between {larger} and {smaller}\n"
        )


def plant_faults(part: Path, *, target: Path) -> Planted:
    """Copy a sorted file without one row of its first half and with two neighbours exchanged.

    The exchange is in the second half, at the first two neighbours whose keys differ, so exactly
    one key becomes smaller than the key before it. The first and the last row stay.

    Args:
        part: a sorted file.
        target: the copy.

    Raises:
        VerificationError: the file has fewer than five rows, or no such neighbours.
        HostError: the copy cannot be written.
    """
    size_bytes = part.stat().st_size
    count = size_bytes // ROW_BYTES
    if count < _LEAST_ROWS:
        raise VerificationError(
            f"{part.name} has {count} rows; planting faults needs at least {_LEAST_ROWS}",
            hint="give a larger size",
        )
    lost = count // 4
    with part.open("rb") as source, writing(target), target.open("wb+") as sink:
        first, left, right = _neighbours(source, count=count, name=part.name)
        source.seek(0)
        _copy(source, sink, size_bytes=lost * ROW_BYTES)
        lost_row = source.read(ROW_BYTES)
        _copy(source, sink, size_bytes=size_bytes - (lost + 1) * ROW_BYTES)
        sink.seek((first - 1) * ROW_BYTES)  # one row before it is gone
        sink.write(right + left)
    return Planted(
        part=part.name,
        larger=right[:KEY_BYTES],
        smaller=left[:KEY_BYTES],
        lost_crc=zlib.crc32(lost_row),
    )


def _copy(source: IO[bytes], sink: IO[bytes], *, size_bytes: int) -> None:
    """Copy the next bytes, a megabyte at a time."""
    for done in range(0, size_bytes, _CHUNK_BYTES):
        sink.write(source.read(min(_CHUNK_BYTES, size_bytes - done)))


def _neighbours(source: IO[bytes], *, count: int, name: str) -> tuple[int, bytes, bytes]:
    """Return the first two neighbours of the second half whose keys differ, and their place."""
    place = count // 2
    source.seek(place * ROW_BYTES)
    left = source.read(ROW_BYTES)
    for first in range(place, count - 2):
        right = source.read(ROW_BYTES)
        if left[:KEY_BYTES] < right[:KEY_BYTES]:
            return first, left, right
        left = right
    raise VerificationError(
        f"the second half of {name} has no two neighbours in ascending order that could be "
        "exchanged",
        hint="give a larger size",
    )
