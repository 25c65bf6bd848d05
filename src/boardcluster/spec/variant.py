"""Variants of a cluster: fewer workers, another profile, settings or master placement. Pure.

Campaigns measure the same nodes as several variants (Lee and Park 2026: 1, 2, 4 and 8 nodes; Lee,
Oh and Park 2021, section VI-C: master separate or combined). Each variant with other DataNodes has
its own HDFS, because blocks on a worker that is left out would be missing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from boardcluster.errors import UsageError
from boardcluster.factors import settings_words
from boardcluster.records import ClusterSpec, MasterPlacement, MeterSpec, Role
from boardcluster.units import format_count

__all__ = ["DECLARED_STORAGE", "ClusterVariant", "apply_variant", "storage_name", "variant_words"]

DECLARED_STORAGE = "data"
"""Name of the nodes' data folders where all declared nodes take part as declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVariant:
    """What a trial asks of the cluster as a whole."""

    profile: str
    """The engine configuration."""
    workers: int
    """How many of the workers take part: the first ones of ``cluster.toml``."""
    master: MasterPlacement
    """Where the master runs."""
    settings: tuple[tuple[str, str], ...] = ()
    """Properties that daemons read, sorted; they win over the cluster's."""


def apply_variant(spec: ClusterSpec, variant: ClusterVariant) -> ClusterSpec:
    """Return a variant of the cluster.

    Raises:
        UsageError: it has too few workers, or no node of its own for the master.
    """
    available = spec.workers_beside(variant.master)
    if not 1 <= variant.workers <= len(available):
        raise UsageError(
            f"{format_count(variant.workers, 'worker')} with the master {variant.master}; the "
            f"cluster {spec.name} has {format_count(len(available), 'worker')} for that",
            hint="change `workers` in the campaign, or add workers to cluster.toml",
        )
    chosen = available[: variant.workers]
    if _is_combined(spec, variant.master):
        first = replace(chosen[0], roles=frozenset({Role.MASTER, Role.WORKER}))
        nodes = (first, *chosen[1:])
    else:
        nodes = (replace(spec.master, roles=frozenset({Role.MASTER})), *chosen)
    return replace(
        spec,
        profile=variant.profile,
        settings=spec.settings | dict(variant.settings),
        nodes=nodes,
        meters=_meters(spec, {node.name for node in nodes}),
        power_models=tuple(
            model for model in spec.power_models if any(node.name == model.node for node in nodes)
        ),
    )


def _meters(spec: ClusterSpec, names: Collection[str]) -> tuple[MeterSpec, ...]:
    """Return the meters that measure what takes part.

    A machine that takes no part still draws power, so a meter that has it too does not measure the
    variant. An emulated node that takes no part does not exist.
    """
    if not spec.capabilities.emulated:
        return tuple(row for row in spec.meters if set(names).issuperset(row.nodes))
    kept = (
        replace(row, nodes=tuple(name for name in row.nodes if name in names))
        for row in spec.meters
    )
    return tuple(row for row in kept if row.nodes or row.switch)


def _is_combined(spec: ClusterSpec, master: MasterPlacement) -> bool:
    if master is MasterPlacement.DECLARED:
        return Role.WORKER in spec.master.roles
    return master is MasterPlacement.COMBINED


def storage_name(spec: ClusterSpec, variant: ClusterVariant) -> str:
    """Return the name of the nodes' data folders: one per set of DataNodes and master placement."""
    applied = apply_variant(spec, variant)
    if applied.nodes == spec.nodes:
        return DECLARED_STORAGE
    combined = "-combined" if Role.WORKER in applied.master.roles else ""
    return f"data-{variant.workers}w{combined}"


def variant_words(spec: ClusterSpec, variant: ClusterVariant) -> str:
    """Say how a variant differs from the declared cluster; empty if it does not."""
    applied = apply_variant(spec, variant)
    words = []
    if len(applied.workers) != len(spec.workers):
        words.append(f"{len(applied.workers)} of {len(spec.workers)} workers")
    if variant.profile != spec.profile:
        words.append(f"profile {variant.profile}")
    changed = {k: v for k, v in applied.settings.items() if spec.settings.get(k) != v}
    if changed:
        words.append(settings_words(changed))
    if applied.master.roles != spec.master.roles:
        combined = Role.WORKER in applied.master.roles
        words.append("the master on a worker" if combined else "the master on a node of its own")
    return ", ".join(words)
