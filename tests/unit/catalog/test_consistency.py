"""Cells of published tables that contradict each other, and where the doubt is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.catalog.conditions import published_result_set
from boardcluster.catalog.consistency import cell_doubts, doubt_of
from boardcluster.catalog.published import Index, Paper, PublishedTable, read_cells, read_index

PAPER = Paper(id="p", authors="A", title="T", published_in="", year=2020, doi="")


def index_of(folder: Path, keys: str, *rows: str) -> Index:
    """A paper with one table: columns that are keys, and rows of key, quantity, value, unit."""
    text = "\n".join([f"{keys},quantity,value,unit,note", *(f"{row}," for row in rows)])
    (folder / "t.csv").write_text(f"{text}\n")
    table = PublishedTable(
        id="t", paper="p", table="Table 1", title="T", file="t.csv", keys=[keys], cells=len(rows)
    )
    return Index(folder=folder, papers={"p": PAPER}, tables={"t": table})


def doubted(index: Index) -> list[tuple[str, str]]:
    return [(row.cell.value, row.words) for row in cell_doubts(index)]


def hpl(rate: str) -> tuple[str, ...]:
    """Sizes and times of HPL: 2/3 N^3 + 2 N^2 are 123.27 Gflop."""
    return (
        "1,problem_size,5696,count",
        "1,execution_time,589.17,s",
        f"1,performance,{rate},Gflops",
    )


@pytest.mark.parametrize(
    ("rate", "doubts"),
    [
        ("0.209", []),
        ("0.2092", []),
        ("0.2", []),  # it says no more than that
        ("0.219", [("0.219", "its size and time give 0.209 Gflops")]),
    ],
)
def test_rate_times_time_is_the_work(
    tmp_path: Path, rate: str, doubts: list[tuple[str, str]]
) -> None:
    assert doubted(index_of(tmp_path, "nodes", *hpl(rate))) == doubts


def test_an_efficiency_is_the_rate_over_the_power(tmp_path: Path) -> None:
    rows = ("8,performance,1.367,Gflops", "8,power,26,W")
    right = index_of(tmp_path, "nodes", *rows, "8,efficiency,52.6,Mflops/W")
    assert doubted(right) == []
    wrong = index_of(tmp_path, "nodes", *rows, "8,efficiency,62.6,Mflops/W")
    [(value, words)] = doubted(wrong)
    assert (value, words) == ("62.6", "the rate and the power beside it give 52.6 Mflops/W")


@pytest.mark.parametrize(
    ("total", "doubts"),
    [
        ("585", []),
        ("585.5", []),  # the parts are printed without cents
        ("640", [("640", "the rows beside it add up to 585 USD")]),
    ],
)
def test_a_total_is_the_sum_of_the_rows_beside_it(
    tmp_path: Path, total: str, doubts: list[tuple[str, str]]
) -> None:
    rows = ("boards,price,385,USD", "cards,price,150,USD", "switch,price,50,USD")
    index = index_of(tmp_path, "part", *rows, "boards,power,26,W", f"Total,price,{total},USD")
    assert doubted(index) == doubts


def test_what_has_no_parts_or_parts_in_words_is_no_sum(tmp_path: Path) -> None:
    for rows in (
        ("boards,price,9,USD", "total,price,100,USD"),
        ("boards,price,about 9,USD", "cards,price,8,USD", "total,price,100,USD"),
        ("boards,price,9,EUR", "cards,price,8,USD", "total,price,100,USD"),
    ):
        assert doubted(index_of(tmp_path, "part", *rows)) == []


def test_the_papers_own_contradictions_are_found_and_no_others() -> None:
    """All that docs/explanation/published-numbers.md names and a rule can know."""
    found = {(row.table, row.cell.value) for row in cell_doubts(read_index())}
    assert found == {
        ("baun-2016-table-07", "2.78"),
        ("baun-2016-table-07", "1.77"),
        ("lee-park-2026-table-06", "169.48"),
        ("lee-park-2026-table-07", "17787"),
    }


def test_a_doubt_stands_beside_the_number_that_is_compared() -> None:
    index = read_index()
    [cell] = [
        cell
        for cell in read_cells(index.tables["lee-park-2026-table-06"], folder=index.folder)
        if cell.value == "169.48"
    ]
    assert "69.48 MB/s" in doubt_of("lee-park-2026-table-06", cell)
    side = published_result_set("lee-park-2026-table-06", {}, index=index, asked="published:x")
    by_value = {point.values[0]: point.doubt for point in side.points}
    assert by_value[169.48].startswith("17787 operations of 4 KB per second")
    assert by_value[174.42] == ""
