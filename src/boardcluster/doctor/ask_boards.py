"""Ask every board, and the masters, for everything that the checks read: once and in parallel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boardcluster.cluster.discovery import discover
from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.state import LiveState
from boardcluster.doctor.facts import (
    Board,
    BoardDetails,
    Facts,
    LostBoard,
    MasterAnswers,
    NodeManagerState,
    WaitingJob,
)
from boardcluster.errors import RemoteError
from boardcluster.records import NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import HttpAnswer, http_get_all, rpc
from boardcluster.services.layout import PORTS
from boardcluster.services.provision.manager import PlainProcesses, ServiceManager, Systemd

__all__ = ["ask_boards", "firewall_is_whole"]

_DATANODES = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_MANAGERS = "/ws/v1/cluster/nodes"
_WAITING = "/ws/v1/cluster/apps?states=ACCEPTED"


def ask_boards(facts: Facts, remotes: Mapping[str, Remote]) -> Facts:
    """Add what the boards and their masters say; a board that does not answer is not an error.

    Args:
        facts: of a cluster with a specification.
        remotes: every board of it by name, as root.
    """
    spec, state = facts.declared, facts.state
    declared = {node.name: node for node in spec.nodes}
    boards, errors = each_node(
        declared, lambda name: _ask_board(declared[name], remotes[name], state)
    )
    master = (facts.running or spec).master.name  # a campaign may have it elsewhere
    up = state is not None and state.phase == "up" and master in boards
    return replace(
        facts,
        boards=tuple(boards.values()),
        lost=tuple(LostBoard(spec=declared[name], error=errors[name]) for name in errors),
        masters=_ask_masters(master, remotes[master]) if up else None,
    )


def _ask_board(node: NodeSpec, remote: Remote, state: LiveState | None) -> Board:
    facts = discover(remote, folder=node.folder)
    request = {"do": "inspect", "root": "/", "folder": facts.folder, "name": node.name}
    raw = rpc(remote, request, program="nodefacts")
    restarts = facts.service_manager == "systemd"
    details = _details(raw, dead=_dead_daemons(node.name, remote, state, restarts=restarts))
    return Board(spec=node, facts=facts, details=details)


def _dead_daemons(
    name: str, remote: Remote, state: LiveState | None, *, restarts: bool
) -> tuple[str, ...]:
    """Return the daemons that run no more; systemd may have started one again since."""
    known = {row.name: row.process for row in state.daemons if row.node == name} if state else {}
    if not known:
        return ()
    manager: ServiceManager = Systemd(remote) if restarts else PlainProcesses(remote)
    alive = manager.running(known)
    return tuple(daemon for daemon in known if daemon not in alive)


def _details(raw: Mapping[str, Any], *, dead: tuple[str, ...]) -> BoardDetails:
    said = raw["programs"]
    nft, getent = said["nft"], said["getent"]
    lines = getent["out"].splitlines() if getent and getent["status"] == 0 else []
    return BoardDetails(
        provisioned=raw["provisioned"],
        firewall=None if nft is None else nft["status"] == 0 and firewall_is_whole(nft["out"]),
        name_addresses=tuple(dict.fromkeys(line.split()[0] for line in lines if line.strip())),
        cluster_ids={path: _cluster_id(text) for path, text in raw["versions"].items()},
        login_id=raw["uid"],
        permissions={path: (row[0], row[1]) for path, row in raw["permissions"].items()},
        listening=tuple(_endpoint(text) for text in raw["listening"]),
        ssh_settings=_sshd_settings(said["sshd"]),
        accounts_with_password=tuple(raw["accounts"]),
        java=raw["java"],
        dead_daemons=dead,
    )


def _sshd_settings(said: Mapping[str, Any] | None) -> dict[str, str]:
    lines = said["out"].splitlines() if said and said["status"] == 0 else []
    rows = [line.partition(" ") for line in lines]
    return {name.lower(): value for name, _, value in rows if value}


def firewall_is_whole(listed: str) -> bool:
    """Return whether our table, as ``nft list`` prints it, has what closes a board.

    It drops all but what it names, and holds other accounts and guests of the board back. A table
    stays when its rules are flushed, or when somebody lets its chain accept everything.
    """
    words = " ".join(listed.split())
    return all(
        part in words
        for part in (
            "set members {",
            "hook input priority filter; policy drop;",
            "ip saddr @members tcp dport",
            "hook output priority filter; policy drop; meta skuid != {",
            "} ct direction original jump strangers",
            "hook forward priority filter; policy drop; ip saddr != @members ip daddr @members ct",
            "ip daddr @members tcp dport",
        )
    )


def _cluster_id(version: str) -> str:
    found = re.search(r"^clusterID=(\S+)", version, re.MULTILINE)
    return found[1] if found else ""


def _endpoint(text: str) -> tuple[str, int]:
    """Read an address as /proc/net/tcp writes it: words of 32 bits, each in the host's order.

    Every processor that the engines run on is little-endian.
    """
    address, _, port = text.partition(":")
    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
    if len(words) == 1:
        return ".".join(str(byte) for byte in words[0]), int(port, 16)
    whole = b"".join(words)
    if whole[:12] == b"\0" * 10 + b"\xff\xff":  # an IPv4 address on an IPv6 socket, as Java's
        return ".".join(str(byte) for byte in whole[12:]), int(port, 16)
    return "::" if not any(whole) else whole.hex(":", 2), int(port, 16)


def _ask_masters(name: str, remote: Remote) -> MasterAnswers:
    base = f"http://{name}"
    urls = [
        f"{base}:{PORTS['namenode-web']}{_DATANODES}",
        f"{base}:{PORTS['resourcemanager-web']}{_MANAGERS}",
        f"{base}:{PORTS['resourcemanager-web']}{_WAITING}",
    ]
    try:
        name_node, managers, waiting = http_get_all(remote, urls)
    except RemoteError:
        return MasterAnswers(live_datanodes=None, managers=None, waiting=None)
    beans = _document(name_node).get("beans") or []
    return MasterAnswers(
        live_datanodes=int(beans[0]["NumLiveDataNodes"]) if beans else None,
        managers=_managers(managers),
        waiting=_waiting(waiting),
    )


def _document(answer: HttpAnswer) -> dict[str, Any]:
    """Return what a daemon answered; nothing if it did not, or not in JSON."""
    try:
        value = answer.json() if answer.status == 200 else {}
    except RemoteError:
        value = {}
    return value if isinstance(value, dict) else {}


def _rows(answer: HttpAnswer, outer: str, inner: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the rows of a list of YARN's, which writes an empty one as null; None if silent."""
    document = _document(answer)
    if outer not in document:
        return None
    rows: Sequence[Mapping[str, Any]] = (document[outer] or {}).get(inner) or []
    return rows


def _managers(answer: HttpAnswer) -> tuple[NodeManagerState, ...] | None:
    rows = _rows(answer, "nodes", "node")
    return (
        None
        if rows is None
        else tuple(
            NodeManagerState(
                host=str(row.get("nodeHostName", row.get("id", ""))),
                state=str(row.get("state", "")),
                report=str(row.get("healthReport") or ""),
            )
            for row in rows
        )
    )


def _waiting(answer: HttpAnswer) -> tuple[WaitingJob, ...] | None:
    rows = _rows(answer, "apps", "app")
    return (
        None
        if rows is None
        else tuple(
            WaitingJob(
                id=str(row["id"]),
                name=str(row.get("name", "")),
                waited_seconds=float(row.get("elapsedTime", 0)) / 1000,
                diagnostics=str(row.get("diagnostics") or ""),
            )
            for row in rows
        )
    )
