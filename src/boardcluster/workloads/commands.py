"""The submissions that workloads share: Hadoop's stock examples, and the Spark jobs of ``jvm/``."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.errors import UsageError
from boardcluster.records import Engine, Variant
from boardcluster.services.jobs import jobs_jar_on_nodes
from boardcluster.services.layout import Layout
from boardcluster.services.spark import spark_submit_command
from boardcluster.workloads.base import Context, Job, JobSpec, Parameter, Phase

__all__ = ["FORM", "check_form", "example_command", "job_phase", "spark_command"]

_STOCK, _FAST = "stock", "fast"
FORM = Parameter(
    default=_STOCK,
    allowed=f"{_STOCK}, {_FAST}",
    meaning=(
        "The MapReduce program: Hadoop's stock example, or our fast one, which works on bytes and "
        "counts within each map."
    ),
    is_allowed=(_STOCK, _FAST).__contains__,
)
"""The parameter ``form`` of workloads that have both programs."""


def check_form(workload: str, spec: JobSpec) -> None:
    """Refuse the fast form where there is only one, or where the textbook variant is asked for.

    Raises:
        UsageError: the engine is not MapReduce, or the variant is another one.
    """
    if spec.parameters.get("form") == _FAST and spec.variant is Variant.TEXTBOOK:
        raise UsageError(
            f"{workload}.form = '{_FAST}' contradicts variant = \"{Variant.TEXTBOOK}\"",
            hint="leave one of them out: Hadoop's stock example is the textbook program",
        )
    if spec.parameters.get("form") == _FAST and spec.engine is not Engine.MAPREDUCE:
        raise UsageError(
            f"{workload}.form = '{_FAST}' is a MapReduce program; {spec.engine} has only one form",
            hint=f'give it with engine = "{Engine.MAPREDUCE}" only',
        )


def _mapreduce_command(
    layout: Layout, *, conf: str, jar: str, arguments: Sequence[str]
) -> tuple[str, ...]:
    from boardcluster.services.yarn import mapreduce_command  # noqa: PLC0415  slow to load

    return tuple(mapreduce_command(layout, conf=conf, jar=jar, arguments=arguments))


def example_command(layout: Layout, *, conf: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs one of Hadoop's stock examples.

    Args:
        layout: the cluster.
        conf: folder of the configuration to submit with.
        arguments: the example's name and its arguments.
    """
    jar = str(layout.engines.hadoop_jar("hadoop-mapreduce-examples"))
    return _mapreduce_command(layout, conf=conf, jar=jar, arguments=arguments)


def spark_command(
    layout: Layout, job: Job, *, main: str, arguments: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that runs one of our Spark jobs.

    Args:
        layout: the cluster.
        job: the job.
        main: its class.
        arguments: its arguments.
    """
    command = spark_submit_command(
        layout,
        conf=job.conf,
        tag=job.tag,
        program=jobs_jar_on_nodes(layout),
        main=main,
        arguments=arguments,
    )
    return tuple(command)


def job_phase(
    context: Context,
    job: Job,
    *,
    name: str,
    example: Sequence[str],
    main: str,
    spark: Sequence[str],
    textbook: str = "",
    fast: str = "",
) -> tuple[Phase]:
    """Return the one phase of a job that is a stock example on MapReduce and ours on Spark.

    Args:
        context: the workload's context.
        job: the job.
        name: name of the phase.
        example: the example's name and its arguments.
        main: class of the Spark job.
        textbook: class of the Spark job of the variant ``textbook``, with the same arguments.
        spark: its arguments.
        fast: class of the MapReduce job of the form ``fast``, which takes the same arguments.
    """
    layout = context.live.layout
    if job.spec.parameters.get("form") == _FAST:
        jar = jobs_jar_on_nodes(layout)
        command = _mapreduce_command(layout, conf=job.conf, jar=jar, arguments=[fast, *spark])
    elif job.spec.engine is Engine.MAPREDUCE:
        command = example_command(layout, conf=job.conf, arguments=example)
    else:
        chosen = textbook if job.spec.variant is Variant.TEXTBOOK else main
        command = spark_command(layout, job, main=chosen, arguments=spark)
    return (Phase(name=name, command=command),)
