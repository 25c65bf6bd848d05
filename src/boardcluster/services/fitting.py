"""Whether the memory and the cores that settings ask for fit the nodes. Pure.

YARN rounds a container up to a multiple of its least allocation, grants none above its largest, and
places none on a node that has less. A heap larger than its container gets the container killed.

Of virtual cores YARN grants no container more than its largest allocation, nor than the largest
node offers, though by default it places containers by their memory alone (Apache Hadoop,
SchedulerUtils.validateResourceRequest, ClusterNodeTracker and DefaultResourceCalculator).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec
from boardcluster.services.settings import all_properties, memory_mib
from boardcluster.services.sizing import SPARK_HEAP_LEAST_MIB

__all__ = [
    "YARN_DEFAULTS_MIB",
    "check_settings_fit",
    "container_mib",
    "granted_cores",
    "spark_containers_mib",
]

_MIB = 1 << 20
_NODE = "yarn.nodemanager.resource.memory-mb"
_LEAST = "yarn.scheduler.minimum-allocation-mb"
_MOST = "yarn.scheduler.maximum-allocation-mb"
_AM = "yarn.app.mapreduce.am.resource.mb"
_MAP = "mapreduce.map.memory.mb"
_REDUCE = "mapreduce.reduce.memory.mb"
_SORT = "mapreduce.task.io.sort.mb"
_HEAPS = {
    _AM: "yarn.app.mapreduce.am.command-opts",
    _MAP: "mapreduce.map.java.opts",
    _REDUCE: "mapreduce.reduce.java.opts",
}
YARN_DEFAULTS_MIB = {_NODE: 8192, _LEAST: 1024, _MOST: 8192, _AM: 1536, _MAP: 1024, _REDUCE: 1024}
"""Hadoop's own values (yarn-default.xml, mapred-default.xml); -1 there means these as well."""

_NODE_CORES = "yarn.nodemanager.resource.cpu-vcores"
_MOST_CORES = "yarn.scheduler.maximum-allocation-vcores"
_YARN_DEFAULT_CORES = {_NODE_CORES: 8, _MOST_CORES: 4}
"""Hadoop's own values (yarn-default.xml); -1 there means 8 cores of a node as well."""

_CORES_OF = (
    "mapreduce.map.cpu.vcores",
    "mapreduce.reduce.cpu.vcores",
    "spark.executor.cores",
    "spark.yarn.am.cores",
    "yarn.app.mapreduce.am.resource.cpu-vcores",
)
"""Virtual cores that a container asks for; the engines' own value is 1 of each."""

_SORT_MIB = 100
_HEAP_SHARE = 0.8
"""``mapreduce.job.heap.memory-mb.ratio``: the heap of a task whose options name none."""

