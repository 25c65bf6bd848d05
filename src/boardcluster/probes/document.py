"""Reading what tools print: one JSON document, or one line of a form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from boardcluster.errors import ProbeOutputError

__all__ = ["json_document", "member", "only_line", "positive"]

_SHOWN_CHARACTERS = 80


def only_line(pattern: str, text: str, what: str, *, tool: str) -> tuple[str, ...]:
    """Return the groups of a pattern that one line of a text matches.

    Args:
        pattern: with at least one group.
        text: what the tool printed.
        what: the line's own words, for the message.
        tool: a command of sysbench, for the message.

    Raises:
        ProbeOutputError: no line matches, or several do.
    """
    found = [match.groups() for match in re.finditer(pattern, text, re.MULTILINE)]
    if len(found) != 1:
        raise ProbeOutputError(
            f"{tool} printed {len(found)} lines of {what!r}: {' '.join(text.split())[-200:]!r}",
            hint=f"run `{tool} run` on the node; sysbench 1.0 is supported",
        )
    return found[0]


def json_document(text: str, tool: str) -> dict[str, Any]:
    """Return the one JSON object that a tool printed; lines of warnings may stand before it.

    Raises:
        ProbeOutputError: there is none, it is cut or garbled, or something follows.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("{")]
    if not starts:
        last = lines[-1].strip() if lines else ""
        raise ProbeOutputError(
            f"{tool} printed no JSON: {last[:_SHOWN_CHARACTERS]!r}",
            hint=f"run the same {tool} by hand on the node",
        )
    body = "\n".join(lines[starts[0] :])
    try:
        found = json.loads(body)
    except ValueError as error:
        number = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        line = body.splitlines()[number - 1].strip()
        raise ProbeOutputError(
            f"{tool}'s JSON cannot be read in line {starts[0] + number}: "
            f"{line[:_SHOWN_CHARACTERS]!r}",
            hint=f"check that {tool} was not interrupted and that its version is supported",
        ) from error
    if not isinstance(found, dict):
        raise ProbeOutputError(f"{tool} printed JSON that is not an object: {body[:40]!r}")
    return found


def member(row: Mapping[str, Any], *names: str, tool: str) -> Any:
    """Return a value by its path of keys.

    Raises:
        ProbeOutputError: a key is missing.
    """
    value: Any = row
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            raise ProbeOutputError(f"{tool}'s output has no {'.'.join(names)}")
        value = value[name]
    return value


def positive(row: Mapping[str, Any], *names: str, tool: str) -> float:
    """Return a number above zero by its path of keys.

    Raises:
        ProbeOutputError: it is missing, no number, or not above zero.
    """
    value = member(row, *names, tool=tool)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise ProbeOutputError(f"{tool}'s {'.'.join(names)} is {value!r}, not a number above 0")
    return float(value)
