"""Takes a bundle into a store of its own, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from boardcluster import __version__
from boardcluster.bundle.archive import BundleReader
from boardcluster.bundle.layout import RECORDS, STORE, BundleInfo, is_record
from boardcluster.bundle.space import TEMPORARY, require_space_for, unpacking
from boardcluster.errors import InputError, StoreError, UsageError
from boardcluster.foreign import json_text
from boardcluster.queries.watches import watch_standings
from boardcluster.store import Store, rebuild, to_json
from boardcluster.store.files import IMPORTED_NAME
from boardcluster.store.local_disk import require_local_disk

__all__ = ["ImportedBundle", "records_only", "take_bundle"]

_OF_A_STORE = ("attempts/", *RECORDS)
"""What a bundle brings into a home. Anything else of a home, such as the record of a cluster that
runs, would be believed by `down`."""
_TOLD_EVERY = 50
_HOME = "--home"
Follow = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedBundle:
    """What came of an import."""

    home: Path
    """The state folder with the results."""
    info: BundleInfo
    """What the bundle says of itself."""
    sha256: str
    """SHA-256 of its manifest."""
    already: bool
    """Whether it was there before, so that nothing was done."""


def take_bundle(
    path: Path,
    home: Path,
    *,
    sha256: str = "",
    follow: Follow | None = None,
) -> ImportedBundle:
    """Put the results of a bundle into a store.

    It becomes a home of its own: results of others that were added to one's own would be counted
    with them in every mean, prediction and estimate. The home is made beside its place, and gets
    its name when everything in it was compared with the manifest; an import that is stopped leaves
    nothing.

    Args:
        path: the bundle.
        home: the state folder to make; an empty one may be there.
        sha256: what the SHA-256 of its manifest must be, as its authors published it; empty for
            any.
        follow: told what is done, how much of it, and how much there is; None for silence.

    Raises:
        InputError: it is no bundle, of a newer version, was changed, or is another one.
        UsageError: the folder holds something else.
        CapacityError: the disk cannot hold it.
        HostError: the folder cannot be written, or is on a network file system.
        StoreError: a record in it cannot be used.
    """
    with BundleReader.open(path) as reader:
        if sha256 and sha256.lower() != reader.sha256:
            raise InputError(
                f"{path} is another bundle: the SHA-256 of its manifest is\n  {reader.sha256}\n"
                f"and not\n  {sha256.lower()}",
                hint="get the bundle that was published with this digest",
            )
        if _is_there(home, path, reader.sha256):
            return ImportedBundle(home=home, info=reader.info, sha256=reader.sha256, already=True)
        require_local_disk(home)
        names = [name for name in reader.names if name.startswith(f"{STORE}/")]
        size_bytes = sum(map(reader.size_bytes, names))
        require_space_for(
            next(parent for parent in home.absolute().parents if parent.is_dir()),
            files_bytes=size_bytes,
            database_bytes=size_bytes // 4,  # it holds the records a second time
            option=_HOME,
        )
        with _made_beside(home) as made:
            _extract(reader, made, follow)
            _fill(made, reader, path)
            # Once for all: of a thousand runs each file by itself would take minutes.
            os.sync()
            made.rename(home)
        return ImportedBundle(home=home, info=reader.info, sha256=reader.sha256, already=False)


def records_only(path: Path, home: Path) -> BundleInfo:
    """Make a home of the records of a bundle, without its raw data; ``compare`` needs no more.

    Args:
        path: the bundle.
        home: an empty folder, which is a temporary one.

    Raises:
        InputError: it is no bundle, of a newer version, or was changed.
        CapacityError: the disk cannot hold the records.
        HostError: the folder cannot be written.
        StoreError: a record in it cannot be used.
    """
    with BundleReader.open(path) as reader:
        names = [name for name in reader.names if is_record(name)]
        size_bytes = sum(map(reader.size_bytes, names))
        require_space_for(home, files_bytes=size_bytes, database_bytes=size_bytes, option=TEMPORARY)
        with unpacking(home, option=TEMPORARY):
            for name in names:
                _copy(reader, name, home / name.removeprefix(f"{STORE}/"))
            _rebuild_whole(home, reader.info, path)
        return reader.info


def _is_there(home: Path, path: Path, sha256: str) -> bool:
    """Say whether a home holds this bundle already.

    Raises:
        UsageError: it holds something else.
    """
    if not os.path.lexists(home) or (home.is_dir() and not any(home.iterdir())):
        return False
    try:
        found = json.loads((home / IMPORTED_NAME).read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if found == sha256:
        return True
    what = "another bundle" if found else "something else"
    raise UsageError(
        f"{home} holds {what}: a bundle gets a store of its own, because its runs would be counted "
        "with those already there",
        hint=f"name another one: boardcluster import {path} --cluster NAME",
    )


@contextmanager
def _made_beside(home: Path) -> Iterator[Path]:
    """Give a folder beside a home; whatever ends the block early leaves nothing of it.

    Raises:
        CapacityError: the disk became full.
        HostError: it cannot be written.
    """
    with unpacking(home, option=_HOME):
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{home.name}-", dir=home.parent, ignore_cleanup_errors=True
        ) as folder:
            made = Path(folder) / "home"
            made.mkdir()
            yield made


def _extract(reader: BundleReader, made: Path, follow: Follow | None) -> None:
    """Write the store's files, and compare all others."""
    names = reader.names
    for place, name in enumerate(names, start=1):
        inside = name.removeprefix(f"{STORE}/")
        if inside == name:
            reader.copy(name)
        elif inside.startswith(_OF_A_STORE):
            _copy(reader, name, made / inside)
        else:
            raise InputError(
                f"{name} is not part of results: a bundle that contains it cannot be trusted",
                hint="get the bundle from its authors, and compare its SHA-256",
            )
        if follow is not None and (place % _TOLD_EVERY == 0 or place == len(names)):
            follow("comparing and unpacking files", place, len(names))


