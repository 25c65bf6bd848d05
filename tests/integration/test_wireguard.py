"""``examples/wireguard.py``: between boards, nothing passes in clear; by real SSH and WireGuard.

Where the kernel has no WireGuard, as in many virtual machines, wg-quick takes wireguard-go.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.boards import ROOT, Boards
from tests.integration.test_boards_cluster import Lab

KERNEL_HAS_IT = Path("/sys/module/wireguard").exists()

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(
        not KERNEL_HAS_IT and not Path("/dev/net/tun").exists(),
        reason="this kernel has neither WireGuard nor the TUN devices that wireguard-go needs",
    ),
]

SUBNET = "198.18.53.0/24"
INSIDE = "10.9.0.0/24"
SCRIPT = "examples/wireguard.py"
FLIGHT = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228"
"""The first flight of the data; its block is copied from one board to the other."""

CAPTURE = """\
import collections, json, os, socket, struct, sys
ends, word = {socket.inet_aton(text) for text in sys.argv[1:3]}, sys.argv[3].encode()
taken = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # both directions
taken.bind((sys.argv[4], 0))
taken.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)  # SO_RCVBUFFORCE
taken.settimeout(0.1)
ways, words = collections.Counter(), 0
print("listening", flush=True)
while True:
    try:
        packet = taken.recv(1 << 17)
    except TimeoutError:
        if os.path.exists("/run/stop"):
            break
        continue
    if packet[0] >> 4 == 6 and packet[6] in (6, 17):
        ways["ipv6"] += len(packet)
    elif packet[0] >> 4 == 4 and {packet[12:16], packet[16:20]} == ends:
        ports = struct.unpack_from("!HH", packet, (packet[0] & 15) * 4)
        ways[f"{packet[9]}/{min(ports)}" if packet[9] != 1 else "icmp"] += len(packet)
        words += word in packet
_, lost = struct.unpack("II", taken.getsockopt(263, 6, 8))  # PACKET_STATISTICS
print(json.dumps({"ways": ways, "words": words, "lost": lost}))
"""
"""What passes between two addresses on an interface: bytes by protocol and lower port, and in how
many packets a word stands."""

UDP_WIREGUARD = "17/51820"

CAMPAIGN = """\
[campaign]
name = "encrypted"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "wordcount"
engine = "spark"
size = "8 MB"
replication = 2
"""


class Private:
    """Boards that the script is used on."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.hosts = [node.name for node in lab.boards.nodes]

    def script(self, *words: str, code: int = 0) -> str:
        done = self.lab.boards.on_driver([str(ROOT / SCRIPT), *words], check=False)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def private(
    tmp_path_factory: pytest.TempPathFactory, cache: Path, fetched: None
) -> Iterator[Private]:
    folder = tmp_path_factory.mktemp("wireguard")
    with Boards(2, folder=folder, subnet=SUBNET) as boards:
        for node in boards.nodes:  # as somebody has who copied a key there
            boards.on_driver(["ssh", "-o", "StrictHostKeyChecking=accept-new", node.name, "true"])
        yield Private(Lab(boards, folder / "home", cache))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["10.9.0.0/24"], "name a network and hosts"),
        ([INSIDE, "-x", "pi0"], "name a network and hosts"),
        (["10.9.0.0/16", "pi0", "pi1"], "'10.9.0.0/16' is not allowed"),
        (["999.9.0.0/24", "pi0", "pi1"], "'999.9.0.0/24' is not allowed"),
        ([INSIDE, "pi0"], "allowed are 2 to 240 hosts"),
        ([INSIDE, "pi0", "pi0"], "each named once"),
        ([INSIDE, "nowhere", "pi0"], "nowhere: this failed with status 255"),
    ],
)
def test_what_the_script_refuses(private: Private, words: list[str], said: str) -> None:
    assert said in private.script(*words, code=2)


HOSTILE_WG = """\
#!/bin/sh
echo 'A
[Interface]
PostUp = touch /pwned'
"""


def test_an_answer_that_is_no_key_is_refused(private: Private) -> None:
    """What a board says becomes part of a file that the others read as root."""
    lab = private.lab
    with standing_in(lab, "wg", HOSTILE_WG):
        assert "pi1: 'A' is not a public key" in private.script(INSIDE, *private.hosts, code=2)
    private.script("--remove", *private.hosts)


SYSTEMCTL = """\
#!/bin/sh
echo "$*" >>/run/systemctl
case $1 in
enable) wg-quick up boardcluster0 ;;
disable) wg-quick down boardcluster0 ;;
esac
"""
"""Stands for systemd on a board that has none."""


@contextlib.contextmanager
def standing_in(lab: Lab, name: str, program: str) -> Iterator[None]:
    """Let another program be found on the second board under a name."""
    place = f"/usr/local/bin/{name}"
    lab.on(1, f"mkdir -p /usr/local/bin; cat >{place} <<'END'\n{program}END")
    lab.on(1, f"chmod +x {place}")
    try:
        yield
    finally:
        lab.on(1, f"rm {place}")


