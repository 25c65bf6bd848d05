"""Keep secrets out of what is stored and shown (invariant I8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["HIDDEN", "names_secret", "redact"]

HIDDEN = "(hidden)"
_SECRET = re.compile(
    r"pass(word|wd|phrase)?|\bpwd\b|secret|token|credential|signature|bearer"
    r"|(api|account|access|private|shared|storage|signing|subscription)[-_.]?key|\bsas\b",
    re.IGNORECASE,
)
_SHORT = frozenset({"-p", "-P"})
"""Many programs take a password so. A number behind it is hidden, too."""

_IN_TEXT = (
    # scheme://user:password@host (RFC 3986, section 3.2.1)
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s/]+(?=@)", re.IGNORECASE),
    # ?sig=..., &X-Amz-Signature=..., ;AccountKey=...
    re.compile(
        r"(?P<kept>[?&;][^=&;\s]*(?:sig|signature|credential|token|secret|password|key|code)=)"
        r"[^&;\s]+",
        re.IGNORECASE,
    ),
    # Authorization: Bearer ... (RFC 6750)
    re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)\S+", re.IGNORECASE),
    # A member of a JSON object.
    re.compile(
        rf"""(?P<kept>["'][^"']*(?:{_SECRET.pattern})[^"']*["']\s*:\s*["'])[^"']*""", re.IGNORECASE
    ),
)
_LOGIN = re.compile(r"^(?P<kept>[^:]+:).+$", re.DOTALL)
_LOGINS = frozenset({"-u", "-U", "--user", "--login", "--proxy-user"})


def names_secret(name: str) -> bool:
    """Whether what has this name is to be taken for a secret."""
    return bool(_SECRET.search(name))


def redact(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line in which values named like a secret are hidden.

    ``--password VALUE``, ``-p VALUE``, ``-u USER:VALUE``, ``--user=USER:VALUE``, ``NAME=VALUE`` and
    ``--conf=NAME=VALUE`` are recognised, in addresses passwords and what signs them, bearer tokens,
    and JSON. A value that is glued to a short option, as in ``-pVALUE``, is not.
    """
    shown: list[str] = []
    before = ""
    for argument in arguments:
        bare = before.startswith("-") and "=" not in before
        if bare and (before in _SHORT or _SECRET.search(before)):
            shown.append(HIDDEN)
            before = ""
            continue
        if before in _LOGINS:
            shown.append(_LOGIN.sub(rf"\g<kept>{HIDDEN}", argument))
        else:
            name, separator, value = argument.partition("=")
            if separator and name in _LOGINS:
                value = _LOGIN.sub(rf"\g<kept>{HIDDEN}", value)
            shown.append(_hide_in_text(_hide_value(f"{name}{separator}{value}")))
        before = argument
    return tuple(shown)


def _hide_in_text(text: str) -> str:
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<kept>{HIDDEN}", text)
    return text


def _hide_value(argument: str) -> str:
    """Hide everything behind the first ``=`` that follows a name like a secret's."""
    names = argument.split("=")[:-1]
    for index, name in enumerate(names):
        if _SECRET.search(name):
            return "=".join([*names[: index + 1], HIDDEN])
    return argument
