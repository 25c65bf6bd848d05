"""NetPIPE between two nodes: figures of its real output, and what is run where.

The output files are those of the netpipe workload's tests, made by NPtcp and NPopenmpi 3.7.2.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.errors import ProbeOutputError, RemoteError, RemoteTimeoutError, UsageError
from boardcluster.probes import netpipe
from boardcluster.probes.base import Site
from boardcluster.probes.netpipe import PROBE, figures_of, measure, smallest_subnet
from boardcluster.probes.tools import tool_versions
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.gate import Completed
from boardcluster.remote.local import LocalRemote
from boardcluster.services.mpi import MPI_VARIABLE
from boardcluster.services.netpipe import parse_curve
from boardcluster.units import MIB

OUTPUTS = Path(__file__).parents[1] / "workloads" / "netpipe"
TCP = (OUTPUTS / "tcp.out").read_text()
MPI = (OUTPUTS / "mpi.out").read_text()
LARGEST = 4 * MIB
DEAD = {"alive": False, "resident_bytes": 0, "proportional_bytes": 0}


def found(figures: list[ProbeFigure], name: str) -> dict[str, float]:
    """Values by size of the message; empty for the whole curve."""
    return {
        row.conditions.get("message_bytes", ""): row.value for row in figures if row.name == name
    }


def test_figures_of_a_real_curve() -> None:
    curve = parse_curve(TCP, largest_bytes=LARGEST, pair="a-b")
    figures = figures_of(curve, "tcp")
    assert found(figures, "netpipe_latency_seconds") == {"": curve.points[0].seconds}
    rates = found(figures, "netpipe_bits_per_second")
    assert list(rates) == [str(1 << power) for power in range(23)]
    assert found(figures, "netpipe_largest_bits_per_second")[""] == rates[str(LARGEST)]
    assert found(figures, "netpipe_peak_bits_per_second")[""] >= max(rates.values())
    times = found(figures, "netpipe_one_way_seconds")
    for size, rate in rates.items():
        assert rate == pytest.approx(int(size) * 8 / times[size], rel=0.01)
    assert {row.conditions["transport"] for row in figures} == {"tcp"}


@pytest.mark.parametrize(
    ("first", "second", "subnet"),
    [
        ("198.18.0.2", "198.18.0.3", "198.18.0.2/31"),
        ("192.168.1.10", "192.168.1.200", "192.168.1.0/24"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1/32"),
        ("fd00::1", "fd00::2", "fd00::/126"),
    ],
)
def test_the_smallest_subnet_of_two_addresses(first: str, second: str, subnet: str) -> None:
    assert smallest_subnet(first, second) == subnet


@pytest.mark.parametrize("second", ["", "worker2", "fd00::1"])
def test_addresses_that_share_no_subnet_are_refused(second: str) -> None:
    with pytest.raises(UsageError, match="netpipe: "):
        smallest_subnet("198.18.0.2", second)


# Runs


def pair(mode: ProbeMode = ProbeMode.QUICK) -> Site:
    peer = Answering({}, "node2")

    def listening(_: tuple[str, ...], request: dict[str, Any]) -> Completed:
        return done([5002] if len(request["ports"]) == 1 else [])

    peer.answers = {
        "listening": listening,
        "processes": lambda *_: done([DEAD]),
        "end": lambda *_: done({"killed": 0}),
        "tail": lambda *_: done("NPtcp: bind: Address already in use\n"),
        "mkdir": lambda *_: done(),
        "rm": lambda *_: done(),
        "end_marked": lambda *_: done({"ended": 0}),
    }

    def cat(words: tuple[str, ...], _: dict[str, Any]) -> Completed:
        if words[-1].endswith(".out"):
            return done(TCP if "tcp" in words[-1] else MPI)
        return done(status=1)

    remote = Answering(
        {
            "NPtcp": lambda *_: done(),
            "timeout": lambda *_: done(),
            "cat": cat,
            "mkdir": lambda *_: done(),
            "rm": lambda *_: done(),
            "end_marked": lambda *_: done({"ended": 0}),
        }
    )
    other = make_site(peer, folder="/data/other", address="198.18.0.3", mode=mode)
    return make_site(remote, peer=other, mode=mode)


@pytest.fixture(autouse=True)
def recorded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings go up to 4 MiB."""
    for mode in ProbeMode:
        monkeypatch.setitem(netpipe._LARGEST_BYTES, mode, LARGEST)


