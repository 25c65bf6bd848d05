"""Every sample of every node, one row for each value; and every figure of every probe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from boardcluster.records import Campaign, ProbeRun, Result, Telemetry
from boardcluster.report.export.frames import Field, Frame, Kind, Value
from boardcluster.report.export.runs import IDENTITY, identity

__all__ = ["probe_frame", "sample_frame"]

_SAMPLES = (
    Field("workload", Kind.TEXT, "name of the workload"),
    Field("engine", Kind.TEXT, "the engine"),
    Field("node", Kind.TEXT, "name of the node; host is the machine that emulated nodes share"),
    Field("scope", Kind.TEXT, "machine: the kernel's totals; node: what belongs to the node alone"),
    Field("seconds", Kind.NUMBER, "end of the sample's interval; 0 is the start of the run"),
    Field("column", Kind.TEXT, "what was sampled, unit last: docs/reference/telemetry.md"),
    Field("value", Kind.NUMBER, "over the interval that ends then; unknown ones have no row"),
)

_PROBES = (
    Field("run", Kind.TEXT, "id of the run of the probe"),
    Field("probe", Kind.TEXT, "its name"),
    Field("mode", Kind.TEXT, "quick or paper"),
    Field("cluster", Kind.TEXT, "name of the cluster"),
    Field("emulated", Kind.BOOLEAN, "whether the node is a namespace on one machine, no board"),
    Field("node", Kind.TEXT, "the node"),
    Field("peer", Kind.TEXT, "the other node; empty where there is none"),
    Field("started_utc", Kind.TEXT, "ISO 8601 with offset"),
    Field("duration_seconds", Kind.NUMBER, "of the whole run of the probe"),
    Field("figure", Kind.TEXT, "what was measured, unit last; empty for a run that failed"),
    Field("value", Kind.NUMBER, "in that unit; nothing for a run that failed"),
    Field("conditions", Kind.OBJECT, "what tells it from its siblings"),
    Field("reason", Kind.TEXT, "why the run failed; empty if it did not"),
    Field("versions", Kind.OBJECT, "the tools that measured"),
    Field("hardware", Kind.TEXT, "one line on the node"),
)


def sample_frame(
    runs: Iterable[tuple[Result, Telemetry]], campaigns: Mapping[str, Campaign]
) -> Frame:
    """Return one row for each known value of each column of each node, run by run.

    Only one run's samples are in memory at once, if ``runs`` gives them one by one.

    Args:
        runs: runs with their samples.
        campaigns: by their ids.
    """

    def rows() -> Iterator[Sequence[Value]]:
        for result, telemetry in runs:
            head = (
                *identity(result, campaigns),
                result.trial.workload,
                str(result.trial.engine),
            )
            for node in telemetry.nodes:
                moments = node.seconds.tolist()
                for name in sorted(node.columns):
                    for moment, value in zip(moments, node.columns[name].tolist(), strict=True):
                        if not math.isnan(value):  # which is unknown
                            yield (*head, node.node, node.scope, moment, name, value)

    return Frame(name="samples", fields=(*IDENTITY, *_SAMPLES), rows=rows())


def probe_frame(runs: Iterable[ProbeRun]) -> Frame:
    """Return one row for each figure of each probe, and one for each run that failed."""

    def rows() -> Iterator[Sequence[Value]]:
        for run in runs:
            head = (
                run.id,
                run.probe,
                str(run.mode),
                run.cluster,
                run.emulated,
                run.node,
                run.peer,
                run.started_utc,
                run.duration_seconds,
            )
            tail = (run.reason, list(run.versions), run.hardware)
            for figure in run.figures:
                yield (*head, figure.name, figure.value, dict(figure.conditions), *tail)
            if not run.figures:
                yield (*head, "", None, {}, *tail)

    return Frame(name="probes", fields=_PROBES, rows=rows())
