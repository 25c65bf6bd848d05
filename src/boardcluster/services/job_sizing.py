"""The second rule of the profile ``default``: what one job gets, from the size of its input.

A JVM takes seconds of a core before it works, so a small input gets few of them, and never more at
once than there are cores. With C cores in all and S bytes of input or, where a job has none, of
output:

    block     = S / C, rounded up to a power of two; within 16 and 128 MiB
    blocks    = S / block                  rounded up: the tasks that read the input
    maps      = blocks; at most C of a job that only makes data, or the multiple of C with which
                each makes 1 GB or less
    input     = maps that make the rows for TeraSort and TeraValidate: at least C, and one per
                worker; at most blocks and twice as many, so that the fewest blocks are short
    reduces   = the least of workers, C and blocks
    executors = the least of workers, C and blocks; more, up to one per worker, where the input
                would not fit into their heaps
    cores     = C / executors, or 2 C / executors in JVMs that are not brief, since tasks wait for
                HDFS and for each other's output; rounded up, at most what YARN grants and the
                node's; between nodes that share this machine the node's do not count in the second
    shuffle   = not compressed where nodes share this machine, in JVMs that are not brief
    heap      = the profile's; with J jobs at once on W workers, what J / W application masters,
                rounded down, leave of a worker
    brief     = whether a JVM works on less than 1 GB: the first compiler alone is faster then

A job without a size gets reduces, executors and cores as if it had a block per core, and both
compilers, since its work is not known.

C counts the cores that are really there: emulated nodes without the limits of boards share those of
this machine, of which a container's CPU quota may leave fewer. Between such nodes a shuffle crosses
no network, and this machine's disk keeps up with its few cores.
"""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.cluster.cores import available_cores
from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services.fitting import container_mib, granted_cores
from boardcluster.services.profile import Profile
from boardcluster.services.settings import all_properties, memory_mib
from boardcluster.services.sizing import SPARK_AM_MIB, SPARK_HEAP_LEAST_MIB, STEP_MIB

__all__ = ["SIZED", "JobSizing", "input_maps", "real_cores", "size_job"]

SIZED = (
    "dfs.blocksize",
    "mapreduce.job.maps",
    "mapreduce.job.reduces",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.shuffle.compress",
)
"""The properties that the rule sets, unless they were set on top of the profile."""

_MIB = 1 << 20
_BLOCK_LEAST = 16 * _MIB
_BLOCK_MOST = 128 * _MIB
_BRIEF_BYTES = 1_000_000_000
_TASKS_PER_CORE = 2
"""In JVMs that work for long: with one task for each core, cores are idle for a seventh of the time
(TeraSort over 4 GB)."""
_MASTERS_SHARE = 0.1
"""What application masters may take of the memory, where nothing sets it (Hadoop's own value)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSizing:
    """What one job gets."""

    properties: dict[str, dict[str, str]]
    """Per file of ``profile.FILES``, what is set for it."""
    brief: bool
    """Whether its tasks and executors end before the second compiler's work would have paid."""


def real_cores(spec: ClusterSpec) -> int:
    """Return how many cores the workers really have together.

    Nodes that share this machine without being limited have its cores between them, however many
    they declare. With a time dilation each has what it declares.
    """
    declared = sum(worker.cores for worker in spec.workers)
    return min(declared, available_cores()) if _share_machine(spec) else declared


def _share_machine(spec: ClusterSpec) -> bool:
    """Whether nodes share this machine without being limited."""
    return spec.capabilities.emulated and spec.twin is None


