"""One question: what the answer has, and when it says that it does not know."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from boardcluster.errors import UsageError
from boardcluster.plan.answer import answer_question
from boardcluster.plan.hardware import board_rates, medium_rates
from boardcluster.plan.learning import learn
from boardcluster.plan.model import RuntimeModel, predict_many
from boardcluster.plan.prediction import UnknownReason
from boardcluster.plan.question import Question, QuestionBatch
from boardcluster.records import Engine

BOARDS = ("rpi-4b-4gb-1500mhz", "rpi-5b-8gb-2400mhz", "rpi-3b", "rpi-zero-w")
MEDIA = ("samsung-ufs-256gb", "sk-hynix-gold-p31-500gb", "sony-sd-16gb-class10")
ASKED = Question(
    workload="terasort",
    engine=Engine.SPARK,
    size_bytes=2 * 10**9,
    workers=4,
    board=BOARDS[0],
    medium=MEDIA[0],
)


@pytest.fixture(scope="module")
def model() -> RuntimeModel:
    return learn(map(board_rates, BOARDS), map(medium_rates, MEDIA))


def reasons(model: RuntimeModel, question: Question) -> list[UnknownReason]:
    return [row.reason for row in answer_question(model, question).unknown]


def test_a_cell_of_a_table_is_answered_with_its_parts(model: RuntimeModel) -> None:
    """2 GB of Spark TeraSort on four boards with UFS took 88.4 s (2021, Table 15)."""
    found = answer_question(model, ASKED)
    assert found.is_known
    assert found.seconds
    assert found.shares
    assert found.distance
    assert found.backtest
    assert found.joules
    assert found.intermediate_bytes
    assert found.seconds.median == pytest.approx(88.4, rel=0.1)
    assert found.seconds.interval.low < 88.4 < found.seconds.interval.high
    assert sum(getattr(found.shares, row.name) for row in fields(found.shares)) == pytest.approx(1)
    assert found.distance.size == found.distance.workers == found.distance.cpu == 1.0
    assert found.provenance == ("60 cells of lee-oh-park-2021 Table 15",)
    assert found.backtest.mean_error < 0.08
    watts = found.joules.median / found.seconds.median / 4
    assert 6.4 < watts < 7  # more than stress alone: TeraSort uses the medium, too


def test_farther_is_less_sure_and_says_how_it_was_reached(model: RuntimeModel) -> None:
    near = answer_question(model, ASKED)
    far = answer_question(model, replace(ASKED, workers=10, board=BOARDS[1], medium=MEDIA[1]))
    assert near.seconds
    assert far.seconds
    assert far.distance
    assert far.distance.workers == 2.0
    assert far.distance.cpu == pytest.approx(2.45, abs=0.01)
    widths = [row.interval.high / row.interval.low for row in (near.seconds, far.seconds)]
    assert widths[0] < widths[1]
    assert any("ratio of 7-zip" in words for words in far.provenance)
    assert any("HDFS write probe" in words for words in far.provenance)


def test_memory_that_is_oversubscribed(model: RuntimeModel) -> None:
    """The 3B took five to eight times as long as its CPU says (2021, Tables 20 and 21)."""
    asked = replace(ASKED, board="rpi-3b")
    assert reasons(model, asked) == [UnknownReason.MEMORY]
    found = answer_question(model, asked)
    assert "1.07 GB" in found.unknown[0].words
    assert found.run_next
    assert found.run_next.size_bytes < asked.size_bytes


def test_a_workload_without_series_or_runs(model: RuntimeModel) -> None:
    found = answer_question(model, replace(ASKED, workload="grep"))
    assert found.seconds is None
    assert [row.reason for row in found.unknown] == [UnknownReason.NO_DATA]
    assert found.run_next


def test_hardware_without_the_figure(model: RuntimeModel) -> None:
    found = answer_question(model, replace(ASKED, board="rpi-zero-w", medium=MEDIA[2]))
    assert [row.reason for row in found.unknown] == [UnknownReason.NO_FIGURE]
    assert "7-zip" in found.unknown[0].words
    assert "dfsio" in found.unknown[0].words


def test_too_far(model: RuntimeModel) -> None:
    asked = replace(ASKED, size_bytes=10**12, workers=5)
    assert reasons(model, asked) == [UnknownReason.WIDE]


def test_a_link_slower_than_every_run_gives_a_least_time(model: RuntimeModel) -> None:
    found = answer_question(model, replace(ASKED, link_bits_per_second=1e8))
    assert [row.reason for row in found.unknown] == [UnknownReason.RESOURCE]
    assert found.lower_bound


def test_a_node_alone_has_no_link_that_could_be_too_slow(model: RuntimeModel) -> None:
    """What is declared of it is 0, as a campaign's prediction asks."""
    assert not reasons(model, replace(ASKED, workers=1, link_bits_per_second=0.0))


