"""What ``run`` and ``demo`` share: texts prepared once, the record of a campaign, what is said."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_trial
from tests.unit.cli.desk import Desk, good

from boardcluster.campaign.begin import new_campaign, new_campaign_id, single_spec
from boardcluster.campaign.driver import run_trials
from boardcluster.campaign.follow import each_run
from boardcluster.campaign.plan import plan
from boardcluster.campaign.preflight import Preflight, PreflightRow
from boardcluster.campaign.texts import prepared_texts
from boardcluster.campaign.trial import Bench, TrialEnd
from boardcluster.cli.console import Reporter
from boardcluster.cli.show_preflight import print_preflight
from boardcluster.fetch.cache import no_progress
from boardcluster.records import (
    AttemptState,
    CampaignKind,
    CampaignSpec,
    Engine,
    PlannedFault,
    Policy,
    Trial,
)
from boardcluster.store import Store


def trial_of(workload: str = "wordcount", **fields: Any) -> Trial:
    return make_trial(workload, **{"id": "c-t", **fields})


def spec_of(workload: str = "wordcount", **fields: Any) -> CampaignSpec:
    return single_spec(
        workload,
        **{
            "engines": (Engine.SPARK,),
            "size_bytes": 1000,
            "repetitions": 2,
            "seed": 5,
            "policy": Policy(),
            **fields,
        },
    )


def test_ids_of_campaigns_are_unique_and_begin_with_the_time() -> None:
    ids = {new_campaign_id() for _ in range(20)}

    assert len(ids) > 15
    assert all(one[:2] == "20" and len(one.split("-")) == 3 for one in ids)


def test_a_single_command_is_a_matrix_of_one_cell_per_engine(desk: Desk) -> None:
    spec = spec_of(
        engines=(Engine.SPARK, Engine.MAPREDUCE, Engine.SPARK),
        text="/text",
        parameters={"wordcount.x": "1"},
    )

    (matrix,) = spec.matrices
    assert (spec.name, spec.seed, spec.policy) == ("", 5, Policy())
    assert matrix.engines == (Engine.SPARK, Engine.MAPREDUCE)  # each once
    assert (matrix.sizes_bytes, matrix.repetitions, matrix.input) == ((1000,), 2, "/text")
    assert matrix.parameters == {"wordcount.x": ("1",)}
    trials = plan(spec_of(), desk.declared, campaign_id="c")
    assert [(trial.workers, trial.profile, trial.warm_up) for trial in trials] == [
        (4, "default", False)
    ] * 2


def test_each_text_is_prepared_once(desk: Desk, tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("a b\n" * 9)
    texts = prepared_texts(tmp_path / "cache", no_progress)

    flights = [texts(trial_of(repetition=number)) for number in (1, 2)]
    texts(trial_of(size_bytes=2000))
    mine = texts(trial_of(input=str(text), size_bytes=0))
    part = texts(trial_of(input=str(text), size_bytes=12))

    assert desk.texts == [1000, 2000]
    assert flights[0] is flights[1]
    assert (mine.size_bytes, part.size_bytes) == (36, 12)  # 0 is the whole of it


def test_a_campaign_names_its_text_where_all_read_the_same(desk: Desk, tmp_path: Path) -> None:
    texts = prepared_texts(tmp_path / "cache", no_progress)

    def record(*trials: Trial) -> str:
        spec = spec_of()
        found = new_campaign(
            spec, desk.declared, trials, campaign_id="c", texts=texts, spec_sha256="a digest"
        )
        assert (found.id, found.kind, found.seed) == ("c", CampaignKind.RUN, 5)
        assert (found.cluster, found.emulated, found.name) == ("demo", True, "")
        assert found.spec_sha256 == "a digest"
        assert bool(found.dataset) == bool(found.dataset_sha256) == bool(found.dataset_source)
        return found.dataset

    assert record(trial_of(), trial_of(engine=Engine.MAPREDUCE)) == "airline-1000"
    assert record(trial_of(), trial_of("teragen", size_bytes=7)) == "airline-1000"
    assert record(trial_of("teragen+wordcount")) == "airline-1000"
    assert record(trial_of(), trial_of(size_bytes=2000)) == ""
    assert record(trial_of("teragen")) == ""
    assert desk.texts == [1000]  # nothing was prepared only to be named


@pytest.fixture
def follow(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Run trials and return the lines about them, without the time."""

    def run(trials: list[Trial], end: TrialEnd) -> list[str]:
        desk.ends = {trial.workload: end for trial in trials}
        texts = prepared_texts(tmp_path / "cache", no_progress)
        campaign = new_campaign(
            spec_of(), desk.declared, trials, campaign_id="c", texts=texts, spec_sha256=""
        )
        with Store.open(desk.home) as store:
            store.add_campaign(campaign, trials)
            run_trials(
                store,
                campaign,
                trials,
                cluster=lambda _: desk.live(),
                bench=Bench(
                    policy=Policy(),
                    cache=tmp_path / "cache",
                    progress=no_progress,
                    text=texts,
                ),
                watch=each_run(campaign, trials, Reporter()),
            )
        lines = capsys.readouterr().err.splitlines()
        return [line.partition("] ")[2] for line in lines]

    return run


