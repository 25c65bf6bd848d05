"""This machine itself as the one node."""

from __future__ import annotations

from boardcluster.cluster.kinds.local.nodes import LocalNodes, user_name
from boardcluster.cluster.kinds.local.propose import propose_local
from boardcluster.cluster.nodes import NodeKind

__all__ = ["KIND"]

KIND = NodeKind(nodes=LocalNodes, user=lambda _state: user_name(), propose=propose_local)