def test_systemd_starts_the_interface_where_it_runs(private: Private) -> None:
    lab, hosts = private.lab, private.hosts
    lab.on(1, "mkdir -p /run/systemd/system")
    with standing_in(lab, "systemctl", SYSTEMCTL):
        private.script(INSIDE, *hosts)
        private.script("--remove", *hosts)
        private.script("--remove", *hosts)
    assert lab.on(1, "cat /run/systemctl").splitlines() == [
        "enable -q --now wg-quick@boardcluster0",
        "disable -q --now wg-quick@boardcluster0",
    ]
    lab.on(1, "rm -r /run/systemd /run/systemctl")
    lab.boards.cut(0)
    try:
        assert "pi0: this failed" in private.script("--remove", *hosts, code=2)
    finally:
        lab.boards.mend(0)


def test_a_port_that_is_closed_and_another_order_are_found(private: Private) -> None:
    lab, hosts = private.lab, private.hosts
    closed = (
        "table inet shut { chain in { type filter hook input priority 0; udp dport 51820 drop; }; }"
    )
    lab.on(1, f"nft '{closed}'")
    try:
        said = private.script(INSIDE, *hosts, code=2)
        assert "pi0 gets no answer from 10.9.0.11" in said
        assert 'open_ports = ["51820/udp"]' in said
    finally:
        lab.on(1, "nft delete table inet shut")
    said = private.script(INSIDE, *reversed(hosts), code=2)
    assert "pi1: it has the address 10.9.0.11/24 already" in said
    private.script("--remove", *hosts)


def test_nothing_passes_in_clear_between_boards(private: Private, tmp_path: Path) -> None:
    lab, hosts = private.lab, private.hosts
    assert private.script(INSIDE, *hosts) == "pi0 10.9.0.10\npi1 10.9.0.11\n"
    key = lab.on(0, "cat /etc/wireguard/boardcluster0.key")
    assert private.script(INSIDE, *hosts) == "pi0 10.9.0.10\npi1 10.9.0.11\n"
    assert lab.on(0, "cat /etc/wireguard/boardcluster0.key") == key
    assert lab.on(0, "stat -c %a /etc/wireguard/boardcluster0.*").split() == ["600", "600"]

    lab("init", "--hosts", ",".join(hosts), "--yes", "--subnet", INSIDE)
    file = lab.home / "cluster.toml"
    text = file.read_text()
    assert 'address = "10.9.0.11"' in text
    network = f'subnet = "{INSIDE}"\n'
    assert network in text
    text = text.replace(network, f'{network}open_ports = ["51820/udp"]\n')
    file.write_text(re.sub(r'memory = ".*"', 'memory = "4 GiB"', text))

    lab("up", "--yes")
    try:
        seen = watched(private, tmp_path)
        assert not forger_connects(lab)
    finally:
        lab("down")
    outside, inside = seen["eth0"], seen["boardcluster0"]
    assert set(outside["ways"]) <= {UDP_WIREGUARD, "icmp"}, outside
    assert outside["ways"][UDP_WIREGUARD] > 8_000_000, seen
    assert (outside["words"], outside["lost"]) == (0, 0), seen
    assert inside["words"] > 0  # so it would have been seen

    private.script("--remove", *hosts)
    assert lab.on(0, "ls /etc/wireguard; ls /sys/class/net").split() == ["eth0", "lo"]


def watched(private: Private, folder: Path) -> dict[str, Any]:
    """Run the campaign and return what passed meanwhile on each interface."""
    lab = private.lab
    file = folder / "encrypted.toml"
    file.write_text(CAMPAIGN)
    ends = {
        "eth0": [node.address for node in lab.boards.nodes],
        "boardcluster0": ["10.9.0.10", "10.9.0.11"],
    }
    enter = ("nsenter", "--target", str(lab.boards.nodes[0].pid), "--all", "--")
    capturing = {
        name: subprocess.Popen(
            [*enter, "python3", "-c", CAPTURE, *pair, FLIGHT, name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, pair in ends.items()
    }
    try:
        for process in capturing.values():
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
        lab("run", str(file))
    finally:
        lab.on(0, "touch /run/stop")
        said = {name: process.communicate(timeout=30)[0] for name, process in capturing.items()}
    return {name: json.loads(text) for name, text in said.items()}


def forger_connects(lab: Lab) -> bool:
    """Whether a stranger on the boards' own network who takes a board's address is let in."""
    outside, there = lab.boards.outside_prefix, lab.boards.nodes[0].address
    for words in ("address add 10.9.0.11/32 dev eth0", f"route add 10.9.0.10 via {there}"):
        subprocess.run([*outside, "ip", *words.split()], check=True)
    program = (
        "import socket; socket.create_connection(('10.9.0.10', 8020), timeout=3,"
        " source_address=('10.9.0.11', 0))"
    )
    done = subprocess.run([*outside, "python3", "-c", program], capture_output=True, check=False)
    return done.returncode == 0
