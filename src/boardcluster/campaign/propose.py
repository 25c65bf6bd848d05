"""A cluster that fits this machine, and the commented file that declares it."""

from __future__ import annotations

from pathlib import Path

from boardcluster.capabilities import every_kind
from boardcluster.cluster.cores import available_cores
from boardcluster.cluster.kinds import load_kind
from boardcluster.cluster.nodes import Wish
from boardcluster.errors import UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import available_memory_bytes
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.spec.template import render_cluster

__all__ = ["propose", "write_spec"]


def propose(
    *, name: str, workers: int, profile: str, engines: str, subnet: str, kind: str = ""
) -> ClusterSpec:
    """Return a cluster that fits this machine.

    Raises:
        UsageError: there is no such profile, engine pair or kind of node, or nodes of that kind
            have to be named.
        CapacityError: this machine cannot hold that many workers.
    """
    load_pair(engines)
    chosen = load_kind(kind or next(iter(every_kind())))
    if chosen.propose is None:
        raise UsageError(f"nodes of the kind {kind} must be named", hint="name them with --hosts")
    spec = chosen.propose(
        Wish(
            name=name,
            engines=engines,
            profile=profile,
            workers=workers,
            subnet=subnet,
            cores=available_cores(),
            memory_bytes=available_memory_bytes(),
        )
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
