"""How many runs can be trusted, what became of the others, and what of their samples is lost."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boardcluster.analysis import label_of, verdict_of
from boardcluster.analysis.order import carry_over
from boardcluster.records import Engine, Result, Verdict
from boardcluster.report import words
from boardcluster.report.evidence import Evidence
from boardcluster.report.parts import Part
from boardcluster.report.source import Source, state_of
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["Validity", "validity_of", "validity_part"]

_Key: TypeAlias = "tuple[str, int, int, str, str, str]"

_NAMED = 6
_KINDS = ("valid", "tainted", "unjudged", "invalid", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """What became of the attempts at workloads that have ended, without warm-ups.

    Attributes:
        attempts: how many there are.
        counts: by ``valid``, ``tainted``, ``unjudged``, ``invalid`` and ``failed``; sums to
            ``attempts``.
        counted: how many are in the statistics.
        pending: trials that have no attempt that ended.
        warm_ups: ended attempts that only warmed up.
        reasons: why attempts are not valid, the most frequent first, with how many have it.
    """

    attempts: int
    counts: dict[str, int]
    counted: int
    pending: int
    warm_ups: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        if not self.attempts:
            return "No attempt at a workload has ended."
        parts = [f"{self.counts[kind]} {kind}" for kind in _KINDS if self.counts[kind]]
        verb = "counts" if self.counted == 1 else "count"
        said = (
            f"Of {words.count(self.attempts, 'attempt')} {', '.join(parts)}; {self.counted} {verb}"
        )
        more = [f"{self.pending} pending"] if self.pending else []
        more += [words.count(self.warm_ups, "warm-up")] if self.warm_ups else []
        return f"{said}. Beside them: {', '.join(more)}." if more else f"{said}."

    @property
    def is_doubtful(self) -> bool:
        """Whether more attempts are out of the statistics than in them."""
        return self.attempts > 0 and 2 * self.counted < self.attempts


def validity_of(source: Source) -> Validity:
    """Count what became of every attempt."""
    ended = [item for item in _of_workloads(source) if _has_ended(item)]
    measured = [item for item in ended if not item.trial.warm_up]
    tally = Tally(_kind(item) for item in measured)
    begun = {item.trial.id for item in ended}
    reasons = Tally(reason for item in measured for reason in _reasons(item))
    return Validity(
        attempts=len(measured),
        counts={kind: tally[kind] for kind in _KINDS},
        counted=sum(cell.count for cell in source.cells),
        pending=len({item.trial.id for item in _of_workloads(source)} - begun),
        warm_ups=len(ended) - len(measured),
        reasons=tuple(sorted(reasons.items(), key=lambda row: (-row[1], row[0]))),
    )


def validity_part(source: Source, validity: Validity, evidence: Evidence) -> Part:
    """The section: what became of every attempt, and which samples are not there."""
    table = _table(source)
    return Part(
        title="Can these numbers be trusted?",
        name="validity",
        text=(validity.sentence,),
        tables=() if table is None else (table,),
        notes=(*_order(source), *_notes(evidence)),
    )


def _order(source: Source) -> Iterator[str]:
    """What carried over from the run before, where the runs show it."""
    ran = [item for item in _of_workloads(source) if item.attempt is not None]
    for effect in carry_over(source.cells, ran):
        if effect.is_shown:
            longer = "longer" if effect.difference_share > 0 else "shorter"
            low, high = sorted((abs(effect.interval.low), abs(effect.interval.high)))
            name, _, engine = effect.before.partition(" on ")
            yield (
                f"{words.workload_name(effect.workload)} on {words.engine_name(effect.engine)} took"
                f" {words.percent(abs(effect.difference_share))} {longer} right after"
                f" {words.workload_name(name)} on {words.engine_name(Engine(engine))} than after"
                f" anything else ({words.percent(low)} to {words.percent(high)}, 95 % interval, of"
                f" {effect.runs} against {effect.others} runs): something carries over."
            )


def _notes(evidence: Evidence) -> list[str]:
    """What of the samples is damaged or missing, each run by its name."""
    notes = [f"Samples of run {name} are damaged: {why}." for name, why in evidence.damaged]
    missing = evidence.missing
    if missing:
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        verb = "has" if len(missing) == 1 else "have"
        notes.append(
            f"{words.count(len(missing), 'measured run')} {verb} no telemetry ({named}{more}): what"
            " bound them is not known, and no rule of advice has seen their nodes."
        )
    return notes


def _table(source: Source) -> Table | None:
    """What became of the attempts, one row per configuration and engine; None without any."""
    groups: dict[_Key, list[Result]] = {}
    for item in _of_workloads(source):
        if _has_ended(item) and not item.trial.warm_up:
            groups.setdefault(_key(item), []).append(item)
    if not groups:
        return None
    table = Table(
        caption="What became of every attempt, by configuration",
        columns=(
            Column("Workload"),
            Column("Engine", Kind.ENGINE),
            Column("Input", Kind.NUMBER),
            Column("Workers", Kind.NUMBER),
            Column("Profile"),
            Column("Settings"),
            Column("Attempts", Kind.NUMBER),
            *(Column(kind, Kind.NUMBER) for kind in _KINDS),
            Column("Most frequent reason"),
        ),
        rows=tuple(_row(groups[key]) for key in sorted(groups)),
        emulated=source.is_emulated([item for group in groups.values() for item in group]),
    )
    return table.without_constant("Input", "Workers", "Profile", "Settings").without_empty()


def _row(group: Sequence[Result]) -> tuple[str, ...]:
    trial = group[0].trial
    tally = Tally(_kind(item) for item in group)
    reasons = Tally(reason for item in group for reason in _reasons(item))
    often = max(reasons.items(), key=lambda row: row[1], default=("", 0))
    return (
        words.workload_name(trial.workload),
        words.engine_name(trial.engine),
        format_bytes(trial.size_bytes) if trial.size_bytes else words.NONE,
        str(trial.workers),
        trial.profile,
        label_of(group[:1]) or "default",
        str(len(group)),
        *(str(tally[kind]) if tally[kind] else words.NONE for kind in _KINDS),
        f"{often[0]} ({often[1]} of {len(group)})" if often[1] else "",
    )


def _key(item: Result) -> _Key:
    trial = item.trial
    return (
        trial.workload,
        trial.size_bytes,
        trial.workers,
        trial.profile,
        label_of([item]),
        trial.engine,
    )


def _of_workloads(source: Source) -> list[Result]:
    return [item for item in source.results if not source.is_own_program(item)]


def _has_ended(item: Result) -> bool:
    return item.attempt is not None and bool(item.attempt.ended_utc)


def _kind(item: Result) -> str:
    """What became of an attempt: how it ended, and where that was well, its verdict."""
    state = state_of(item)
    return state if state in ("failed", "invalid") else verdict_of(item).value


def _reasons(item: Result) -> tuple[str, ...]:
    if state_of(item) in ("failed", "invalid"):
        return (item.attempt.reason,) if item.attempt and item.attempt.reason else ()
    found = item.measurement
    return found.verdict_reasons if found and found.verdict is not Verdict.VALID else ()
