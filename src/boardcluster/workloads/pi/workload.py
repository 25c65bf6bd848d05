"""The verbs of Pi."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import (
    hold_lock,
    make_folder,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
    writing,
)
from boardcluster.records import Engine, Verification
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
from boardcluster.workloads.pi.points import Inside, halton_inside, likely_inside, random_inside
from boardcluster.workloads.pi.printed import inside_of_estimate, inside_of_spark

__all__ = ["WORKLOAD", "Pi"]

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
_ONLY_LIKELY = f"{_LIKELY}; with more than {_MOST_RECOMPUTED:,} points, no more was checked"


def _number_parameter(meaning: str, *, default: int, least: int, most: int) -> Parameter:
    def is_allowed(text: str) -> bool:
        # Not isdecimal() alone: it allows the digits of every script.
        short = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        return short and least <= int(text) <= most

    return Parameter(
        default=str(default),
        allowed=f"a whole number from {least} to {most}",
        meaning=meaning,
        is_allowed=is_allowed,
    )


class Pi:
    """See the package's docstring."""

    name = "pi"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.NOTHING
    parameters: Mapping[str, Parameter] = {
        "maps": _number_parameter(
            "Number of map tasks, or of Spark's partitions.", default=8, least=1, most=_MOST_TASKS
        ),
        "samples": _number_parameter(
            "Points of each map or partition.", default=1_000_000, least=1, most=_MOST_SAMPLES
        ),
        "seed": _number_parameter(
            "Start of Spark's random numbers; Hadoop's points are always the same.",
            default=1,
            least=0,
            most=_MOST_SEED,
        ),
    }
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload. Every combination of its parameters can run."""

    def need(self, case: Case) -> Need:
        """See Workload. Hadoop keeps one file of some 100 bytes per map while the job runs."""
        del case
        return Need(input_bytes=0, run_bytes=0)

    def describe(self, case: Case) -> str:
        """See Workload."""
        return f"{_total_of(case):,} points"

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. There is no input; the count is computed once per set of parameters."""
        context.progress("counting the points independently", 0, 0)
        return Prepared(expected=_expected(case, context.cache))

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        del prepared  # it has no input
        layout = context.live.layout
        given = job.case.parameters
        if job.case.engine is Engine.MAPREDUCE:
            jar = layout.engines.hadoop_jar("hadoop-mapreduce-examples")
            arguments = ["pi", given["maps"], given["samples"]]
            command = mapreduce_command(layout, conf=job.conf, jar=str(jar), arguments=arguments)
        else:
            command = spark_submit_command(
                layout,
                conf=job.conf,
                tag=job.tag,
                program=jobs_jar_on_nodes(layout),
                main="io.boardcluster.jobs.Pi",
                arguments=[given["maps"], given["samples"], given["seed"]],
            )
        return (Phase(name="estimate", command=tuple(command)),)

    def verify(
        self,
        context: Context,
        prepared: Prepared,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        """See Workload."""
        del context  # it leaves nothing in HDFS
        if prepared.expected is None:
            raise VerificationError("nobody counted the points", hint="prepare the trial first")
        case = job.case
        total = _total_of(case)
        stdout = outcomes["estimate"].stdout
        if case.engine is Engine.MAPREDUCE:
            inside = inside_of_estimate(stdout, total=total)
        else:
            inside = inside_of_spark(stdout, total=total)
        right = _read_expected(prepared.expected)
        if not right.least <= inside <= right.most:
            raise VerificationError(
                f"{case.engine} found {inside} points inside; expected: {right}",
                hint="look at the job's standard output",
            )
        likely = likely_inside(total)
        if not likely.least <= inside <= likely.most:
            raise VerificationError(
                f"{inside} points inside are more than 4 standard errors from pi / 4: {likely}",
                hint="choose another pi.seed",
            )
        exact = right.least == right.most
        proved = Inside(least=inside, most=inside, total=total) if exact else right
        verification = Verification(
            method=_METHODS[case.engine] if _is_recomputed(case) else _ONLY_LIKELY,
            expected_sha256=hashlib.sha256(str(right).encode()).hexdigest(),
            actual_sha256=hashlib.sha256(str(proved).encode()).hexdigest(),
            records=1,
        )
        return Proof(verification=verification)


def _total_of(case: Case) -> int:
    return int(case.parameters["maps"]) * int(case.parameters["samples"])


def _is_recomputed(case: Case) -> bool:
    return _total_of(case) <= _MOST_RECOMPUTED


def _count(case: Case) -> Inside:
    maps, samples = int(case.parameters["maps"]), int(case.parameters["samples"])
    if not _is_recomputed(case):
        return likely_inside(maps * samples)
    if case.engine is Engine.MAPREDUCE:
        return halton_inside(maps, samples)
    return random_inside(maps, samples, int(case.parameters["seed"]))


def _expected(case: Case, cache: Path) -> Path:
    """Count the points once per set of parameters."""
    folder = cache / "expected" / "pi"
    make_folder(folder)
    names = ("maps", "samples") if case.engine is Engine.MAPREDUCE else tuple(Pi.parameters)
    target = folder / "-".join([str(case.engine), *(case.parameters[name] for name in names)])
    with hold_lock(folder / f".{target.name}.lock", purpose="counting points"):
        if verified_stamp(target, sidecar=sidecar_of(target)) is None:
            right = _count(case)
            part = target.with_name(f"{target.name}.part")
            with writing(target):
                part.write_text(f"{right.least}\t{right.most}\t{right.total}\n", encoding="ascii")
                part.replace(target)
            write_stamp(target, sidecar=sidecar_of(target), sha256=sha256_of(target))
    return target


def _read_expected(path: Path) -> Inside:
    least, most, total = (int(field) for field in path.read_text(encoding="ascii").split("\t"))
    return Inside(least=least, most=most, total=total)


WORKLOAD = Pi()
