"""What TeraGen, TeraSort and TeraValidate share: sizes, parameters and commands."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.services.jobs import jobs_jar_on_nodes
from boardcluster.services.layout import Layout
from boardcluster.services.spark import spark_submit_command
from boardcluster.services.yarn import mapreduce_command
from boardcluster.workloads.base import Case, Job, Parameter
from boardcluster.workloads.inputs import check_size
from boardcluster.workloads.tera_rows import ROW_BYTES

__all__ = [
    "LEAST_SORTED_BYTES",
    "check_rows",
    "count_of",
    "count_parameter",
    "describe_rows",
    "example_command",
    "intermediate_bytes",
    "job_command",
    "rows_of",
    "sort_command",
]

LEAST_SORTED_BYTES = 10_000
"""Hadoop's TeraSort refuses fewer rows than it has reduces: 100 rows are enough for every board."""

_MOST_TASKS = 10_000
# Intermediate data per byte of input, in tenths: the largest ratios of Lee and Park 2026, Table 13,
# 134.3 GB of 32 GB on Hadoop and 1.4 GB of 1 GB on Spark.
_INTERMEDIATE_TENTHS = {Engine.MAPREDUCE: 42, Engine.SPARK: 14}


def rows_of(case: Case) -> int:
    """Return the whole rows of 100 bytes that the size of a case holds."""
    return case.size_bytes // ROW_BYTES


def check_rows(workload: str, case: Case, *, least_bytes: int, counted: str = "") -> None:
    """Refuse too few rows, and more tasks than rows.

    Args:
        workload: its name.
        case: the case.
        least_bytes: the smallest size.
        counted: name of the parameter that says how many tasks share the rows.

    Raises:
        UsageError: says what is allowed.
    """
    least = least_bytes // ROW_BYTES
    unit = f"{least} rows of {ROW_BYTES} bytes" if least > 1 else f"one row of {ROW_BYTES} bytes"
    check_size(workload, case, least_bytes=least_bytes, unit=unit)
    if counted and count_of(case, counted) > rows_of(case):
        raise UsageError(
            f"{workload}.{counted} = {case.parameters[counted]}; allowed: at most one for each of "
            f"the {rows_of(case)} rows",
            hint=f"set a smaller {workload}.{counted}, or a larger size",
        )


def describe_rows(case: Case) -> str:
    """Say how many rows a size means."""
    return f"{rows_of(case):,} rows of {ROW_BYTES} bytes"


def count_parameter(meaning: str) -> Parameter:
    """Return a parameter that is a number of tasks; 0 leaves it to the engine.

    Args:
        meaning: what it sets, one sentence.
    """
    return Parameter(
        default="0",
        allowed=f"a whole number from 0 to {_MOST_TASKS}; 0 leaves it to the engine",
        meaning=meaning,
        is_allowed=_is_count,
    )


def _is_count(value: str) -> bool:
    # Not isdecimal() alone: it allows the digits of every script.
    return value.isascii() and value.isdecimal() and len(value) < 6 and int(value) <= _MOST_TASKS


def count_of(case: Case, name: str) -> int:
    """Return the value of such a parameter."""
    return int(case.parameters[name])


def intermediate_bytes(case: Case, engine: Engine) -> int:
    """Return the space that sorting takes beside input and output (2026 paper, Table 13)."""
    return case.size_bytes * _INTERMEDIATE_TENTHS[engine] // 10


def example_command(layout: Layout, *, conf: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs one of Hadoop's stock examples.

    Args:
        layout: the cluster.
        conf: folder of the configuration to submit with.
        arguments: the example's name and its arguments.
    """
    jar = str(layout.engines.hadoop_jar("hadoop-mapreduce-examples"))
    return tuple(mapreduce_command(layout, conf=conf, jar=jar, arguments=arguments))


def sort_command(
    layout: Layout, *, conf: str, case: Case, reduces: int, paths: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs stock TeraSort.

    It would write one copy of its output, whatever ``dfs.replication`` says, so the case's number
    is given to it (``mapreduce.terasort.output.replication``).

    Args:
        layout: the cluster.
        conf: folder of the configuration to submit with.
        case: what the sort is for.
        reduces: number of output files; 0 is the configuration's own.
        paths: input and output in HDFS.
    """
    options = [f"-Dmapreduce.terasort.output.replication={case.replication}"]
    options += [f"-Dmapreduce.job.reduces={reduces}"] if reduces else []
    return example_command(layout, conf=conf, arguments=["terasort", *options, *paths])


def job_command(
    layout: Layout, job: Job, *, main: str, arguments: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs one of our Spark jobs.

    Args:
        layout: the cluster.
        job: the job.
        main: its class.
        arguments: its arguments.
    """
    return tuple(
        spark_submit_command(
            layout,
            conf=job.conf,
            tag=job.tag,
            program=jobs_jar_on_nodes(layout),
            main=main,
            arguments=arguments,
        )
    )
