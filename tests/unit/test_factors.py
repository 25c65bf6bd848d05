"""The table of factors, and that everything that shows trials reads it."""

from __future__ import annotations

import dataclasses
import sqlite3
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.unit.analysis.runs import result

from boardcluster.analysis.cells import Cell, summarise
from boardcluster.analysis.result_sets import compare_result_sets, own_result_set
from boardcluster.analysis.scaling import factor_effects
from boardcluster.campaign.selection import SELECTION_KEYS
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.errors import UsageError
from boardcluster.factors import (
    FACTORS,
    FACTORS_BY_NAME,
    Acts,
    Factor,
    later_levels,
    levels,
    setting_words,
)
from boardcluster.records import Checksum, Engine, MasterPlacement, Trial
from boardcluster.report.compared import describe
from boardcluster.report.export.settings import SETTINGS, TEXT_SETTINGS
from boardcluster.report.plots import times_by_factor
from boardcluster.report.plots.cells import AXES, factor_words, rest_of
from boardcluster.report.plots.figure import Bars
from boardcluster.report.scaling_tables import effects_table
from boardcluster.store.migrations import MIGRATIONS

if TYPE_CHECKING:
    from boardcluster.report.source import Source

ROOT = Path(__file__).resolve().parents[2]
OTHER: dict[str, Any] = {
    "workload": "pi",
    "engine": Engine.SPARK,
    "profile": "/data/me/mine.toml",
    "size_bytes": 5,
    "workers": 3,
    "concurrency": 2,
    "replication": 2,
    "checksum": Checksum.NULL,
    "master": MasterPlacement.COMBINED,
    "input": "/data/me/text.txt",
    "parameters": {"terasort.files": "2"},
    "settings": {"dfs.heartbeat.interval": "5"},
}
BASE = result(1.0).trial
NOT_FACTORS = {
    "id",
    "campaign_id",
    "position",
    "repetition",
    "start",
    "arguments",
    "warm_up",
}


def other(factor: Factor) -> Any:
    """Another level than that of the base; a new plain factor needs no line above."""
    if factor.name in OTHER:
        return OTHER[factor.name]
    here = factor.level(BASE)
    if factor.kind is int:
        return here + 1
    return next(level for level in factor.kind if level != here)


def changed(factor: Factor) -> Trial:
    return dataclasses.replace(BASE, **{factor.name: other(factor)})


def test_the_table_and_the_trial_have_the_same_fields_types_and_defaults() -> None:
    kinds = typing.get_type_hints(Trial)
    fields = {field.name: field for field in dataclasses.fields(Trial)}
    assert {factor.name for factor in FACTORS} == set(fields) - NOT_FACTORS
    for factor in FACTORS:
        kind = kinds[factor.name]
        assert (typing.get_origin(kind) or kind) is factor.kind, factor.name
        default = fields[factor.name].default
        if default is not dataclasses.MISSING:
            assert default == factor.default, factor.name
    assert len({factor.file_key for factor in FACTORS}) == len(FACTORS)


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.name)
def test_another_level_is_another_cell_in_words_of_its_own(factor: Factor) -> None:
    trial = changed(factor)
    assert levels(trial) != levels(BASE)
    assert levels(trial, without=[factor.name]) == levels(BASE, without=[factor.name])
    one, two = (factor.words(factor.level(each)) for each in (trial, BASE))
    assert one != two
    assert "/data" not in one
    assert (variant_of(trial) != variant_of(BASE)) == (factor.acts is not Acts.JOB)


@pytest.mark.parametrize(
    "factor",
    [factor for factor in FACTORS if factor.name not in ("workload", "size_bytes")],
    ids=lambda factor: factor.name,
)
def test_cells_labels_figures_and_exports_read_the_table(factor: Factor) -> None:
    cells = summarise([result(1.0), result(2.0, position=1, **{factor.name: other(factor)})])
    assert len(cells) == 2
    assert factor.name in AXES
    if factor.name not in ("engine", "parameters", "settings"):
        assert len({factor_words(cell, factor.name) for cell in cells}) == 2
    assert len({rest_of(cell, factor.name) for cell in cells}) == 1
    if factor.name not in ("engine", "profile", "workers", "concurrency"):
        assert len({cell.label for cell in cells}) == 2
    assert factor.name in {column.field.name for column in (*SETTINGS, *TEXT_SETTINGS)}


def test_what_is_chosen_by_is_every_factor_that_a_word_can_say() -> None:
    left_out = {"input", "parameters", "settings"}
    keys = {factor.file_key for factor in FACTORS if factor.name not in left_out}
    assert set(SELECTION_KEYS) == {*keys, "repetition"}


def test_a_later_factor_is_left_out_while_it_has_its_default() -> None:
    assert later_levels(BASE) == ()
    settings = {"b": "2", "a": "1"}
    trial = dataclasses.replace(BASE, settings=settings)
    assert later_levels(trial) == (("settings", (("a", "1"), ("b", "2"))),)


def test_every_factor_has_a_column_of_the_store() -> None:
    connection = sqlite3.connect(":memory:")
    for _, statements in MIGRATIONS:
        for statement in statements:
            connection.execute(statement)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(trials)")}
    assert {factor.name for factor in FACTORS} <= columns
    assert [name for name, _ in MIGRATIONS] == sorted(name for name, _ in MIGRATIONS)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("dfs.blocksize", "33554432", "dfs.blocksize 32 MiB"),
        ("dfs.blocksize", "1000", "dfs.blocksize 1000"),
        ("dfs.heartbeat.interval", "1048576", "dfs.heartbeat.interval 1048576"),
        ("spark.executor.memory", "512m", "spark.executor.memory 512m"),
    ],
)
def test_a_setting_reads_as_people_write_it(key: str, value: str, words: str) -> None:
    assert setting_words(key, value) == words


