"""How results of emulated boards are named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import make_result
from tests.unit.analysis.test_fingerprints import SETUP

from boardcluster.analysis.cells import label_of, summarise
from boardcluster.analysis.twins import dilation_words, is_twin, twin_words
from boardcluster.records import Result


def result(*, dilation: float | None = 1.0, twin: str = "1 x rpi-5b", position: int = 0) -> Result:
    return make_result(
        None if dilation is None else 2.0,
        setup=replace(SETUP, twin=twin, limits="worker1: 0.5 cores" if twin else ""),
        dilation=dilation or 1.0,
        position=position,
        workers=1,
        repetition=position + 1,
        replication=1,
    )


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([], ""),
        ([result(twin="")], ""),
        ([result()], "emulated boards, dilation 1.0"),
        ([result(dilation=4)], "emulated boards, dilation 4.0"),
        ([result(dilation=11.7)], "emulated boards, dilation 11.7"),
        (
            [result(dilation=4), result(dilation=2), result(dilation=4)],
            "emulated boards, dilation 2.0, 4.0",
        ),
        ([result(dilation=None)], "emulated boards"),
        ([result(dilation=None), result(dilation=4)], "emulated boards, dilation 4.0"),
        ([result(dilation=4), result(twin="")], "partly emulated boards, dilation 4.0"),
        # pending and failed ones have no time that could be mistaken
        ([result(dilation=4), result(twin="", dilation=None)], "emulated boards, dilation 4.0"),
        ([result(dilation=4, twin="")], "emulated boards, dilation 4.0"),
    ],
)
def test_emulated_boards_are_named_with_their_dilation(results: list[Result], words: str) -> None:
    assert twin_words(results) == words


def test_warm_ups_at_full_speed_are_not_of_the_boards_dilation() -> None:
    measured = result(dilation=11.7)
    warm_up = result(dilation=1.0)
    warm_up = replace(warm_up, trial=replace(warm_up.trial, warm_up=True))
    assert twin_words([warm_up, measured]) == "emulated boards, dilation 11.7"
    assert twin_words([warm_up]) == "emulated boards"


def test_a_trial_that_never_ran_is_none() -> None:
    assert not is_twin(replace(result(), attempt=None, measurement=None))
    assert is_twin(result())


def test_dilations_are_named_once_and_in_order() -> None:
    assert dilation_words(4, 2.25, 4.0) == "dilation 2.25, 4.0"


def test_the_label_of_a_result_begins_with_them() -> None:
    assert label_of([result(dilation=4)]) == "emulated boards, dilation 4.0, replication 1"
    assert label_of([result(twin="")]) == "replication 1"


def test_cells_of_different_boards_have_different_labels() -> None:
    runs = [result(dilation=4), result(dilation=4, twin="1 x rpi-4b", position=1)]
    assert [cell.label for cell in summarise(runs)] == [
        "emulated boards, dilation 4.0, replication 1, 1 x rpi-4b",
        "emulated boards, dilation 4.0, replication 1, 1 x rpi-5b",
    ]


def test_a_cell_of_several_dilations_says_so() -> None:
    slow = result(dilation=4, position=1)
    assert slow.attempt
    limits = "worker1: 0.125 cores"
    attempt = replace(slow.attempt, fingerprint=replace(slow.attempt.fingerprint, limits=limits))
    [cell] = summarise([result(), slow])
    assert cell.label == "emulated boards, dilation 1.0, 4.0, replication 1"
    labels = [cell.label for cell in summarise([result(), replace(slow, attempt=attempt)])]
    assert labels == [
        "emulated boards, dilation 4.0, replication 1, worker1: 0.125 cores",
        "emulated boards, dilation 1.0, replication 1, worker1: 0.5 cores",
    ]
