"""Where everything is on a board, and how boards are made ready before their daemons start."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from boardcluster.cluster.discovery import discover, require_nodes, skews, vague_clocks
from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node, raise_first
from boardcluster.cluster.kinds.boards.nodes import (
    SERVICE_USER,
    BoardNodes,
    board_nodes,
    known_hosts_of,
)
from boardcluster.cluster.owner import Owner
from boardcluster.cluster.state import Daemon, LiveNode, LiveState
from boardcluster.errors import ClusterError, HostError, StoreError, UnreachableError
from boardcluster.fetch.cache import Progress, write_atomically, writing
from boardcluster.records import ClusterSpec, NodeFacts, NodeSpec, Security
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.services import mpi
from boardcluster.services.board_archives import BoardArchives
from boardcluster.services.disk_space import FULL_PERCENT
from boardcluster.services.install import Installation
from boardcluster.services.java import Java
from boardcluster.services.jobs import jobs_jar
from boardcluster.services.layout import PORTS, Layout
from boardcluster.services.pair import EnginePair
from boardcluster.services.profile import Profile
from boardcluster.services.provision.desired import (
    INSTALLED_FOLDER,
    JAVA_LINK,
    OWN,
    desired,
    ground_of,
)
from boardcluster.services.provision.manager import PlainProcesses, ServiceManager, Systemd
from boardcluster.services.provision.node.guards import LOADS_FIREWALL
from boardcluster.services.provision.provisioning import (
    Change,
    plan,
    provision,
    uninstall,
    unmounted,
)
from boardcluster.services.provision.resources import Resource, Tree, tree_of
from boardcluster.services.provision.units import render_units
from boardcluster.store import from_json, to_json

__all__ = [
    "INSTALLED",
    "MPI_PACKAGES",
    "NETPIPE_PACKAGES",
    "WEB_PAGES",
    "Ready",
    "board_layout",
    "board_owners",
    "boards_free_bytes",
    "boards_were_reached",
    "current_daemons",
    "end_boards",
    "hold_tunnel",
    "load_facts",
    "make_ready",
    "managers_of",
    "only_looking",
    "release_unused_boards",
    "require_own_boards",
    "take_back",
    "take_over_boards",
    "wipe_boards",
]

INSTALLED = Path(INSTALLED_FOLDER)
"""Folder on every board of the engines, the jobs and the link to its Java; root's."""

WEB_PAGES = {
    name: PORTS[f"{name}-web"]
    for name in ("namenode", "resourcemanager", "jobhistory", "sparkhistory")
}
"""The masters' web pages: name and port."""

MPI_PACKAGES = ("gcc", "libc6-dev", "hpcc", "openmpi-bin")
"""Debian packages of what the workloads of Open MPI run, and of what HPL is built with."""

NETPIPE_PACKAGES = ("netpipe-tcp", "netpipe-openmpi")
"""Debian packages of the workload netpipe, which Ubuntu 24.04 does not have."""

_LOOK_SECONDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Boards that can start their daemons."""

    facts: dict[str, NodeFacts]
    """What was found on each, by name."""
    java: str
    """Description of the Java of all; of several, joined by `` + ``."""
    changes: tuple[Change, ...]
    """What was done to them."""
    archived: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By board, the names of the class-data archives that it has."""
    archive_folders: tuple[Path, ...] = ()
    """Where this machine keeps them: a folder for each kind of board."""


def board_layout(
    spec: ClusterSpec, profile: Profile, engines: Installation, state: LiveState
) -> Layout:
    """Return the layout of a cluster of boards."""
    # Each board has a Java of its own behind one link, so no version stands here.
    java = Java(program=Path(JAVA_LINK) / "bin" / "java", feature=0, version="", vendor="")
    return Layout(
        spec=spec,
        profile=profile,
        engines=replace(engines, on_nodes=INSTALLED / "engines" / engines.pair.id),
        java=java,
        archives=INSTALLED / "archives",
        archived={node.name: frozenset(node.archived) for node in state.nodes},
        folders={node.name: node.folder for node in state.nodes},
        user=SERVICE_USER,
        storage=state.storage,
        jobs_jar=str(INSTALLED / "jobs.jar"),
    )


