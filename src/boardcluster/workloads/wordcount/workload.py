"""The verbs of WordCount."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boardcluster.errors import CapacityError, VerificationError
from boardcluster.fetch.cache import Progress, hold_lock, sidecar_of, verified_stamp, write_stamp
from boardcluster.records import Dataset, Engine, Verification
from boardcluster.services.lifecycle import health
from boardcluster.services.operation import LiveCluster
from boardcluster.services.spark import spark_submit_command
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.services.yarn import mapreduce_command
from boardcluster.units import format_bytes
from boardcluster.workloads.base import Prepared, Submission, jobs_jar
from boardcluster.workloads.wordcount.counting import canonical_output, compare, count_words

__all__ = ["WORKLOAD", "WordCount"]

_INPUT_FOLDER = "/boardcluster/input"
_METHOD = (
    "every (word, count) pair equals an independent count of the source file made by "
    "tr, sort and uniq, compared as sorted streams"
)
_READERS = 4


class WordCount:
    """See the package's docstring."""

    name = "wordcount"
    engines = (Engine.MAPREDUCE, Engine.SPARK)

    def prepare(
        self, live: LiveCluster, dataset: Dataset, *, cache: Path, progress: Progress
    ) -> Prepared:
        """See Workload. The input's name in HDFS is its digest, so equal content is stored once."""
        path = f"{_INPUT_FOLDER}/{dataset.sha256[:32]}/part-0"
        progress("putting the input into HDFS", 0, dataset.size_bytes)
        _put_input(live, dataset, path)
        progress("putting the input into HDFS", dataset.size_bytes, dataset.size_bytes)
        progress("counting the words independently", 0, 0)
        expected = _expected(dataset, cache)
        return Prepared(dataset=dataset, input_path=path.rpartition("/")[0], expected=expected)

    def command(self, live: LiveCluster, prepared: Prepared, job: Submission) -> list[str]:
        """See Workload."""
        paths = [prepared.input_path, job.output_path]
        if job.engine is Engine.MAPREDUCE:
            jar = live.layout.engines.hadoop_jar("hadoop-mapreduce-examples")
            return mapreduce_command(
                live.layout, conf=job.conf, jar=str(jar), arguments=["wordcount", *paths]
            )
        return spark_submit_command(
            live.layout,
            conf=job.conf,
            tag=job.tag,
            program=str(jobs_jar()),
            main="io.boardcluster.jobs.WordCount",
            arguments=paths,
        )

    def verify(
        self, live: LiveCluster, prepared: Prepared, job: Submission, *, work: Path
    ) -> Verification:
        """See Workload."""
        hdfs = WebHdfs(live.layout, live.master)
        names = [e.name for e in hdfs.list(job.output_path) if e.is_file]
        if "_SUCCESS" not in names:
            raise VerificationError(
                f"{job.output_path} has no _SUCCESS mark: the job did not commit its output"
            )
        folder = work / "output"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        parts = sorted(name for name in names if name.startswith("part-"))

        def fetch(name: str) -> Path:
            hdfs.get(f"{job.output_path}/{name}", folder / name)
            return folder / name

        with ThreadPoolExecutor(_READERS) as pool:
            files = list(pool.map(fetch, parts))
        actual = canonical_output(files, target=folder / "actual", work=folder)
        if difference := compare(prepared.expected, actual.path):
            raise VerificationError(f"the output of {job.engine} is wrong: {difference}")
        shutil.rmtree(folder)
        return Verification(
            method=_METHOD,
            expected_sha256=actual.sha256,  # compare() has just proved the two files equal
            actual_sha256=actual.sha256,
            records=actual.records,
        )


def _expected(dataset: Dataset, cache: Path) -> Path:
    """Count the source file once per content."""
    folder = cache / "expected" / "wordcount"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / dataset.sha256
    with hold_lock(folder / f".{dataset.sha256}.lock", purpose="counting words"):
        if not target.is_file() or verified_stamp(target, sidecar=sidecar_of(target)) is None:
            counted = count_words(dataset.path, target=target, work=folder)
            write_stamp(target, sidecar=sidecar_of(target), sha256=counted.sha256)
    return target


def _put_input(live: LiveCluster, dataset: Dataset, path: str) -> None:
    hdfs = WebHdfs(live.layout, live.master)
    if hdfs.exists(path):
        if hdfs.size_bytes(path) == dataset.size_bytes:
            return
        hdfs.delete(path)  # HDFS renames nothing onto an existing file
    replication = int(live.layout.profile.properties["hdfs-site"].get("dfs.replication", "3"))
    copies = min(replication, len(live.spec.workers))
    free = health(live.layout, live.master).hdfs_free_bytes
    # The output and the intermediate data of WordCount are together at most about five times the
    # input on flight data (Lee and Park 2026, Table 11: 3.94 times written as intermediate data).
    needed = dataset.size_bytes * (copies + 5)
    if needed > free:
        raise CapacityError(
            f"{dataset.name}: {format_bytes(dataset.size_bytes)} x ({copies} replicas + 5 for "
            f"intermediate data and output) = {format_bytes(needed)}, but HDFS has "
            f"{format_bytes(free)} left",
            hint="use a smaller --size, or free space on the nodes' disk",
        )
    hdfs.make_folder(path.rpartition("/")[0])
    hdfs.put(dataset.path, path)


WORKLOAD = WordCount()
