from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from boardcluster.analysis.result_sets import DURATION, ResultPoint
from boardcluster.catalog.conditions import published_result_set
from boardcluster.catalog.published import read_index
from boardcluster.records import Campaign, Engine, Fingerprint, Result
from boardcluster.report.published_part import published_part
from boardcluster.report.source import Source

Make = Callable[..., Result]
TABLE = "lee-oh-park-2021-table-20"


def _published() -> ResultPoint:
    """The first time of the table that names the boards."""
    side = published_result_set(TABLE, {}, index=read_index(), asked=TABLE)
    return next(
        point
        for point in side.points
        if point.quantity == DURATION and point.conditions["workers"] == 4
    )


def _results(make: Make, setup: Fingerprint, point: ResultPoint, **more: Any) -> list[Result]:
    found = [
        make(
            place,
            Engine(str(point.conditions["engine"])),
            point.mean * (0.98 + 0.02 * place),
            workload=str(point.conditions["workload"]),
            size_bytes=int(point.conditions["size_bytes"]),
            setup=setup,
            **more,
        )
        for place in range(3)
    ]
    assert {row.trial.workers for row in found} == {4}
    return found


@pytest.fixture
def boards(fingerprint: Fingerprint) -> Fingerprint:
    """Boards as the paper's table names them."""
    name = f"Raspberry Pi {_published().machine['board'][0]} Model B"
    return replace(fingerprint, emulated=False, hardware=(f"pi0: {name}, 1 GiB",))


def test_a_published_time_stands_beside_ours(
    make: Make, campaign: Campaign, boards: Fingerprint
) -> None:
    point = _published()
    part = published_part(Source.of(_results(make, boards, point), [campaign]))
    assert part is not None
    [table] = part.tables
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in table.rows]
    [row] = [row for row in rows if TABLE.partition("-table")[0] in row["Source"]]
    assert float(row["Published (s)"].replace(",", "")) == pytest.approx(point.mean, rel=1e-3)
    assert row["Ours / published"] == "1.00"
    assert row["The published number is"] == "inside our interval"


def test_one_run_of_ours_says_nothing_of_a_published_time(
    make: Make, campaign: Campaign, boards: Fingerprint
) -> None:
    results = _results(make, boards, _published())[:1]
    part = published_part(Source.of(results, [campaign]))
    assert part is not None
    titles = [column.title for column in part.tables[0].columns]
    said = {row[titles.index("The published number is")] for row in part.tables[0].rows}
    assert said == {"not judged: our one run has no interval"}


@pytest.mark.parametrize("change", ["board", "size", "setting"])
def test_nothing_is_compared_with_other_work_or_other_boards(
    make: Make, campaign: Campaign, boards: Fingerprint, change: str
) -> None:
    point = _published()
    setup = boards
    more: dict[str, Any] = {}
    if change == "board":
        setup = replace(boards, hardware=("pi0: Raspberry Pi 5 Model B, 8 GiB",))
    if change == "size":
        point = replace(point, conditions={**point.conditions, "size_bytes": 64_000_000})
    if change == "setting":
        point = replace(point, conditions={**point.conditions, "workload": "pi"})
    assert published_part(Source.of(_results(make, setup, point, **more), [campaign])) is None


def _beside_a_card(
    make: Make, setup: Fingerprint, board: str, **more: Any
) -> tuple[list[Result], ResultPoint]:
    """Runs like a cell of a table that has no column for the board, on a card in boards."""
    name = "lee-oh-park-2021-table-14"
    side = published_result_set(name, {"storage": "microSD1"}, index=read_index(), asked=name)
    point = next(row for row in side.points if row.conditions["workers"] == 4)
    hardware = (f"pi0: {board}, 8 GiB, sd SC64G",)
    found = replace(setup, emulated=False, hardware=hardware)
    return _results(make, found, point, **more), point


def test_boards_that_the_papers_table_has_no_column_for_are_compared_too(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    same, point = _beside_a_card(make, fingerprint, "Raspberry Pi 4 Model B")
    part = published_part(Source.of(same, [campaign]))
    assert part is not None
    titles = [column.title for column in part.tables[0].columns]
    rows = [dict(zip(titles, row, strict=True)) for row in part.tables[0].rows]
    [row] = [row for row in rows if row["Source"] == point.source]
    assert (row["Paper's copies of a block"], row["Our copies"]) == ("3", "as profile default")
    other, _ = _beside_a_card(make, fingerprint, "Raspberry Pi 5 Model B")
    assert published_part(Source.of(other, [campaign])) is None


@pytest.mark.parametrize(("copies", "compared"), [(1, False), (3, True), (0, True)])
def test_other_copies_of_a_block_are_not_the_same_conditions(
    make: Make, campaign: Campaign, fingerprint: Fingerprint, copies: int, compared: bool
) -> None:
    runs, point = _beside_a_card(make, fingerprint, "Raspberry Pi 4 Model B", replication=copies)
    part = published_part(Source.of(runs, [campaign]))
    shown = [text for table in part.tables for row in table.rows for text in row] if part else []
    assert (point.source in shown) is compared


def test_plain_emulated_nodes_are_no_boards(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    results = _results(make, fingerprint, _published())
    assert published_part(Source.of(results, [campaign])) is None
