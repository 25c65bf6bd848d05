"""The three findings that matter, chosen by rule, each with how sure it is and where to read on.

First comes what differs most, or that nothing can be trusted; then what holds the most
time-consuming work back, or that one machine without a cluster is faster; last the one thing to
change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis.advice import Advice
from boardcluster.analysis.cells import Cell
from boardcluster.analysis.fingerprints import OF_NODES
from boardcluster.analysis.inference import EffectVerdict, MeasuredRatio
from boardcluster.analysis.scaling import FactorEffect, NodeScaling, setup_of
from boardcluster.factors import FACTORS, FACTORS_BY_NAME, setting_value
from boardcluster.records import Engine
from boardcluster.report import words
from boardcluster.report.bounds import CellBound, bound_of, bound_words, gain_words
from boardcluster.report.cost_part import loses
from boardcluster.report.evidence import Evidence, key_of
from boardcluster.report.material import Material
from boardcluster.report.parts import KeyPoint, Part
from boardcluster.report.ratio_words import basis, setup_words
from boardcluster.report.source import Source, named_cell, workload_anchor
from boardcluster.report.validity import Validity, validity_of
from boardcluster.units import format_bytes

__all__ = [
    "Difference",
    "KeyPoint",
    "Summary",
    "differences_of",
    "summary_section",
]

_BOARDS = "boards and media"
_SAID_ELSEWHERE = ("workload", "engine", "size_bytes", "workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is at the top."""

    points: tuple[KeyPoint, ...]
    """At most three findings, the first the most important."""
    validity: str
    """In one line how many runs can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two cells that differ in one factor."""

    faster: Cell
    """The one with the smaller mean."""
    slower: Cell
    """The other one."""
    what: tuple[str, str]
    """Each one in a sentence, the faster one first: ``on Spark``, ``with 4 workers``."""
    among: str
    """What both have in common, for the same sentence; may be empty."""
    ratio: MeasuredRatio
    """Time of the slower over that of the faster."""
    differences: tuple[str, ...]
    """What else differs among their setups, one line each."""


def summary_section(material: Material) -> Iterator[Part]:
    """The findings that matter most; none without results."""
    source, validity = material.source, validity_of(material.source)
    differences = differences_of(material.effects, material.scalings)
    chosen = (
        _untrusted(source, validity) or _difference(source, differences),
        loses(material.costs) or _held_back(source, material.evidence),
        _advice(source, material.advice, material.evidence),
    )
    points = tuple(point for point in chosen if point is not None)
    if source.results and points:
        yield Part(
            title="What matters",
            name="summary",
            block="points",
            data=Summary(points=points, validity=validity.sentence),
        )


def differences_of(
    effects: Sequence[FactorEffect], scalings: Sequence[NodeScaling]
) -> tuple[Difference, ...]:
    """Two cells each that differ in one factor: engine, medium and the like, or workers.

    Of numbers of workers the smallest and the fastest are compared, for the same work only.
    """
    cells = [row.faster for row in effects] + [row.slower for row in effects]
    several = len({cell.workers for cell in cells}) > 1
    found = [
        Difference(
            faster=row.faster,
            slower=row.slower,
            what=(
                _value(row.factor, row.faster_value, row.faster),
                _value(row.factor, row.slower_value, row.slower),
            ),
            among=_among(row, several=several),
            ratio=row.ratio,
            differences=row.differences,
        )
        for row in effects
    ]
    return (*found, *(row for scaling in scalings for row in _by_workers(scaling)))


def _by_workers(scaling: NodeScaling) -> Iterator[Difference]:
    base, fastest = scaling.cells[0], min(scaling.cells, key=lambda cell: cell.mean_seconds)
    if scaling.scaled or fastest is base:
        return
    point = next(row for row in scaling.points if row.workers == fastest.workers)
    more, few = (words.count(cell.workers, "worker") for cell in (fastest, base))
    yield Difference(
        faster=fastest,
        slower=base,
        what=(f"with {more}", f"with {few}"),
        among=f"on {words.engine_name(scaling.engine)}",
        ratio=point.speed_up,
        differences=scaling.differences,
    )


