"""How a watch stands, by its store; and what the report shows of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import (
    make_campaign,
    make_fingerprint,
    make_measurement,
    make_trial,
    noon,
    store_run,
)
from tests.unit.report.stored import board_telemetry
from tests.unit.report.watched import BEGUN_UTC, NAME, store_rounds, watch_record

from boardcluster.analysis.watched import WatchStanding
from boardcluster.errors import EmptySelectionError
from boardcluster.queries.report import write_home_report
from boardcluster.queries.watches import watch_standing
from boardcluster.records import Disturbance, Fingerprint, Trial, Verdict
from boardcluster.store import Store
from boardcluster.store.files import TELEMETRY_NAME
from boardcluster.store.watches import write_watch

STEADY = (20.0, 20.3, 19.8, 20.1, 19.9)


def standing(home: Path) -> WatchStanding:
    return watch_standing(home, NAME)


def test_a_slow_round_after_a_new_kernel_is_out_and_says_so(tmp_path: Path) -> None:
    store_rounds(tmp_path, [*STEADY, 20.1])
    store_rounds(
        tmp_path, [41.0], begin=6, fingerprint=make_fingerprint(kernel="6.18 x86_64", java="21")
    )
    [cell] = standing(tmp_path).out
    assert any(line.startswith("kernel: ") for line in cell.changed)
    assert cell.words.startswith("grep on spark, 1 KB left its limits: 41.0 s in round 7")
    assert "104.7 % more since a change between rounds 6 and 7" in cell.words
    assert "6.18 x86_64" in standing(tmp_path).notice


def test_a_round_counts_once_none_of_its_runs_is_being_made(tmp_path: Path) -> None:
    store_rounds(tmp_path, [*STEADY, 41.0])
    with Store.open(tmp_path) as store:
        last = store.find_campaigns(NAME)[-1]
        trial = replace(make_trial(), id=f"{last.id}-9", campaign_id=last.id, position=9)
        store.add_trials(last.id, [trial])
        store.begin_attempt(trial.id, make_fingerprint(), noon())
    assert last.id not in standing(tmp_path).rounds
    assert not standing(tmp_path).out


def test_what_the_cluster_sets_may_change_under_a_chart(tmp_path: Path) -> None:
    store_rounds(tmp_path, STEADY)
    changed = {"settings": {"dfs.blocksize": "1048576"}, "profile": "upstream", "workers": 3}
    store_rounds(tmp_path, [60.0], begin=5, trial=changed)
    [cell] = standing(tmp_path).cells
    assert cell.chart.is_out
    assert cell.changed[:3] == (
        "dfs.blocksize: not set, then 1048576",
        "profile: default, then upstream",
        "workers: 4, then 3",
    )


def test_what_the_file_sets_makes_cells_of_their_own(tmp_path: Path) -> None:
    record = watch_record(settings=("dfs.blocksize",))
    store_rounds(tmp_path, [20.0], record=record, trial={"settings": {"dfs.blocksize": "1"}})
    store_rounds(tmp_path, [20.0], begin=1, record=record)
    assert len(standing(tmp_path).cells) == 2


def store_round(home: Path, *runs: tuple[Trial, float, Fingerprint]) -> None:
    """Store one round with several runs, a minute apart."""
    write_watch(home, watch_record())
    with Store.open(home) as store:
        campaign = make_campaign(id="c000", name=NAME, created_utc=BEGUN_UTC)
        trials = [
            replace(trial, id=f"c000-{place}", campaign_id=campaign.id, position=place)
            for place, (trial, _, _) in enumerate(runs)
        ]
        store.add_campaign(campaign, trials)
        for trial, (_, seconds, fingerprint) in zip(trials, runs, strict=True):
            found = make_measurement(seconds, verdict=Verdict.VALID, input_bytes=1000)
            began = noon(60 * trial.position)
            store_run(store, trial, found, fingerprint=fingerprint, started_utc=began)


@pytest.mark.parametrize(
    ("field", "levels", "words"),
    [
        ("input", ("/a/t.txt", "/b/t.txt"), "1 KB, input t.txt, input {}"),
        ("size_bytes", (1_000_100, 1_000_200), "1 MB, size {} bytes"),
    ],
)
def test_cells_whose_words_are_alike_have_charts_of_their_own(
    field: str, levels: tuple[Any, ...], words: str, tmp_path: Path
) -> None:
    runs = [(make_trial(**{field: level}), make_fingerprint()) for level in levels]
    (one, setup), (other, _) = runs
    store_round(tmp_path, (one, 20.0, setup), (other, 30.0, setup))
    took = {row.name: row.chart.points[0].value.seconds for row in standing(tmp_path).cells}
    names = [f"grep on spark, {words.format(level)}" for level in levels]
    assert took == {names[0]: pytest.approx(20.0), names[1]: pytest.approx(30.0)}


def test_a_setup_that_changed_in_mid_round_makes_no_cell_of_its_own(tmp_path: Path) -> None:
    old, new = make_fingerprint(), make_fingerprint(kernel="6.19.0 x86_64")
    store_round(
        tmp_path, (make_trial(), 10.0, old), (replace(make_trial(), repetition=2), 40.0, new)
    )
    [cell] = standing(tmp_path).cells
    [point] = cell.chart.points
    assert (cell.name, point.value.runs) == ("grep on spark, 1 KB", 2)
    assert point.value.seconds == pytest.approx(20.0), "the geometric mean of both"


def test_rounds_without_a_run_that_counts_are_no_baseline(tmp_path: Path) -> None:
    store_rounds(tmp_path, [20.0, None, 20.2])
    [cell] = standing(tmp_path).cells
    assert (cell.chart.have, len(cell.chart.points)) == (2, 3)
    assert "the baseline needs 3 rounds more" in cell.words


def test_a_cell_of_which_no_run_counts_any_more_is_not_silently_within(tmp_path: Path) -> None:
    store_rounds(tmp_path, STEADY)
    heat = Disturbance(cause="throttled", node="worker1", share=0.6, adjustable=False)
    tainted = {
        "verdict": Verdict.TAINTED,
        "disturbances": (heat,),
        "verdict_reasons": ("throttled: worker1 for 60 %",),
    }
    store_rounds(tmp_path, [20.0, 20.0], begin=5, measured=tainted)
    now = standing(tmp_path)
    assert [row.silent for row in now.silent] == [
        "no run counts since round 6: throttled: worker1 for 60 %"
    ]
    assert now.cells[0].words.endswith(now.cells[0].silent)


def test_disturbed_rounds_count_only_where_the_watch_was_begun_so(tmp_path: Path) -> None:
    heat = Disturbance(cause="throttled", node="worker1", share=0.6, adjustable=False)
    tainted = {"verdict": Verdict.TAINTED, "disturbances": (heat,)}
    store_rounds(tmp_path, [20.0], measured=tainted)
    [cell] = standing(tmp_path).cells
    assert (cell.chart.have, cell.silent) == (0, "no run counts since round 1")
    store_rounds(tmp_path, [20.0], begin=1, measured=tainted, record=watch_record(tainted=True))
    [cell] = standing(tmp_path).cells
    assert cell.chart.have == 2


def test_rounds_of_an_earlier_baseline_are_left_out(tmp_path: Path) -> None:
    store_rounds(tmp_path, STEADY)
    later = watch_record(begun_utc="2026-08-04T00:00:00+00:00")
    store_rounds(tmp_path, [20.0], begin=5, record=later)
    assert standing(tmp_path).rounds == ("c003", "c004", "c005")


def test_a_baseline_that_moves_is_said(tmp_path: Path) -> None:
    moving = [10.0, 10.1, 10.0, 10.2, 10.1, 20.0, 20.1, 19.9, 20.0, 20.2]
    store_rounds(tmp_path, moving, record=watch_record(baseline=10))
    [cell] = standing(tmp_path).cells
    assert cell.baseline_drifts


def test_without_a_round_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmptySelectionError) as caught:
        standing(tmp_path)
    assert "boardcluster watch-performance" in caught.value.hint


def test_the_report_shows_charts_limits_and_the_change(tmp_path: Path) -> None:
    store_rounds(tmp_path, [*STEADY, 20.1])
    store_rounds(tmp_path, [41.0], begin=6, fingerprint=make_fingerprint(kernel="6.18 x86_64"))
    written = write_home_report(
        tmp_path, tmp_path / "report", cluster=None, changes_work=lambda key: False
    )
    text = written.markdown.read_text()
    assert "## Watched over time" in text
    assert "6.18.0 x86" in text
    assert "between rounds 6 and 7" in text
    [data] = [path for path in written.data if path.name.startswith("watched-")]
    rows = data.read_text().splitlines()
    assert rows[0].startswith("round,campaign,begun_utc,runs,seconds,baseline")
    assert rows[-1].startswith("7,c006,")
    assert ",round," in rows[-1]
    assert "watched-1-1" in written.html.read_text()


def test_a_record_of_no_use_costs_its_own_charts_and_no_more(tmp_path: Path) -> None:
    store_rounds(tmp_path, [*STEADY, 20.1])
    write_watch(tmp_path, watch_record(name="watch-bad", baseline=1))
    (tmp_path / "watches" / "watch-cut.json").write_text('{"format": 7, "rec')
    written = write_home_report(
        tmp_path, tmp_path / "report", cluster=None, changes_work=lambda key: False
    )
    text = written.markdown.read_text()
    assert "watches/watch-bad.json: baseline is '1', allowed: at least 5 rounds" in text
    assert "watches/watch-cut.json" in text
    assert str(tmp_path) not in text
    assert [path.name for path in written.data if path.name.startswith("watched-")] == [
        "watched-1-1.csv"
    ]


def test_damaged_samples_of_a_changed_round_cost_neither_the_watch_nor_the_report(
    tmp_path: Path,
) -> None:
    store_rounds(tmp_path, [*STEADY, 20.1])
    store_rounds(tmp_path, [41.0], begin=6, telemetry=board_telemetry(41.0))
    with Store.open(tmp_path) as store:
        [attempt] = [row.attempt for row in store.results("c006") if row.attempt]
        (store.artefact_folder(attempt) / TELEMETRY_NAME).write_bytes(b"cut short")
    [cell] = standing(tmp_path).out
    assert "a change between rounds 6 and 7" in cell.words
    written = write_home_report(
        tmp_path, tmp_path / "report", cluster=None, changes_work=lambda key: False
    )
    assert "Samples of run c006-t/1 are damaged" in written.markdown.read_text()