def _copy(reader: BundleReader, name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as stream:
        reader.copy(name, stream.write)


def _fill(made: Path, reader: BundleReader, path: Path) -> None:
    _rebuild_whole(made, reader.info, path)
    body = {
        "sha256": reader.sha256,
        "file": path.name,
        "imported_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "imported_by": __version__,
        "bundle": to_json(reader.info),
    }
    (made / IMPORTED_NAME).write_text(json_text(body, indent=1) + "\n", encoding="utf-8")


def _rebuild_whole(home: Path, info: BundleInfo, path: Path) -> None:
    """Make the database, and refuse one that lacks something.

    Raises:
        InputError: the bundle does not hold what it says.
        StoreError: the record of a watch in it makes no sense.
    """
    count = rebuild(home)
    with Store.open(home, read_only=True) as store:
        _require_watches(store, path)
        campaigns = tuple(row.id for row in store.campaigns())
        probes = len(store.probe_runs())
    there = {"runs": count, "probes": probes, "campaigns": len(campaigns)}
    said = {"runs": info.attempts, "probes": info.probes, "campaigns": len(info.campaigns)}
    if there != said or campaigns != info.campaigns:
        words = ", ".join(f"{there[key]} of {said[key]} {key}" for key in said)
        raise InputError(
            f"{path}: only {words} can be used",
            hint="use the version of boardcluster that wrote it, or get it again",
        )


def _require_watches(store: Store, path: Path) -> None:
    """Refuse records of watches that anybody may have changed.

    Raises:
        StoreError: one makes no sense; names its file and what is allowed.
    """
    try:
        watch_standings(store)
    except StoreError as error:
        raise StoreError(
            f"{path}: {error.message}",
            hint="get the bundle from its authors, and compare its SHA-256",
        ) from error
