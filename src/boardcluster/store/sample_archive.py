"""The archive of a run's samples, as anybody may have made it: what is read of it has bounds.

A bundle of a few megabytes can hold one whose arrays, or whose list of them, fill any memory.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = [
    "DAMAGES",
    "META",
    "VALUES_MOST",
    "bound_of",
    "member_name",
    "open_archive",
    "read_member",
]

META = "meta"
"""The array beside the columns: JSON, as bytes."""

_BYTES_MOST = 2 << 30
"""Of all arrays, unless the archive is large itself. An agent writes 32 MiB of text at most
(telemetry/collector.py), a day and a half at a sample a second. A value takes 5 bytes or more of
it, and 3.6 here: so 64 nodes never have as much."""
VALUES_MOST = 1 << 29
"""Of all columns that are read, by the same count. An array may have one byte for a value, of which
memory takes eight: 4 GiB."""
_FOR_EACH_BYTE = 64
"""Of a large archive so much more is believed for each of its bytes: 1,000 boards have more samples
after three hours. Those that an agent takes compress to a quarter or so, made-up ones a thousand
times."""
_META_BYTES_MOST = 128 << 20
"""A million tasks. What JSON says takes up to twenty times its size in memory."""
_DIRECTORY_BYTES_MOST = 16 << 20
"""Of the list of arrays, which is read whole: about a hundred for each."""
_END_BYTES, _LOCATOR_BYTES = 22, 20
_END, _LOCATOR = b"PK\5\6", b"PK\6\7"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other ones are decompressed without a bound."""

DAMAGES: tuple[type[Exception], ...] = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError),
    *(ValueError, zipfile.BadZipFile, zlib.error),
)
"""What may be raised where a byte of an archive, or what its JSON says, is not as we write it."""


def member_name(column: str) -> str:
    """Return the file of an array within the archive."""
    return f"{column.replace('/', '!')}.npy"  # a slash would be a folder of the archive


@contextmanager
def open_archive(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open an archive for the block.

    Args:
        stream: the file; it stays open.

    Raises:
        ValueError: it is no such archive, or is larger than any.
        Exception: another one of ``DAMAGES``.
    """
    _check_directory(stream)
    with zipfile.ZipFile(stream) as archive:
        if sum(row.file_size for row in archive.infolist()) > bound_of(stream, _BYTES_MOST):
            raise ValueError("it would unpack to more than samples of any run")
        yield archive


def bound_of(stream: IO[bytes], least: int) -> int:
    """Return how much an archive may hold: more than the least only where it is large itself."""
    return max(least, _FOR_EACH_BYTE * stream.seek(0, os.SEEK_END))


def _check_directory(stream: IO[bytes]) -> None:
    """Refuse a list of arrays that would fill the memory.

    Raises:
        ValueError: the file does not end as ours do, or the list is larger than any.
    """
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END_BYTES - _LOCATOR_BYTES))
    tail = stream.read()
    end = tail[-_END_BYTES:]
    # With a comment, or with the locator of a second end (ZIP64), zipfile takes another one's word.
    if not end.startswith(_END) or not end.endswith(b"\0\0") or tail.startswith(_LOCATOR):
        raise ValueError("it does not end as an archive of samples")
    if int.from_bytes(end[12:16], "little") > _DIRECTORY_BYTES_MOST:
        raise ValueError("it has more arrays than samples of any run")


def read_member(archive: zipfile.ZipFile, column: str) -> bytes:
    """Return the file of an array.

    Raises:
        ValueError: it is not compressed as ours are, or larger than any.
        Exception: another one of ``DAMAGES``.
    """
    row = archive.getinfo(member_name(column))
    if row.compress_type not in _COMPRESSIONS:
        raise ValueError(f"{column} is compressed in a way that samples are not")
    if column == META and row.file_size > _META_BYTES_MOST:
        raise ValueError(f"{META} has {row.file_size} bytes, more than that of any run")
    with archive.open(row) as stream:
        # With a size: read() decompresses up to a gigabyte before it looks at that of the entry.
        return stream.read(row.file_size)
