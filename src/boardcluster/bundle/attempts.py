"""One attempt at a trial for a bundle: its record and artefacts, redacted and compressed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from boardcluster.bundle.archive import PackedFile, pack
from boardcluster.bundle.layout import STORE
from boardcluster.bundle.redactor import Redactor
from boardcluster.errors import StoreError
from boardcluster.foreign import visible
from boardcluster.records import Attempt, Campaign, Result
from boardcluster.store.files import (
    POWER_NAME,
    TELEMETRY_NAME,
    AttemptFile,
    attempt_path,
    is_temporary,
    record_text,
)

__all__ = ["AttemptJob", "PackedAttempt", "pack_attempt", "packed_files"]

_RECORD_NAME = "attempt.json"
_CASE_NAME = "case.json"
_READ_BY_REPORT = frozenset({_RECORD_NAME, TELEMETRY_NAME, POWER_NAME})
_FILE_BYTES_MOST = 1 << 30
_UNUSABLE = re.compile(r"[\\\n\r\t]")
"""Line ends would begin a new line of the manifest."""
_NAME_MOST = 200
"""Bytes of a name; file systems take 255."""
_PATH_MOST = 900
"""Bytes of a path below the store; what reads a bundle takes a thousand characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptJob:
    """What is to be packed."""

    campaign: Campaign
    """The campaign of the trial."""
    result: Result
    """The attempt with its trial and what it measured."""
    home: Path
    """The home with its artefacts."""
    made_home: Path
    """The redacted home that the report is made from."""
    part: Path
    """File for the compressed content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedAttempt:
    """What was packed."""

    entries: tuple[tuple[PackedFile, int], ...]
    """Each file without its data, and how many bytes that has, in the order of the part."""
    part: Path
    """The file with their data, one behind the other."""
    replaced: dict[str, int]
    """How many texts of each sort were replaced."""
    unread: tuple[str, ...]
    """Files that are no text."""
    left_out: tuple[str, ...]
    """Files that are too large for a bundle."""
    cases: tuple[bytes, ...]
    """What its jobs were asked to do, redacted: the content of each ``case.json``."""


def pack_attempt(redactor: Redactor, job: AttemptJob) -> PackedAttempt:
    """Pack an attempt.

    Raises:
        StoreError: an artefact cannot be read, or samples not any more without the names in them.
        OSError: the part, or the redacted home, cannot be written.
    """
    attempt = job.result.attempt
    if attempt is None:
        raise ValueError("a trial that was never begun has nothing to pack")
    folder = attempt_path(job.home, attempt.trial_id, attempt.number).parent
    base = f"attempts/{attempt.trial_id}/{attempt.number}"
    entries = []
    replaced: Tally[str] = Tally()
    unread: list[str] = []
    left_out: list[str] = []
    cases: list[bytes] = []
    names: dict[str, bool] = {}
    with job.part.open("wb") as out:
        for name, content in _contents(folder, job, attempt, left_out):
            shown = _unused(_usable(redactor.text(f"{base}/{name}")), names)
            done = redactor.file(name, content)
            replaced.update(done.replaced)
            if not done.is_read:
                unread.append(shown)
            packed = pack(f"{STORE}/{shown}", done.content)
            out.write(packed.data)
            entries.append((replace(packed, data=b""), len(packed.data)))
            # What containers wrote, whatever it is called, is a program's word and not ours.
            if PurePosixPath(name).name == _CASE_NAME and "containers" not in name.split("/"):
                cases.append(done.content)
            if name in _READ_BY_REPORT:
                target = job.made_home / shown
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(done.content)
                if name == TELEMETRY_NAME and done.content != content:
                    _require_samples(folder, target.parent)
    return PackedAttempt(
        entries=tuple(entries),
        part=job.part,
        replaced=dict(replaced),
        unread=tuple(unread),
        left_out=tuple(_usable(redactor.text(f"{base}/{name}")) for name in left_out),
        cases=tuple(cases),
    )


def _require_samples(before: Path, after: Path) -> None:
    """Refuse a bundle in which samples would be lost.

    Raises:
        StoreError: they can be read in the first folder, and not in the second.
    """
    if not _has_samples(after) and _has_samples(before):
        raise StoreError(
            f"the samples in {before} cannot be read after names in them were replaced",
            hint="report this: a word of boardcluster's own was taken for a name",
        )


def _has_samples(folder: Path) -> bool:
    # Not above: NumPy takes longer to load than most commands take to run.
    from boardcluster.store.samples import read_telemetry  # noqa: PLC0415

    try:
        return read_telemetry(folder) is not None
    except StoreError:
        return False


def packed_files(packed: PackedAttempt) -> Iterator[PackedFile]:
    """Yield the files of an attempt with their data, and delete the part."""
    with packed.part.open("rb") as stream:
        for entry, length in packed.entries:
            yield replace(entry, data=stream.read(length))
    packed.part.unlink()


def _contents(
    folder: Path, job: AttemptJob, attempt: Attempt, left_out: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield every artefact by its path, sorted; the record is what the store says."""
    record = AttemptFile(
        campaign=job.campaign,
        trial=job.result.trial,
        attempt=attempt,
        measurement=job.result.measurement,
    )
    yield _RECORD_NAME, record_text(record).encode()
    for path in _regular_files(folder):
        name = str(path.relative_to(folder))
        if name == _RECORD_NAME:
            continue
        try:
            if path.stat().st_size > _FILE_BYTES_MOST:
                left_out.append(name)
                continue
            content = path.read_bytes()
        except OSError as error:
            raise StoreError(f"unreadable: {error}", hint="check its permissions") from error
        yield name, content


def _regular_files(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted; links, which a job may have planted, are none."""
    found = []
    for parent, _, names in os.walk(folder, followlinks=False):
        for name in names:
            path = Path(parent, name)
            if stat.S_ISREG(path.lstat().st_mode) and not is_temporary(name):
                found.append(path)
    return sorted(found)


def _usable(name: str) -> str:
    """Return a path that can be one everywhere."""
    shown = "/".join(
        _shortened(part, _NAME_MOST) for part in _UNUSABLE.sub("_", visible(name)).split("/")
    )
    return _shortened(shown, _PATH_MOST)


def _shortened(text: str, most_bytes: int) -> str:
    """Return a text of at most so many bytes; one that was longer ends with its digest."""
    content = text.encode()
    if len(content) <= most_bytes:
        return text
    digest = hashlib.sha256(content).hexdigest()[:16]
    return f"{content[: most_bytes - 17].decode('utf-8', 'ignore').rstrip('/')}-{digest}"


def _unused(name: str, names: dict[str, bool]) -> str:
    """Return a path that nothing else of the attempt has after redaction.

    Args:
        name: the path that is wanted.
        names: paths so far, each with whether it is a file; this one and its folders are added.
    """
    done = ""
    parts = name.split("/")
    for place, part in enumerate(parts, start=1):
        is_file = place == len(parts)
        shown, number = f"{done}{part}", 2
        while shown in names and (is_file or names[shown]):
            shown, number = f"{done}{part}.{number}", number + 1
        names[shown] = is_file
        done = f"{shown}/"
    return shown
