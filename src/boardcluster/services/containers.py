"""What the containers of a profile take of a worker's memory, for plans of clusters. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from boardcluster.catalog.lookup import find_board
from boardcluster.errors import CapacityError, SpecError, UsageError
from boardcluster.plan.feasibility import (
    HDFS_SHARES,
    ContainerMemory,
    DiskNeed,
    ProfileNeeds,
    RunFit,
)
from boardcluster.plan.hardware import OWN_HARDWARE, medium_rates
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.plan.question import Question
from boardcluster.records import ClusterSpec, Engine, NetworkSpec, NodeSpec, Role
from boardcluster.services.fitting import container_mib, spark_containers_mib
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile
from boardcluster.services.settings import all_properties
from boardcluster.services.sizing import available_mib, reserved_mib

if TYPE_CHECKING:
    from boardcluster.plan.offers import BoardOffer

__all__ = ["copies_of", "copies_of_profile", "fit_of", "needs_of_board", "profile_needs"]

_MIB = 1 << 20
_NODE = "yarn.nodemanager.resource.memory-mb"
_LEAST = "yarn.scheduler.minimum-allocation-mb"
_AM = "yarn.app.mapreduce.am.resource.mb"
_TASKS = ("mapreduce.map.memory.mb", "mapreduce.reduce.memory.mb")
_PROFILE = "default"
"""What is asked about where the question names no profile."""
_CORES, _MEMORY_BYTES = 4, 8 << 30
"""Of a board that every profile fits; how many copies it keeps does not depend on it."""
_HDFS_COPIES = "3"
"""``dfs.replication`` of hdfs-default.xml."""


def profile_needs(spec: ClusterSpec, engine: Engine) -> ProfileNeeds:
    """Return what a cluster's profile asks of its smallest worker, and how it keeps data.

    A profile that no container fits gives a ``refusal``, with the arithmetic.

    Raises:
        UsageError: there is no such profile.
        SpecError: one's own profile is missing or wrong.
    """
    worker = min(spec.workers, key=lambda node: available_mib(node)[0])
    system_mib, daemons_mib = reserved_mib(worker)
    empty = ContainerMemory(
        node_mib=worker.memory_bytes // _MIB,
        system_mib=system_mib,
        daemons_mib=daemons_mib,
        granted_mib=0,
        am_mib=0,
        task_mib=0,
        at_once_mib=0,
        alone=len(spec.workers) == 1,
    )
    try:
        profile = build_profile(spec.profile, spec)
    except CapacityError as error:
        return ProfileNeeds(memory=replace(empty, refusal=error.message), replication=1)
    rows = all_properties(profile.properties) | profile.per_node.get(worker.name, {})
    granted_mib, least_mib = container_mib(_NODE, rows), container_mib(_LEAST, rows)
    if engine is Engine.SPARK:
        am_mib, task_mib = (-(-mib // least_mib) * least_mib for mib in spark_containers_mib(rows))
        at_once_mib = am_mib + task_mib
    else:
        am_mib = -(-container_mib(_AM, rows) // least_mib) * least_mib
        task_mib = max(-(-container_mib(key, rows) // least_mib) * least_mib for key in _TASKS)
        at_once_mib = granted_mib // task_mib * task_mib
    memory = replace(
        empty,
        granted_mib=granted_mib,
        am_mib=am_mib,
        task_mib=task_mib,
        at_once_mib=at_once_mib,
        refusal=profile.spark_refusal if engine is Engine.SPARK else "",
    )
    return ProfileNeeds(memory=memory, replication=int(rows.get("dfs.replication", _HDFS_COPIES)))


def needs_of_board(
    board: BoardOffer, profile: str, workers: int, engine: Engine, *, engines: str
) -> ProfileNeeds:
    """Return what a profile asks of clusters of a board.

    Args:
        board: the board of every node.
        profile: its name, or the path of one's own.
        workers: how many workers, beside a master.
        engine: of the jobs.
        engines: id of the engine pair.

    Raises:
        UsageError: there is no such profile.
        SpecError: one's own profile is missing or wrong.
    """
    spec = _cluster_of(
        board.cores, board.memory_bytes, profile=profile, workers=workers, engines=engines
    )
    return profile_needs(spec, engine)


def fit_of(answer: RuntimePrediction, declared: ClusterSpec | None) -> RunFit | None:
    """Say whether a predicted run fits the disks and the memory, as far as their sizes are known.

    Nothing is known of programs of one's own and of MPI.

    Args:
        answer: what was predicted.
        declared: one's own cluster, where the question may be about it.

    Raises:
        UsageError: there is no such profile, board or medium.
        SpecError: one's own profile is missing or wrong.
    """
    question = answer.question
    shares = HDFS_SHARES.get(question.workload)
    if not question.engine.on_yarn or shares is None:
        return None
    between = shares.intermediate_bytes
    if answer.intermediate_bytes is not None:
        between = answer.intermediate_bytes.interval.high
    medium = None if question.medium == OWN_HARDWARE else medium_rates(question.medium)
    disks = None
    if medium is not None and medium.capacity_bytes and between is not None:
        disks = DiskNeed(
            size_bytes=question.size_bytes,
            shares=shares,
            intermediate_bytes=between,
            replication=question.replication,
            workers=question.workers,
            disk_bytes=medium.capacity_bytes,
        )
    needs = _needs_of(question, declared)
    memory = None if needs is None else needs.memory
    return RunFit(disks=disks, memory=memory) if disks or memory else None


def copies_of(question: Question, declared: ClusterSpec | None) -> int:
    """Return how many copies of a block a profile keeps where there are workers enough.

    Args:
        question: the run.
        declared: one's own cluster, where the question may be about it.

    Raises:
        UsageError: there is no such profile or board.
        SpecError: one's own profile is missing or wrong.
    """
    usual = int(_HDFS_COPIES)
    enough = replace(question, workers=max(question.workers, usual))
    needs = _needs_of(enough, declared) if question.engine.on_yarn else None
    return usual if needs is None else needs.replication


def copies_of_profile(name: str) -> int:
    """Return how many copies of a block a profile keeps where there are workers enough.

    Of one's own whose file is gone or wrong, as many as the profile ``default``.
    """
    spec = _cluster_of(
        _CORES,
        _MEMORY_BYTES,
        profile=name,
        workers=int(_HDFS_COPIES),
        engines=pair_ids()[0],
    )
    try:
        profile = build_profile(name, spec)
    except (UsageError, SpecError, CapacityError):
        return copies_of_profile(_PROFILE)
    return int(profile.properties["hdfs-site"].get("dfs.replication", _HDFS_COPIES))


def _needs_of(question: Question, declared: ClusterSpec | None) -> ProfileNeeds | None:
    """Return what a profile asks of a board of the catalog, or of one's own cluster."""
    if question.board == OWN_HARDWARE:
        if declared is None:
            return None
        spec = _with_workers(declared, question.workers)
    else:
        board = find_board(question.board)
        spec = _cluster_of(
            board.cores,
            board.memory_bytes,
            profile=_PROFILE,
            workers=question.workers,
            engines=pair_ids()[0],
        )
    asked = replace(spec, profile=question.profile or spec.profile)
    return profile_needs(asked, question.engine)


