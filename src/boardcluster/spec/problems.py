"""Collect everything that is wrong with a specification and say it in one error.

Pydantic finds the problems; here they get our words: the line, the key, the value, what is allowed
(the ``description`` of the field) and the nearest valid name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from boardcluster.errors import SpecError
from boardcluster.spec.checks import check_word, closest, complaint, shown
from boardcluster.spec.toml import KeyPath, TomlDocument, read_toml

__all__ = [
    "Problem",
    "StrictTable",
    "Text",
    "key_text",
    "read_model",
    "repeated",
    "spec_error",
    "validate",
    "word_of",
]

_PROBLEMS_SHOWN_MAX = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

Model = TypeVar("Model", bound=BaseModel)
Text = Annotated[str, Field(min_length=1, description="text that is not empty")]


class StrictTable(BaseModel):
    """A table of a TOML file, with no other keys and nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def word_of(kind: type[Any], what: str) -> BeforeValidator:
    """Return a validator that makes a member of an enumeration from its name.

    Args:
        kind: the enumeration.
        what: what a member is, with its article, for the message.
    """
    names = [item.value for item in kind]
    return BeforeValidator(lambda value: kind(check_word(value, names, what=what)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong."""

    path: KeyPath
    """The key it concerns."""
    text: str
    """What is wrong and what is allowed."""


def key_text(path: KeyPath) -> str:
    """Write a key path as people do: ``node[1].memory``; indices count from 0."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else shown(part)
            text += f".{key}" if text else key
    return text


def _field_model(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a table field, or of the elements of an array of tables."""
    candidates = (field.annotation, *get_args(field.annotation))
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _field_at(model: type[BaseModel], path: KeyPath) -> tuple[type[BaseModel], FieldInfo | None]:
    """Follow a path down to the innermost known field and the model that holds it."""
    field: FieldInfo | None = None
    for part in path:
        if isinstance(part, int):
            continue
        if field is not None:
            inner = _field_model(field)
            if inner is None:
                break
            model = inner
        field = model.model_fields.get(part)
        if field is None:
            break
    return model, field


def _text_of(
    error: ErrorDetails, model: type[BaseModel], allowed_words: Mapping[KeyPath, str]
) -> str:
    holder, field = _field_at(model, error["loc"])
    if error["type"] == "extra_forbidden":
        key = str(error["loc"][-1])
        fields = holder.model_fields
        return complaint("unknown key", allowed=", ".join(fields), nearest=closest(key, fields))
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    description = field.description if field is not None else None
    allowed = allowed_words.get(error["loc"]) or description or "see the reference"
    what = "missing" if error["type"] == "missing" else f"{shown(error['input'])} is not allowed"
    return complaint(what, allowed=allowed)


def validate(
    model: type[Model],
    data: Mapping[str, Any],
    *,
    context: Mapping[str, Any],
    allowed_words: Mapping[KeyPath, str],
) -> tuple[Model | None, list[Problem]]:
    """Validate data against a model.

    Args:
        model: the model; each field's ``description`` says in words what is allowed.
        data: what the file holds.
        context: handed to the validators.
        allowed_words: what is allowed, in words, for keys where only the caller knows it; before
            the field's description.

    Returns:
        The validated model and no problems, or None and every problem.
    """
    try:
        return model.model_validate(data, context=dict(context)), []
    except ValidationError as error:
        return None, [
            Problem(path=details["loc"], text=_text_of(details, model, allowed_words))
            for details in error.errors(include_url=False)
        ]


def read_model(
    path: Path,
    model: type[Model],
    *,
    create_hint: str,
    check: Callable[[Model], list[Problem]] = lambda _: [],
) -> tuple[Model, TomlDocument]:
    """Read a TOML file into a model that needs no context.

    Args:
        path: the file.
        model: as for ``validate``.
        create_hint: what to do when there is no such file, in the imperative.
        check: finds what is wrong beyond single values.

    Raises:
        SpecError: it is missing, not TOML, or wrong; with line, key and what is allowed.
    """
    document = read_toml(path, create_hint=create_hint)
    found, problems = validate(model, document.data, context={}, allowed_words={})
    if found is not None:
        problems = check(found)
    if found is None or problems:
        raise spec_error(document, problems)
    return found, document


def repeated(rows: Iterable[tuple[KeyPath, Hashable]]) -> Iterator[tuple[KeyPath, KeyPath]]:
    """Yield each path whose value an earlier path has, with the first such path."""
    first: dict[Hashable, KeyPath] = {}
    for path, value in rows:
        if (earlier := first.setdefault(value, path)) != path:
            yield path, earlier


def spec_error(document: TomlDocument, problems: Sequence[Problem]) -> SpecError:
    """Return an error that names all problems, a line for each, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: document.line_of(problem.path))
    lines = [
        f"{document.path}:{document.line_of(problem.path)}: "
        f"{key_text(problem.path)}: {problem.text}"
        for problem in ordered[:_PROBLEMS_SHOWN_MAX]
    ]
    hidden = len(ordered) - len(lines)
    if hidden:
        lines.append(f"{document.path}: and {hidden} more")
    count = "this line" if len(ordered) == 1 else f"these {len(ordered)} problems"
    return SpecError("\n".join(lines), hint=f"correct {count} and run the command again")
