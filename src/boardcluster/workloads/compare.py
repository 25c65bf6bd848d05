"""Outputs that are sets of lines in no order: brought into one order, and compared, streaming.

GNU sort does the ordering, in the order of bytes and with bounded memory. Lines that occur twice
stay twice, so equal sorted files mean equal multisets of lines.

Lines of the form ``word TAB count`` may be ordered by their words (``by_word``), which is another
order than that of whole lines where a word continues with a byte below the tab.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.fetch.cache import require_space, sha256_of
from boardcluster.remote.gate import pipe

__all__ = ["LineDifference", "compare_lines", "count_lines", "sort_lines", "sort_stage"]

_SORT_MEMORY = "64M"
_SHOWN_LINES = 5
_SHOWN_CHARACTERS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDifference:
    """How two multisets of lines differ, in a bounded size."""

    missing: int
    """Number of expected lines that are not there."""
    extra: int
    """Number of lines that are there and are not expected."""
    first: tuple[str, ...]
    """The first few of both in byte order, in words."""

    def __str__(self) -> str:
        total = f"{self.missing} lines are missing, {self.extra} are not expected"
        return "\n  ".join([f"{total}; the first in byte order:", *self.first])


def sort_stage(work: Path, *, by_word: bool = False, listed: bool = False) -> list[str]:
    """Return the command that sorts lines by their bytes.

    Args:
        work: existing folder for intermediate files.
        by_word: whether what precedes the first tab comes first.
        listed: whether standard input names the files to sort, each ended by a zero byte, and is
            not the text itself. So there may be more files than a command line holds.
    """
    parallel = min(4, os.cpu_count() or 1)
    command = ["env", "LC_ALL=C", "sort", "-S", _SORT_MEMORY, "-T", str(work.absolute())]
    command += [f"--parallel={parallel}", *(("-t", "\t", "-k", "1,1") if by_word else ())]
    return [*command, "--files0-from=-"] if listed else command


def sort_lines(sources: Sequence[Path], *, target: Path, work: Path, by_word: bool = False) -> None:
    """Write the lines of several files into one, in the order of their bytes.

    Args:
        sources: the files; none makes an empty result.
        target: the file to write.
        work: existing folder for intermediate files, with room for all sources once more.
        by_word: as of `sort_stage`.

    Raises:
        CapacityError: the disk cannot hold intermediate files and result.
        RemoteError: sort failed.
    """
    if not sources:
        target.write_bytes(b"")  # sort takes an empty list for a mistake
        return
    size_bytes = sum(source.stat().st_size for source in sources)
    require_space(work, need_bytes=2 * size_bytes, purpose=f"sorting {target.name}")
    names = target.with_name(f"{target.name}.names")
    names.write_bytes(b"".join(os.fsencode(source.absolute()) + b"\0" for source in sources))
    try:
        stage = sort_stage(work, by_word=by_word, listed=True)
        pipe([stage], source=names, target=target)
    finally:
        names.unlink()


def compare_lines(expected: Path, actual: Path, *, by_word: bool = False) -> LineDifference | None:
    """Compare two sorted files; None if they hold the same lines equally often.

    Args:
        expected: what should be there.
        actual: what is there.
        by_word: whether both were sorted that way.

    Raises:
        OSError: a file cannot be read.
    """
    same_size = expected.stat().st_size == actual.stat().st_size
    if same_size and sha256_of(expected) == sha256_of(actual):
        return None  # the usual case, at the speed of the disk
    missing = extra = 0
    first: list[str] = []
    for is_missing, line in _differences(expected, actual, by_word=by_word):
        missing += is_missing
        extra += not is_missing
        if len(first) < _SHOWN_LINES:
            first.append(f"{'missing' if is_missing else 'not expected'}: {_shown(line)}")
    if not first:
        return None
    return LineDifference(missing=missing, extra=extra, first=tuple(first))


def count_lines(path: Path) -> int:
    """Return the number of lines of a file."""
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


def _differences(expected: Path, actual: Path, *, by_word: bool) -> Iterator[tuple[bool, bytes]]:
    """Walk through both files at once, as a merge does; yields (is missing, line)."""

    def place(line: bytes) -> tuple[bytes, bytes]:
        text = _text(line)
        return (text.partition(b"\t")[0] if by_word else b"", text)

    with expected.open("rb") as left, actual.open("rb") as right:
        wanted, had = next(left, None), next(right, None)
        while wanted is not None or had is not None:
            if wanted == had:
                wanted, had = next(left, None), next(right, None)
            elif had is None or (wanted is not None and place(wanted) < place(had)):
                assert wanted is not None  # noqa: S101  the loop's condition says so
                yield True, wanted
                wanted = next(left, None)
            else:
                yield False, had
                had = next(right, None)


def _text(line: bytes) -> bytes:
    """Return a line as sort sees it: its end is no part of it."""
    return line.removesuffix(b"\n")


def _shown(line: bytes) -> str:
    shown = _text(line).decode(errors="backslashreplace")
    if len(shown) > _SHOWN_CHARACTERS:
        shown = f"{shown[:_SHOWN_CHARACTERS]}... ({len(line) - 1} bytes)"
    return repr(shown)
