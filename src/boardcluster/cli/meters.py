"""``boardcluster meters``: the power meters of a cluster, and their present readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated

import typer

from boardcluster.campaign.upkeep import meter_remotes
from boardcluster.cli.console import print_columns, print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.errors import MeterError
from boardcluster.services.declaration import read_spec
from boardcluster.telemetry.metering import MeterCheck, check_meter
from boardcluster.telemetry.meters.registry import kinds, meter_facts

__all__ = ["EPILOG", "command"]

_AT_ONCE = 16


EPILOG = "Example: boardcluster meters --kinds"


def command(
    at: ChosenCluster,
    show_kinds: Annotated[
        bool, typer.Option("--kinds", help="List the kinds of meters and their options instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read each power meter in cluster.toml once. Exit code 8 if one does not answer."""
    if show_kinds:
        _show_kinds(as_json=as_json)
        return
    folder = at.folder()
    spec = read_spec(folder / "cluster.toml", meter_kinds=meter_facts())
    if not spec.meters:
        if as_json:
            print_json([])
        else:
            say("cluster.toml declares no meters; see docs/how-to/measure-energy.md")
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        checks = list(
            pool.map(partial(check_meter, remotes=meter_remotes(folder, spec)), spec.meters)
        )
    _show(checks, as_json=as_json)
    if any(check.error for check in checks):
        raise typer.Exit(MeterError.exit_code)


def _show(checks: Sequence[MeterCheck], *, as_json: bool) -> None:
    if as_json:
        print_json(checks)
        return
    columns: Mapping[str, Callable[[MeterCheck], str]] = {
        "meter": lambda row: row.meter,
        "kind": lambda row: row.kind,
        "nodes": lambda row: ", ".join([*row.nodes, *(["the switch"] if row.switch else [])]),
        "coverage": lambda row: row.coverage.value,
        "W": lambda row: "-" if row.watts is None else f"{row.watts:.2f}",
        "accuracy or error": lambda row: row.error or row.accuracy,
    }
    print_columns("", columns, checks)
    for check in checks:
        if check.error and check.hint:
            say(f"{check.meter}: {check.hint}")


def _show_kinds(*, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": kind.name,
                    "summary": kind.summary,
                    "coverage": kind.coverage.value,
                    "accuracy": kind.accuracy,
                    "accuracy_percent": kind.accuracy_percent,
                    "interval_seconds": kind.interval_seconds,
                    "on_node": kind.on_node,
                    "options": [
                        {"name": row.name, "help": row.help, "default": row.default}
                        for row in kind.options
                    ],
                }
                for kind in kinds().values()
            ]
        )
        return
    for kind in kinds().values():
        say(f"{kind.name}: {kind.summary}")
        say(
            f"  coverage: {kind.coverage.value}; every {kind.interval_seconds:g} s; {kind.accuracy}"
        )
        for row in kind.options:
            default = "required" if row.default is None else f'default "{row.default}"'
            say(f"  {row.name}: {row.help} ({default})")
