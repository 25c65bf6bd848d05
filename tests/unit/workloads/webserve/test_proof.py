"""What is held against what, and what is then refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from boardcluster.analysis.twins import undilated_value
from boardcluster.errors import MeasuringLimitError, VerificationError
from boardcluster.records import PlannedFault
from boardcluster.workloads.webserve.pages import expected_bytes, pages_of
from boardcluster.workloads.webserve.proof import SHARES, FarmRun, load_name, prove

PAGES = pages_of(computed_percent=5, rounds=3, largest_bytes=100_000)
SEEDS = {"saturation": 1, "direct": 2, "null server": 3, **{load_name(s): s for s in SHARES}}
KINDS = ("connect", "closed", "timeout", "status", "body")


def result(name: str, *, good: int = 100, rate: float = 100.0, **errors: int) -> dict[str, Any]:
    failed = sum(errors.values())
    return {
        "requests": good + failed,
        "sent": good + failed,
        "good": good,
        "body_bytes": expected_bytes(PAGES, seed=SEEDS[name], requests=good),
        "seconds": good / rate,
        "cpu_seconds": 0.1 * good / rate,
        "rate": 0.0,
        "errors": dict.fromkeys(KINDS, 0) | errors,
        "first_error": "/pages/1000-0: status 503" if failed else "",
        "first_wrong": "/pages/1000-0: byte 5 is 0x00, expected 0x01" if "body" in errors else "",
        "by_target": [good // 2, good - good // 2] if name == "direct" else [good],
        "latency_microseconds": [[500, good]],
        "lag_microseconds": [[5, good]],
        "began_unix": 1000.0,
        "interval_seconds": 0.1,
        "series": [[good, 0], [0, failed]],
    }


def counts(
    asked: int,
    passed: list[int],
    served: list[int],
    *,
    down: int = 0,
    status: str = "UP",
    whose: str = "worker2",
) -> str:
    names = ("worker1", "worker2")
    servers = {
        name: {
            "hrsp_2xx": count,
            "chkdown": down if name == whose else 0,
            "status": status if name == whose else "UP",
        }
        for name, count in zip(names, passed, strict=True)
    }
    row = {
        "servers": dict(zip(names, served, strict=True)),
        "balancer": {"FRONTEND": {"req_tot": asked}, **servers},
    }
    return json.dumps(row)


def run(**changes: Any) -> FarmRun:
    """A farm of two that served 100 requests, and as many at each of four rates."""
    names = ["saturation", "direct", *map(load_name, SHARES)]
    results = {name: json.dumps(result(name)) for name in names}
    results["null server"] = json.dumps(result("null server", rate=1000.0))
    whole = FarmRun(
        pages=PAGES,
        digest="d",
        workers=("worker1", "worker2"),
        fault=PlannedFault.NONE,
        fault_texts={},
        fault_ahead_seconds=0.0,
        results=results,
        requests=dict.fromkeys(("saturation", "direct", "null server"), 100),
        seeds=SEEDS,
        before=counts(10, [5, 5], [6, 6]),
        # 500 through the balancer, 50 more straight to each server, and the count itself.
        after=counts(510, [255, 255], [307, 307]),
    )
    return replace(whole, **changes)


def faulted(**changes: Any) -> FarmRun:
    """One server of the same farm goes away and comes back in two phases."""
    names = ["saturation", load_name(50)]
    results = {name: json.dumps(result(name, closed=4)) for name in names}
    results["null server"] = json.dumps(result("null server", rate=1000.0))
    times = json.dumps({"down_unix": 999.0, "up_unix": 1000.0, "answers_unix": 1000.1})
    whole = run(
        requests={"saturation": 104, "null server": 100},
        fault=PlannedFault.KILL,
        fault_texts=dict.fromkeys(names, times),
        results=results,
        after=counts(218, [130, 85], [132, 3], down=2),
    )
    return replace(whole, **changes)


def test_what_is_right_is_proved_with_its_figures() -> None:
    proof = prove(run())

    assert proof.verification.records == 700
    assert proof.figures["requests_per_second"] == 100.0
    assert proof.figures["balancer_overhead_percent"] == 0.0
    assert proof.figures["load_90_latency_p999_microseconds"] == 500.0
    assert proof.figures["failed_requests"] == 0.0


@pytest.mark.parametrize("made", [run, faulted], ids=["none", "fault"])
def test_every_figure_has_a_unit_that_says_what_it_is_on_slower_nodes(
    made: Callable[[], FarmRun],
) -> None:
    for name in prove(made()).figures:
        assert undilated_value(name, 1.0, 2.0) is not None, name


def changed(name: str, **values: Any) -> dict[str, str]:
    """The results of a run in which one phase is another."""
    return {**run().results, name: json.dumps(json.loads(run().results[name]) | values)}


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (
            {**run().results, "saturation": json.dumps(result("saturation", good=99, body=1))},
            "saturation: 1 bodies are not the page .* byte 5 is 0x00",
        ),
        (
            {**run().results, load_name(75): json.dumps(result(load_name(75), good=98, status=2))},
            r"load 75 percent: 2 of 100 requests failed \(2 status\); first .*status 503",
        ),
        (
            {**run().results, "direct": json.dumps(result("direct", good=98))},
            "direct: the client made 98 requests instead of 100",
        ),
        (changed("saturation", body_bytes=12), "saturation: 100 requests brought 12 bytes"),
    ],
    ids=["body", "failed", "requests", "bytes"],
)
def test_what_the_client_saw_and_must_not_is_refused(results: dict[str, str], words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(run(results=results))


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (changed("saturation", cpu_seconds=0.95), "saturation: the client took 0.95 of a core"),
        (
            {**run().results, "null server": json.dumps(result("null server", rate=110.0))},
            "the client may be what limits the farm",
        ),
    ],
    ids=["busy", "slow"],
)
def test_a_client_that_may_be_the_limit_makes_no_result(
    results: dict[str, str], words: str
) -> None:
    with pytest.raises(MeasuringLimitError, match=words):
        prove(run(results=results))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            counts(511, [255, 255], [307, 307]),
            "made 500 requests, and the balancer counted 501",
        ),
        (
            counts(510, [255, 254], [307, 306]),
            "got 500 right answers, and the balancer passed on 499",
        ),
        (
            counts(510, [255, 255], [307, 307], down=1),
            "server on worker2 was not in the balancer all the time: found down 1 times, UP before",
        ),
        (
            counts(510, [255, 255], [307, 307], status="UP", whose="worker1", down=2),
            "server on worker1 was not in the balancer all the time: found down 2 times",
        ),
        (
            counts(510, [255, 255], [307, 307], status="DOWN"),
            "worker2 was not in the balancer .* UP before and DOWN after",
        ),
        (counts(510, [255, 255], [307, 308]), "the server on worker2 counted 301 requests"),
        ("{}", "the counts of the farm cannot be read"),
    ],
    ids=["asked", "passed", "lost", "lost first", "away", "served", "unreadable"],
)
def test_counts_that_differ_are_refused(after: str, words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(run(after=after))


FORMER = json.dumps({"down_unix": 500.0, "up_unix": 502.0, "answers_unix": 502.1})
"""Of a run before this one."""


def test_a_fault_is_told_with_its_failures_and_its_end() -> None:
    figures = prove(faulted()).figures

    assert figures["timed_requests"] == 100.0  # what energy and price are divided by
    assert figures["saturation_failed_requests"] == 4.0
    assert figures["saturation_server_away_seconds"] == pytest.approx(1.1)
    # The last failure was in the second tenth of a second after 1000.
    assert figures["load_50_percent_recovery_seconds"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("kind", "rate", "hint"),
    [("timeout", 90.0, "has become slower"), ("timeout", 0.0, "logs"), ("status", 90.0, "logs")],
)
def test_a_farm_that_became_slower_is_told_from_one_that_fails(
    kind: str, rate: float, hint: str
) -> None:
    row = result(load_name(90), good=98, **{kind: 2}) | {"rate": rate}
    with pytest.raises(VerificationError, match="load 90 percent: 2 of 100") as caught:
        prove(run(results={**run().results, load_name(90): json.dumps(row)}))
    assert hint in caught.value.hint


def test_times_of_a_fault_are_those_of_the_client() -> None:
    times = json.dumps({"down_unix": 1099.0, "up_unix": 1100.0, "answers_unix": 1100.1})
    names = faulted().fault_texts
    ahead = faulted(fault_texts=dict.fromkeys(names, times), fault_ahead_seconds=100.0)

    assert prove(ahead).figures == pytest.approx(prove(faulted()).figures)


def test_a_load_that_fell_behind_is_told() -> None:
    assert prove(run()).remarks == ()
    (remark,) = prove(run(results=changed(load_name(90), rate=150.0))).remarks
    assert remark.startswith("load 90 percent: only 67 % of the rate that was asked for")
    # Requests are due evenly, so that chance explains nothing.
    (remark,) = prove(run(results=changed(load_name(90), rate=112.0))).remarks
    assert remark.startswith("load 90 percent: only 89 % of the rate that was asked for")
    assert prove(run(results=changed(load_name(90), rate=105.0))).remarks == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"after": counts(218, [130, 85], [132, 3])}, "never noticed that the server on worker2"),
        (
            {"after": counts(218, [130, 85], [132, 3], down=2, status="DOWN")},
            "has not taken the server on worker2 back: DOWN",
        ),
        ({"after": counts(218, [130, 85], [133, 3], down=2)}, "the server on worker1 counted"),
        (
            {"after": counts(218, [130, 85], [132, 3], down=1, whose="worker1")},
            "the server on worker1 was not in the balancer all the time",
        ),
        (
            {"fault_texts": dict.fromkeys(faulted().fault_texts, FORMER)},
            r"saturation: the fault came -500.0 s after the phase began, which took 1.0 s",
        ),
        ({"fault_texts": {"saturation": "", load_name(50): ""}}, "was over before the fault"),
        (  # what kept it from happening comes before what that led to
            {
                "fault_texts": {"saturation": json.dumps({"error": "no such device"})},
                "after": counts(218, [130, 85], [132, 3]),
            },
            "the fault failed: no such device",
        ),
    ],
    ids=["unnoticed", "away", "counts of the other", "the other", "former", "too short", "failed"],
)
def test_a_fault_that_did_not_pass_as_it_must_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(VerificationError, match=words):
        prove(faulted(**changes))


def test_a_wrong_body_is_refused_in_a_fault_too() -> None:
    bad = {**faulted().results, "saturation": json.dumps(result("saturation", good=99, body=1))}
    with pytest.raises(VerificationError, match="bodies are not the page"):
        prove(faulted(results=bad))