def boards_free_bytes(
    home: Path, spec: ClusterSpec, *, of: Collection[str], may_lack: bool = False
) -> tuple[int, Counter[str]]:
    """Return the space for data on the workers together, and what DataNodes hold by storage.

    Blocks are spread evenly, so the worker with the least space decides for all. Free is what is
    above the share at which YARN gives a node up.

    Args:
        home: the cluster's state folder.
        spec: the cluster.
        of: the names of the workers that are needed; the others are not asked.
        may_lack: whether some of these may be out of reach, which then decide nothing.

    Raises:
        RemoteError: a worker cannot be asked.
    """
    nodes = board_nodes(home)
    rows = {node.name: node for node in spec.workers if node.name in of}

    def one(name: str) -> tuple[int, Counter[str]]:
        remote, folder = nodes.admin(rows[name]), rows[name].folder
        place = remote.run(["sh", "-c", _NEAREST, "sh", folder]).text.strip()
        shown = remote.run(["df", "--block-size=1", "--output=size,avail", place]).text
        size, available = (int(word) for word in shown.splitlines()[1].split())
        data = remote.run(["sh", "-c", f"du -sb {folder}/data*/datanode"], check=False)
        held = Counter({row[2]: int(row[1]) for row in _HELD.finditer(data.text)})
        return max(0, int(available - size * (1 - FULL_PERCENT / 100))), held

    seen, errors = each_node(rows, one)
    away = {name for name, error in errors.items() if isinstance(error, UnreachableError)}
    if not (may_lack and seen and away == errors.keys()):
        raise_first(errors)
    held = sum((found for _, found in seen.values()), Counter[str]())
    return min(free for free, _ in seen.values()) * len(spec.workers), held


_HELD = re.compile(r"^(\d+)\t.*/(data[^/\n]*)/datanode$", re.MULTILINE)
"""What ``du`` says of the blocks of a storage."""

_NEAREST = 'place=$1; until [ -d "$place" ]; do place=${place%/*}; done; echo "${place:-/}"'
"""The folder, or the nearest one above it that exists."""


def hold_tunnel(home: Path, spec: ClusterSpec, *, pages: Mapping[str, int], socks: int) -> None:
    """Open the masters' pages on ports of this machine until interrupted.

    Pages are named as in ``WEB_PAGES``. A SOCKS proxy is opened, too, unless its port is 0.

    Raises:
        RemoteError: the master cannot be reached.
    """
    ports = {here: WEB_PAGES[name] for name, here in pages.items()}
    board_nodes(home).hold_tunnel(spec.master, ports=ports, socks=socks)


def boards_were_reached(home: Path) -> bool:
    """Whether the cluster of a home ever reached a board."""
    return known_hosts_of(home).exists()


def wipe_boards(home: Path, spec: ClusterSpec) -> None:
    """End what still runs on every board, and delete HDFS, logs and configuration there.

    What is installed stays.

    Raises:
        LockedError: a board is another driver's; nothing was deleted.
        HostError: a board's disk is not mounted; nothing was deleted there.
        ClusterError: something does not end; nothing was deleted there.
        RemoteError: a board cannot be reached.
    """
    nodes = board_nodes(home)
    nodes.require_own(spec.nodes)
    rows = {node.name: node for node in spec.nodes}

    def one(name: str) -> None:
        admin, folder = nodes.admin(rows[name]), rows[name].folder
        if folder in unmounted(admin):
            raise HostError(
                f"{name}: {folder} was on a disk of its own, which is not mounted now; what is on "
                "it was not deleted",
                hint=f"mount it and run the command again, or add --without {name}",
            )
        nodes.end_on(rows[name])
        # No path of a folder needs quoting; see spec/checks.py. Others may keep files in it, too.
        ours = [f"{folder}/{part}" for part in OWN]
        admin.run(["sh", "-c", f"rm -rf -- {' '.join(ours)}"])

    _, errors = each_node(rows, one)
    raise_first(errors)
    nodes.release(spec.nodes)


