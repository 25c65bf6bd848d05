"""The verbs of _WordCount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boardcluster.errors import InputError, VerificationError
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
from boardcluster.workloads.inputs import check_size, put_text, text_of
from boardcluster.workloads.outputs import fetch_parts
from boardcluster.workloads.wordcount.counting import count_words

__all__ = ["WORKLOAD"]

_METHOD = (
    "every (word, count) pair equals an independent count of the source file made by "
    "tr, sort and uniq, compared as sorted streams"
)


class _WordCount(Workload):
    name = "wordcount"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    input_kind = InputKind.TEXT
    variants = BOTH_VARIANTS
    parameters: Mapping[str, Parameter] = {"form": FORM}

    def check(self, spec: JobSpec) -> None:
        check_size(self.name, spec, least_bytes=1, unit="one byte")
        check_form(self.name, spec)

    def need(self, spec: JobSpec) -> Need:
        # Intermediate data is about four times the input on flight data (Lee and Park 2026, Table
        # 11: 3.94 times), and the output at most as large as it, in as many copies.
        copies = spec.size_bytes * spec.replication
        return Need(input_bytes=copies, run_bytes=4 * spec.size_bytes + copies)

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        # Before the text is sent: counting may need room that this machine lacks.
        context.progress("counting the words independently", 0, 0)
        text = text_of(context)
        expected = made_once(
            context.cache / "expected" / "wordcount" / text.sha256,
            lambda target: count_words(text.path, target=target, work=target.parent),
            purpose="counting words",
        )
        if not expected.stat().st_size:
            raise InputError(
                f"{text.name} holds no word; an empty output proves nothing",
                hint="choose another input, or a larger size",
            )
        return replace(put_text(context, spec), expected=expected)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        paths = [staged.input_path, job.output_path]
        return job_phase(
            context,
            job,
            name="count",
            example=["wordcount", *paths],
            main="io.boardcluster.jobs.WordCount",
            textbook="io.boardcluster.textbook.WordCount",
            fast="io.boardcluster.jobs.FastWordCount",
            spark=paths,
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del outcomes  # what it printed says nothing about its output
        expected = staged.answer()
        parts = fetch_parts(context, job.output_path)
        actual = context.work / "actual"
        sort_lines(parts, target=actual, work=context.work, by_word=True)
        if difference := compare_lines(expected, actual, by_word=True):
            raise VerificationError(f"the output of {job.spec.engine} is wrong: {difference}")
        verification = Verification(
            method=_METHOD,
            expected_sha256=sha256_of(expected),
            actual_sha256=sha256_of(actual),
            records=count_lines(actual),
        )
        output_bytes = sum(part.stat().st_size for part in parts)
        return Proof(verification=verification, output_bytes=output_bytes)


WORKLOAD = _WordCount()