def test_a_level_in_bytes_reads_as_a_size() -> None:
    factor = FACTORS_BY_NAME["size_bytes"]
    assert factor.words(32 << 20) == "size 32 MiB"
    assert factor.words_alone(32 << 20) == "32 MiB"


def effect_words(factor: str, **fields: Any) -> tuple[str, ...]:
    """Name, faster and slower of the one effect, as its table shows them."""
    cells = summarise([result(30.0), result(20.0, position=1, **fields)])
    source = SimpleNamespace(cells=cells, are_emulated=lambda _: False)
    effects = factor_effects(cells)
    assert [effect.factor for effect in effects] == [factor]
    table = effects_table(cast("Source", source), effects)
    assert table is not None
    return tuple(table.rows[0][:3])


def test_effects_are_named_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effect_words("replication", replication=2) == (
        *("replication", "2", "the profile's replication"),
    )
    assert effect_words("concurrency", concurrency=2) == (
        *("concurrency", "2 at once", "one after the other"),
    )
    assert effect_words("engine", engine=Engine.SPARK) == ("engine", "Spark", "MapReduce")
    assert effect_words("checksum", checksum=Checksum.NULL) == ("checksum", "null", "crc32c")
    row = dataclasses.replace(
        FACTORS_BY_NAME["replication"],
        label="block size",
        unit="bytes",
        says=lambda size: f"block size {size >> 20} MiB" if size else "the profile's block size",
    )
    monkeypatch.setitem(FACTORS_BY_NAME, "replication", row)
    assert effect_words("replication", replication=32 << 20) == (
        *("block size", "32 MiB", "the profile's block size"),
    )


def test_figures_and_their_titles_are_named_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    row = dataclasses.replace(FACTORS_BY_NAME["replication"], key="copies", label="copies of data")
    monkeypatch.setitem(FACTORS_BY_NAME, "replication", row)
    cells = summarise([result(1.0), result(2.0, position=1, replication=2)])
    [figure] = times_by_factor(cells, "replication")
    assert figure.title == "WordCount: time by copies of data"
    assert "by copies of data" in figure.caption
    assert figure.name.startswith("times-by-copies")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"replication": 2}, "replication: A the profile's replication, B 2"),
        ({"concurrency": 2}, "concurrency: A one after the other, B 2 at once"),
        ({"master": MasterPlacement.COMBINED}, "master: A declared, B combined"),
        ({"engine": Engine.SPARK}, "engine: A MapReduce, B Spark"),
    ],
)
def test_what_tells_sides_apart_is_named_by_the_table(fields: dict[str, Any], said: str) -> None:
    sides = [summarise([result(1.0)]), summarise([result(2.0, position=1, **fields)])]
    comparison = compare_result_sets(*(own_result_set("s", "s", cells) for cells in sides))
    assert describe(comparison).apart == (said,)
    [factor] = fields
    apart = {row.name: (row.first, row.second) for row in comparison.apart}
    assert set(apart) == {factor}  # as it is stored, for exports
    if factor == "replication":
        assert apart[factor] == (0, 2)


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    paths = ("/a/mine.toml", "/b/mine.toml")
    sides = [summarise([result(20.0, profile=path)]) for path in paths]
    comparison = compare_result_sets(*(own_result_set("s", "s", cells) for cells in sides))
    assert describe(comparison).apart == ("profile: A /a/mine.toml, B /b/mine.toml",)


def blocks(*sizes: str) -> tuple[Cell, ...]:
    """A cell for each size of blocks; the empty one is the profile's."""
    return summarise(
        result(
            seconds,
            position=place,
            settings={"spark.executor.cores": "1"} | ({"dfs.blocksize": size} if size else {}),
        )
        for number, size in enumerate(sizes)
        for place, seconds in ((2 * number, 10.0 + number), (2 * number + 1, 10.5 + number))
    )


def test_a_setting_is_an_effect_and_an_axis_of_its_own() -> None:
    cells = blocks("33554432", "134217728", "")
    assert [cell.count for cell in cells] == [2, 2, 2]
    effects = factor_effects(cells)
    assert {effect.factor for effect in effects} == {"dfs.blocksize"}
    values = {(effect.slower_value, effect.faster_value) for effect in effects}
    assert ("as the profile", "33554432") in values
    [figure] = times_by_factor(cells, "dfs.blocksize")
    assert isinstance(figure.body, Bars)
    assert [bar.label for group in figure.body.groups for bar in group.bars] == [
        "dfs.blocksize as the profile",
        "dfs.blocksize 32 MiB",
        "dfs.blocksize 128 MiB",
    ]
    assert times_by_factor(cells, "spark.executor.cores") == ()
    with pytest.raises(UsageError, match=r"allowed: .*dfs\.blocksize"):
        times_by_factor(cells, "dfs.block.size")


def test_sides_that_differ_by_settings_are_compared_and_it_is_said() -> None:
    small, large = (own_result_set(size, size, blocks(size)) for size in ("33554432", "134217728"))
    comparison = compare_result_sets(small, large)
    [apart] = comparison.apart
    assert (apart.name, apart.first, apart.second) == (
        "setting dfs.blocksize",
        "32 MiB",
        "128 MiB",
    )
    assert comparison.matches
    both = own_result_set("both", "both", blocks("33554432", "134217728"))
    matched = compare_result_sets(both, both).matches
    assert all(row.first.conditions == row.second.conditions for row in matched)
