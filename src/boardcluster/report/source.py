"""The records a report is made of, and what several of its parts ask about them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from boardcluster.analysis.cells import (
    Cell,
    Configuration,
    Untrusted,
    label_of,
    summarise,
    untrusted,
    verdict_of,
)
from boardcluster.analysis.fingerprints import same_setup
from boardcluster.records import AttemptState, Campaign, CampaignKind, Fingerprint, Result
from boardcluster.report import words
from boardcluster.report.tables import Display, Getter, Getters
from boardcluster.units import format_bytes

__all__ = [
    "Source",
    "configuration",
    "groups_of",
    "has_ended",
    "left_out",
    "letter",
    "named_cell",
    "outcome_of",
    "state_counts",
    "state_of",
    "trial_getters",
    "verified",
    "workload_anchor",
]

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The records of a report."""

    results: tuple[Result, ...]
    """All of them, campaign by campaign in the order they ran."""
    campaigns: dict[str, Campaign]
    """By their ids."""
    cells: tuple[Cell, ...]
    """The verified runs of workloads that count."""
    untrusted: tuple[Untrusted, ...]
    """Configurations of which no run counts."""
    tainted: bool
    """Whether tainted runs count."""
    fingerprints: tuple[Fingerprint, ...]
    """The different setups, each as its first run had it, in the order of these."""
    methods: tuple[str, ...]
    """The different ways of verification, in the order of their first use."""
    pages: Mapping[tuple[str, int], str]
    """By trial and number of an attempt, the page of its curves, where there is one."""

    @classmethod
    def of(
        cls,
        results: Iterable[Result],
        campaigns: Iterable[Campaign],
        *,
        tainted: bool = False,
        pages: Mapping[tuple[str, int], str] | None = None,
    ) -> Self:
        """Order and group the records; tainted runs count only if asked for."""
        ordered = tuple(sorted(results, key=_run_order))
        known = {campaign.id: campaign for campaign in campaigns}
        workloads = [item for item in ordered if not _is_own_program(item, known)]
        proofs = [item.measurement.verification for item in ordered if item.measurement]
        return cls(
            results=ordered,
            campaigns=known,
            cells=summarise(workloads, tainted=tainted),
            untrusted=untrusted(workloads, tainted=tainted),
            tainted=tainted,
            fingerprints=_setups(item.attempt.fingerprint for item in ordered if item.attempt),
            methods=tuple(dict.fromkeys(proof.method for proof in proofs if proof is not None)),
            pages=pages or {},
        )

    def is_emulated(self, results: Iterable[Result]) -> bool:
        """Say whether any of these results is of nodes that are no boards: emulated, or local."""
        return any(self._one_emulated(result) for result in results)

    def are_emulated(self, cells: Iterable[Cell]) -> bool:
        """Say whether any run of these cells is of nodes that are no boards."""
        return self.is_emulated(result for cell in cells for result in cell.results)

    def of_workload(self, workload: str) -> tuple[Cell, ...]:
        """The cells of a workload."""
        return tuple(cell for cell in self.cells if cell.workload == workload)

    def of_workloads(self) -> tuple[Result, ...]:
        """Every result but those of the user's own programs."""
        return tuple(result for result in self.results if not self.is_own_program(result))

    def _one_emulated(self, result: Result) -> bool:
        campaign = self.campaigns.get(result.trial.campaign_id)
        if campaign is not None and campaign.emulated:
            return True
        return result.attempt is not None and bool(result.attempt.fingerprint.mark)

    def all_emulated(self) -> bool:
        """Say whether every result is of nodes that are no boards."""
        return all(self._one_emulated(result) for result in self.results)

    def is_own_program(self, result: Result) -> bool:
        """Say whether a result is of the user's own program."""
        return _is_own_program(result, self.campaigns)

    def page_of(self, result: Result) -> str:
        """Where the curves of a run are; empty if it has no page."""
        attempt = result.attempt
        return self.pages.get((attempt.trial_id, attempt.number), "") if attempt else ""

    def setup_letter(self, fingerprint: Fingerprint) -> str:
        """The letter under which the report lists a fingerprint."""
        setups = [same_setup(found) for found in self.fingerprints]
        return letter(setups.index(same_setup(fingerprint)))


def _is_own_program(result: Result, campaigns: Mapping[str, Campaign]) -> bool:
    campaign = campaigns.get(result.trial.campaign_id)
    if campaign is None:
        return result.trial.workload == "submit"
    return campaign.kind is CampaignKind.SUBMIT


def _run_order(result: Result) -> tuple[str, bool, str, int, int]:
    """Campaign by campaign, in the order things ran; what has not run comes last."""
    attempt = result.attempt
    return (
        result.trial.campaign_id,
        attempt is None,
        attempt.started_utc if attempt else "",
        result.trial.position,
        attempt.number if attempt else 0,
    )


