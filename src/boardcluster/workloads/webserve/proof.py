"""Whether what the farm served was right, and what it came to. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.errors import MeasuringLimitError, VerificationError
from boardcluster.records import PlannedFault, Verification
from boardcluster.services.http.result import (
    FarmCounts,
    FaultTimes,
    LoadResult,
    behind_words,
    check_faults,
    check_gone,
    percentile_microseconds,
    read_counts,
    read_fault,
    read_result,
)
from boardcluster.workloads.base import Proof
from boardcluster.workloads.webserve.pages import Page, expected_bytes

__all__ = ["SHARES", "FarmRun", "load_name", "prove"]

SHARES = (25, 50, 75, 90)
"""Percent of what the farm serves at most, at which latency is measured."""

_BUSY_SHARE = 0.9
"""A client that takes more of a core than this may be what holds the rate back."""

_NULL_LEAD = 1.25
"""So many times what the farm serves, the client must make of a server that does nothing."""

_SKEW_SECONDS = 2.0
"""So much before or after its phase a fault may seem to come: clocks are compared after the run."""

_PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
_HINT = "see the attempt's folder"
_LONGER = "set a larger webserve.requests and webserve.seconds, or a smaller webserve.down_seconds"
_METHOD = (
    "the client compared every byte of every body with the page that was asked for; the bytes of "
    "each phase are those of the pages that its seed picks; balancer and servers counted the "
    "requests that the client made"
)
_METHOD_FAULT = (
    "the client compared every byte of every body with the page that was asked for; the balancer "
    "and the servers that were not taken down counted the requests that the client made; the "
    "balancer noticed the fault, and has the server again"
)


def load_name(share: int) -> str:
    """Return the name of the phase at a percent of what the farm serves at most."""
    return f"load {share} percent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmRun:
    """What a job left behind."""

    pages: Sequence[Page]
    """The pages."""
    digest: str
    """Of the pages and the plan."""
    workers: Sequence[str]
    """Names of the workers."""
    fault: PlannedFault
    """What happened to the last of them."""
    fault_texts: Mapping[str, str]
    """By phase, what the fault wrote down; empty texts where it never ended."""
    fault_ahead_seconds: float
    """How far the clock that it wrote down is ahead of the client's."""
    results: Mapping[str, str]
    """By phase, what the client wrote."""
    requests: Mapping[str, int]
    """By phase that is a closed loop, how many requests it was to make."""
    seeds: Mapping[str, int]
    """By phase, where the sequence of its requests starts."""
    before: str
    """What balancer and servers had counted before."""
    after: str
    """And after."""


def prove(run: FarmRun) -> Proof:
    """Hold everything against everything else.

    Raises:
        VerificationError: a body is wrong, counts differ, or a request failed without a fault; says
            which and where.
        MeasuringLimitError: the client may have held the farm back.
    """
    # Before all that a fault has led to which failed, or had not gone when the load was over.
    check_faults(run.fault_texts)
    for name, text in run.fault_texts.items():
        check_gone(name, text, hint=_LONGER)
    results = {name: read_result(text, phase=name) for name, text in run.results.items()}
    for name, result in results.items():
        _check_bodies(run, name, result)
    before, after = read_counts(run.before), read_counts(run.after)
    _check_counts(run, results, before, after)
    _check_stayed(run, before, after)
    _check_client(results)
    figures = _figures(results)
    if run.fault is not PlannedFault.NONE:
        _check_noticed(run, before, after)
        figures |= _fault_figures(run, results)
    facts = [
        f"{name}: {result.good} bodies, {result.body_bytes} bytes\n"
        for name, result in results.items()
    ]
    # Each fact was held against what must be, so the two digests are of the same text.
    digest = hashlib.sha256("".join([run.digest, *facts]).encode()).hexdigest()
    return Proof(
        verification=Verification(
            method=_METHOD if run.fault is PlannedFault.NONE else _METHOD_FAULT,
            expected_sha256=digest,
            actual_sha256=digest,
            records=sum(result.good for result in results.values()),
        ),
        output_bytes=results["saturation"].body_bytes,
        figures=figures,
        remarks=behind_words(
            {
                name: (results[name].good, results[name].rate * results[name].seconds)
                for name in map(load_name, SHARES)
                if name in results and name not in run.fault_texts
            }
        ),
    )


