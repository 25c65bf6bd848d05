"""What is written to the volume, and what every file must hold in the end. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boardcluster.units import KIB, MIB
from boardcluster.workloads.filestore.tree import content, name_of

__all__ = [
    "CLASSES",
    "PASSES",
    "STEP_BYTES",
    "TREE",
    "BlockClass",
    "Pass",
    "block_files",
    "expected_files",
    "fio_jobs",
    "total_bytes",
]

TREE = "tree"
"""Folder of the small files."""

_FILES = 4
"""Files of each block size, so that sets of bricks share them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockClass:
    """Files that are written and read with one block size."""

    name: str
    """In names of files and figures."""
    block_bytes: int
    """The block size."""
    step_bytes: int
    """Bytes of its files together, of each step of the size."""


CLASSES = (
    BlockClass(name="4_kib", block_bytes=4 * KIB, step_bytes=8 * MIB),
    BlockClass(name="512_kib", block_bytes=512 * KIB, step_bytes=56 * MIB),
    BlockClass(name="16_mib", block_bytes=16 * MIB, step_bytes=64 * MIB),
)
"""The record sizes that the papers gave iozone: 4 KiB, 512 KiB, 16 MiB."""

STEP_BYTES = sum(each.step_bytes for each in CLASSES)
"""Least size: each file of 16 MiB blocks has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One way through all files."""

    name: str
    """Of its phase."""
    mode: str
    """Fio's ``rw``."""
    content: str
    """Which content it writes, or must find."""

    @property
    def writes(self) -> bool:
        """Whether it writes."""
        return "write" in self.mode

    @property
    def figure(self) -> str:
        """Its name in figures."""
        return self.name.replace(" ", "_")


PASSES = (
    Pass(name="sequential write", mode="write", content="first"),
    Pass(name="sequential read", mode="read", content="first"),
    Pass(name="random write", mode="randwrite", content="second"),
    Pass(name="random read", mode="randread", content="second"),
)
"""Random writes put another content in the place of the first, each block once."""


def _mark(block: BlockClass, which: str) -> bytes:
    """Return the four bytes that a content begins each unit with."""
    return hashlib.sha256(f"{block.name} {which}".encode()).digest()[:4]


def total_bytes(size_bytes: int) -> int:
    """Return the bytes of the files that are made for a size; a rest is left out."""
    return size_bytes // STEP_BYTES * STEP_BYTES


def block_files(block: BlockClass, size_bytes: int) -> dict[str, int]:
    """Return the files of a block size, each with its bytes."""
    each = size_bytes // STEP_BYTES * block.step_bytes // _FILES
    return {f"{block.name}-{number}": each for number in range(_FILES)}


def fio_jobs(which: Pass, *, size_bytes: int, folder: str) -> str:
    """Return fio's job file of a pass: the block sizes one after the other.

    Each block holds its own place in the file, so that a block at a wrong place, or an old one, is
    found. Source: fio 3.33, HOWTO, ``verify_pattern`` with ``%o``.
    """
    lines = [
        "[global]",
        f"directory={folder}",
        f"rw={which.mode}",
        *("ioengine=psync", "direct=1", "fallocate=none", "stonewall", "verify=pattern"),
        *(("do_verify=0", "end_fsync=1") if which.writes else ()),
    ]
    for block in CLASSES:
        files = block_files(block, size_bytes)
        lines += [
            f"[{block.name}]",
            f"bs={block.block_bytes}",
            f"size={sum(files.values())}",
            f"filename={':'.join(files)}",
            f"verify_pattern=0x{_mark(block, which.content).hex()}%o",
        ]
    return "".join(f"{line}\n" for line in lines)


def _blocks(block: BlockClass, which: str, size_bytes: int) -> Iterator[bytes]:
    """Yield what the blocks of a file hold: mark and place, again and again."""
    mark = _mark(block, which)
    for place in range(0, size_bytes, block.block_bytes):
        unit = mark + place.to_bytes(8, "little")
        yield (unit * (block.block_bytes // len(unit) + 1))[: block.block_bytes]


def _digest(parts: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def expected_files(
    *, size_bytes: int, files: int, file_bytes: int, passes: Sequence[Pass] = PASSES
) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of every file that must be there in the end, by its path.

    Args:
        size_bytes: bytes of all files with blocks.
        files: small files.
        file_bytes: bytes of each.
        passes: what was done.
    """
    last = passes[-1].content
    found: dict[str, tuple[int, str]] = {}
    for block in CLASSES:
        names = block_files(block, size_bytes)
        each = next(iter(names.values()))
        digest = _digest(_blocks(block, last, each))
        found |= dict.fromkeys(names, (each, digest))
    for number in range(files):
        name = name_of(number)
        body = content(name, file_bytes)
        found[f"{TREE}/{name}"] = (file_bytes, hashlib.sha256(body).hexdigest())
    return found
