"""Look at a cluster: what of it runs, and what its masters say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node, raise_first
from boardcluster.cluster.nodes import Nodes
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.errors import ClusterError, RemoteError
from boardcluster.records import ClusterSpec, Security
from boardcluster.remote.node_rpc import ProcessView, processes
from boardcluster.services import lifecycle
from boardcluster.services.boards import current_daemons, only_looking
from boardcluster.services.declaration import read_spec
from boardcluster.services.java import find_java
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.operation import bare_layout, nodes_of
from boardcluster.services.pair import load_pair

__all__ = ["DaemonView", "Status", "status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonView:
    """A daemon as ``status`` shows it."""

    name: str
    """Its name."""
    node: str
    """Its node."""
    address: str
    """The node's address."""
    url: str
    """Its web page."""
    pid: int
    """Its process on the node."""
    alive: bool
    """Whether that process still runs."""
    resident_bytes: int
    """Resident memory, shared pages in full."""
    proportional_bytes: int
    """Resident memory, each shared page divided by its users."""
    log: str
    """Its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A cluster as ``status`` shows it."""

    phase: str
    """``down``, ``starting``, ``up``, ``degraded``, ``dead`` (its processes are gone) or
    ``unreachable`` (no board answers)."""
    daemons: tuple[DaemonView, ...]
    """Every daemon; empty when down."""
    health: Health | None
    """What the masters say; None unless the nodes are alive."""
    workers: int
    """Declared workers."""
    profile: str
    """Name of the profile."""
    engines: str
    """Id of the engine pair."""
    browsable: bool
    """Whether this machine's browser reaches the web pages."""
    kind: str
    """How the nodes exist."""
    security: Security
    """Who may reach the cluster."""
    unreachable: tuple[str, ...] = ()
    """Of each node that could not be asked, why."""
    page_hint: str = ""
    """How the web pages are opened; empty if this machine's browser opens them."""


def status(home: Path, *, cache: Path) -> Status:
    """Look at a cluster; changes nothing and needs no lock.

    Raises:
        SpecError: its specification is missing or wrong.
    """
    state = load_state(home)
    if state is None or not state.capabilities.over_ssh:
        return _seen(home, state, cache)
    with only_looking(home):
        return _seen(home, state, cache)


def _seen(home: Path, state: LiveState | None, cache: Path) -> Status:
    """Return what can be seen of a cluster whose state is recorded, or is not up."""
    running = home / "running.toml"
    spec = read_spec(running if state and running.exists() else home / "cluster.toml")

    nodes = nodes_of(home, state.kind if state is not None else spec.kind)
    hint = nodes.page_hint(state) if state is not None else ""

    def view(
        phase: str, daemons: tuple[DaemonView, ...] = (), health: Health | None = None
    ) -> Status:
        return Status(
            phase=phase,
            daemons=daemons,
            health=health,
            workers=len(spec.workers),
            profile=spec.profile,
            engines=spec.engines,
            browsable=state is not None and not hint,
            page_hint=hint,
            kind=spec.kind,
            security=spec.security,
            unreachable=tuple(silent.values()),
        )

    silent: dict[str, str] = {}
    if state is None:
        return view("down")
    # A node of this machine that is gone never comes back; a board may only be off for a while.
    if state.capabilities.on_this_machine and len(nodes.alive(state)) < max(1, len(state.nodes)):
        return view("dead")
    if state.capabilities.provisioned:
        state = replace(state, daemons=current_daemons(home, state))
    daemons, silent = _daemon_views(nodes, state)
    if daemons and not any(daemon.alive for daemon in daemons):
        asked_nobody = set(silent) == {daemon.node for daemon in daemons}
        return view("unreachable" if asked_nobody else "dead", daemons)
    if state.phase != "up":
        return view(state.phase, daemons)
    master = next(node for node in state.nodes if node.name == spec.master.name)
    try:
        remote = nodes.remote_of(master, state)
        health = lifecycle.health(_bare_layout(spec, state, cache), remote)
    except RemoteError:  # the master is gone, others are not
        return view("degraded", daemons)
    good = health.is_good(len(spec.workers)) and all(d.alive for d in daemons)
    return view("up" if good else "degraded", daemons, health)


def _bare_layout(spec: ClusterSpec, state: LiveState, cache: Path) -> Layout:
    """Return a layout for asking only."""
    if spec.capabilities.provisioned:
        return bare_layout(spec, state, cache=cache)
    java = find_java(load_pair(spec.engines), cache=cache)
    if java is None:
        raise ClusterError("the cluster's Java is gone", hint="run `boardcluster down`")
    return bare_layout(spec, state, cache=cache, java=java)


def _daemon_views(nodes: Nodes, state: LiveState) -> tuple[tuple[DaemonView, ...], dict[str, str]]:
    """Return the daemons, and why those nodes could not be asked that could not."""
    here = {
        node.name: [daemon for daemon in state.daemons if daemon.node == node.name]
        for node in state.nodes
    }
    asked = {node.name: node for node in state.nodes if here[node.name]}
    seen, errors = each_node(
        asked,
        lambda name: processes(
            nodes.remote_of(asked[name], state), [daemon.process for daemon in here[name]]
        ),
        at_once=ASKED_AT_ONCE,
    )
    raise_first({n: error for n, error in errors.items() if not isinstance(error, RemoteError)})
    # A node that does not answer runs nothing that counts.
    nothing = ProcessView(alive=False, resident_bytes=0, proportional_bytes=0)
    daemons = tuple(
        DaemonView(
            name=daemon.name,
            node=name,
            address=node.address,
            url=daemon.url,
            pid=daemon.process.pid,
            alive=view.alive,
            resident_bytes=view.resident_bytes,
            proportional_bytes=view.proportional_bytes,
            log=daemon.log,
        )
        for name, node in asked.items()
        for daemon, view in zip(
            here[name], seen.get(name, [nothing] * len(here[name])), strict=True
        )
    )
    return daemons, {name: error.message for name, error in errors.items()}
