"""What figures ask of cells: what they vary in, how series are told apart, and their data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from boardcluster.analysis.cells import Cell, security_of, settings
from boardcluster.analysis.fingerprints import OF_NODES, board_and_medium
from boardcluster.analysis.twins import node_words
from boardcluster.factors import FACTORS, FACTORS_BY_NAME, hashable, levels, setting_words
from boardcluster.records import Fingerprint
from boardcluster.report import words
from boardcluster.report.plots.figure import Style
from boardcluster.report.plots.themes import ENGINE_COLOURS
from boardcluster.units import format_bytes

__all__ = [
    "AXES",
    "GIGA",
    "MOST_ROWS",
    "MOST_SERIES",
    "board_of",
    "cell_row",
    "chunks",
    "cut_groups",
    "factor_words",
    "is_emulated",
    "medium_of",
    "part_words",
    "rest_of",
    "runs_words",
    "series_label",
    "series_words",
    "slug",
    "styles",
    "twins_of",
    "value_of",
    "workload_groups",
]

Key: TypeAlias = "tuple[object, ...]"
_Item = TypeVar("_Item")

GIGA = 1e9

MOST_ROWS = 16
"""Bars of one drawing; more are cut into parts that fit a screen."""

MOST_SERIES = 8
"""Lines of one drawing: as many as there are markers that can be told apart."""

_PATTERNS = 8
_TWIN = re.compile(r"(?P<count>\d+) x (?P<board>.*?)(?: with (?P<parts>.*))?")
_OWN = "own"


def board_of(cell: Cell) -> str:
    """The boards that a cell was measured on, or that its nodes stand for; empty if unknown."""
    return _joined(_boards(fingerprint) for fingerprint in cell.fingerprints)


def medium_of(cell: Cell) -> str:
    """The storage media of the nodes; empty if unknown."""
    return _joined(_media(fingerprint) for fingerprint in cell.fingerprints)


def _joined(found: Iterable[Iterable[str]]) -> str:
    return " and ".join(dict.fromkeys(name for names in found for name in names if name))


def _boards(fingerprint: Fingerprint) -> list[str]:
    if fingerprint.twin:
        return [found["board"] for found in _twins(fingerprint)]
    return [board_and_medium(line)[0] for line in fingerprint.hardware]


def _media(fingerprint: Fingerprint) -> list[str]:
    if fingerprint.twin:
        return [(found["parts"] or "").partition(",")[0] for found in _twins(fingerprint)]
    return [board_and_medium(line)[1] for line in fingerprint.hardware]


def _twins(fingerprint: Fingerprint) -> Iterator[re.Match[str]]:
    for text in fingerprint.twin.split(" + "):
        found = _TWIN.fullmatch(text)
        if found:
            yield found


def _others(cell: Cell) -> str:
    """What else sets emulated boards apart: supplies, cooling, version of PCI Express."""
    found = [
        ", ".join((twin["parts"] or "").split(", ")[1:])
        for fingerprint in cell.fingerprints
        for twin in _twins(fingerprint)
    ]
    return _joined([found])


def _setup(cell: Cell) -> str:
    """What tells its setup apart from others of the same configuration; empty if nothing does."""
    return ", ".join(said for _, said in cell.setup)


def _settings(cell: Cell) -> str:
    first = cell.results[0]
    return settings(first.trial, security=security_of(first))


_IN_WORDS: Mapping[str, Callable[[Cell], str]] = {
    "engine": lambda cell: words.engine_name(cell.engine),
    "size_bytes": lambda cell: format_bytes(cell.size_bytes) if cell.size_bytes else "no input",
    "board": board_of,
    "medium": medium_of,
    "security": lambda cell: str(security_of(cell.results[0])),
    "parts": _others,
}
"""What the table of factors does not say, or says without the report's words and units."""

AXES = tuple(dict.fromkeys((*(row.name for row in FACTORS if row.name != "workload"), *_IN_WORDS)))
"""Each factor in which cells may differ besides their workload. ``board``, ``medium`` and ``parts``
are of the fingerprint, the others of the trial; a key of a setting is one, too."""

_SERIES = ("size_bytes", "board", "medium", "parts", "profile", _OWN)
_OF_FINGERPRINT = ("board", "medium", "parts")


def value_of(cell: Cell, factor: str) -> object:
    """A cell's value of a factor, for sorting and grouping."""
    if factor in FACTORS_BY_NAME:
        return hashable(FACTORS_BY_NAME[factor].level(cell.trial))
    if factor in _IN_WORDS:
        return _IN_WORDS[factor](cell)
    value = cell.trial.settings.get(factor, "")
    return (value.isdecimal(), int(value) if value.isdecimal() else 0, value)


def factor_words(cell: Cell, factor: str) -> str:
    """A cell's value of a factor in words; ``unknown`` where nothing says it."""
    return _say(cell, factor) or "unknown"


def _say(cell: Cell, factor: str) -> str:
    if factor == _OWN:
        return _settings(cell)
    if factor in _IN_WORDS:
        return _IN_WORDS[factor](cell)
    if factor in FACTORS_BY_NAME:
        return FACTORS_BY_NAME[factor].words(FACTORS_BY_NAME[factor].level(cell.trial))
    value = cell.trial.settings.get(factor)
    return f"{factor} as the profile" if value is None else setting_words(factor, value)


