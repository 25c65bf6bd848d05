"""Count words independently of the engines, and compare: streaming, in bounded memory.

The tools of GNU coreutils do the counting, so that nothing is shared with what is verified. A word
is what Hadoop's WordCount takes for one: the text is divided by ``java.util.StringTokenizer`` with
its default delimiters, space, tab, newline, carriage return and form feed (not the vertical tab,
and no Unicode space), and empty tokens do not exist. The line reader of Hadoop, which Spark uses
too, drops a UTF-8 byte order mark at the start of a file, so it is dropped here.

The canonical form of a word count is one line ``word TAB count`` per word, in the byte order of the
words. Equal counts have equal canonical files.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from boardcluster.errors import InputError, VerificationError
from boardcluster.fetch.cache import require_space
from boardcluster.remote.gate import pipe

__all__ = [
    "Counted",
    "Deviation",
    "Difference",
    "Kind",
    "canonical_output",
    "compare",
    "count_words",
]

_SORT_MEMORY = "64M"
_SHOWN_DEVIATIONS = 5
_SHOWN_CHARACTERS = 60
_CHUNK_BYTES = 1 << 20
_COUNT = re.compile(rb"[1-9][0-9]*")
# The order of bytes, whatever the user's language.
_BYTE_ORDER = {"LC_ALL": "C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A word count in canonical form.

    Attributes:
        path: the canonical file.
        sha256: its digest, hexadecimal.
        records: number of its lines; for a right count that is the number of distinct words.
        words: sum of its counts.
    """

    path: Path
    sha256: str
    records: int
    words: int


class Kind(StrEnum):
    """How a word of the output deviates."""

    MISSING = "missing"
    EXTRA = "extra"
    WRONG_COUNT = "wrong count"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One word that is not as expected.

    Attributes:
        kind: how it deviates.
        word: the word.
        expected: its right count; 0 if it must not be there.
        actual: its count in the output, of this occurrence; 0 if it is not there.
    """

    kind: Kind
    word: bytes
    expected: int
    actual: int

    def __str__(self) -> str:
        shown = self.word.decode(errors="backslashreplace")
        if len(shown) > _SHOWN_CHARACTERS:
            shown = f"{shown[:_SHOWN_CHARACTERS]}... ({len(self.word)} bytes)"
        return f"{self.kind} {shown!r}: expected {self.expected}, found {self.actual}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All that is wrong with an output, in a bounded size.

    Attributes:
        deviations: number of deviating words per kind; only kinds that occur.
        first: the first few deviations in byte order.
    """

    deviations: dict[Kind, int]
    first: tuple[Deviation, ...]

    def __str__(self) -> str:
        totals = ", ".join(f"{number} {kind}" for kind, number in self.deviations.items())
        return "\n  ".join([f"{totals}; first in byte order:", *(str(one) for one in self.first)])


def count_words(
    source: Path, *, target: Path, work: Path, timeout_seconds: float = 3600.0
) -> Counted:
    """Count the words of a text file.

    Args:
        source: the text.
        target: the canonical file to write; appears only when it is whole.
        work: existing folder for intermediate files, with room for two and a half times the source.
        timeout_seconds: longest duration.

    Raises:
        InputError: the source cannot be read.
        CapacityError: the disks cannot hold intermediate files and result.
        RemoteError: a tool failed.
    """
    try:
        with source.open("rb") as stream:
            marked = stream.read(3) == codecs.BOM_UTF8
        size_bytes = source.stat().st_size
    except OSError as error:
        raise InputError(
            f"cannot read {source}: {error.strerror}", hint="prepare the input again"
        ) from error
    _require_space(size_bytes, work=work, target=target)
    stages = [
        *([["tail", "-c", "+4"]] if marked else []),
        ["tr", "-s", r" \t\n\r\f", r"\n"],
        ["sort", *_sort_options(work)],
        ["uniq", "-c"],
    ]
    with (
        _intermediate(work, target.name) as counted,
        _intermediate(target.parent, target.name) as part,
    ):
        pipe(
            stages, source=source, target=counted, env=_BYTE_ORDER, timeout_seconds=timeout_seconds
        )
        result = _turned(counted, part, target=target)
        part.replace(target)
    return result


def canonical_output(
    parts: Sequence[Path], *, target: Path, work: Path, timeout_seconds: float = 3600.0
) -> Counted:
    """Bring the part files an engine left into canonical form; words that occur twice stay twice.

    Args:
        parts: the part files, ``word TAB count`` per line in any order; some may be empty.
        target: the canonical file to write; appears only when it is whole.
        work: existing folder for intermediate files, with room for two and a half times all parts.
        timeout_seconds: longest duration.

    Raises:
        VerificationError: there are no parts, a part is missing, or a line is not of this form.
        CapacityError: the disks cannot hold intermediate files and result.
        RemoteError: a tool failed.
    """
    absent = [str(part) for part in parts if not part.is_file()]
    if absent or not parts:
        raise VerificationError(
            f"the job left no output: {', '.join(absent) or 'no part files'}",
            hint="look at the job's log",
        )
    _require_space(sum(part.stat().st_size for part in parts), work=work, target=target)
    # By the word alone: "a<TAB>1" and "a<0x01><TAB>1" are in another order as whole lines.
    command = ["sort", *_sort_options(work), "-t", "\t", "-k", "1,1", "--"]
    command += [str(part.absolute()) for part in parts]
    with _intermediate(target.parent, target.name) as sorted_parts:
        pipe(
            [command],
            source=Path(os.devnull),
            target=sorted_parts,
            env=_BYTE_ORDER,
            timeout_seconds=timeout_seconds,
        )
        result = _summed(sorted_parts, target=target)
        sorted_parts.replace(target)
    return result


