"""What is asked of living nodes, so that what is above cannot tell one kind from another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from boardcluster.cluster.limits.limiter import Limiter
from boardcluster.cluster.state import LiveNode, LiveState
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import Remote

__all__ = ["NodeKind", "Nodes", "Wish"]


class Nodes(Protocol):
    """The nodes of one cluster."""

    def new_state(self, spec: ClusterSpec, *, identity: str) -> LiveState:
        """Return the state to record before anything is started."""

    def check(self, spec: ClusterSpec) -> None:
        """Check that the nodes can exist or be reached; claim those that others could use, too.

        Raises:
            HostError, RemoteError: they cannot; says why.
        """

    def create(self, spec: ClusterSpec, state: LiveState, needed: Sequence[Path] = ()) -> LiveState:
        """Make the nodes, or take note of them; return the state with the live nodes.

        Args:
            spec: the cluster.
            state: what was recorded of it.
            needed: folders of this machine that daemons and jobs read, if they see its files.
        """

    def remote_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to reach a live node as the user that daemons and jobs run as."""

    def admin_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to reach a live node as root."""

    def alive(self, state: LiveState) -> list[LiveNode]:
        """Return those of the nodes that exist, in the boot in which they were started."""

    def has_leftovers(self, state: LiveState) -> bool:
        """Whether anything that was started for the cluster still runs."""

    def destroy(self, state: LiveState) -> int:
        """End everything that was started for the cluster; return how many processes ended.

        Safe to repeat, and after a reboot.

        Raises:
            ClusterError: something could not be ended.
        """

    def limiter(self, spec: ClusterSpec, state: LiveState) -> Limiter | None:
        """Return what holds live nodes to their limits; None if nothing does.

        Raises:
            HostError: the kernel's means for it are gone.
        """

    def page_hint(self, state: LiveState) -> str:
        """Say how the web pages are opened; empty if this machine's browser opens them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What ``boardcluster init`` was asked for."""

    name: str
    """Name of the cluster."""
    engines: str
    """Id of the engine pair."""
    profile: str
    """Name of the engine configuration."""
    workers: int
    """Number of workers beside the master."""
    subnet: str
    """The cluster's IPv4 network in CIDR form."""
    cores: int
    """Cores of this machine that we may use."""
    memory_bytes: int
    """Memory of this machine that is available now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """The living part of a kind of node; what it declares is in its ``kind.toml``."""

    nodes: Callable[[Path], Nodes]
    """Returns the nodes of the cluster with a state folder."""
    user: Callable[[LiveState], str]
    """Returns the user that daemons and jobs run as, in Hadoop's eyes; raises HostError if that
    user has no name."""
    propose: Callable[[Wish], ClusterSpec] | None
    """Returns a cluster that fits this machine; None where hosts have to be named."""
