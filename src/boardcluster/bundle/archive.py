"""The one file of a bundle: a ZIP archive that is the same for the same content, and safe to read.

Entries are compressed by whoever has them in hand, on every core, and only put together here.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self

from boardcluster import __version__
from boardcluster.bundle.layout import (
    BUNDLE_FORMAT,
    INFO,
    MANIFEST,
    REPORT,
    STORE,
    BundleInfo,
    is_record,
)
from boardcluster.errors import InputError, StoreError
from boardcluster.foreign import visible
from boardcluster.store import from_json, to_json
from boardcluster.store.codec import JsonValue
from boardcluster.store.files import POWER_NAME

__all__ = ["BundleReader", "BundleWriter", "PackedFile", "check_folder", "info_bytes", "pack"]

_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The earliest time that an entry may have; a real one would make each archive another one."""
_MODE = (stat.S_IFREG | 0o644) << 16
_LEVEL = 3
"""Level 6 takes three quarters longer, and saves a tenth of the size of logs."""
_UNIX = 3
_FILES_MOST = 5_000_000
_FILE_BYTES_MOST = 16 << 30
_WHOLE_BYTES_MOST = 512 << 30
_SMALL_BYTES_MOST = 64 << 20
"""Of files that are read whole: records, the manifest of a thousand runs takes 5 MB."""
_POWER_BYTES_MOST = 256 << 20
"""Likewise; readings of 64 meters over two days, one a second."""
_MANIFEST_BYTES_MOST = 1 << 30
_NAME_MOST = 1000
_CHUNK_BYTES = 1 << 20
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>.+)")
_AGAIN = "get it again from where it was published"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """A file as an archive holds it."""

    name: str
    """Its path in the archive."""
    size_bytes: int
    """Of its content."""
    crc: int
    """CRC-32 of its content."""
    sha256: str
    """Digest of its content."""
    deflated: bool
    """Whether it is compressed; else it would not get smaller."""
    data: bytes
    """As it is in the archive."""


def pack(name: str, content: bytes) -> PackedFile:
    """Compress a file for an archive."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    smaller = compressor.compress(content) + compressor.flush()
    deflated = len(smaller) < len(content)
    return PackedFile(
        name=name,
        size_bytes=len(content),
        crc=zlib.crc32(content),
        sha256=hashlib.sha256(content).hexdigest(),
        deflated=deflated,
        data=smaller if deflated else content,
    )


def info_bytes(info: BundleInfo) -> bytes:
    """Return the content of ``bundle.json``."""
    body = {"format": BUNDLE_FORMAT, "bundle": to_json(info)}
    return (json.dumps(body, indent=1) + "\n").encode()


class BundleWriter:
    """Writes an archive; ``finish`` adds the manifest.

    Args:
        stream: where to, at its beginning.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        self._digests: dict[str, str] = {}

    def add(self, packed: PackedFile) -> None:
        """Add a file.

        Raises:
            ValueError: there is one of that name.
        """
        if packed.name in self._digests:
            raise ValueError(f"{packed.name} is in the bundle already")
        self._digests[packed.name] = packed.sha256
        self._write(packed)

    def close(self) -> None:
        """Close what was not finished, before its stream is; safe to repeat."""
        self._archive.close()

    def finish(self) -> str:
        """Add the manifest, and close; return its SHA-256, which stands for the whole bundle."""
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self._digests.items())]
        manifest = "".join(lines).encode()
        entry = _entry(MANIFEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(entry, manifest)
        self._archive.close()
        return hashlib.sha256(manifest).hexdigest()

    def _write(self, packed: PackedFile) -> None:
        """Write an entry whose content is compressed already; zipfile itself cannot."""
        archive, stream = self._archive, self._archive.fp
        if stream is None:
            raise ValueError("the bundle is finished")
        entry = _entry(packed.name)
        entry.compress_type = zipfile.ZIP_DEFLATED if packed.deflated else zipfile.ZIP_STORED
        entry.CRC, entry.file_size = packed.crc, packed.size_bytes
        entry.compress_size = len(packed.data)
        entry.header_offset = archive.start_dir
        stream.seek(archive.start_dir)
        stream.write(entry.FileHeader())
        stream.write(packed.data)
        archive.start_dir = stream.tell()
        archive.filelist.append(entry)
        archive.NameToInfo[entry.filename] = entry


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _MOMENT)
    entry.create_system = _UNIX
    entry.external_attr = _MODE
    return entry


