"""``boardcluster doctor``: what is wrong, why it matters, and the command that fixes it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from boardcluster.cli.asking import ask_yes
from boardcluster.cli.console import Reporter, print_json, print_table, say
from boardcluster.cli.options import CacheOption, ChosenCluster, JsonOption, cache_folder
from boardcluster.cluster.kinds.boards.nodes import board_nodes
from boardcluster.cluster.lock import driver_lock
from boardcluster.doctor import Facts, Finding, Severity, ask_boards, examine, gather_facts
from boardcluster.errors import BoardclusterError, HostError, UsageError
from boardcluster.remote.base import Remote
from boardcluster.services.boards import require_own_boards
from boardcluster.units import format_count

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster doctor --deep"


def command(
    at: ChosenCluster,
    cache: CacheOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every byte of the installed engines.")
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Run the repairs that can do no harm, after asking."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with this machine, cluster and boards, why it matters and how to fix it.

    Changes nothing without --fix. Exit code 5 if there is an error, 0 if there are warnings only.
    """
    facts = gather_facts(
        at.folder(),
        cache=cache_folder(cache),
        options=at.again,
        cache_option=f" --cache {shlex.quote(str(cache))}" if cache else "",
        deep=deep,
    )
    boards = _boards_of(facts)
    findings = _findings(facts, boards)
    if fix and _repair_all(findings, boards, facts, ask=not yes):
        findings = _findings(facts, boards)
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings, fixing=f"boardcluster doctor{facts.options} --fix")
    errors = [row for row in findings if not row.ok and row.severity is Severity.ERROR]
    if errors:
        raise HostError(
            f"the doctor found {format_count(len(errors), 'error')}",
            hint="apply the `fix` commands above, in order, then run `boardcluster doctor` again",
        )


def _boards_of(facts: Facts) -> Mapping[str, Remote]:
    """Return the cluster's boards by name, as root; none unless it is one of boards."""
    if facts.spec is None or not facts.spec.capabilities.over_ssh:
        return {}
    nodes = board_nodes(facts.home)
    return {node.name: nodes.admin(node) for node in facts.spec.nodes}


def _findings(facts: Facts, boards: Mapping[str, Remote]) -> list[Finding]:
    return examine(ask_boards(facts, boards) if boards else facts)


def _repair_all(
    findings: Sequence[Finding], boards: Mapping[str, Remote], facts: Facts, *, ask: bool
) -> bool:
    """Run the repairs that can do no harm; return whether any was run.

    Raises:
        UsageError: there is no terminal to ask on.
        LockedError: another driver is working on these boards, or they are another's.
    """
    reporter = Reporter()
    rows = [row for row in findings if row.repair]
    if not rows:
        reporter.line("no fault was found that can be repaired automatically")
        return False
    if ask and not _can_ask():
        raise UsageError(
            "--fix asks before each repair, but there is no terminal to ask on", hint="add --yes"
        )
    with driver_lock(facts.home, doing="doctor --fix"):
        if facts.declared.capabilities.over_ssh:
            mended = {row.node for row in rows}
            require_own_boards(
                facts.home, [node for node in facts.declared.nodes if node.name in mended]
            )
        done = [_repair(row, boards[row.node], reporter, ask=ask) for row in rows]
    return any(done)


def _repair(row: Finding, board: Remote, reporter: Reporter, *, ask: bool) -> bool:
    """Run one repair; return whether it was run, well or not."""
    command = shlex.join(row.repair)
    if ask and not ask_yes(f"{row.seen}\nas root on {row.node}: {command} ?"):
        return False
    try:
        board.run(row.repair)
        reporter.line(f"{row.node}: done: {command}")
    except BoardclusterError as error:
        reporter.line(f"{row.node}: failed: {command}: {error.message}")
    return True


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _print_findings(findings: Sequence[Finding], *, fixing: str) -> None:
    """Print one row per finding, then for each fault why it matters and how to fix it."""
    rows = [[_state(row), row.check, row.seen] for row in findings]
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
        f"{format_count(len(faults) - warnings, 'error')}, {format_count(warnings, 'warning')}, "
        f"{len(findings) - len(faults)} ok"
    )
    if repairs := sum(bool(row.repair) for row in faults):
        say(f"`{fixing}` can do {format_count(repairs, 'repair')} for you")


def _state(finding: Finding) -> str:
    if finding.ok:
        return "ok"
    return "ERROR" if finding.severity is Severity.ERROR else "warning"