def remotes(site: Site) -> tuple[Answering, Answering]:
    assert site.peer is not None
    assert isinstance(site.remote, Answering)
    assert isinstance(site.peer.remote, Answering)
    return site.remote, site.peer.remote


def test_quick_mode_is_tcp_alone_with_the_same_options_on_both_ends() -> None:
    site = pair()
    figures = measure(site)
    client, server = remotes(site)
    options = ("-p", "0", "-u", str(LARGEST), "-n", "7", "-P", "5002")
    assert server.started == [("timeout", "180", "NPtcp", *options)]
    output = "/data/probe/netpipe-tcp.out"
    assert client.ran[0] == ("NPtcp", "-h", "198.18.0.3", *options, "-o", output)
    assert {row.conditions["transport"] for row in figures} == {"tcp"}
    assert server.ended == [[101, 7]]


def test_paper_mode_adds_mpi_within_the_nodes_subnet() -> None:
    site = pair(ProbeMode.PAPER)
    figures = measure(site)
    client, _ = remotes(site)
    index, words = next(
        (index, words) for index, words in enumerate(client.ran) if "mpirun" in words
    )
    assert words[0] == "timeout"
    assert words[words.index("btl_tcp_if_include") + 1] == "198.18.0.2/31"
    assert words[words.index("--host") + 1] == "node1:1,node2:1"
    assert "-n" not in words[words.index("NPopenmpi") :], "NetPIPE chooses its repeats"
    assert client.environments[index][MPI_VARIABLE]
    assert {row.conditions["transport"] for row in figures} == {"tcp", "mpi"}


def test_both_programs_may_run_as_much_longer_as_nodes_are_slower() -> None:
    site = pair(ProbeMode.PAPER)
    assert site.peer is not None
    measure(replace(site, dilation=8.0, peer=replace(site.peer, dilation=8.0)))
    client, server = remotes(site)
    assert server.started[0][:2] == ("timeout", str(8 * 960))
    assert next(words for words in client.ran if "mpirun" in words)[1] == str(8 * 960)


def test_mpi_leaves_nothing_on_either_node() -> None:
    site = pair(ProbeMode.PAPER)
    measure(site)
    for remote in remotes(site):
        made = next(words for words in remote.ran if words[0] == "mkdir")[2:]
        assert ("end_marked",) in remote.ran
        assert ("rm", "-rf", *made) in remote.ran


def test_output_that_cannot_be_right_is_refused() -> None:
    site = pair()
    client, _ = remotes(site)
    client.answers["cat"] = lambda *_: done(TCP[: len(TCP) // 2])
    with pytest.raises(ProbeOutputError, match="tcp node1-node2: ") as caught:
        measure(site)
    assert "attempt" not in caught.value.hint


@pytest.mark.parametrize("text", ["", "NPtcp: write: Broken pipe\n", TCP.replace(".", ",")])
def test_other_output_is_refused(text: str) -> None:
    site = pair()
    remotes(site)[0].answers["cat"] = lambda *_: done(text)
    with pytest.raises(ProbeOutputError, match="tcp node1-node2: "):
        measure(site)


def test_a_transmitter_that_hangs_leaves_no_receiver() -> None:
    site = pair()
    client, server = remotes(site)
    client.hanging = "NPtcp"
    with pytest.raises(RemoteTimeoutError):
        measure(site)
    assert server.ended == [[101, 7]]


def test_a_receiver_that_ends_at_once_is_named_with_its_last_words() -> None:
    site = pair()
    _, server = remotes(site)
    server.answers["listening"] = lambda *_: done([])
    with pytest.raises(RemoteError, match=r"NPtcp ended too early: .*Address already in use"):
        measure(site)


def test_one_node_is_not_enough() -> None:
    with pytest.raises(UsageError, match="netpipe needs two nodes"):
        measure(replace(pair(), peer=None))
    assert PROBE.pair


def test_netpipe_is_not_run_to_ask_for_a_version_that_it_has_not() -> None:
    """Its MPI program would leave Open MPI's folder in the node's temporary folder."""
    ran: list[str] = []

    class Noting(LocalRemote):
        def run(self, argv: Any, **how: Any) -> Completed:
            ran.append(argv[0])
            return super().run(argv, **how)

    said = tool_versions(Noting(), PROBE.tools)
    assert ran == ["mpirun"]
    assert said["NPtcp"] == "NPtcp: version unknown"
    assert said["NPopenmpi"] == "NPopenmpi: version unknown"
