"""fio: what iozone, dd, hdparm and sysbench fileio measured in the papers, and fsync.

Sequential and random reads and writes of records from 1 KiB to 16 MiB, one at a time, past the page
cache where the file system can do that. Then 4 KiB written and flushed again and again, as the
NameNode's edit log or a database does.

Source: fio 3.33, HOWTO; Baun 2016, Tables 4 to 6; Lee, Oh and Park 2021, Table 10; Gamess and
Hernandez 2022, Figs. 17, 18 and 20; Lee and Park 2026, Tables 6 and 7.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boardcluster.errors import CapacityError, ProbeOutputError, RemoteError, UsageError
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.probes.document import json_document, member, positive
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.units import (
    DURATION_ALLOWED,
    KIB,
    MIB,
    SIZE_ALLOWED,
    format_bytes,
    parse_duration,
    parse_size,
)

__all__ = ["PROBE", "FioJob", "FioTarget", "measure", "parse_rate", "parse_sync", "parse_target"]

_TOOL = "fio"
_PATTERNS = {
    "read": "sequential_read",
    "write": "sequential_write",
    "randread": "random_read",
    "randwrite": "random_write",
}
_BLOCK_BYTES = 4 * KIB
_LARGEST_BYTES = 16 * MIB
_QUICK_RECORDS_BYTES = (_BLOCK_BYTES, 512 * KIB, _LARGEST_BYTES)
_PAPER_RECORDS_BYTES = tuple(KIB << power for power in range(15))
_SIZE_BYTES = {ProbeMode.QUICK: 64 * MIB, ProbeMode.PAPER: 512 * MIB}
_TEST_SECONDS = {ProbeMode.QUICK: 2, ProbeMode.PAPER: 20}
_IN_MEMORY = ("tmpfs", "ramfs")
_CACHING = (*_IN_MEMORY, "zfs", "btrfs")
"""They take O_DIRECT and may use a cache all the same: tmpfs since Linux 6.6, ZFS before 2.3, btrfs
for what has checksums.
"""
_SLOWEST_BYTES_PER_SECOND = 500 * KIB
_PATIENCE_SECONDS = 60
_RATE_ERROR = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class FioJob:
    """One run of fio."""

    pattern: str
    """Fio's ``rw``: ``read``, ``write``, ``randread`` or ``randwrite``."""
    record_bytes: int
    """Bytes of each read or write."""
    size_bytes: int
    """Size of the file."""
    direct: bool
    """Whether to open it with O_DIRECT."""
    seconds: int
    """How long to go on, again from the start if need be; 0 for once through the file."""
    flush: bool = False
    """Whether to call fsync after each write."""

    def options(self, file: str) -> list[str]:
        """Return fio's arguments."""
        return [
            *("--name=boardcluster", f"--filename={file}", f"--size={self.size_bytes}"),
            *(f"--rw={self.pattern}", f"--bs={self.record_bytes}", f"--direct={int(self.direct)}"),
            *("--ioengine=psync", "--iodepth=1", "--numjobs=1", "--fallocate=none"),
            *(("--time_based", f"--runtime={self.seconds}") if self.seconds else ()),
            *(("--fsync=1",) if self.flush else ()),
            *(("--end_fsync=1",) if "write" in self.pattern else ()),
            *("--output-format=json", "--eta=never"),
        ]

    @property
    def timeout_seconds(self) -> float:
        """How long to wait for it at most."""
        once_seconds = 0 if self.seconds else self.size_bytes / _SLOWEST_BYTES_PER_SECOND
        record_seconds = self.record_bytes / _SLOWEST_BYTES_PER_SECOND
        return _PATIENCE_SECONDS + self.seconds + once_seconds + record_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class FioTarget:
    """Where the file will be."""

    free_bytes: int
    """Free for this user."""
    file_system: str
    """Its type."""


def parse_target(text: str) -> FioTarget:
    """Read ``df -B1 --output=avail,fstype``.

    Raises:
        ProbeOutputError: it is something else.
    """
    lines = text.strip().splitlines()
    words = lines[-1].split() if len(lines) == 2 else []
    if len(words) != 2 or not words[0].isdecimal():
        raise ProbeOutputError(f"df printed no free space: {text.strip()[-80:]!r}")
    return FioTarget(free_bytes=int(words[0]), file_system=words[1])


def _only_job(text: str, job: FioJob) -> Mapping[str, Any]:
    """Return the part of fio's output that is about the job, if it is about this one."""
    jobs = member(json_document(text, _TOOL), "jobs", tool=_TOOL)
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
        raise ProbeOutputError("fio's output is not about exactly one job")
    row: dict[str, Any] = jobs[0]
    error = member(row, "error", tool=_TOOL)
    if error != 0:
        raise ProbeOutputError(f"fio's job failed with error {error!r}")
    options = member(row, "job options", tool=_TOOL)
    for name, wanted in {
        "rw": job.pattern,
        "bs": job.record_bytes,
        "direct": int(job.direct),
    }.items():
        found = member(options, name, tool=_TOOL)
        if found != str(wanted):
            raise ProbeOutputError(f"fio ran with {name}={found!r}, asked for {str(wanted)!r}")
    return row


