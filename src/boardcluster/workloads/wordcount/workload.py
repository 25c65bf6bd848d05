"""The verbs of WordCount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import hold_lock, sidecar_of, verified_stamp, write_stamp
from boardcluster.records import Dataset, Engine, Verification
from boardcluster.services.jobs import jobs_jar_on_nodes
from boardcluster.services.spark import spark_submit_command
from boardcluster.services.yarn import mapreduce_command
from boardcluster.workloads.base import (
    Case,
    Context,
    Job,
    Need,
    Parameter,
    Phase,
    PhaseOutcome,
    Prepared,
    Proof,
    Takes,
)
from boardcluster.workloads.inputs import check_size, put_text, text_of
from boardcluster.workloads.outputs import fetch_parts
from boardcluster.workloads.wordcount.counting import canonical_output, compare, count_words

__all__ = ["WORKLOAD", "WordCount"]

_METHOD = (
    "every (word, count) pair equals an independent count of the source file made by "
    "tr, sort and uniq, compared as sorted streams"
)


class WordCount:
    """See the package's docstring."""

    name = "wordcount"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.TEXT
    parameters: Mapping[str, Parameter] = {}
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload."""
        check_size(self.name, case, least_bytes=1, unit="one byte")

    def need(self, case: Case) -> Need:
        """See Workload.

        Intermediate data and output of WordCount are together at most about five times the input
        on flight data (Lee and Park 2026, Table 11: 3.94 times written as intermediate data).
        """
        return Need(input_bytes=case.size_bytes * case.replication, run_bytes=5 * case.size_bytes)

    def describe(self, case: Case) -> str:
        """See Workload."""
        del case
        return ""

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. The input's name in HDFS is its digest, so equal content is stored once."""
        prepared = put_text(context, case)
        context.progress("counting the words independently", 0, 0)
        return replace(prepared, expected=_expected(text_of(context), context.cache))

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        layout = context.live.layout
        paths = [prepared.input_path, job.output_path]
        if job.case.engine is Engine.MAPREDUCE:
            jar = layout.engines.hadoop_jar("hadoop-mapreduce-examples")
            command = mapreduce_command(
                layout, conf=job.conf, jar=str(jar), arguments=["wordcount", *paths]
            )
        else:
            command = spark_submit_command(
                layout,
                conf=job.conf,
                tag=job.tag,
                program=jobs_jar_on_nodes(layout),
                main="io.boardcluster.jobs.WordCount",
                arguments=paths,
            )
        return (Phase(name="count", command=tuple(command)),)

    def verify(
        self,
        context: Context,
        prepared: Prepared,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        """See Workload."""
        del outcomes  # what it printed says nothing about its output
        if prepared.expected is None:
            raise VerificationError("nobody counted the words", hint="prepare the input first")
        files = fetch_parts(context, job.output_path)
        output_bytes = sum(path.stat().st_size for path in files)
        actual = canonical_output(files, target=context.work / "actual", work=context.work)
        if difference := compare(prepared.expected, actual.path):
            raise VerificationError(f"the output of {job.case.engine} is wrong: {difference}")
        verification = Verification(
            method=_METHOD,
            expected_sha256=actual.sha256,  # compare() has just proved the two files equal
            actual_sha256=actual.sha256,
            records=actual.records,
        )
        return Proof(verification=verification, output_bytes=output_bytes)


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


WORKLOAD = WordCount()
