"""Find the checks and run them; a check that crashes is a finding too."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from boardcluster.doctor import checks
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["check_names", "examine", "load_check"]

_ORDER = (Severity.ERROR, Severity.WARNING)


def check_names() -> tuple[str, ...]:
    """Return the names of all checks: the files in ``checks/``."""
    return tuple(sorted(module.name for module in iter_modules(checks.__path__)))


def load_check(name: str) -> Check:
    """Return a check by its name."""
    return cast("Check", import_module(f"{checks.__name__}.{name}").CHECK)


def examine(around: Surroundings) -> list[Finding]:
    """Run every check and return what they found: errors, then warnings, then what is well."""
    findings: list[Finding] = []
    for name in check_names():
        try:
            check = load_check(name)
        except Exception as error:  # noqa: BLE001  one broken file must not silence the others
            findings.append(_crashed(name, Severity.ERROR, error))
        else:
            findings.extend(_run(check, around))
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> int:
    return len(_ORDER) if finding.ok else _ORDER.index(finding.severity)


def _run(check: Check, around: Surroundings) -> Iterator[Finding]:
    """Run one check; what it found before it crashed is kept."""
    try:
        yield from check.look(around)
    except Exception as error:  # noqa: BLE001  the machine is odd enough to surprise us: say so
        yield _crashed(check.name, check.severity, error)


def _crashed(name: str, severity: Severity, error: Exception) -> Finding:
    return Finding(
        check=name,
        severity=severity,
        ok=False,
        seen=f"this check failed itself: {type(error).__name__}: {error}",
        why="What it looks at was not looked at. The other checks are not affected.",
        fix="report it as a defect of boardcluster, with this line and the output of `uname -a`",
        source=f"boardcluster, doctor/checks/{name}.py",
    )
