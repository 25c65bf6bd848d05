"""Records to plain JSON values and back, driven by the records' own type hints.

The one encoding of records: the store's files, the store's columns and ``--json`` all use it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from boardcluster.errors import StoreError

__all__ = ["JsonValue", "from_json", "to_json"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_Record = TypeVar("_Record")
_HINT = "boardcluster results --rebuild"


def to_json(value: object) -> JsonValue:
    """Turn a record, or a container of records, into values that ``json.dumps`` accepts.

    Dataclasses become objects with their field names, sets become sorted lists, paths and
    enumerations become strings.

    Raises:
        TypeError: a value has no JSON form.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [to_json(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def from_json(kind: type[_Record], data: JsonValue) -> _Record:
    """Build a record of type ``kind`` from what ``to_json`` made of one.

    A field that is missing takes the record's default, so that a later version with a new optional
    field reads an older file.

    Raises:
        StoreError: a field is missing without a default, unknown, or of the wrong type.
    """
    return typing.cast("_Record", _decode(kind, data, kind.__name__))


def _decode(hint: Any, data: Any, where: str) -> Any:
    if typing.get_origin(hint) is not None:
        return _decode_generic(hint, data, where)
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(hint, _expect(dict, data, where), where)
    if issubclass(hint, StrEnum):
        return _decode_enum(hint, _expect(str, data, where), where)
    if hint is Path:
        return Path(_expect(str, data, where))
    if hint is float and type(data) is int:
        return float(data)
    return _expect(hint, data, where)


def _decode_generic(hint: Any, data: Any, where: str) -> Any:
    """Decode an optional value, a tuple, a frozenset or a dict of one item type."""
    origin = typing.get_origin(hint)
    parts = [part for part in typing.get_args(hint) if part is not types.NoneType]
    if origin in (tuple, frozenset):
        items = _expect(list, data, where)
        return origin(_decode(parts[0], item, f"{where}[]") for item in items)
    if origin is dict:
        entries = _expect(dict, data, where)
        return {key: _decode(parts[1], item, f"{where}.{key}") for key, item in entries.items()}
    return None if data is None else _decode(parts[0], data, where)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """Type hints of a record: resolved once, since a campaign has ten thousand trials."""
    return typing.get_type_hints(kind)


def _decode_dataclass(kind: Any, data: dict[str, Any], where: str) -> Any:
    hints = _hints(kind)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise StoreError(f"unknown field in {where}: {', '.join(unknown)}", hint=_HINT)
    values = {name: _decode(hints[name], item, f"{where}.{name}") for name, item in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise StoreError(f"a field is missing in {where}: {error}", hint=_HINT) from error


def _decode_enum(kind: type[StrEnum], data: str, where: str) -> StrEnum:
    try:
        return kind(data)
    except ValueError as error:
        allowed = ", ".join(kind)
        raise StoreError(f"{where} is {data!r}, allowed: {allowed}", hint=_HINT) from error


def _expect(kind: Any, data: Any, where: str) -> Any:
    """Return data if it is exactly of that type; a bool is not an int here."""
    return data if type(data) is kind else _wrong(kind, data, where)


def _wrong(kind: type, data: object, where: str) -> typing.NoReturn:
    raise StoreError(f"{where} should be {kind.__name__} but is {type(data).__name__}", hint=_HINT)
