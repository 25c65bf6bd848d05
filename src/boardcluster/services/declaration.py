"""A cluster's declaration, with what this installation knows of engines, profiles and boards.

Apart from ``operation``, so that a command which only reads it does not load what starts clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from boardcluster.records import ClusterSpec, NodeSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import own_file_digests, profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.meters import MeterFacts
from boardcluster.twin.parts import catalog_parts

__all__ = ["own_part_digests", "read_spec"]


def read_spec(
    path: Path, *, meter_kinds: Mapping[str, MeterFacts] | None = None, with_parts: bool = True
) -> ClusterSpec:
    """Load a ``cluster.toml``.

    Args:
        path: the file.
        meter_kinds: the kinds of power meters; None leaves the options of meters unchecked.
        with_parts: whether boards and their parts are looked up. Otherwise their files may be gone
            or say something else by now, and a node with a board must say its cores and memory.

    Raises:
        SpecError: it is wrong, missing or unreadable.
    """
    return load_cluster(
        path,
        engine_pairs=pair_ids(),
        profiles=profile_names(),
        meter_kinds=meter_kinds,
        parts=catalog_parts() if with_parts else None,
        check_setting=check_setting,
    )


def own_part_digests(nodes: Iterable[NodeSpec]) -> dict[str, str]:
    """Return the SHA-256 of each user's own file that says what boards have.

    These are boards, media, power supplies and cooling; empty for a file that is gone. Of parts of
    the catalog there are none.
    """
    twins = [node.twin for node in nodes if node.twin is not None]
    return own_file_digests(
        name for twin in twins for name in (twin.board, twin.medium, twin.supply, twin.cooling)
    )
