"""The verbs of Grep."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import (
    hold_lock,
    make_folder,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
)
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
from boardcluster.workloads.compare import compare_lines, sort_lines
from boardcluster.workloads.grep.pattern import ALLOWED, is_pattern
from boardcluster.workloads.grep.searching import Form, search
from boardcluster.workloads.inputs import check_size, put_text, text_of
from boardcluster.workloads.outputs import fetch_parts

__all__ = ["WORKLOAD", "Grep"]

_FORMS = {Engine.MAPREDUCE: Form.COUNTS, Engine.SPARK: Form.LINES}
_METHODS = {
    Engine.MAPREDUCE: (
        "the counts of all texts found equal those of grep -o, sort and uniq over the source "
        "file, compared as sorted streams, and the output is in descending order of counts"
    ),
    Engine.SPARK: (
        "the saved lines, as a multiset, equal those that grep finds in the source file, "
        "compared as sorted streams"
    ),
}
_PLANNED_SHARE = 4
"""Space is planned for output and intermediate data of a quarter of the input."""


class Grep:
    """See the package's docstring."""

    name = "grep"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.TEXT
    parameters: Mapping[str, Parameter] = {
        "pattern": Parameter(
            default="ATL",
            allowed=ALLOWED,
            meaning="The regular expression that is searched for.",
            is_allowed=is_pattern,
        )
    }
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload."""
        check_size(self.name, case, least_bytes=1, unit="one byte")

    def need(self, case: Case) -> Need:
        """See Workload.

        What a run adds depends on the pattern. Intermediate data was at most 330 MB on Hadoop and
        515 MB on Spark, for 1 to 32 GB (Lee and Park 2026, Table 14).
        """
        stored = case.size_bytes * case.replication
        return Need(input_bytes=stored, run_bytes=stored // _PLANNED_SHARE)

    def describe(self, case: Case) -> str:
        """See Workload."""
        del case
        return ""

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. The text is searched independently once per content and pattern."""
        prepared = put_text(context, case)
        context.progress("searching the text independently", 0, 0)
        expected = _expected(
            text_of(context),
            pattern=case.parameters["pattern"],
            form=_FORMS[case.engine],
            cache=context.cache,
        )
        return replace(prepared, expected=expected)

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        layout = context.live.layout
        arguments = [prepared.input_path, job.output_path, job.case.parameters["pattern"]]
        if job.case.engine is Engine.MAPREDUCE:
            jar = layout.engines.hadoop_jar("hadoop-mapreduce-examples")
            command = mapreduce_command(
                layout, conf=job.conf, jar=str(jar), arguments=["grep", *arguments]
            )
        else:
            command = spark_submit_command(
                layout,
                conf=job.conf,
                tag=job.tag,
                program=jobs_jar_on_nodes(layout),
                main="io.boardcluster.jobs.Grep",
                arguments=arguments,
            )
        return (Phase(name="search", command=tuple(command)),)

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
            raise VerificationError("nobody searched the text", hint="prepare the input first")
        engine = job.case.engine
        parts = fetch_parts(context, job.output_path)
        actual = context.work / "actual"
        sort_lines(parts, target=actual, work=context.work)
        if difference := compare_lines(prepared.expected, actual):
            raise VerificationError(
                f"the output of {engine} is wrong: {difference}",
                hint="look at the engine's logs in the attempt's folder",
            )
        if _FORMS[engine] is Form.COUNTS:
            _require_descending(parts)
        verification = Verification(
            method=_METHODS[engine],
            expected_sha256=sha256_of(prepared.expected),
            actual_sha256=sha256_of(actual),
            records=_lines_of(actual),
        )
        output_bytes = sum(part.stat().st_size for part in parts)
        return Proof(verification=verification, output_bytes=output_bytes)


def _require_descending(parts: Sequence[Path]) -> None:
    """Refuse counts that grow: the example's second job sorts them.

    Raises:
        VerificationError: a count is larger than the one before it.
    """
    before: int | None = None
    for part in parts:
        with part.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                count = int(line.partition(b"\t")[0])  # compared with grep's already
                if before is not None and count > before:
                    raise VerificationError(
                        f"the output is not sorted: line {number} of {part.name} counts {count}, "
                        f"the line before it {before}",
                        hint="look at the engine's logs in the attempt's folder",
                    )
                before = count


def _lines_of(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


def _expected(dataset: Dataset, *, pattern: str, form: Form, cache: Path) -> Path:
    """Search the source file once per content, pattern and form of the output."""
    folder = cache / "expected" / "grep"
    make_folder(folder)
    asked = hashlib.sha256(f"{form}\t{pattern}".encode()).hexdigest()
    name = f"{asked[:16]}-{dataset.sha256}"
    target = folder / name
    with hold_lock(folder / f".{name}.lock", purpose="searching text"):
        if verified_stamp(target, sidecar=sidecar_of(target)) is None:
            search(dataset.path, pattern=pattern, form=form, target=target)
            about = {"pattern": pattern, "form": str(form)}
            write_stamp(target, sidecar=sidecar_of(target), sha256=sha256_of(target), about=about)
    return target


WORKLOAD = Grep()
