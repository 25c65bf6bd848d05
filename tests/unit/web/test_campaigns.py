"""Cells, the time left, and verdicts in words."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace

import pytest
from tests.builders import (
    make_attempt,
    make_campaign,
    make_measurement,
    make_proof,
    make_trial,
    noon,
)

from boardcluster.queries.progress import Progress
from boardcluster.records import Attempt, AttemptState, Result, Verdict
from boardcluster.web.campaigns import campaign_document, cell_counts, left_interval
from boardcluster.web.words import outcome_words, trial_title

NOW = datetime.datetime.fromisoformat("2026-08-01T13:00:00+00:00")


def row(size: int, seconds: float | None, **attempt: object) -> Result:
    trial = make_trial(id=f"t-{size}-{seconds}", size_bytes=size)
    state = AttemptState.OK if seconds is not None else None
    made: Attempt | None = None
    if state is not None or attempt:
        ended = noon(seconds or 0.0)
        given = {"state": state, "reason": "", "started_utc": noon(), "ended_utc": ended}
        made = make_attempt(trial_id=trial.id, **{**given, **attempt})
    measured = make_measurement(seconds, verdict=Verdict.VALID) if seconds is not None else None
    return Result(trial=trial, attempt=made, measurement=measured)


def progress(*rows: Result, typical: float = 10.0) -> Progress:
    keys = {
        (r.trial.workload, str(r.trial.engine), r.trial.size_bytes, r.trial.workers) for r in rows
    }
    return Progress(
        campaign=make_campaign(), results=rows, typical_seconds=dict.fromkeys(keys, typical)
    )


def test_cells_are_done_failed_or_to_come() -> None:
    rows = [row(1, 9.0), row(1, 11.0), row(2, 9.0), row(2, None), row(3, None)]
    rows += [row(4, None, state=AttemptState.FAILED, reason="it failed")]
    assert cell_counts(rows) == {"done": 1, "failed": 1, "to_come": 2}


def test_the_interval_is_wider_with_more_to_come_and_holds_the_middle() -> None:
    known = [row(1, 9.0), row(1, 11.0)]
    few = left_interval(progress(*known, row(1, None)), NOW)
    many = left_interval(progress(*known, *[row(1, None) for _ in range(9)]), NOW)
    assert few is not None
    assert many is not None
    assert few[0] < 10 < few[1]
    assert many[1] - many[0] > few[1] - few[0]


def test_warm_ups_do_not_widen_it() -> None:
    known = [row(1, 9.0), row(1, 11.0)]
    fast = row(1, 1.0)
    warm_up = replace(fast, trial=replace(fast.trial, warm_up=True))
    plain = left_interval(progress(*known, row(1, None)), NOW)
    assert left_interval(progress(warm_up, *known, row(1, None)), NOW) == plain


def test_there_is_no_interval_for_what_was_never_measured() -> None:
    found = Progress(campaign=make_campaign(), results=(row(1, None),), typical_seconds={})
    assert left_interval(found, NOW) is None


def test_the_document_is_json_and_says_what_happened() -> None:
    failed = row(4, None, state=AttemptState.FAILED, reason="its job failed", ended_utc=noon())
    found = campaign_document(progress(row(1, 9.0, ended_utc=noon()), failed), "", NOW)
    json.dumps(found)
    assert {entry["words"] for entry in found["latest"]} >= {"It failed: its job failed."}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_words(verdict: Verdict) -> None:
    measured = make_measurement(9.0, verdict=verdict, verdict_reasons=("a fan stood still",))
    result = Result(trial=make_trial(), attempt=make_attempt(), measurement=measured)
    assert outcome_words(result).endswith("because a fan stood still.")


def test_a_verdict_of_an_older_store_may_have_no_reason() -> None:
    measured = make_measurement(9.0, verdict=Verdict.TAINTED, verdict_reasons=("",))
    result = Result(trial=make_trial(), attempt=make_attempt(), measurement=measured)
    assert outcome_words(result).endswith("it was disturbed.")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (AttemptState.FAILED, "It failed after 9.0 s: worker2 was lost."),
        (AttemptState.INVALID, "It took 9.0 s and is invalid: worker2 was lost."),
    ],
)
def test_what_ended_badly_is_not_to_be_trusted_though_it_was_measured(
    state: AttemptState, words: str
) -> None:
    found = row(1, 9.0, state=state, reason="worker2 was lost")
    assert outcome_words(found) == words


@pytest.mark.parametrize(("records", "words"), [(1, "1 record was"), (2, "2 records were")])
def test_how_many_records_were_verified(records: int, words: str) -> None:
    measured = make_measurement(9.0, verification=make_proof(records=records))
    result = Result(trial=make_trial(), attempt=make_attempt(), measurement=measured)
    assert f"It took 9.0 s; {words} verified" in outcome_words(result)


def test_titles_say_what_differs() -> None:
    trial = make_trial("wordcount", size_bytes=256_000_000, workers=1, warm_up=True)
    assert trial_title(trial).startswith("wordcount on ")
    assert "1 worker" in trial_title(trial)
    assert trial_title(trial).endswith("warm-up")
