"""Find the checks and run them; a check that crashes is a finding too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar, cast

from boardcluster.capabilities import Capabilities
from boardcluster.doctor import checks
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["check_names", "examine", "in_order", "load_check", "names_in", "run_checks"]

_ORDER = (Severity.ERROR, Severity.WARNING)

Seen = TypeVar("Seen")


def names_in(folder: ModuleType) -> tuple[str, ...]:
    """Return the names of the checks in a package: its files."""
    return tuple(sorted(module.name for module in iter_modules(folder.__path__)))


def check_names() -> tuple[str, ...]:
    """Return the names of all checks of this machine: the files in ``checks/``."""
    return names_in(checks)


def load_check(name: str) -> Check[Surroundings]:
    """Return a check by its name."""
    return cast("Check[Surroundings]", import_module(f"{checks.__name__}.{name}").CHECK)


def examine(around: Surroundings) -> list[Finding]:
    """Run every check and return what they found: errors, then warnings, then what is well.

    What does not matter to the cluster's kind of node is left out.
    """
    kind = around.declared.capabilities
    return run_checks(check_names(), load_check, around, kind=kind)


def run_checks(
    names: Iterable[str],
    load: Callable[[str], Check[Seen]],
    seen: Seen,
    *,
    kind: Capabilities | None = None,
) -> list[Finding]:
    """Load checks and let each look.

    Args:
        names: their names.
        load: returns a check by its name.
        seen: what they look at.
        kind: leave out those that do not matter to this kind of node; None leaves out none.
    """
    findings: list[Finding] = []
    for name in names:
        try:
            check = load(name)
        except Exception as error:  # noqa: BLE001  one broken file must not silence the others
            findings.append(_crashed(name, Severity.ERROR, error))
        else:
            if kind is None or check.matters is None or check.matters(kind):
                findings.extend(_run(check, seen))
    return in_order(findings)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with errors first, then warnings, then what is well."""
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> int:
    return len(_ORDER) if finding.ok else _ORDER.index(finding.severity)


def _run(check: Check[Seen], seen: Seen) -> Iterator[Finding]:
    """Run one check; what it found before it crashed is kept."""
    try:
        yield from check.look(seen)
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
        source=f"boardcluster, the file {name}.py of the doctor's checks",
    )
