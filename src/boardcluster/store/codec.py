"""Records to plain JSON values and back.

The one encoding of records: the store's files, the store's columns and ``--json`` all use it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from boardcluster.errors import StoreError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, SchemaValidator

__all__ = ["JsonValue", "from_json", "from_row", "to_json"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_Record = TypeVar("_Record")
_HINT = "run `boardcluster results --rebuild`"
_ERRORS_SHOWN = 3
_SCALARS = frozenset({"bool", "float", "int", "str"})
_FIELD_ERRORS = {
    "missing": "the field is missing",
    "unexpected_keyword_argument": "the field is unknown",
}


def to_json(value: object) -> JsonValue:
    """Turn a record, or a container of records, into values that ``json.dumps`` accepts.

    Dataclasses become objects with their field names, sets become sorted lists, paths and
    enumerations become strings.

    Raises:
        TypeError: a value has no JSON form.
    """
    plain: JsonValue = json.loads(json.dumps(value, default=_plain))
    return plain


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def from_json(kind: type[_Record], data: JsonValue) -> _Record:
    """Build a record of type ``kind`` from what ``to_json`` made of one.

    A field that is missing takes the record's default, so that a later version with a new optional
    field reads an older file.

    Raises:
        StoreError: a field is missing without a default, unknown, or of the wrong type.
    """
    if not isinstance(data, dict):
        raise StoreError(f"{kind.__name__} should be an object, not {data!r}", hint=_HINT)
    record: _Record = _validated(kind, data, exact=True)
    return record


def from_row(kind: type[_Record], values: Mapping[str, object]) -> _Record:
    """Build a record of type ``kind`` from columns of a row, which has 0 and 1 for false and true.

    Raises:
        StoreError: a value is missing or of the wrong type.
    """
    record: _Record = _validated(kind, values, exact=False)
    return record


def _validated(kind: Any, data: Mapping[str, object], *, exact: bool) -> Any:
    from pydantic import ValidationError  # noqa: PLC0415  only what reads a record waits for it

    try:
        return _validator(kind, exact).validate_python(data)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_context=False)
        words = "; ".join(_error_words(kind.__name__, row) for row in rows[:_ERRORS_SHOWN])
        raise StoreError(words, hint=_HINT) from error


@functools.cache
def _validator(kind: Any, exact: bool) -> SchemaValidator:
    """Return what checks and builds a record: made once, since a campaign has many trials."""
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415
    from pydantic_core import SchemaValidator  # noqa: PLC0415

    # `| None`, because pydantic takes no configuration for a dataclass by itself.
    adapter = TypeAdapter[object](kind | None, config=ConfigDict(extra="forbid"))
    if exact:
        _make_exact(adapter.core_schema)
    return SchemaValidator(adapter.core_schema)


def _make_exact(schema: Any) -> None:
    """Refuse a truth value or a text for a number; lists still become tuples, texts paths."""
    if isinstance(schema, dict):
        if schema.get("type") in _SCALARS:
            schema["strict"] = True
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            _make_exact(part)


def _error_words(kind: str, error: ErrorDetails) -> str:
    place = ".".join((kind, *map(str, error["loc"])))
    if words := _FIELD_ERRORS.get(error["type"]):
        return f"{place}: {words}"
    message = error["msg"].replace("Input should", "it should")
    return f"{place}: {message}, not {str(error['input'])[:60]!r}"
