"""Reading what the load generator, the counters and a fault say."""

import json
from typing import Any

import pytest

from boardcluster.errors import VerificationError
from boardcluster.services.http.result import (
    percentile_microseconds,
    read_counts,
    read_fault,
    read_result,
)

WHOLE: dict[str, Any] = {
    "requests": 10,
    "sent": 10,
    "good": 8,
    "body_bytes": 8000,
    "seconds": 2.0,
    "cpu_seconds": 0.5,
    "rate": 5.0,
    "errors": {"connect": 0, "closed": 1, "timeout": 1, "status": 0, "body": 0},
    "first_error": "/pages/1000-0: no answer in time",
    "first_wrong": "",
    "by_target": [5, 3],
    "latency_microseconds": [[99, 4], [199, 3], [999, 1]],
    "lag_microseconds": [[9, 8]],
    "began_unix": 1000.0,
    "interval_seconds": 0.5,
    "series": [[3, 0], [2, 1], [2, 1], [1, 0]],
}


def test_a_result_is_read_with_its_rate_and_its_last_failure() -> None:
    found = read_result(json.dumps(WHOLE), phase="load")

    assert found.requests_per_second == 4.0
    assert found.cpu_share == 0.25
    assert found.failed == 2
    assert found.last_failure_unix == 1001.5


def test_without_a_failure_there_is_no_last_one() -> None:
    row = WHOLE | {
        "requests": 8,
        "errors": dict.fromkeys(WHOLE["errors"], 0),
        "series": [[4, 0], [4, 0]],
    }

    assert read_result(json.dumps(row), phase="load").last_failure_unix is None


@pytest.mark.parametrize(
    "change",
    [
        {"good": 9},
        {"latency_microseconds": [[99, 4]]},
        {"by_target": [5, 2]},
        {"seconds": 0.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_result_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="load: the load generator counts"):
        read_result(json.dumps(WHOLE | change), phase="load")


@pytest.mark.parametrize("text", ["", "{}", '{"requests": "many"}', "[]"])
def test_a_result_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(VerificationError, match="cannot be read"):
        read_result(text, phase="load")


@pytest.mark.parametrize(
    ("share", "edge"), [(0.0, 99), (0.5, 99), (0.51, 199), (0.875, 199), (0.99, 999), (1.0, 999)]
)
def test_a_percentile_is_the_edge_of_the_bucket_that_holds_it(share: float, edge: int) -> None:
    assert percentile_microseconds([(99, 4), (199, 3), (999, 1)], share) == edge


def test_no_latency_has_no_percentile() -> None:
    assert percentile_microseconds([], 0.5) == 0.0


def test_counts_are_read_by_worker() -> None:
    row = {
        "servers": {"worker1": 7},
        "balancer": {
            "FRONTEND": {"req_tot": 9},
            "worker1": {"hrsp_2xx": 6, "chkdown": 1, "status": "UP"},
        },
    }

    found = read_counts(json.dumps(row))

    assert (found.asked, found.passed, found.served) == (9, {"worker1": 6}, {"worker1": 7})
    assert (found.noticed, found.status) == ({"worker1": 1}, {"worker1": "UP"})


@pytest.mark.parametrize("text", ["", "null", '{"servers": {}, "balancer": {}}'])
def test_counts_that_are_not_whole_are_refused(text: str) -> None:
    with pytest.raises(VerificationError, match="the counts of the farm cannot be read"):
        read_counts(text)


def test_the_times_of_a_fault_are_read_or_refused() -> None:
    found = read_fault('{"down_unix": 1.0, "up_unix": 3.0, "answers_unix": 3.5}')

    assert (found.down_unix, found.up_unix, found.answers_unix) == (1.0, 3.0, 3.5)
    with pytest.raises(VerificationError, match="when the fault came and went"):
        read_fault('{"down_unix": 1.0}')
