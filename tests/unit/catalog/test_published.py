"""The papers' tables: whole, plain, and equal where the papers print the same twice."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path
from statistics import fmean

import pytest

from boardcluster.catalog.published import (
    PUBLISHED,
    PublishedTable,
    TableCell,
    find_cell,
    find_table,
    read_cells,
    read_index,
)
from boardcluster.errors import SpecError, UsageError

TABLES = [table for table in read_index().tables.values() if table.file]


def named(table: PublishedTable) -> str:
    return table.id


def cells(name: str) -> tuple[TableCell, ...]:
    return read_cells(find_table(name, index=read_index()))


def values(name: str, **wanted: str) -> list[str]:
    """The values of the cells that match, in the table's order."""
    return [
        cell.value
        for cell in cells(name)
        if all(
            {**cell.keys, "quantity": cell.quantity}[key] == text for key, text in wanted.items()
        )
    ]


def test_every_table_of_the_papers_is_there_or_says_why_not() -> None:
    index = read_index()
    count = {
        "baun-2016": 7,
        "gamess-hernandez-2022": 3,
        "lee-oh-park-2021": 22,
        "lee-park-2026": 23,
    }
    for paper, tables in count.items():
        for number in range(1, tables + 1):
            assert f"{paper}-table-{number:02d}" in index.tables
    for table in index.tables.values():
        assert table.paper in index.papers
        assert bool(table.file) != bool(table.missing)


def test_every_file_is_in_the_index_and_no_other() -> None:
    files = {path.name for path in PUBLISHED.iterdir()} - {"index.toml", "ratios.toml"}
    assert files == {table.file for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=named)
def test_a_table_is_plain(table: PublishedTable) -> None:
    data = (PUBLISHED / table.file).read_bytes()
    assert b"\r" not in data
    assert data.endswith(b"\n")
    assert data.decode("utf-8").isprintable() or b"\n" in data
    rows = read_cells(table)
    keys = [(*cell.keys.values(), cell.quantity) for cell in rows]
    assert len(keys) == len(set(keys))
    assert {cell.unit for cell in rows} - {""} == set(table.units)
    for cell in rows:
        assert cell.value or cell.note, "an empty cell says why"
        if cell.unit and cell.value:
            assert re.fullmatch(r"\d+(\.\d+)?", cell.value), cell


@pytest.mark.parametrize(
    ("name", "wanted", "value"),
    [
        ("baun-2016-table-04", {"product": "SF-16UX", "node": "ThinkPad X240"}, "59.10"),
        ("gamess-hernandez-2022-table-02", {"board": "RPi 4B", "software": "MPlayer"}, "507.6"),
        (
            "lee-oh-park-2021-table-12",
            {"data_size": "2GB", "storage": "microSD1", "nodes": "2"},
            "4602.7",
        ),
        ("lee-park-2026-table-23", {"clock_ghz": "3.0", "threads": "16"}, "123274.62"),
    ],
)
def test_cells_are_where_they_belong(name: str, wanted: dict[str, str], value: str) -> None:
    assert value in values(name, **wanted)


def test_operations_per_second_are_the_rates_of_four_kilobytes() -> None:
    """Lee and Park 2026, Tables 6 and 7: MB are 2^20 bytes; one cell contradicts its twin."""
    wrong = []
    for storage, node in (
        ("Samsung PRO Plus", "RPi 4B"),
        ("Samsung PRO Plus", "RPi 5B"),
        ("SK Hynix GOLD P31", "RPi 5B"),
    ):
        for quantity in ("random_read", "random_write"):
            where = {"storage": storage, "node": node}
            (rate,) = values("lee-park-2026-table-06", record_kb="4", quantity=quantity, **where)
            (iops,) = values("lee-park-2026-table-07", quantity=f"{quantity}_4k", **where)
            if abs(int(iops) * 4096 / 2**20 - float(rate)) > 0.01:
                wrong.append(rate)
    assert wrong == ["169.48"]


@pytest.mark.parametrize(("both", "own"), [("20", "14"), ("21", "15")])
def test_the_4b_of_the_comparison_has_the_fast_card(both: str, own: str) -> None:
    """Lee, Oh and Park 2021 say it had the slow one; their index entry says so as a doubt."""
    fast = values(f"lee-oh-park-2021-table-{own}", storage="microSD2")
    assert values(f"lee-oh-park-2021-table-{both}", board="4B") == fast
    table = read_index().tables[f"lee-oh-park-2021-table-{both}"]
    assert any("microSD2" in doubt for doubt in table.doubts)


@pytest.mark.parametrize(
    ("both", "own", "printed", "slow"), [("20", "14", 3.58, 2.82), ("21", "15", 6.66, 4.84)]
)
def test_the_4b_gains_less_with_the_card_that_was_named(
    both: str, own: str, printed: float, slow: float
) -> None:
    old = [float(x) for x in values(f"lee-oh-park-2021-table-{both}", board="3B", data_size="1GB")]
    for storage, gain in (("microSD2", printed), ("microSD1", slow)):
        new = values(f"lee-oh-park-2021-table-{own}", storage=storage, data_size="1GB")
        ratios = [above / float(below) for above, below in zip(old, new, strict=True)]
        assert fmean(ratios) == pytest.approx(gain, abs=0.006)


