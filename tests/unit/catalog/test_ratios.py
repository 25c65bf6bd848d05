"""What the papers say in prose, recomputed from what they print in tables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from boardcluster.catalog.published import PUBLISHED, read_index
from boardcluster.catalog.ratios import (
    Answer,
    PaperRatio,
    RatioCheck,
    check_ratios,
    read_ratios,
    recompute,
)
from boardcluster.errors import SpecError

CHECKS = check_ratios()
BY_ID = {check.ratio.id: check for check in CHECKS}
POWER = "lee-park-2026-table-03"


def named(check: RatioCheck) -> str:
    return check.ratio.id


@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_what_does_not_follow_is_listed_with_what_the_tables_give(check: RatioCheck) -> None:
    assert (check.answer is Answer.NOT) == bool(check.ratio.gives)
    if check.ratio.gives:
        assert check.given is not None
        decimals = len(check.ratio.gives.partition(".")[2])
        assert f"{check.given.value:.{decimals}f}" == check.ratio.gives


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("lee-park-2026-cpu", Answer.ROUNDED),
        ("lee-park-2026-parallel", Answer.ROUNDED),
        ("lee-park-2026-pi-media-spark", Answer.ROUNDED),
        ("lee-park-2026-power-5b", Answer.CUT),
        ("lee-park-2026-power-desktop-spark", Answer.NOT),
        ("lee-oh-park-2021-terasort-spark-ufs-sd2", Answer.NOT),
        ("lee-oh-park-2021-crc", Answer.ROUNDED),
        ("baun-2016-speedup-80-2", Answer.NOT),
        ("lee-park-2026-wordcount-doubling-hadoop", Answer.UNKNOWN),
        ("lee-park-2026-teragen-spark-ssd", Answer.UNKNOWN),
    ],
)
def test_well_known_statements(name: str, answer: Answer) -> None:
    assert BY_ID[name].answer is answer


def test_statements_are_told_apart_and_of_papers_that_are_there() -> None:
    assert len(BY_ID) == len(CHECKS)
    assert {check.ratio.paper for check in CHECKS} <= set(read_index().papers)


def test_the_statements_that_were_named_are_all_there() -> None:
    said = {check.ratio.says for check in CHECKS if check.ratio.paper == "lee-park-2026"}
    assert said >= {"1.57", "1.78", "2.25", "2.66", "1.9", "3.86", "3.43", "2.52", "1.74"}


def one(
    says: str, how: str = "one", more: Mapping[str, object] = MappingProxyType({})
) -> PaperRatio:
    """Power of the RPi 5B against the RPi 4B: 1.4773 idle, 1.4603 in stress."""
    mode = {} if how in {"mean", "sums", "max", "min", "below", "above"} else {"mode": "idle"}
    fields: dict[str, object] = {
        "id": "test",
        "paper": "lee-park-2026",
        "section": "a",
        "words": "b",
        "says": says,
        "how": how,
        "over": {"table": POWER, "board": "RPi 5B", **mode},
        "under": {"table": POWER, "board": "RPi 4B", **mode},
    }
    return PaperRatio.model_validate(fields | dict(more))


@pytest.mark.parametrize(
    ("says", "how", "answer"),
    [
        ("1.48", "one", Answer.ROUNDED),
        ("1.5", "one", Answer.ROUNDED),
        ("1.47", "one", Answer.CUT),
        ("1.4", "one", Answer.CUT),
        ("1.49", "one", Answer.NOT),
        ("1.3", "one", Answer.NOT),
        ("2", "one", Answer.NOT),
        ("1.469", "mean", Answer.ROUNDED),
        ("1.466", "sums", Answer.ROUNDED),
        ("1.477", "max", Answer.ROUNDED),
        ("1.460", "min", Answer.ROUNDED),
        ("1.48", "below", Answer.ROUNDED),
        ("1.47", "below", Answer.NOT),
        ("1.46", "above", Answer.ROUNDED),
        ("1.47", "above", Answer.NOT),
        ("1.79", "difference", Answer.ROUNDED),
    ],
)
def test_rounded_cut_or_neither(says: str, how: str, answer: Answer) -> None:
    (check,) = check_ratios([one(says, how)])
    assert check.answer is answer


def test_a_single_digit_is_not_called_cut() -> None:
    (check,) = check_ratios([one("2", more={"under": {"value": 2.0}})])
    assert check.given is not None
    assert check.given.value == pytest.approx(2.77)
    assert check.answer is Answer.NOT


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"over": {"table": "no-such-table"}}, "there is no table"),
        ({"over": {"table": POWER, "board": "RPi 6"}}, "selects no cell"),
        ({"over": {"table": POWER, "colour": "red"}}, "selects no cell"),
        ({"how": "one", "over": {"table": POWER}, "under": {"table": POWER}}, "4 pairs for one"),
        ({"over": {"table": "lee-park-2026-table-10"}}, "is not a number"),
        ({"under": {"value": 0.0}}, "test: 5.54 times of 0: the lower one is not above 0"),
    ],
)
def test_a_selection_that_is_wrong_is_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        recompute(one("1", more=fields), index=read_index())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('says = "1.74"', 'says = "fast"', "a number as printed"),
        ('how = "mean"', 'how = "average"', "one, mean, sums"),
        ('needs = "Fig. 3"', 'needs = ""', "needs either how, over and under, or needs"),
        ("[[ratio]]", "[ratio", "not TOML"),
    ],
)
def test_a_wrong_list_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "ratios.toml"
    shutil.copy(PUBLISHED / "ratios.toml", path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError, match=words):
        read_ratios(tmp_path)
