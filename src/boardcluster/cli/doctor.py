"""``boardcluster doctor``: what is wrong, why it matters, and the command that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from boardcluster.cli.console import print_json, print_table, say
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    again,
    cache_folder,
    home_folder,
)
from boardcluster.doctor import Finding, Severity, examine, look_around
from boardcluster.errors import HostError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="doctor", epilog="Example: boardcluster doctor --deep")(_doctor)


def _doctor(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every byte of the installed engines.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with this machine and cluster, why it matters and what mends it.

    Changes nothing. Exit code 5 if there is an error, 0 if there are warnings only.
    """
    around = look_around(
        home_folder(home, cluster),
        cache=cache_folder(cache),
        options=again(home, cluster),
        cache_option=f" --cache {shlex.quote(str(cache))}" if cache else "",
        deep=deep,
    )
    findings = examine(around)
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    errors = [row for row in findings if not row.ok and row.severity is Severity.ERROR]
    if errors:
        raise HostError(
            f"the doctor found {_count(len(errors), 'error')}",
            hint="do what stands behind `fix`, from the top, then run `boardcluster doctor` again",
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _print_findings(findings: Sequence[Finding]) -> None:
    """Print one row per finding, then for each fault why it matters and what mends it."""
    rows = [[_state(row), row.check, escape(row.seen)] for row in findings]
    print_table("", ["state", "check", "what was seen"], rows)
    faults = [row for row in findings if not row.ok]
    for row in faults:
        say("")
        say(f"{_state(row)}: {row.check}: {row.seen}")
        say(f"  why     {row.why}")
        say(f"  fix     {row.fix}")
        say(f"  source  {row.source}")
    warnings = sum(row.severity is Severity.WARNING for row in faults)
    say("")
    say(
        f"{_count(len(faults) - warnings, 'error')}, {_count(warnings, 'warning')}, "
        f"{len(findings) - len(faults)} ok"
    )


def _state(finding: Finding) -> str:
    if finding.ok:
        return "ok"
    return "ERROR" if finding.severity is Severity.ERROR else "warning"