def require_own_boards(home: Path, boards: Sequence[NodeSpec | LiveNode]) -> None:
    """Refuse to touch boards that another driver claimed.

    Raises:
        LockedError: names whose they are.
    """
    board_nodes(home).require_own(boards)


def board_owners(home: Path, boards: Sequence[NodeSpec]) -> dict[str, Owner]:
    """Return who else claimed boards, by name."""
    return board_nodes(home).owners(boards)


def release_unused_boards(home: Path) -> None:
    """Give up boards that were claimed for a start which ended before it changed anything."""
    board_nodes(home).release_unused()


def take_over_boards(home: Path, boards: Sequence[NodeSpec]) -> None:
    """Make boards this home's, whosever they are, and end what runs there; HDFS stays.

    Raises:
        RemoteError: a board cannot be reached.
    """
    board_nodes(home).take_over(boards)


def _facts_file(home: Path) -> Path:
    return home / "nodes.json"


def load_facts(home: Path) -> dict[str, NodeFacts]:
    """Return what was found on the boards when they were last made ready; none if they never were.

    Raises:
        StoreError: the file is damaged.
    """
    try:
        raw = json.loads(_facts_file(home).read_text())
        return {name: from_json(NodeFacts, row) for name, row in raw.items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, StoreError, ValueError) as error:
        raise StoreError(
            f"{_facts_file(home)} is damaged: {error}", hint="delete it and run `boardcluster up`"
        ) from error


def _look(nodes: BoardNodes, rows: Sequence[NodeSpec]) -> dict[str, NodeFacts]:
    """Look at boards as root.

    Raises:
        HostError: one of them cannot be a node, or has another address than the declared one.
        ClusterError: two clocks are too far apart, or one is not known.
    """
    specs = {node.name: node for node in rows}
    facts, errors = each_node(
        specs, lambda name: discover(nodes.admin(specs[name]), folder=specs[name].folder)
    )
    raise_first(errors)
    require_nodes(facts, hint="fix that, or leave the node out")
    if moved := [words for row in rows if (words := _moved(row, facts[row.name]))]:
        raise HostError(
            "; ".join(moved),
            hint="give each board that address (a fixed lease in the router, or a static one), or "
            "correct its `address` in cluster.toml",
        )
    if vague := vague_clocks(facts):
        raise ClusterError(
            "; ".join(vague.values()),
            hint="wait until boards and network have less to do, and run the command again; "
            "`ping` shows how long the network takes",
        )
    if apart := skews(facts):
        raise ClusterError(
            "; ".join(apart),
            hint="on each board, and on this machine: sudo timedatectl set-ntp true, and wait "
            "until `timedatectl` says that the clock is synchronized",
        )
    return facts


def _moved(node: NodeSpec, facts: NodeFacts) -> str:
    """Say that a board has other addresses than the declared one; empty if it may have that."""
    held = [one.partition("/")[0] for link in facts.links for one in link.addresses]
    # Addresses that hold on one link only are not among those that were found.
    if not held or node.address in held or ip_address(node.address).is_link_local:
        return ""
    return (
        f"{node.name}: {node.address}, its address in cluster.toml, is on no interface; it has "
        f"{', '.join(held)}"
    )