def compare(expected: Path, actual: Path) -> Difference | None:
    """Compare two canonical files; None if they are the same.

    Args:
        expected: the right count, from `count_words`.
        actual: the count to judge, from `canonical_output`.

    Raises:
        VerificationError: a file is not in canonical form.
        OSError: a file cannot be read.
    """
    if _same_bytes(expected, actual):
        return None
    totals: dict[Kind, int] = {}
    first: list[Deviation] = []
    for deviation in _deviations(expected, actual):
        totals[deviation.kind] = totals.get(deviation.kind, 0) + 1
        if len(first) < _SHOWN_DEVIATIONS:
            first.append(deviation)
    return Difference(deviations=totals, first=tuple(first)) if first else None


def _require_space(size_bytes: int, *, work: Path, target: Path) -> None:
    """Refuse what cannot fit when no word repeats, the worst case.

    Two copies exist at a time: sort's runs with the output of uniq, which adds 8 bytes per word,
    then that output with the result.
    """
    for folder in (work, target.parent):
        require_space(folder, need_bytes=5 * size_bytes // 2, purpose=f"making {target.name}")


def _sort_options(work: Path) -> list[str]:
    parallel = min(4, os.cpu_count() or 1)
    return ["-S", _SORT_MEMORY, "-T", str(work.absolute()), f"--parallel={parallel}"]


@contextlib.contextmanager
def _intermediate(folder: Path, name: str) -> Iterator[Path]:
    """Yield a name for a file that is gone afterwards, unless it was moved."""
    handle, path = tempfile.mkstemp(prefix=f"{name}.", suffix=".part", dir=folder)
    os.close(handle)
    try:
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)


def _blocks(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield lines in lists of about a megabyte: bounded, yet few calls per line."""
    while lines := stream.readlines(_CHUNK_BYTES):
        yield lines


def _turned(counted: Path, part: Path, *, target: Path) -> Counted:
    """Write the lines of ``uniq -c``, blanks, count, blank, word, in canonical form."""
    digest = hashlib.sha256()
    records = words = 0
    with counted.open("rb") as source, part.open("wb") as sink:
        for lines in _blocks(source):
            pairs = [line.lstrip(b" ").rstrip(b"\n").split(b" ", 1) for line in lines]
            # A text that starts with a delimiter has an empty first line after tr: not a word.
            pairs = [pair for pair in pairs if pair[1]]
            block = b"".join([b"%b\t%b\n" % (word, count) for count, word in pairs])
            digest.update(block)
            sink.write(block)
            records += len(pairs)
            words += sum([int(count) for count, _ in pairs])
    return Counted(path=target, sha256=digest.hexdigest(), records=records, words=words)


def _summed(part: Path, *, target: Path) -> Counted:
    """Check every line of a canonical file and add up."""
    digest = hashlib.sha256()
    records = words = 0
    with part.open("rb") as stream:
        for lines in _blocks(stream):
            for line in lines:
                records += 1
                words += _parsed(line, path=target, number=records)[1]
            digest.update(b"".join(lines))
    return Counted(path=target, sha256=digest.hexdigest(), records=records, words=words)


def _parsed(line: bytes, *, path: Path, number: int) -> tuple[bytes, int]:
    word, _, count = line.removesuffix(b"\n").partition(b"\t")
    if _COUNT.fullmatch(count) is None:
        shown = line[:_SHOWN_CHARACTERS].decode(errors="backslashreplace")
        raise VerificationError(
            f"line {number} of {path.name} is not a word, a tab and a count: {shown!r}",
            hint="look at the engine's logs in the attempt's folder",
        )
    return word, int(count)


def _records(path: Path) -> Iterator[tuple[bytes, int]]:
    previous = b""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            word, count = _parsed(line, path=path, number=number)
            if number > 1 and word < previous:
                raise VerificationError(
                    f"line {number} of {path.name} is not in byte order",
                    hint="compare only files made by count_words and canonical_output",
                )
            previous = word
            yield word, count


def _same_bytes(expected: Path, actual: Path) -> bool:
    """Decide the usual case at the speed of the disk."""
    if expected.stat().st_size != actual.stat().st_size:
        return False
    with expected.open("rb") as left, actual.open("rb") as right:
        while chunk := left.read(_CHUNK_BYTES):
            if chunk != right.read(_CHUNK_BYTES):
                return False
    return True


def _deviations(expected: Path, actual: Path) -> Iterator[Deviation]:
    """Walk through both files at once, as a merge does."""
    right = _records(expected)
    wanted = next(right, None)
    previous: tuple[bytes, int] | None = None
    for word, count in _records(actual):
        while wanted is not None and wanted[0] < word:
            yield Deviation(kind=Kind.MISSING, word=wanted[0], expected=wanted[1], actual=0)
            wanted = next(right, None)
        if previous is not None and previous[0] == word:
            yield Deviation(kind=Kind.DUPLICATE, word=word, expected=previous[1], actual=count)
        elif wanted is None or wanted[0] != word:
            yield Deviation(kind=Kind.EXTRA, word=word, expected=0, actual=count)
            previous = (word, 0)
        else:
            if wanted[1] != count:
                yield Deviation(kind=Kind.WRONG_COUNT, word=word, expected=wanted[1], actual=count)
            previous = wanted
            wanted = next(right, None)
    while wanted is not None:
        yield Deviation(kind=Kind.MISSING, word=wanted[0], expected=wanted[1], actual=0)
        wanted = next(right, None)
