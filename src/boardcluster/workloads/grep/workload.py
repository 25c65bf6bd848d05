"""The verbs of _Grep."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import made_once, sha256_of
from boardcluster.records import Engine, Verification
from boardcluster.workloads.base import (
    BOTH_VARIANTS,
    Context,
    InputKind,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
)
from boardcluster.workloads.commands import FORM, check_form, job_phase
from boardcluster.workloads.compare import compare_lines, count_lines, sort_lines
from boardcluster.workloads.grep.pattern import ALLOWED, is_pattern
from boardcluster.workloads.grep.searching import GrepOutput, search
from boardcluster.workloads.inputs import check_size, put_text, text_of
from boardcluster.workloads.outputs import fetch_parts

__all__ = ["WORKLOAD"]

_FORMS = {Engine.MAPREDUCE: GrepOutput.COUNTS, Engine.SPARK: GrepOutput.LINES}
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


class _Grep(Workload):
    name = "grep"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    input_kind = InputKind.TEXT
    variants = BOTH_VARIANTS
    work_parameters = ("pattern",)
    parameters: Mapping[str, Parameter] = {
        "pattern": Parameter(
            default="ATL",
            allowed=ALLOWED,
            meaning="The regular expression to search for.",
            is_allowed=is_pattern,
        ),
        "form": FORM,
    }

    def check(self, spec: JobSpec) -> None:
        check_size(self.name, spec, least_bytes=1, unit="one byte")
        check_form(self.name, spec)

    def need(self, spec: JobSpec) -> Need:
        # What a run adds depends on the pattern. Intermediate data was at most 330 MB on Hadoop
        # and 515 MB on Spark, for 1 to 32 GB (Lee and Park 2026, Table 14).
        stored = spec.size_bytes * spec.replication
        return Need(input_bytes=stored, run_bytes=stored // _PLANNED_SHARE)

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        # Before the text is sent: searching may need room that this machine lacks.
        context.progress("searching the text independently", 0, 0)
        text, form, pattern = text_of(context), _FORMS[spec.engine], spec.parameters["pattern"]
        asked = hashlib.sha256(f"{form}\t{pattern}".encode()).hexdigest()
        expected = made_once(
            context.cache / "expected" / "grep" / f"{asked[:16]}-{text.sha256}",
            lambda target: search(text.path, pattern=pattern, form=form, target=target),
            purpose="searching text",
            about={"pattern": pattern, "form": str(form)},
        )
        return replace(put_text(context, spec), expected=expected)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        arguments = [staged.input_path, job.output_path, job.spec.parameters["pattern"]]
        return job_phase(
            context,
            job,
            name="search",
            example=["grep", *arguments],
            main="io.boardcluster.jobs.Grep",
            textbook="io.boardcluster.textbook.Grep",
            fast="io.boardcluster.jobs.FastGrep",
            spark=arguments,
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del outcomes  # what it printed says nothing about its output
        expected = staged.answer()
        engine = job.spec.engine
        parts = fetch_parts(context, job.output_path)
        actual = context.work / "actual"
        sort_lines(parts, target=actual, work=context.work)
        if difference := compare_lines(expected, actual):
            raise VerificationError(
                f"the output of {engine} is wrong: {difference}",
                hint="look at the engine's logs in the attempt's folder",
            )
        if _FORMS[engine] is GrepOutput.COUNTS:
            _require_descending(parts)
        verification = Verification(
            method=_METHODS[engine],
            expected_sha256=sha256_of(expected),
            actual_sha256=sha256_of(actual),
            records=count_lines(actual),
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


WORKLOAD = _Grep()
