"""The pure parts of emulated nodes; namespaces are for the integration tests."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster import emulated
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveNode, boot_id
from boardcluster.errors import AddressError, ClusterError, HostError
from boardcluster.records import ClusterSpec
from boardcluster.remote.gate import Completed

MakeSpec = Callable[..., ClusterSpec]
IDENTITY = str(uuid.uuid4())  # two runs of the tests at once must not find each other


@pytest.fixture
def marked() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        ["sleep", "60"], env={**os.environ, IDENTITY_VARIABLE: IDENTITY}
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(("user", "link"), [(0, f"bc{IDENTITY[:8]}"), (1000, "")])
def test_state_before_anything_is_started(
    user: int, link: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    state = emulated.new_state(make_spec(), identity=IDENTITY)

    assert (state.phase, state.own_user, state.host_link) == ("starting", user != 0, link)
    assert (state.identity, state.subnet) == (IDENTITY, "198.18.7.0/24")
    assert state.boot_id == boot_id()
    assert len(state.host_link) <= 15  # Linux: IFNAMSIZ


def test_a_node_is_reached_by_its_first_process(make_spec: MakeSpec) -> None:
    state = replace(emulated.new_state(make_spec(), identity=IDENTITY), own_user=True)
    node = LiveNode(name="worker1", address="198.18.7.2", pid=2**22 + 1, start_ticks=1, folder="/f")
    remote = emulated.remote_of(node, state)

    assert remote.name == "worker1"
    done = remote.run(["true"], check=False)
    assert done.argv[:4] == ("nsenter", "-t", "4194305", "-U")


def test_finds_processes_by_the_identity_in_their_environment(
    marked: "subprocess.Popen[bytes]",
) -> None:
    assert emulated.leftover_processes(IDENTITY) == [marked.pid]
    assert emulated.leftover_processes(IDENTITY[:-1]) == []


def test_destroy_ends_what_carries_the_identity_and_nothing_else(
    marked: "subprocess.Popen[bytes]", make_spec: MakeSpec
) -> None:
    state = replace(emulated.new_state(make_spec(), identity=IDENTITY), host_link="")
    with subprocess.Popen(["sleep", "60"]) as other:
        assert emulated.destroy(state) == 1
        assert marked.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()

    assert emulated.destroy(state) == 0  # safe to repeat


def test_destroy_names_what_does_not_end(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = replace(emulated.new_state(make_spec(), identity=IDENTITY), host_link="")
    monkeypatch.setattr(emulated, "leftover_processes", lambda _: [2**22 + 1])
    monkeypatch.setattr(emulated, "_SHORT_WAIT_SECONDS", 0.1)

    with pytest.raises(ClusterError, match="4194305") as caught:
        emulated.destroy(state)

    assert "kill -9" in caught.value.hint


def test_alive_means_exactly_this_process(marked: "subprocess.Popen[bytes]") -> None:
    stat = Path(f"/proc/{marked.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(stat[19])

    assert emulated.is_alive(marked.pid, ticks)
    assert not emulated.is_alive(marked.pid, ticks + 1)
    marked.kill()
    os.waitid(os.P_PID, marked.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert not emulated.is_alive(marked.pid, ticks)
    marked.wait()
    assert not emulated.is_alive(marked.pid, ticks)


def routes(*rows: dict[str, Any]) -> Callable[..., Completed]:
    def answer(argv: list[str], **_: Any) -> Completed:
        text = json.dumps(rows) if argv[:3] == ["ip", "-j", "-4"] else ""
        return Completed(
            argv=tuple(argv), returncode=0, stdout=text.encode(), stderr=b"", duration_seconds=0
        )

    return answer


@pytest.mark.parametrize("taken", ["198.18.7.0/24", "198.18.0.0/15", "198.18.7.9"])
def test_a_subnet_in_use_is_refused(
    taken: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    rows = ({"dst": "default", "dev": "eth0"}, {"dst": taken, "dev": "bcother"})
    monkeypatch.setattr(emulated, "run_program", routes(*rows))

    with pytest.raises(AddressError, match=r"198\.18\.7\.0/24 is in use.*bcother") as caught:
        emulated.check_host(make_spec())

    assert "boardcluster down" in caught.value.hint
    assert "198.18.0.0/15" in caught.value.hint


def test_other_networks_and_the_default_route_are_no_hindrance(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    rows = ({"dst": "default", "dev": "eth0"}, {"dst": "198.18.6.0/24", "dev": "bcother"})
    monkeypatch.setattr(emulated, "run_program", routes(*rows))

    emulated.check_host(make_spec())


@pytest.mark.parametrize(("user", "hint"), [(0, "CAP_SYS_ADMIN"), (1000, "user")])
def test_a_machine_without_namespaces_is_refused_with_the_kernels_words(
    user: int, hint: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[str]] = []

    def refuse(argv: list[str], **_: Any) -> Completed:
        tried.append(argv)
        return Completed(
            argv=(),
            returncode=1,
            stdout=b"",
            stderr=b"unshare failed: Operation not permitted\n",
            duration_seconds=0,
        )

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(emulated, "run_program", refuse)

    with pytest.raises(HostError, match="unshare failed: Operation not permitted") as caught:
        emulated.check_host(make_spec())

    assert hint in caught.value.hint
    assert ("--map-root-user" in tried[0]) == (user != 0)


def test_every_node_knows_every_name(make_spec: MakeSpec, tmp_path: Path) -> None:
    hosts = emulated._write_hosts(make_spec(workers=2), tmp_path)

    rows = [line.split() for line in hosts.read_text().splitlines()]
    assert rows[0] == ["127.0.0.1", "localhost"]
    names = [name for _, name in rows[1:]]
    assert names == ["master", "worker1", "worker2"]
    addresses = {address for address, _ in rows[1:]}
    assert len(addresses) == 3
    assert all(address.startswith("198.18.7.") for address in addresses)
    assert "dns" not in (tmp_path / "nsswitch.conf").read_text()


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([{"kind": "tbf", "options": {"rate": 125_000_000}}], True),
        ([{"kind": "tbf", "options": {"rate": 12_500_000}}], False),
        ([{"kind": "noqueue", "options": {}}], False),
        ([], False),
    ],
)
def test_a_link_rate_is_read_back(
    rows: list[dict[str, Any]], good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(argv: list[str], **_: Any) -> Completed:
        text = json.dumps(rows).encode()
        return Completed(argv=(), returncode=0, stdout=text, stderr=b"", duration_seconds=0)

    monkeypatch.setattr(emulated, "run_program", answer)
    if good:
        emulated._check_shape([], "port0", 10**9)
    else:
        with pytest.raises(ClusterError, match="port0 reads back as"):
            emulated._check_shape([], "port0", 10**9)
