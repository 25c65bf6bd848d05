"""What every cache folder needs: one writer at a time, whole files only, and proof of content.

A file in a cache has a *sidecar*: a small JSON file that holds its SHA-256 together with its size
and modification time. While these two still hold, the digest is believed without reading the file,
so that a second run is instantaneous; otherwise the content is hashed again and decides.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from boardcluster.errors import DriverSpaceError, HostError, InstallError
from boardcluster.units import format_bytes
from boardcluster.waiting import DATA_SECONDS_MOST, wait_until

__all__ = [
    "Progress",
    "Stamp",
    "disk_error",
    "held_stamp",
    "hold_lock",
    "install_file",
    "made_once",
    "make_folder",
    "no_progress",
    "open_to_others",
    "refusals_told",
    "require_space",
    "sha256_of",
    "sidecar_of",
    "verified_stamp",
    "write_atomically",
    "write_stamp",
    "write_whole",
    "writing",
]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, bytes done and bytes in all (0 while unknown)."""

_CHUNK_BYTES = 1 << 20
_POLL_SECONDS = 0.2
# The driver's store and logs usually live on the same disk: a cache must not take its last bytes.
_RESERVE_BYTES = 64_000_000
_ORDINARY_ERRORS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.ENAMETOOLONG,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)
"""What an operating system refuses without any bug of ours: permission, space, kind of file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a sidecar says about a file."""

    sha256: str
    """Digest of the content, hexadecimal."""
    size_bytes: int
    """Size of the file."""
    mtime_ns: int
    """Modification time of the file, nanoseconds since the epoch."""
    about: dict[str, str] = field(default_factory=dict)
    """Whatever else the writer wanted to keep."""


def no_progress(what: str, done_bytes: int, total_bytes: int) -> None:
    """Report nothing."""


@contextlib.contextmanager
def open_to_others() -> Iterator[None]:
    """Have others read what root makes for the length of a block, whatever root's umask is.

    Daemons and jobs of a cluster that root made run as another user, and read the cache. What an
    ordinary user makes is as that user's umask says: there the jobs are the same user.
    """
    if os.geteuid() != 0:
        yield
        return
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def make_folder(folder: Path, *, shared: bool = False) -> None:
    """Create a folder and its parents.

    Args:
        folder: the folder.
        shared: whether it is in the cache, which daemons and jobs read: see ``open_to_others``.

    Raises:
        HostError: it cannot be created.
    """
    try:
        with open_to_others() if shared else contextlib.nullcontext():
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"cannot create the folder {folder}: {error.strerror}",
            hint="choose another folder, or correct its permissions",
        ) from error


def require_space(folder: Path, *, need_bytes: int, purpose: str) -> None:
    """Refuse beforehand what the disk cannot hold.

    Raises:
        DriverSpaceError: less is free in ``folder`` than needed; the message shows the arithmetic.
    """
    free_bytes = shutil.disk_usage(folder).free
    if need_bytes + _RESERVE_BYTES <= free_bytes:
        return
    missing_bytes = need_bytes + _RESERVE_BYTES - free_bytes
    raise DriverSpaceError(
        f"{purpose} needs {format_bytes(need_bytes)} + {format_bytes(_RESERVE_BYTES)} in reserve, "
        f"but {folder} has {format_bytes(free_bytes)} free: {format_bytes(missing_bytes)} missing",
        hint=f"free {format_bytes(missing_bytes)} there, or choose a folder on a larger disk",
    )


def disk_error(error: OSError, *, path: str, folder: str = "", doing: str = "use") -> HostError:
    """Return an operating system error in the user's words.

    Args:
        error: what the operating system said.
        path: the file or folder it is about.
        folder: the folder that needs space or other permissions; empty if it is not known.
        doing: what failed, a verb.

    Returns:
        A DriverSpaceError where the disk or the quota is full, else a HostError.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DriverSpaceError(
            f"the disk became full while writing {path}",
            hint=f"free space {f'in {folder}' if folder else 'there'}, or choose a folder on a "
            "larger disk",
        )
    return HostError(
        f"cannot {doing} {path}: {error.strerror}",
        hint=f"correct the permissions of {folder or path}, or choose another path",
    )


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say what is wrong where a file of the cache cannot be written.

    Raises:
        CapacityError: the disk became full.
        HostError: any other operating system error.
    """
    try:
        yield
    except OSError as error:
        raise disk_error(error, path=str(path), folder=str(path.parent), doing="write") from error


