"""A cluster's declaration, with what this installation knows of engines, profiles and boards.

Apart from ``operation``, so that a command which only reads it does not load what starts clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from boardcluster.records import ClusterSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.meters import MeterFacts
from boardcluster.twin.parts import catalog_parts

__all__ = ["read_spec"]


def read_spec(path: Path, *, meter_kinds: Mapping[str, MeterFacts] | None = None) -> ClusterSpec:
    """Load a ``cluster.toml``; without ``meter_kinds`` the options of meters are not checked.

    Raises:
        SpecError: it is wrong, missing or unreadable.
    """
    return load_cluster(
        path,
        engine_pairs=pair_ids(),
        profiles=profile_names(),
        meter_kinds=meter_kinds,
        parts=catalog_parts(),
        check_setting=check_setting,
    )
