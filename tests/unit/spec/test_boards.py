"""Clusters of boards: their file, and what is proposed from what was found on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import AddressError, SpecError, UsageError
from boardcluster.records import (
    ClusterSpec,
    Egress,
    Link,
    NetworkSpec,
    NodeFacts,
    NodeSpec,
    Role,
    Security,
    Sudo,
)
from boardcluster.spec.boards import FoundBoard, propose_boards
from boardcluster.spec.cluster import address_of, load_cluster
from boardcluster.spec.template import render_cluster

PAIRS, PROFILES = ["pair-1"], ["default"]
GOOD = """\
[cluster]
name = "pis"
kind = "boards"
engines = "pair-1"
profile = "default"

[network]
subnet = "192.168.1.0/24"

[[node]]
name = "pi0"
roles = ["master"]
cores = 4
memory = "8 GiB"
host = "pi@pi0"
address = "192.168.1.10"

[[node]]
name = "pi1"
roles = ["worker"]
cores = 4
memory = "4 GiB"
host = "ssh://pi@pi1:2222"
address = "192.168.1.11"
folder = "/mnt/nvme/boardcluster"
"""


def load(folder: Path, text: str) -> ClusterSpec:
    path = folder / "cluster.toml"
    path.write_text(text)
    return load_cluster(path, engine_pairs=PAIRS, profiles=PROFILES)


def problem(folder: Path, old: str, new: str) -> str:
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        load(folder, GOOD.replace(old, new, 1))
    return caught.value.message.removeprefix(f"{folder}/cluster.toml:")


def _door(row: str) -> tuple[str, str]:
    return 'subnet = "192.168.1.0/24"\n', f'subnet = "192.168.1.0/24"\n{row}\n'


def test_a_good_file(tmp_path: Path) -> None:
    spec = load(tmp_path, GOOD)

    assert spec.security is Security.CLOSED
    assert spec.nodes[0].folder == "/var/lib/boardcluster"
    assert spec.nodes[1].folder == "/mnt/nvme/boardcluster"
    assert spec.nodes[1].host == "ssh://pi@pi1:2222"
    assert str(address_of(spec, "pi1")) == "192.168.1.11"


@pytest.mark.parametrize(
    "folder",
    ["/srv/boardcluster", "/mnt/boardcluster-2", "/mnt/a/b/boardcluster.old", "/home/boardcluster"],
)
def test_a_folder_is_named_for_us_wherever_it_is(folder: str, tmp_path: Path) -> None:
    assert load(tmp_path, GOOD.replace("/mnt/nvme/boardcluster", folder)).nodes[1].folder == folder


def test_an_open_cluster_must_be_asked_for(tmp_path: Path) -> None:
    text = GOOD.replace("[network]", 'security = "insecure-lab"\n[network]')
    assert load(tmp_path, text).security is Security.INSECURE_LAB
    assert problem(tmp_path, "[network]", 'security = "open"\n[network]').startswith(
        '7: cluster.security: "open" is not a security level of boards; allowed: closed, '
        "insecure-lab"
    )


@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ('host = "pi@pi0"\n', "", "10: node[0].host: missing; allowed: how `ssh` reaches"),
        ('address = "192.168.1.11"\n', "", "18: node[1].address: missing; allowed: the IPv4"),
        ('"pi@pi0"', '"-oProxyCommand=id"', '15: node[0].host: "-oProxyCommand=id" is not a host'),
        ('"pi@pi0"', '"pi@-oProxyCommand=id"', "15: node[0].host: "),
        ('"pi@pi0"', '"pi@pi0 id"', "15: node[0].host: "),
        (
            '"192.168.1.11"',
            '"192.168.1.10"',
            '24: node[1].address: "192.168.1.10" is already the address of node[0] in line 16',
        ),
        (
            '"ssh://pi@pi1:2222"',
            '"pi@pi0"',
            '23: node[1].host: "pi@pi0" is already the host of node[0] in line 15',
        ),
        (
            '"192.168.1.10"',
            '"192.168.2.10"',
            '16: node[0].address: "192.168.2.10" is not in the subnet "192.168.1.0/24"',
        ),
        ('"192.168.1.10"', '"127.0.0.1"', '16: node[0].address: "127.0.0.1" is not the address'),
        ('"192.168.1.10"', '"fe80::1"', '16: node[0].address: "fe80::1" is not an IPv4'),
        ('"192.168.1.0/24"', '"192.168.1.7/24"', '8: network.subnet: "192.168.1.7/24" is not'),
        (
            '"192.168.1.0/24"',
            '"127.0.0.0/8"',
            '8: network.subnet: "127.0.0.0/8" cannot be a network of boards',
        ),
        (
            *_door('open_ports = ["53"]'),
            '9: network.open_ports[0]: "53" names no protocol; allowed',
        ),
        (*_door('open_ports = ["dns/udp"]'), '9: network.open_ports[0]: "dns/udp" is not a port'),
        (*_door('open_ports = ["70000/tcp"]'), '9: network.open_ports[0]: "70000/tcp" is not a'),
        (
            *_door('open_ports = ["000001000000/tcp"]'),
            '9: network.open_ports[0]: "000001000000/tcp" is not a port',
        ),
        (
            *_door('egress = "member"'),
            '9: network.egress: "member" is not what daemons and jobs may reach; allowed: any, me',
        ),
        (*_door("egress = 1"), "9: network.egress: 1 is not what daemons and jobs may reach"),
        (*_door('ssh_from = ["fe80::1%eth0"]'), '9: network.ssh_from[0]: "fe80::1%eth0" names an'),
        (*_door('ssh_from = ["home"]'), '9: network.ssh_from[0]: "home" is not an address'),
        (
            *_door('ssh_from = ["192.168.1.5/24"]'),
            '9: network.ssh_from[0]: "192.168.1.5/24" is not an address or a network; allowed: ',
        ),
        ('subnet = "192.168.1.0/24"\n', "", "7: network: missing; allowed: the IPv4 network"),
        (
            '"/mnt/nvme/boardcluster"',
            '"/tmp/boardcluster"',
            '25: node[1].folder: "/tmp/boardcluster" is a folder of',
        ),
        (
            '"/mnt/nvme/boardcluster"',
            '"/etc/boardcluster"',
            '25: node[1].folder: "/etc/boardcluster" is a folder of',
        ),
        ('"/mnt/nvme/boardcluster"', '"/mnt/../etc"', "25: node[1].folder: "),
        ('"/mnt/nvme/boardcluster"', '"/mnt/my disk"', "25: node[1].folder: "),
        ('"/mnt/nvme/boardcluster"', '"/mnt"', "25: node[1].folder: "),
        # The folder becomes ours: no home, no whole disk, nothing that somebody else named.
        *(
            ('"/mnt/nvme/boardcluster"', f'"{folder}"', f'25: node[1].folder: "{folder}" is not')
            for folder in (
                *("/home/pi", "/mnt/nvme", "/mnt/nvme/data", "/boardcluster"),
                *("/mnt/boardcluster/data", "/mnt/my-boardcluster", "/mnt/Boardcluster"),
                *("/mnt/nvme/boardcluster/", "boardcluster", "/mnt/nvme/board"),
            )
        ),
    ],
)
def test_one_mistake_is_said_with_its_line(old: str, new: str, start: str, tmp_path: Path) -> None:
    said = problem(tmp_path, old, new)
    assert said.startswith(start)
    assert "\n" not in said


def test_what_has_no_firewall_has_no_doors_in_it(tmp_path: Path) -> None:
    text = GOOD.replace("[network]", 'security = "insecure-lab"\n[network]')
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text.replace('subnet = "192.168.1.0/24"\n', DOORS))
    assert caught.value.message.count("there is no firewall with security = insecure-lab") == 3
    emulated = GOOD.replace('"boards"', '"emulated"').replace("192.168.1.0/24", "198.18.0.0/24")
    with pytest.raises(SpecError) as caught:
        load(tmp_path, emulated.replace("[[node]]", 'ssh_from = ["10.0.0.1"]\n[[node]]', 1))
    assert 'network.ssh_from: only for the kind "boards"' in caught.value.message


def test_keys_of_boards_are_no_keys_of_emulated_nodes(tmp_path: Path) -> None:
    text = GOOD.replace('"boards"', '"emulated"').replace("192.168.1.0/24", "198.18.0.0/24")
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text)
    lines = caught.value.message.split("\n")
    assert len(lines) == 5
    assert all('only for the kind "boards"' in line for line in lines)


DOORS = """\
subnet = "192.168.1.0/24"
open_ports = ["53/udp", "80/tcp", "53/udp"]
ssh_from = ["192.168.1.5", "fd00::/8"]
egress = "members"
"""


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    spec = load(tmp_path, GOOD)
    assert load(tmp_path, render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)) == spec
    spec = load(tmp_path, GOOD.replace('subnet = "192.168.1.0/24"\n', DOORS))
    assert spec.network.open_ports == ("53/udp", "80/tcp")
    assert spec.network.egress is Egress.MEMBERS
    assert spec.network.ssh_from == ("192.168.1.5/32", "fd00::/8")
    assert load(tmp_path, render_cluster(spec, engine_pairs=PAIRS, profiles=PROFILES)) == spec


def facts(name: str, *addresses: str, speed: int | None = 10**9) -> NodeFacts:
    return NodeFacts(
        name=name,
        board="Raspberry Pi 5 Model B Rev 1.0",
        soc="bcm2712",
        cpu="Cortex-A76",
        cores=4,
        clock_least_hertz=1_500_000_000,
        clock_most_hertz=2_400_000_000,
        governor="ondemand",
        memory_bytes=8_323_600_384,
        available_memory_bytes=7_900_000_000,
        architecture="aarch64",
        userland_bits=64,
        page_size_bytes=16_384,
        os="Debian GNU/Linux 12 (bookworm)",
        kernel="6.6.31+rpt-rpi-2712",
        firmware="",
        service_manager="systemd",
        boot_id="boot",
        uptime_seconds=100.0,
        machine_id="0" * 64,
        host_keys=(),
        login_user="pi",
        sudo=Sudo.WORKS,
        python="3.11.2",
        javas=(),
        java_home="",
        links=(
            Link(
                name="eth0",
                addresses=addresses,
                speed_bits_per_second=speed,
                duplex="full",
                wireless=False,
                up=True,
            ),
        ),
        own_addresses=("127.0.1.1",),
        clock_synchronised=True,
        clock_offset_seconds=0.0,
        clock_error_seconds=0.001,
        media=(),
        mounts=(),
        folder="",
        folder_mount="/",
        swaps=(),
        cgroup_controllers=(),
        memory_controller=False,
        throttled=0,
        temperature_celsius=50.0,
        package_managers=(),
        kernel_faults=(),
    )


def found(number: int, *addresses: str, name: str = "", speed: int | None = 10**9) -> FoundBoard:
    return FoundBoard(
        host=f"pi@pi{number}",
        facts=facts(name or f"pi{number}", *addresses, speed=speed),
        folder="/var/lib/boardcluster",
    )


def propose(boards: list[FoundBoard], master: str = "", subnet: str = "") -> ClusterSpec:
    return propose_boards(
        "pis",
        boards,
        engines="pair-1",
        profile="default",
        security=Security.CLOSED,
        master=master,
        subnet=subnet,
    )


def test_four_boards_get_a_master_of_their_own_and_three_do_not() -> None:
    boards = [found(n, f"10.0.0.{n + 1}/24") for n in range(4)]
    four, three = propose(boards), propose(boards[:3])

    assert [sorted(node.roles) for node in four.nodes] == [["master"]] + [["worker"]] * 3
    assert [sorted(node.roles) for node in three.nodes] == [["master", "worker"]] + [["worker"]] * 2
    assert four.network == NetworkSpec(subnet="10.0.0.0/24", link_bits_per_second=10**9)
    assert four.nodes[0] == NodeSpec(
        name="pi0",
        roles=frozenset({Role.MASTER}),
        cores=4,
        memory_bytes=8_321_499_136,
        host="pi@pi0",
        address="10.0.0.1",
        folder="/var/lib/boardcluster",
    )


def test_the_master_may_be_another_board_and_comes_first() -> None:
    boards = [found(n, f"10.0.0.{n + 1}/24") for n in range(4)]
    assert propose(boards, master="pi2").master.name == "pi2"
    assert propose(boards, master="pi@pi3").nodes[0].name == "pi3"
    with pytest.raises(UsageError, match="no board 'pi9'"):
        propose(boards, master="pi9")


def test_names_are_those_of_the_boards_made_valid_and_told_apart() -> None:
    boards = [
        found(0, "10.0.0.1/24", name="raspberrypi"),
        found(1, "10.0.0.2/24", name="raspberrypi"),
        found(2, "10.0.0.3/24", name="My_Pi.local"),
        found(3, "10.0.0.4/24", name="localhost"),
    ]
    names = [node.name for node in propose(boards).nodes]
    assert names == ["raspberrypi-1", "raspberrypi-2", "my-pi", "node3"]


def test_the_network_is_the_fastest_that_holds_all() -> None:
    boards = [found(n, f"10.0.0.{n + 1}/24") for n in range(2)]
    slow = Link(
        name="wlan0",
        addresses=(),
        speed_bits_per_second=None,
        duplex="",
        wireless=True,
        up=True,
    )
    both = [
        _with_link(board, replace(slow, addresses=(f"192.168.7.{5 + n}/24", "fe80::1/64")))
        for n, board in enumerate(boards)
    ]
    assert propose(both).network.subnet == "10.0.0.0/24"
    chosen = propose(both, subnet="192.168.7.0/24")
    assert chosen.network.subnet == "192.168.7.0/24"
    assert [node.address for node in chosen.nodes] == ["192.168.7.5", "192.168.7.6"]


def _with_link(board: FoundBoard, link: Link) -> FoundBoard:
    return replace(board, facts=replace(board.facts, links=(link, *board.facts.links)))


def test_a_bridge_of_containers_is_no_network_of_boards() -> None:
    bridge = Link(
        name="docker0",
        addresses=("172.17.0.1/16",),
        speed_bits_per_second=10**10,
        duplex="full",
        wireless=False,
        up=True,
    )
    boards = [_with_link(found(n, f"10.0.0.{n + 1}/24"), bridge) for n in range(2)]
    spec = propose(boards)
    assert spec.network == NetworkSpec(subnet="10.0.0.0/24", link_bits_per_second=10**9)
    assert [node.address for node in spec.nodes] == ["10.0.0.1", "10.0.0.2"]
    with pytest.raises(AddressError, match="that no other board has"):
        propose([found(0, "10.0.0.1/24"), found(1, "10.0.0.1/24")])


def test_a_network_that_boards_are_not_in_is_refused() -> None:
    with pytest.raises(AddressError) as caught:
        propose([found(n, f"10.0.0.{n + 1}/24") for n in range(2)], subnet="10.0.0.0/16")
    assert caught.value.message == (
        "10.0.0.0/16 is not a network that all boards are in; these are: 10.0.0.0/24"
    )


def test_boards_in_different_networks_are_refused_with_their_addresses() -> None:
    with pytest.raises(AddressError) as caught:
        propose([found(0, "10.0.0.1/24"), found(1, "192.168.1.4/24")])
    assert "pi@pi0: 10.0.0.1/24" in caught.value.message
    assert "pi@pi1: 192.168.1.4/24" in caught.value.message


def test_no_boards_are_no_cluster() -> None:
    with pytest.raises(UsageError, match="0 boards; allowed: 1 to 1000"):
        propose([])
