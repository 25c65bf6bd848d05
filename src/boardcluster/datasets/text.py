"""Prepare any text file as input: checked as UTF-8 text, grown or cropped to a size, cached.

The papers bring their input to a size by "simple file cropping or appending". So does this module:
the file's content, header line included, is repeated unchanged and the result is cut after its last
complete line. With a limit of S bytes the result has more than S - L and at most S bytes, where L
is the length of the longest line with its newline: the next line, at most L long, did not fit. The
one liberty taken: a file without a final newline gets one before it is repeated, because otherwise
its last and first line would merge into a record that never was.

Everything streams: memory does not depend on the size of the file, nor of its lines.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from boardcluster.errors import HostError, InputError, InstallError
from boardcluster.fetch.cache import (
    Progress,
    Stamp,
    held_stamp,
    hold_lock,
    install_file,
    make_folder,
    no_progress,
    require_space,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
    writing,
)
from boardcluster.records import Dataset
from boardcluster.units import format_bytes
from boardcluster.waiting import DATA_SECONDS_MOST

__all__ = ["check_text", "from_file", "size_label", "whole_size_bytes"]

_PART = ".part"
"""Ends the name of a text while it is being written."""
_CHUNK_BYTES = 1 << 20
_BZIP2_MAGIC = re.compile(rb"BZh[1-9]1AY&SY")
_CONTAINERS = {
    b"\x1f\x8b": "a gzip file; unpack it with gunzip",
    b"PK\x03\x04": "a zip file; unpack it with unzip",
    b"\xfd7zXZ\x00": "an xz file; unpack it with unxz",
    b"(\xb5/\xfd": "a Zstandard file; unpack it with unzstd",
    b"\xff\xfe": "UTF-16 text; convert it with iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "UTF-16 text; convert it with iconv -f UTF-16 -t UTF-8",
}


def from_file(
    path: Path,
    *,
    size_bytes: int | None,
    cache: Path,
    name: str | None = None,
    origin: str | None = None,
    progress: Progress = no_progress,
) -> Dataset:
    """Prepare a text file; a second call with the same content and size does nothing.

    Only what ends up in the result is checked to be text.

    Args:
        path: plain or bzip2-compressed text in UTF-8.
        size_bytes: upper limit of the result, reached to within one line; None keeps the file as
            it is (unpacked).
        cache: folder for prepared data; created if missing.
        name: name for people; the file's name if None. The size is added to it.
        origin: where the file came from, a clause without full stop; its name if None.
        progress: called for every piece read or written.

    Raises:
        InputError: the file is missing, empty, unreadable, damaged or not text, or the size is
            too small for its first line.
        CapacityError: the result does not fit on the disk.
        HostError: the cache cannot be written.
    """
    if size_bytes is not None and size_bytes <= 0:
        raise InputError(f"not a size: {size_bytes} bytes", hint="give a size above 0")
    path = path.absolute()
    status = _checked_status(path)
    source_sha256 = _source_sha256(path, status, cache=cache, progress=progress)
    target = cache / f"{source_sha256[:16]}-{size_bytes or 'whole'}.txt"
    lock, purpose = _lock_of(target), f"preparing {target.name}"
    _delete_unfinished(cache)
    with hold_lock(lock, purpose=purpose, timeout_seconds=DATA_SECONDS_MOST):
        stamp = verified_stamp(target, sidecar=sidecar_of(target))
        if stamp is None:
            need_bytes = status.st_size if size_bytes is None else size_bytes
            require_space(cache, need_bytes=need_bytes, purpose=f"preparing {path.name}")
            stamp = _prepare(path, status, target=target, limit=size_bytes, progress=progress)
    plain_name = Path(path.name.removesuffix(".bz2")).stem
    stem = name or re.sub(r"[^A-Za-z0-9._-]+", "-", plain_name)
    return Dataset(
        name=f"{stem}-{size_label(size_bytes or stamp.size_bytes)}",
        path=target,
        size_bytes=stamp.size_bytes,
        sha256=stamp.sha256,
        source=f"{origin or f'the file {path.name}'}, {stamp.about.get('growth', 'unchanged')}",
    )


def _lock_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.lock")


def _part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}{_PART}")


def _delete_unfinished(cache: Path) -> None:
    """Delete texts that killed processes left unfinished: they may take the room of this one."""
    for part in cache.glob(f"*.txt{_PART}"):
        target = part.with_name(part.name.removesuffix(_PART))
        purpose = f"deleting {part.name}"
        with (
            contextlib.suppress(InstallError, HostError),  # somebody prepares it, or it is theirs
            hold_lock(_lock_of(target), purpose=purpose, timeout_seconds=0),
            writing(part),
        ):
            part.unlink(missing_ok=True)


def whole_size_bytes(path: Path, *, cache: Path, progress: Progress = no_progress) -> int:
    """Return the size at which nothing of a text is cut: with a newline behind its last line.

    Raises:
        InputError: the file is missing, empty, unreadable, damaged or not text.
        CapacityError: what is unpacked does not fit on the disk.
        HostError: the cache cannot be written.
    """
    whole = from_file(path, size_bytes=None, cache=cache, progress=progress)
    with whole.path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return whole.size_bytes + (stream.read(1) != b"\n")


def size_label(size_bytes: int) -> str:
    """Write a size exactly and shortly: ``256MB``, ``64MiB``, or in bytes.

    Sizes that are no whole number of a unit are rounded to MB from 10 MB on.
    """
    for unit, factor in (("GB", 10**9), ("GiB", 1 << 30), ("MB", 10**6), ("MiB", 1 << 20)):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return f"{size_bytes / 10**6:.0f}MB" if size_bytes >= 10**7 else f"{size_bytes}B"


def check_text(path: Path) -> None:
    """Refuse a text that cannot be read, before anything else is done; its content is not read.

    Raises:
        InputError: it is missing, no file, empty or unreadable.
    """
    _checked_status(path)
    with _reading(path), path.open("rb") as stream:
        stream.read(1)


def _checked_status(path: Path) -> os.stat_result:
    with _reading(path):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder", hint="choose a text file inside it")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file", hint="copy its content into a file first")
    if status.st_size == 0:
        raise InputError(f"{path} is empty", hint="check how the file was made, or name another")
    return status


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say what is wrong with a source file that cannot be opened or read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"no such file: {path}", hint="check the path; it is relative to where you are"
        ) from error
    except PermissionError as error:
        raise InputError(f"no permission to read {path}", hint=f"run: chmod u+r {path}") from error
    except EOFError as error:
        raise InputError(
            f"{path} is a truncated bzip2 file", hint="fetch it again; check with bzip2 --test"
        ) from error
    except OSError as error:
        if error.filename is None and error.errno is None:  # how the bz2 module reports bad data
            raise InputError(
                f"{path} is not a valid bzip2 file: {error}",
                hint="fetch it again; check with bzip2 --test",
            ) from error
        raise InputError(
            f"cannot read {path}: {error.strerror}", hint="check the disk that holds the file"
        ) from error


def _source_sha256(path: Path, status: os.stat_result, *, cache: Path, progress: Progress) -> str:
    """Return the digest of the source, from its sidecar in the cache while that still holds."""
    make_folder(cache / "sources", shared=True)
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    sidecar = cache / "sources" / f"{key}.json"
    with _reading(path):
        stamp = held_stamp(path, sidecar=sidecar)
        sha256 = stamp.sha256 if stamp else sha256_of(path, progress=progress)
    if stamp is None:
        _refuse_changed(path, status)
        write_stamp(path, sidecar=sidecar, sha256=sha256)
    return sha256


def _refuse_changed(path: Path, before: os.stat_result) -> None:
    """Refuse a source that somebody writes to; its digest would belong to no content."""
    with _reading(path):
        after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise InputError(
            f"{path} changed while it was read", hint="try again when nothing is writing to it"
        )


def _prepare(
    path: Path, status: os.stat_result, *, target: Path, limit: int | None, progress: Progress
) -> Stamp:
    """Build the result beside its final place and move it there when it is whole."""
    part = _part_of(target)
    try:
        with writing(target), part.open("w+b") as stream:
            growing = _Growing(
                stream, path=path, folder=target.parent, limit=limit, progress=progress
            )
            growth = growing.run()
        _refuse_changed(path, status)
        return install_file(part, target=target, sha256=growing.sha256, about={"growth": growth})
    finally:
        part.unlink(missing_ok=True)


class _Growing:
    """The output while it is being written, hashed on the way and cut after a complete line."""

    def __init__(
        self,
        stream: IO[bytes],
        *,
        path: Path,
        folder: Path,
        limit: int | None,
        progress: Progress,
    ) -> None:
        self._stream = stream
        self._path = path
        self._folder = folder
        self._limit = limit
        self._progress = progress
        self._written_bytes = 0
        self._digest = hashlib.sha256()
        # Where the last complete line ends, and the digest up to there: cutting needs no re-read.
        self._line_end_bytes = 0
        self._line_end_digest = self._digest.copy()

    @property
    def sha256(self) -> str:
        """Digest of what was written, hexadecimal."""
        return self._digest.hexdigest()

    def run(self) -> str:
        """Write everything; return in words how the result came from the source."""
        total_bytes = self._limit or 0
        for chunk in _checked_text(self._path):
            if self._limit is None:  # how large it is unpacked is not known beforehand
                done = f"{format_bytes(self._written_bytes)} of it are unpacked"
                purpose = f"preparing {self._path.name}, whose size is not known ({done}),"
                require_space(self._folder, need_bytes=len(chunk), purpose=purpose)
            if not self._add(chunk, total_bytes=total_bytes):
                self._cut()
                return "cropped at a line end"
        if self._written_bytes == 0:
            raise InputError(
                f"{self._path} is empty after unpacking", hint="check how the file was made"
            )
        if self._limit is None:
            return "unchanged"
        if self._line_end_bytes != self._written_bytes:
            self._add(b"\n", total_bytes=total_bytes)
        unit_bytes = self._written_bytes
        self._repeat(unit_bytes, total_bytes=total_bytes)
        self._cut()
        copies = self._written_bytes / unit_bytes
        if copies > 1:
            return f"repeated {copies:.2f} times and cropped at a line end"
        return "whole" if copies == 1 else "cropped at a line end"

    def _add(self, chunk: bytes, *, total_bytes: int) -> bool:
        """Append what still fits; return whether that is all of it."""
        given_bytes = len(chunk)
        if self._limit is not None:
            chunk = chunk[: self._limit - self._written_bytes]
        self._stream.write(chunk)
        complete = chunk.rfind(b"\n") + 1
        if complete:
            self._digest.update(memoryview(chunk)[:complete])
            self._line_end_bytes = self._written_bytes + complete
            self._line_end_digest = self._digest.copy()
        self._digest.update(memoryview(chunk)[complete:])
        self._written_bytes += len(chunk)
        self._progress(f"preparing {self._path.name}", self._written_bytes, total_bytes)
        return len(chunk) == given_bytes

    def _repeat(self, unit_bytes: int, *, total_bytes: int) -> None:
        """Append the first ``unit_bytes`` again and again, read back from the output itself.

        The output is periodic, so that reading may start anywhere that is a whole number of units
        behind its end: a tiny file doubles with each step instead of growing by a few bytes.
        """
        more = self._limit is None or self._written_bytes < self._limit
        while more:
            self._stream.flush()
            start = self._written_bytes % unit_bytes
            count = min(_CHUNK_BYTES, self._written_bytes - start)
            more = self._add(os.pread(self._stream.fileno(), count, start), total_bytes=total_bytes)

    def _cut(self) -> None:
        """Drop the incomplete last line."""
        if self._line_end_bytes == 0:
            raise InputError(
                f"the first line of {self._path} is longer than the requested {self._limit} bytes",
                hint="choose a larger size",
            )
        self._stream.flush()
        self._stream.truncate(self._line_end_bytes)
        self._written_bytes = self._line_end_bytes
        self._digest = self._line_end_digest


def _checked_text(path: Path) -> Iterator[bytes]:
    """Yield the (unpacked) content of a file in pieces, each checked to be text.

    Raises:
        InputError: it holds a NUL byte or is not UTF-8; names line and offset.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    done_bytes = done_lines = 0
    kind = ""
    with _reading(path), path.open("rb") as raw:
        start = raw.read(16)
        raw.seek(0)
        packed = path.suffix == ".bz2" or _BZIP2_MAGIC.match(start) is not None
        with bz2.open(raw, "rb") if packed else contextlib.nullcontext(raw) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                if not done_bytes:
                    kind = next((_CONTAINERS[it] for it in _CONTAINERS if chunk.startswith(it)), "")
                if found := _first_wrong(chunk, decoder):
                    line = done_lines + chunk.count(b"\n", 0, max(0, found[1])) + 1
                    raise _not_text(path, found[0], line, done_bytes + found[1], kind)
                yield chunk
                done_lines += chunk.count(b"\n")
                done_bytes += len(chunk)
    if found := _first_wrong(b"", decoder):
        raise _not_text(path, found[0], done_lines + 1, done_bytes + found[1], kind)


def _first_wrong(chunk: bytes, decoder: codecs.IncrementalDecoder) -> tuple[str, int] | None:
    """Return what in a piece is not text, and its offset; an empty piece is the end."""
    nul = chunk.find(b"\0")
    if nul >= 0:
        return "a NUL byte", nul
    pending = len(decoder.getstate()[0])
    if pending or not chunk or not chunk.isascii():
        try:
            decoder.decode(chunk, not chunk)
        except UnicodeDecodeError as error:
            return "bytes that are not UTF-8", error.start - pending
    return None


def _not_text(path: Path, what: str, line: int, offset: int, kind: str) -> InputError:
    kind, _, advice = kind.partition("; ")
    return InputError(
        f"{path} is not text: line {line}, offset {offset}: {what}"
        + (f"; it looks like {kind}" if kind else ""),
        hint=advice or "name a text file, or convert it: iconv -f LATIN1 -t UTF-8 IN > OUT",
    )