def size_job(
    spec: ClusterSpec,
    profile: Profile,
    engine: Engine,
    *,
    size_bytes: int,
    workload: str = "",
    reads_input: bool = True,
    at_once: int = 1,
) -> JobSizing | None:
    """Apply the rule; None in any other profile that sets nothing for the workload, and on MPI.

    Args:
        spec: the cluster in the variant that the job runs on.
        profile: its profile; what was set on top of it stays as it is.
        engine: the job's engine.
        size_bytes: size of the input, or of what the job makes; 0 where there is neither.
        workload: name of the job's workload, for which a paper's profile may have properties.
        reads_input: whether the size is that of an input, which has a map per block.
        at_once: how many such jobs run at once.

    Raises:
        CapacityError: so many Spark jobs at once have no room for an executor.
    """
    if not profile.small_daemons or not engine.on_yarn:
        own = profile.of_jobs(workload, engine)
        return JobSizing(properties=own, brief=False) if own else None
    cores, workers = real_cores(spec), len(spec.workers)
    block = _block_bytes(profile, size_bytes=size_bytes, cores=cores)
    blocks = -(-size_bytes // block) if size_bytes else cores
    most = min(workers, cores, blocks)
    rows: dict[str, dict[str, str]] = {}
    if size_bytes:
        rows["hdfs-site"] = {"dfs.blocksize": str(block)}
    if engine is Engine.MAPREDUCE:
        reduces = _set(profile, "mapreduce.job.reduces") or most
        maps, each = blocks, max(block, size_bytes / reduces)
        if size_bytes and not reads_input:
            waves = -(-size_bytes // (cores * _BRIEF_BYTES))
            maps = _set(profile, "mapreduce.job.maps") or min(blocks, cores * waves)
            each = size_bytes / maps
        rows["mapred-site"] = {
            "mapreduce.job.maps": str(maps),
            "mapreduce.job.reduces": str(reduces),
        }
    else:
        rows["spark-defaults"], each = _of_spark(
            spec, profile, size_bytes=size_bytes, most=most, at_once=at_once
        )
    return JobSizing(
        properties={
            file: {key: value for key, value in found.items() if key not in profile.settings}
            for file, found in rows.items()
        },
        brief=size_bytes > 0 and each < _BRIEF_BYTES,
    )


def input_maps(spec: ClusterSpec, profile: Profile, *, size_bytes: int) -> int:
    """Return how many maps make an input of rows, whichever engine reads it; 0 leaves it to Hadoop.

    At least one for each worker and each core, so that the first replicas are on all workers:
    Hadoop's own two would leave them on two. A map ends with a short block, which is a task, too.
    """
    text = profile.properties["mapred-site"].get("mapreduce.job.maps", "")
    if text.isdecimal() and int(text):
        return int(text)
    if not (size_bytes and profile.small_daemons):
        return 0
    cores = real_cores(spec)
    blocks = -(-size_bytes // _block_bytes(profile, size_bytes=size_bytes, cores=cores))
    least = min(blocks, max(cores, len(spec.workers)))
    return min(range(least, 2 * least + 1), key=lambda maps: (-(-blocks // maps) * maps, maps))


def _block_bytes(profile: Profile, *, size_bytes: int, cores: int) -> int:
    """Return the size of a block by the rule, unless one was set."""
    block = _BLOCK_LEAST
    while block < min(_BLOCK_MOST, size_bytes / cores):
        block *= 2
    return _set(profile, "dfs.blocksize") or block


def _of_spark(
    spec: ClusterSpec, profile: Profile, *, size_bytes: int, most: int, at_once: int
) -> tuple[dict[str, str], float]:
    """Return what a Spark job gets, and how many bytes each of its executors works on.

    ``most`` executors at once have something to do.

    Raises:
        CapacityError: as ``size_job``.
    """
    cores, workers, shared = real_cores(spec), len(spec.workers), _share_machine(spec)
    own_mib = memory_mib(profile.properties["spark-defaults"]["spark.executor.memory"])
    heap_mib = _heap_beside_masters(spec, profile, own_mib, at_once)
    executors = min(workers, max(most, -(-size_bytes // (heap_mib * _MIB))))
    executors = _set(profile, "spark.executor.instances") or executors
    each = size_bytes / executors
    long = each >= _BRIEF_BYTES
    cap = granted_cores(all_properties(profile.properties), profile.per_node, spec)
    if not (long and shared):  # those that such nodes declare are only their part of this machine's
        cap = min(cap, *(worker.cores for worker in spec.workers))
    tasks = cores * (_TASKS_PER_CORE if long else 1)
    return {
        "spark.executor.instances": str(executors),
        "spark.executor.cores": str(min(cap, -(-tasks // executors))),
        **({} if heap_mib == own_mib else {"spark.executor.memory": f"{heap_mib}m"}),
        **({"spark.shuffle.compress": "false"} if long and shared else {}),
    }, each


def _heap_beside_masters(spec: ClusterSpec, profile: Profile, own_mib: int, at_once: int) -> int:
    """Return the heap of an executor that fits beside the application masters of jobs at once.

    YARN starts the masters of all jobs before the first executor. If each worker has so many that
    no executor fits beside them, every job waits for the others.

    Raises:
        CapacityError: no executor fits; with the arithmetic.
    """
    rows = all_properties(profile.properties)
    room_mib = min(
        container_mib(
            "yarn.nodemanager.resource.memory-mb", {**rows, **profile.per_node.get(worker.name, {})}
        )
        for worker in spec.workers
    )
    share = float(rows.get("yarn.scheduler.capacity.maximum-am-resource-percent", _MASTERS_SHARE))
    workers = len(spec.workers)
    most_mib = -(-int(workers * room_mib * share) // STEP_MIB) * STEP_MIB  # YARN rounds it up
    masters = min(at_once // workers, most_mib // (workers * SPARK_AM_MIB))
    if masters < 2 or "spark.executor.memory" in profile.settings:
        return own_mib
    overhead_mib = memory_mib(rows["spark.executor.memoryOverhead"])
    left_mib = room_mib - masters * SPARK_AM_MIB - overhead_mib
    if left_mib >= SPARK_HEAP_LEAST_MIB:
        return min(own_mib, left_mib)
    raise CapacityError(
        f"{at_once} Spark jobs at once: {room_mib} MiB of a worker - {masters} application masters "
        f"of {SPARK_AM_MIB} MiB - {overhead_mib} MiB overhead = {left_mib} MiB of heap, but an "
        f"executor needs {SPARK_HEAP_LEAST_MIB} MiB",
        hint="run fewer of them at once (`concurrency`), or on nodes with more memory",
    )


def _set(profile: Profile, key: str) -> int:
    """Return a number that was set on top of the profile, which the rest goes by; 0 if none was."""
    text = profile.settings.get(key, "")
    return int(text) if text.isdecimal() else 0
