"""Keep secrets out of what is stored and shown (invariant I8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["HIDDEN", "redact"]

HIDDEN = "(hidden)"
_SECRET = re.compile(r"pass(word|wd|phrase)?|secret|token|api[-_.]?key|credential", re.IGNORECASE)


def redact(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line in which values named like a secret are hidden.

    Both ``--password VALUE`` and ``NAME=VALUE`` are recognised.
    """
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        secret = bool(_SECRET.search(name))
        if hide_next:
            shown.append(HIDDEN)
        elif equals and secret:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(argument)
        hide_next = not hide_next and not equals and argument.startswith("-") and secret
    return tuple(shown)
