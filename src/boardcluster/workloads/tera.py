"""What TeraGen, TeraSort and TeraValidate share: sizes, parameters and arguments."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.workloads.base import InputKind, JobSpec, Parameter, Workload, number_parameter
from boardcluster.workloads.inputs import check_size
from boardcluster.workloads.tera_rows import ROW_BYTES

__all__ = [
    "TeraWorkload",
    "count_of",
    "count_parameter",
    "intermediate_bytes",
    "rows_of",
    "sort_arguments",
]

# Intermediate data per byte of input, in tenths: the largest ratios of Lee and Park 2026, Table 13,
# 134.3 GB of 32 GB on Hadoop and 1.4 GB of 1 GB on Spark.
_INTERMEDIATE_TENTHS = {Engine.MAPREDUCE: 42, Engine.SPARK: 14}


def rows_of(spec: JobSpec) -> int:
    """Return the whole rows of 100 bytes that the size of a job spec holds."""
    return spec.size_bytes // ROW_BYTES


class TeraWorkload(Workload):
    """What the three have in common.

    Attributes:
        least_bytes: the smallest size.
        counted: name of the parameter that says how many tasks share the rows; empty for none.
    """

    engines = (Engine.MAPREDUCE, Engine.SPARK)
    input_kind = InputKind.ROWS
    # Hadoop's TeraSort refuses fewer rows than it has reduces: 100 are enough for every board.
    least_bytes = 10_000
    counted = ""

    def check(self, spec: JobSpec) -> None:
        """Refuse too few rows, and more tasks than rows.

        Raises:
            UsageError: says what is allowed.
        """
        least = self.least_bytes // ROW_BYTES
        unit = f"{least} rows" if least > 1 else "one row"
        unit += f" of {ROW_BYTES} bytes"
        check_size(self.name, spec, least_bytes=self.least_bytes, unit=unit)
        if self.counted and count_of(spec, self.counted) > rows_of(spec):
            raise UsageError(
                f"{self.name}.{self.counted} = {spec.parameters[self.counted]}; allowed: at most "
                f"one for each of the {rows_of(spec)} rows",
                hint=f"set a smaller {self.name}.{self.counted}, or a larger size",
            )

    def describe(self, spec: JobSpec) -> str:
        """Say how many rows the size means."""
        return f"{rows_of(spec):,} rows of {ROW_BYTES} bytes"


def count_parameter(meaning: str) -> Parameter:
    """Return a parameter that is a number of tasks; 0 leaves it to the engine.

    Args:
        meaning: what it sets, one sentence.
    """
    note = "; 0 leaves it to the engine"
    return number_parameter(meaning, default=0, least=0, most=10_000, note=note)


def count_of(spec: JobSpec, name: str) -> int:
    """Return the value of such a parameter."""
    return int(spec.parameters[name])


def intermediate_bytes(spec: JobSpec, engine: Engine) -> int:
    """Return the space that sorting takes beside input and output (2026 paper, Table 13)."""
    return spec.size_bytes * _INTERMEDIATE_TENTHS[engine] // 10


def sort_arguments(spec: JobSpec, *, reduces: int, paths: Sequence[str]) -> list[str]:
    """Return the name and the arguments of stock TeraSort.

    It would write one copy of its output, whatever ``dfs.replication`` says, so the job spec's
    number is given to it (``mapreduce.terasort.output.replication``).

    Args:
        spec: what the sort is for.
        reduces: number of output files; 0 is the configuration's own.
        paths: input and output in HDFS.
    """
    options = [f"-Dmapreduce.terasort.output.replication={spec.replication}"]
    options += [f"-Dmapreduce.job.reduces={reduces}"] if reduces else []
    return ["terasort", *options, *paths]
