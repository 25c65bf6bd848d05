"""What the two engines say about a half of TestDFSIO, read once into one form.

Both define, over the files of a half, each with its bytes and the time its task took to write or
read them: the throughput is all bytes by the sum of all times; the average rate is the mean of each
file's bytes by its time; the deviation is the standard deviation of these rates (of the whole set,
not of a sample). A "MB" of TestDFSIO is 2^20 bytes.
Source: Apache Hadoop 3.4.2, ``TestDFSIO.analyzeResult`` and ``TestDFSIO.IOStatMapper``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boardcluster.errors import VerificationError

__all__ = ["Measured", "of_mapreduce", "of_spark"]

_MEBI = 1 << 20
_SECOND_MILLISECONDS = 1000
_RATE_UNIT = 1000  # TestDFSIO's tasks report a thousand times their rate
_MOST_BYTES = 1 << 24
_FIGURES = (
    "throughput_mebibytes_per_second",
    "average_io_rate_mebibytes_per_second",
    "io_rate_deviation_mebibytes_per_second",
    "execution_seconds",
)
_TOTAL = re.compile(r"^[lf]:(tasks|size|time|rate|sqrate)\t([0-9.E+]+|Infinity|NaN)$")
_EXECUTION = re.compile(r"^\s*Test exec time sec:\s*([0-9]*\.?[0-9]+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One half, writing or reading."""

    files: int
    """Number of files."""
    total_bytes: int
    """Bytes of all files together."""
    throughput_mebibytes_per_second: float
    """All bytes over the sum of the files' own times: what one task had."""
    average_io_rate_mebibytes_per_second: float
    """Mean over the files of each one's rate."""
    io_rate_deviation_mebibytes_per_second: float
    """Standard deviation of the files' rates."""
    execution_seconds: float
    """The engine's own clock around the whole half."""

    def figures(self, half: str) -> dict[str, float]:
        """Return what was measured under the names that are stored, beginning with the half's."""
        return {f"{half}_{name}": getattr(self, name) for name in _FIGURES}


def of_mapreduce(totals: Path, result: Path) -> Measured:
    """Return what TestDFSIO measured.

    Its result file rounds to two decimals, which is coarse where a card writes 1 MB/s, so only the
    time of execution is taken from it; the rest follows from the sums of its job.

    Args:
        totals: the part file of its job: sums over all tasks.
        result: its result file.

    Raises:
        VerificationError: a file is not of this form, or a time was too short to be measured.
    """
    sums: dict[str, str] = {}
    for line in _read(totals).splitlines():
        if found := _TOTAL.fullmatch(line):
            sums[found[1]] = found[2]
    executions = _EXECUTION.findall(_read(result))
    if len(sums) != len(("tasks", "size", "time", "rate", "sqrate")) or len(executions) != 1:
        raise VerificationError(
            f"{totals.name} or {result.name} is not in TestDFSIO's format",
            hint="look at the engine's logs in the attempt's folder",
        )
    files, total_bytes, milliseconds = (int(sums[name]) for name in ("tasks", "size", "time"))
    if files < 1 or milliseconds < 1:
        raise _too_short(totals.name)
    mean = float(sums["rate"]) / _RATE_UNIT / files
    square = float(sums["sqrate"]) / _RATE_UNIT / files
    return _checked(
        Measured(
            files=files,
            total_bytes=total_bytes,
            throughput_mebibytes_per_second=total_bytes
            / _MEBI
            / (milliseconds / _SECOND_MILLISECONDS),
            average_io_rate_mebibytes_per_second=mean,
            io_rate_deviation_mebibytes_per_second=math.sqrt(abs(square - mean * mean)),
            execution_seconds=float(executions[0]),
        ),
        totals.name,
    )


def of_spark(stdout: Path, *, half: str) -> Measured:
    """Return what Spark's job measured: one line of JSON among what it printed.

    Args:
        stdout: what it printed.
        half: ``write`` or ``read``.

    Raises:
        VerificationError: there is not one such line, it is of the other half, or its parts
            contradict its whole.
    """
    lines = [line for line in _read(stdout).splitlines() if line.startswith('{"operation"')]
    if len(lines) != 1:
        raise VerificationError(
            f"{len(lines)} results were printed, not 1", hint="look at the job's standard output"
        )
    try:
        row: Mapping[str, Any] = json.loads(lines[0])
        sizes = [int(size) for size in row["files_bytes"]]
        measured = Measured(
            files=int(row["files"]),
            total_bytes=int(row["total_bytes"]),
            **{name: float(row[name]) for name in _FIGURES},
        )
        operation = str(row["operation"])
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(
            f"the job's result does not have the expected format: {error!r}",
            hint="look at the job's standard output",
        ) from error
    if (operation, len(sizes), sum(sizes)) != (half, measured.files, measured.total_bytes):
        raise VerificationError(
            f"the job lists {operation} of {len(sizes)} files with {sum(sizes)} bytes, but its "
            f"totals are for {half} of {measured.files} files with {measured.total_bytes} bytes",
            hint="look at the job's standard output",
        )
    return _checked(measured, stdout.name)


def _checked(measured: Measured, name: str) -> Measured:
    if not all(math.isfinite(figure) for figure in measured.figures("").values()):
        raise _too_short(name)
    return measured


def _too_short(name: str) -> VerificationError:
    return VerificationError(
        f"{name}: a file took less than a millisecond, so its rate is infinite",
        hint="choose a larger size or fewer dfsio.files",
    )


def _read(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(_MOST_BYTES).decode(errors="replace")
