"""All limits of a cluster at once, with a kernel that only remembers what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from boardcluster.cluster.limits import disks, limiter, links
from boardcluster.cluster.limits.cgroups import Cgroups
from boardcluster.cluster.limits.limiter import Limiter, Port, clear_leftovers, make_groups
from boardcluster.cluster.limits.watching import CoreWatch
from boardcluster.errors import ClusterError, HostError
from boardcluster.records import DiskLimits, NodeLimits
from boardcluster.remote.gate import Completed

DISK = DiskLimits(
    size_bytes=1 << 30,
    read_bytes_per_second=40_000_000,
    write_bytes_per_second=20_000_000,
    read_iops=2000,
    write_iops=1000,
    unwritten_bytes=200_000_000,
)
OPEN = 10**9


@dataclass
class Groups:
    """In place of the kernel's control groups."""

    cpu: dict[str, float | None] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    disk: dict[str, DiskLimits | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def create(self, node: str, board_cores: int = 1) -> None:
        self.calls.append(f"create {node}")

    def join_files(self, node: str) -> tuple[str, ...]:
        return (f"/groups/{node}",)

    def set_cpu(self, node: str, cores: float | None, board_cores: int = 1) -> None:
        self.calls.append(f"cpu {node}")
        self.cpu[node] = cores

    def set_memory(self, node: str, limit_bytes: int) -> None:
        self.memory[node] = limit_bytes

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        if device == "0:0":
            raise HostError("no such device")
        self.calls.append(f"disk {node} {device}")
        self.disk[device] = limits

    def read(self, node: str, device: str) -> Mapping[str, str]:
        return self.expected(
            self.cpu.get(node), self.memory.get(node, 0), device, self.disk.get(device)
        )

    def expected(
        self,
        cores: float | None,
        memory_bytes: int,
        device: str,
        disk: DiskLimits | None,
        board_cores: int = 1,
    ) -> Mapping[str, str]:
        return {"cpu": str(cores), "memory": str(memory_bytes), "disk": f"{device} {disk}"}

    def cpu_seconds(self, node: str) -> float:
        return {"master": 1.5, "worker1": 2.5}[node]

    def sweep(self, node: str) -> None:
        self.calls.append(f"sweep {node}")

    def remove(self) -> None:
        self.calls.append("remove")


@dataclass
class Watch:
    """In place of the process that spreads threads."""

    runs: bool = False

    def ensure(self, groups: Cgroups, limits: Sequence[NodeLimits]) -> None:
        self.runs = True

    def is_running(self) -> bool:
        return self.runs


@dataclass
class Tc:
    """In place of the kernel's queues: remembers the rate of each end of each link."""

    rates: dict[str, int] = field(default_factory=dict)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        place = f"{argv[2]} {stdin.split()[3].decode()}"
        found = re.search(rb"rate (\d+)bit", stdin)
        assert found is not None
        self.rates[place] = int(found.group(1))
        return Completed(argv=(), returncode=0, stdout=b"", stderr=b"", duration_seconds=0)

    def rate_of(self, prefix: Sequence[str], device: str) -> int | None:
        return self.rates.get(f"{prefix[2]} {device}")


@pytest.fixture
def tc(monkeypatch: pytest.MonkeyPatch) -> Tc:
    made = Tc()
    monkeypatch.setattr(links, "run_program", made.run)
    monkeypatch.setattr(limiter, "rate_of", made.rate_of)
    return made


def limits_of(node: str, cores: float, disk: DiskLimits | None = None) -> NodeLimits:
    return NodeLimits(
        node=node,
        cpu_cores=cores,
        memory_bytes=1 << 31,
        disk=disk,
        link_bits_per_second=300_000_000,
    )


def port(pid: int, number: int) -> Port:
    return Port(node_pid=pid, switch_pid=9, name=f"port{number}", open_bits_per_second=OPEN)


@pytest.fixture
def groups() -> Groups:
    return Groups()


@pytest.fixture(autouse=True)
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the device's settings of what waits to be written."""
    folder = tmp_path / "block" / "7:3" / "bdi"
    folder.mkdir(parents=True)
    for name, text in (("strict_limit", "0"), ("max_bytes", "0"), ("max_ratio", "100")):
        (folder / name).write_text(text)
    monkeypatch.setattr(disks, "_BLOCK_DEVICES", tmp_path / "block")
    return folder


@pytest.fixture
def made(groups: Groups, tc: Tc) -> Limiter:
    assert not tc.rates
    return Limiter(
        groups=cast("Cgroups", groups),
        limits=(limits_of("master", 0.25), limits_of("worker1", 0.5, DISK)),
        devices={"worker1": "7:3"},
        ports={"master": port(10, 0), "worker1": port(11, 1)},
        watch=cast("CoreWatch", Watch()),
    )


def test_every_limit_is_set_at_its_place(made: Limiter, groups: Groups, tc: Tc) -> None:
    made.set()
    assert groups.cpu == {"master": 0.25, "worker1": 0.5}
    assert groups.memory == {"master": 1 << 31, "worker1": 1 << 31}
    assert groups.disk == {"7:3": DISK}
    assert tc.rates == dict.fromkeys(("9 port0", "10 eth0", "9 port1", "11 eth0"), 300_000_000)
    assert made.changed() == []


def test_no_more_waits_to_be_written_than_on_the_board(made: Limiter, waiting: Path) -> None:
    made.set()
    assert (waiting / "max_bytes").read_text() == "200000000"
    assert (waiting / "strict_limit").read_text() == "1"
    assert disks.can_hold_unwritten()
    (waiting / "strict_limit").write_text("0\n")
    assert made.changed() == ["worker1: what waits to be written is not limited any more"]
    (waiting / "max_bytes").write_text("90000000\n")  # less memory is free than when it was set
    (waiting / "strict_limit").write_text("1\n")
    made.renew()
    assert (waiting / "max_bytes").read_text() == "200000000"
    made.lift()
    assert (waiting / "max_ratio").read_text() == "100"
    assert (waiting / "strict_limit").read_text() == "0"


def test_a_kernel_that_cannot_limit_what_waits_does_without(made: Limiter, waiting: Path) -> None:
    for file in waiting.iterdir():
        file.unlink()
    assert not disks.can_hold_unwritten()
    older = replace(DISK, unwritten_bytes=None)
    made = replace(made, limits=(replace(made.limits[1], disk=older),))
    made.set()
    made.lift()
    made.set()
    made.renew()
    assert made.changed() == []
    assert list(waiting.iterdir()) == []


def test_the_watcher_of_cores_is_started_with_the_limits_and_missed_when_it_ends(
    made: Limiter,
) -> None:
    made.set()
    assert made.changed() == []
    cast("Watch", made.watch).runs = False
    [found] = made.changed(links=False)
    assert "spreads threads" in found
    made.set()
    assert made.changed() == []


def test_lifted_limits_leave_memory(made: Limiter, groups: Groups, tc: Tc) -> None:
    made.set()
    made.lift()
    assert groups.cpu == {"master": None, "worker1": None}
    assert groups.disk == {"7:3": None}
    assert set(tc.rates.values()) == {OPEN}
    assert groups.memory == {"master": 1 << 31, "worker1": 1 << 31}


def test_a_share_of_the_cpu_is_written_only_where_it_changes(made: Limiter, groups: Groups) -> None:
    made.set()
    groups.calls.clear()
    made.set_shares({"worker1": 0.5})
    assert groups.cpu == {"master": 0.25, "worker1": 0.25}
    assert groups.calls == ["cpu worker1"]
    assert made.changed() == []
    made.lift()
    made.set()
    assert groups.cpu["worker1"] == 0.25  # what heat allows outlives a preparation
    groups.calls.clear()
    made.set_shares({})
    assert groups.cpu["worker1"] == 0.5
    assert groups.calls == ["cpu worker1"]


def test_what_others_changed_is_named(made: Limiter, groups: Groups, tc: Tc) -> None:
    made.set()
    groups.cpu["master"] = 2.0
    groups.disk["7:3"] = None
    tc.rates["9 port1"] = 5
    del tc.rates["10 eth0"]
    words = made.changed()
    assert [word.split(" is ")[0] for word in words] == [
        "master: cpu",
        "master: link rate of eth0",
        "worker1: disk",
        "worker1: link rate of port1",
    ]
    assert words[0] == "master: cpu is 2.0, but was set to 0.25"
    assert words[1].endswith("is none bit/s, but was set to 300000000")
    assert [word.split(" is ")[0] for word in made.changed(links=False)] == [
        "master: cpu",
        "worker1: disk",
    ]


def test_limits_that_do_not_read_back_are_an_error(
    made: Limiter, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Groups, "set_memory", lambda *_: None)
    with pytest.raises(ClusterError, match="master: memory is 0, but was set to 2147483648"):
        made.set()
    assert groups.memory == {}


def test_cpu_time_is_told_by_node(made: Limiter) -> None:
    assert made.cpu_seconds() == {"master": 1.5, "worker1": 2.5}


def test_groups_limit_memory_from_the_start(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter, "find_cgroups", lambda _: groups)
    make_groups("identity", [limits_of("master", 1.0)])
    assert groups.calls == ["create master"]
    assert groups.memory == {"master": 1 << 31}
    prefix = limiter.join_prefix("identity", "master")
    assert prefix[-2:] == ("/groups/master", "--")


def test_leftovers_are_cleared_even_where_one_device_is_gone(
    groups: Groups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter, "find_cgroups", lambda _: groups)
    monkeypatch.setattr(disks, "_BLOCK_DEVICES", tmp_path / "block")
    for name, device in (("a", "0:0"), ("b", "7:3"), ("c", "")):
        (tmp_path / "nodes" / name).mkdir(parents=True)
        if device:
            (tmp_path / "nodes" / name / "disk.device").write_text(device)
    for _ in range(2):
        clear_leftovers("identity", tmp_path / "nodes")
    assert groups.disk == {"7:3": None}
    assert groups.calls == ["disk b 7:3", "remove", "remove"]
    assert not list(tmp_path.glob("nodes/*/disk.device"))


def test_without_control_groups_nothing_was_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: str) -> Any:
        raise HostError("no control groups")

    monkeypatch.setattr(limiter, "find_cgroups", none)
    clear_leftovers("identity", tmp_path / "nodes")
