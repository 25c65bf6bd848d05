"""Find the command blocks of a Markdown file, so that tests can check and run what docs say.

A block that opens with ``` ```console ``` and nothing else is meant to be run as it stands: lines
that start with ``$ `` are commands, lines that start with ``> `` continue the command above, and
all others are output. A block whose info string goes on, like ``` ```console (as root) ```, needs
something that a test does not have; its commands are still checked for being well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Block", "console_blocks", "script"]

_FENCE = re.compile(r"(`{3,})([^`]*)")
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
    blocks: list[Block] = []
    rows: list[str] = []
    opened, fence, info = 0, "", ""
    for number, row in enumerate(markdown.splitlines(), start=1):
        found = _FENCE.fullmatch(row)
        if not fence:
            if found:
                opened, fence, info, rows = number, found[1], found[2].strip(), []
        elif found and found[1].startswith(fence) and not found[2].strip():
            if info.split(" ")[0] == "console":
                blocks.append(_block(opened, info, rows))
            fence = ""
        else:
            rows.append(row)
    if fence:
        raise ValueError(f"line {opened}: the block is not closed")
    return tuple(blocks)


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


def script(blocks: Iterable[Block]) -> str:
    """Return one shell script that runs all blocks that can be run, stopping at the first error.

    One script, because later blocks rely on what earlier ones set in the shell.
    """
    commands = [command for block in blocks if not block.needs for command in block.commands]
    return "\n".join(["set -eu", *commands, ""])
