"""Nodes as machines of their own, reached by SSH."""

from __future__ import annotations

from boardcluster.cluster.kinds.boards.nodes import SERVICE_USER, board_nodes
from boardcluster.cluster.nodes import NodeKind

__all__ = ["KIND"]

KIND = NodeKind(nodes=board_nodes, user=lambda _state: SERVICE_USER, propose=None)
