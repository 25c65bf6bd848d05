"""What the runs show, in sentences that claim no more than the runs do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference import EffectVerdict, MeasuredRatio
from boardcluster.analysis.scaling import FactorEffect
from boardcluster.records import Engine, Verdict
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part
from boardcluster.report.ratio_words import basis, setup_words
from boardcluster.report.source import (
    Source,
    groups_of,
    named_cell,
    state_counts,
)

__all__ = ["CellFinding", "find", "findings_section", "headline"]

_ONE_BY_ONE = "one after the other"
_ONCE = "was run only once; one run cannot show how much times vary."


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFinding:
    """What one configuration shows."""

    sentence: str
    """The result, in one sentence."""
    certainty: str
    """How sure it is, in one sentence."""
    engines: tuple[tuple[Engine, str, str, str], ...]
    """Engine, its name, mean and the line below it; fastest first. Empty where engines are not what
    is compared."""
    ratio: str
    """How many times as fast, as text; empty where no difference is shown or none exists."""
    emulated: bool
    """Whether it is of emulated nodes."""
    is_shown: bool
    """Whether the runs show a difference."""


def find(source: Source, effects: Sequence[FactorEffect]) -> tuple[CellFinding, ...]:
    """One finding per configuration, largest input first, then one per mix run both ways.

    Of configurations those come first whose runs show a difference of engines. The largest come
    first because small ones measure start-up.

    Args:
        source: the records.
        effects: every comparison of two of its cells, corrected for their number.
    """
    groups = sorted(groups_of(source.cells), key=lambda group: (-len(group), -group[0].size_bytes))
    engines = tuple(_finding(source, group, _widest(group, effects)) for group in groups)
    shown_first = sorted(engines, key=lambda finding: not finding.is_shown)
    mixes = [row for row in effects if row.factor == "concurrency" and row.faster.is_mix]
    return (
        *shown_first,
        *(_mix_finding(source, row) for row in mixes if "1" in _values(row)),
    )


def _values(row: FactorEffect) -> tuple[str, str]:
    return (row.faster_value, row.slower_value)


def _widest(group: Sequence[Cell], effects: Sequence[FactorEffect]) -> FactorEffect | None:
    """The comparison of two engines that differ most; None for one engine."""
    known = {id(cell) for cell in group}
    engines = (row for row in effects if row.factor == "engine" and id(row.faster) in known)
    return max(engines, key=lambda row: row.ratio.value, default=None)


def _mix_finding(source: Source, row: FactorEffect) -> CellFinding:
    one, several = row.faster, row.slower
    if one.concurrency != 1:
        one, several = several, one
    start = (
        f"{named_cell(one, source.cells, without=_ONE_BY_ONE)}"
        f" on {words.engine_name(one.engine)}:"
        f" {words.seconds_with_unit(one.mean_seconds)} {_ONE_BY_ONE},"
        f" {words.seconds_with_unit(several.mean_seconds)} with {several.concurrency} at once"
    )
    verdict, certainty, ratio = _said(row.ratio, "fast" if row.faster is several else "slow", "two")
    return CellFinding(
        sentence=f"{start}: {verdict}",
        certainty=certainty + setup_words(row.differences) + _trust_words(one, several),
        engines=(),
        ratio=ratio,
        emulated=source.are_emulated([one, several]),
        is_shown=row.ratio.is_shown,
    )


def _said(found: MeasuredRatio, how: str, what: str) -> tuple[str, str, str]:
    """Verdict, certainty and ratio; a difference only where the runs show one."""
    ratio = words.ratio(found.value, found.interval)
    if found.interval is None and found.agrees:
        return f"{ratio} times as {how}", f"One of the {what} {_ONCE}", ratio
    if found.interval is None:
        return "no difference shown", f"One of the {what} {_ONCE}", ""
    if found.is_shown:
        return f"{ratio} times as {how}", basis(found), ratio
    if found.verdict is EffectVerdict.NOT_WORTHWHILE:
        return "no worthwhile difference", basis(found), ""
    return "no difference shown", basis(found), ""


def _finding(source: Source, group: Sequence[Cell], comparison: FactorEffect | None) -> CellFinding:
    cells = sorted(group, key=lambda cell: cell.mean_seconds)
    subject = named_cell(cells[0], source.cells)
    times = ", ".join(_time(cell) for cell in cells)
    sentence, certainty, ratio = f"{subject}: {times}", _lone_certainty(cells[0]), ""
    if comparison is not None:
        sentence, certainty, ratio = _compared(f"{subject}: {times}", comparison, len(cells))
    return CellFinding(
        sentence=sentence,
        certainty=certainty,
        engines=tuple(
            (
                cell.engine,
                words.engine_name(cell.engine),
                words.seconds_with_unit(cell.mean_seconds),
                _spread(cell),
            )
            for cell in cells
        ),
        ratio=ratio,
        emulated=source.are_emulated(cells),
        is_shown=comparison is not None and comparison.ratio.is_shown,
    )


def _time(cell: Cell) -> str:
    """Engine and time; without Hadoop what a workload measures comes first, for which it runs."""
    seconds = words.seconds_with_unit(cell.mean_seconds)
    if not cell.engine.on_yarn and cell.figures:
        name, figure = next(iter(cell.figures.items()))
        return f"{words.figure_value(name, figure.mean)} in a job of {seconds}"
    return f"{words.engine_name(cell.engine)} {seconds}"


def _spread(cell: Cell) -> str:
    if cell.interval_seconds is None:
        return "one run"
    return f"mean of {cell.count}, 95 %: {words.interval(cell.interval_seconds)}"


def _lone_certainty(cell: Cell) -> str:
    said = _trust_words(cell)
    if cell.interval_seconds is None:
        return f"One run: no interval can be given.{said}"
    interval = words.interval(cell.interval_seconds)
    return f"Mean of {cell.count} runs, 95 % interval {interval} s.{said}"


def _trust_words(*cells: Cell) -> str:
    """Say what is tainted or left out; empty if nothing is."""
    tainted = sum(cell.counted(Verdict.TAINTED) for cell in cells)
    out = sum(len(cell.left_out) for cell in cells)
    verb = "is" if tainted == 1 else "are"
    said = f" {tainted} of these runs {verb} tainted." if tainted else ""
    verb = "was" if out == 1 else "were"
    said += f" {words.count(out, 'tainted run')} {verb} left out." if out else ""
    return said


def _compared(start: str, row: FactorEffect, engines: int) -> tuple[str, str, str]:
    """Sentence, certainty and ratio of two engines."""
    verdict, certainty, ratio = _said(row.ratio, "fast", "engines")
    faster, slower = (words.engine_name(cell.engine) for cell in (row.faster, row.slower))
    if engines > 2 and ratio:
        verdict = f"{faster} is {verdict} as {slower}"
    setup = setup_words(row.differences) + _trust_words(row.faster, row.slower)
    return f"{start}: {verdict}", certainty + setup, ratio


def headline(source: Source, findings: Sequence[CellFinding]) -> tuple[str, str]:
    """The main finding and how sure it is; or what there is instead, and what to do next."""
    if findings:
        return findings[0].sentence, findings[0].certainty
    if not source.results:
        return (
            "Nothing has been run yet",
            (
                "This store holds no results. `boardcluster demo` creates a cluster, runs"
                " WordCount on both engines and writes a report; `boardcluster run` runs a workload"
                " on your own cluster."
            ),
        )
    if source.untrusted:
        return _untrusted_headline(source)
    programs = [item for item in source.results if source.is_own_program(item)]
    if len(programs) == len(source.results):
        ended = [item for item in programs if item.attempt and item.attempt.ended_utc]
        return (
            f"{words.count(len(ended), 'run')} of your own programs",
            "Their expected outputs are not known, so times are shown but nothing is verified.",
        )
    return "No run has ended with a verified result yet", state_counts(source.results) + "."


def findings_section(material: Material) -> Iterator[Part]:
    """All findings, where there are several."""
    findings = find(material.source, material.effects)
    if len(findings) > 1:
        yield Part(
            title="Every configuration in one line",
            name="findings",
            block="findings",
            data=findings,
        )


def _untrusted_headline(source: Source) -> tuple[str, str]:
    """Every verified run is tainted: say so, and why."""
    found = [
        item.measurement for row in source.untrusted for item in row.results if item.measurement
    ]
    count = len(found)
    several = "both verified runs are" if count == 2 else f"all {count} verified runs are"
    what = "the only verified run is" if count == 1 else several
    reasons = list(dict.fromkeys(line for item in found for line in item.verdict_reasons))
    first = f"For instance: {reasons[0]}. " if reasons else ""
    return (
        f"No valid run yet: {what} tainted",
        (
            f"{first}Times and causes are below. Remove the cause and run again, or write the"
            " report with the option `--tainted`, which lets these runs count."
        ),
    )
