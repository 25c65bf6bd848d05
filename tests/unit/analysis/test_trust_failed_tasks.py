"""Tasks that failed and ran again taint a run."""

from __future__ import annotations

import pytest
from tests.builders import make_measurement

from boardcluster.analysis.trust import count_failed_tasks
from boardcluster.records import Verdict

MAPS = "org.apache.hadoop.mapreduce.JobCounter/NUM_FAILED_MAPS"


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({MAPS: 1}, "1 attempt of a task failed and ran again"),
        ({f"grep/{MAPS}": 1, "sort/spark/failedTasks": 2}, "3 attempts of tasks failed"),
    ],
)
def test_failed_tasks_taint(counters: dict[str, int], words: str) -> None:
    run = make_measurement(verdict=Verdict.VALID, counters=counters)
    judged = count_failed_tasks(run)
    assert judged.verdict is Verdict.TAINTED
    assert judged.verdict_reasons[-1].startswith(words)
    [lost] = judged.disturbances
    assert (lost.cause, lost.share, lost.adjustable) == ("failed tasks", 1.0, False)
    assert judged.duration_seconds == run.duration_seconds


def test_a_run_without_them_or_with_a_worse_verdict_stays() -> None:
    for run in (
        make_measurement(verdict=Verdict.VALID, counters={MAPS: 0, "spark/tasks": 8}),
        make_measurement(verdict=Verdict.INVALID, counters={MAPS: 1}),
    ):
        assert count_failed_tasks(run) is run
