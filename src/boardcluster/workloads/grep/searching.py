"""Search a text with GNU grep, independently of the engines: streaming, in bounded memory.

Hadoop's reader of lines, which Spark uses too, ends a line at LF, CR or CR LF and drops a byte
order mark at the start of a file, so both are done here first. Java's ``.`` and ``$`` also stop at
three Unicode line ends that grep does not know; a text that holds one is refused.
"""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO

from boardcluster.errors import InputError, RemoteError, UsageError
from boardcluster.fetch.cache import require_space
from boardcluster.remote.gate import pipe, run_logged, tail_text
from boardcluster.waiting import DATA_SECONDS_MOST
from boardcluster.workloads.compare import sort_lines, sort_stage

__all__ = ["GrepOutput", "search"]

_CHUNK_BYTES = 1 << 20
_UNICODE_ENDS = {b"\xc2\x85": "U+0085", b"\xe2\x80\xa8": "U+2028", b"\xe2\x80\xa9": "U+2029"}
_OVERLAP_BYTES = 2
_NOTHING_MATCHED = 1


class GrepOutput(StrEnum):
    """What an engine's Grep leaves behind."""

    COUNTS = "counts"
    LINES = "lines"


def search(source: Path, *, pattern: str, form: GrepOutput, target: Path) -> None:
    """Write what an expression finds in a text, one line each, in the order of bytes.

    Args:
        source: the text, UTF-8.
        pattern: see `boardcluster.workloads.grep.pattern`.
        form: COUNTS writes ``count TAB text`` for each text found, LINES every matching line.
        target: the file to write; appears only when it is whole. Its folder also holds the
            intermediate files, up to four times the source.

    Raises:
        UsageError: nothing in the text matches.
        InputError: the source cannot be read, or holds a line end that only Java knows.
        CapacityError: the disk cannot hold intermediate files and result.
        RemoteError: a tool failed.
    """
    folder = target.parent
    try:
        size_bytes = source.stat().st_size
        marked, has_cr = _examine(source)
    except OSError as error:
        raise InputError(
            f"cannot read {source}: {error.strerror}", hint="prepare the input again"
        ) from error
    require_space(folder, need_bytes=4 * size_bytes, purpose=f"searching {source.name}")
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=folder) as scratch:
        work = Path(scratch)
        lines = _as_hadoop_reads(source, work, marked=marked, has_cr=has_cr)
        found = _grep(lines, pattern, form, work)
        part = work / "sorted"
        if form is GrepOutput.LINES:
            sort_lines([found], target=part, work=work)
        else:
            _count(found, target=part, work=work)
        part.replace(target)


def _examine(source: Path) -> tuple[bool, bool]:
    """Return whether a text begins with a byte order mark, and whether it holds a CR."""
    has_cr = False
    with source.open("rb") as stream:
        marked = stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
        stream.seek(0)
        for chunk in _overlapping(stream):
            has_cr = has_cr or b"\r" in chunk
            if chunk.isascii():
                continue
            name = next((name for end, name in _UNICODE_ENDS.items() if end in chunk), "")
            if name:
                raise InputError(
                    f"{source} holds {name}, at which Java ends a line and grep does not",
                    hint="replace that character, or choose another input",
                )
    return marked, has_cr


def _overlapping(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in pieces, each with the last bytes of the one before."""
    kept = b""
    while piece := stream.read(_CHUNK_BYTES):
        yield kept + piece
        kept = piece[-_OVERLAP_BYTES:]


def _as_hadoop_reads(source: Path, work: Path, *, marked: bool, has_cr: bool) -> Path:
    """Return a file whose lines, divided at LF, are those of Hadoop, but for empty ones."""
    if not marked and not has_cr:
        return source
    stages = [*([["tail", "-c", "+4"]] if marked else []), ["tr", r"\r", r"\n"]]
    target = work / "lines"
    pipe(stages, source=source, target=target)
    return target


def _grep(lines: Path, pattern: str, form: GrepOutput, work: Path) -> Path:
    found, complaints = work / "found", work / "complaints"
    options = "-haE" if form is GrepOutput.LINES else "-haEo"
    command = ["grep", options, "-e", pattern, "--", str(lines.absolute())]
    ended = run_logged(
        command,
        stdout=found,
        stderr=complaints,
        env={"LC_ALL": "C.UTF-8"},
        timeout_seconds=DATA_SECONDS_MOST,
    )
    if ended.returncode == _NOTHING_MATCHED:
        raise UsageError(
            f"grep.pattern = {pattern!r} matches nothing in the text; an empty output proves "
            "nothing",
            hint="choose a pattern that occurs, or another input",
        )
    if ended.returncode != 0:
        raise RemoteError(
            f"grep ended with status {ended.returncode}: {tail_text(complaints)}",
            hint="run `boardcluster doctor`",
        )
    return found


def _count(found: Path, *, target: Path, work: Path) -> None:
    """Turn a list of texts into ``count TAB text``, sorted as whole lines."""
    stages = [
        sort_stage(work),
        ["env", "LC_ALL=C", "uniq", "-c"],
        ["env", "LC_ALL=C", "sed", "-E", r"s/^ *([0-9]+) /\1\t/"],
        sort_stage(work),
    ]
    pipe(stages, source=found, target=target)
