"""Keep secrets out of what is stored and shown (invariant I8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["HIDDEN", "names_secret", "redact"]

HIDDEN = "(hidden)"
_SECRET = re.compile(r"pass(word|wd|phrase)?|secret|token|api[-_.]?key|credential", re.IGNORECASE)


def names_secret(name: str) -> bool:
    """Whether what has this name is to be taken for a secret."""
    return bool(_SECRET.search(name))


def redact(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line in which values named like a secret are hidden.

    ``--password VALUE``, ``NAME=VALUE`` and ``--conf=NAME=VALUE`` are recognised.
    """
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        if hide_next:
            shown.append(HIDDEN)
            hide_next = False
            continue
        shown.append(_hide_value(argument))
        bare = argument.startswith("-") and "=" not in argument
        hide_next = bare and bool(_SECRET.search(argument))
    return tuple(shown)


def _hide_value(argument: str) -> str:
    """Hide everything behind the first ``=`` that follows a name like a secret's."""
    names = argument.split("=")[:-1]
    for index, name in enumerate(names):
        if _SECRET.search(name):
            return "=".join([*names[: index + 1], HIDDEN])
    return argument