def rest_of(cell: Cell, *factors: str) -> Key:
    """Everything of a cell but some factors: cells of equal rest differ in nothing else.

    Other boards and media have other software as well, which then is no other rest.
    """
    settings_left = {key: value for key, value in cell.trial.settings.items() if key not in factors}
    return (
        *levels(cell.trial, without=(*factors, "settings")),
        None if "settings" in factors else hashable(settings_left),
        None if "security" in factors else security_of(cell.results[0]),
        *(_IN_WORDS[name](cell) for name in _OF_FINGERPRINT if name not in factors),
        ()
        if set(factors).intersection(_OF_FINGERPRINT)
        else tuple(said for name, said in cell.setup if name not in OF_NODES),
    )


def series_words(cell: Cell, cells: Sequence[Cell], *, without: Sequence[str] = ()) -> str:
    """What sets a cell apart from others besides its engine; empty if nothing does.

    Args:
        cell: the cell.
        cells: all of the figure.
        without: factors that are not said, because an axis or a label says them.
    """
    said = [
        factor
        for factor in (*_SERIES, "workers")
        if factor not in without and len({_say(item, factor) for item in cells}) > 1
    ]

    def plain(item: Cell) -> list[str]:
        return [part for factor in said if (part := _say(item, factor))]

    own = plain(cell)
    # Long, and mostly said by the boards already.
    setups = {_setup(item) for item in cells if plain(item) == own}
    return ", ".join((*own, _setup(cell)) if len(setups) > 1 else own)


def series_label(cell: Cell, cells: Sequence[Cell], *, without: Sequence[str] = ()) -> str:
    """The engine of a cell, and what sets it apart from others; see ``series_words``."""
    rest = series_words(cell, cells, without=without)
    return f"{words.engine_name(cell.engine)}, {rest}" if rest else words.engine_name(cell.engine)


def styles(cells: Sequence[Cell], labels: Sequence[str]) -> list[Style]:
    """A style for each cell: colours of engines where there are several, else of what varies."""
    engines = {cell.engine for cell in cells}
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    found = []
    for cell, label in zip(cells, labels, strict=True):
        pattern = places[label] % _PATTERNS
        colour = ENGINE_COLOURS[cell.engine]
        if len(engines) == 1:
            colour = (colour + pattern) % _PATTERNS
        found.append(Style(colour, pattern))
    return found


def workload_groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells by workload, in their order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.workload, []).append(cell)
    return groups


def chunks(items: Sequence[_Item], most: int) -> list[Sequence[_Item]]:
    """Cut what is too much for one drawing into parts of about the same length."""
    if not items:
        return []
    count = -(-len(items) // most)
    length = -(-len(items) // count)
    return [items[start : start + length] for start in range(0, len(items), length)]


def cut_groups(
    groups: Iterable[tuple[str, Sequence[_Item]]], most: int
) -> Iterator[list[tuple[str, Sequence[_Item]]]]:
    """Cut titled groups into parts of at most so many items, groups whole where they fit."""
    part: list[tuple[str, Sequence[_Item]]] = []
    for title, items in groups:
        for piece in chunks(items, most):
            if part and sum(len(known) for _, known in part) + len(piece) > most:
                yield part
                part = []
            part.append((title, piece))
    if part:
        yield part


def part_words(part: int, parts: int) -> str:
    """Say that a figure is one of several; empty if it is the only one."""
    return f" (part {part} of {parts})" if parts > 1 else ""


def slug(*texts: str) -> str:
    """A name for files from words: lower-case letters of any script, digits and hyphens."""
    return "-".join(re.sub(r"[^\w]+", "-", text.lower()).strip("-") for text in texts if text)


def runs_words(cells: Iterable[Cell]) -> str:
    """A sentence about cells of one run; empty if there is none."""
    alone = sum(cell.interval_seconds is None for cell in cells)
    if not alone:
        return ""
    return f"{words.count(alone, 'mean')} of one run only: no interval."


def is_emulated(cells: Iterable[Cell]) -> bool:
    """Whether any of the cells was measured on emulated nodes."""
    return any(bool(fingerprint.mark) for cell in cells for fingerprint in cell.fingerprints)


def twins_of(cells: Iterable[Cell]) -> str:
    """As which boards, see ``analysis.node_words``."""
    return node_words(result for cell in cells for result in cell.results)


def cell_row(cell: Cell) -> dict[str, object]:
    """What a cell is and its time, as a row of data."""
    interval = cell.interval_seconds
    return {
        "workload": cell.workload,
        "engine": str(cell.engine),
        "size_bytes": cell.size_bytes,
        "workers": cell.workers,
        "profile": cell.profile,
        "board": board_of(cell),
        "medium": medium_of(cell),
        "settings": _settings(cell),
        "setup": _setup(cell),
        "runs": cell.count,
        "mean_seconds": cell.mean_seconds,
        "low_seconds": interval.low if interval else None,
        "high_seconds": interval.high if interval else None,
        "emulated": is_emulated([cell]),
        "twins": twins_of([cell]),
    }
