"""Find the checks and run them; a check that crashes is a finding too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from boardcluster.doctor import checks
from boardcluster.doctor.check import Check, Fault, Finding, Severity, Where
from boardcluster.doctor.facts import Facts

__all__ = ["check_names", "examine", "load_check", "run_check"]


def check_names() -> tuple[str, ...]:
    """Return the names of all checks: the files in ``checks/``."""
    return tuple(sorted(module.name for module in iter_modules(checks.__path__)))


def load_check(name: str) -> Check:
    """Return a check by the name of its file."""
    check: Check = import_module(f"{checks.__name__}.{name}").CHECK
    return replace(check, name=name)


def examine(facts: Facts) -> list[Finding]:
    """Run every check that applies to the cluster's kind of node.

    Returns:
        what they found: errors, then warnings, then what is well.
    """
    kind = facts.declared.capabilities
    findings: list[Finding] = []
    for name in check_names():
        try:
            check = load_check(name)
        except Exception as error:  # noqa: BLE001  one broken file must not silence the others
            findings.append(_crashed(name, Severity.ERROR, error))
        else:
            if check.where.applies(kind):
                findings.extend(run_check(check, facts))
    return sorted(findings, key=lambda row: 2 if row.ok else row.severity is Severity.WARNING)


def run_check(check: Check, facts: Facts) -> Iterator[Finding]:
    """Run one check; what it found before it crashed is kept."""
    over_ssh = facts.declared.capabilities.over_ssh
    if over_ssh and check.name_on_boards:
        check = replace(check, name=check.name_on_boards)
    silent = True
    try:
        for row in check.look(facts):
            silent = False
            yield _finding(check, row)
    except Exception as error:  # noqa: BLE001  the machine is odd enough to surprise us: say so
        yield _crashed(check.name, check.severity, error)
        return
    if silent:
        asks_boards = check.where is Where.BOARDS or (check.where is Where.NODES and over_ssh)
        unknown = asks_boards and not facts.boards
        yield _finding(check, "cannot tell: no board answered" if unknown else check.good)


def _finding(check: Check, said: Fault | str) -> Finding:
    row = Fault(said, fix="") if isinstance(said, str) else said
    return Finding(
        check=check.name,
        severity=row.severity or check.severity,
        ok=row is not said,
        seen=f"{row.node}: {row.seen}" if row.node else row.seen,
        why=row.why or check.why,
        fix=row.fix,
        source=check.source,
        node=row.node,
        repair=row.repair if row.node else (),
    )


def _crashed(name: str, severity: Severity, error: Exception) -> Finding:
    return Finding(
        check=name,
        severity=severity,
        ok=False,
        seen=f"this check itself failed: {type(error).__name__}: {error}",
        why="What it looks at was not checked. Other checks are not affected.",
        fix="report it as a defect of boardcluster, with this line and the output of `uname -a`",
        source=f"boardcluster, the file {name}.py of the doctor's checks",
    )
