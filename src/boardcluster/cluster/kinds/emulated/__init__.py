"""Nodes as Linux namespaces on this machine."""

from __future__ import annotations

from boardcluster.cluster.kinds.emulated.nodes import EmulatedNodes
from boardcluster.cluster.nodes import NodeKind, Wish
from boardcluster.records import ClusterSpec
from boardcluster.spec import propose_cluster

__all__ = ["KIND"]

_USER = "root"
"""Inside its namespaces every node runs as root, with or without root outside."""


def _propose(wish: Wish) -> ClusterSpec:
    return propose_cluster(
        name=wish.name,
        workers=wish.workers,
        host_cores=wish.cores,
        host_available_bytes=wish.memory_bytes,
        engines=wish.engines,
        profile=wish.profile,
        subnet=wish.subnet,
    )


KIND = NodeKind(nodes=EmulatedNodes, user=lambda: _USER, propose=_propose)
