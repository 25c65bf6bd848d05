"""Read a TOML file and know the line of every key and array element in it.

``tomllib`` decides what the file means; where a line is asked for, a scanner walks the same text
once more, only to note lines. The scanner meets nothing but text that ``tomllib`` has accepted, so
it needs no errors of its own and stays small. A library would not save it: tomlkit keeps comments
and blanks for writing a file back, but gives no positions (its issue 55 asks for them since 2019).
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from boardcluster.errors import SpecError

__all__ = [
    "KeyPath",
    "TomlDocument",
    "parse_toml",
    "path_from",
    "read_toml",
    "toml_key",
    "toml_text",
]

KeyPath = tuple[str | int, ...]
"""Keys and, for elements of arrays, indices from 0: ``("node", 1, "memory")``."""

_LARGEST_BYTES = 2**20

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
# A triple-quoted string may end in up to five quotes, of which the first two are its content.
_STRING = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*\'''', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_SYNTAX_ERROR = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)",
    re.DOTALL,
)


def toml_text(text: str) -> str:
    """Write text as a basic TOML string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def toml_key(key: str) -> str:
    """Write a key, in quotes where it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def path_from(folder: Path, written: str) -> Path:
    """Return the path that a file in a folder names; ``~`` and ``~USER`` are home folders."""
    with contextlib.suppress(RuntimeError):  # there is no such user
        return folder / Path(written).expanduser()
    return folder / written


@dataclass(frozen=True, kw_only=True)
class TomlDocument:
    """A TOML file that has been read."""

    path: Path
    """The file, as it was named to us."""
    data: Mapping[str, Any]
    """What ``tomllib`` makes of it."""
    text: str
    """What it says, with line ends of one character."""

    @cached_property
    def lines(self) -> Mapping[KeyPath, int]:
        """Line, from 1, of every table, key and array element; found when first asked for."""
        return _Scanner(self.text).scan()

    def line_of(self, path: KeyPath) -> int:
        """Return the line of a key path, from 1; of its nearest ancestor if it is not there."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


class _Scanner:
    """Notes the line of every key path of a text that is known to be valid TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._table_counts: dict[KeyPath, int] = {}
        self.lines: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._take(_BLANK)
        return self.lines

    def _line(self) -> int:
        return bisect_right(self._breaks, self._at) + 1

    def _peek(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise RuntimeError(f"TOML scanner and tomllib disagree at line {self._line()}")
        self._at = match.end()
        return match[0]

    def _key(self) -> list[str]:
        keys = []
        while True:
            self._take(_SPACE)
            key = self._take(_KEY)
            # tomllib knows the escapes; writing them down again here could only differ from it.
            keys.append(tomllib.loads(f"key = {key}")["key"] if key[0] in "\"'" else key)
            self._take(_SPACE)
            if not self._peek("."):
                return keys
            self._at += 1

    def _header(self) -> KeyPath:
        """Read ``[table]`` or ``[[array of tables]]`` and return the path it opens."""
        line = self._line()
        width = 2 if self._peek("[[") else 1
        self._at += width
        *parents, last = self._key()
        self._at += width
        path: KeyPath = ()
        for key in parents:
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self._table_counts:
                path = (*path, self._table_counts[path] - 1)
        path = (*path, last)
        if width == 2:
            self.lines.setdefault(path, line)
            index = self._table_counts.get(path, 0)
            self._table_counts[path] = index + 1
            path = (*path, index)
        # A table's own header says more than an earlier [table.child] that merely implied it.
        self.lines[path] = line
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at += 1  # the equals sign; _key has already taken the blanks before it
        self._take(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline_table(path)
        elif self._peek('"') or self._peek("'"):
            self._take(_STRING)
        else:
            self._take(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        self._take(_BLANK)
        while not self._peek("]"):
            self.lines[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1
            self._separator()
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        self._take(_BLANK)
        while not self._peek("}"):
            self._pair(path)
            self._separator()
        self._at += 1

    def _separator(self) -> None:
        self._take(_BLANK)
        if self._peek(","):
            self._at += 1
            self._take(_BLANK)


def parse_toml(text: str, *, path: Path) -> TomlDocument:
    """Parse the text of a TOML file; ``path`` is for messages.

    Raises:
        SpecError: it is not TOML; names file, line and column.
    """
    unified = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(unified)
        return TomlDocument(path=path, data=data, text=unified)
    except RecursionError as error:
        raise SpecError(
            f"{path}:1: values are nested too deeply to read", hint=f"simplify {path}"
        ) from error
    except ValueError as error:
        raise _syntax_error(unified, path, str(error)) from error


def _syntax_error(text: str, path: Path, problem: str) -> SpecError:
    match = _SYNTAX_ERROR.fullmatch(problem)
    if match is None:  # Python refuses to read such integers, and tomllib does not say where
        what = f"a number in it has too many digits ({problem.partition(':')[0]})"
        return SpecError(f"{path}: {what}", hint=f"shorten the longest number in {path}")
    if match["line"] is not None:
        line, column = int(match["line"]), int(match["column"])
    else:
        rows = text.split("\n")
        line, column = len(rows), len(rows[-1]) + 1
    hint = f"correct line {line} of {path}"
    if match["what"] == "Invalid value":
        hint += '; text needs double quotes, as in name = "demo"'
    return SpecError(f"{path}:{line}:{column}: not TOML: {match['what']}", hint=hint)


def read_toml(path: Path, *, create_hint: str) -> TomlDocument:
    """Read a TOML file.

    Args:
        path: the file; at most 1 MiB, UTF-8 with or without a byte order mark.
        create_hint: what to do when there is no such file, or it is empty; in the imperative.

    Raises:
        SpecError: the file is missing, not a regular file, unreadable, too large, not UTF-8, empty
            or not TOML.
    """
    try:
        if path.is_dir():
            raise SpecError(f"{path}: is a folder, not a file", hint="name the file inside it")
        if path.exists() and not path.is_file():
            raise SpecError(f"{path}: is not a regular file", hint="name a regular file")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise SpecError(f"{path}: no such file", hint=create_hint) from error
    except PermissionError as error:
        raise SpecError(
            f"{path}: may not be read by this user", hint=f"check the permissions of {path}"
        ) from error
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read: {error.strerror}", hint=f"check {path} and its disk"
        ) from error
    if len(content) > _LARGEST_BYTES:
        raise SpecError(
            f"{path}: is larger than {_LARGEST_BYTES} bytes, which no specification is",
            hint="name a specification file",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(
            f"{path}:{line}: is not UTF-8 text: byte 0x{content[error.start]:02x} at offset "
            f"{error.start}",
            hint=f"save {path} as UTF-8",
        ) from error
    if not text.strip():
        raise SpecError(f"{path}: is empty", hint=create_hint)
    return parse_toml(text, path=path)
