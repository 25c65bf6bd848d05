"""Shows the probes there are, and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from boardcluster.catalog.shown import conditions_text, is_curve_point, show_figure
from boardcluster.cli.console import print_columns, print_json, print_table, say
from boardcluster.probes.base import Probe
from boardcluster.probes.registry import all_probes
from boardcluster.records import ProbeRun
from boardcluster.units import format_seconds

__all__ = ["print_probe_runs", "print_probes"]


def print_probes(*, as_json: bool) -> None:
    """Print every probe that there is."""
    probes = all_probes()
    if as_json:
        shown = ("name", "area", "summary", "matches", "pair", "needs_root", "default",
                 "quick_seconds", "paper_seconds")  # fmt: skip
        print_json(
            [
                {
                    **{key: getattr(probe, key) for key in shown},
                    "packages": sorted({tool.package for tool in probe.tools}),
                }
                for probe in probes
            ]
        )
        return
    columns: Mapping[str, Callable[[Probe], str]] = {
        "probe": lambda row: row.name,
        "area": lambda row: row.area,
        "runs": lambda row: (
            ("between two nodes" if row.pair else "on one node")
            + ("" if row.default else ", if named")
            + (", as root" if row.needs_root else "")
        ),
        "quick": lambda row: f"about {format_seconds(row.quick_seconds)}",
        "paper": lambda row: f"about {format_seconds(row.paper_seconds)}",
        "measures": lambda row: row.summary,
    }
    print_columns("", columns, probes)


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
            say(f"{_label(run)}: {run.probe}: {points} points of its curves are only in --json")
        if run.reason:
            say(f"{_label(run)}: {run.probe}: {run.reason}")
        for line in run.verdict_reasons:
            say(f"{_label(run)}: {run.probe}: {run.verdict}: {line}")
