r"""Regular expressions that mean the same in Java and in GNU grep.

An expression is a row of single characters, ``.`` and sets in brackets, each with at most one of
``*``, ``+``, ``?``, ``{m}``, ``{m,}`` and ``{m,n}``; ``^`` may begin it and ``$`` may end it.

Why no more: ``java.util.regex`` takes the first way to match that it finds, POSIX the longest, and
the two differ as soon as there is a choice between texts of several characters (``a|ab``, or
``a?(ab)?``). In a row of single characters there is none. Let a longer match that begins at the
same place use the items s1 < s2 < ... of the row, repeated ones counted singly, and Java's match
t1 < t2 < .... Java takes the earliest item that still leads to a match, so t is never ahead of s.
Where Java's match ends, all later items may be left out, and the longer match's next item is one of
them: Java would have taken it.
"""

from __future__ import annotations

import re

__all__ = ["ALLOWED", "is_pattern"]

ALLOWED = (
    "a row of printable ASCII characters, of . and of sets such as [A-Z0-9 ,./;_%+*@#=] or [^,], "
    "each followed by at most one of * + ? {m} {m,} {m,n} with numbers up to 255; ^ may begin it, "
    "$ may end it; at most 100 characters; it must not match the empty text. Not allowed: "
    r"\ | ( ) and anything else in which Java and POSIX differ"
)

_MOST_CHARACTERS = 100
_MOST_REPEATS = 255

_LITERAL = r"[A-Za-z0-9 !\"#%&',/:;<=>@_`~-]"
_RANGES = r"(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 ,./;_%+*@\#=])"
_ITEM = re.compile(
    rf"(?:{_LITERAL}|\.|\[\^?(?P<set>{_RANGES}+)\])"
    r"(?P<quantifier>[*+?]|\{(?P<least>[0-9]{1,3})(?P<comma>,(?P<most>[0-9]{1,3})?)?\})?"
)
_RANGE = re.compile(r"([A-Za-z0-9])-([A-Za-z0-9])")


def is_pattern(text: str) -> bool:
    """Whether a text is an expression that means the same to both."""
    if len(text) > _MOST_CHARACTERS or text != text.strip():
        return False
    body = text.removeprefix("^").removesuffix("$")
    position = 0
    needs_a_character = False
    while position < len(body):
        item = _ITEM.match(body, position)
        if item is None or not _has_order(item["set"] or ""):
            return False
        least = _least(item)
        if least is None:
            return False
        needs_a_character |= least > 0
        position = item.end()
    return needs_a_character


def _has_order(content: str) -> bool:
    """Whether every range of a set goes upwards within digits, upper case or lower case."""
    return all(
        first <= last and _kind(first) == _kind(last) for first, last in _RANGE.findall(content)
    )


def _kind(character: str) -> tuple[bool, bool]:
    return character.isdigit(), character.isupper()


def _least(item: re.Match[str]) -> int | None:
    """Return how often an item must occur; None if its quantifier makes no sense."""
    quantifier = item["quantifier"] or ""
    if not item["least"]:
        return 0 if quantifier in ("*", "?") else 1
    least = int(item["least"])
    most = int(item["most"] or (_MOST_REPEATS if item["comma"] else least))
    return least if max(1, least) <= most <= _MOST_REPEATS else None
