"""A disk of its own for each emulated node: an ext4 file system in a file, on a loop device.

It is mounted in the node's own mount namespace only, so when the node's processes have ended, by
whatever signal, the kernel unmounts it and detaches the device. What the kernel would keep is a
throttle on the idle device; so its number is written down before the throttle is set.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from boardcluster.cluster.limits.group_files import read_limit, write_limit
from boardcluster.errors import CapacityError, ClusterError, HostError, RemoteError
from boardcluster.fetch.cache import writing
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import run_program
from boardcluster.units import format_bytes

__all__ = [
    "DISK",
    "attach_disk",
    "can_hold_unwritten",
    "check_tools",
    "detach_leftovers",
    "device_of",
    "forget_device",
    "held_bytes",
    "hold_unwritten",
    "is_unwritten_held",
    "make_folder",
    "noted_devices",
]

DISK = "disk"
"""Folder of a node in which its disk is mounted, as the node sees it."""

_IMAGE = "disk.img"
_NOTE = "disk.device"
_BLOCK_DEVICES = Path("/sys/dev/block")
_FORMAT_TIMEOUT_SECONDS = 120.0
_BLOCK_BYTES = 512
"""Unit of ``st_blocks`` (inode(7))."""
_OWNED = """\
test "$(stat -c %u:%g:%a "$0")" = "0:$1:1775" && exit
chown -R --no-dereference "$1:$1" "$0" && chown "0:$1" "$0" && chmod 1775 "$0"
"""
"""Gives what is in the folder of a disk to a user. The folder itself stays root's, with the bit by
which nobody removes another's files there: what root keeps on a disk must not be exchanged."""


def check_tools() -> None:
    """Check that the programs are there which make and mount file systems.

    Raises:
        HostError: one is missing.
    """
    for program, package in (("losetup", "mount"), ("mkfs.ext4", "e2fsprogs")):
        done = run_program([program, "--version" if program == "losetup" else "-V"], check=False)
        if done.returncode != 0:
            raise HostError(
                f"the program {program} is missing: a node's disk cannot be created",
                hint=f"install it: sudo apt install {package}",
            )
    if not Path("/dev/loop-control").exists():
        raise HostError(
            "this kernel offers no loop devices (/dev/loop-control is missing)",
            hint="load them: sudo modprobe loop; in a container, run on the host itself",
        )


def attach_disk(folder: Path, remote: Remote, *, size_bytes: int, owner: int = 0) -> str:
    """Make a node's disk if it has none, and mount it in the node.

    Args:
        folder: the node's folder, the same here and on the node.
        remote: the node, as root.
        size_bytes: of the device; room is taken on this machine's disk only as it is written.
        owner: number of the user whose files are on it.

    Returns:
        The device as MAJOR:MINOR.

    Raises:
        ClusterError: there is a disk of another size, with data of an earlier cluster.
        CapacityError, HostError: it cannot be made or mounted.
    """
    image = folder / _IMAGE
    if os.path.lexists(image) and _text_of_ours(image, most_bytes=0) is None:
        raise ClusterError(
            f"{image} is not a disk that boardcluster made",
            hint=f"delete it, or everything, with `{_wipe_command(folder)}`",
        )
    if image.exists() and image.stat().st_size != size_bytes:
        raise ClusterError(
            f"{image} is a disk of {format_bytes(image.stat().st_size, binary=True)}, but "
            f"cluster.toml says {format_bytes(size_bytes, binary=True)}",
            hint=f"delete the old data with `{_wipe_command(folder)}`, or keep the old size",
        )
    if not image.exists():
        _format(image, size_bytes)
    try:
        found = run_program(["losetup", "--find", "--show", "--direct-io=on", str(image)])
    except RemoteError as error:
        raise HostError(
            f"no loop device for {image}: {error.message}",
            hint="see `losetup --list`; the folder must be on a file system that can bypass its "
            "page cache (direct I/O), such as ext4 or xfs: name another one with --home",
        ) from error
    device = found.text.strip()
    try:
        number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
        (folder / _NOTE).unlink(missing_ok=True)
        with (folder / _NOTE).open("x") as stream:  # never through a link
            stream.write(number)
        remote.run(["mkdir", "-p", str(folder / DISK)])
        # Without noinit_itable the kernel would clear tables while jobs run, at the disk's speed.
        options = "noatime,noinit_itable,nodev,nosuid"
        remote.run(["mount", "-t", "ext4", "-o", options, device, str(folder / DISK)])
        _give(folder, remote, owner)
    except RemoteError as error:
        raise HostError(
            f"the disk {image} cannot be mounted: {error.message}",
            hint=f"if it is damaged, delete it with `{_wipe_command(folder)}`",
        ) from error
    finally:
        # While it is mounted this only marks it: the kernel detaches it with the last user.
        run_program(["losetup", "--detach", device], check=False)
    return number


def _wipe_command(folder: Path) -> str:
    """Name the command that deletes this data; without a home it would delete another cluster."""
    return f"boardcluster down --home {folder.parent.parent} --wipe"


def make_folder(folder: Path, remote: Remote, *, owner: int = 0) -> None:
    """Make the folder in which a limited node without a disk of its own keeps its data.

    Like the file system of a disk it is root's: one of that name that a job made is not kept.

    Args:
        folder: the node's folder, the same here and on the node.
        remote: the node, as root.
        owner: number of the user whose files are in it.
    """
    remote.run(["mkdir", "-p", str(folder / DISK)])
    _give(folder, remote, owner)


