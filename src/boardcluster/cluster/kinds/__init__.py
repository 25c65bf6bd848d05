"""The kinds of nodes: one folder for each, with its ``kind.toml`` and its ``KIND``."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import cast

from boardcluster.capabilities import capabilities_of
from boardcluster.cluster.nodes import NodeKind

__all__ = ["load_kind"]


@functools.cache
def load_kind(name: str) -> NodeKind:
    """Return the living part of a kind of node.

    Raises:
        UsageError: there is no such kind.
    """
    return cast("NodeKind", import_module(f"{__name__}.{capabilities_of(name).kind}").KIND)