@contextlib.contextmanager
def refusals_told(*, unnamed: str) -> Iterator[None]:
    """Say in the user's words what the operating system refused while a whole command ran.

    The last resort, for what was not said nearer to where it happened. Any other error of the
    operating system is a bug of ours, and stays what it is.

    Args:
        unnamed: what the error is about where it names no file.

    Raises:
        DriverSpaceError: the disk or the quota became full.
        HostError: another refusal: permission, read-only, kind of file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _ORDINARY_ERRORS:
            raise
        told = disk_error(error, path=unnamed if error.filename is None else str(error.filename))
        for note in getattr(error, "__notes__", ()):  # what cleaning up had to add
            told.add_note(note)
        raise told from error


@contextlib.contextmanager
def hold_lock(path: Path, *, purpose: str, timeout_seconds: float = 3600.0) -> Iterator[None]:
    """Hold an exclusive lock on a file for the length of a block; the kernel ends it with us.

    The file stays: removing it would let two waiters lock two different files.

    Args:
        path: the lock file; created if missing.
        purpose: what the lock protects, for the message.
        timeout_seconds: how long to wait for another process.

    Raises:
        InstallError: another process held it all that time.
        HostError: the file cannot be created.
    """

    def taken() -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    with writing(path):
        stream = path.open("ab")
    with stream:
        if not wait_until(taken, timeout_seconds=timeout_seconds, poll_seconds=_POLL_SECONDS):
            raise InstallError(
                f"another process held {path} for {timeout_seconds:g} s ({purpose})",
                hint="wait for the other boardcluster to end, then repeat the command",
            )
        yield


def sha256_of(path: Path, *, progress: Progress = no_progress) -> str:
    """Hash a file of any size in constant memory.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    done_bytes = 0
    total_bytes = path.stat().st_size
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            progress(f"checking {path.name}", done_bytes, total_bytes)
    return digest.hexdigest()


def sidecar_of(path: Path) -> Path:
    """Return where the sidecar of a cached file lies: beside it."""
    return path.with_name(f"{path.name}.json")


def write_stamp(
    path: Path, *, sidecar: Path, sha256: str, about: Mapping[str, str] | None = None
) -> Stamp:
    """Record that ``path`` as it is now has this content; atomic.

    Raises:
        OSError: ``path`` is gone.
        HostError: the sidecar cannot be written.
    """
    status = path.stat()
    stamp = Stamp(
        sha256=sha256,
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        about=dict(about or {}),
    )
    part = sidecar.with_name(f"{sidecar.name}.{_writer()}.part")
    with writing(sidecar):
        part.write_text(json.dumps(asdict(stamp), indent=2) + "\n", encoding="utf-8")
        part.replace(sidecar)
    return stamp


def _writer() -> str:
    """Return a name of one's own: two threads or processes may write one file at the same time."""
    return f"{os.getpid()}-{threading.get_ident()}"


def _read_stamp(sidecar: Path) -> Stamp | None:
    from pydantic import TypeAdapter  # noqa: PLC0415  nodes have the standard library only

    try:
        return TypeAdapter(Stamp).validate_json(sidecar.read_bytes())
    except (OSError, ValueError):
        return None


def held_stamp(path: Path, *, sidecar: Path) -> Stamp | None:
    """Return what the sidecar says if size and time of the file still hold; reads no content.

    Raises:
        OSError: the file is not there.
    """
    stamp = _read_stamp(sidecar)
    status = path.stat()
    if stamp is None or (stamp.size_bytes, stamp.mtime_ns) != (status.st_size, status.st_mtime_ns):
        return None
    return stamp


def verified_stamp(path: Path, *, sidecar: Path) -> Stamp | None:
    """Return the stamp of a cached file if its content is still what the sidecar says.

    A file whose size or time changed is hashed again: the same content gets a new stamp, other
    content counts as absent.
    """
    stamp = _read_stamp(sidecar)
    if stamp is None or not path.is_file():
        return None
    if held_stamp(path, sidecar=sidecar) is not None:
        return stamp
    if path.stat().st_size != stamp.size_bytes or sha256_of(path) != stamp.sha256:
        return None
    return write_stamp(path, sidecar=sidecar, sha256=stamp.sha256, about=stamp.about)


def write_atomically(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old or the new content, never a part.

    Not after a power cut either, and not where two write it at the same time.

    Raises:
        CapacityError: the disk is full.
        HostError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{_writer()}")
    with writing(path):
        try:
            with temporary.open("w") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                temporary.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a small file as ``write_atomically`` does, and its folder if that is missing.

    Raises:
        HostError: it cannot be written; CapacityError if the disk is full.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)


def install_file(
    part: Path, *, target: Path, sha256: str, about: Mapping[str, str] | None = None
) -> Stamp:
    """Give a finished, verified file its final name, so that half a file never has it.

    Raises:
        HostError: it cannot be renamed.
    """
    with writing(target):
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        sidecar_of(target).unlink(missing_ok=True)
        part.replace(target)
    return write_stamp(target, sidecar=sidecar_of(target), sha256=sha256, about=about)


def made_once(
    target: Path,
    make: Callable[[Path], object],
    *,
    purpose: str,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Return a file that is computed at most once, and again where its content was spoilt.

    Args:
        target: the file; its folder is created if missing.
        make: writes the content to the path it is given.
        purpose: what is done meanwhile, for another process that waits.
        about: whatever else the sidecar is to keep.

    Raises:
        InstallError: another process held the lock for a day.
        HostError: the file cannot be written.
    """
    make_folder(target.parent, shared=True)
    lock = target.with_name(f".{target.name}.lock")
    with hold_lock(lock, purpose=purpose, timeout_seconds=DATA_SECONDS_MOST):
        if verified_stamp(target, sidecar=sidecar_of(target)) is None:
            part = target.with_name(f"{target.name}.part")
            try:
                with writing(target):
                    make(part)
                    part.replace(target)
            finally:
                part.unlink(missing_ok=True)
            write_stamp(target, sidecar=sidecar_of(target), sha256=sha256_of(target), about=about)
    return target