class BundleReader:
    """Reads an archive that anybody may have made; ``open`` returns one.

    Nothing is read from it that its manifest does not name, and nothing is given out whose SHA-256
    is not the one that the manifest says.

    Attributes:
        info: what the bundle says of itself.
        sha256: SHA-256 of its manifest, which stands for the whole bundle.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self._entries = _checked_entries(path, archive)
        # First, as the layout of a later version may be another one.
        content = self._whole(INFO)
        self.info = _parsed_info(path, content)
        for name, entry in self._entries.items():
            _require_size(path, name, entry.file_size)
        manifest = self._whole(MANIFEST)
        self.sha256 = hashlib.sha256(manifest).hexdigest()
        self._manifest = manifest
        self._digests = self._checked_digests(_parsed_manifest(path, manifest))
        self._compare(INFO, hashlib.sha256(content).hexdigest())

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a bundle for the block.

        Raises:
            InputError: there is no such file, it is no bundle, of a newer version, or was changed.
        """
        try:
            stream = path.open("rb")
        except FileNotFoundError as error:
            raise InputError(f"{path}: no such file", hint="name a bundle") from error
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", hint="name a bundle") from error
        try:
            with stream, zipfile.ZipFile(stream) as archive:
                yield cls(path, archive)
        except (zipfile.BadZipFile, UnicodeDecodeError) as error:  # of a name
            raise InputError(
                f"{path} is not a bundle, or is damaged: {error}", hint=_AGAIN
            ) from error
        except (NotImplementedError, zlib.error, EOFError) as error:
            raise InputError(f"{path} is damaged: {error}", hint=_AGAIN) from error

    @property
    def names(self) -> tuple[str, ...]:
        """The path of every file but the manifest, sorted."""
        return tuple(sorted(self._digests))

    def size_bytes(self, name: str) -> int:
        """Size of a file."""
        return self._entries[name].file_size

    def copy(self, name: str, write: Callable[[bytes], object] | None = None) -> None:
        """Read a file of any size and compare it with the manifest; give its parts to a function.

        Raises:
            InputError: it was changed.
        """
        digest = hashlib.sha256()
        with self._archive.open(self._entries[name]) as stream:
            while part := stream.read(_CHUNK_BYTES):
                digest.update(part)
                if write is not None:
                    write(part)
        self._compare(name, digest.hexdigest())

    def extract(self, root: Path) -> None:
        """Write every file below a folder, each compared with the manifest while it is read.

        Raises:
            InputError: a file was changed; the folder then holds a part.
            OSError: the folder cannot be written.
        """
        for name in self.names:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                self.copy(name, stream.write)
        (root / MANIFEST).write_bytes(self._manifest)

    def _compare(self, name: str, found: str) -> None:
        if found != self._digests[name]:
            raise _changed(self._path, name, found, self._digests[name])

    def _checked_digests(self, digests: dict[str, str]) -> dict[str, str]:
        """Refuse a manifest of other files than there are."""
        there = set(self._entries) - {MANIFEST}
        if missing := sorted(digests.keys() - there):
            raise InputError(
                f"{self._path} was changed: {_some(missing)} in {MANIFEST}, but not there",
                hint=_AGAIN,
            )
        if added := sorted(there - digests.keys()):
            raise InputError(
                f"{self._path} was changed: {_some(added)} not in {MANIFEST}", hint=_AGAIN
            )
        return digests

    def _whole(self, name: str) -> bytes:
        entry = self._entries.get(name)
        if entry is None:
            raise InputError(f"{self._path} is not a bundle: it has no {name}", hint=_AGAIN)
        _require_size(self._path, name, entry.file_size)
        with self._archive.open(entry) as stream:
            # With a size: read() decompresses up to a gigabyte before it looks at the entry's.
            return stream.read(entry.file_size)


def check_folder(root: Path) -> BundleInfo:
    """Compare every file of an unpacked bundle with its manifest; return what it says of itself.

    Raises:
        InputError: it is no bundle, of a newer version, was changed, or a file is too large.
    """
    with _opened(root, INFO) as stream:
        info = _parsed_info(root, stream.read())
    with _opened(root, MANIFEST) as stream:
        digests = _parsed_manifest(root, stream.read())
    for name, digest in digests.items():
        if any(part in {"", ".", ".."} for part in name.split("/")) or name.startswith("/"):
            raise InputError(
                f"{root}: {MANIFEST} names {name!r}, which points outside it", hint=_AGAIN
            )
        with _opened(root, name) as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != digest:
            raise _changed(root, name, found, digest)
    there = (path for folder in (STORE, REPORT) for path in (root / folder).rglob("*"))
    added = {path.relative_to(root).as_posix() for path in there if not path.is_dir()}
    if more := sorted(added - digests.keys()):
        raise InputError(f"{root} was changed: {_some(more)} not in {MANIFEST}", hint=_AGAIN)
    return info


@contextmanager
def _opened(root: Path, name: str) -> Iterator[io.BufferedReader]:
    """Open a file of an unpacked bundle for the block, unless it is larger than any such file."""
    try:
        with (root / name).open("rb") as stream:
            _require_size(root, name, os.fstat(stream.fileno()).st_size)
            yield stream
    except OSError as error:
        raise InputError(
            f"{root} is not a whole bundle: {name}: {error.strerror}", hint=_AGAIN
        ) from error


