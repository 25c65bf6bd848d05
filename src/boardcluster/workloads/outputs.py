"""The output a job committed in HDFS, fetched to be judged."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import require_space
from boardcluster.services.webhdfs import HdfsEntry
from boardcluster.workloads.base import Context

__all__ = ["FETCHED_AT_ONCE", "committed_parts", "fetch_files", "fetch_parts"]

FETCHED_AT_ONCE = 4

_SPACE_TIMES = 3
"""The parts, what sorting them needs meanwhile, and the sorted lines."""

_TOLD_BYTES = 64 << 20
"""Reading less is over before anybody would ask what is being done."""


def committed_parts(context: Context, folder: str) -> list[HdfsEntry]:
    """Return a job's part files, in the order of their numbers.

    Raises:
        VerificationError: the job did not commit its output.
    """
    files = [entry for entry in context.hdfs.list(folder) if entry.is_file]
    if all(entry.name != "_SUCCESS" for entry in files):
        raise VerificationError(
            f"{folder} has no _SUCCESS mark: the job did not commit its output",
            hint="look at the job's log",
        )
    parts = (entry for entry in files if entry.name.startswith("part-"))
    # From 100,000 on, their numbers have more digits.
    return sorted(parts, key=lambda entry: (len(entry.name), entry.name))


def fetch_parts(context: Context, folder: str) -> list[Path]:
    """Fetch a job's part files into the context's work folder, in order.

    Raises:
        VerificationError: the job did not commit its output.
        CapacityError: the driver's disk cannot hold them, and what sorting them takes.
        RemoteError: HDFS does not answer.
    """
    parts = committed_parts(context, folder)
    target = context.work / "output" / folder.strip("/").replace("/", "-")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    total_bytes = sum(entry.size_bytes for entry in parts)
    require_space(target, need_bytes=_SPACE_TIMES * total_bytes, purpose=f"reading {folder}")
    files = fetch_files(context, folder, parts, target=target, total_bytes=total_bytes)
    if total_bytes >= _TOLD_BYTES:
        context.progress("comparing the output", 0, 0)
    return files


def fetch_files(
    context: Context,
    folder: str,
    entries: Sequence[HdfsEntry],
    *,
    target: Path,
    before_bytes: int = 0,
    total_bytes: int,
) -> list[Path]:
    """Fetch files of a folder in HDFS into a folder that exists, a few at once.

    Args:
        context: the workload's context.
        folder: the folder in HDFS.
        entries: the files.
        target: the folder that they are fetched into.
        before_bytes: what was fetched before, for the progress.
        total_bytes: what is to be fetched in all.

    Raises:
        RemoteError: HDFS does not answer.
    """

    def fetch(entry: HdfsEntry) -> Path:
        context.hdfs.get(f"{folder}/{entry.name}", target / entry.name)
        return target / entry.name

    files, done_bytes = [], before_bytes
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        for entry, file in zip(entries, pool.map(fetch, entries), strict=True):
            files.append(file)
            done_bytes += entry.size_bytes
            if total_bytes >= _TOLD_BYTES:
                context.progress("reading the output", done_bytes, total_bytes)
    return files
