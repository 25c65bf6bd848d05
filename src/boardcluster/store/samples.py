"""Telemetry of an attempt as one columnar file beside its other artefacts.

``telemetry.npz`` is NumPy's own archive (numpy.lib.format): one compressed array per column over
all nodes that have it, whole numbers with a scale, and ``meta``, JSON as bytes. It can be read
without boardcluster: ``numpy.load("telemetry.npz")``. See docs/reference/telemetry.md.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from boardcluster.errors import StoreError
from boardcluster.records import NodeSamples, TaskRecord, Telemetry
from boardcluster.store.files import TELEMETRY_NAME, replacing
from boardcluster.store.sample_archive import (
    DAMAGES,
    META,
    VALUES_MOST,
    bound_of,
    member_name,
    open_archive,
    read_member,
)

__all__ = ["read_telemetry", "write_telemetry"]

_FORMAT = 1
_SECONDS = "seconds"
_SCALES = {"seconds": 1e-6, "bytes": 1.0, "hertz": 1e3, "celsius": 1e-3, "cores": 1e-3}
"""Resolution by the unit at the end of a column's name; 1 for what is counted."""
_TASK = tuple(row.name for row in fields(TaskRecord))
_HEAD_BYTES = 10  # magic, version, and the length of what follows
_NPY_VERSION = (1, 0)
_TYPES = (np.int8, np.int16, np.int32, np.int64)
_NO_WHOLE = 2.0**63
_SHOWN_CHARACTERS = 200


def write_telemetry(folder: Path, telemetry: Telemetry) -> Path:
    """Write a run's samples into an attempt's folder, whole or not at all; return the file.

    Raises:
        OSError: the disk is full, read-only or out of reach.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    names = sorted({name for node in telemetry.nodes for name in node.columns})
    for name in (_SECONDS, *names):
        having = [node for node in telemetry.nodes if name == _SECONDS or name in node.columns]
        values = [node.seconds if name == _SECONDS else node.columns[name] for node in having]
        joined = np.concatenate(values) if values else np.empty(0)
        arrays[name] = _whole(joined, _scale(name))
    nodes = [
        {
            "node": node.node,
            "scope": node.scope,
            "interval_seconds": node.interval_seconds,
            "cores": node.cores,
            "clock_offset_seconds": node.clock_offset_seconds,
            "clock_error_seconds": node.clock_error_seconds,
            "notes": list(node.notes),
            "samples": len(node.seconds),
            "columns": sorted(node.columns),
        }
        for node in telemetry.nodes
    ]
    meta: dict[str, Any] = {
        "format": _FORMAT,
        "duration_seconds": telemetry.duration_seconds,
        "phases": {name: list(span) for name, span in telemetry.phases.items()},
        "nodes": nodes,
        "scales": {name: _scale(name) for name in arrays},
    }
    if telemetry.tasks is not None:
        rows = [[getattr(task, name) for name in _TASK] for task in telemetry.tasks]
        meta["tasks"] = {"columns": _TASK, "rows": rows}
    arrays[META] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    return _save(folder / TELEMETRY_NAME, arrays)


def _save(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Path:
    with replacing(path) as temporary, temporary.open("wb") as stream:
        # Not numpy.savez_compressed: its level 6 takes three times as long for 2 % less.
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                archive.writestr(member_name(name), buffer.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    return path


def _scale(column: str) -> float:
    return _SCALES.get(column.partition("/")[0].rpartition("_")[2], 1.0)


def _whole(values: npt.NDArray[np.float64], scale: float) -> npt.NDArray[Any]:
    """Return whole numbers of the smallest type that holds them; its least means NaN.

    What no such type holds, as a node may write any number, is as good as unknown.
    """
    scaled = values / scale
    known = np.abs(scaled) < _NO_WHOLE
    whole = np.zeros(values.shape, dtype=np.int64)
    whole[known] = np.rint(scaled[known]).astype(np.int64)
    most = max(abs(int(whole.max(initial=0))), abs(int(whole.min(initial=0))))
    kind = next(kind for kind in _TYPES if most <= np.iinfo(kind).max)
    small = whole.astype(kind)
    small[~known] = np.iinfo(kind).min
    return small


def read_telemetry(
    folder: Path, *, nodes: Collection[str] = (), columns: Collection[str] = ()
) -> Telemetry | None:
    """Read a run's samples; None where the attempt has none.

    Args:
        folder: the attempt's folder.
        nodes: only these; empty for all.
        columns: only these, each with all behind its slash; empty for all.

    Raises:
        StoreError: the file is damaged or of an unknown format.
    """
    path = folder / TELEMETRY_NAME
    try:
        # Not numpy.load, which leaves a damaged file open.
        with path.open("rb") as stream, open_archive(stream) as archive:
            meta = json.loads(_array(archive, META).tobytes())
            if meta["format"] != _FORMAT:
                raise StoreError(
                    f"unknown format: {path}",
                    hint="use the version of boardcluster that wrote it",
                )
            left = bound_of(stream, VALUES_MOST)
            return _telemetry(archive, meta, nodes, columns, left)
    except FileNotFoundError:
        return None
    except DAMAGES as error:
        raise StoreError(
            f"damaged: {path}: {str(error)[:_SHOWN_CHARACTERS]}",
            hint="the run stays; only its samples are lost",
        ) from error


def _array(archive: zipfile.ZipFile, column: str) -> npt.NDArray[Any]:
    content = read_member(archive, column)
    begin = _HEAD_BYTES + int.from_bytes(content[_HEAD_BYTES - 2 : _HEAD_BYTES], "little")
    shape, kind = _shape_of(content[:begin])
    return np.frombuffer(content, kind, math.prod(shape), begin).reshape(shape)


@functools.lru_cache(maxsize=256)
def _shape_of(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read what stands before the values.

    A run's columns have few that differ, and reading one takes longer than reading the values.

    Raises:
        ValueError: it is no array of numbers as ``write_telemetry`` writes them.
    """
    stream = io.BytesIO(head)
    if np.lib.format.read_magic(stream) != _NPY_VERSION:
        raise ValueError("another version of numpy's format")
    try:
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    except (MemoryError, SyntaxError, TokenError) as error:  # of Python's parser, which NumPy asks
        raise ValueError("what stands before an array cannot be read") from error
    if by_columns or len(shape) != 1 or kind.kind not in "iu":
        raise ValueError(f"no list of whole numbers: {shape} of {kind}")
    return shape, kind


