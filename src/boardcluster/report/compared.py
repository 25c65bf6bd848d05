"""Two sides compared, as sentences and tables, and as a file of exact numbers."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from boardcluster.analysis.inference import MeasuredRatio, find_drift, observe
from boardcluster.analysis.inference.model import ONE_RUN
from boardcluster.analysis.ratios import geometric_mean
from boardcluster.analysis.result_sets import (
    DURATION,
    ENERGY,
    INTERMEDIATE,
    POWER,
    Condition,
    Match,
    MatchOutcome,
    ResultPoint,
    ResultSet,
    ResultSetComparison,
)
from boardcluster.factors import FACTORS_BY_NAME
from boardcluster.records import EnergyMethod, Engine
from boardcluster.report import words
from boardcluster.report.export.frames import FieldGetter as Exact
from boardcluster.report.export.frames import (
    Frame,
    boolean,
    frame_of,
    integer,
    number,
    prefixed,
    text,
)
from boardcluster.report.ratio_words import drift_words, needed
from boardcluster.report.ratio_words import interval as interval_words
from boardcluster.report.tables import Display as Shown
from boardcluster.report.tables import Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

__all__ = [
    "COMPARISON",
    "Compared",
    "comparison_frame",
    "describe",
    "render_comparison",
    "result_set_words",
]

Item = TypeVar("Item")

_METHOD = (
    "A / B is the geometric mean of A divided by that of B. Its 95 % interval is of that row alone,"
    " by Student's t of logarithms: of the ratios of pairs where both sides alternated in one "
    "campaign, else of each side with Welch's degrees of freedom. A difference is shown where p, "
    "corrected for the number of rows, is below 0.05; there is no worthwhile difference where the "
    "runs rule out one of 5 % or more."
)
_PUBLISHED = (
    "Published numbers have no interval, so their ratios have none either; our runs count there by"
    " their arithmetic mean. Such a row says whether the published number lies in the 95 % interval"
    " of our mean."
)
_CONDITION_WORDS = ("engine", "size_bytes")
"""Factors whose values have words of the report's own."""
_QUANTITIES = {
    ENERGY: "energy (J)",
    INTERMEDIATE: "intermediate data (B)",
    POWER: "mean power (W)",
}
_CONDITION_COLUMNS = {
    "workload": ("Workload", Shown.TEXT),
    "engine": ("Engine", Shown.ENGINE),
    "size_bytes": ("Input", Shown.NUMBER),
    "workers": ("Workers", Shown.NUMBER),
    "profile": ("Profile", Shown.TEXT),
}
_OF_METERS = {ENERGY, POWER}
_MAY_BE_SHARED = ("Input", "Workers", "Profile")
_ONLY_MOST = 50
_ONLY_MOST_PUBLISHED = 10
"""Rows of the list of what only one side has; of a paper's table a few show what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a comparison says."""

    headline: str
    """The result in one sentence."""
    sides: tuple[str, str]
    """One line on each side, A first."""
    apart: tuple[str, ...]
    """What tells them apart as a whole, one line each."""
    tables: tuple[ReportTable, ...]
    """Times first, then other quantities, then what only one side has."""
    machines: tuple[str, ...]
    """What differs among the setups, one line each."""
    notes: tuple[str, ...]
    """What a reader must know, one line each."""
    method: tuple[str, ...]
    """How ratios and intervals were made."""
    mark: str
    """What is said of numbers that are not of boards; empty if all are."""


def describe(comparison: ResultSetComparison) -> Compared:
    """Put a comparison into words and tables."""
    first, second = comparison.first, comparison.second
    times = [match for match in comparison.matches if match.quantity == DURATION]
    others = [match for match in comparison.matches if match.quantity != DURATION]
    tables = [
        _table(comparison, times, "Times"),
        _table(comparison, others, "Rates, energy and intermediate data"),
        _only_table("A", first, comparison.only_first),
        _only_table("B", second, comparison.only_second),
    ]
    published = first.is_published or second.is_published
    return Compared(
        headline=_headline(comparison),
        sides=(result_set_words("A", first), result_set_words("B", second)),
        apart=tuple(
            f"{_condition_name(row.name)}: A {_said(row.name, row.first, row.second)},"
            f" B {_said(row.name, row.second, row.first)}"
            for row in comparison.apart
        ),
        tables=tuple(table for table in tables if table is not None),
        machines=comparison.machines,
        notes=_notes(comparison),
        mark="; ".join(
            dict.fromkeys(
                row.mark for side in (first, second) for row in side.fingerprints if row.mark
            )
        ),
        method=(*(() if first.is_published and second.is_published else (_METHOD,)),)
        + ((_PUBLISHED,) if published else ()),
    )


