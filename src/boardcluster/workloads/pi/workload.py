"""The verbs of Pi."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import made_once
from boardcluster.records import Engine, Variant, Verification
from boardcluster.workloads.base import (
    BOTH_VARIANTS,
    Context,
    InputKind,
    Job,
    JobSpec,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
    number_parameter,
)
from boardcluster.workloads.commands import job_phase
from boardcluster.workloads.pi.points import HitRange, halton_inside, likely_inside, random_inside
from boardcluster.workloads.pi.printed import inside_of_estimate, inside_of_spark

__all__ = ["WORKLOAD"]

_MOST_TASKS = 10_000
_MOST_SAMPLES = 1_000_000_000
_MOST_SEED = 2**63 - 1
_MOST_RECOMPUTED = 2_000_000_000
"""Points that are computed again on the driver: half a minute on a PC, minutes on a board."""

_LIKELY = "the share of points inside is within 4 standard errors of pi / 4"
_METHODS = {
    Engine.MAPREDUCE: (
        "the number of points inside equals that of the same Halton sequence computed "
        f"independently, but for points nearer to the circle than rounding errors; {_LIKELY}"
    ),
    Engine.SPARK: (
        "the number of points inside equals that of the same random sequence computed "
        f"independently; {_LIKELY}"
    ),
}


class _Pi(Workload):
    name = "pi"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    input_kind = InputKind.NOTHING
    variants = BOTH_VARIANTS
    work_parameters = ("maps", "samples")
    parameters: Mapping[str, Parameter] = {
        "maps": number_parameter(
            "Number of map tasks or Spark partitions.", default=8, least=1, most=_MOST_TASKS
        ),
        "samples": number_parameter(
            "Points per map or partition.", default=1_000_000, least=1, most=_MOST_SAMPLES
        ),
        "seed": number_parameter(
            "Seed of Spark's random numbers; Hadoop's points are always the same.",
            default=1,
            least=0,
            most=_MOST_SEED,
        ),
    }

    def describe(self, spec: JobSpec) -> str:
        return f"{_total_of(spec):,} points"

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        context.progress("counting the points independently", 0, 0)
        return StagedInput(expected=_expected(spec, context.cache))

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged  # it has no input
        maps, samples, seed = (job.spec.parameters[name] for name in self.parameters)
        return job_phase(
            context,
            job,
            name="estimate",
            example=["pi", maps, samples],
            main="io.boardcluster.jobs.Pi",
            textbook="io.boardcluster.textbook.Pi",
            spark=[maps, samples, seed],
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del context  # it leaves nothing in HDFS
        right = _read_expected(staged.answer())
        spec = job.spec
        total = _total_of(spec)
        stdout = outcomes["estimate"].stdout
        if spec.engine is Engine.MAPREDUCE:
            inside = inside_of_estimate(stdout, total=total)
        else:
            inside = inside_of_spark(stdout, total=total)
        if not right.least <= inside <= right.most:
            raise VerificationError(
                f"{spec.engine} found {inside} points inside; expected: {right}",
                hint="look at the job's standard output",
            )
        likely = likely_inside(total)
        if not likely.least <= inside <= likely.most:
            raise VerificationError(
                f"{inside} points inside are more than 4 standard errors from pi / 4: {likely}",
                hint="run it again" if _is_random(spec) else "choose another pi.seed",
            )
        exact = right.least == right.most
        proved = HitRange(least=inside, most=inside, total=total) if exact else right
        verification = Verification(
            method=_METHODS[spec.engine] if _is_recomputed(spec) else _only_likely(spec),
            expected_sha256=hashlib.sha256(str(right).encode()).hexdigest(),
            actual_sha256=hashlib.sha256(str(proved).encode()).hexdigest(),
            records=1,
        )
        return Proof(verification=verification)


def _total_of(spec: JobSpec) -> int:
    return int(spec.parameters["maps"]) * int(spec.parameters["samples"])


def _is_random(spec: JobSpec) -> bool:
    """Whether its points are other ones in each run."""
    return spec.engine is Engine.SPARK and spec.variant is Variant.TEXTBOOK


def _is_recomputed(spec: JobSpec) -> bool:
    return not _is_random(spec) and _total_of(spec) <= _MOST_RECOMPUTED


def _only_likely(spec: JobSpec) -> str:
    why = (
        "the textbook program draws other points in each run"
        if _is_random(spec)
        else f"with more than {_MOST_RECOMPUTED:,} points, the count is not computed again"
    )
    return f"{_LIKELY}; {why}"


def _count(spec: JobSpec) -> HitRange:
    maps, samples = int(spec.parameters["maps"]), int(spec.parameters["samples"])
    if not _is_recomputed(spec):
        return likely_inside(maps * samples)
    if spec.engine is Engine.MAPREDUCE:
        return halton_inside(maps, samples)
    return random_inside(maps, samples, int(spec.parameters["seed"]))


def _expected(spec: JobSpec, cache: Path) -> Path:
    """Count the points once per set of parameters."""
    names = ("maps", "samples") if spec.engine is Engine.MAPREDUCE else tuple(_Pi.parameters)
    values = [str(spec.engine), *(spec.parameters[name] for name in names)]
    name = "-".join([*values, *(["random"] if _is_random(spec) else [])])

    def count(target: Path) -> None:
        right = _count(spec)
        target.write_text(f"{right.least}\t{right.most}\t{right.total}\n", encoding="ascii")

    return made_once(cache / "expected" / "pi" / name, count, purpose="counting points")


def _read_expected(path: Path) -> HitRange:
    least, most, total = (int(field) for field in path.read_text(encoding="ascii").split("\t"))
    return HitRange(least=least, most=most, total=total)


WORKLOAD = _Pi()