def make_ready(
    home: Path,
    declared: ClusterSpec,
    layout: Layout,
    *,
    cache: Path | None = None,
    dry_run: bool = False,
    deep: bool = False,
    progress: Progress,
) -> Ready:
    """Install, configure and close what the daemons of a cluster need; nothing if all is there.

    Args:
        home: the cluster's state folder.
        declared: the cluster as ``cluster.toml`` says, whose nodes may reach each other.
        layout: the cluster as it is to run, perhaps with fewer nodes.
        cache: the driver's folder of fetched engines, for class-data archives where the profile
            has them; None for daemons that run already, with what they have.
        dry_run: only find out what would change.
        deep: read every byte of what was copied, not only names and sizes.
        progress: told what takes long.

    Raises:
        RemoteError: a board cannot be reached, or refuses us.
        HostError: a board cannot be a node, or lacks space.
        InstallError: something could not be installed; what was stays recorded.
    """
    nodes = board_nodes(home)
    progress("inspecting the boards", 0, 0)
    facts = _look(nodes, layout.spec.nodes)
    trees = _trees(layout)
    remotes = {node.name: nodes.admin(node) for node in layout.spec.nodes}
    archives = _archives(layout, remotes, trees, cache, progress)
    if archives:
        layout = replace(layout, archived=archives.expected())
    wanted = _wanted(declared, layout, facts, trees)
    # All are asked before any is changed: a full disk on one must not leave the others half made.
    planned, errors = each_node(wanted, lambda name: plan(remotes[name], wanted[name], deep=deep))
    raise_first(errors)
    if dry_run:
        changes = [row for rows in planned.values() for row in rows]
        changes += archives.planned() if archives else []
        return Ready(facts=facts, java="", changes=tuple(changes))

    _say_closed(planned, progress)
    nodes.use_claims()
    change = partial(provision, remotes, deep=deep, said=lambda words: progress(words, 0, 0))
    changes = change({name: wanted[name] for name, rows in planned.items() if rows})
    if changes:
        facts = _look(nodes, layout.spec.nodes)
    if archives:
        if changes:
            archives.look()
        there = archives.provide(wanted, deep=deep)
        other = [name for name in there if there[name] != layout.archived.get(name)]
        layout = replace(layout, archived=there)
        wanted = _wanted(declared, layout, facts, trees)
        changes += archives.changes + change({name: wanted[name] for name in other})
    with writing(_facts_file(home)):
        kept = load_facts(home) | facts
        write_atomically(_facts_file(home), json.dumps(to_json(kept), indent=1))
    return Ready(
        facts=facts,
        java=_java_words(facts, layout.engines.pair),
        changes=tuple(changes),
        archived=layout.archived,
        archive_folders=archives.folders if archives else (),
    )


def _say_closed(planned: Mapping[str, Sequence[Change]], progress: Progress) -> None:
    """Say what the firewall will close, before it does: of boards with the same words once."""
    closed: dict[str, list[str]] = {}
    for name, rows in planned.items():
        for row in rows:
            if row.words.startswith(LOADS_FIREWALL):
                closed.setdefault(row.words, []).append(name)
    for words, names in closed.items():
        progress(f"{', '.join(names)}: {words}", 0, 0)


def _archives(
    layout: Layout,
    remotes: Mapping[str, Remote],
    trees: Sequence[Tree],
    cache: Path | None,
    progress: Progress,
) -> BoardArchives | None:
    """Return the class-data archives of boards as they are now, if they are to be provided."""
    if cache is None or not layout.profile.uses_archives:
        return None
    engines = [tree for tree in trees if tree.path != layout.jobs_jar]
    archives = BoardArchives(layout, remotes, engines, cache=cache, progress=progress)
    archives.look()
    return archives


def _wanted(
    declared: ClusterSpec, layout: Layout, facts: Mapping[str, NodeFacts], trees: Sequence[Tree]
) -> dict[str, list[Resource]]:
    """Return what each board is to have."""
    pair = layout.engines.pair
    wanted = {}
    for node in layout.spec.nodes:
        ground = ground_of(
            facts[node.name], java_oldest=pair.java_oldest, java_newest=pair.java_newest
        )
        wanted[node.name] = desired(
            declared,
            node,
            ground,
            packages=MPI_PACKAGES,
            optional=NETPIPE_PACKAGES,
            trees=trees,
            units=render_units(layout, node, closed=declared.security is Security.CLOSED),
        )
    return wanted


def _java_words(facts: Mapping[str, NodeFacts], pair: EnginePair) -> str:
    found = []
    for row in facts.values():
        home = ground_of(row, java_oldest=pair.java_oldest, java_newest=pair.java_newest).java_home
        found += [
            f"{java.vendor or 'OpenJDK'} {java.version} {row.architecture}"
            for java in row.javas
            if java.home == home
        ]
    return " + ".join(dict.fromkeys(found))