def test_other_slots(model: RuntimeModel) -> None:
    assert reasons(model, replace(ASKED, slots=4)) == [UnknownReason.SLOTS]


def test_a_spill_that_no_run_had() -> None:
    """Without the cells of 4 GB no map of TeraSort spilled twice; smaller buffers move that."""
    model = learn(map(board_rates, BOARDS), map(medium_rates, MEDIA))
    key = "terasort", Engine.MAPREDUCE
    learned = model.series[key]
    small = learned.fitted.data.work.amount <= 2
    data = learned.fitted.data.taken(small)
    fitted = replace(learned.fitted, data=data)
    cut = replace(model, series={key: replace(learned, fitted=fitted)})
    asked = replace(ASKED, engine=Engine.MAPREDUCE, size_bytes=4 * 10**9)
    assert reasons(cut, asked) == [UnknownReason.THRESHOLD]
    roomy = replace(asked, settings={"mapreduce.task.io.sort.mb": "200"})
    assert UnknownReason.THRESHOLD not in reasons(cut, roomy)


def test_larger_buffers_are_predicted_to_save_the_spill(model: RuntimeModel) -> None:
    asked = replace(ASKED, engine=Engine.MAPREDUCE, size_bytes=4 * 10**9)
    roomy = replace(asked, settings={"mapreduce.task.io.sort.mb": "200"})
    spilling, saving = (answer_question(model, row).seconds for row in (asked, roomy))
    assert spilling
    assert saving
    assert saving.median < 0.9 * spilling.median


def test_no_workers(model: RuntimeModel) -> None:
    with pytest.raises(UsageError, match="at least 1 worker"):
        answer_question(model, replace(ASKED, workers=0))


def test_many_questions_get_the_answers_of_one(model: RuntimeModel) -> None:
    count = 300
    random = np.random.default_rng(1)
    batch = QuestionBatch(
        workload="terasort",
        engine=Engine.SPARK,
        boards=BOARDS,
        media=MEDIA,
        size_bytes=random.uniform(1e8, 1e10, count),
        workers=random.integers(1, 30, count).astype(float),
        board=random.integers(0, len(BOARDS), count),
        medium=random.integers(0, len(MEDIA), count),
        replication=np.full(count, 3.0),
        link_bits_per_second=np.full(count, 1e9),
        slots=np.zeros(count),
    )
    found = predict_many(model, batch)
    for place in range(0, count, 37):
        one = answer_question(
            model,
            replace(
                ASKED,
                size_bytes=int(batch.size_bytes[place]),
                workers=int(batch.workers[place]),
                board=BOARDS[batch.board[place]],
                medium=MEDIA[batch.medium[place]],
            ),
        )
        assert bool(found.known[place]) == one.is_known
        if one.seconds is None:
            assert np.isnan(found.median_seconds[place])
        else:
            assert found.median_seconds[place] == pytest.approx(one.seconds.median, rel=1e-6)
            assert found.high_seconds[place] == pytest.approx(one.seconds.interval.high, rel=1e-6)
    assert found.known.any()
    assert not found.known.all()