_EXECUTOR = "spark.executor.memory"
_SPARK_AM = "spark.yarn.am.memory"
_DRIVER = "spark.driver.memory"
_SPARK_DEFAULTS = {_EXECUTOR: "1g", _SPARK_AM: "512m", _DRIVER: "1g"}
_OVERHEAD_LEAST = "384m"
_OVERHEAD_SHARE = 0.1
_XMX = re.compile(r"-Xmx(\d+[bkmgt]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Container:
    """A container that YARN is asked for."""

    keys: tuple[str, ...]
    """The properties that decide its size."""
    what: str
    """What runs in it."""
    mib: int
    """Its size before it is rounded up."""
    words: str
    """How that comes about."""
    am_mib: int = 0
    """Size of the application master that must run at the same time; 0 for itself."""

    @property
    def is_spark(self) -> bool:
        """Whether Spark asks for it."""
        return self.keys[0].startswith("spark.")


def check_settings_fit(
    settings: Mapping[str, str],
    properties: Mapping[str, Mapping[str, str]],
    per_node: Mapping[str, Mapping[str, str]],
    spec: ClusterSpec,
) -> str:
    """Refuse settings whose memory or cores the nodes lack. What none touches is not checked.

    ``properties`` are per file all that hold, the settings included, ``per_node`` what differs.

    Returns:
        Why Spark cannot run, where settings of YARN leave its containers no room; else empty.

    Raises:
        CapacityError: with the arithmetic.
    """
    rows = all_properties(properties)
    for key in sorted(settings):
        if key.endswith(("memory.mb", "memory-mb", "resource.mb", "allocation-mb", "sort.mb")):
            container_mib(key, rows)
    nodes = {
        worker.name: container_mib(_NODE, {**rows, **per_node.get(worker.name, {})})
        for worker in spec.workers
    }
    if _NODE in settings:
        _check_nodes(nodes, spec)
    yarn = {_NODE, _LEAST, _MOST} & set(settings)
    try:
        containers = [*_of_mapreduce(rows), *_of_spark(rows)]
    except ValueError as error:
        raise _refused(f"a setting of memory cannot be read: {error}") from error
    spark_refusal = ""
    for container in containers:
        own = set(container.keys) & set(settings)
        if not (yarn or own):
            continue
        if words := _misfit(container, rows, nodes):
            if own or not container.is_spark:
                raise _refused(words)
            spark_refusal = spark_refusal or words
    _check_cores(settings, rows, per_node, spec)
    _check_heaps(settings, rows)
    if _DRIVER in settings:
        driver, there = _spark_mib(_DRIVER, rows), spec.master.memory_bytes // _MIB
        if driver > there:
            raise _refused(
                f"{_DRIVER} = {rows[_DRIVER]} is {driver} MiB, but {spec.master.name}, on which"
                f" drivers run, has {there} MiB"
            )
    if _EXECUTOR in settings and _spark_mib(_EXECUTOR, rows) < SPARK_HEAP_LEAST_MIB:
        raise _refused(
            f"{_EXECUTOR} = {rows[_EXECUTOR]}, but Spark needs {SPARK_HEAP_LEAST_MIB} MiB"
        )
    return spark_refusal


def _refused(
    words: str, *, hint: str = "change the setting, or give the nodes more memory in cluster.toml"
) -> CapacityError:
    return CapacityError(words, hint=hint)


def container_mib(key: str, rows: Mapping[str, str]) -> int:
    """Return a size in MiB that Hadoop reads as a whole number; -1 or none is its default.

    Raises:
        CapacityError: it is none.
    """
    text = rows.get(key, "").strip()
    if text and not re.fullmatch(r"-?\d+", text):
        raise _refused(f"{key} = {text!r} is not a whole number of MiB")
    number = int(text) if text else 0
    return number if number > 0 else YARN_DEFAULTS_MIB.get(key, _SORT_MIB)


def _spark_mib(key: str, rows: Mapping[str, str]) -> int:
    text = rows.get(key) or _SPARK_DEFAULTS.get(key, "0")
    try:
        return memory_mib(text)
    except ValueError as error:
        raise _refused(f"{key}: {error}") from error


def _check_nodes(nodes: Mapping[str, int], spec: ClusterSpec) -> None:
    for worker in spec.workers:
        there = worker.memory_bytes // _MIB
        if nodes[worker.name] > there:
            raise _refused(
                f"{_NODE} = {nodes[worker.name]} MiB, but {worker.name} has {there} MiB: full"
                " containers would swap or be killed"
            )


def spark_containers_mib(rows: Mapping[str, str]) -> tuple[int, int]:
    """Return the sizes of Spark's application master and of an executor, before rounding.

    Raises:
        CapacityError: one of them cannot be read.
    """
    am, executor = _of_spark(rows)
    return am.mib, executor.mib


def _of_mapreduce(rows: Mapping[str, str]) -> Iterator[_Container]:
    am = container_mib(_AM, rows)
    for key, what in ((_AM, "application master"), (_MAP, "map"), (_REDUCE, "reduce")):
        mib = container_mib(key, rows)
        beside = 0 if key == _AM else am
        keys = (key,) if key == _AM else (key, _AM)
        yield _Container(
            keys=keys, what=f"{what} container", mib=mib, words=f"{key} = {mib} MiB", am_mib=beside
        )


def _of_spark(rows: Mapping[str, str]) -> Iterator[_Container]:
    am, am_words, am_keys = _spark_container("spark.yarn.am", rows)
    yield _Container(keys=am_keys, what="Spark application master", mib=am, words=am_words)
    mib, words, keys = _spark_container("spark.executor", rows)
    extra = ["spark.executor.pyspark.memory"]
    if rows.get("spark.memory.offHeap.enabled") == "true":
        extra.append("spark.memory.offHeap.size")
    for key in extra:
        unit_bytes = 1 if key.endswith("size") else _MIB
        if more := memory_mib(rows.get(key, "0"), default_unit_bytes=unit_bytes):
            mib, words = mib + more, f"{words} + {key} {more} MiB"
    yield _Container(
        keys=(*keys, *extra, *am_keys), what="Spark executor", mib=mib, words=words, am_mib=am
    )


def _spark_container(prefix: str, rows: Mapping[str, str]) -> tuple[int, str, tuple[str, ...]]:
    """Return the size of a Spark container in MiB, how it comes about, and what decides it."""
    names = ("memory", "memoryOverhead", "memoryOverheadFactor", "minMemoryOverhead")
    keys = tuple(f"{prefix}.{name}" for name in names)
    heap = _spark_mib(keys[0], rows)
    if keys[1] in rows:
        overhead = _spark_mib(keys[1], rows)
    else:
        share = float(rows.get(keys[2], _OVERHEAD_SHARE))
        overhead = max(memory_mib(rows.get(keys[3], _OVERHEAD_LEAST)), int(heap * share))
    return heap + overhead, f"{keys[0]} {heap} MiB + overhead {overhead} MiB", keys


def _misfit(container: _Container, rows: Mapping[str, str], nodes: Mapping[str, int]) -> str:
    """Return why no node can hold a container, with the arithmetic; empty if one can."""
    least, most, largest = (
        container_mib(_LEAST, rows),
        container_mib(_MOST, rows),
        max(nodes.values()),
    )
    given = -(-container.mib // least) * least
    rounded = f" = {given} MiB (in steps of {least})" if given != container.mib else ""
    if given > min(most, largest):
        return (
            f"{container.what}: {container.words}{rounded}, but YARN hands out {largest} MiB on"
            f" the largest node and grants at most {most} MiB"
        )
    beside = -(-container.am_mib // least) * least
    if len(nodes) == 1 and given + beside > largest:
        return (
            f"{container.what}: {container.words}{rounded} + application master {beside} MiB"
            f" > {largest} MiB of the only worker, so it could never start"
        )
    return ""


def _check_cores(
    settings: Mapping[str, str],
    rows: Mapping[str, str],
    per_node: Mapping[str, Mapping[str, str]],
    spec: ClusterSpec,
) -> None:
    """Refuse containers with more virtual cores than YARN grants one."""
    of_node, largest = _offered_cores(rows, per_node, spec), _cores(_MOST_CORES, rows)
    most = granted_cores(rows, per_node, spec)
    for key in _CORES_OF:
        if key in settings and _cores(key, rows) > most:
            raise _refused(
                f"{key} = {rows[key]}, but the largest node offers YARN {of_node} virtual cores,"
                f" and {_MOST_CORES} is {largest}: YARN would refuse it",
                hint=f"ask for fewer, or set {_NODE_CORES} and {_MOST_CORES} as well",
            )


def granted_cores(
    rows: Mapping[str, str], per_node: Mapping[str, Mapping[str, str]], spec: ClusterSpec
) -> int:
    """Return how many virtual cores YARN grants a container at most.

    ``rows`` are all properties of every node, ``per_node`` what differs there.
    """
    return min(_offered_cores(rows, per_node, spec), _cores(_MOST_CORES, rows))


def _offered_cores(
    rows: Mapping[str, str], per_node: Mapping[str, Mapping[str, str]], spec: ClusterSpec
) -> int:
    """Return how many virtual cores the largest node offers YARN."""
    return max(
        _cores(_NODE_CORES, {**rows, **per_node.get(worker.name, {})}) for worker in spec.workers
    )


def _cores(key: str, rows: Mapping[str, str]) -> int:
    text = rows.get(key, "").strip()
    number = int(text) if re.fullmatch(r"-?\d+", text) else 0
    return number if number > 0 else _YARN_DEFAULT_CORES.get(key, 1)


def _check_heaps(settings: Mapping[str, str], rows: Mapping[str, str]) -> None:
    """Refuse heaps above their containers, and a sort buffer above its heap."""
    for size, options in _HEAPS.items():
        found = _XMX.search(rows.get(options, ""))
        container = container_mib(size, rows)
        heap = memory_mib(found[1], default_unit_bytes=1) if found else int(container * _HEAP_SHARE)
        if {size, options} & set(settings) and heap > container:
            raise _refused(
                f"{options} asks for a heap of {heap} MiB, but {size} = {container} MiB: the"
                " container would be killed; set both"
            )
        if size == _MAP and {size, options, _SORT} & set(settings):
            sort = container_mib(_SORT, rows)
            if sort >= heap:
                raise _refused(
                    f"{_SORT} = {sort} MiB does not fit into the heap of a map, {heap} MiB"
                )
