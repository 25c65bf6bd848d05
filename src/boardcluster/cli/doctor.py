"""``boardcluster doctor``: what is wrong, why it matters, and the command that mends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from boardcluster.cli.console import Reporter, print_json, print_table, say
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    again,
    cache_folder,
    home_folder,
)
from boardcluster.cluster.kinds.boards.nodes import board_nodes
from boardcluster.cluster.lock import driver_lock
from boardcluster.doctor import Finding, Severity, Surroundings, examine, in_order, look_around
from boardcluster.doctor.boards import examine_boards, look_at_boards
from boardcluster.errors import BoardclusterError, HostError, UsageError
from boardcluster.remote.base import Remote

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster doctor --deep"


def command(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every byte of the installed engines.")
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Run, after asking, the repairs that can do no harm."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with this machine, cluster and boards, why it matters and what mends it.

    Changes nothing without --fix. Exit code 5 if there is an error, 0 if there are warnings only.
    """
    around = look_around(
        home_folder(home, cluster),
        cache=cache_folder(cache),
        options=again(home, cluster),
        cache_option=f" --cache {shlex.quote(str(cache))}" if cache else "",
        deep=deep,
    )
    boards = _boards_of(around)
    findings = _findings(around, boards)
    if fix and _mend(findings, boards, folder=around.home, ask=not yes):
        findings = _findings(around, boards)
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings, mend=f"boardcluster doctor{around.options} --fix")
    errors = [row for row in findings if not row.ok and row.severity is Severity.ERROR]
    if errors:
        raise HostError(
            f"the doctor found {_count(len(errors), 'error')}",
            hint="do what stands behind `fix`, from the top, then run `boardcluster doctor` again",
        )


def _boards_of(around: Surroundings) -> Mapping[str, Remote]:
    """Return the cluster's boards by name, as root; none unless it is one of boards."""
    if around.spec is None or not around.spec.capabilities.over_ssh:
        return {}
    nodes = board_nodes(around.home)
    return {node.name: nodes.admin(node) for node in around.spec.nodes}


def _findings(around: Surroundings, boards: Mapping[str, Remote]) -> list[Finding]:
    findings = examine(around)
    if around.spec is not None and boards:
        view = look_at_boards(
            around.spec,
            boards,
            state=around.state,
            running=around.running,
            options=around.options,
        )
        findings = in_order([*findings, *examine_boards(view)])
    return findings


def _mend(
    findings: Sequence[Finding], boards: Mapping[str, Remote], *, folder: Path, ask: bool
) -> bool:
    """Run the repairs that can do no harm; return whether any was run.

    Raises:
        UsageError: somebody should be asked, and nobody is there.
        LockedError: another driver is at work on these boards.
    """
    reporter = Reporter()
    rows = [row for row in findings if row.repair]
    if not rows:
        reporter.line("nothing was found that could be mended without a person")
        return False
    if ask and not _somebody_is_there():
        raise UsageError(
            "--fix asks before each repair, and nobody is here to answer", hint="add --yes"
        )
    with driver_lock(folder, doing="doctor --fix"):
        done = [_repair(row, boards[row.node], reporter, ask=ask) for row in rows]
    return any(done)


def _repair(row: Finding, board: Remote, reporter: Reporter, *, ask: bool) -> bool:
    """Run one repair; return whether it was run, well or not."""
    command = shlex.join(row.repair)
    if ask and not typer.confirm(f"{row.seen}\nas root on {row.node}: {command} ?", err=True):
        return False
    try:
        board.run(row.repair)
        reporter.line(f"{row.node}: done: {command}")
    except BoardclusterError as error:
        reporter.line(f"{row.node}: failed: {command}: {error.message}")
    return True


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _print_findings(findings: Sequence[Finding], *, mend: str) -> None:
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
    if mendable := sum(bool(row.repair) for row in faults):
        say(f"`{mend}` can do {_count(mendable, 'repair')} itself")


def _state(finding: Finding) -> str:
    if finding.ok:
        return "ok"
    return "ERROR" if finding.severity is Severity.ERROR else "warning"