def _require_size(place: Path, name: str, size_bytes: int) -> None:
    """Refuse a file that would fill the memory of who reads it whole.

    Raises:
        InputError: names it with its size.
    """
    most_bytes = _FILE_BYTES_MOST
    if name == INFO or is_record(name):
        most_bytes = _SMALL_BYTES_MOST
    elif name == MANIFEST:
        most_bytes = _MANIFEST_BYTES_MOST
    elif name.startswith(f"{STORE}/") and name.endswith(f"/{POWER_NAME}"):
        most_bytes = _POWER_BYTES_MOST
    if size_bytes > most_bytes:
        raise InputError(
            f"{place}: {name} has {size_bytes} bytes, more than any such file", hint=_AGAIN
        )


def _changed(place: Path, name: str, found: str, digest: str) -> InputError:
    return InputError(
        f"{place} was changed: {name} has the SHA-256\n  {found}\n"
        f"and its manifest says\n  {digest}",
        hint=_AGAIN,
    )


def _parsed_info(place: Path, content: bytes) -> BundleInfo:
    try:
        body: JsonValue = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {INFO} is not JSON: {error}", hint=_AGAIN) from error
    found = body.get("format") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(found, int) or found < 1:
        raise InputError(f"{place}: {INFO} has no format", hint=_AGAIN)
    if found > BUNDLE_FORMAT:
        about = body.get("bundle")
        wrote = about.get("boardcluster", "?") if isinstance(about, dict) else "?"
        raise InputError(
            f"{place} is from a newer version: its format is {found}, written by boardcluster "
            f"{visible(str(wrote))[:40]}; this is {__version__}, which reads format "
            f"{BUNDLE_FORMAT}",
            hint="install that version of boardcluster, or a newer one",
        )
    try:
        return from_json(BundleInfo, body.get("bundle"))
    except StoreError as error:
        raise InputError(f"{place}: {INFO}: {error.message}", hint=_AGAIN) from error


def _parsed_manifest(place: Path, content: bytes) -> dict[str, str]:
    digests: dict[str, str] = {}
    for number, row in enumerate(io.BytesIO(content), start=1):  # split() would keep all at once
        line = row.decode("utf-8", "replace").removesuffix("\n")
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in digests:
            raise InputError(
                f"{place}: line {number} of {MANIFEST} is not a SHA-256 and a new path: "
                f"{visible(line)[:100]}",
                hint=_AGAIN,
            )
        digests[match["name"]] = match["digest"]
    return digests


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more are" if len(names) > 3 else f"{shown} is"


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an archive by their paths, none of which leads out of a folder.

    Raises:
        InputError: there is something in it that no bundle has.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    rows = archive.infolist()
    if len(rows) > _FILES_MOST:
        raise InputError(f"{path} has {len(rows)} files, more than any bundle has", hint=_AGAIN)
    for row in rows:
        reason = _refused(row)
        if not reason and row.filename in entries:
            reason = "appears twice"
        if reason:
            raise InputError(
                f"{path} is no bundle: {visible(row.filename)[:200]!r} {reason}",
                hint="do not unpack it with another program either",
            )
        if not row.is_dir():  # who packs a bundle again may add them: they hold nothing
            entries[row.filename] = row
    if sum(row.file_size for row in rows) > _WHOLE_BYTES_MOST:
        raise InputError(f"{path} would unpack to more than {_WHOLE_BYTES_MOST} bytes", hint=_AGAIN)
    folders = {str(parent) for name in entries for parent in PurePosixPath(name).parents}
    if both := sorted(folders & entries.keys()):
        raise InputError(f"{path} is no bundle: {both[0]} is a file and a folder", hint=_AGAIN)
    return entries


def _refused(row: zipfile.ZipInfo) -> str:
    """Return why an entry is not taken; empty if it is."""
    name = row.filename
    # The name as it was written; zipfile cuts one at a zero byte.
    odd = not name or len(name) > _NAME_MOST or visible(row.orig_filename) != name
    known = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    kinds = {0, stat.S_IFDIR if row.is_dir() else stat.S_IFREG}
    parts = name.removesuffix("/").split("/")
    reasons = {
        "is not a usable path": odd or "\\" in name or ":" in name.partition("/")[0],
        "points outside the bundle": any(part in {"", ".", ".."} for part in parts),
        "is a link or a device": stat.S_IFMT(row.external_attr >> 16) not in kinds,
        "is encrypted": bool(row.flag_bits & 0x1),
        "is compressed in a way that bundles are not": row.compress_type not in known,
        "is a folder with content": row.is_dir() and row.file_size > 0,
        "is too large": row.file_size > _FILE_BYTES_MOST,
        "lies outside the file": not 0 <= row.header_offset < _WHOLE_BYTES_MOST,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
