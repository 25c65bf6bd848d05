"""Find the command blocks of a Markdown file, so that tests can check and run what docs say.

A block that opens with ``` ```console ``` and nothing else is meant to be run as it stands: lines
that start with ``$ `` are commands, lines that start with ``> `` continue the command above, and
all others are output. A block whose info string goes on, like ``` ```console (as root) ```, needs
something that a test does not have; its commands are still checked for being well-formed.

A block that opens with ``` ```text (in PATH) ``` shows lines of a file that the commands wrote. In
what is shown ``...`` stands for anything, and what is shown comes in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Block", "console_blocks", "missing", "parts", "script", "shown_files"]

_FENCE = re.compile(r"(`{3,})([^`]*)")
_IN_FILE = re.compile(r"text \(in (\S+)\)")
_MARK = "@@ block at line "
_PROMPT = "$ "
_CONTINUATION = "> "


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One console block.

    Attributes:
        line: number of its opening line, from 1.
        needs: what a test lacks to run it; empty if it can be run.
        commands: its commands in order; a continued command has several lines.
        output: what the block shows as output, without a final newline.
    """

    line: int
    needs: str
    commands: tuple[str, ...]
    output: str


def console_blocks(markdown: str) -> tuple[Block, ...]:
    """Return the console blocks of a text in order.

    Raises:
        ValueError: a block is not closed, holds no command, or continues nothing.
    """
    return tuple(
        _block(line, info, rows)
        for line, info, rows in _fenced(markdown)
        if info.split(" ")[0] == "console"
    )


def shown_files(markdown: str) -> tuple[tuple[str, str], ...]:
    """Return the path and the text of each block that shows lines of a file, in order."""
    return tuple(
        (found[1], "\n".join(rows))
        for _, info, rows in _fenced(markdown)
        if (found := _IN_FILE.fullmatch(info))
    )


def _fenced(markdown: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the number of the first line, the info string and the rows of each fenced block."""
    rows: list[str] = []
    opened, fence, info = 0, "", ""
    for number, row in enumerate(markdown.splitlines(), start=1):
        found = _FENCE.fullmatch(row)
        if not fence:
            if found:
                opened, fence, info, rows = number, found[1], found[2].strip(), []
        elif found and found[1].startswith(fence) and not found[2].strip():
            yield opened, info, rows
            fence = ""
        else:
            rows.append(row)
    if fence:
        raise ValueError(f"line {opened}: the block is not closed")


def _block(line: int, info: str, rows: list[str]) -> Block:
    commands: list[str] = []
    output: list[str] = []
    in_command = False
    for row in rows:
        if row.startswith(_PROMPT):
            commands.append(row.removeprefix(_PROMPT))
            in_command = True
        elif row.startswith(_CONTINUATION):
            if not in_command:
                raise ValueError(f"line {line}: a continuation without a command: {row}")
            commands[-1] += "\n" + row.removeprefix(_CONTINUATION)
        else:
            output.append(row)
            in_command = False
    if not commands:
        raise ValueError(f"line {line}: a console block without a line that starts with '$ '")
    return Block(
        line=line,
        needs=info.removeprefix("console").strip(),
        commands=tuple(commands),
        output="\n".join(output),
    )


def script(blocks: Iterable[Block], *, marked: bool = False) -> str:
    """Return one shell script that runs all blocks that can be run, stopping at the first error.

    One script, because later blocks rely on what earlier ones set in the shell.

    Args:
        blocks: in their order.
        marked: print a line before each block, by which ``parts`` tells their outputs apart.
    """
    rows = ["set -eu"]
    for block in blocks:
        if not block.needs:
            rows += [f"echo '{_MARK}{block.line}'"] if marked else []
            rows += block.commands
    return "\n".join([*rows, ""])


def parts(printed: str) -> dict[int, str]:
    """Divide what a marked script printed: by the line of each block, what its commands printed."""
    found = re.split(rf"^{_MARK}(\d+)\n", printed, flags=re.MULTILINE)
    return dict(zip(map(int, found[1::2]), found[2::2], strict=True))


def missing(shown: str, printed: str) -> str:
    """Return the first line of what is shown that was not printed after the one before; or none.

    ``...`` stands for anything, and how wide blanks are does not matter.
    """
    rows = iter([" ".join(row.split()) for row in printed.splitlines()])
    for row in shown.splitlines():
        wanted = re.escape(" ".join(row.split())).replace(r"\.\.\.", ".*")
        if wanted not in ("", ".*") and not any(re.fullmatch(wanted, found) for found in rows):
            return row
    return ""
