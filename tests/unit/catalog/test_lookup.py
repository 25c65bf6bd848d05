"""The catalog's entries: complete, sourced, and what the papers' tables say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import (
    KINDS,
    PartEntry,
    entry_names,
    find_board,
    find_part,
    nearest,
    read_part,
)
from boardcluster.catalog.published import read_cells, read_index
from boardcluster.errors import SpecError, UsageError

BOARDS = {
    *("rpi-zero-w", "rpi-zero-2-w", "rpi-b", "rpi-2b", "rpi-3b", "rpi-3b-plus"),
    *(f"rpi-4b-{gb}gb-{mhz}mhz" for gb in (1, 2, 4, 8) for mhz in (1500, 1800)),
    *(f"rpi-5b-{gb}gb-{mhz}mhz" for gb in (2, 4, 8, 16) for mhz in (2400, 3000)),
    *("desktop-i5-9600k", "desktop-i5-14500", "desktop-i5-8400", "desktop-i3-4130"),
}
ENTRIES = [(kind, name) for kind in KINDS for name in entry_names(kind)]
SCALES = (1.0, 1e6, 1e9, 1024.0, 1048576.0)
TABLE = re.compile(r"(?P<paper>[a-z-]+-\d{4}) Table (?P<table>\w+)(, its maker's)?")
ROMAN = {"I": "1", "II": "2", "III": "3"}
PAPERS = set(read_index().papers)


def entry(kind: str, name: str) -> BoardEntry | PartEntry:
    return find_board(name) if kind == "boards" else find_part(kind, name)


def numbers_of(paper: str, table: str) -> set[float]:
    """Every number in a table: its values, its keys, and those inside of texts."""
    number = ROMAN.get(table, table)
    index = read_index()
    cells = read_cells(index.tables[f"{paper}-table-{int(number):02d}"])
    texts = [text for cell in cells for text in (cell.value, *cell.keys.values())]
    return {float(found) for text in texts for found in re.findall(r"\d+(?:\.\d+)?", text)}


def test_the_boards_that_the_papers_have_are_there() -> None:
    assert set(entry_names("boards")) >= BOARDS


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_an_entry_is_whole(kind: str, name: str) -> None:
    found = entry(kind, name)
    assert found.id == name
    keys = [(row.figure.name, *sorted(row.figure.conditions.items())) for row in found.figures]
    assert len(keys) == len(set(keys)), "two figures that nothing tells apart"
    if isinstance(found, BoardEntry):
        assert set(found.sources) == {"cores", "clock_hertz", "memory_bytes"}
        assert not found.emulated


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_source_is_a_paper_or_a_maker(kind: str, name: str) -> None:
    found = entry(kind, name)
    sources = {row.source for row in found.figures}
    if isinstance(found, BoardEntry):
        sources |= set(found.sources.values())
    for source in sources:
        paper = source.split()[0]
        makers = ("Raspberry Pi Ltd, ", "Intel, ", "sbc-bench Results.md, log ")
        # Only what cools a board may be assumed; a figure of a board itself is absent then.
        known = (*makers, "assumed: ") if kind == "cooling" else makers
        assert paper in PAPERS or source.startswith(known), source
        assert paper not in PAPERS or re.fullmatch(r"\S+ (Table|section) .+", source), source


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_an_assumed_figure_says_so_in_its_name_and_in_its_source(kind: str, name: str) -> None:
    for row in entry(kind, name).figures:
        named = row.figure.name.startswith("assumed_")
        assert named == row.source.startswith("assumed: "), row


def test_what_is_told_of_cooling_is_in_the_papers_running_text() -> None:
    index = read_index()
    said = {
        float(cell.value)
        for table in index.tables.values()
        if table.id.endswith("-prose")
        for cell in read_cells(table, folder=index.folder)
        if cell.quantity in {"temperature", "airflow"}
    }
    for name in entry_names("cooling"):
        for row in find_part("cooling", name).figures:
            if row.figure.name.endswith(("_mean_celsius", "_feet_per_minute")):
                assert row.figure.value in said, row


def in_table(row: SourcedFigure) -> bool:
    match = TABLE.fullmatch(row.source)
    assert match is not None
    return any(
        math.isclose(row.figure.value, number * scale, rel_tol=1e-9, abs_tol=1e-3)
        for number in numbers_of(match["paper"], match["table"])
        for scale in SCALES
    )


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_a_figure_with_a_table_stands_in_that_table(kind: str, name: str) -> None:
    rates = {"Ethernet": (1e8, 1e9, 2.5e9)}  # "Gigabit Ethernet" has no number in it
    for row in entry(kind, name).figures:
        if not TABLE.fullmatch(row.source):
            continue
        interface = row.figure.conditions.get("interface", "")
        worded = row.figure.name == "link_bits_per_second" and kind in {"boards", "networks"}
        assert in_table(row) or (worded and row.figure.value in rates[interface]), row


def test_a_figure_that_is_not_in_its_table_is_found() -> None:
    row = find_board("rpi-3b").figures[0]
    wrong = SourcedFigure(figure=row.figure, source="lee-park-2026 Table 3")
    assert in_table(row)
    assert not in_table(wrong)


def test_conditions_that_name_a_board_name_one_that_is_there() -> None:
    for kind, name in ENTRIES:
        for row in entry(kind, name).figures:
            for key in ("board", "standard", "peer", "sender", "receiver"):
                board = row.figure.conditions.get(key, "rpi-b")
                assert board in {*entry_names("boards"), "ThinkPad X240"}, (name, board)


def test_the_slip_of_the_2026_paper_is_not_in_the_catalog() -> None:
    ssd = find_part("media", "sk-hynix-gold-p31-500gb")
    values = {
        row.figure.value
        for row in ssd.figures
        if row.figure.name == "random_read_bytes_per_second"
        and row.figure.conditions["record_bytes"] == "4096"
        and row.figure.conditions["pcie"] == "3.0"
    }
    assert values == {round(69.45 * 1048576, 3)}


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ("rpi5b-8gb", "rpi-5b-8gb-2400mhz"),
        ("Raspberry Pi 5", "rpi-5b-8gb-2400mhz"),
        ("pi-zero-w", "rpi-zero-w"),
        ("rpi-zero-ww", "rpi-zero-w"),
        ("odriod-u3", "odroid-u3"),
        ("banannapi", "bananapi"),
    ],
)
def test_the_nearest_board_is_offered(asked: str, offered: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_board(asked)
    family = offered[: offered.index("b-")] if offered.startswith("rpi-5b") else offered
    assert f'did you mean "{family}' in caught.value.message
    assert "boardcluster catalog boards" in caught.value.hint


def test_nothing_is_offered_where_nothing_is_near() -> None:
    assert nearest("zzz", entry_names("boards")) == ""
    assert nearest("rpi", ()) == ""
    with pytest.raises(UsageError) as caught:
        find_part("media", "zzz")
    assert caught.value.message == "the catalog has no 'zzz' among its media"


def test_a_file_of_ones_own_is_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(GOOD)
    assert find_part("media", str(path)) == read_part(path)
    with pytest.raises(SpecError, match="no such file"):
        find_board(str(tmp_path / "none.toml"))


GOOD = """\
id = "card"
name = "Card"
kind = "microSD card"

[[figure]]
name = "capacity_bytes"
value = 1.6e10
unit = "bytes"
source = "baun-2016 Table 4"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "microSD card"\n', "", r":1: kind: missing"),
        ('unit = "bytes"', 'unit = "MB"', "the unit of capacity_bytes is 'bytes', not 'MB'"),
        ('id = "card"', 'id = "My Card"', "a-z, 0-9 and hyphens"),
        ('source = "baun-2016 Table 4"\n', "", "source: missing"),
        ("[[figure]]", "[[figures]]", 'did you mean "figure"'),
        ("1.6e10", "nan", "a number"),
        ("[[figure]]", "[[figure", "not TOML"),
        (GOOD, "", "is empty"),
    ],
)
def test_a_wrong_part_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "card.toml"
    path.write_text(GOOD)
    assert read_part(path).kind == "microSD card"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SpecError, match=words):
        read_part(path)
