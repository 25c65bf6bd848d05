"""A healthy machine with a cluster that fits it; each test plants one fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import make_cluster, make_live_node, make_node, make_state
from tests.unit.doctor.board_facts import healthy_boards
from tests.unit.doctor.fake_machine import FakeMachine

from boardcluster.cluster.state import LiveState
from boardcluster.doctor import Facts
from boardcluster.doctor.checks.tools import TOOLS
from boardcluster.records import ClusterSpec
from boardcluster.services.pair import pair_ids

MIB = 2**20
PROBES = (
    "ip link set lo up",
    "ip link add name switch type bridge",
    "ip link add name port0 type veth peer name eth0",
    "tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 50ms",
)


@pytest.fixture
def machine() -> FakeMachine:
    healthy = FakeMachine()
    for tool in TOOLS:
        healthy.tell(tool.name, tool.ask, stdout=f"usage: {tool.name} {tool.ability}")
    for name in ("unshare", "ip"):
        healthy.tell(name, "-V")
    for probe in PROBES:
        healthy.tell("unshare", "--net", *probe.split())
    ask = "import sys; print(*sys.version_info[:3])"
    healthy.tell("python3", "-I", "-S", "-c", ask, stdout="3 11 2\n")
    healthy.tell("timedatectl", "show", "-p", "NTPSynchronized", stdout="NTPSynchronized=yes\n")
    healthy.files["/proc/self/limits"] = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             95872                95872                processes \n"
        "Max open files            1024                 1048576              files     \n"
    )
    healthy.files["/proc/1/cmdline"] = "/sbin/init\0splash\0"
    for cpu in range(2):
        path = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        healthy.files[path] = "performance\n"
    return healthy


@pytest.fixture
def spec() -> ClusterSpec:
    master = make_node("master", cores=1, memory_bytes=1536 * MIB)
    workers = (make_node(f"worker{number}", cores=1) for number in (1, 2))
    return make_cluster(master, *workers, name="test", engines=pair_ids()[0])


@pytest.fixture
def state(tmp_path: Path) -> LiveState:
    return make_state(
        make_live_node(address="198.18.0.2"),
        identity="0123456789",
        boot_id="this boot",
        subnet="198.18.0.0/24",
        host_link="bc01234567",
    )


@pytest.fixture
def facts(tmp_path: Path, machine: FakeMachine, spec: ClusterSpec) -> Facts:
    home, cache = tmp_path / "home", tmp_path / "cache"
    for folder in (home, cache):
        machine.tell("stat", "--file-system", "--format=%T", str(folder), stdout="ext2/ext3\n")
    return Facts(machine=machine, home=home, cache=cache, options=" --cluster test", spec=spec)


@pytest.fixture
def view(tmp_path: Path) -> Facts:
    """A healthy cluster of three boards that is up."""
    return healthy_boards(tmp_path)
