"""A node that is a set of Linux namespaces on this machine.

Adds one thing to LocalRemote: the prefix that enters the namespaces of the node's first process;
and, where daemons and jobs have a user of their own, that everything there is done as that user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tarfile
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DriverSpaceError,
    NotThereError,
    RemoteError,
)
from boardcluster.remote.gate import cleaning_up, pipe
from boardcluster.remote.local import LocalRemote

__all__ = ["NetnsRemote", "NetnsUserRemote", "become", "enter", "unpack"]

_BLOCK_BYTES = 1 << 20
_OWN_MODE, _MOST_MODE = 0o600, 0o755
_NOTHING = Path(os.devnull)
_PACK = 'tar -C "$0" -chf - --hard-dereference -- "$1" || [ $? -eq 1 ]'
"""Packs what is there; tar ends with 1 where a file, such as a log, grew while it was read."""
_PUT_FOLDER = 'rm -rf -- "$0" && mkdir -p -- "$0" && exec tar -xf - -C "$0"'
_PUT_FILE = """\
mkdir -p -- "$0" && work=$(mktemp -d -p "$0" .put-XXXXXX) || exit 1
tar -xf - -C "$work" && mv -f -T -- "$work/$1" "$0/$2"
status=$?
rm -rf -- "$work"
exit $status
"""


def enter(pid: int, *, own_user: bool, kinds: str) -> tuple[str, ...]:
    """Return the command prefix that enters the namespaces of a process.

    Args:
        pid: process id on this machine.
        own_user: whether the namespaces belong to a user namespace made without root.
        kinds: letters of ``nsenter``: n (network), m (mount), u (host name), p (process ids).
    """
    flags = tuple(f"-{kind}" for kind in kinds)
    user = ("-U", "--preserve-credentials") if own_user else ()
    return ("nsenter", "-t", str(pid), *user, *flags, "--")


def become(user: int, *, keeping: str = "") -> tuple[str, ...]:
    """Return the command prefix by which root becomes a user who can become nobody else.

    Of root's rights it keeps one at most, named as ``setpriv`` does: ``net_admin`` sets links.
    """
    ids = (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    kept = f"-all,+{keeping}" if keeping else "-all"
    rights = (f"--inh-caps={kept}", *((f"--ambient-caps={kept}",) if keeping else ()))
    return ("setpriv", *ids, *rights, "--no-new-privs", "--")


def unpack(packed: Path, folder: Path) -> None:
    """Unpack files and folders into a new folder; what else is packed is refused.

    Whoever may have had a hand in it gets here neither a link, a device nor a program of root's.

    Raises:
        tarfile.TarError: something else is in it, or a name leads out of the folder.
        OSError: it cannot be read or written.
    """
    folder.mkdir()
    with tarfile.open(packed) as archive:
        for member in archive:
            parts = Path(member.name).parts
            content = archive.extractfile(member) if member.isfile() else None
            if not parts or ".." in parts or parts[0] == "/" or not (content or member.isdir()):
                raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder")
            place = folder.joinpath(*parts)
            if content is None:
                place.mkdir(exist_ok=True)
                continue
            with content, place.open("xb") as stream:
                shutil.copyfileobj(content, stream, _BLOCK_BYTES)
            place.chmod(_OWN_MODE | (member.mode & _MOST_MODE))


class NetnsRemote(LocalRemote):
    """An emulated node, by its first process; ``joining`` is a prefix that joins its groups.

    ``after`` is a prefix inside the node.
    """

    def __init__(
        self,
        name: str,
        *,
        pid: int,
        own_user: bool,
        joining: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        inside = (*enter(pid, own_user=own_user, kinds="nmup"), *after)
        super().__init__(name, prefix=(*joining, *inside))
        self._inside = inside
        self._limited = bool(joining)
        self._root = Path(f"/proc/{pid}/root") if joining else Path("/")

    @property
    def unlimited(self) -> LocalRemote:
        """The same node outside its control groups; itself if it has no limits."""
        return LocalRemote(self.name, prefix=self._inside) if self._limited else self

    def _seen_from_here(self, path: str) -> Path:
        """Return the path by the node's own root: a limited node has a disk mounted in it alone."""
        return self._root / path.lstrip("/")