def result_set_words(letter: str, side: ResultSet) -> str:
    """Name a side in one line, with what its nodes are unless they are boards."""
    if side.is_published:
        return f"{letter}: {side.title} (published)"
    runs = words.count(len(side.results), "run")
    emulated = f"; {words.emulated(side.twins)}" if side.emulated else ""
    return f"{letter}: {side.title}, {runs}{emulated}"


def _condition_name(name: str) -> str:
    """A condition in words."""
    return words.factor_name(name) if name in FACTORS_BY_NAME else name.replace("_", " ")


def _said(name: str, value: Condition, other: Condition) -> str:
    """The value of a condition beside its name; papers may have values that are no levels."""
    factor = FACTORS_BY_NAME.get(name)
    if factor is None or factor.kind is dict or name in _CONDITION_WORDS:
        return _value(name, value)
    kind = int if factor.kind is int else str
    if not isinstance(value, kind) or not isinstance(other, kind):
        return _value(name, value)
    return words.level(name, value, other)


def _value(name: str, value: Condition) -> str:
    if name == "size_bytes":
        return format_bytes(int(value)) if value else words.NONE
    if name == "engine" and value in {str(engine) for engine in Engine}:
        return words.engine_name(Engine(str(value)))
    return str(value)


def _marked_kinds(side: ResultSet) -> str:
    """The kinds of nodes of a side, joined by commas; empty for boards and published numbers."""
    return ", ".join(dict.fromkeys(row.kind for row in side.fingerprints if row.mark))


def _headline(comparison: ResultSetComparison) -> str:
    times = [match for match in comparison.matches if match.quantity == DURATION]
    rows = times or list(comparison.matches)
    published = comparison.first.is_published or comparison.second.is_published
    # A paper has several cells, and a cell several other quantities, for one configuration.
    noun = "configuration" if times and not published else "number"
    what = f"{words.count(len(rows), noun)} in common"
    tally = Tally(match.outcome for match in rows)
    kind = ("takes longer", "takes less time") if times else ("is higher", "is lower")
    said = [
        *((f"A {kind[0]}", MatchOutcome.HIGHER), (f"A {kind[1]}", MatchOutcome.LOWER)),
        ("there is no worthwhile difference", MatchOutcome.NOT_WORTHWHILE),
        ("no difference is shown", MatchOutcome.NOT_SHOWN),
        ("the published number lies in our interval", MatchOutcome.INSIDE),
        ("the published number lies outside our interval", MatchOutcome.OUTSIDE),
        ("there is no interval", MatchOutcome.NO_INTERVAL),
    ]
    counted = ", ".join(f"{text} in {tally[key]}" for text, key in said if tally[key])
    ratios = [ratio.value for match in times if (ratio := match.ratio) and ratio.value > 0]
    if len(ratios) < 2 or published:
        return f"{what}: {counted}"
    # The cells of a paper that match one of ours are of several media: no mean is made of them.
    mean = _times(geometric_mean(ratios))
    return f"{what}: {counted}; times of A are {mean} those of B, by geometric mean"


def _times(value: float) -> str:
    return f"{value:.3g} times"


# Tables


