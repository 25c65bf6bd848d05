"""How many runs can be trusted, what became of the others, and what of their samples is lost."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boardcluster.analysis.cells import label_of, security_of, settings
from boardcluster.analysis.order import carry_over
from boardcluster.analysis.trust import TOGETHER
from boardcluster.records import Engine, Result, Verdict
from boardcluster.report import words
from boardcluster.report.evidence import Evidence
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, present
from boardcluster.report.ratio_words import drift_words
from boardcluster.report.source import Source, has_ended, outcome_of, state_of, trial_getters
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate

__all__ = ["Validity", "validity_of", "validity_section"]

_Key: TypeAlias = "tuple[str, int, int, str, str, str]"

_NAMED = 6
_KINDS = ("valid", "tainted", "unjudged", "invalid", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """What became of the attempts at workloads that have ended, without warm-ups."""

    attempts: int
    """How many there are."""
    counts: dict[str, int]
    """By ``valid``, ``tainted``, ``unjudged``, ``invalid`` and ``failed``; sums to ``attempts``."""
    counted: int
    """How many are in the statistics; one of each trial at most."""
    trials: int
    """How many trials these are attempts at."""
    pending: int
    """Trials that have no attempt that ended."""
    warm_ups: int
    """Ended attempts that only warmed up."""
    reasons: tuple[tuple[str, int], ...]
    """Why attempts are not valid, the most frequent first, with how many have it."""

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        if not self.attempts:
            ups = words.count(self.warm_ups, "warm-up run")
            return f"No attempt at a workload has ended{f', only {ups}' if self.warm_ups else ''}."
        parts = [self._said(kind) for kind in _KINDS if self.counts[kind]]
        counted = "counts" if self.counted == 1 else "count"
        more = [words.count(self.pending, "pending trial")] if self.pending else []
        more += [words.count(self.warm_ups, "warm-up run")] if self.warm_ups else []
        return (
            f"Of {words.count(self.attempts, 'attempt')}, {words.listed(parts)}; {self.counted}"
            f" {counted}.{f' Not included: {words.listed(more)}.' if more else ''}"
        )

    def _said(self, kind: str) -> str:
        verb = "" if kind == "failed" else "is " if self.counts[kind] == 1 else "are "
        return f"{self.counts[kind]} {verb}{kind}"

    @property
    def is_doubtful(self) -> bool:
        """Whether more of these trials are out of the statistics than in them.

        How many attempts it took says nothing: a repeat was made because one did not count.
        """
        return self.trials > 0 and 2 * self.counted < self.trials


def validity_of(source: Source) -> Validity:
    """Count what became of every attempt."""
    ended = [item for item in source.of_workloads() if has_ended(item)]
    measured = [item for item in ended if not item.trial.warm_up]
    tally = Tally(outcome_of(item) for item in measured)
    begun = {item.trial.id for item in ended}
    reasons = Tally(reason for item in measured for reason in _reasons(item))
    return Validity(
        attempts=len(measured),
        counts={kind: tally[kind] for kind in _KINDS},
        counted=sum(cell.count for cell in source.cells),
        trials=len({item.trial.id for item in measured}),
        pending=len({item.trial.id for item in source.of_workloads()} - begun),
        warm_ups=len(ended) - len(measured),
        reasons=tuple(sorted(reasons.items(), key=lambda row: (-row[1], row[0]))),
    )


def validity_section(material: Material) -> Iterator[Part]:
    """What became of every attempt, and which samples are not there."""
    source = material.source
    if source.of_workloads():
        yield Part(
            title="Can these numbers be trusted?",
            name="validity",
            contents="Validity",
            text=(validity_of(source).sentence,),
            tables=present(_table(source)),
            paper=True,
            notes=(*map(drift_words, material.drifts), *_order(source), *_notes(material.evidence)),
        )


def _order(source: Source) -> Iterator[str]:
    """What carried over from the run before, where the runs show it."""
    ran = [item for item in source.of_workloads() if item.attempt is not None]
    for effect in carry_over(source.cells, ran):
        if effect.is_shown:
            longer = "longer" if effect.difference_share > 0 else "shorter"
            low, high = sorted((abs(effect.interval.low), abs(effect.interval.high)))
            name, _, engine = effect.before.partition(" on ")
            carried = f"{effect.runs} runs against {effect.others}): an effect carries over"
            yield (
                f"{words.workload_name(effect.workload)} on {words.engine_name(effect.engine)} took"
                f" {words.percent(abs(effect.difference_share))} {longer} right after"
                f" {words.workload_name(name)} on {words.engine_name(Engine(engine))} than after"
                f" anything else (95 % interval {words.percent(low)} to {words.percent(high)},"
                f" p {words.p_value(effect.p_value)}, {carried} from run to run."
            )


def _notes(evidence: Evidence) -> list[str]:
    """Which samples are damaged or missing, each run by its name."""
    notes = [f"Samples of run {name} are damaged: {why}." for name, why in evidence.damaged]
    missing = evidence.missing
    if missing:
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        verb = "has" if len(missing) == 1 else "have"
        notes.append(
            f"{words.count(len(missing), 'measured run')} {verb} no telemetry ({named}{more}): what"
            f" held {'it' if len(missing) == 1 else 'them'} back is not known, and most rules of"
            " advice could not be applied."
        )
    return notes


def _table(source: Source) -> ReportTable | None:
    """What became of the attempts, one row per configuration and engine; None without any."""
    groups: dict[_Key, list[Result]] = {}
    for item in source.of_workloads():
        if has_ended(item) and not item.trial.warm_up:
            groups.setdefault(_key(item), []).append(item)
    workload, *others, _ = trial_getters(_first)
    getters: Getters[Sequence[Result]] = (
        workload,
        Getter("Engine", lambda group: words.engine_name(group[0].trial.engine), Display.ENGINE),
        *others,
        Getter("Settings", lambda group: label_of(group) or "default"),
        Getter("Attempts", lambda group: str(len(group)), Display.NUMBER),
        *(Getter(kind, _count_of(kind), Display.NUMBER) for kind in _KINDS),
        Getter("Most frequent reason", _often),
    )
    return tabulate(
        [groups[key] for key in sorted(groups)],
        getters,
        caption="Outcome of every attempt, by configuration",
        emulated=source.is_emulated(item for group in groups.values() for item in group),
        hide=("Input", "Workers", "Profile", "Settings"),
    )


def _first(group: Sequence[Result]) -> Result:
    return group[0]


def _count_of(kind: str) -> Callable[[Sequence[Result]], str]:
    return lambda group: str(sum(outcome_of(item) == kind for item in group) or words.NONE)


def _often(group: Sequence[Result]) -> str:
    """The reason that most of the attempts have, and how many have it."""
    reasons = Tally(reason for item in group for reason in _reasons(item))
    reason, times = max(reasons.items(), key=lambda row: row[1], default=("", 0))
    return f"{reason} ({times} of {len(group)})" if times else ""


def _key(item: Result) -> _Key:
    """Return what tells configurations apart; not the dilation, which a failed attempt lacks."""
    trial = item.trial
    found = item.attempt.fingerprint if item.attempt is not None else None
    nodes = f"{found.kind} {found.twin}" if found is not None else ""
    return (
        trial.workload,
        trial.size_bytes,
        trial.workers,
        trial.profile,
        f"{nodes} {settings(trial, security=security_of(item))}",
        trial.engine,
    )


def _reasons(item: Result) -> tuple[str, ...]:
    if state_of(item) in ("failed", "invalid"):
        return (item.attempt.reason,) if item.attempt and item.attempt.reason else ()
    found = item.measurement
    lines = found.verdict_reasons if found and found.verdict is not Verdict.VALID else ()
    return tuple(line for line in lines if not line.startswith(TOGETHER))
