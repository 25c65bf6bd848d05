"""The ratios that the papers state, recomputed from their own tables.

A statement is a line of ``published/ratios.toml``: what is said, where, and which cells it should
follow from. What is made of the cells is computed by the functions that analyse our own runs, so
that a test of either is one of both. Nothing here decides which of two contradicting numbers is
right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field

from boardcluster.analysis.ratios import quotient, sums_ratio
from boardcluster.analysis.statistics import mean
from boardcluster.catalog.published import PUBLISHED, Index, TableCell, read_cells, read_index
from boardcluster.errors import SpecError
from boardcluster.spec.problems import StrictTable, Text, read_model

__all__ = [
    "Answer",
    "Given",
    "PaperRatio",
    "RatioCheck",
    "check_ratios",
    "read_ratios",
    "recompute",
]

_HINT = "correct ratios.toml; docs/reference/catalog.md says what its keys mean"
_SLACK = 1e-9
"""Against the rounding of binary fractions; far below the last digit of anything printed."""

Select = dict[str, str | list[str] | float]
"""Which cells: ``table``, and values of columns. Or ``value``, a number of the running text."""


class PaperRatio(StrictTable):
    """A statement of a paper.

    ``over`` and ``under`` select cells. Cells of both with the same other columns are a pair, and
    each pair has a ratio. ``how`` makes one number of them. ``gives`` keeps that number where it is
    not what is said; a test holds it against the tables.
    """

    id: Text
    paper: Text
    section: Text
    words: Text
    says: str = Field(pattern=r"^\d+(\.\d+)?$", description="a number as printed, in quotes")
    how: Literal["one", "mean", "sums", "max", "min", "below", "above", "difference", ""] = Field(
        default="", description="one, mean, sums, max, min, below, above or difference"
    )
    over: Select = Field(default_factory=dict, description="a table")
    under: Select = Field(default_factory=dict, description="a table")
    times: float = Field(default=1.0, gt=0, description="a number above 0")
    needs: str = Field(default="", description="what would be needed to recompute it")
    gives: str = Field(
        default="",
        pattern=r"^(\d+(\.\d+)?)?$",
        description="a number as text, if it is another one",
    )
    note: str = Field(default="", description="text")


class _Ratios(StrictTable):
    ratio: list[PaperRatio] = Field(min_length=1, description="at least one [[ratio]]")


class Answer(StrEnum):
    """Whether a statement follows from the tables."""

    ROUNDED = "follows"
    CUT = "follows if truncated, not rounded"
    NOT = "does not follow"
    UNKNOWN = "cannot be recomputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the tables give."""

    pairs: int
    """How many ratios there are."""
    least: float
    """The smallest of them."""
    mean: float
    """Their arithmetic mean."""
    most: float
    """The largest."""
    sums: float
    """The sum of all upper values by that of all lower ones."""
    value: float
    """What the statement is about; of these, or a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioCheck:
    """A statement with its answer; ``given`` is None where nothing can be recomputed."""

    ratio: PaperRatio
    answer: Answer
    given: Given | None


def read_ratios(folder: Path = PUBLISHED) -> tuple[PaperRatio, ...]:
    """Read ``ratios.toml``.

    Raises:
        SpecError: it is missing or wrong.
    """
    found, document = read_model(folder / "ratios.toml", _Ratios, create_hint=_HINT)
    for row in found.ratio:
        if bool(row.needs) == bool(row.how and row.over and row.under):
            raise SpecError(
                f"{document.path}: {row.id}: needs either how, over and under, or needs",
                hint=_HINT,
            )
    return tuple(found.ratio)


def _chosen(select: Select, index: Index, ratio: PaperRatio) -> dict[tuple[str, ...], float]:
    """Return the selected values by the columns that the selection left open."""
    if "value" in select:
        return {(): float(str(select["value"]))}
    name = str(select.get("table"))
    if name not in index.tables:
        raise SpecError(f"ratios.toml: {ratio.id}: there is no table {name!r}", hint=_HINT)
    found: dict[tuple[str, ...], float] = {}
    wanted = {key: value for key, value in select.items() if key != "table"}
    for cell in read_cells(index.tables[name], folder=index.folder):
        columns = {**cell.keys, "quantity": cell.quantity}
        if all(_matches(columns.get(key), value) for key, value in wanted.items()):
            found[_left_open(columns, wanted)] = _number(cell, ratio)
    if not found:
        raise SpecError(f"ratios.toml: {ratio.id}: {select} selects no cell", hint=_HINT)
    return found


def _matches(column: str | None, wanted: str | list[str] | float) -> bool:
    return column in wanted if isinstance(wanted, list) else column == wanted


def _left_open(columns: Mapping[str, str], wanted: Select) -> tuple[str, ...]:
    return tuple(
        f"{key}={value}"
        for key, value in columns.items()
        if key not in wanted or isinstance(wanted[key], list)
    )


def _number(cell: TableCell, ratio: PaperRatio) -> float:
    try:
        return float(cell.value)
    except ValueError as error:
        raise SpecError(
            f"ratios.toml: {ratio.id}: {cell.value!r} is not a number", hint=_HINT
        ) from error


def recompute(ratio: PaperRatio, *, index: Index) -> Given:
    """Recompute a statement from its cells.

    Raises:
        SpecError: the cells are not there, not numbers, or make no pairs.
    """
    over, under = _chosen(ratio.over, index, ratio), _chosen(ratio.under, index, ratio)
    if len(over) == len(under) == 1:
        pairs = [(*over.values(), *under.values())]
    else:
        pairs = [(value, under[key]) for key, value in over.items() if key in under]
    if not pairs or (ratio.how in {"one", "difference"} and len(pairs) != 1):
        raise SpecError(f"ratios.toml: {ratio.id}: {len(pairs)} pairs for {ratio.how}", hint=_HINT)
    try:
        each = [ratio.times * quotient(above, below) for above, below in pairs]
        uppers, lowers = zip(*pairs, strict=True)
        sums = ratio.times * sums_ratio(uppers, lowers)
    except ValueError as error:
        raise SpecError(f"ratios.toml: {ratio.id}: {error}", hint=_HINT) from error
    value = {
        "one": each[0],
        "mean": mean(each),
        "sums": sums,
        "max": max(each),
        "below": max(each),
        "min": min(each),
        "above": min(each),
        "difference": pairs[0][0] - pairs[0][1],
    }[ratio.how]
    return Given(
        pairs=len(pairs),
        least=min(each),
        mean=mean(each),
        most=max(each),
        sums=sums,
        value=value,
    )


def _answer(ratio: PaperRatio, value: float) -> Answer:
    said = float(ratio.says)
    if ratio.how in {"below", "above"}:
        kept = value < said if ratio.how == "below" else value > said
        return Answer.ROUNDED if kept else Answer.NOT
    last_digit = 10.0 ** -len(ratio.says.partition(".")[2])
    if abs(value - said) <= last_digit / 2 + _SLACK:
        return Answer.ROUNDED
    cut = math.floor(value / last_digit + _SLACK) * last_digit
    # A single digit that was cut, 2 for 2.7, says too little to be called the same.
    same = len(ratio.says) > 1 and math.isclose(cut, said, abs_tol=last_digit / 100)
    return Answer.CUT if same else Answer.NOT


def check_ratios(
    ratios: Sequence[PaperRatio] | None = None, *, index: Index | None = None
) -> tuple[RatioCheck, ...]:
    """Recompute every statement; by default those of the package from its tables.

    Raises:
        SpecError: the data are wrong.
    """
    tables = index or read_index()
    checks = []
    for ratio in read_ratios(tables.folder) if ratios is None else ratios:
        if ratio.needs:
            checks.append(RatioCheck(ratio=ratio, answer=Answer.UNKNOWN, given=None))
            continue
        given = recompute(ratio, index=tables)
        checks.append(RatioCheck(ratio=ratio, answer=_answer(ratio, given.value), given=given))
    return tuple(checks)