def parse_rate(text: str, job: FioJob) -> tuple[float, float]:
    """Read what a job moved: bytes per second and operations per second.

    Raises:
        ProbeOutputError: it is not JSON of this job, the job failed, or its numbers contradict
            each other.
    """
    row = _only_job(text, job)
    way = "read" if "read" in job.pattern else "write"
    rate = positive(row, way, "bw_bytes", tool=_TOOL)
    operations = positive(row, way, "iops", tool=_TOOL)
    moved_bytes = positive(row, way, "io_bytes", tool=_TOOL)
    milliseconds = positive(row, way, "runtime", tool=_TOOL)
    follows = moved_bytes * 1000 / milliseconds
    # Times are whole milliseconds, which matters to a file that is written in a few of them.
    error = follows * (_RATE_ERROR + 1 / milliseconds)
    if abs(follows - rate) > error:
        raise ProbeOutputError(
            f"fio's {moved_bytes:.0f} bytes in {milliseconds:.0f} ms are not {rate:.0f} bytes/s"
        )
    if abs(operations * job.record_bytes - rate) > 2 * error:
        raise ProbeOutputError(
            f"fio's {operations:.1f} operations/s of {job.record_bytes} bytes are not "
            f"{rate:.0f} bytes/s"
        )
    return rate, operations


def parse_sync(text: str, job: FioJob) -> tuple[float, float, int]:
    """Read how long fsync took: mean and 99th percentile in seconds, and how often it was called.

    Raises:
        ProbeOutputError: as ``parse_rate``.
    """
    row = _only_job(text, job)
    calls = positive(row, "sync", "total_ios", tool=_TOOL)
    mean_ns = positive(row, "sync", "lat_ns", "mean", tool=_TOOL)
    least_ns = positive(row, "sync", "lat_ns", "min", tool=_TOOL)
    most_ns = positive(row, "sync", "lat_ns", "max", tool=_TOOL)
    late_ns = positive(row, "sync", "lat_ns", "percentile", "99.000000", tool=_TOOL)
    # Percentiles are kept in buckets that are 1/64 wide.
    if not least_ns <= mean_ns <= most_ns or not least_ns * 0.98 <= late_ns <= most_ns * 1.02:
        raise ProbeOutputError(
            f"fio's fsync latencies contradict each other: {least_ns:.0f} to {most_ns:.0f} ns, "
            f"mean {mean_ns:.0f}, 99 % within {late_ns:.0f}"
        )
    return mean_ns / 1e9, late_ns / 1e9, int(calls)


def _settings(site: Site) -> tuple[int, int]:
    """Return size of the file in bytes and seconds of each test."""
    size_bytes, seconds = _SIZE_BYTES[site.mode], _TEST_SECONDS[site.mode]
    try:
        if "fio_size" in site.settings:
            size_bytes = parse_size(site.settings["fio_size"])
        if "fio_seconds" in site.settings:
            seconds = math.ceil(parse_duration(site.settings["fio_seconds"]))
    except ValueError as error:
        raise UsageError(
            f"fio: {error}",
            hint=f"fio_size: {SIZE_ALLOWED}; fio_seconds: {DURATION_ALLOWED}",
        ) from error
    if size_bytes < 2 * _LARGEST_BYTES or size_bytes % _LARGEST_BYTES or not 1 <= seconds <= 3600:
        raise UsageError(
            f"fio: size {format_bytes(size_bytes, binary=True)}, {seconds} s",
            hint="use a multiple of 16 MiB, at least 32 MiB, and 1 s to 1 h",
        )
    return size_bytes, seconds


def _check_space(site: Site, place: FioTarget, size_bytes: int) -> None:
    """Refuse a file that takes more than half of what is free, or a quarter of the memory."""
    bounds = {"half of the free space": (place.free_bytes, 2)}
    if place.file_system in _IN_MEMORY:
        bounds["a quarter of the memory, where this file system keeps it"] = (site.memory_bytes, 4)
    for words, (whole_bytes, divisor) in bounds.items():
        if size_bytes > whole_bytes // divisor:
            raise CapacityError(
                f"{site.node}: fio's file of {format_bytes(size_bytes, binary=True)} in "
                f"{site.folder} is more than {words}: "
                f"{format_bytes(whole_bytes, binary=True)} / {divisor} = "
                f"{format_bytes(whole_bytes // divisor, binary=True)}",
                hint="free some space on that medium",
            )