def has_ended(result: Result) -> bool:
    """Whether a result is of an attempt that has ended."""
    return result.attempt is not None and bool(result.attempt.ended_utc)


def letter(index: int) -> str:
    """A, B and so on for 0, 1 and so on."""
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def configuration(cell: Cell, cells: Sequence[Cell], *, size: bool = True) -> str:
    """What sets a cell's configuration apart: always its size, the rest only where it varies."""
    parts = [format_bytes(cell.size_bytes)] if size and cell.size_bytes else []
    if len({item.workers for item in cells}) > 1:
        parts.append(words.count(cell.workers, "worker"))
    if len({item.profile for item in cells}) > 1:
        parts.append(f"profile {cell.profile}")
    if len({item.label for item in cells}) > 1 and cell.label:
        parts.append(cell.label)
    return ", ".join(parts)


def named_cell(cell: Cell, cells: Sequence[Cell], *, without: str = "") -> str:
    """The workload of a cell and what sets it apart: ``WordCount over 256 MB, 4 workers``.

    Args:
        cell: the cell.
        cells: all of the report.
        without: a part that is not said; empty for none.
    """
    parts = [part for part in configuration(cell, cells).split(", ") if part not in ("", without)]
    name = words.workload_name(cell.workload)
    return f"{name}{' over ' if cell.size_bytes else ', '}{', '.join(parts)}" if parts else name


def trial_getters(result_of: Callable[[Item], Result]) -> Getters[Item]:
    """The columns that say what ran, apart from the engine.

    Args:
        result_of: a result of the row.
    """
    return (
        Getter("Workload", lambda row: words.workload_name(result_of(row).trial.workload)),
        Getter("Input", lambda row: words.size(result_of(row).trial.size_bytes), Display.NUMBER),
        Getter("Workers", lambda row: str(result_of(row).trial.workers), Display.NUMBER),
        Getter("Profile", lambda row: result_of(row).trial.profile),
        Getter("Settings", lambda row: label_of([result_of(row)]) or "default"),
    )


def groups_of(cells: Sequence[Cell]) -> tuple[tuple[Cell, ...], ...]:
    """Cells by configuration, in their order."""
    groups: dict[Configuration, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.configuration, []).append(cell)
    return tuple(tuple(group) for group in groups.values())


def state_counts(results: Sequence[Result]) -> str:
    """``6 planned = 4 ok + 1 failed + 0 invalid + 1 pending`` by each trial's latest attempt."""
    latest: dict[str, Result] = {}
    for result in results:
        known = latest.get(result.trial.id)
        if known is None or _number(result) > _number(known):
            latest[result.trial.id] = result
    tally = Tally(state_of(result) for result in latest.values())
    pending = tally["pending"] + tally["running"]
    return (
        f"{len(latest)} planned = {tally['ok']} ok + {tally['failed']} failed"
        f" + {tally['invalid']} invalid + {pending} pending"
    )


def _number(result: Result) -> int:
    return result.attempt.number if result.attempt else 0


def state_of(result: Result) -> str:
    """A result's state; ``pending`` where there is no attempt."""
    return result.attempt.state.value if result.attempt else "pending"


def outcome_of(result: Result) -> str:
    """What became of an attempt: how it ended, and where that was well, its verdict."""
    state = state_of(result)
    return verdict_of(result).value if state == AttemptState.OK else state


def verified(source: Source) -> list[Result]:
    """The verified results: those in the statistics, and those too tainted for them."""
    groups = [*(cell.results for cell in source.cells), left_out(source)]
    return [
        item
        for group in groups
        for item in group
        if item.measurement is not None and item.measurement.verification is not None
    ]


def left_out(source: Source) -> tuple[Result, ...]:
    """The verified results that stay out of the statistics because they are tainted."""
    out = [item for cell in source.cells for item in cell.left_out]
    return (*out, *(item for row in source.untrusted for item in row.results))


def workload_anchor(workload: str) -> str:
    """Where on the page a workload is; also in the names of files. Unique for each workload."""
    plain = re.sub(r"[^a-z0-9]+", "-", workload.lower()).strip("-")
    if plain == workload:
        return f"workload-{plain}"
    digest = hashlib.sha256(workload.encode(errors="surrogateescape")).hexdigest()
    return f"workload-{plain}-{digest[:6]}".replace("--", "-")


def _setups(found: Iterable[Fingerprint]) -> tuple[Fingerprint, ...]:
    """Return the first fingerprint of each setup."""
    first: dict[object, Fingerprint] = {}
    for each in found:
        first.setdefault(same_setup(each), each)
    return tuple(first.values())
