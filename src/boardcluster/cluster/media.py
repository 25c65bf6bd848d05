"""Block devices and file systems of a node, from what its kernel says of them. Pure.

Sources: Linux, Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-bus-pci
(current_link_speed), Documentation/filesystems/proc.rst (mountinfo); proc_swaps(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from boardcluster.records import Medium, Mount, Swap

__all__ = ["Blocks", "parse_media", "parse_mounts", "parse_swaps"]

_BLOCK = "/sys/class/block/"
_SECTOR_BYTES = 512
"""Unit of /sys/class/block/*/size, whatever the device's own sectors are."""

_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
"""PCI Express: gigatransfers per second and lane of each generation."""

_NO_MEDIA = re.compile(r"(zram|dm-|md|sr|fd|nbd|mtdblock|mmcblk\d+(boot\d|rpmb|gp\d))")
_VIRTUAL_NAME = re.compile(r"(vd|xvd)[a-z]")
_VIRTUAL_MODEL = re.compile(r"QEMU|VBOX|VMware|Virtual", re.IGNORECASE)
_KERNEL_FOLDERS = ("/dev", "/proc", "/run", "/sys", "/snap", "/var/lib/docker", "/var/lib/snapd")
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs"})
_MOUNTS_MOST = 64
_MBIT = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The block devices of a node, partitions and mapped ones included."""

    files: Mapping[str, str]
    """What the files under /sys say."""
    links: Mapping[str, str]
    """What links under /sys and /dev mean."""
    usb: Mapping[str, str]
    """Rate of the USB link behind a device's path under /sys, in Mbit/s."""

    @property
    def names(self) -> list[str]:
        """Every block device and partition."""
        found = (path.removeprefix(_BLOCK) for path in self.links if path.startswith(_BLOCK))
        return [name for name in found if "/" not in name]

    def read(self, name: str, what: str) -> str:
        """Return one file of a device, without white space around it; empty if there is none."""
        return self.files.get(f"{_BLOCK}{name}/{what}", "").strip()

    def disk_of(self, name: str) -> str:
        """Return the device that holds a partition or a mapped device; empty if unknown."""
        for _ in range(8):  # a partition of a mapped device of a partition ...
            slaves = [p for p in self.links if p.startswith(f"{_BLOCK}{name}/slaves/")]
            parent = PurePosixPath(self.links.get(f"{_BLOCK}{name}", "")).parent.name
            if slaves:
                name = PurePosixPath(slaves[0]).name
            elif f"{_BLOCK}{parent}" in self.links:
                name = parent
            else:
                return name if f"{_BLOCK}{name}" in self.links else ""
        return ""

    def named(self, number: str, source: str) -> str:
        """Return the device with a number ``MAJOR:MINOR``, or that a source in /dev means."""
        for name in self.names:
            if self.read(name, "dev") == number:
                return name
        return PurePosixPath(self.links.get(source, source)).name  # btrfs hides the number


def parse_media(blocks: Blocks) -> tuple[Medium, ...]:
    """Return every device that can hold data."""
    found = []
    for name in sorted(blocks.names):
        sectors = blocks.read(name, "size")
        if _NO_MEDIA.match(name) or blocks.disk_of(name) != name or sectors in ("", "0"):
            continue
        generation, lanes = _pcie(name, blocks)
        rate = blocks.usb.get(f"{_BLOCK}{name}", "").strip()
        discards = blocks.read(name, "queue/discard_max_bytes")
        found.append(
            Medium(
                name=name,
                kind=_kind(name, blocks),
                model=blocks.read(name, "device/model") or blocks.read(name, "device/name"),
                size_bytes=int(sectors) * _SECTOR_BYTES,
                pcie_generation=generation,
                pcie_lanes=lanes,
                usb_bits_per_second=int(float(rate) * _MBIT) if rate else None,
                trim=discards != "0" if discards else None,
            )
        )
    return tuple(found)


def _kind(name: str, blocks: Blocks) -> str:
    turns = blocks.read(name, "queue/rotational") == "1"
    if name.startswith("mmcblk"):
        return "emmc" if blocks.read(name, "device/type") == "MMC" else "sd"
    if name.startswith("nvme"):
        return "nvme"
    if f"{_BLOCK}{name}" in blocks.usb:
        return "usb" if turns else "usb-ssd"  # sticks do not say that they do not turn
    behind = blocks.links[f"{_BLOCK}{name}"]
    if (
        _VIRTUAL_NAME.match(name)
        or "/virtio" in behind
        or _VIRTUAL_MODEL.search(blocks.read(name, "device/model"))
    ):
        return "virtual"
    return "hdd" if turns else "ssd"


def _pcie(name: str, blocks: Blocks) -> tuple[int | None, int | None]:
    """Return generation and lanes of an NVMe device's link as it runs now."""
    controller = re.match(r"nvme\d+", name)
    if controller is None:
        return None, None
    folder = f"/sys/class/nvme/{controller[0]}/device"
    speed = blocks.files.get(f"{folder}/current_link_speed", "").split(" ")[0]
    width = blocks.files.get(f"{folder}/current_link_width", "").strip()
    return _GENERATIONS.get(speed), int(width) if width.isdecimal() else None


def _unescape(text: str) -> str:
    """Undo the kernel's octal escapes of white space and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def parse_mounts(
    mountinfo: str, spaces: Mapping[str, list[int]], blocks: Blocks
) -> tuple[Mount, ...]:
    """Return the file systems that can hold data, by folder; a later mount covers an earlier one.

    Args:
        mountinfo: /proc/self/mountinfo.
        spaces: per mount point: size, free bytes, whether it is read-only, whether it is a folder.
        blocks: the devices.
    """
    found: dict[str, Mount] = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        fields, rest = head.split(" "), tail.split(" ")
        folder, kind, source = _unescape(fields[4]), rest[0], _unescape(rest[1])
        space = spaces.get(folder)
        kernels = any(folder == own or folder.startswith(own + "/") for own in _KERNEL_FOLDERS)
        if kernels or (kind not in _NETWORK and (space is None or not space[3])):
            continue
        read_only = "ro" in (*fields[5].split(","), *rest[-1].split(","))
        found[folder] = Mount(
            folder=folder,
            file_system=kind,
            source=source,
            medium=blocks.disk_of(blocks.named(fields[2], source)),
            size_bytes=space[0] if space else None,
            available_bytes=space[1] if space else None,
            read_only=read_only or bool(space and space[2]),
            options=fields[5],
        )
    return tuple(found[folder] for folder in sorted(found)[:_MOUNTS_MOST])


def parse_swaps(
    text: str, blocks: Blocks, media: tuple[Medium, ...], mounts: tuple[Mount, ...]
) -> tuple[Swap, ...]:
    """Return the swap areas of /proc/swaps; sizes there are KiB."""
    kinds = {medium.name: medium.kind for medium in media}
    found = []
    for line in text.splitlines()[1:]:
        place, _, size, used, _ = line.split()
        place = _unescape(place)
        device = PurePosixPath(blocks.links.get(place, place)).name
        if place.startswith("/dev/"):
            kind = "zram" if device.startswith("zram") else kinds.get(blocks.disk_of(device), "")
        else:
            holding = [m for m in mounts if place.startswith(m.folder.rstrip("/") + "/")]
            below = max(holding, key=lambda row: len(row.folder), default=None)
            kind = kinds.get(below.medium, "") if below else ""
        found.append(
            Swap(place=place, size_bytes=int(size) * 1024, used_bytes=int(used) * 1024, kind=kind)
        )
    return tuple(found)