def _least_direct_bytes(site: Site, records_bytes: tuple[int, ...]) -> int | None:
    """Find the smallest record that can be written past the page cache; None if none can."""
    for record_bytes in sorted({*records_bytes, _BLOCK_BYTES}):
        if record_bytes > _BLOCK_BYTES:
            break
        argv = [
            *("dd", "if=/dev/zero", f"of={site.folder}/fio.direct", f"bs={record_bytes}"),
            *("count=1", "oflag=direct"),
        ]
        done = site.remote.run(argv, check=False)
        if done.returncode == 0:
            return record_bytes
        if b"Invalid argument" not in done.stderr:
            words = done.stderr.decode(errors="replace").strip()
            raise RemoteError(f"{site.node}: {shlex.join(argv)}: {words[-300:]}")
    return None


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Fill one file, then read and write it by pattern and record size, then flush.

    Raises:
        CapacityError: the file does not fit.
        UsageError: a setting is wrong.
    """
    quick = site.mode is ProbeMode.QUICK
    records_bytes = _QUICK_RECORDS_BYTES if quick else _PAPER_RECORDS_BYTES
    size_bytes, seconds = _settings(site)
    found = site.remote.run(["df", "-B1", "--output=avail,fstype", site.folder])
    place = parse_target(found.text)
    _check_space(site, place, size_bytes)
    file = f"{site.folder}/fio.bin"
    try:
        least_bytes = _least_direct_bytes(site, records_bytes)
        if least_bytes is None or place.file_system in _CACHING:
            site.tell(
                f"{place.file_system} does not support O_DIRECT reliably: figures have direct=no"
            )
        fill = FioJob(
            pattern="write",
            record_bytes=MIB,
            size_bytes=size_bytes,
            direct=least_bytes is not None,
            seconds=0,
        )
        site.tell(f"writing {format_bytes(size_bytes, binary=True)}")
        _run(site, fill, file)
        figures = []
        for record_bytes in records_bytes:
            for pattern in _PATTERNS:
                job = FioJob(
                    pattern=pattern,
                    record_bytes=record_bytes,
                    size_bytes=size_bytes,
                    direct=least_bytes is not None and record_bytes >= least_bytes,
                    seconds=seconds,
                )
                figures += _rates(site, place, job, file)
        return (*figures, *_flushes(site, place, size_bytes, seconds, file))
    finally:
        site.remote.run(["rm", "-f", file, f"{site.folder}/fio.direct"], check=False)


def _run(site: Site, job: FioJob, file: str) -> str:
    argv = [_TOOL, *job.options(file)]
    return site.remote.run(argv, cwd=site.folder, timeout_seconds=job.timeout_seconds).text


def _rates(site: Site, place: FioTarget, job: FioJob, file: str) -> list[ProbeFigure]:
    words = _PATTERNS[job.pattern]
    site.tell(f"{words.replace('_', ' ')}, {format_bytes(job.record_bytes, binary=True)}")
    rate, operations = parse_rate(_run(site, job, file), job)
    conditions = {
        "record_bytes": str(job.record_bytes),
        "direct": "yes" if job.direct and place.file_system not in _CACHING else "no",
    }
    values = {f"fio_{words}_bytes_per_second": rate}
    if job.record_bytes == _BLOCK_BYTES:
        values[f"fio_{words}_operations_per_second"] = operations
    return figures_from(values, conditions)


def _flushes(
    site: Site, place: FioTarget, size_bytes: int, seconds: int, file: str
) -> list[ProbeFigure]:
    site.tell("fsync after each 4 KiB")
    job = FioJob(
        pattern="write",
        record_bytes=_BLOCK_BYTES,
        size_bytes=size_bytes,
        direct=False,
        seconds=seconds,
        flush=True,
    )
    mean_seconds, late_seconds, calls = parse_sync(_run(site, job, file), job)
    values = {
        "fio_fsync_mean_seconds": mean_seconds,
        "fio_fsync_p99_seconds": late_seconds,
        "fio_fsync_calls": float(calls),
    }
    conditions = {"record_bytes": str(_BLOCK_BYTES), "file_system": place.file_system}
    return figures_from(values, conditions)


PROBE = Probe(
    name="fio",
    area="storage",
    summary="sequential and random reads and writes by record size, 4K IOPS, fsync",
    matches=(
        "Baun 2016, Tables 4, 5 and 6",
        "Lee, Oh and Park 2021, Table 10",
        "Gamess and Hernandez 2022, Figs. 17, 18 and 20",
        "Lee and Park 2026, Tables 6, 7 and 22",
    ),
    tools=(NodeTool(program="fio", package="fio"),),
    measure=measure,
    quick_seconds=45.0,
    paper_seconds=1300.0,
)
