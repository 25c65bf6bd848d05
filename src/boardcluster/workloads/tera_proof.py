"""What a number of TeraGen's rows must be, and the proof that an output is that."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import made_once, require_space, sha256_of
from boardcluster.records import Verification
from boardcluster.workloads.base import Context, Proof, StagedInput
from boardcluster.workloads.outputs import FETCHED_AT_ONCE, committed_parts, fetch_files
from boardcluster.workloads.tera_reading import PartReader, Totals
from boardcluster.workloads.tera_rows import ROW_BYTES, checksum_of_rows

__all__ = ["expected_totals", "prove", "read_output", "read_totals", "require_right"]


def expected_totals(count: int, cache: Path) -> Path:
    """Return the file of what that many rows of TeraGen must be; computed once.

    Args:
        count: number of rows.
        cache: the driver's cache folder.
    """

    def compute(target: Path) -> None:
        totals = Totals(rows=count, checksum=checksum_of_rows(count))
        target.write_text(totals.text, encoding="ascii")

    target = cache / "expected" / "tera" / str(count)
    return made_once(target, compute, purpose="computing a checksum")


def read_totals(path: Path) -> Totals:
    """Return what `expected_totals` wrote."""
    fields = dict(line.split("\t") for line in path.read_text(encoding="ascii").splitlines())
    return Totals(rows=int(fields["rows"]), checksum=int(fields["checksum"], 16))


def read_output(context: Context, folder: str) -> PartReader:
    """Read the part files of a job in name order, a few on the driver's disk at a time.

    Raises:
        VerificationError: the job did not commit its output, or a file does not hold whole rows.
        CapacityError: the driver's disk cannot hold the largest files.
        RemoteError: HDFS does not answer.
    """
    parts = committed_parts(context, folder)
    sizes = [entry.size_bytes for entry in parts]
    largest = sum(sorted(sizes)[-FETCHED_AT_ONCE:])
    require_space(context.work, need_bytes=largest, purpose=f"reading {folder}")
    scratch = context.work / "parts"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    reader = PartReader()
    for first in range(0, len(parts), FETCHED_AT_ONCE):
        some, before_bytes = parts[first : first + FETCHED_AT_ONCE], sum(sizes[:first])
        for part in fetch_files(
            context,
            folder,
            some,
            target=scratch,
            before_bytes=before_bytes,
            total_bytes=sum(sizes),
        ):
            reader.read(part)
            part.unlink()
    return reader


def require_right(reader: PartReader, expected: Totals, *, what: str, ordered: bool) -> None:
    """Compare what was read with what must be there.

    Args:
        reader: it has read everything.
        expected: what must be there.
        what: whose rows they are, for the message.
        ordered: whether they must be in order.

    Raises:
        VerificationError: rows are missing, too many, changed or out of order.
    """
    if reader.totals != expected:
        raise VerificationError(
            f"{what} has {reader.totals}; expected {expected}", hint="look at the job's log"
        )
    if ordered and reader.misorders:
        first = "\n  ".join(str(one) for one in reader.first_misorders)
        raise VerificationError(
            f"{what} is not sorted in {reader.misorders} places; the first:\n  {first}",
            hint="look at the job's log",
        )


def prove(
    context: Context, staged: StagedInput, folder: str, *, what: str, method: str, ordered: bool
) -> Proof:
    """Read a job's output and compare it with the expected totals.

    Args:
        context: the workload's context.
        staged: holds the file of `expected_totals`.
        folder: the output in HDFS.
        what: whose output it is, for messages.
        method: how it is proved, one sentence.
        ordered: whether it must be in order.

    Raises:
        VerificationError: it is wrong.
    """
    expected = staged.answer()
    reader = read_output(context, folder)
    require_right(reader, read_totals(expected), what=what, ordered=ordered)
    verification = Verification(
        method=method,
        expected_sha256=sha256_of(expected),
        actual_sha256=hashlib.sha256(reader.totals.text.encode()).hexdigest(),
        records=reader.totals.rows,
    )
    return Proof(verification=verification, output_bytes=reader.totals.rows * ROW_BYTES)
