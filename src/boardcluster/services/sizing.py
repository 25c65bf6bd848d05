"""The rule of the profile ``default``: container sizes from a node's memory and cores. Pure.

All sizes are MiB, as YARN counts. For a worker with M MiB and C cores:

    system     = max(192, 8 % of M)            kernel, page cache, ssh, logs
    daemons    = 256 for DataNode + NodeManager (measured: 240 resident), and
                 1280 more if the node is also the master
    available  = M - system - daemons          rounded down to 32
    slots      = min(C + 1, available / 384)   one more than cores: the application master idles
    task       = min(4096, available / slots)  rounded down to 32; a map or a reduce task
    am         = min(512, task)                the MapReduce application master
    heap       = 80 % of a container           the rest is the JVM's own memory
    executor   = available - 384               beside Spark's application master (256 + 128)
    overhead   = max(128, 10 % of executor)    rounded up to 32;
                                               heap = executor - overhead, at least 450 (Spark)

The smallest worker decides the container sizes, each worker its own available memory, the fewest
cores the cores of an executor. The master needs system + 640 for its four daemons (measured: 625
resident) + 640 for the client of one job (a Spark driver: 512 of heap + 128).
"""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec, NodeSpec, Role

__all__ = [
    "SPARK_AM_MIB",
    "SPARK_HEAP_LEAST_MIB",
    "STEP_MIB",
    "Sizing",
    "available_mib",
    "reserved_mib",
    "size_cluster",
]

STEP_MIB = 32
_MIB = 1 << 20
_SYSTEM_LEAST_MIB = 192
_SYSTEM_SHARE = 0.08
_WORKER_DAEMONS_MIB = 256
_MASTER_DAEMONS_MIB = 640
_CLIENT_MIB = 640
_TASK_LEAST_MIB = 384
_TASK_MOST_MIB = 4096
_AM_MOST_MIB = 512
_HEAP_SHARE = 0.8
SPARK_AM_MIB = 384
"""Container of Spark's application master."""
_SPARK_OVERHEAD_LEAST_MIB = 128
_SPARK_OVERHEAD_SHARE = 0.1
SPARK_HEAP_LEAST_MIB = 450
"""Spark's UnifiedMemoryManager refuses less: 1.5 times the 300 MB that it reserves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """Container sizes for one cluster, in MiB."""

    available: dict[str, int]
    """Per worker, what YARN may hand out."""
    slots: int
    """Task containers of the smallest worker."""
    task: int
    """A map or reduce container."""
    task_heap: int
    """Its JVM heap."""
    am: int
    """The MapReduce application master's container."""
    am_heap: int
    """Its JVM heap."""
    sort: int
    """The map side's sort buffer."""
    executor_heap: int
    """Heap of a Spark executor; 0 if none fits, see spark_refusal."""
    executor_overhead: int
    """Its memory beside the heap."""
    executor_cores: int
    """Its task slots."""
    spark_refusal: str
    """Why no executor fits, with the arithmetic; empty if one fits."""


def _up(value: float) -> int:
    return -(-int(value) // STEP_MIB) * STEP_MIB


def _down(value: float) -> int:
    return int(value) // STEP_MIB * STEP_MIB


def _system_mib(memory: int) -> int:
    return max(_SYSTEM_LEAST_MIB, int(memory * _SYSTEM_SHARE))


def _check_master(master: NodeSpec) -> None:
    memory = master.memory_bytes // _MIB
    system = _system_mib(memory)
    needed = system + _MASTER_DAEMONS_MIB + _CLIENT_MIB
    if memory < needed:
        raise CapacityError(
            f"{master.name}: {system} system + {_MASTER_DAEMONS_MIB} daemons + {_CLIENT_MIB} "
            f"client of a job = {needed} MiB, but it has {memory} MiB",
            hint="give the master more memory in cluster.toml, or use a board with more",
        )


def reserved_mib(node: NodeSpec) -> tuple[int, int]:
    """Return what a worker's system and its daemons take, in MiB."""
    daemons = _WORKER_DAEMONS_MIB
    if Role.MASTER in node.roles:
        daemons += _MASTER_DAEMONS_MIB + _CLIENT_MIB
    return _system_mib(node.memory_bytes // _MIB), daemons


def available_mib(node: NodeSpec) -> tuple[int, str]:
    """Return what YARN may hand out on a node, and the arithmetic in words."""
    memory = node.memory_bytes // _MIB
    system, daemons = reserved_mib(node)
    left = _down(memory - system - daemons)
    words = f"{node.name}: {memory} MiB - {system} system - {daemons} daemons = {left} MiB"
    return left, words


def size_cluster(spec: ClusterSpec) -> Sizing:
    """Apply the rule.

    Raises:
        CapacityError: the master cannot hold its daemons and a client, a worker cannot hold a task
            container, or the only worker cannot hold one
            beside the application master.
    """
    _check_master(spec.master)
    rows = {worker.name: available_mib(worker) for worker in spec.workers}
    smallest = min(spec.workers, key=lambda worker: rows[worker.name][0])
    available, words = rows[smallest.name]
    if available < _TASK_LEAST_MIB:
        raise CapacityError(
            f"{words}, but one task container needs {_TASK_LEAST_MIB} MiB",
            hint="give the node more memory in cluster.toml, or use a board with more",
        )
    slots = max(1, min(smallest.cores + 1, available // _TASK_LEAST_MIB))
    task = min(_TASK_MOST_MIB, _down(available / slots))
    am = min(_AM_MOST_MIB, task)
    if len(spec.workers) == 1 and am + task > available:
        raise CapacityError(
            f"{words}, but the only worker must hold an application master ({am} MiB) and a task "
            f"({task} MiB) at once: {am + task} MiB",
            hint="add a worker, or give this one more memory in cluster.toml",
        )
    executor = available - SPARK_AM_MIB
    overhead = max(_SPARK_OVERHEAD_LEAST_MIB, _up(executor * _SPARK_OVERHEAD_SHARE))
    heap = executor - overhead
    refusal = ""
    if heap < SPARK_HEAP_LEAST_MIB:
        refusal = (
            f"{words}; - {SPARK_AM_MIB} application master - {overhead} overhead = {heap} MiB of "
            f"heap, but a Spark executor needs {SPARK_HEAP_LEAST_MIB} MiB"
        )
    task_heap = int(task * _HEAP_SHARE)
    return Sizing(
        available={name: row[0] for name, row in rows.items()},
        slots=slots,
        task=task,
        task_heap=task_heap,
        am=am,
        am_heap=int(am * _HEAP_SHARE),
        sort=min(256, task_heap // 4),
        executor_heap=0 if refusal else heap,
        executor_overhead=overhead,
        executor_cores=min(worker.cores for worker in spec.workers),
        spark_refusal=refusal,
    )