class NetnsUserRemote(NetnsRemote):
    """An emulated node of root's, as the user that daemons and jobs run as.

    Files are read and written in the node by that user, never here by root: what a job left in its
    folders may lead anywhere.
    """

    def __init__(
        self, name: str, *, pid: int, user: int, folder: str, joining: Sequence[str] = ()
    ) -> None:
        super().__init__(name, pid=pid, own_user=False, joining=joining, after=become(user))
        self._pid, self._user, self._folder = pid, user, folder

    def put(self, source: Path, target: str) -> None:
        """Copy a file or folder; what is put belongs to the node's user."""
        if source.is_dir():
            pack = ["tar", "-C", str(source), "-chf", "-", "."]
            unpack = ["sh", "-c", _PUT_FOLDER, target]
        else:
            pack = ["tar", "-C", str(source.parent), "-chf", "-", "--", source.name]
            there = Path(target)
            unpack = ["sh", "-c", _PUT_FILE, str(there.parent), source.name, there.name]
        self._copy([pack, [*self._inside, *unpack]])

    def get(self, source: str, target: Path) -> None:
        """Copy a file or folder; no links: nothing there points at something of this machine's."""
        if self.run(["test", "-e", source], check=False).returncode != 0:
            raise NotThereError(f"{self.name}: {source} does not exist")
        target.parent.mkdir(parents=True, exist_ok=True)
        there = Path(source)
        pack = ["sh", "-c", _PACK, str(there.parent), there.name]
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".get-") as folder:
            packed, whole = Path(folder, "packed"), Path(folder, "whole")
            self._copy([[*self._inside, *pack]], target=packed)
            try:
                unpack(packed, whole)
                if target.is_dir():
                    shutil.rmtree(target)
                Path(whole, there.name).replace(target)
            except (tarfile.TarError, OSError) as error:
                if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise DriverSpaceError(
                        f"the disk became full while {source} was copied from {self.name}",
                        hint="free space there, or use a larger disk",
                    ) from error
                raise RemoteError(
                    f"{self.name}: {source} cannot be copied from there: {error}"
                ) from error

    @property
    def unlimited(self) -> LocalRemote:
        """The same node outside its control groups; itself if it has no limits."""
        if not self._limited:
            return self
        return NetnsUserRemote(self.name, pid=self._pid, user=self._user, folder=self._folder)

    def _copy(self, stages: Sequence[Sequence[str]], *, target: Path = _NOTHING) -> None:
        try:
            pipe(stages, source=_NOTHING, target=target)
        except DriverSpaceError as error:
            if target is not _NOTHING:
                raise
            # What is put is written by the node, to a disk of its own.
            raise CapacityError(f"{self.name}: {error.message}", hint=error.hint) from error

    @contextlib.contextmanager
    def temporary_upload(self, source: Path) -> Iterator[str]:
        """Yield the file itself if the node's user can read it; else the path of a copy."""
        readable = self.run(["test", "-f", str(source), "-a", "-r", str(source)], check=False)
        if readable.returncode == 0:
            yield str(source)
            return
        with self._lent() as folder:
            path = f"{folder}/{source.name}"
            self.put(source, path)
            yield path

    @contextlib.contextmanager
    def download_on_exit(self, target: Path) -> Iterator[str]:
        """Yield a path on the node; the file is fetched when the block ends well."""
        with self._lent() as folder:
            path = f"{folder}/{target.name}"
            yield path
            self.get(path, target)

    @contextlib.contextmanager
    def _lent(self) -> Iterator[str]:
        """Make a folder of the node's user; remove it afterwards."""
        folder = str(Path(self._folder, "tmp", f"lent-{uuid.uuid4().hex}"))
        remove = ["rm", "-rf", "--", folder]
        try:
            self.run(["mkdir", "-p", "-m", "700", "--", folder])
            yield folder
        except BaseException:
            with contextlib.suppress(BoardclusterError), cleaning_up():
                self.run(remove)
            raise
        self.run(remove)