def _check_bodies(run: FarmRun, name: str, result: LoadResult) -> None:
    if result.errors["body"]:
        raise VerificationError(
            f"{name}: {result.errors['body']} bodies are not the page that was asked for; first "
            f"{result.first_wrong}",
            hint=_HINT,
        )
    if result.failed and name not in run.fault_texts:
        kinds = ", ".join(f"{count} {kind}" for kind, count in result.errors.items() if count)
        slower = bool(result.rate) and result.errors["timeout"] == result.failed
        raise VerificationError(
            f"{name}: {result.failed} of {result.requests} requests failed ({kinds}); first "
            f"{result.first_error}",
            hint="the farm has become slower since its rate was measured: has the machine other "
            "work?"
            if slower
            else "see the servers' logs under the cluster's folder, nodes/*/logs/http-*.log",
        )
    asked = run.requests.get(name, result.requests)
    if result.requests != asked:
        raise VerificationError(
            f"{name}: the client made {result.requests} requests instead of {asked}", hint=_HINT
        )
    expected = expected_bytes(run.pages, seed=run.seeds[name], requests=result.requests)
    if result.body_bytes > expected or (not result.failed and result.body_bytes != expected):
        raise VerificationError(
            f"{name}: {result.requests} requests brought {result.body_bytes} bytes, and the pages "
            f"that they are for have {expected}",
            hint=_HINT,
        )


def _balanced(results: Mapping[str, LoadResult]) -> list[LoadResult]:
    """Return what went through the balancer between the two counts."""
    names = ["saturation", *map(load_name, SHARES)]
    return [results[name] for name in names if name in results]


def _check_counts(
    run: FarmRun, results: Mapping[str, LoadResult], before: FarmCounts, after: FarmCounts
) -> None:
    through = _balanced(results)
    sent, asked = sum(each.sent for each in through), after.asked - before.asked
    if sent != asked:
        raise VerificationError(
            f"the client made {sent} requests, and the balancer counted {asked}", hint=_HINT
        )
    good = sum(each.good for each in through)
    failed = sum(each.failed for each in through)
    passed = {name: after.passed[name] - before.passed[name] for name in run.workers}
    if not good <= sum(passed.values()) <= good + failed:
        raise VerificationError(
            f"the client got {good} right answers, and the balancer passed on "
            f"{sum(passed.values())}",
            hint=_HINT,
        )
    direct = results["direct"].by_target if "direct" in results else (0,) * len(run.workers)
    for number, name in enumerate(run.workers):
        if run.fault is not PlannedFault.NONE and name == run.workers[-1]:
            continue  # its counter began again, or it answered what never arrived
        if before.served[name] < 0 or after.served[name] < 0:
            raise VerificationError(
                f"the server on {name} did not answer when it was asked what it had counted",
                hint="see its log under the cluster's folder, nodes/*/logs/http-*.log",
            )
        # The second count has counted itself.
        served = after.served[name] - before.served[name] - 1
        if served != passed[name] + direct[number]:
            raise VerificationError(
                f"the server on {name} counted {served} requests, and the balancer and the client "
                f"got {passed[name] + direct[number]} answers from it",
                hint=_HINT,
            )


