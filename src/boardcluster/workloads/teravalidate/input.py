"""Sorted rows with two planted faults in HDFS, beside the report that must follow from them.

The report is a file of the same folder, so both appear in one rename and always belong together.
Its name begins with an underscore, which Hadoop's input formats do not read.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from boardcluster.fetch.cache import make_folder, require_space, writing
from boardcluster.records import Engine
from boardcluster.workloads.base import Context, JobSpec, Phase, StagedInput
from boardcluster.workloads.commands import example_command
from boardcluster.workloads.inputs import input_folder, put_file
from boardcluster.workloads.tera import rows_of, sort_arguments
from boardcluster.workloads.tera_input import parts_bytes, provide_rows
from boardcluster.workloads.tera_proof import (
    expected_totals,
    read_output,
    read_totals,
    require_right,
)
from boardcluster.workloads.tera_rows import ROW_BYTES
from boardcluster.workloads.teravalidate.planting import plant_faults

__all__ = ["provide_planted"]

_REPORT = "_expected_report"
_SAMPLE = "_partition.lst"
"""TeraSort's key ranges. It wants ten replicas, so HDFS would report it as incomplete for ever."""
_LEAST_ROWS_OF_A_FILE = 50


def provide_planted(context: Context, spec: JobSpec) -> StagedInput:
    """Put sorted rows with faults into HDFS, unless they are there.

    Raises:
        RunError: TeraGen or TeraSort failed.
        VerificationError: their rows are wrong.
    """
    files = _files(spec)
    folder = input_folder(f"tera-{rows_of(spec)}-planted-{files}", spec)
    size_bytes = (rows_of(spec) - 1) * ROW_BYTES
    is_whole = parts_bytes(context, folder) == size_bytes
    if not is_whole or not context.hdfs.exists(f"{folder}/{_REPORT}"):
        _make(context, spec, folder=folder, files=files)
    return StagedInput(
        input_path=folder, input_bytes=size_bytes, expected=_fetch_report(context, folder)
    )


def _files(spec: JobSpec) -> int:
    """Return how many files the sorted rows are divided among: one per core, whatever the profile.

    A validator has one task per file.
    """
    return max(1, min(spec.workers * spec.worker_cores, rows_of(spec) // _LEAST_ROWS_OF_A_FILE))


def _make(context: Context, spec: JobSpec, *, folder: str, files: int) -> None:
    rows = provide_rows(context, spec)
    partial = f"{folder}.partial"
    context.hdfs.delete(folder)
    context.hdfs.delete(partial)
    context.progress("sorting the input in HDFS", 0, rows.input_bytes)

    def sort(conf: str) -> Phase:
        arguments = sort_arguments(spec, reduces=files, paths=[rows.input_path, partial])
        command = example_command(context.live.layout, conf=conf, arguments=arguments)
        return Phase(name="sort-input", command=command)

    context.run_job(Engine.MAPREDUCE, sort)
    whole = read_totals(expected_totals(rows_of(spec), context.cache))
    reader = read_output(context, partial)
    require_right(reader, whole, what="the sorted input", ordered=True)
    parts = [entry for entry in context.hdfs.list(partial) if entry.name.startswith("part-")]
    largest = max(parts, key=lambda entry: entry.size_bytes)
    require_space(context.work, need_bytes=2 * largest.size_bytes, purpose="planting faults")
    scratch = context.work / "planting"
    make_folder(scratch)
    sound, faulty = scratch / largest.name, scratch / f"{largest.name}.faulty"
    context.hdfs.get(f"{partial}/{largest.name}", sound)
    planted = plant_faults(sound, target=faulty)
    sound.unlink()
    context.hdfs.delete(f"{partial}/{largest.name}")
    put_file(context, spec, faulty, f"{partial}/{largest.name}")
    faulty.unlink()
    report = scratch / _REPORT
    report.write_text(planted.report(whole), encoding="ascii")
    context.hdfs.put(report, f"{partial}/{_REPORT}", replication=spec.replication)
    context.hdfs.delete(f"{partial}/{_SAMPLE}")
    context.hdfs.rename(partial, folder)
    context.progress("sorting the input in HDFS", rows.input_bytes, rows.input_bytes)


def _fetch_report(context: Context, folder: str) -> Path:
    """Return the expected report under the digest of its content in the driver's cache."""
    scratch = context.work / "expected-report"
    context.hdfs.get(f"{folder}/{_REPORT}", scratch)
    data = scratch.read_bytes()
    cache = context.cache / "expected" / "teravalidate"
    make_folder(cache, shared=True)
    target = cache / hashlib.sha256(data).hexdigest()
    with writing(target):
        scratch.unlink()
        part = target.with_name(f"{target.name}.part")
        part.write_bytes(data)
        part.replace(target)
    return target