def _trees(layout: Layout) -> list[Tree]:
    """Return what is copied to boards, each to where the layout says that boards have it."""
    engines = layout.engines
    listed = json.loads((engines.folder / "manifest.json").read_text())
    trees = []
    # Two parts, and not the manifest, which holds time stamps.
    for part, place in (("hadoop", engines.hadoop_jars), ("spark", engines.spark_home)):
        prefix = f"{part}/"
        sums = {n.removeprefix(prefix): row[2] for n, row in listed.items() if n.startswith(prefix)}
        trees.append(tree_of(engines.folder / part, str(place), sums=sums))
    return [*trees, tree_of(jobs_jar(), layout.jobs_jar)]


def managers_of(
    facts: Mapping[str, NodeFacts], remotes: Mapping[str, Remote], admins: Mapping[str, Remote]
) -> dict[str, ServiceManager]:
    """Return what keeps the daemons of each node: systemd where it runs, else nobody.

    ``facts`` are of boards only; ``remotes`` are the nodes as the user that daemons run as.
    """
    return {
        name: Systemd(admins[name])
        if name in facts and facts[name].service_manager == "systemd"
        else PlainProcesses(remote)
        for name, remote in remotes.items()
    }


def only_looking(home: Path) -> contextlib.AbstractContextManager[None]:
    """Wait for boards no longer than somebody who only looks would, while the block looks."""
    return board_nodes(home).only_looking(_LOOK_SECONDS)


def current_daemons(home: Path, state: LiveState) -> tuple[Daemon, ...]:
    """Return the daemons of a cluster, those that systemd has started again as they run now.

    A board that cannot be reached keeps what was recorded.
    """
    nodes = board_nodes(home)
    facts = load_facts(home)
    rows = {
        node.name: node
        for node in state.nodes
        if node.name in facts and facts[node.name].service_manager == "systemd"
    }

    def one(name: str) -> dict[str, ProcessRef]:
        known = {d.name: d.process for d in state.daemons if d.node == name}
        return Systemd(nodes.admin_of(rows[name], state)).running(known)

    now, _ = each_node(rows, one, at_once=ASKED_AT_ONCE)
    return tuple(
        replace(daemon, process=now.get(daemon.node, {}).get(daemon.name, daemon.process))
        for daemon in state.daemons
    )


def end_boards(home: Path, state: LiveState) -> int:
    """End everything of a cluster on its boards; return how many processes were ended.

    Raises:
        ClusterError: a board cannot be reached, or something does not end.
    """
    nodes = board_nodes(home)
    rows = {node.name: node for node in state.nodes}

    ended = nodes.destroy(state)
    # Here lies, too, what a driver that was killed had lent to a node, or a job of its.

    def clear(name: str) -> None:
        admin = nodes.admin_of(rows[name], state)
        temporary = str(Path(rows[name].folder, "tmp"))
        mpi.delete_left(admin, temporary)
        admin.run(["rm", "-rf", "--", temporary])

    each_node(rows, clear)
    return ended


def take_back(
    home: Path, boards: Sequence[NodeSpec], *, keep_data: bool, dry_run: bool, progress: Progress
) -> dict[str, list[str]]:
    """End what runs on boards, and take back what was installed; return in words what, by node.

    Raises:
        LockedError: a board is another driver's; nothing was changed.
        RemoteError: a board cannot be reached.
        ClusterError: something does not end there.
        InstallError: something could not be taken back.
    """
    nodes = board_nodes(home)
    if not dry_run:
        nodes.require_own(boards)
    rows = {node.name: node for node in boards}
    progress(f"checking what was installed on {len(rows)} boards", 0, 0)

    def one(name: str) -> list[Change]:
        if not dry_run:
            nodes.end_on(rows[name])
        return uninstall(nodes.admin(rows[name]), keep_data=keep_data, dry_run=dry_run)

    done, errors = each_node(rows, one)
    if errors:  # what was done elsewhere must not go unsaid
        for name, changes in done.items():
            progress(f"{name}: changes: {len(changes)}", 0, 0)
    raise_first(errors)
    if not (keep_data or dry_run):
        nodes.release(boards)
    return {
        name: [f"{change.words}{f' ({change.remark})' if change.remark else ''}" for change in rows]
        for name, rows in done.items()
    }
