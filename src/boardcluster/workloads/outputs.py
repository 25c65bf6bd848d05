"""The output a job committed in HDFS, fetched to be judged."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.workloads.base import Context

__all__ = ["FETCHED_AT_ONCE", "committed_parts", "fetch_files", "fetch_parts"]

FETCHED_AT_ONCE = 4


def committed_parts(context: Context, folder: str) -> list[str]:
    """Return the names of a job's part files, in order.

    Raises:
        VerificationError: the job did not commit its output.
    """
    names = [entry.name for entry in context.hdfs.list(folder) if entry.is_file]
    if "_SUCCESS" not in names:
        raise VerificationError(
            f"{folder} has no _SUCCESS mark: the job did not commit its output",
            hint="look at the job's log",
        )
    return sorted(name for name in names if name.startswith("part-"))


def fetch_parts(context: Context, folder: str) -> list[Path]:
    """Fetch a job's part files into the context's work folder, in order.

    Raises:
        VerificationError: the job did not commit its output.
        RemoteError: HDFS does not answer.
    """
    parts = committed_parts(context, folder)
    target = context.work / "output" / folder.strip("/").replace("/", "-")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    return fetch_files(context, folder, parts, target=target)


def fetch_files(context: Context, folder: str, names: Sequence[str], *, target: Path) -> list[Path]:
    """Fetch files of a folder in HDFS into a folder that exists, a few at once.

    Raises:
        RemoteError: HDFS does not answer.
    """

    def fetch(name: str) -> Path:
        context.hdfs.get(f"{folder}/{name}", target / name)
        return target / name

    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        return list(pool.map(fetch, names))
