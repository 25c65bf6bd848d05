"""Every sample of every node, one row for each value; and every figure of every probe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from boardcluster.records import Campaign, ProbeFigure, ProbeRun, Result, Telemetry
from boardcluster.report.export.frames import (
    Frame,
    Value,
    boolean,
    fields_of,
    frame_of,
    number,
    objects,
    text,
    values_of,
)
from boardcluster.report.export.runs import IDENTITY, Run

__all__ = ["PROBES", "SAMPLES", "probe_frame", "sample_frame"]

_RUN = (
    *IDENTITY,
    text("workload", "name of the workload", "result.trial.workload"),
    text("engine", "the engine", "result.trial.engine"),
)
_NODE = (
    text("node", "name of the node; host is the machine that emulated nodes share"),
    text("scope", "machine: the kernel's totals; node: what belongs to the node alone"),
)
_VALUE = (
    number("seconds", "end of the sample's interval; 0 is the start of the run"),
    text("column", "what was sampled, unit last: docs/reference/telemetry.md"),
    number("value", "over the interval that ends then; unknown ones have no row"),
)
SAMPLES = (*_RUN, *_NODE, *_VALUE)
"""The columns of the table of samples."""


class _Sample(NamedTuple):
    seconds: float
    column: str
    value: float


class _Probed(NamedTuple):
    run: ProbeRun
    figure: ProbeFigure | None


PROBES = (
    text("run", "id of the run of the probe", "run.id"),
    text("probe", "its name", "run.probe"),
    text("mode", "quick or paper", "run.mode"),
    text("cluster", "name of the cluster", "run.cluster"),
    boolean(
        "emulated", "whether the node is a namespace on one machine, not a board", "run.emulated"
    ),
    text("node", "the node", "run.node"),
    text("peer", "the other node; empty where there is none", "run.peer"),
    text("started_utc", "ISO 8601 with offset", "run.started_utc"),
    number("duration_seconds", "of the whole run of the probe", "run.duration_seconds"),
    text("figure", "what was measured, unit last; empty for a run that failed", "figure.name"),
    number("value", "in that unit; nothing for a run that failed", "figure.value"),
    objects("conditions", "what tells it from its siblings", "figure.conditions", dict),
    text("reason", "why the run failed; empty if it did not", "run.reason"),
    objects("versions", "the tools that measured", "run.versions"),
    text("hardware", "one line on the node", "run.hardware"),
    text("verdict", "whether its figures can be trusted", "run.verdict"),
    objects("verdict_reasons", "why it is not valid", "run.verdict_reasons"),
)
"""The columns of the table of probes."""


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
            head = values_of(_RUN, Run(result, campaigns.get(result.trial.campaign_id)))
            for node in telemetry.nodes:
                whole = (*head, *values_of(_NODE, node))
                moments = node.seconds.tolist()
                for name in sorted(node.columns):
                    for moment, value in zip(moments, node.columns[name].tolist(), strict=True):
                        if not math.isnan(value):  # which is unknown
                            sample = _Sample(moment, name, value)
                            yield (*whole, *values_of(_VALUE, sample))

    return Frame(name="samples", fields=fields_of(SAMPLES), rows=rows())


def probe_frame(runs: Iterable[ProbeRun]) -> Frame:
    """Return one row for each figure of each probe, and one for each run that failed."""
    return frame_of(
        "probes",
        PROBES,
        (_Probed(run, figure) for run in runs for figure in run.figures or (None,)),
    )
