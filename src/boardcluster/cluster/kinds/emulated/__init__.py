"""Nodes as Linux namespaces on this machine."""

from __future__ import annotations

from boardcluster.cluster.kinds.emulated.nodes import EmulatedNodes
from boardcluster.cluster.kinds.emulated.service_user import NAME
from boardcluster.cluster.nodes import NodeKind, Wish
from boardcluster.cluster.state import LiveState
from boardcluster.records import ClusterSpec
from boardcluster.spec.template import propose_cluster

__all__ = ["KIND"]

_OWN_ROOT = "root"
"""What a user is called in a user namespace of its own."""


def _user(state: LiveState) -> str:
    return NAME if state.service_uid else _OWN_ROOT


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


KIND = NodeKind(nodes=EmulatedNodes, user=_user, propose=_propose)
