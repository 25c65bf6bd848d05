"""Options that belong together, as one object."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command function whose parameters of a dataclass's type are one option per field.

    Typer reads options from the parameters of a function. A function with many is hard to read, so
    it takes some of them as one object: a dataclass whose fields are annotated like options.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
            parameters.append(parameter.replace(annotation=hint))
            continue
        groups[parameter.name] = hint
        fields = get_type_hints(hint, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, parameter.kind, default=field.default, annotation=fields[field.name]
            )
            for field in dataclasses.fields(hint)
        ]

    @functools.wraps(command)
    def gather(**given: Any) -> None:
        for name, group in groups.items():
            values = {row.name: given.pop(row.name) for row in dataclasses.fields(group)}
            given[name] = group(**values)
        command(**given)

    del gather.__wrapped__
    vars(gather)["__signature__"] = inspect.Signature(parameters)
    gather.__annotations__ = {row.name: row.annotation for row in parameters}
    return gather
