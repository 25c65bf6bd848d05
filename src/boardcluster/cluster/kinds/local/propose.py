"""Propose a cluster of this machine alone."""

from __future__ import annotations

from boardcluster.cluster.cores import available_cores
from boardcluster.cluster.nodes import Wish
from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import ClusterSpec, NetworkSpec, NodeSpec, Role, Security
from boardcluster.spec.checks import check_cluster_name
from boardcluster.spec.cluster import LOOPBACK_ADDRESS, LOOPBACK_NAME, LOOPBACK_SUBNET
from boardcluster.units import GIB, MIB, format_bytes

__all__ = ["propose_local"]

_USABLE_PERCENT = 90
_MEMORY_BYTES_MIN = 3 * GIB
"""What a node needs that is master and worker: 1.5 GiB for either, as on emulated nodes."""

_MEMORY_BYTES_MAX = 16 * GIB
"""More would only make the engines' own memory larger than on any board."""

_MEMORY_STEP_BYTES = 64 * MIB


def propose_local(wish: Wish) -> ClusterSpec:
    """Propose this machine as master and worker, with 90 % of the memory that is available now.

    The rest stays for the driver and the page cache.

    Raises:
        UsageError: the name is not allowed.
        CapacityError: less than 3 GiB are left; shows the arithmetic.
    """
    try:
        check_cluster_name(wish.name)
    except ValueError as error:
        raise UsageError(f"name: {error}", hint="choose another name") from error
    usable_bytes = wish.memory_bytes * _USABLE_PERCENT // 100
    if usable_bytes < _MEMORY_BYTES_MIN:
        raise CapacityError(
            f"not enough memory for a local node: {format_bytes(wish.memory_bytes, binary=True)} "
            f"available x {_USABLE_PERCENT} % = {format_bytes(usable_bytes, binary=True)} usable; "
            f"{format_bytes(_MEMORY_BYTES_MIN, binary=True)} is needed",
            hint="end programs that use memory",
        )
    memory_bytes = min(usable_bytes, _MEMORY_BYTES_MAX)
    node = NodeSpec(
        name=LOOPBACK_NAME,
        roles=frozenset({Role.MASTER, Role.WORKER}),
        cores=min(wish.cores, available_cores()),
        memory_bytes=memory_bytes // _MEMORY_STEP_BYTES * _MEMORY_STEP_BYTES,
        address=LOOPBACK_ADDRESS,
    )
    return ClusterSpec(
        name=wish.name,
        kind="local",
        engines=wish.engines,
        profile=wish.profile,
        network=NetworkSpec(subnet=LOOPBACK_SUBNET, link_bits_per_second=0),
        nodes=(node,),
        security=Security.LOCAL,
    )
