"""TCP latency by payload: time one way of a message of 100 to 10,000 bytes, by our own program.

A message goes to the other node, which answers with one of the same size once all of it is there;
half of the round trip is the time one way. Nagle's algorithm is off. The same is done over loopback
on the first node: what it takes there, Python and the kernel take everywhere.

Source: Gamess and Hernandez 2022, section IV.J and Fig. 24. Their program is not published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from boardcluster.errors import ProbeOutputError, UsageError
from boardcluster.probes.background import free_port, serving
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.probes.node import ask_program, program_command
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["PROBE", "Latency", "LatencyPlan", "measure", "parse_latencies"]

_PROGRAM = "tcp_latency"
_PORT = 5301
_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPlan:
    """What is sent."""

    sizes_bytes: tuple[int, ...]
    """Payloads."""
    samples: int
    """Round trips of each, if they fit into the time."""
    warm_up: int
    """Round trips before them, which are not counted."""
    most_seconds: float
    """Time for each size."""


_PLANS = {
    ProbeMode.QUICK: LatencyPlan(
        sizes_bytes=(100, 500, 1000, 2000, 5000, 10_000), samples=500, warm_up=50, most_seconds=1.0
    ),
    ProbeMode.PAPER: LatencyPlan(
        sizes_bytes=(100, 500, *range(1000, 10_001, 1000)),
        samples=5000,
        warm_up=500,
        most_seconds=30.0,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Time one way of one payload."""

    size_bytes: int
    """The payload."""
    samples: int
    """Round trips that were timed."""
    median_seconds: float
    """Median."""
    mean_seconds: float
    """Arithmetic mean, as in the paper."""
    p99_seconds: float
    """99th percentile, by nearest rank."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def parse_latencies(answer: Any, plan: LatencyPlan) -> tuple[Latency, ...]:
    """Read the answer of the program: round trips in nanoseconds by size.

    Raises:
        ProbeOutputError: sizes or samples are missing, or are no such numbers.
    """
    if not isinstance(answer, list) or not all(
        isinstance(row, list) and len(row) == 2 and isinstance(row[1], list) for row in answer
    ):
        raise ProbeOutputError(f"tcp_latency.py answered {str(answer)[:80]!r}")
    if [row[0] for row in answer] != list(plan.sizes_bytes):
        raise ProbeOutputError(
            f"tcp_latency.py answered for the sizes {[row[0] for row in answer]!r}, asked for "
            f"{list(plan.sizes_bytes)!r}"
        )
    return tuple(_latency(size_bytes, rounds, plan) for size_bytes, rounds in answer)


def _latency(size_bytes: int, rounds: Sequence[Any], plan: LatencyPlan) -> Latency:
    if not 1 <= len(rounds) <= plan.samples or not all(_whole(value) for value in rounds):
        wrong = [value for value in rounds if not _whole(value)][:3]
        raise ProbeOutputError(
            f"tcp_latency.py gave {len(rounds)} round trips of {size_bytes} bytes, at most "
            f"{plan.samples} were asked for; not nanoseconds: {wrong}"
        )
    one_way_seconds = sorted(value / 2e9 for value in rounds)
    return Latency(
        size_bytes=size_bytes,
        samples=len(rounds),
        median_seconds=median(one_way_seconds),
        mean_seconds=fmean(one_way_seconds),
        p99_seconds=one_way_seconds[math.ceil(0.99 * len(rounds)) - 1],
    )


def _between(client: Site, server: Site, address: str, plan: LatencyPlan) -> tuple[Latency, ...]:
    longest_seconds = math.ceil(
        len(plan.sizes_bytes) * (plan.most_seconds + 1) + 2 * _PATIENCE_SECONDS
    )
    port = free_port(server.remote, _PORT)
    at = {"address": address, "port": port, "longest_seconds": longest_seconds}
    with serving(
        server.remote,
        program_command(_PROGRAM, {"do": "serve", **at}),
        port=port,
        log=f"{server.folder}/tcp-latency.log",
        longest_seconds=longest_seconds,
    ):
        request = {
            "do": "measure",
            **at,
            "sizes_bytes": list(plan.sizes_bytes),
            "samples": plan.samples,
            "warm_up": plan.warm_up,
            "most_seconds": plan.most_seconds,
        }
        answer = ask_program(
            client.remote, _PROGRAM, request, timeout_seconds=longest_seconds + _PATIENCE_SECONDS
        )
    return parse_latencies(answer, plan)


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Time round trips to the other node and over loopback.

    Raises:
        AddressError: no port is free.
        UsageError: there is no peer.
    """
    if site.peer is None:
        raise UsageError(
            "tcp-latency needs two nodes", hint="run it on a cluster of two nodes or more"
        )
    plan = _PLANS[site.mode]
    paths = {"network": (site.peer, site.peer.address), "loopback": (site, _LOOPBACK)}
    figures: list[ProbeFigure] = []
    for path, (server, address) in paths.items():
        site.tell(f"TCP latency over {path}")
        for latency in _between(site, server, address, plan):
            conditions = {"payload_bytes": str(latency.size_bytes), "path": path}
            values = {
                "tcp_latency_median_seconds": latency.median_seconds,
                "tcp_latency_mean_seconds": latency.mean_seconds,
                "tcp_latency_p99_seconds": latency.p99_seconds,
                "tcp_latency_samples": float(latency.samples),
            }
            figures += figures_from(values, conditions)
    return tuple(figures)


PROBE = Probe(
    name="tcp-latency",
    area="network",
    summary="TCP latency between two nodes by payload, 100 bytes to 10 KB",
    matches=("Gamess and Hernandez 2022, Fig. 24",),
    tools=(NodeTool(program="python3", package="python3"),),
    measure=measure,
    pair=True,
    quick_seconds=3.0,
    paper_seconds=60.0,
)