def _among(row: FactorEffect, *, several: bool) -> str:
    """Engine and number of workers of an effect, as far as they are not the effect itself."""
    cell = row.faster
    engine = "" if row.factor == "engine" else f"on {words.engine_name(cell.engine)}"
    workers = f"with {words.count(cell.workers, 'worker')}" if several else ""
    return " ".join(part for part in (engine, workers) if part)


def _conditions(one: Cell, other: Cell, cells: Sequence[Cell]) -> str:
    """What two cells have in common of all that varies among the cells of their workload.

    Engine, size and workers are said elsewhere. Without the rest the difference would seem to hold
    for every profile and medium, say.
    """
    alike = [cell for cell in cells if cell.workload == one.workload]
    keys = {
        row.name: sorted({key for cell in alike for key in row.level(cell.trial)})
        for row in FACTORS
        if row.kind is dict
    }
    # Which boards take part follows from the number of workers.
    said = [(cell.workers, _said_of(cell, keys)) for cell in alike]
    as_many = [row for row in said if row[0] in (one.workers, other.workers)]
    ours, theirs = (_said_of(cell, keys) for cell in (one, other))
    found = []
    for row in ours:
        compared = as_many if row[0] == _BOARDS else said
        if row in theirs and any(row not in conditions for _, conditions in compared):
            found.append(row[1])
    return ", ".join(found)


