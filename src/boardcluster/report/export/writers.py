"""Tables to files: CSV, JSON and Parquet, row by row, each file whole or not there at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, TextIO

from boardcluster import __version__
from boardcluster.errors import CapacityError, HostError, UsageError, extra_hint
from boardcluster.foreign import json_text, write_csv
from boardcluster.report.export.frames import DType, Field, Frame, Value

__all__ = [
    "SCHEMA",
    "Format",
    "arrow_table",
    "pandas_frame",
    "require_free",
    "require_parquet",
    "whole_file",
    "write_frame",
    "write_stream",
]

SCHEMA = 1
"""Version of names and meanings of the columns; in each JSON and Parquet file."""

_TYPES = {
    DType.TEXT: ("object", "string"),
    DType.INTEGER: ("Int64", "int64"),
    DType.NUMBER: ("float64", "float64"),
    DType.BOOLEAN: ("boolean", "bool_"),
    DType.OBJECT: ("object", "string"),
}
"""The types of pandas and of Arrow for each kind."""
_BATCH_ROWS = 100_000
"""Rows that are in memory at once, and in one row group of a Parquet file."""


class Format(StrEnum):
    """Formats of a table."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@contextlib.contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary file next to the one that is meant, and put it in place at the end.

    Whatever ends the block early, Ctrl-C too, leaves neither a part nor the temporary file. The
    folder is made.

    Args:
        path: where it is to be.
        force: whether a file that is there already may be replaced.

    Raises:
        UsageError: it is there already, or is a folder.
        CapacityError: the disk became full.
        HostError: it cannot be written.
    """
    require_free(path, force=force)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CapacityError(
                f"the disk became full while writing {path}",
                hint=f"free space in {path.parent}, or choose a folder on a larger disk",
            ) from error
        raise HostError(
            f"cannot write {path}: {error.strerror or error}", hint="choose another file"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def require_free(path: Path, *, force: bool) -> None:
    """Check that a file may be written.

    Args:
        path: the file.
        force: whether one that is there already may be replaced.

    Raises:
        UsageError: it is there already, or is a folder.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file in it")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists", hint="name another file, or use --force")


def write_frame(frame: Frame, path: Path, *, to: Format, force: bool) -> int:
    """Write a table into a file; return how many rows it has.

    Raises:
        UsageError: the file is there already, or the library for Parquet is missing.
        CapacityError: the disk became full.
        HostError: it cannot be written.
    """
    if to is Format.PARQUET:
        require_parquet()
    with whole_file(path, force=force) as temporary:
        if to is Format.PARQUET:
            return _write_parquet(frame, temporary)
        # A name of undecodable bytes must not cost the export.
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            return write_stream(frame, out, to=to)


def write_stream(frame: Frame, out: TextIO, *, to: Format) -> int:
    """Write a table as text; return how many rows it has.

    Numbers are written so that they read back as the same: ``repr`` of binary fractions.

    Raises:
        UsageError: it is Parquet, which is no text.
    """
    if to is Format.PARQUET:
        raise UsageError("Parquet is not text for a terminal", hint="name a file with --output")
    return _write_csv(frame, out) if to is Format.CSV else _write_json(frame, out)


def _write_csv(frame: Frame, out: TextIO) -> int:
    write_csv(out, [[field.name for field in frame.fields]])
    return write_csv(out, ([_plain(value) for value in row] for row in frame.rows))


def _plain(value: Value) -> str | int | float:
    """Return a value as CSV has it: nothing for None, true and false, objects as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str | int | float) else _object(value)


def _object(value: object) -> str:
    return json_text(value, allow_nan=False)


def _write_json(frame: Frame, out: TextIO) -> int:
    names = [field.name for field in frame.fields]
    head = {
        "schema": SCHEMA,
        "boardcluster": __version__,
        "table": frame.name,
        "fields": [
            {"name": field.name, "kind": field.kind.value, "meaning": field.meaning}
            for field in frame.fields
        ],
    }
    out.write(json_text(head, indent=1)[:-2] + ',\n "rows": [')
    count = 0
    for row in frame.rows:
        out.write(("," if count else "") + "\n  ")
        out.write(_object(dict(zip(names, row, strict=True))))
        count += 1
    out.write("\n ]\n}\n")
    return count


def require_parquet() -> None:
    """Check that the library for Parquet is there, before anything is read or written.

    Raises:
        UsageError: it is not.
    """
    try:
        import pyarrow  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError(
            f"Parquet needs the package pyarrow, which is not installed: {error}",
            hint=extra_hint("parquet"),
        ) from error


def arrow_table(frame: Frame) -> Any:
    """Return a table as a ``pyarrow.Table``; objects are JSON text.

    Raises:
        UsageError: pyarrow is not installed.
    """
    require_parquet()
    import pyarrow as pa  # noqa: PLC0415  an optional extra, and slow to load

    return pa.Table.from_batches(_batches(frame), schema=_schema(frame))


def pandas_frame(frame: Frame) -> Any:
    """Return a table as a ``pandas.DataFrame``; objects are dictionaries and lists.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415  an optional extra, and slow to load
    except ImportError as error:
        raise UsageError(
            f"a DataFrame needs the package pandas, which is not installed: {error}",
            hint=extra_hint("pandas"),
        ) from error
    rows = list(frame.rows)
    return pd.DataFrame(
        {
            field.name: pd.Series([row[place] for row in rows], dtype=_TYPES[field.kind][0])
            for place, field in enumerate(frame.fields)
        }
    )


def _schema(frame: Frame) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema(
        [
            pa.field(
                field.name,
                getattr(pa, _TYPES[field.kind][1])(),
                metadata={"meaning": field.meaning},
            )
            for field in frame.fields
        ],
        metadata={
            "schema": str(SCHEMA),
            "boardcluster": __version__,
            "table": frame.name,
        },
    )


def _batches(frame: Frame) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    schema = _schema(frame)
    rows = iter(frame.rows)
    while batch := list(itertools.islice(rows, _BATCH_ROWS)):
        columns = [
            pa.array(_column(field, values), type=column.type)
            for field, column, values in zip(
                frame.fields, schema, zip(*batch, strict=True), strict=True
            )
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _write_parquet(frame: Frame, path: Path) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415  an optional extra, and slow to load

    count = 0
    stream: IO[bytes]
    with (
        path.open("wb") as stream,
        pq.ParquetWriter(stream, _schema(frame), compression="zstd") as writer,
    ):
        for batch in _batches(frame):
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _column(field: Field, values: Sequence[Value]) -> Sequence[object]:
    if field.kind is DType.OBJECT:
        return [None if value is None else _object(value) for value in values]
    if field.kind is DType.TEXT:
        # Arrow takes valid UTF-8 only.
        return [str(value).encode("utf-8", "backslashreplace").decode() for value in values]
    return values
