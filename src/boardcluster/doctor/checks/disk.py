"""The disks of home and cache have room and can be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.machine import Disk
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.services.install import find_installation
from boardcluster.services.room import FULL_PERCENT, used_percent
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_WANTED_BYTES = 2_000_000_000
"""The demo: 256 MB twice in HDFS, and intermediate data of several times the input."""

_INSTALL_BYTES = 1_200_000_000
"""Engines while they are unpacked; 0.6 GB stay, and 0.2 GB of class-data archives come."""


def look(around: Surroundings) -> Iterator[Finding]:
    """Look at both folders, or at the places where they will be made."""
    home = around.machine.disk(around.home)
    cache = around.machine.disk(around.cache)
    faults = [
        *_not_writable(around.home, home, option="--home"),
        *_not_writable(around.cache, cache, option="--cache"),
        *_nearly_full(around.home, home),
        *_too_small_for_engines(around, cache),
    ]
    yield from faults
    if not faults:
        yield CHECK.good(
            f"{format_bytes(home.available_bytes)} free for {around.home}, "
            f"{format_bytes(cache.available_bytes)} for {around.cache}"
        )


def _not_writable(folder: Path, disk: Disk, *, option: str) -> Iterator[Finding]:
    if disk.writable:
        return
    own = f'sudo chown -R "$USER" {folder}, or ' if disk.place == str(folder) else ""
    yield CHECK.wrong(
        f"nothing can be written to {disk.place}",
        why=f"{folder} is there or would be made there.",
        fix=f"{own}choose another folder with {option}",
    )


def _nearly_full(home: Path, disk: Disk) -> Iterator[Finding]:
    percent = used_percent(total_bytes=disk.total_bytes, available_bytes=disk.available_bytes)
    room_bytes = int(disk.available_bytes - disk.total_bytes * (1 - FULL_PERCENT / 100))
    where = f"the disk of {home} is {percent:.0f} % full"
    look_for = f"`du -xh --max-depth=2 {disk.place} | sort -h | tail` shows what is large"
    if percent > FULL_PERCENT:
        yield CHECK.wrong(
            where,
            fix=f"free {format_bytes(-room_bytes + _WANTED_BYTES)} there ({look_for}), or choose "
            "a larger disk with --home",
        )
    elif room_bytes < _WANTED_BYTES:
        yield CHECK.wrong(
            f"{where}; {format_bytes(room_bytes)} more and YARN gives it up",
            severity=Severity.WARNING,
            fix=f"free {format_bytes(_WANTED_BYTES - room_bytes)} there ({look_for})",
        )


def _too_small_for_engines(around: Surroundings, disk: Disk) -> Iterator[Finding]:
    if disk.available_bytes >= _INSTALL_BYTES:
        return
    if find_installation(around.pair, cache=around.cache) is None:
        yield CHECK.wrong(
            f"{format_bytes(disk.available_bytes)} free for {around.cache}; installing the engines "
            f"takes {format_bytes(_INSTALL_BYTES)} for a while",
            why="The installation would stop half-way. What was fetched until then is kept.",
            fix=f"free {format_bytes(_INSTALL_BYTES - disk.available_bytes)} there, or choose "
            "another folder with --cache",
        )


CHECK = Check(
    name="disk",
    looks_at="Free space and permissions of the file systems of home and cache, counted as YARN "
    "counts.",
    why="YARN gives up a node whose disk is more than 90 % full. Its jobs then wait without a "
    "message.",
    source='Apache Hadoop, "NodeManager", Disk Checker',
    severity=Severity.ERROR,
    look=look,
)