def _give(folder: Path, remote: Remote, owner: int) -> None:
    remote.run(["sh", "-c", _OWNED, str(folder / DISK), str(owner)])


def _format(image: Path, size_bytes: int) -> None:
    made = image.with_suffix(".new")
    with writing(image):
        try:
            made.unlink(missing_ok=True)
            with made.open("xb") as stream:  # never through a link
                stream.truncate(size_bytes)
            run_program(
                # The file is a hole, so what would be written to clear tables is there already.
                [
                    *("mkfs.ext4", "-q", "-F", "-m", "0"),
                    *("-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", str(made)),
                ],
                timeout_seconds=_FORMAT_TIMEOUT_SECONDS,
            )
            made.chmod(0o600)  # root mounts it, so nobody else may write it
            made.replace(image)
        except RemoteError as error:
            raise CapacityError(
                f"the file system of {image} cannot be created: {error.message}",
                hint="free space on this machine's disk, or give nodes smaller disks",
            ) from error
        finally:
            made.unlink(missing_ok=True)


def held_bytes(nodes: Path, names: Iterable[str]) -> int:
    """Return the room that the disks of nodes have taken already on this machine's disk.

    Their folders are in ``nodes``; one that has no disk yet holds nothing.
    """
    total_bytes = 0
    for name in names:
        with contextlib.suppress(OSError):
            total_bytes += (nodes / name / _IMAGE).lstat().st_blocks * _BLOCK_BYTES
    return total_bytes


def can_hold_unwritten() -> bool:
    """Whether the kernel can limit what waits to be written to a single device (Linux 6.2)."""
    return any(_BLOCK_DEVICES.glob("*/bdi/strict_limit"))


def hold_unwritten(device: str, most_bytes: int | None) -> None:
    """Let no more than this wait to be written to a device.

    Otherwise the kernel allows a fifth of this machine's memory, so that a slow card costs nothing
    until that is full. None lifts the limit, and does nothing where the kernel has none. The kernel
    keeps the limit as a share of the memory that is free when it is set, so it shrinks with that.

    Args:
        device: as MAJOR:MINOR.
        most_bytes: what may wait.

    Raises:
        HostError: the kernel refused.

    Source: Linux, Documentation/ABI/testing/sysfs-class-bdi.
    """
    settings = _BLOCK_DEVICES / device / "bdi"
    if not (settings / "strict_limit").exists():
        return
    if most_bytes is None:
        write_limit(settings / "max_ratio", "100")
    else:
        with contextlib.suppress(HostError):  # this machine as a whole may hold less than that
            write_limit(settings / "max_bytes", str(most_bytes))
    write_limit(settings / "strict_limit", str(int(most_bytes is not None)))


def is_unwritten_held(device: str) -> bool:
    """Whether what waits to be written to a device is limited."""
    return read_limit(_BLOCK_DEVICES / device / "bdi" / "strict_limit") == "1"


def device_of(folder: Path) -> str:
    """Return the device of a node's disk as MAJOR:MINOR; empty if it has none."""
    return _text_of_ours(folder / _NOTE) or ""


def _text_of_ours(file: Path, *, most_bytes: int = 64) -> str | None:
    """Return how a file begins; None unless it is a file of our own, with no other name.

    Jobs may write into a node's folder, and what they leave must neither stop nor mislead us.
    """
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.fstat(opened)
        ours = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid() and seen.st_nlink == 1
        return os.read(opened, most_bytes).decode(errors="replace").strip() if ours else None
    finally:
        os.close(opened)


def noted_devices(nodes: Path) -> dict[str, str]:
    """Return the devices of all nodes of a home by node; those of an ended cluster, too.

    A device that is the disk of another cluster's node by now is left out: its throttle is theirs.
    One that holds anything else, such as an image that somebody mounted since, is as slow as our
    disk was until our throttle is lifted.
    """
    found = {}
    with contextlib.suppress(OSError):
        for folder in nodes.iterdir():
            device = device_of(folder)
            if device and not _is_disk_of_another(folder, device):
                found[folder.name] = device
    return found


def _is_disk_of_another(folder: Path, device: str) -> bool:
    """Whether a device is the disk of another node than that of a folder."""
    image = Path(_holds(device))
    other = image.name == _IMAGE and image != (folder / _IMAGE).resolve()
    return other and device_of(image.parent) == device


def _holds(device: str) -> str:
    """Return the file on a loop device; empty if it has none."""
    try:
        return (_BLOCK_DEVICES / device / "loop" / "backing_file").read_text().rstrip("\n")
    except OSError:
        return ""


def forget_device(folder: Path) -> None:
    """Forget the device of a node whose disk is mounted no more; what a job left there stays."""
    if _text_of_ours(folder / _NOTE) is not None:
        (folder / _NOTE).unlink(missing_ok=True)


def detach_leftovers(nodes: Path) -> None:
    """Detach the devices of a driver that was killed before it could mount them.

    The processes of the nodes, whose folders are in ``nodes``, have ended.
    """
    for image in nodes.glob(f"*/{_IMAGE}"):
        if _text_of_ours(image, most_bytes=0) is None:
            continue  # a job's, which may lead to another program's
        command = ["losetup", "--noheadings", "--output", "NAME", "--associated", str(image)]
        for device in run_program(command, check=False).text.split():
            run_program(["losetup", "--detach", device], check=False)
