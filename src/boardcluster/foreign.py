"""Text of others is text: never markup, a formula or a command to a terminal, and never endless.

Names, reasons, log lines and answers come from nodes, engines, files and users. Whoever shows,
writes or reads them does it through here.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

__all__ = ["bounded_lines", "json_text", "start_of", "visible", "write_csv"]

_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\r(?!\n)"
)
"""What terminals and editors obey: controls, the direction of text; and bytes that are no text."""

_FORMULA = re.compile(r"[=+@\t\r\n\uff0b\uff0d\uff1d\uff20-]")
"""With these a spreadsheet begins a formula (OWASP, "CSV Injection")."""

_LINE_CHARACTERS = 1 << 16
_FILE_BYTES = 64 << 20


def visible(text: str) -> str:
    r"""Return text with what a terminal would obey written out, as ``\x1b``.

    Line ends and tabs stay.
    """
    return _OBEYED.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def json_text(value: object, **options: Any) -> str:
    """Return JSON that is readable in every script, and that no terminal obeys.

    Args:
        value: what ``json.dumps`` takes.
        options: its options.
    """
    written = json.dumps(value, ensure_ascii=False, **options)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def write_csv(stream: TextIO, rows: Iterable[Iterable[object]]) -> int:
    """Write rows as CSV; return how many.

    Text that a spreadsheet would take for a formula gets an apostrophe before it; numbers, also
    those that are text already, stay as they are.
    """
    writer = csv.writer(stream, lineterminator="\n")
    count = 0
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        count += 1
    return count


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if _FORMULA.match(text) and text != "-" and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0] in "+-"


def bounded_lines(stream: TextIO, *, characters: int = _LINE_CHARACTERS) -> Iterator[str]:
    """Yield the lines of a file, each cut at so many characters: a line may be a gigabyte."""
    while line := stream.readline(characters):
        yield line
        while len(line) == characters and not line.endswith("\n"):
            line = stream.readline(characters)


def start_of(path: Path, *, size_bytes: int = _FILE_BYTES) -> str:
    """Return the first so many bytes of a file as text; undecodable bytes become U+FFFD.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(size_bytes).decode(errors="replace")
