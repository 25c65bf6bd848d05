"""Every sample of every node, one row for each value; and every figure of every probe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from boardcluster.records import Campaign, NodeSamples, ProbeFigure, ProbeRun, Result, Telemetry
from boardcluster.report.export.frames import (
    Columns,
    Frame,
    Value,
    boolean,
    fields_of,
    frame_of,
    lift,
    number,
    objects,
    text,
    values_of,
)
from boardcluster.report.export.runs import IDENTITY, Run

__all__ = ["PROBES", "SAMPLES", "probe_frame", "sample_frame"]

_Sample: TypeAlias = tuple[Run, NodeSamples, tuple[float, str, float]]

_RUN: Columns[Run] = (
    *IDENTITY,
    text("workload", "name of the workload", lambda run: run.result.trial.workload),
    text("engine", "the engine", lambda run: str(run.result.trial.engine)),
)
_NODE: Columns[NodeSamples] = (
    text(
        "node",
        "name of the node; host is the machine that emulated nodes share",
        lambda node: node.node,
    ),
    text(
        "scope",
        "machine: the kernel's totals; node: what belongs to the node alone",
        lambda node: node.scope,
    ),
)
_VALUE: Columns[tuple[float, str, float]] = (
    number("seconds", "end of the sample's interval; 0 is the start of the run", itemgetter(0)),
    text("column", "what was sampled, unit last: docs/reference/telemetry.md", itemgetter(1)),
    number("value", "over the interval that ends then; unknown ones have no row", itemgetter(2)),
)
SAMPLES: Columns[_Sample] = (
    *lift(_RUN, lambda row: row[0]),
    *lift(_NODE, lambda row: row[1]),
    *lift(_VALUE, lambda row: row[2]),
)
"""The columns of the table of samples."""

_PROBE: Columns[ProbeRun] = (
    text("run", "id of the run of the probe", lambda run: run.id),
    text("probe", "its name", lambda run: run.probe),
    text("mode", "quick or paper", lambda run: str(run.mode)),
    text("cluster", "name of the cluster", lambda run: run.cluster),
    boolean(
        "emulated",
        "whether the node is a namespace on one machine, not a board",
        lambda run: run.emulated,
    ),
    text("node", "the node", lambda run: run.node),
    text("peer", "the other node; empty where there is none", lambda run: run.peer),
    text("started_utc", "ISO 8601 with offset", lambda run: run.started_utc),
    number("duration_seconds", "of the whole run of the probe", lambda run: run.duration_seconds),
)
_FIGURE: Columns[ProbeFigure] = (
    text(
        "figure",
        "what was measured, unit last; empty for a run that failed",
        lambda figure: figure.name,
    ),
    number("value", "in that unit; nothing for a run that failed", lambda figure: figure.value),
    objects(
        "conditions",
        "what tells it from its siblings",
        lambda figure: dict(figure.conditions),
        {},
    ),
)
_END: Columns[ProbeRun] = (
    text("reason", "why the run failed; empty if it did not", lambda run: run.reason),
    objects("versions", "the tools that measured", lambda run: list(run.versions)),
    text("hardware", "one line on the node", lambda run: run.hardware),
)
PROBES: Columns[tuple[ProbeRun, ProbeFigure | None]] = (
    *lift(_PROBE, lambda row: row[0]),
    *lift(_FIGURE, lambda row: row[1]),
    *lift(_END, lambda row: row[0]),
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
                            yield (*whole, *values_of(_VALUE, (moment, name, value)))

    return Frame(name="samples", fields=fields_of(SAMPLES), rows=rows())


def probe_frame(runs: Iterable[ProbeRun]) -> Frame:
    """Return one row for each figure of each probe, and one for each run that failed."""
    return frame_of(
        "probes", PROBES, ((run, figure) for run in runs for figure in run.figures or (None,))
    )
