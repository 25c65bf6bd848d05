"""iperf3: its real JSON, JSON that cannot be right, and the server that always ends.

The recordings are those of iperf3 3.12 between two namespaces; in ``server-lost`` the server was
killed in mid-test, in ``refused`` there was none. All four ended with status 0.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site, recording

from boardcluster.errors import (
    AddressError,
    ProbeOutputError,
    RemoteError,
    RemoteTimeoutError,
    UsageError,
)
from boardcluster.probes.base import Site
from boardcluster.probes.iperf3 import PROBE, measure, parse_flow
from boardcluster.records import ProbeMode
from boardcluster.remote.gate import Completed

FORWARD = recording("iperf3-forward.json")
REVERSE = recording("iperf3-reverse.json")


def changed(*path: str, to: Any) -> str:
    document = json.loads(FORWARD)
    row = document
    for name in path[:-1]:
        row = row[name]
    row[path[-1]] = to
    return json.dumps(document)


@pytest.mark.parametrize(("text", "reverse"), [(FORWARD, False), (REVERSE, True)])
def test_reads_what_arrived(text: str, reverse: bool) -> None:
    end = json.loads(text)["end"]
    flow = parse_flow(text, reverse=reverse, seconds=3)
    assert flow.bits_per_second == end["sum_received"]["bits_per_second"] > 1e6
    assert flow.retransmits == end["sum_sent"]["retransmits"]


def test_a_warning_before_the_json_is_passed_over() -> None:
    text = "warning: this system does not seem to support IPv6 - trying IPv4\n" + FORWARD
    assert parse_flow(text, reverse=False, seconds=3).bits_per_second > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "printed no JSON"),
        ("iperf3: parameter error - bad value\n", "printed no JSON: 'iperf3: parameter"),
        (FORWARD[:900], "cannot be read in line"),
        (FORWARD.replace(".", ","), "cannot be read in line"),
        (FORWARD + FORWARD, "cannot be read in line"),
        (recording("iperf3-refused.json"), "failed: unable to connect to server"),
        (recording("iperf3-server-lost.json"), "failed: control socket has closed"),
        (REVERSE, "ran with reverse=1, asked for 0"),
        (changed("start", "test_start", "protocol", to="UDP"), "ran with protocol='UDP'"),
        (changed("start", "test_start", "duration", to=10), "ran with duration=10"),
        (changed("end", to={}), "has no end.sum_received.bits_per_second"),
        (changed("end", "sum_received", "bytes", to=-1), "is -1, not a number above 0"),
        (changed("end", "sum_received", "bytes", to=1000), "are not"),
        (changed("end", "sum_received", "bits_per_second", to=None), "is None, not a number"),
        (changed("end", "sum_sent", "retransmits", to=-1), "retransmits are -1"),
        (changed("end", "sum_sent", "retransmits", to=True), "retransmits are True"),
    ],
)
def test_refuses_what_cannot_be_right(text: str, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        parse_flow(text, reverse=False, seconds=3)


# Runs


def pair(client: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> Site:
    """Two nodes: ports are free at first, and the server listens when it was started."""

    def iperf3(words: tuple[str, ...], _: dict[str, Any]) -> Completed:
        text = REVERSE if "-R" in words else FORWARD
        return done(text.replace('"duration":\t3', f'"duration":\t{words[words.index("-t") + 1]}'))

    peer = Answering({}, "node2")

    def listening(_: tuple[str, ...], request: dict[str, Any]) -> Completed:
        running = len(peer.started) > len(peer.ended)
        return done([5201] if running and request["ports"] == [5201] else [])

    peer.answers = {
        "listening": listening,
        "processes": lambda *_: done(
            [{"alive": True, "resident_bytes": 1, "proportional_bytes": 1}]
        ),
        "end": lambda *_: done({"killed": 0}),
        "tail": lambda *_: done("its last words\n"),
        **(server or {}),
    }
    remote = Answering({"iperf3": iperf3, **(client or {})})
    other = make_site(peer, folder="/data/other", address="198.18.0.3")
    return make_site(remote, peer=other)


def remotes(site: Site) -> tuple[Answering, Answering]:
    assert site.peer is not None
    assert isinstance(site.remote, Answering)
    assert isinstance(site.peer.remote, Answering)
    return site.remote, site.peer.remote


def test_measures_each_way_once_in_quick_mode() -> None:
    site = pair()
    figures = measure(site)
    client, server = remotes(site)
    assert [(row.name, row.conditions["sender"]) for row in figures] == [
        ("iperf3_bits_per_second", "client"),
        ("iperf3_retransmits", "client"),
        ("iperf3_bits_per_second", "server"),
        ("iperf3_retransmits", "server"),
    ]
    forward = ("iperf3", "-c", "198.18.0.3", "-p", "5201", "-B", "198.18.0.2", "-t", "3", "-J")
    assert client.ran == [forward, (*forward, "-R")]
    assert len(server.started) == 2


def test_the_server_is_bound_serves_once_and_is_bounded() -> None:
    site = pair()
    measure(site)
    for words in remotes(site)[1].started:
        assert words[0] == "timeout"
        assert 10 < int(words[1]) < 120
        assert words[2:] == ("iperf3", "-s", "-1", "-B", "198.18.0.3", "-p", "5201")


def test_every_server_is_ended_by_its_id() -> None:
    site = pair()
    measure(site)
    assert remotes(site)[1].ended == [[101, 7], [102, 7]]


def test_paper_mode_repeats_ten_seconds_five_times() -> None:
    site = replace(pair(), mode=ProbeMode.PAPER)
    figures = measure(site)
    assert {row.conditions["repetition"] for row in figures} == {"1", "2", "3", "4", "5"}
    assert len(figures) == 20
    assert all(words[words.index("-t") + 1] == "10" for words in remotes(site)[0].ran)


@pytest.mark.parametrize("hanging", ["iperf3"])
def test_a_client_that_hangs_leaves_no_server(hanging: str) -> None:
    site = pair()
    client, server = remotes(site)
    client.hanging = hanging
    with pytest.raises(RemoteTimeoutError):
        measure(site)
    assert server.ended == [[101, 7]]


def test_a_server_that_ends_at_once_is_named_with_its_last_words() -> None:
    gone = {"alive": False, "resident_bytes": 0, "proportional_bytes": 0}
    site = pair(
        server={"processes": lambda *_: done([gone]), "listening": lambda *_: done([])},
    )
    with pytest.raises(RemoteError, match="node2: iperf3 ended too early: its last words"):
        measure(site)
    assert remotes(site)[1].ended == [[101, 7]]


def test_a_server_that_never_listens_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boardcluster.probes.background._LISTEN_SECONDS", 0.2)
    site = pair(server={"listening": lambda *_: done([])})
    with pytest.raises(RemoteError, match=r"does not listen on port 5201 after 0.2 s"):
        measure(site)
    assert remotes(site)[1].ended == [[101, 7]]


def test_a_taken_port_is_not_used() -> None:
    site = pair()
    _, server = remotes(site)

    def listening(_: tuple[str, ...], request: dict[str, Any]) -> Completed:
        taken = [5201] if len(request["ports"]) > 1 else request["ports"]
        return done(taken)

    server.answers["listening"] = listening
    measure(site)
    assert {words[-1] for words in server.started} == {"5202"}


def test_no_free_port_is_said() -> None:
    site = pair(server={"listening": lambda _, request: done(request["ports"])})
    with pytest.raises(AddressError, match="the ports 5201 to 5216 are all in use"):
        measure(site)
    assert remotes(site)[1].started == []


def test_a_client_that_says_nothing_is_an_error() -> None:
    site = pair(client={"iperf3": lambda *_: done(status=1, stderr="iperf3: out of memory")})
    with pytest.raises(ProbeOutputError, match=r"status 1 and printed nothing: .*out of memory"):
        measure(site)


def test_one_node_is_not_enough() -> None:
    with pytest.raises(UsageError, match="iperf3 needs two nodes"):
        measure(make_site(Answering({})))
    assert PROBE.pair
