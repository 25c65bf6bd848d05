"""``catalog``: names, entries, tables and the two lists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from boardcluster.catalog.entry import render_board
from boardcluster.catalog.lookup import KINDS, entry_names, find_board
from boardcluster.catalog.published import read_index
from boardcluster.catalog.ratios import Answer, check_ratios
from boardcluster.cli.app import app
from boardcluster.errors import UsageError


def ran(*words: str) -> Result:
    return CliRunner().invoke(app, ["catalog", *words], catch_exceptions=False)


def in_json(*words: str) -> object:
    done = ran(*words, "--json")
    assert done.exit_code == 0
    return json.loads(done.stdout)


def test_what_is_in_the_catalog() -> None:
    counts = in_json()
    assert isinstance(counts, dict)
    assert list(counts) == [*KINDS, "published"]
    assert counts["boards"] == len(entry_names("boards"))
    assert "boards" in ran().stdout


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_is_listed_and_shown(kind: str) -> None:
    listed = in_json(kind)
    assert isinstance(listed, list)
    assert [row["id"] for row in listed] == list(entry_names(kind))
    table = ran(kind).stdout
    for name in entry_names(kind):
        assert name in table
        assert ran(kind, name).exit_code == 0
        assert in_json(kind, name) in listed


def test_a_board_shows_where_each_value_is_from() -> None:
    text = ran("boards", "rpi-5b-8gb-2400mhz").stdout
    assert "cores: 4 (lee-park-2026 Table 1)" in text
    assert "lee-park-2026 Table 3" in text


def test_a_measured_board_is_shown_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    measured = replace(find_board("rpi-3b"), sources={}, clock_hertz=None)
    path.write_text(render_board(measured))
    text = ran("boards", str(path)).stdout
    assert "cores: 4 (as the board says)" in text
    assert "clock: unknown" in text


def test_a_table_shows_its_cells_conditions_and_doubts() -> None:
    text = ran("published", "lee-park-2026-table-06").stdout
    assert "iozone -e -I" in text
    assert "the 1 in front is a slip" in text
    assert "169.48" in text
    rows = in_json("published", "lee-park-2026-table-06")
    assert isinstance(rows, dict)
    assert len(rows["rows"]) == 36
    [note] = [row["note"] for row in rows["rows"] if row["value"] == "169.48"]
    assert "; doubtful: 17787 operations of 4 KB per second" in note


def test_a_table_that_the_text_does_not_have_says_so() -> None:
    assert (
        "no cells: its caption is in the text"
        in ran("published", "lee-oh-park-2021-table-19").stdout
    )


def test_every_table_is_listed() -> None:
    listed = in_json("published")
    assert isinstance(listed, list)
    assert [row["id"] for row in listed] == list(read_index().tables)
    assert "lee-park-2026-table-s24" in ran("published").stdout


def test_check_prints_both_lists() -> None:
    text = ran("published", "--check").stdout
    checks = check_ratios()
    wrong = sum(1 for check in checks if check.answer is Answer.NOT)
    good = sum(1 for check in checks if check.answer in {Answer.ROUNDED, Answer.CUT})
    assert f"These follow from the tables: {good}" in text
    assert f"These do not follow from the tables: {wrong}" in text
    assert "These cells contradict others: 4" in text
    rows = in_json("published", "--check")
    assert isinstance(rows, list)
    assert len(rows) == len(checks)
    by_id = {row["id"]: row for row in rows}
    assert by_id["lee-park-2026-cpu"]["given"]["pairs"] == 5
    assert by_id["lee-park-2026-trim"]["given"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bords",), 'did you mean "boards"'),
        (("boards", "rpi5b"), 'did you mean "rpi-5b'),
        (("published", "lee-park-2026-table-99"), 'did you mean "lee-park-2026'),
        (("boards", "--check"), "--check can only be used with published"),
        (("published", "baun-2016-table-01", "--check"), "--check can only be used with published"),
    ],
)
def test_what_is_not_there_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ran(*words)
