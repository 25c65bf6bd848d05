"""A healthy cluster of three boards that is up; each test plants one fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.builders import make_cluster, make_node
from tests.unit.cluster.recordings import PI_5
from tests.unit.cluster.test_facts import facts_of
from tests.unit.doctor.fake_machine import FakeMachine

from boardcluster.doctor import Facts
from boardcluster.doctor.facts import Board, BoardDetails, MasterAnswers, NodeManagerState
from boardcluster.records import NodeFacts, Role, Security
from boardcluster.services.pair import pair_ids

GIB = 2**30
FOLDER = "/var/lib/boardcluster"
LOGIN_HOME = "/home/pi"
JAVA = "/usr/lib/jvm/java-17-openjdk-arm64"
ROLES = {"pi0": Role.MASTER, "pi1": Role.WORKER, "pi2": Role.WORKER, "pi3": Role.WORKER}


def healthy_facts(number: int) -> NodeFacts:
    """A Raspberry Pi 5 as it should be."""
    facts = facts_of(PI_5)
    (link,) = facts.links
    return replace(
        facts,
        name=f"pi{number}",
        governor="performance",
        page_size_bytes=4096,
        cgroup_controllers=("cpu", "memory", "pids"),
        memory_controller=True,
        links=(replace(link, addresses=(f"192.168.1.{20 + number}/24",)),),
        machine_id=f"{number:032d}",
        host_keys=(f"SHA256:key{number}",),
        own_addresses=(f"192.168.1.{20 + number}",),
    )


def healthy_details(number: int) -> BoardDetails:
    """What the doctor finds on it once the cluster is up."""
    ids = {f"{FOLDER}/data/datanode/current/VERSION": "CID-1"}
    if number == 0:
        ids = {f"{FOLDER}/data/namenode/current/VERSION": "CID-1"}
    return BoardDetails(
        provisioned=True,
        firewall=True,
        name_addresses=(f"192.168.1.{20 + number}",),
        cluster_ids=ids,
        login_id=1000,
        permissions={
            LOGIN_HOME: (1000, 0o755),
            f"{LOGIN_HOME}/.ssh": (1000, 0o700),
            f"{LOGIN_HOME}/.ssh/authorized_keys": (1000, 0o600),
        },
        listening=((f"192.168.1.{20 + number}", 9866), ("0.0.0.0", 22), ("::", 13562)),
        ssh_settings={"passwordauthentication": "no", "permitrootlogin": "prohibit-password"},
        java=JAVA,
    )


def healthy_boards(folder: Path) -> Facts:
    """A healthy cluster of three boards that is up."""
    nodes = tuple(
        make_node(
            name,
            role,
            memory_bytes=7 * GIB,
            host=f"pi@{name}",
            address=f"192.168.1.{20 + number}",
            folder=FOLDER,
        )
        for number, (name, role) in enumerate(ROLES.items())
    )
    spec = make_cluster(
        *nodes,
        name="lab",
        kind="boards",
        engines=pair_ids()[0],
        subnet="192.168.1.0/24",
        security=Security.CLOSED,
    )
    boards = tuple(
        Board(spec=node, facts=healthy_facts(number), details=healthy_details(number))
        for number, node in enumerate(nodes)
    )
    managers = tuple(
        NodeManagerState(host=node.name, state="RUNNING", report="") for node in nodes[1:]
    )
    masters = MasterAnswers(live_datanodes=3, managers=managers, waiting=())
    return Facts(
        machine=FakeMachine(),
        home=folder,
        cache=folder,
        options=" --cluster lab",
        spec=spec,
        boards=boards,
        masters=masters,
    )


def with_facts(view: Facts, name: str, **changed: Any) -> Facts:
    """The same cluster where one board has other facts."""
    boards = tuple(
        replace(board, facts=replace(board.facts, **changed)) if board.name == name else board
        for board in view.boards
    )
    return replace(view, boards=boards)


def with_details(view: Facts, name: str, **changed: Any) -> Facts:
    """The same cluster where the doctor finds something else on one board."""
    boards = tuple(
        replace(board, details=replace(board.details, **changed)) if board.name == name else board
        for board in view.boards
    )
    return replace(view, boards=boards)