def _table(
    comparison: ResultSetComparison, matches: Sequence[Match], caption: str
) -> ReportTable | None:
    if not matches:
        return None
    is_time = matches[0].quantity == DURATION
    energies = [match.quantity in _OF_METERS for match in matches]
    half, whole = "± half of its 95 % interval", "(its 95 % interval)"
    intervals = whole if all(energies) else f"{half}; of energy and power {whole}"
    kinds = [_marked_kinds(side) for side in (comparison.first, comparison.second)]
    headings = [
        f"{letter}{f' ({kind})' if kind else ''}{', seconds' if is_time else ''}"
        for letter, kind in zip("AB", kinds, strict=True)
    ]
    getters: Getters[Match] = (
        *_conditions(matches, lambda match: (match.first, match.second), is_time=is_time),
        Getter(headings[0], lambda match: _mean(match.first), Shown.NUMBER),
        Getter(headings[1], lambda match: _mean(match.second), Shown.NUMBER),
        Getter("A / B", lambda match: _ratio(match.ratio), Shown.NUMBER),
        Getter("95 % interval", lambda match: _interval(match.ratio), Shown.NUMBER),
        Getter("From", lambda match: _from(match.ratio)),
        Getter("p", lambda match: _p(match.ratio), Shown.NUMBER),
        Getter("Outcome", lambda match: _outcome(match, is_time=is_time)),
        Getter("Runs of A", lambda match: _runs(match.first), Shown.NUMBER),
        Getter("Runs of B", lambda match: _runs(match.second), Shown.NUMBER),
        Getter(
            "Pairs", lambda match: str(match.ratio.pairs or "") if match.ratio else "", Shown.NUMBER
        ),
        Getter("Settings of A", lambda match: match.first.label),
        Getter("Settings of B", lambda match: match.second.label),
        Getter("Doubtful, as", lambda match: match.first.doubt or match.second.doubt),
    )
    table = tabulate(
        matches,
        getters,
        caption=f"{caption}: mean {intervals if any(energies) else half}",
        emulated=any(kinds),
    )
    return table and _without_shared(table)


def _without_shared(table: ReportTable) -> ReportTable:
    """Say once in the caption what is the same in every row; the result then fits a screen."""
    shared = {}
    for index, column in enumerate(table.columns):
        values = {row[index] for row in table.rows}
        if column.title in _MAY_BE_SHARED and len(values) == 1:
            shared[column.title] = values.pop()
    if not shared:
        return table
    said = ", ".join(f"{title.lower()} {value}" for title, value in shared.items())
    return replace(table.without_constant(*shared), caption=f"{table.caption}; {said}")


def _quantity(point: ResultPoint) -> str:
    return _QUANTITIES.get(point.quantity) or words.figure_name(point.quantity)


def _conditions(
    rows: Sequence[Item], points: Callable[[Item], Sequence[ResultPoint]], *, is_time: bool
) -> Iterator[Getter[Item]]:
    """Quantity, workload, engine, input, workers and profile; both values where they differ."""
    given = (at.conditions.get("profile") for row in rows for at in points(row))
    profiles = words.short_profiles(str(name) for name in given if name is not None)

    def said(name: str) -> Callable[[Item], str]:
        return lambda row: _condition_words(points(row), name, profiles)

    if not is_time:
        yield Getter("Quantity", lambda row: _quantity(points(row)[0]))
    for name, (title, kind) in _CONDITION_COLUMNS.items():
        yield Getter(title, said(name), kind)


def _condition_words(points: Sequence[ResultPoint], name: str, profiles: Mapping[str, str]) -> str:
    values = [_value(name, at.conditions[name]) for at in points if name in at.conditions]
    if name == "profile":
        values = [profiles.get(value, value) for value in values]
    if name == "workload":
        values = [words.workload_name(value) for value in values]
    return " / ".join(dict.fromkeys(values)) or words.NONE


def _ratio(ratio: MeasuredRatio | None) -> str:
    return f"{ratio.value:.3g}" if ratio else words.NONE


def _mean(point: ResultPoint) -> str:
    shown = words.seconds if point.quantity == DURATION else words.number
    text = shown(point.mean)
    if point.is_published:
        return f"{text} (published)"
    if point.interval is None:
        return f"{text}{_method_of(point)}"
    if point.quantity in _OF_METERS:  # wider above than below, by what meters may be wrong by
        low, high = (shown(value) for value in (point.interval.low, point.interval.high))
        return f"{text} ({low} to {high}){_method_of(point)}"
    return f"{text} ± {shown(point.interval.half_width)}"


def _method_of(point: ResultPoint) -> str:
    """Metered or modelled, of energies."""
    if point.quantity not in _OF_METERS or point.cell is None:
        return ""
    energies = [row.measurement.energy for row in point.cell.results if row.measurement]
    modelled = any(each is not None and each.method is EnergyMethod.MODELLED for each in energies)
    return f" {EnergyMethod.MODELLED if modelled else EnergyMethod.METERED}"


