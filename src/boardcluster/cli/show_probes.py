"""Shows the probes there are, and what they measured."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.catalog.shown import conditions_text, is_curve_point, show_figure
from boardcluster.cli.console import print_json, print_table, say
from boardcluster.probes.registry import all_probes
from boardcluster.records import ProbeRun
from boardcluster.units import format_seconds

__all__ = ["print_probe_runs", "print_probes"]


def print_probes(*, as_json: bool) -> None:
    """Print every probe that there is."""
    probes = all_probes()
    if as_json:
        rows = [
            {
                "name": probe.name,
                "area": probe.area,
                "summary": probe.summary,
                "matches": probe.matches,
                "packages": sorted({tool.package for tool in probe.tools}),
                "pair": probe.pair,
                "needs_root": probe.needs_root,
                "default": probe.default,
                "quick_seconds": probe.quick_seconds,
                "paper_seconds": probe.paper_seconds,
            }
            for probe in probes
        ]
        print_json(rows)
        return
    columns = ["probe", "area", "runs", "quick", "paper", "measures"]
    print_table(
        "",
        columns,
        [
            [
                probe.name,
                probe.area,
                ("between two nodes" if probe.pair else "on one node")
                + ("" if probe.default else ", if named")
                + (", as root" if probe.needs_root else ""),
                f"about {format_seconds(probe.quick_seconds)}",
                f"about {format_seconds(probe.paper_seconds)}",
                probe.summary,
            ]
            for probe in probes
        ],
    )


def _label(run: ProbeRun) -> str:
    place = f"{run.node} to {run.peer}" if run.peer else run.node
    return f"{place} (emulated)" if run.emulated else place


def print_probe_runs(runs: Sequence[ProbeRun]) -> None:
    """Print the figures of runs, one table per node."""
    columns = ["node", "probe", "figure", "conditions", "value", "unit"]
    rows: dict[str, list[list[str]]] = {}
    for run in runs:
        for figure in run.figures:
            if is_curve_point(figure):
                continue
            what, value, unit = show_figure(figure)
            row = [run.probe, what, conditions_text(figure.conditions), value, unit]
            rows.setdefault(_label(run), []).append([_label(run), *row])
    for place, table in rows.items():
        about = next(run.hardware for run in runs if _label(run) == place)
        print_table(about, columns, table)
    for run in runs:
        if points := sum(map(is_curve_point, run.figures)):
            say(f"{_label(run)}: {run.probe}: {points} points of its curves are in --json")
        if run.reason:
            say(f"{_label(run)}: {run.probe}: {run.reason}")
