"""iperf3: TCP throughput between two nodes, in both directions.

The node is the client and its peer the server; the run with the roles changed is that of the other
node. Sent by the client is iperf3's default, sent by the server its ``--reverse``.

Source: iperf3 3.12, iperf3(1); Baun 2016, section "Network performance"; Lee, Oh and Park 2021,
Table 9; Gamess and Hernandez 2022, Fig. 23 and Table III; Lee and Park 2026, Table 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.errors import ProbeOutputError, UsageError
from boardcluster.probes.background import free_port, serving
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.probes.document import json_document, member, positive
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.gate import tail_text

__all__ = ["PROBE", "Flow", "measure", "parse_flow"]

_TOOL = "iperf3"
_PORT = 5201
_SECONDS = {ProbeMode.QUICK: 3, ProbeMode.PAPER: 10}
_REPETITIONS = {ProbeMode.QUICK: 1, ProbeMode.PAPER: 5}
_PATIENCE_SECONDS = 20
_RATE_ERROR = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One test in one direction."""

    bits_per_second: float
    """Payload that arrived at the receiver."""
    retransmits: int
    """Segments that the sender's kernel sent again."""


def parse_flow(text: str, *, reverse: bool, seconds: int) -> Flow:
    """Read what ``iperf3 -J`` printed on the client.

    It ends with status 0 even if it reached nobody, so its own words decide.

    Raises:
        ProbeOutputError: it is not JSON of such a test, iperf3 names an error, or its numbers
            contradict each other.
    """
    row = json_document(text, _TOOL)
    if "error" in row:
        raise ProbeOutputError(
            f"iperf3 failed: {str(row['error'])[:200]}",
            hint="check that the nodes reach each other's TCP ports",
        )
    asked = {"protocol": "TCP", "num_streams": 1, "reverse": int(reverse), "duration": seconds}
    for name, wanted in asked.items():
        found = member(row, "start", "test_start", name, tool=_TOOL)
        if found != wanted:
            raise ProbeOutputError(f"iperf3 ran with {name}={found!r}, asked for {wanted!r}")
    rate = positive(row, "end", "sum_received", "bits_per_second", tool=_TOOL)
    moved_bytes = positive(row, "end", "sum_received", "bytes", tool=_TOOL)
    took_seconds = positive(row, "end", "sum_received", "seconds", tool=_TOOL)
    follows = moved_bytes * 8 / took_seconds
    if abs(follows - rate) > _RATE_ERROR * follows:
        raise ProbeOutputError(
            f"iperf3's {moved_bytes:.0f} bytes in {took_seconds:.3f} s are not {rate:.0f} bit/s"
        )
    again = member(row, "end", "sum_sent", "retransmits", tool=_TOOL)
    if not isinstance(again, int) or isinstance(again, bool) or again < 0:
        raise ProbeOutputError(f"iperf3's retransmits are {again!r}, not a count")
    return Flow(bits_per_second=rate, retransmits=again)


def _once(client: Site, server: Site, *, reverse: bool, seconds: int) -> Flow:
    """Run one test; the server serves this one client and ends."""
    port = free_port(server.remote, _PORT)
    at = ("-B", server.address, "-p", str(port))
    longest_seconds = seconds + 2 * _PATIENCE_SECONDS
    with serving(
        server.remote,
        ["iperf3", "-s", "-1", *at],
        port=port,
        log=f"{server.folder}/iperf3.log",
        longest_seconds=longest_seconds,
    ):
        argv = [
            *("iperf3", "-c", server.address, "-p", str(port), "-B", client.address),
            *("-t", str(seconds), "-J", *(("-R",) if reverse else ())),
        ]
        timeout_seconds = seconds + _PATIENCE_SECONDS
        done = client.remote.run(argv, timeout_seconds=timeout_seconds, check=False)
    if not done.text.strip():
        raise ProbeOutputError(
            f"{client.node}: iperf3 ended with status {done.returncode} and printed nothing: "
            f"{tail_text(done.stderr, lines=3)}"
        )
    return parse_flow(done.text, reverse=reverse, seconds=seconds)


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Send in both directions, as often as the mode asks for.

    Raises:
        AddressError: no port is free.
        UsageError: there is no peer.
    """
    if site.peer is None:
        raise UsageError("iperf3 needs two nodes", hint="run it on a cluster of two nodes or more")
    seconds = _SECONDS[site.mode]
    figures: list[ProbeFigure] = []
    for repetition in range(1, _REPETITIONS[site.mode] + 1):
        for sender in ("client", "server"):
            site.tell(f"TCP throughput with {site.peer.node}, the {sender} sends")
            flow = _once(site, site.peer, reverse=sender == "server", seconds=seconds)
            conditions = {"sender": sender, "repetition": str(repetition)}
            values = {
                "iperf3_bits_per_second": flow.bits_per_second,
                "iperf3_retransmits": float(flow.retransmits),
            }
            figures += figures_from(values, conditions)
    return tuple(figures)


PROBE = Probe(
    name="iperf3",
    area="network",
    summary="TCP throughput between two nodes, each way",
    matches=(
        'Baun 2016, section "Network performance"',
        "Lee, Oh and Park 2021, Table 9",
        "Gamess and Hernandez 2022, Fig. 23 and Table III",
        "Lee and Park 2026, Table 5",
    ),
    tools=(NodeTool(program="iperf3", package="iperf3"),),
    measure=measure,
    pair=True,
    quick_seconds=8.0,
    paper_seconds=108.0,
)
