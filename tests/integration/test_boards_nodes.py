"""The test nodes themselves: what is proved on them counts only if they are as closed as boards."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boards import ROOT, Boards
from tests.waiting import wait_until

pytestmark = pytest.mark.needs_root

SSH = ("ssh", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes")
IMPATIENT = (*SSH, "-o", "ConnectTimeout=1")
GREET = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1) as stream:
        print(stream.recv(4).decode())
except OSError as error:
    print(type(error).__name__)
"""
"""Connect, and print what the other side says first, or why that failed."""

HELD = """
import sys, time
from pathlib import Path
from tests.boards import Boards
with Boards(2, folder=Path(sys.argv[1])) as boards:
    print(*(node.pid for node in boards.nodes), flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boards]:
    with Boards(2, folder=tmp_path_factory.mktemp("boards") / "run") as made:
        yield made


def on(boards: Boards, index: int, command: str) -> str:
    """Run a shell command on a node by the driver's SSH client; what it prints."""
    return boards.on_driver([*SSH, f"pi{index}", command]).stdout


def greeting(prefix: tuple[str, ...], address: str, port: int = 22) -> str:
    command = [*prefix, "python3", "-c", GREET, address, str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine_addresses() -> list[str]:
    command = ["ip", "-j", "-4", "address", "show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [info["local"] for link in json.loads(done.stdout) for info in link["addr_info"]]


def mounted(folder: Path) -> list[str]:
    """Every process that sees something mounted below a folder."""
    found = []
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            if str(folder) in table.read_text():
                found.append(str(table))
    return found


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}/ns/net").exists() for pid in pids)


def test_a_node_is_a_host_of_its_own(boards: Boards) -> None:
    for index in range(2):
        assert on(boards, index, "hostname").strip() == f"pi{index}"
        assert on(boards, index, "id -un; sudo -n id -un").split() == ["pi", "root"]
        assert f"127.0.1.1\tpi{index}" in on(boards, index, "cat /etc/hosts")
        assert on(boards, index, "command -v python3").strip() == "/usr/bin/python3"
    different = (
        "getent passwd pi",
        "cat /etc/machine-id",
        "cat /etc/ssh/ssh_host_ed25519_key.pub",
        "readlink /proc/self/ns/net /proc/self/ns/mnt /proc/self/ns/ipc",
    )
    for command in different:
        assert on(boards, 0, command) != on(boards, 1, command)
    boards.run_on(0, ["useradd", "--system", "boardcluster"])
    boards.run_on(0, ["mkdir", "/opt/boardcluster"])
    assert "boardcluster" not in on(boards, 1, "getent passwd; ls /opt")
    assert "boardcluster" not in Path("/etc/passwd").read_text()


def test_a_node_is_fresh(boards: Boards) -> None:
    there = "ls -d /run/systemd /etc/boardcluster /opt/* /var/lib/boardcluster /usr/local/* || true"
    assert on(boards, 1, there) == ""
    assert on(boards, 1, "dpkg-query --show --showformat '${db:Status-Status}' sudo") == "installed"


def test_a_node_sees_nothing_of_the_driver(
    boards: Boards, tmp_path: Path, cache: Path, request: pytest.FixtureRequest
) -> None:
    """Even root, looking at every file and at the devices below them."""
    (tmp_path / "driver-secret").write_text("secret")
    find = "sudo find / -xdev -name driver-secret -o -path /etc/ssh/sshd_config"
    assert on(boards, 0, find) == "/etc/ssh/sshd_config\n"
    for path in (ROOT, tmp_path, cache, Path.home() / ".ssh", Path(boards.driver_env["HOME"])):
        assert on(boards, 0, f"sudo ls -d {path}/* || true") == ""
    assert on(boards, 0, "sudo find /dev /sys/firmware -type b") == ""
    refused = boards.on_driver([*SSH, "pi0", "sudo mknod /tmp/disk b 254 0"], check=False)
    assert "Operation not permitted" in refused.stderr
    processes = on(boards, 0, "sudo cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sshd" in processes
    assert "pytest" not in processes


def test_a_node_cannot_change_the_machine(boards: Boards) -> None:
    """Clock, modules and settings of the kernel belong to all; network settings to the node."""
    status = on(boards, 0, "sudo grep CapBnd /proc/self/status").split()
    allowed = int(status[1], 16)
    assert allowed >> 21 & 1, "CAP_SYS_ADMIN, as on a board"
    assert [bit for bit in (16, 17, 25, 27) if allowed >> bit & 1] == []
    write = "sudo sh -c 'echo 1 > /proc/sys/{}' || true"
    for name, error in (("vm/swappiness", "Read-only"), ("net/ipv4/ip_forward", "")):
        done = boards.on_driver([*SSH, "pi0", write.format(name)])
        assert error in done.stderr
        assert bool(error) == bool(done.stderr)


def test_the_network_ends_at_the_bridge(boards: Boards) -> None:
    node, prefixes = boards.nodes[0], (boards.driver_prefix, boards.outside_prefix)
    for prefix in prefixes:
        assert greeting(prefix, node.address) == "SSH-"
    assert on(boards, 0, "ip route").startswith("198.18.44.0/24 dev eth0")
    assert "default" not in on(boards, 0, "ip route; ip -6 route")
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        for address in {*machine_addresses(), "127.0.0.1"}:
            inside = f"python3 -c '{GREET}' {address} {port}"
            assert "Error" in on(boards, 0, inside)
            assert all("Error" in greeting(prefix, address, port) for prefix in prefixes)
    assert greeting((), node.address) != "SSH-"


def test_a_cut_cable_loses_packets_and_no_connection(boards: Boards) -> None:
    command = [*boards.driver_prefix, *SSH, "pi1", "echo begun; sleep 2; echo ended"]
    env = {**boards.driver_env, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == "begun\n"
        boards.cut(1)
        silent = boards.on_driver([*IMPATIENT, "pi1", "true"], check=False)
        assert "timed out" in silent.stderr
        assert on(boards, 0, "true") == ""
        boards.mend(1)
        assert on(boards, 1, "echo back") == "back\n"
        assert session.communicate(timeout=20)[0] == "ended\n"


def test_other_keys_a_password_and_no_power(tmp_path: Path) -> None:
    with Boards(3, folder=tmp_path / "run", subnet="198.18.45.0/24") as boards:
        assert [on(boards, index, "sudo -n echo fine") for index in range(3)] == ["fine\n"] * 3
        boards.new_host_key(0)
        changed = boards.on_driver([*SSH, "pi0", "true"], check=False)
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in changed.stderr
        boards.sudo_asks(1)
        asked = boards.on_driver([*SSH, "pi1", "sudo -n true"], check=False)
        assert "a password is required" in asked.stderr
        began = time.monotonic()
        boards.power_off(2)
        assert gone([boards.nodes[2].pid])
        silent = boards.on_driver([*IMPATIENT, "pi2", "true"], check=False)
        assert "timed out" in silent.stderr or "No route to host" in silent.stderr
        assert time.monotonic() - began < 60
        assert on(boards, 1, "echo on") == "on\n"


def leave_by_exception(folder: Path, seen: dict[str, int]) -> None:
    """Leave with an orphan in the outside host, such as the shared connection of an SSH client."""
    orphan = "setsid sleep 600 > /dev/null 2>&1 & echo $!"
    with Boards(2, folder=folder) as boards:
        command = [*boards.outside_prefix, "sh", "-c", orphan]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seen.update({node.name: node.pid for node in boards.nodes}, orphan=int(done.stdout))
        assert not any(gone([pid]) for pid in seen.values())
        assert mounted(folder)
        raise KeyError("planned")


def test_nothing_is_left_after_an_exception(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    pids: dict[str, int] = {}
    with pytest.raises(KeyError, match="planned"):
        leave_by_exception(folder, pids)
    assert len(pids) == 3
    assert gone(list(pids.values()))
    assert mounted(folder) == []
    assert list(folder.iterdir()) == []


def test_nothing_runs_on_after_kill_9(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HELD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdout is not None
        pids = [int(word) for word in holder.stdout.readline().split()]
        assert len(pids) == 2
        assert not gone(pids)
        holder.kill()
    wait_until(lambda: not mounted(folder) and gone(pids), "the end of what it started")


OFFERS = """
from pathlib import Path
from boardcluster.remote.ssh_route import SshRoute
words = SshRoute(host="pi0", known_hosts=Path("k"), control=Path("/tmp")).command()
print(*(word.partition("=")[2] for word in words if word.startswith("KexAlgorithms=")))
"""


def test_key_exchanges_that_the_user_chose_are_left_as_they_are(boards: Boards) -> None:
    def offers() -> str:
        return boards.on_driver([sys.executable, "-c", OFFERS]).stdout.strip()

    slow = next(row for row in ssh_supports(boards) if row.startswith("sntrup761"))
    assert offers().split(",")[-1].startswith("sntrup761")
    config = Path(boards.driver_env["HOME"]) / ".ssh" / "config"
    former = config.read_text()
    try:
        # In OpenSSH 9.2 this gives just what it offers of itself.
        config.write_text(f"Host pi0\n  KexAlgorithms ^{slow}\n{former}")
        assert offers() == ""
        config.write_text(f"Host pi1\n  KexAlgorithms ^{slow}\n{former}")
        assert offers().split(",")[-1].startswith("sntrup761")
    finally:
        config.write_text(former)


def ssh_supports(boards: Boards) -> list[str]:
    return boards.on_driver(["ssh", "-Q", "kex"]).stdout.split()