def _runs(point: ResultPoint) -> str:
    return words.NONE if point.is_published else str(len(point.values))


def _interval(ratio: MeasuredRatio | None) -> str:
    if ratio is None or ratio.interval is None:
        return words.NONE
    return f"{ratio.interval.low:.3g} to {ratio.interval.high:.3g}"


def _from(ratio: MeasuredRatio | None) -> str:
    return "" if ratio is None or ratio.interval is None else interval_words(ratio)


def _p(ratio: MeasuredRatio | None) -> str:
    return (
        words.NONE if ratio is None or ratio.p_adjusted is None else words.p_value(ratio.p_adjusted)
    )


def _outcome(match: Match, *, is_time: bool) -> str:
    outcome = match.outcome
    if outcome is MatchOutcome.HIGHER:
        return "A takes longer" if is_time else "A is higher"
    if outcome is MatchOutcome.LOWER:
        return "A takes less time" if is_time else "A is lower"
    if outcome is MatchOutcome.NO_INTERVAL:
        return _no_interval(match)
    if outcome is MatchOutcome.NOT_SHOWN and match.ratio is not None:
        return f"no difference is shown: {needed(match.ratio)} needed"
    return {
        MatchOutcome.NOT_WORTHWHILE: "no worthwhile difference",
        MatchOutcome.INSIDE: "published number inside our interval",
        MatchOutcome.OUTSIDE: "published number outside our interval",
    }[outcome]


def _no_interval(match: Match) -> str:
    """Why a row shows nothing."""
    ratio = match.ratio
    if ratio is None:
        return "no ratio: a value is 0"
    if match.first.is_published != match.second.is_published:
        return ONE_RUN
    return ratio.reason


def _only_table(letter: str, side: ResultSet, points: Sequence[ResultPoint]) -> ReportTable | None:
    if not points:
        return None
    is_time = points[0].quantity == DURATION
    most = _ONLY_MOST_PUBLISHED if side.is_published else _ONLY_MOST
    more = len(points) - most
    getters: Getters[ResultPoint] = (
        *_conditions(points, lambda point: (point,), is_time=is_time),
        Getter("Settings", lambda point: point.label),
        Getter(f"Mean{', seconds' if is_time else ''}", _mean, Shown.NUMBER),
        Getter("Runs", _runs, Shown.NUMBER),
    )
    return tabulate(
        points[:most],
        getters,
        caption=f"Only in {letter}",
        emulated=side.emulated,
        note=f"And {more} more." if more > 0 else "",
    )


def _notes(comparison: ResultSetComparison) -> tuple[str, ...]:
    notes = [
        f"{letter}: {note}"
        for letter, side in (("A", comparison.first), ("B", comparison.second))
        for note in side.notes
    ]
    notes += _several(comparison)
    cells = {
        id(point.cell): point.cell
        for match in comparison.matches
        for point in (match.first, match.second)
        if point.cell is not None
    }
    drifts = find_drift([observe(cell.results) for cell in cells.values()])
    notes += [drift_words(row).rstrip(".") for row in drifts if row.is_shown]
    first, second = map(_marked_kinds, (comparison.first, comparison.second))
    if first != second:
        if first and second:
            differ = f"A is {first} and B is {second}"
        else:
            differ = f"one side is {first or second} and the other is not"
        notes.append(f"{differ}: the ratio compares two kinds of node")
    return tuple(dict.fromkeys(notes))


def _several(comparison: ResultSetComparison) -> list[str]:
    """Say that a paper has several cells that are like one of ours, and by what they differ."""
    if comparison.first.is_published == comparison.second.is_published:
        return []
    own: dict[int, list[ResultPoint]] = {}
    for match in comparison.matches:
        one, said = match.first, match.second
        if one.is_published:
            one, said = said, one
        own.setdefault(id(one), []).append(said)
    most = max((len(points) for points in own.values()), default=0)
    if most < 2:
        return []
    text = (
        f"up to {most} published cells match one of ours, because the paper says more about its "
        "machine than we know about ours: narrow the table, for example with `?storage=UFS`"
    )
    return [text]


