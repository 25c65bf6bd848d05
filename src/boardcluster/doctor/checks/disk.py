"""The disks of home and cache have free space and can be written.

- A folder cannot be written. Fix: `sudo chown`, or another folder.
- Home's disk is more than 90 % full (error), or less than 2 GB away from it (warning), where nodes
  are on this machine. Fix: free as much as is named.
- Less than 1.4 GB is left for engines that are not installed yet. Fix: free as much as is named, or
  use `--cache`.
"""

from collections.abc import Iterator
from pathlib import Path

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.machine import Disk
from boardcluster.services.disk_space import FULL_PERCENT, used_percent
from boardcluster.services.install import find_installation
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_WANTED_BYTES = 2_000_000_000
"""The demo: 256 MB twice in HDFS, and intermediate data of several times the input."""

_INSTALL_BYTES = 1_400_000_000
"""Engines while they are unpacked; 0.6 GB stay, and 0.4 GB of class-data archives come."""


def _look(facts: Facts) -> Faults:
    home, cache = facts.machine.disk(facts.home), facts.machine.disk(facts.cache)
    faults = [
        *_not_writable(facts.home, home, option="--home"),
        *_not_writable(facts.cache, cache, option="--cache"),
        *(_nearly_full(facts.home, home) if facts.declared.capabilities.on_this_machine else ()),
        *_too_small_for_engines(facts, cache),
    ]
    yield from faults
    if not faults:
        yield (
            f"{format_bytes(home.available_bytes)} free for {facts.home}, "
            f"{format_bytes(cache.available_bytes)} for {facts.cache}"
        )


def _not_writable(folder: Path, disk: Disk, *, option: str) -> Iterator[Fault]:
    if not disk.writable:
        own = f'sudo chown -R "$USER" {folder}, or ' if disk.folder == str(folder) else ""
        yield Fault(
            f"nothing can be written to {disk.folder}",
            why=f"{folder} is there or would be created there.",
            fix=f"{own}choose another folder with {option}",
        )


def _nearly_full(home: Path, disk: Disk) -> Iterator[Fault]:
    percent = used_percent(total_bytes=disk.total_bytes, available_bytes=disk.available_bytes)
    left_bytes = int(disk.available_bytes - disk.total_bytes * (1 - FULL_PERCENT / 100))
    seen = f"the disk of {home} is {percent:.0f} % full"
    large = f"`du -xh --max-depth=2 {disk.folder} | sort -h | tail` shows what is large"
    if percent > FULL_PERCENT:
        yield Fault(
            seen,
            fix=f"free {format_bytes(-left_bytes + _WANTED_BYTES)} there ({large}), or choose "
            "a larger disk with --home",
        )
    elif left_bytes < _WANTED_BYTES:
        yield Fault(
            f"{seen}; YARN stops using it after {format_bytes(left_bytes)} more",
            severity=Severity.WARNING,
            fix=f"free {format_bytes(_WANTED_BYTES - left_bytes)} there ({large})",
        )


def _too_small_for_engines(facts: Facts, disk: Disk) -> Iterator[Fault]:
    if disk.available_bytes >= _INSTALL_BYTES:
        return
    if find_installation(facts.pair, cache=facts.cache) is None:
        yield Fault(
            f"{format_bytes(disk.available_bytes)} free for {facts.cache}; installing the engines "
            f"needs {format_bytes(_INSTALL_BYTES)} for a while",
            why="The installation would stop half-way. What was fetched until then is kept.",
            fix=f"free {format_bytes(_INSTALL_BYTES - disk.available_bytes)} there, or choose "
            "another folder with --cache",
        )


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="Free space and permissions of the file systems of home and cache, counted as YARN "
    "counts.",
    why="YARN stops using a node whose disk is more than 90 % full. Its jobs then wait without a "
    "message.",
    source='Apache Hadoop, "NodeManager", Disk Checker',
    severity=Severity.ERROR,
    look=_look,
)
