"""The output a job committed in HDFS, fetched to be judged."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.workloads.base import Context

__all__ = ["committed_parts", "fetch_parts"]

_READERS = 4


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

    def fetch(name: str) -> Path:
        context.hdfs.get(f"{folder}/{name}", target / name)
        return target / name

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(fetch, parts))