def _telemetry(
    archive: zipfile.ZipFile,
    meta: Mapping[str, Any],
    nodes: Collection[str],
    columns: Collection[str],
    left: int,
) -> Telemetry:
    wanted = [
        name
        for name in meta["scales"]
        if name == _SECONDS or not columns or {name, name.partition("/")[0]} & set(columns)
    ]
    parts: dict[str, dict[str, npt.NDArray[np.float64]]] = {
        row["node"]: {} for row in meta["nodes"]
    }
    for name in wanted:
        whole = _array(archive, name)
        left -= whole.size
        if left < 0:
            raise ValueError("it has more values than samples of any run")
        values = _floats(whole, float(meta["scales"][name]))
        place = 0
        for row in meta["nodes"]:
            if name == _SECONDS or name in row["columns"]:
                parts[row["node"]][name] = values[place : place + row["samples"]]
                place += row["samples"]
        if place != len(values):
            raise ValueError(f"{name} has {len(values)} values, not {place}")
    tasks = meta.get("tasks")  # absent before they were kept
    # Here and not where they are used: what is no number would end a report of many runs.
    return Telemetry(
        duration_seconds=float(meta["duration_seconds"]),
        phases={name: (float(begin), float(end)) for name, (begin, end) in meta["phases"].items()},
        tasks=None
        if tasks is None
        else tuple(_task(tasks["columns"], row) for row in tasks["rows"]),
        nodes=tuple(
            NodeSamples(
                node=str(row["node"]),
                scope=str(row["scope"]),
                interval_seconds=float(row["interval_seconds"]),
                cores=int(row["cores"]),
                seconds=parts[row["node"]].pop(_SECONDS),
                columns=parts[row["node"]],
                clock_offset_seconds=float(row["clock_offset_seconds"]),
                clock_error_seconds=float(row["clock_error_seconds"]),
                notes=tuple(map(str, row["notes"])),
            )
            for row in meta["nodes"]
            if not nodes or row["node"] in nodes
        ),
    )


def _task(columns: Sequence[str], row: Sequence[Any]) -> TaskRecord:
    values = dict(zip(columns, row, strict=True))
    node = str(values.pop("node"))
    if not all(isinstance(value, int | float) for value in values.values()):
        raise TypeError("a number of a task is none")
    return TaskRecord(node=node, **values)


def _floats(whole: npt.NDArray[Any], scale: float) -> npt.NDArray[np.float64]:
    values = whole.astype(np.float64) * scale
    values[whole == np.iinfo(whole.dtype).min] = math.nan
    return values
