"""The user that daemons and jobs of a cluster that root made run as, and what that user may see.

The user exists in the nodes alone: a line of their ``/etc/passwd``, and a number that this machine
gives to nobody. Folders that are closed to others, such as ``/root``, are closed to that user, too.
Where engines or a node's own folder are below one, the node sees in its place an empty folder that
holds nothing but them.
"""

from __future__ import annotations

import contextlib
import pwd
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from boardcluster.errors import HostError
from boardcluster.remote.base import Remote

__all__ = [
    "NAME",
    "choose_number",
    "close_folder",
    "exposing",
    "give_folder",
    "require_readable",
    "with_user",
]

NAME = "boardcluster"
"""The user's name in the nodes: that of the service user of boards."""

_NUMBERS = range(61000, 61184)
"""Given to no user by distributions and systemd.

Source: systemd, docs/UIDS-GIDS.md (60706 to 61183 are unused); Debian Policy 9.2.2.
"""
_OPEN = 0o001
_FIRST_DESCRIPTOR = 3
_ROOTS_OWN = ("disk", "disk.device", "disk.img", "disk.new")
"""In a node's folder: a file system that root mounts, and what it is on and made as."""


def choose_number() -> int:
    """Return a number that no user and no service of this machine has.

    Raises:
        HostError: all of them are taken.
    """
    taken = {row.pw_uid for row in pwd.getpwall()}
    for number in _NUMBERS:
        if number not in taken:
            return number
    raise HostError(
        f"users of this machine have every number from {_NUMBERS[0]} to {_NUMBERS[-1]}, so none "
        "is left for the daemons and jobs of the cluster",
        hint="run as an ordinary user: the cluster then runs as that user",
    )


def with_user(number: int, file: Path) -> str:
    """Return this machine's ``passwd`` or ``group`` with the user; one of its name is replaced."""
    others = [row for row in file.read_text().splitlines() if not row.startswith(f"{NAME}:")]
    own = f"{NAME}:x:{number}:"
    if file.name == "passwd":
        own += f"{number}:daemons and jobs:/nonexistent:/usr/sbin/nologin"
    return "\n".join([*others, own]) + "\n"


def close_folder(folder: Path) -> Iterator[list[str]]:
    """Yield the commands, for root, that close a node's folder while root makes what it mounts.

    Jobs of an earlier cluster, or of another one that is up, may have put something in its place.
    Each command is to be done before the next one is asked for.
    """
    yield ["chown", "root:root", str(folder)]
    yield ["chmod", "755", str(folder)]
    for name in _ROOTS_OWN:
        entry = folder / name
        with contextlib.suppress(FileNotFoundError):
            if entry.lstat().st_uid != 0:  # to have root write or mount what a job chose
                yield ["rm", "-rf", "--", str(entry)]


def give_folder(number: int, folder: Path) -> Iterator[list[str]]:
    """Yield the commands, for root, that let the user write into a node's folder.

    The folder stays root's, with the bit by which nobody removes another's files there: what root
    mounts from it must not be exchanged. What is in it already, from an earlier cluster, becomes
    the user's.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name not in _ROOTS_OWN and entry.lstat().st_uid != number:
            yield ["chown", "-R", "--no-dereference", f"{number}:{number}", str(entry)]
    yield ["chown", f"root:{number}", str(folder)]
    yield ["chmod", "1775", str(folder)]


def _first_closed(path: Path) -> Path | None:
    """Return the outermost folder above a path that others may not pass."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & _OPEN:
            return folder
    return None


def exposing(needed: Sequence[Path]) -> str:
    """Return the shell script, for root in a node, that opens folders to its other users.

    Above them closed folders are covered by empty ones; what else is in those stays out of sight.
    Without a closed folder above any of them the script does nothing.
    """
    # A link may be what is closed, or lead to where it is.
    known = {place for path in needed for place in (path.absolute(), path.resolve())}
    below: dict[Path, Path] = {}
    for path in sorted(known):
        cover = _first_closed(path)
        if cover is not None and not any(parent in known for parent in path.parents):
            # By two names of one folder, as behind a linked /home, it is opened once: the shell
            # has descriptors of one digit only.
            below[cover.resolve() / path.relative_to(cover)] = cover.resolve()
    lines = ["set -e", "umask 022"]
    numbers = {path: _FIRST_DESCRIPTOR + index for index, path in enumerate(below)}
    lines += [f"exec {number}< {shlex.quote(str(path))}" for path, number in numbers.items()]
    for cover in sorted(set(below.values())):
        where = shlex.quote(str(cover))
        lines.append(f"mount -t tmpfs -o mode=755,size=1m boardcluster {where}")
    for path, number in numbers.items():
        where = shlex.quote(str(path))
        # Not by its name, which leads nowhere by now; with what is mounted in it, such as a disk.
        lines.append(f"mkdir -p {where}; mount -c --rbind /proc/self/fd/{number} {where}")
    return "\n".join(lines)


def require_readable(remote: Remote, folders: Sequence[Path]) -> None:
    """Check that the user of a node can read what engines and jobs read there, and has a Python.

    Of a folder that holds others of ``folders`` only those are read; what else is in it, such as
    what another command is just making, may be closed. What vanishes meanwhile is no error.

    Raises:
        HostError: names the first file or folder that it cannot read. Links may lead nowhere, as a
            runtime's to its sources do.
    """
    if remote.run(["sh", "-c", "python3 -c 0"], check=False).returncode != 0:
        raise HostError(
            "daemons and jobs do not run as root, and their user can start no python3",
            hint="install the system's own: sudo apt install python3",
        )
    unreadable = ("-ignore_readdir_race", "!", "-type", "l", "!", "-readable", "-print", "-quit")
    for folder in folders:
        if any(folder in other.parents for other in folders):
            continue
        done = remote.run(["find", f"{folder}/", *unreadable], check=False)
        if done.returncode != 0 or done.stdout:
            named = done.text.strip() or str(folder)
            closed = _closed_with(folder, folders)
            raise HostError(
                f"daemons and jobs do not run as root, and their user cannot read {named}",
                hint=f"let others read it: chmod -R a+rX {shlex.quote(str(closed))}",
            )


def _closed_with(folder: Path, folders: Sequence[Path]) -> Path:
    """Return the outermost closed folder on the way to one, from another of ``folders`` on.

    Folders above all of them are no obstacle: nodes see an empty one in place of a closed one.
    """
    way = [place for place in reversed(folder.parents) if {place, *place.parents} & {*folders}]
    closed = (place for place in way if place.is_dir() and not place.stat().st_mode & _OPEN)
    return next(closed, folder)
