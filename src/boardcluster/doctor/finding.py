"""What a check is and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from boardcluster.capabilities import Capabilities

__all__ = ["Check", "Finding", "Severity"]

Seen = TypeVar("Seen")
"""What a check looks at: ``Surroundings``, or ``ClusterView`` for boards."""


class Severity(StrEnum):
    """ERROR: something will not work. WARNING: it works, but worse, or its numbers mislead."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check has to say about one thing.

    Attributes:
        check: name of the check.
        severity: how bad it is; for a good finding, how bad it would be.
        ok: whether all is well, or could not be told.
        seen: what was seen, one short sentence.
        why: why it matters.
        fix: the command that mends it, or what to do in the imperative; empty if ok.
        source: where the claim comes from.
        node: the board it is about; empty if it is about this machine or all boards.
        repair: a command that mends it and can do no harm, to be run as root on that board;
            empty if only a person should.
    """

    check: str
    severity: Severity
    ok: bool
    seen: str
    why: str
    fix: str
    source: str
    node: str = ""
    repair: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[Seen]):
    """One check: what it knows, and how it looks. Each lives in a file of its name.

    Attributes:
        name: name of its file in ``checks/``.
        looks_at: what it looks at, for the reference.
        why: why a fault matters.
        source: where the claim comes from.
        severity: of its worst fault.
        look: yields at least one finding; asks only what it is given, and changes nothing.
        matters: says whether it matters to a kind of node; None if to all kinds.
    """

    name: str
    looks_at: str
    why: str
    source: str
    severity: Severity
    look: Callable[[Seen], Iterable[Finding]]
    matters: Callable[[Capabilities], bool] | None = None

    def good(self, seen: str) -> Finding:
        """Return a finding that all is well, or that it cannot be told."""
        return Finding(
            check=self.name,
            severity=self.severity,
            ok=True,
            seen=seen,
            why=self.why,
            fix="",
            source=self.source,
        )

    def wrong(
        self,
        seen: str,
        *,
        fix: str,
        why: str = "",
        severity: Severity | None = None,
        node: str = "",
        repair: Sequence[str] = (),
    ) -> Finding:
        """Return a fault.

        Args:
            seen: what was seen.
            fix: the command that mends it.
            why: why this fault matters; the check's own reason if empty.
            severity: how bad it is; the check's own severity if None.
            node: the board it is about.
            repair: a command that mends it and can do no harm, for root on that board.
        """
        return Finding(
            check=self.name,
            severity=severity or self.severity,
            ok=False,
            seen=seen,
            why=why or self.why,
            fix=fix,
            source=self.source,
            node=node,
            repair=tuple(repair),
        )
