"""How fast this machine is, as told by a program that only pretends to measure it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from boardcluster.cluster.limits import host
from boardcluster.cluster.limits.host import events_of, look_at_host, with_own_disks
from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import HostError, RemoteError
from boardcluster.remote.gate import Completed
from boardcluster.twin.plan import Host

SAID = """\
CPU speed:
    events per second: 48000.00

General statistics:
    total time:                          3.0001s
    total number of events:              144000
"""


class Groups:
    """In place of a control group: its processes have used 2 s of CPU time, then 4.5 s."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self._spent = iter((2.0, 4.5))

    def sweep(self, node: str) -> None:
        self.calls.append(("sweep", node))

    def create(self, node: str) -> None:
        self.calls.append(("create", node))

    def join_files(self, node: str) -> tuple[str, ...]:
        return (f"/groups/{node}",)

    def set_cpu(self, node: str, cores: float | None) -> None:
        self.calls.append(("cpu", node, cores))

    def cpu_seconds(self, _: str) -> float:
        return next(self._spent)

    def remove(self) -> None:
        self.calls.append("remove")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    made = Groups()
    monkeypatch.setattr(host, "find_cgroups", lambda _: made)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/sysbench")
    monkeypatch.setattr(host, "available_cores", lambda: 4)
    return made


def test_events_are_counted_and_none_is_an_error() -> None:
    assert events_of(SAID) == 144_000
    for text in ("", "total number of events: 0", "FATAL: no such option"):
        with pytest.raises(HostError, match="sysbench reported no events"):
            events_of(text)


def test_speed_is_per_second_of_cpu_time_in_a_group_that_is_gone_afterwards(
    groups: Groups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def run(argv: Sequence[str], *, env: Mapping[str, str]) -> Completed:
        ran.append((argv, env))
        return Completed(
            argv=(), returncode=0, stdout=SAID.encode(), stderr=b"", duration_seconds=3
        )

    monkeypatch.setattr(host, "run_program", run)
    found = look_at_host(tmp_path, "identity", memory_available_bytes=1 << 34)

    assert found.events_per_second_per_core == 144_000 / 2.5
    assert (found.cores, found.memory_available_bytes) == (4, 1 << 34)
    assert found.disk_free_bytes > 0
    assert groups.calls == [
        ("sweep", "speed"),
        ("create", "speed"),
        ("cpu", "speed", 3.0),
        "remove",
    ]
    ((argv, env),) = ran
    assert argv[-6:] == [
        *("sysbench", "cpu", "--cpu-max-prime=2000", "--threads=8", "--time=3", "run")
    ]
    assert env == {IDENTITY_VARIABLE: "identity"}  # by which `down` ends it


def test_a_program_that_fails_is_named_and_the_group_removed(
    groups: Groups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> Completed:
        raise RemoteError("exit status 1")

    monkeypatch.setattr(host, "run_program", run)
    with pytest.raises(HostError, match="sysbench failed: exit status 1"):
        look_at_host(tmp_path, "identity", memory_available_bytes=1)
    assert groups.calls[-1] == "remove"


def test_a_missing_program_is_named_before_anything_is_made(
    groups: Groups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(HostError, match="sysbench is missing") as caught:
        look_at_host(tmp_path, "identity", memory_available_bytes=1)
    assert "apt install sysbench" in caught.value.hint
    assert groups.calls == []


def test_what_the_disks_of_nodes_hold_already_is_theirs(tmp_path: Path) -> None:
    (tmp_path / "worker1").mkdir()
    (tmp_path / "worker1" / "disk.img").write_bytes(bytes([1]) * (2 << 20))
    found = Host(
        cores=2,
        events_per_second_per_core=1.0,
        memory_available_bytes=1,
        disk_free_bytes=5 << 20,
        limits_unwritten=True,
    )
    assert with_own_disks(found, tmp_path, ["worker1", "worker2"]).disk_free_bytes >= 7 << 20
    assert with_own_disks(found, tmp_path, ["worker2"]) == found
