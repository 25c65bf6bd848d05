"""The rows in HDFS that TeraSort and TeraValidate read, made once by stock TeraGen."""

from __future__ import annotations

from boardcluster.records import Engine
from boardcluster.workloads.base import Context, JobSpec, Phase, StagedInput
from boardcluster.workloads.commands import example_command
from boardcluster.workloads.inputs import input_folder
from boardcluster.workloads.tera import rows_of
from boardcluster.workloads.tera_proof import (
    expected_totals,
    read_output,
    read_totals,
    require_right,
)
from boardcluster.workloads.tera_rows import ROW_BYTES

__all__ = ["parts_bytes", "provide_rows"]


def parts_bytes(context: Context, folder: str) -> int | None:
    """Return the size of all part files of a folder in HDFS; None where there is no such folder."""
    if not context.hdfs.exists(folder):
        return None
    return sum(
        entry.size_bytes
        for entry in context.hdfs.list(folder)
        if entry.is_file and entry.name.startswith("part-")
    )


def provide_rows(context: Context, spec: JobSpec) -> StagedInput:
    """Put the rows of a job spec into HDFS with stock TeraGen, unless they are there.

    They appear under their name only after they were read back and proved right.

    Raises:
        RunError: TeraGen failed.
        VerificationError: its rows are wrong.
    """
    count, maps = rows_of(spec), spec.input_maps
    folder = input_folder(f"tera-{count}-m{maps}" if maps else f"tera-{count}", spec)
    expected = expected_totals(count, context.cache)
    staged = StagedInput(input_path=folder, input_bytes=count * ROW_BYTES, expected=expected)
    if parts_bytes(context, folder) == count * ROW_BYTES:
        return staged
    partial = f"{folder}.partial"
    context.progress("generating the input in HDFS", 0, count * ROW_BYTES)
    context.hdfs.delete(folder)
    context.hdfs.delete(partial)

    def generate(conf: str) -> Phase:
        options = [f"-Dmapreduce.job.maps={maps}"] if maps else []
        arguments = ["teragen", *options, str(count), partial]
        command = example_command(context.live.layout, conf=conf, arguments=arguments)
        return Phase(name="generate-input", command=command)

    context.run_job(Engine.MAPREDUCE, generate)
    reader = read_output(context, partial)
    require_right(reader, read_totals(expected), what="the generated input", ordered=False)
    context.hdfs.rename(partial, folder)
    context.progress("generating the input in HDFS", count * ROW_BYTES, count * ROW_BYTES)
    return staged
