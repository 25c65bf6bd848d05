"""Text input in HDFS, shared by the workloads that read text. Stored once per content.

The folder's name holds the content's digest, the number of replicas, the kind of checksums and the
size of blocks, because the last three change what reading it costs and how many tasks do it.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from boardcluster.errors import UsageError
from boardcluster.records import Checksum, Dataset, Engine
from boardcluster.services.yarn import file_system_command
from boardcluster.workloads.base import Context, JobSpec, Phase, StagedInput

__all__ = ["INPUT_FOLDER", "check_size", "input_folder", "put_file", "put_text", "text_of"]

INPUT_FOLDER = "/boardcluster/input"
"""Folder in HDFS of all inputs; those whose names end in ``.partial`` are not whole."""


def check_size(workload: str, spec: JobSpec, *, least_bytes: int, unit: str) -> None:
    """Refuse a size that holds no data.

    Raises:
        UsageError: it is too small.
    """
    if spec.size_bytes < least_bytes:
        raise UsageError(
            f"{workload}: a size of {spec.size_bytes} bytes; allowed: at least "
            f"{least_bytes} ({unit})",
            hint='give a size, for example size = ["64 MB"]',
        )


def input_folder(name: str, spec: JobSpec) -> str:
    """Return the folder in HDFS of an input of that name for a job spec."""
    mebibytes, rest = divmod(spec.block_bytes, 1 << 20)
    blocks = f"b{spec.block_bytes}" if rest else f"b{mebibytes}m"
    return f"{INPUT_FOLDER}/{name}-r{spec.replication}-{spec.checksum}-{blocks}"


def text_of(context: Context) -> Dataset:
    """Return the text of a context.

    Raises:
        UsageError: there is none.
    """
    if context.dataset is None:
        raise UsageError("no text was prepared", hint="give a size or an --input")
    return context.dataset


def put_text(context: Context, spec: JobSpec) -> StagedInput:
    """Put the context's text into HDFS unless it is there; it appears only when it is whole."""
    dataset = text_of(context)
    folder = input_folder(dataset.sha256[:32], spec)
    path = f"{folder}/part-0"
    staged = StagedInput(input_path=folder, input_bytes=dataset.size_bytes)
    hdfs = context.hdfs
    if hdfs.exists(path):
        if hdfs.size_bytes(path) == dataset.size_bytes:
            return staged
        hdfs.delete(path)  # HDFS renames nothing onto an existing file
    context.progress("putting the input into HDFS", 0, dataset.size_bytes)
    hdfs.make_folder(str(PurePosixPath(path).parent))
    partial = f"{folder}.partial"
    hdfs.delete(partial)
    put_file(context, spec, dataset.path, partial)
    hdfs.rename(partial, path)
    context.progress("putting the input into HDFS", dataset.size_bytes, dataset.size_bytes)
    return staged


def put_file(context: Context, spec: JobSpec, source: Path, path: str) -> None:
    """Store a file of this machine in HDFS with the job spec's replicas, blocks and checksums.

    WebHDFS writes with the DataNode's own kind of checksums, so any other kind takes the file
    system's own client.
    """
    if spec.checksum is Checksum.CRC32C:
        context.hdfs.put(source, path, replication=spec.replication, block_bytes=spec.block_bytes)
        return
    with context.live.master.temporary_upload(source) as there:

        def client(conf: str) -> Phase:
            arguments = ["-put", there, path]
            command = file_system_command(context.live.layout, conf=conf, arguments=arguments)
            return Phase(name="put", command=tuple(command), yarn=False)

        context.run_job(Engine.MAPREDUCE, client)
