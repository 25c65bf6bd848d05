"""A cluster that fits this machine, and the commented file that declares it."""

from __future__ import annotations

import os
from pathlib import Path

from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import available_memory_bytes
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.spec import propose_cluster, render_cluster

__all__ = ["propose", "write_spec"]


def propose(*, name: str, workers: int, profile: str, engines: str, subnet: str) -> ClusterSpec:
    """Return a cluster that fits this machine.

    Raises:
        UsageError: there is no such profile or engine pair.
        CapacityError: this machine cannot hold that many workers.
    """
    load_pair(engines)
    spec = propose_cluster(
        name=name,
        workers=workers,
        host_cores=os.cpu_count() or 1,
        host_available_bytes=available_memory_bytes(),
        engines=engines,
        profile=profile,
        subnet=subnet,
    )
    build_profile(profile, spec)
    return spec


def write_spec(spec: ClusterSpec, path: Path) -> None:
    """Write the commented file.

    Raises:
        HostError: it cannot be written.
    """
    make_folder(path.parent)
    with writing(path):
        path.write_text(render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names()))