def _check_client(results: Mapping[str, LoadResult]) -> None:
    """Refuse a result of the client instead of the farm's."""
    most, null = results["saturation"], results["null server"]
    if null.requests_per_second < _NULL_LEAD * most.requests_per_second:
        raise MeasuringLimitError(
            f"the client may be what limits the farm: it makes {null.requests_per_second:.0f} "
            f"requests per second of a server that does nothing, and the farm serves "
            f"{most.requests_per_second:.0f}",
            hint="use a faster master, or more costly pages (webserve.computed_percent, "
            "webserve.rounds)",
        )
    for name in ("saturation", *map(load_name, SHARES)):
        if name in results and results[name].cpu_share > _BUSY_SHARE:
            raise MeasuringLimitError(
                f"{name}: the client took {results[name].cpu_share:.2f} of a core, so the rate may "
                "be the most that it can make",
                hint="use a faster master, or more costly pages (webserve.computed_percent, "
                "webserve.rounds)",
            )


def _check_stayed(run: FarmRun, before: FarmCounts, after: FarmCounts) -> None:
    """Refuse a measurement in which the balancer was without a server that nobody took away."""
    lost = run.fault is not PlannedFault.NONE
    for name in run.workers[:-1] if lost else run.workers:
        times = after.noticed[name] - before.noticed[name]
        states = (before.status[name], after.status[name])
        if times or not all(state.startswith("UP") for state in states):
            raise VerificationError(
                f"the server on {name} was not in the balancer all the time: found down {times} "
                f"times, {states[0]} before and {states[1]} after",
                hint="see the servers' logs under the cluster's folder, nodes/*/logs/http-*.log",
            )


def _check_noticed(run: FarmRun, before: FarmCounts, after: FarmCounts) -> None:
    name = run.workers[-1]
    if after.noticed[name] == before.noticed[name]:
        raise VerificationError(
            f"the balancer never noticed that the server on {name} was away",
            hint="set a larger webserve.down_seconds",
        )
    if not after.status[name].startswith("UP"):
        raise VerificationError(
            f"the balancer has not taken the server on {name} back: {after.status[name]}",
            hint="set a larger webserve.seconds; see the server's log on that node",
        )


def _fault_figures(run: FarmRun, results: Mapping[str, LoadResult]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, text in run.fault_texts.items():
        times, result = read_fault(text, ahead_seconds=run.fault_ahead_seconds), results[name]
        late = times.down_unix - result.began_unix
        if not -_SKEW_SECONDS <= late <= result.seconds + _SKEW_SECONDS:
            raise VerificationError(
                f"{name}: the fault came {late:.1f} s after the phase began, which took "
                f"{result.seconds:.1f} s",
                hint="set the clocks of the nodes; `boardcluster doctor` compares them",
            )
        figures |= {
            f"{name}_failed_requests".replace(" ", "_"): float(result.failed),
            f"{name}_server_away_seconds".replace(" ", "_"): times.answers_unix - times.down_unix,
            f"{name}_recovery_seconds".replace(" ", "_"): _recovery_seconds(times, result),
        }
    return figures


def _recovery_seconds(times: FaultTimes, result: LoadResult) -> float:
    """Return the time from the loss until nothing fails and the server answers again."""
    last = result.last_failure_unix
    return max(times.answers_unix, last or 0.0) - times.down_unix


def _figures(results: Mapping[str, LoadResult]) -> dict[str, float]:
    most = results["saturation"]
    figures = {
        "requests_per_second": most.requests_per_second,
        "timed_requests": float(most.good),
    }
    if "direct" in results:
        direct = results["direct"].requests_per_second
        figures["direct_requests_per_second"] = direct
        figures["balancer_overhead_percent"] = 100 * (1 - most.requests_per_second / direct)
    for share in SHARES:
        if (result := results.get(load_name(share))) is None:
            continue
        figures[f"load_{share}_requests_per_second"] = result.requests_per_second
        for name, part in _PERCENTILES.items():
            value = percentile_microseconds(result.latency, part)
            figures[f"load_{share}_latency_{name}_microseconds"] = value
        late = percentile_microseconds(result.lag, 0.99)
        figures[f"load_{share}_client_lag_p99_microseconds"] = late
    figures["failed_requests"] = float(sum(each.failed for each in _balanced(results)))
    figures["client_cpu_percent"] = 100 * most.cpu_share
    figures["null_requests_per_second"] = results["null server"].requests_per_second
    return figures
