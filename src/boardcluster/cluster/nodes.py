"""What every kind of node can do, so that what is above cannot tell boards from namespaces."""

from __future__ import annotations

from typing import Protocol

from boardcluster.cluster.state import LiveNode, LiveState
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import Remote

__all__ = ["Nodes"]


class Nodes(Protocol):
    """The nodes of one cluster: emulated, or boards."""

    def new_state(self, spec: ClusterSpec, *, identity: str) -> LiveState:
        """Return the state to record before anything is started."""
        ...

    def check(self, spec: ClusterSpec) -> None:
        """Check, changing nothing, that the nodes can exist or be reached.

        Raises:
            HostError, RemoteError: they cannot; says why.
        """
        ...

    def create(self, spec: ClusterSpec, state: LiveState) -> LiveState:
        """Make the nodes, or take note of them; return the state with the live nodes."""
        ...

    def remote_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to reach a live node as the user that daemons and jobs run as."""
        ...

    def admin_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to reach a live node as root."""
        ...

    def alive(self, state: LiveState) -> list[LiveNode]:
        """Return those of the nodes that exist, in the boot in which they were started."""
        ...

    def has_leftovers(self, state: LiveState) -> bool:
        """Whether anything that was started for the cluster still runs."""
        ...

    def destroy(self, state: LiveState) -> int:
        """End everything that was started for the cluster; return how many processes ended.

        Safe to repeat, and after a reboot.

        Raises:
            ClusterError: something could not be ended.
        """
        ...
