"""Replaces names in an archive of samples; the numbers, and the program's own words, stay."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from boardcluster.store.sample_archive import (
    DAMAGES,
    META,
    member_name,
    open_archive,
    read_member,
)

__all__ = ["redacted_samples"]

_Redact: TypeAlias = Callable[[str], str]
_LEVEL = 4  # as samples are written
_OURS = ("clock_", "group_")
"""Columns that have cores and daemons behind the slash; others have interfaces and devices."""


def redacted_samples(content: bytes, redact: _Redact) -> bytes | None:
    """Replace names in an archive of samples.

    They are in the names of nodes and phases, in notes, and behind the slash in the names of
    columns, which arrays have, too. All else are words of the program: whose host is called
    ``storage`` still has ``storage_read_bytes``.

    Args:
        content: the archive.
        redact: what replaces them in a text.

    Returns:
        The archive, as it was if there were none; None if it is damaged, so that it says nothing.
    """
    try:
        with open_archive(io.BytesIO(content)) as archive:
            data = read_member(archive, META)
            meta = json.loads(data[data.index(b"\n") + 1 :])  # behind the array's own head
            columns = _columns(meta["scales"], redact)
            done = _meta(meta, columns, redact)
            if done == meta:
                return content
            # What `meta` does not name is read by nobody, and may be called anything.
            parts = {column: read_member(archive, name) for name, column in columns.items()}
    except DAMAGES:
        return None
    parts[META] = _bytes_array(json.dumps(done).encode())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, part in parts.items():
            entry = zipfile.ZipInfo(member_name(name))
            archive.writestr(entry, part, zipfile.ZIP_DEFLATED, _LEVEL)
    return out.getvalue()


def _columns(names: Iterable[str], redact: _Redact) -> dict[str, str]:
    """Return the new name of each column; an interface has the same one in all of them."""
    members = {name: _member(name) for name in names}
    words = _kept_apart(dict.fromkeys(members.values()), redact)
    return {name: name.removesuffix(member) + words[member] for name, member in members.items()}


def _member(column: str) -> str:
    """Return the part of a column's name that is no word of the program; empty if all of it is."""
    return "" if column.startswith(_OURS) else column.partition("/")[2]


def _kept_apart(names: Iterable[str], redact: _Redact) -> dict[str, str]:
    """Return the new name of each; two may differ only in what is replaced, and still do then."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        word = redact(name)
        shown, number = word, 2
        while shown in taken:
            shown, number = f"{word}.{number}", number + 1
        taken.add(shown)
        found[name] = shown
    return found


def _meta(meta: dict[str, Any], columns: dict[str, str], redact: _Redact) -> dict[str, Any]:
    """Return what says which sample is whose, with other names."""
    phases = _kept_apart(meta["phases"], redact)
    done = {
        **meta,
        "phases": {phases[name]: span for name, span in meta["phases"].items()},
        "nodes": [
            {
                **node,
                "node": redact(node["node"]),
                "notes": [redact(note) for note in node["notes"]],
                "columns": [columns[name] for name in node["columns"]],
            }
            for node in meta["nodes"]
        ],
        "scales": {columns[name]: scale for name, scale in meta["scales"].items()},
    }
    if "tasks" in meta:
        rows = [
            [redact(value) if isinstance(value, str) else value for value in row]
            for row in meta["tasks"]["rows"]
        ]
        done["tasks"] = {**meta["tasks"], "rows": rows}
    return done


def _bytes_array(content: bytes) -> bytes:
    """Return bytes as an array of NumPy (numpy.lib.format)."""
    import numpy as np  # noqa: PLC0415  only telemetry with names in it waits for it

    out = io.BytesIO()
    np.lib.format.write_array(out, np.frombuffer(content, dtype=np.uint8), allow_pickle=False)
    return out.getvalue()