def _with_workers(declared: ClusterSpec, workers: int) -> ClusterSpec:
    """Return a cluster with so many workers: the first ones, and more like its smallest."""
    kept = declared.workers[:workers]
    others = [
        replace(node, roles=node.roles - {Role.WORKER})
        for node in declared.nodes
        if node not in kept and node.roles != {Role.WORKER}
    ]
    smallest = min(declared.workers, key=lambda node: node.memory_bytes)
    more = [
        replace(smallest, name=f"{smallest.name}-{number}", roles=frozenset({Role.WORKER}))
        for number in range(1, workers - len(kept) + 1)
    ]
    return replace(declared, nodes=(*others, *kept, *more))


def _cluster_of(
    cores: int, memory_bytes: int, *, profile: str, workers: int, engines: str
) -> ClusterSpec:
    """Return a master and workers of one board."""
    return ClusterSpec(
        name="planned",
        kind="boards",
        engines=engines,
        profile=profile,
        network=NetworkSpec(subnet="", link_bits_per_second=0),
        nodes=tuple(
            NodeSpec(
                name=f"worker{place}" if place else "master",
                roles=frozenset({Role.WORKER if place else Role.MASTER}),
                cores=cores,
                memory_bytes=memory_bytes,
            )
            for place in range(workers + 1)
        ),
    )