def test_runs_are_followed_by_their_number_among_those_that_run(
    follow: Callable[..., list[str]],
) -> None:
    # Places in the plan do not matter: a resume runs some of them.
    trials = [trial_of(id=f"c-{position}", position=position) for position in (3, 7)]

    lines = follow(trials, good(seconds=20.04))

    assert lines[0] == "campaign c: 2 runs, seed 5"
    assert [line for line in lines if line.startswith("run ")] == [
        "run 1 of 2: wordcount on spark, 1 KB",
        "run 1 of 2: ok, 20.0 s, 3 records verified",
        "run 2 of 2: wordcount on spark, 1 KB",
        "run 2 of 2: ok, 20.0 s, 3 records verified",
    ]


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (trial_of(), "wordcount on spark, 1 KB"),
        (trial_of(warm_up=True), "wordcount on spark, 1 KB, warm-up"),
        (trial_of(fault=PlannedFault.KILL), "wordcount on spark, 1 KB, fault kill"),
        (trial_of("teragen", size_bytes=0), "teragen on spark"),
        (
            trial_of("teragen", parameters={"teragen.maps": "4", "teragen.a": "b"}),
            "teragen on spark, 1 KB, teragen.a b, teragen.maps 4",
        ),
        (trial_of("teragen+teragen"), "teragen+teragen on spark, 1 KB, in turn"),
        (
            trial_of("teragen+teragen", concurrency=2),
            "teragen+teragen on spark, 1 KB, 2 at once",
        ),
    ],
)
def test_a_trial_is_named_by_what_is_not_as_usual(
    trial: Trial, words: str, follow: Callable[..., list[str]]
) -> None:
    assert f"run 1 of 1: {words}" in follow([trial], good())


def test_what_was_not_as_asked_is_said_with_the_result(
    follow: Callable[..., list[str]],
) -> None:
    end = good()
    assert end.measurement is not None
    remarks = ("page caches kept: not permitted", "no samples")

    lines = follow(
        [trial_of()], replace(end, measurement=replace(end.measurement, remarks=remarks))
    )

    assert f"run 1 of 1: ok, 20.0 s, 3 records verified; {'; '.join(remarks)}" in lines


def test_a_run_that_is_not_ok_says_why(follow: Callable[..., list[str]]) -> None:
    end = TrialEnd(state=AttemptState.FAILED, reason="3 words differ", measurement=None)

    assert "run 1 of 1: failed: 3 words differ" in follow([trial_of()], end)


def outlook_of(**fields: Any) -> Preflight:
    row = PreflightRow(
        workload="grep",
        engine="spark",
        sizes_bytes=(0, 1000, 64_000_000),
        workers=(2, 4),
        cells=3,
        runs=6,
        known_seconds=90.0,
        known_runs=6,
    )
    return Preflight(
        **{
            "rows": (row, replace(row, workload="pi", sizes_bytes=(0,), known_runs=5)),
            "runs": 12,
            "cells": 6,
            "forms": 2,
            "starts": 1,
            "known_seconds": 90.0,
            "unknown_runs": 1,
            "space_bytes": 5_000_000,
            "notes": ("hpl: N is 2,800",),
            "problems": (),
            **fields,
        }
    )


def printed(capsys: pytest.CaptureFixture[str], **fields: Any) -> str:
    print_preflight(outlook_of(**fields), reporter=None)
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_outlook_says_what_will_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)

    grep, pi = (line for line in text.splitlines() if " grep " in line or " pi " in line)
    assert "1 KB, 64 MB" in grep
    assert "2, 4" in grep
    assert "unknown" not in grep
    assert "unknown" in pi  # one of its runs is
    assert "12 runs of 6 cells on 2 variants of the cluster, one after the other" in text
    assert ", and 1 run of unknown time" in text
    assert "space on the nodes: 5 MB (inputs, and the largest run)" in text
    assert "hpl: N is 2,800" in text


def test_an_outlook_that_knows_nothing_or_all_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "time: unknown, because nothing similar was measured" in printed(capsys, unknown_runs=12)
    everything = printed(capsys, unknown_runs=0, forms=1)
    assert "of unknown time" not in everything
    assert "on 1 variant of the cluster\n" in everything


def test_of_many_remarks_only_the_first_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    notes = tuple(f"hpl: N is {number}" for number in range(10))

    text = printed(capsys, notes=notes)
    shown = [line for line in text.splitlines() if line.startswith("hpl: ")]

    assert shown == list(notes[: len(shown)])
    assert 0 < len(shown) < 10
    assert f"and {10 - len(shown)} more notes: see --json" in text
    assert "more notes" not in printed(capsys, notes=notes[:2])


def test_beside_results_the_outlook_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_preflight(outlook_of(), reporter=Reporter())

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "what will run" in captured.err
    assert "12 runs of 6 cells" in captured.err
