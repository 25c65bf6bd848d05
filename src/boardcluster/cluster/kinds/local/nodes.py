"""This machine itself as the one node.

For containers, CI runners and wherever else neither root nor namespaces are to be had. Daemons
and jobs are processes of the user who runs boardcluster; daemons listen on the loopback address.
Nothing holds them together but the cluster's identity in the environment of each: the way to the
node puts it there, and YARN hands it on to every container. By it ``down`` finds all of them, also
after ``kill -9``.
"""

from __future__ import annotations

import os
import pwd
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boardcluster.cluster.processes import end_processes_of, leftover_processes
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveNode, LiveState, boot_id
from boardcluster.errors import HostError
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.local import LocalRemote
from boardcluster.spec.cluster import address_of

__all__ = ["LocalNodes", "check_machine", "user_name"]

_END_SECONDS = 10.0
_LOOKS = 3
_LOOK_AGAIN_SECONDS = 0.1


def user_name() -> str:
    """Return the name of the user who runs boardcluster.

    Raises:
        HostError: the user has none, as in a container that was started with a bare number; no
            Java program can log in to Hadoop then.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise HostError(
            f"the user ID {os.geteuid()} has no name on this machine, and Hadoop needs one",
            hint="run as a user listed in /etc/passwd; in a container, omit the option --user or "
            "add a line for that user to /etc/passwd",
        ) from error


def check_machine() -> None:
    """Check, changing nothing, that this machine can be a node.

    Raises:
        HostError: our user has no name, or the machine's own name has no address, without which
            no job can be submitted.
    """
    user_name()
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        raise HostError(
            f"this machine's own name, {name}, has no IPv4 address: {error}",
            hint=f'add it to /etc/hosts: echo "127.0.0.1 {name}" | sudo tee -a /etc/hosts',
        ) from error


class LocalNodes:
    """The one node of the local cluster with a state folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def new_state(self, spec: ClusterSpec, *, identity: str) -> LiveState:
        """Return a state without nodes; nothing is started with it."""
        return LiveState(
            identity=identity,
            boot_id=boot_id(),
            phase="starting",
            own_user=False,
            subnet=spec.network.subnet,
            kind=spec.kind,
        )

    def check(self, spec: ClusterSpec) -> None:
        """Check as ``check_machine`` does."""
        del spec
        check_machine()

    def create(self, spec: ClusterSpec, state: LiveState, needed: Sequence[Path] = ()) -> LiveState:
        """Make the node's folder; the node itself exists."""
        del needed
        name = spec.master.name
        folder = self._home / "nodes" / name
        folder.mkdir(parents=True, exist_ok=True)
        address = str(address_of(spec, name))
        node = LiveNode(name=name, address=address, pid=0, start_ticks=0, folder=str(folder))
        return replace(state, nodes=(node,))

    def remote_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way that marks every process with the cluster's identity."""
        return LocalRemote(node.name, prefix=("env", f"{IDENTITY_VARIABLE}={state.identity}"))

    def admin_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the same way: there is no root here unless we are."""
        return self.remote_of(node, state)

    def alive(self, state: LiveState) -> list[LiveNode]:
        """Return the node while something runs on it; the machine itself lives on."""
        return list(state.nodes) if self.has_leftovers(state) else []

    def has_leftovers(self, state: LiveState) -> bool:
        """Whether any process of this machine carries the cluster's identity."""
        return state.boot_id == boot_id() and bool(leftover_processes(state.identity))

    def destroy(self, state: LiveState) -> int:
        """End every marked process; one that is just starting shows its mark a moment later."""
        ended = 0
        for _ in range(_LOOKS):
            ended += end_processes_of(state.identity, within_seconds=_END_SECONDS)
            time.sleep(_LOOK_AGAIN_SECONDS)
        return ended

    def limiter(self, spec: ClusterSpec, state: LiveState) -> None:
        """Return None: nothing is limited."""
        del spec, state

    def page_hint(self, state: LiveState) -> str:
        """Return nothing: every browser of this machine reaches the loopback address."""
        del state
        return ""