def render_comparison(compared: Compared, *, markdown: bool) -> str:
    """Return a comparison as one HTML page that opens offline, or as Markdown."""
    # Half a second to load, which a terminal does not need.
    from boardcluster.report.render import (  # noqa: PLC0415
        STATE_MARKS,
        make_environment,
        style_sheets,
    )

    environment = make_environment()
    template = environment.get_template(f"compare.{'md' if markdown else 'html'}.j2")
    return template.render(
        it=compared,
        marks=STATE_MARKS,
        emulated_text=compared.mark,
        style=style_sheets(environment, "style.css"),
    )


# Exact numbers

_MEANINGS = {
    "workload": "what ran; empty where a paper does not say it",
    "engine": "the engine, of A and B if they differ",
    "size_bytes": "size of the input",
    "workers": "number of workers, of A and B if they differ",
    "profile": "the engine configuration, of A and B if they differ",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the exact numbers."""

    first: ResultPoint | None
    """The point of A; None if it has none."""
    second: ResultPoint | None
    """That of B."""
    match: Match | None = None
    """Their ratio, where both are there."""

    @property
    def points(self) -> tuple[ResultPoint, ...]:
        """Those points that there are."""
        return tuple(point for point in (self.first, self.second) if point)

    @property
    def ratio(self) -> MeasuredRatio | None:
        """The ratio; None where there is none."""
        return self.match.ratio if self.match else None


def _condition(name: str) -> Exact:
    def get(row: _Row) -> str:
        found = (str(at.conditions[name]) for at in row.points if name in at.conditions)
        return " / ".join(dict.fromkeys(found))

    return text(name, _MEANINGS[name], get)


def _emulated(point: ResultPoint) -> bool | None:
    cell = point.cell
    return None if cell is None else any(row.emulated for row in cell.fingerprints)


_POINT = (
    text("settings", "what differs from the default, or keys of the table", "label"),
    text("source", "paper and table; empty for own runs"),
    boolean("emulated", "whether any run was on emulated nodes", _emulated),
    integer(
        "runs",
        "runs; nothing for a published number",
        lambda point: None if point.cell is None else len(point.values),
    ),
    number("mean", "mean, in the unit that the quantity ends with"),
    number("low", "95 % interval of the mean", "interval.low"),
    number("high", "95 % interval of the mean", "interval.high"),
)


def _ratio_method(row: _Row) -> str:
    if row.ratio is None:
        return "a value is 0" if row.match else ""
    return str(row.ratio.method) if row.ratio.interval else row.ratio.reason


def _said_outcome(row: _Row) -> str:
    return str(row.match.outcome) if row.match else f"only in {'A' if row.first else 'B'}"


COMPARISON = (
    text("quantity", "what is compared, unit last", lambda row: row.points[0].quantity),
    *map(_condition, _MEANINGS),
    *prefixed("a_", "first", _POINT),
    *prefixed("b_", "second", _POINT),
    number(
        "ratio",
        "geometric mean of A over that of B, adjusted; beside a published number, arithmetic mean",
        "ratio.value",
    ),
    number("ratio_unadjusted", "the same without adjustment", "ratio.unadjusted"),
    number("ratio_low", "95 % interval of the ratio, of this row alone", "ratio.interval.low"),
    number("ratio_high", "95 % interval of the ratio, of this row alone", "ratio.interval.high"),
    number(
        "p", "two-sided p of no difference, corrected for the number of rows", "ratio.p_adjusted"
    ),
    integer("family", "how many rows it is corrected for", "ratio.family_size", lambda: 0),
    integer("starts", "starts of the cluster that are replicates", "ratio.starts", lambda: 0),
    text("ratio_method", "how the interval was computed, or why there is none", _ratio_method),
    integer("pairs", "pairs of runs; 0 where they are not paired", "ratio.pairs", lambda: 0),
    text("outcome", "what it shows", _said_outcome),
)
"""The columns of the table of a comparison."""


def comparison_frame(comparison: ResultSetComparison) -> Frame:
    """Return one row for each match with exact numbers, then one for each point without one."""
    rows = (
        *(_Row(match.first, match.second, match) for match in comparison.matches),
        *(_Row(point, None) for point in comparison.only_first),
        *(_Row(None, point) for point in comparison.only_second),
    )
    return frame_of("comparison", COMPARISON, rows)