def test_tables_that_print_the_same_run_agree() -> None:
    ordinary = values("lee-park-2026-table-04", board="RPi 5B (8 GB)")
    assert values("lee-park-2026-table-23", clock_ghz="2.4") == ordinary
    for platform, wordcount, terasort in (("Hadoop", "12", "14"), ("Spark", "13", "15")):
        for nodes, name in (("1", "RPi4B (1 node)"), ("5", "RPi4B (5 nodes)")):
            two = {"data_size": "2GB", "storage": "UFS", "nodes": nodes}
            of_pc = {"platform": platform, "computing_nodes": name}
            for benchmark, table in (("Wordcount", wordcount), ("TeraSort", terasort)):
                assert values("lee-oh-park-2021-table-22", benchmark=benchmark, **of_pc) == values(
                    f"lee-oh-park-2021-table-{table}", **two
                )


def test_hpl_rates_follow_from_problem_size_and_time() -> None:
    for memory in ("70", "75", "80", "85", "90", "95"):
        for nodes in "1248":
            where = {"memory_percent": memory, "nodes": nodes}
            size, seconds, gflops = (
                float(values("baun-2016-table-07", quantity=quantity, **where)[0])
                for quantity in ("problem_size", "execution_time", "performance")
            )
            operations = 2 / 3 * size**3 + 2 * size**2  # HPL's own count
            assert operations / seconds / 1e9 == pytest.approx(gflops, abs=0.002)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("index.toml", "lee-park-2026-table-03.csv"):
        shutil.copy(PUBLISHED / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode,board", "mode,bord", ":1: the columns are not mode, board, quantity"),
        ("stress,RPi 5B,power,10.31,W,\n", "", "3 cells, not 4"),
        ("idle,RPi 4B,power,3.75,W,", "idle,RPi 4B,power,3.75", ":2: 4 columns, not 6"),
    ],
)
def test_a_damaged_table_is_refused(copy: Path, old: str, new: str, words: str) -> None:
    table = read_index(copy).tables["lee-park-2026-table-03"]
    path = copy / table.file
    assert len(read_cells(table, folder=copy)) == 4
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SpecError, match=words):
        read_cells(table, folder=copy)


def test_an_empty_or_foreign_file_is_refused(copy: Path) -> None:
    table = read_index(copy).tables["lee-park-2026-table-03"]
    (copy / table.file).write_bytes(b"")
    with pytest.raises(SpecError, match="the columns are not"):
        read_cells(table, folder=copy)
    (copy / table.file).write_bytes("mode,board,Stärke\n".encode("latin-1"))
    with pytest.raises(SpecError, match="cannot be read as UTF-8"):
        read_cells(table, folder=copy)
    (copy / table.file).unlink()
    with pytest.raises(SpecError, match="cannot be read"):
        read_cells(table, folder=copy)


def test_a_wrong_index_is_refused(copy: Path) -> None:
    path = copy / "index.toml"
    path.write_text(path.read_text().replace("cells = 4\n", 'cells = "four"\n'))
    with pytest.raises(SpecError, match="a number of rows"):
        read_index(copy)


def test_a_table_that_is_not_there_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match='did you mean "lee-park-2026-table-03"'):
        find_table("lee-park-2026-table-3", index=read_index())


def test_tables_are_read_with_any_csv_reader() -> None:
    with (PUBLISHED / "lee-park-2026-table-01.csv").open(encoding="utf-8", newline="") as stream:
        row = next(row for row in csv.DictReader(stream) if row["quantity"] == "price")
    assert row["value"] == "$35(1 GB), $45(2 GB), $55(4 GB), $75(8 GB)"


def test_the_page_on_published_numbers_counts_right() -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "published-numbers.md"
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\d+) \| (\d+) \|", page.read_text(), re.MULTILINE)
    printed = [table for table in TABLES if not table.id.endswith("-prose")]
    assert {(paper, int(tables), int(count)) for paper, tables, count in rows} == {
        (
            paper,
            sum(1 for table in printed if table.paper == paper),
            sum(table.cells for table in printed if table.paper == paper),
        )
        for paper in read_index().papers
    }


# One cell


def test_a_cell_is_found_by_some_of_its_columns() -> None:
    table = find_table("lee-park-2026-table-16", index=read_index())

    cell = find_cell(table, {"storage": "SSD", "nodes": "4"}, "execution_time")

    assert (cell.value, cell.unit, cell.keys["maps"]) == ("76", "s", "100")


@pytest.mark.parametrize(
    ("name", "where", "quantity", "said"),
    [
        ("lee-park-2026-table-16", {"nods": "4"}, "execution_time", 'no column .nods.*"nodes"'),
        ("lee-park-2026-table-16", {"nodes": "4"}, "execution_time", "has 2 cells"),
        ("lee-park-2026-table-16", {"nodes": "5"}, "execution_time", "has 0 cells"),
        ("lee-park-2026-table-16", {"nodes": "4"}, "power", "has no cells of 'power'"),
        ("lee-park-2026-table-s24", {}, "execution_time", "in the paper's supplement"),
    ],
)
def test_no_cell_or_several_are_refused(
    name: str, where: dict[str, str], quantity: str, said: str
) -> None:
    table = find_table(name, index=read_index())

    with pytest.raises(UsageError, match=said) as caught:
        find_cell(table, where, quantity)

    assert caught.value.hint