def _said_of(cell: Cell, keys: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Each condition of a cell but engine, size and workers: its name, and its words.

    ``keys`` are those of settings and parameters that any cell to compare with has.
    """
    found: list[tuple[str, str]] = []
    for row in FACTORS:
        level = row.level(cell.trial)
        if row.kind is dict:
            found += [
                (
                    f"{row.name} {key}",
                    row.words({key: level[key]}) if key in level else f"default {key}",
                )
                for key in keys[row.name]
            ]
        elif row.name not in _SAID_ELSEWHERE:
            found.append((row.name, row.words(level)))
    found.append(("security", f"security {cell.configuration.security}"))
    if setup := setup_of(cell.results[0]):
        found.append((_BOARDS, f"on {setup}"))
    return found + [row for row in cell.setup if row[0] not in OF_NODES]


def _value(factor: str, value: str, cell: Cell) -> str:
    """A value of a factor within a sentence."""
    if factor == "engine":
        return f"on {words.engine_name(Engine(value))}"
    if factor == "concurrency":
        return "with one job after the other" if value == "1" else f"with {value} jobs at once"
    if factor == _BOARDS:
        return f"on {value}"
    if row := FACTORS_BY_NAME.get(factor):
        return f"with {row.words(row.level(cell.trial))}"
    said = setting_value(factor, value) if factor in cell.trial.settings else value
    return f"with {factor.rpartition('.')[2]} {said}"


def _untrusted(source: Source, validity: Validity) -> KeyPoint | None:
    """That the numbers cannot be trusted; None where most trials count."""
    if not validity.is_doubtful:
        return None
    reason, times = next(iter(validity.reasons), ("", 0))
    how = "most often" if times > 1 else "for instance"
    why = f", {how} because: {reason}" if reason else ""
    out = validity.trials - validity.counted
    return KeyPoint(
        name="These numbers cannot be trusted",
        sentence=f"{out} of {words.count(validity.trials, 'trial')} have no run that counts{why}",
        certainty="Each verdict is given below with its reason.",
        section="validity",
        emulated=source.is_emulated(source.results),
    )


def _difference(source: Source, differences: Sequence[Difference]) -> KeyPoint | None:
    # The largest that the runs show; else the largest, which they do not show.
    shown = [row for row in differences if row.ratio.is_shown]
    found = max(shown or differences, key=lambda row: row.ratio.value, default=None)
    if found is None:
        return _alone(source)
    faster, slower = found.what
    size = found.faster.size_bytes
    parts = (
        words.workload_name(found.faster.workload),
        f"over {format_bytes(size)}" if size else "",
        found.among,
    )
    subject = " ".join(part for part in parts if part)
    if conditions := _conditions(found.faster, found.slower, source.cells):
        subject += f", {conditions}"
    ratio = found.ratio
    counts = f"{words.count(found.faster.count, 'run')} {faster},"
    counts = f"{counts} {words.count(found.slower.count, 'run')} {slower}"
    certainty = f"{basis(ratio).removesuffix('.')} ({counts}).{setup_words(found.differences)}"
    section = workload_anchor(found.faster.workload)
    emulated = source.are_emulated([found.faster, found.slower])
    if not ratio.is_shown and (ratio.interval is not None or not ratio.agrees):
        worthwhile = ratio.verdict is EffectVerdict.NOT_WORTHWHILE
        what = "there is no worthwhile difference" if worthwhile else "no difference is shown"
        return KeyPoint(
            name="What differs",
            sentence=f"{subject}: {what} between runs {faster} and {slower}",
            certainty=certainty,
            section=section,
            emulated=emulated,
        )
    times = words.ratio(ratio.value, ratio.interval)
    return KeyPoint(
        name="What differs most",
        sentence=f"{subject}: {times} times as fast {faster} as {slower}",
        certainty=certainty,
        section=section,
        emulated=emulated,
    )


def _alone(source: Source) -> KeyPoint | None:
    """That there is nothing to compare; None without any cell."""
    if not source.cells:
        return None
    same_work = "do the same work and " if len(source.cells) > 1 else ""
    advice = "To see a difference, run a second engine, number of workers or medium."
    if same_work:
        advice = "Where what varies changes the work, compare what the workload itself measures."
    return KeyPoint(
        name="Nothing to compare",
        sentence=f"No two configurations {same_work}differ in exactly one factor",
        certainty=advice,
        section=workload_anchor(source.cells[0].workload),
        emulated=source.is_emulated(source.results),
    )


def _held_back(source: Source, evidence: Evidence) -> KeyPoint | None:
    """What holds the most time-consuming workload back; None without a cell."""
    if not source.cells:
        return None
    known = [row for cell in source.cells if (row := bound_of(cell, evidence)) is not None]
    if not known:
        runs = [run for cell in source.cells for run in cell.results]
        seen = any(key_of(run) in evidence.diagnoses for run in runs)
        why = "their samples do not show it" if seen else "they have no telemetry"
        return KeyPoint(
            name="What holds it back",
            sentence=f"What holds these runs back is not known: {why}",
            certainty="The samples lack what would tell."
            if seen
            else "The section on validity names the runs without telemetry.",
            section="validity",
            emulated=source.is_emulated(source.results),
        )
    spent: dict[str, float] = {}
    for row in known:
        name = row.cell.workload
        spent[name] = spent.get(name, 0.0) + math.fsum(row.cell.durations_seconds)
    workload = max(spent, key=lambda name: spent[name])
    slowest = max(
        (row for row in known if row.cell.workload == workload),
        key=lambda row: row.cell.mean_seconds,
    )
    return _bound_point(source, slowest)


def _bound_point(source: Source, row: CellBound) -> KeyPoint | None:
    if row.first is None:
        return None
    name = f"{named_cell(row.cell, source.cells)} on {words.engine_name(row.cell.engine)}"
    first = f"held back by {bound_words(row.first)} for {row.percent(row.first)} of the time"
    behind = f", then by {bound_words(row.second)}" if row.second is not None else ""
    gain = f"; {gain_words(row, row.first, ' would make it')}" if row.first in row.gains else ""
    certainty = f"From the samples of {words.count(row.runs, 'run')}"
    certainty += "; the gain is predicted." if gain else "."
    return KeyPoint(
        name="What holds it back",
        sentence=f"{name} is {first}{behind}{gain}",
        certainty=certainty,
        section=f"{workload_anchor(row.cell.workload)}-bounds",
        emulated=source.is_emulated(row.cell.results),
    )


def _advice(source: Source, advice: Sequence[Advice], evidence: Evidence) -> KeyPoint | None:
    """The one thing to change; that there is none, where that is what the runs say."""
    if not (source.cells or advice):
        return None
    emulated = source.is_emulated(source.results)
    if not advice:
        watched = words.count(len(evidence.facts), "run")
        return KeyPoint(
            name="What to change next",
            sentence="No rule found anything to change",
            certainty=f"The rules covered the samples of {watched} and the counters of all runs."
            if evidence.facts
            else "Most rules need telemetry, which these runs do not have.",
            section="advice",
            emulated=emulated,
        )
    best = advice[0]
    return KeyPoint(
        name="What to change next",
        sentence=best.title.rstrip("."),
        certainty=f"Expected effect: {best.brings.rstrip('.')}.",
        section="advice",
        emulated=emulated,
    )
