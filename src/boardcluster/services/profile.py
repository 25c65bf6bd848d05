"""Profiles: named engine configurations. Pure.

``upstream`` and the papers' are data in ``profiles/``, one's own is a file like these; ``default``
is computed by the rule in sizing.py. All yield the same thing: properties per file, and remarks
about contradictions that are found before a job hangs on them. Settings go on top.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import ClusterSpec, Engine, NodeSpec, Role
from boardcluster.services.fitting import YARN_DEFAULTS_MIB, check_settings_fit, container_mib
from boardcluster.services.settings import (
    all_properties,
    by_file,
    check_for_pair,
    check_setting,
    merge_files,
    of_engine,
)
from boardcluster.services.sizing import STEP_MIB, size_cluster
from boardcluster.spec.checks import complaint, shown
from boardcluster.spec.problems import Problem, spec_error
from boardcluster.spec.toml import read_toml
from boardcluster.tuning.profile_text import ProfileParts

__all__ = [
    "FILES",
    "InferredSetting",
    "Profile",
    "build_profile",
    "own_file_digests",
    "own_parts",
    "profile_names",
    "with_settings",
]

FILES = ("core-site", "hdfs-site", "yarn-site", "mapred-site", "spark-defaults")
_FOLDER = resources.files("boardcluster.services").joinpath("profiles")
_ARCHIVES = "class_data_archives"
_WITH_ARCHIVES = tuple(engine for engine in Engine if engine.on_yarn)
"""The engines whose jobs can have a class-data archive."""
_MIB = 1 << 20

_TASK_FLAGS = "-XX:+UseSerialGC -XX:-UsePerfData"
"""A task has one core: one collector thread, and no performance file in /tmp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredSetting:
    """A property that a paper does not print, and why it is taken to have been set so."""

    key: str
    """The property."""
    value: str
    """Its value, as the engines read it."""
    because: str
    """What it follows from."""
    workload: str = ""
    """The workload for whose jobs alone it is set; empty for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One engine configuration for one cluster."""

    name: str
    """Its name."""
    source: str
    """Where the values come from."""
    properties: dict[str, dict[str, str]]
    """Per file of FILES, the properties of every node."""
    per_node: dict[str, dict[str, str]]
    """Per node, what differs there (in ``yarn-site``)."""
    small_daemons: bool
    """Whether daemons get the flags that keep them small."""
    class_data_archives: frozenset[Engine] = frozenset()
    """The engines whose jobs' JVMs start with a class-data archive."""
    remarks: tuple[str, ...]
    """Contradictions worth a warning."""
    spark_refusal: str
    """Why Spark cannot run, with the arithmetic; empty if it can."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Properties that are set on top of it, which ``properties`` hold already."""
    inferred: tuple[InferredSetting, ...] = ()
    """What of it is not in its source; ``properties`` hold those that are not for one workload."""

    @property
    def uses_archives(self) -> bool:
        """Whether any JVM starts with a class-data archive: small daemons do, and jobs may."""
        return self.small_daemons or bool(self.class_data_archives)

    def of_jobs(self, workload: str, engine: Engine) -> dict[str, dict[str, str]]:
        """Return, per file, what it sets for jobs of one workload alone; settings win."""
        rows = {
            row.key: row.value
            for row in self.inferred
            if row.workload == workload and row.key not in self.settings
        }
        return by_file(of_engine(rows, engine)) if workload else {}


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles, ``default`` first."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return ("default", *sorted(n.removesuffix(".toml") for n in names if n.endswith(".toml"))[::-1])


def build_profile(name: str, spec: ClusterSpec) -> Profile:
    """Return the properties of a profile for a cluster, the cluster's settings on top of them.

    A profile of one's own is the path of a file that ends with ``.toml``.

    Raises:
        UsageError: there is no such profile, or the engine pair lacks a property.
        SpecError: one's own is missing or wrong; names file, line, value and what is allowed.
        CapacityError: nothing could ever run; the message shows the arithmetic.
    """
    return with_settings(_profile(name, spec, spec.settings), spec.settings, spec)


def with_settings(profile: Profile, settings: Mapping[str, str], spec: ClusterSpec) -> Profile:
    """Return a profile with single properties set on top of it.

    Raises:
        UsageError: the cluster's engine pair lacks a property.
        CapacityError: a value does not fit the nodes' memory; the message shows the arithmetic.
    """
    if not settings:
        return profile
    check_for_pair(settings, spec.engines)
    built = replace(
        profile,
        properties=merge_files(profile.properties, by_file(settings)),
        per_node={
            node: {key: value for key, value in rows.items() if key not in settings}
            for node, rows in profile.per_node.items()
        },
        settings={**profile.settings, **settings},
    )
    refusal = check_settings_fit(settings, built.properties, built.per_node, spec)
    before = "" if "spark.executor.memory" in settings else profile.spark_refusal
    return replace(built, spark_refusal=refusal or before)


def _profile(name: str, spec: ClusterSpec, on_top: Mapping[str, str]) -> Profile:
    """Return a profile without what is set on top of it, which decides whether its sizes fit."""
    if name == "default":
        return _default(spec)
    if name.endswith(".toml"):
        raw = _own(Path(name))
        check_for_pair({key: "" for file in FILES for key in raw.get(file, {})}, spec.engines)
    elif name in profile_names():
        raw = tomllib.loads(_FOLDER.joinpath(f"{name}.toml").read_text())
    else:
        raise UsageError(
            f"unknown profile {name!r}",
            hint=f"choose: {', '.join(profile_names())}, or the path of a .toml file of your own",
        )
    workers = str(len(spec.workers))
    inferred = tuple(
        InferredSetting(**{**row, "value": row["value"].replace("{workers}", workers)})
        for row in raw.get("inferred", ())
    )
    printed = {
        file: {key: value.replace("{workers}", workers) for key, value in raw.get(file, {}).items()}
        for file in FILES
    }
    of_all = {row.key: row.value for row in inferred if not row.workload}
    properties = merge_files({file: {} for file in FILES}, by_file(of_all), printed)
    if raw.get("base"):
        return _on_base(name, raw, properties, spec, on_top)
    together = merge_files(properties, by_file(on_top))
    remarks = _check(name, together, spec, raw.get("with_one_worker", ""))
    tuned, refusal = raw.get("tuned", {}), ""
    elsewhere = _tuned_remarks(tuned, spec)
    if elsewhere:  # where it was tuned it ran
        with _tuned_elsewhere(name, tuned):
            refusal = check_settings_fit(all_properties(together), together, {}, spec)
    return Profile(
        name=name,
        source=raw["source"],
        properties=properties,
        per_node={},
        small_daemons=False,
        class_data_archives=frozenset(raw.get(_ARCHIVES, ())),
        remarks=(*remarks, *elsewhere),
        spark_refusal=refusal,
        inferred=inferred,
    )


def _on_base(
    name: str,
    raw: Mapping[str, Any],
    properties: Mapping[str, Mapping[str, str]],
    spec: ClusterSpec,
    on_top: Mapping[str, str],
) -> Profile:
    """Return a profile of one's own that sets some properties on top of another profile.

    Raises:
        CapacityError: they do not fit the nodes; says what they were tuned on, if they were.
    """
    tuned = raw.get("tuned", {})
    settings = all_properties(properties)
    base = _profile(raw["base"], spec, {**settings, **on_top})
    below = replace(
        base,
        name=name,
        source=raw["source"],
        class_data_archives=frozenset(raw.get(_ARCHIVES, base.class_data_archives)),
    )
    with _tuned_elsewhere(name, tuned):
        # What is set on top of it decides whether it fits: it was tuned with that.
        built = with_settings(below, {**settings, **on_top}, spec)
    return replace(built, remarks=(*built.remarks, *_tuned_remarks(tuned, spec)))


@contextlib.contextmanager
def _tuned_elsewhere(name: str, tuned: Mapping[str, Any]) -> Iterator[None]:
    """Say of a profile of one's own that does not fit what it was tuned on, if it was."""
    try:
        yield
    except CapacityError as error:
        was = f", which was tuned on {_tuned_on(tuned)}" if tuned else ""
        raise CapacityError(
            f"profile {Path(name).name}{was}: {error.message}",
            hint="tune again on this cluster, or choose another profile",
        ) from error


def _tuned_on(tuned: Mapping[str, Any]) -> str:
    return (
        f"{tuned.get('workers', '?')} workers of the kind {tuned.get('kind', '?')} with"
        f" {tuned.get('cores', '?')} cores and {tuned.get('memory_mib', '?')} MiB"
    )


def _tuned_remarks(tuned: Mapping[str, Any], spec: ClusterSpec) -> list[str]:
    """Say where a tuned profile is used on another cluster than it was tuned on."""
    if not tuned:
        return []
    worker = min(spec.workers, key=lambda node: (node.memory_bytes, node.cores))
    here = {
        "kind": spec.kind,
        "workers": len(spec.workers),
        "cores": worker.cores,
        "memory_mib": worker.memory_bytes // _MIB,
    }
    if all(tuned.get(key, value) == value for key, value in here.items()):
        return []
    was, now = _tuned_on(tuned), _tuned_on(here)
    return [f"it was tuned on {was}; here are {now}, where it may be no better: tune again here"]


def own_parts(name: str) -> ProfileParts:
    """Return what to write in order to set more on top of a profile.

    Raises:
        SpecError: a profile of one's own is missing or wrong.
    """
    if not name.endswith(".toml"):
        return ProfileParts(base=name)
    raw = _own(Path(name))
    return ProfileParts(
        base=raw.get("base", ""),
        class_data_archives=raw.get(_ARCHIVES),
        tables={file: dict(raw[file]) for file in FILES if file in raw},
    )


def _own(path: Path) -> dict[str, Any]:
    """Read a profile of the user's own.

    Raises:
        SpecError: it is missing or wrong.
    """
    document = read_toml(path, create_hint="name a profile, or write this file")
    found: dict[str, Any] = {"source": f"your own profile {path.name}"}
    problems: list[Problem] = []
    for table, rows in document.data.items():
        if table == "source" and isinstance(rows, str):
            found["source"] = " ".join(rows.split())
        elif table == "base" and rows in profile_names():
            found["base"] = rows
        elif table == "tuned" and isinstance(rows, dict):
            found["tuned"] = rows
        elif table == _ARCHIVES:
            try:
                found[_ARCHIVES] = _archives_of(rows)
            except ValueError as error:
                problems.append(Problem(path=(table,), text=str(error)))
        elif table not in FILES or not isinstance(rows, dict):
            near = difflib.get_close_matches(table, (*FILES, _ARCHIVES), n=1)
            text = complaint(
                "unknown, or not allowed here",
                allowed=f"source as text, base as one of {', '.join(profile_names())},"
                f" {_ARCHIVES} as a list of engines, and the tables {', '.join(FILES)} and tuned",
                nearest=near[0] if near else "",
            )
            problems.append(Problem(path=(table,), text=text))
        else:
            found[table] = {}
            for key, value in rows.items():
                try:
                    found[table][key] = _own_value(table, key, value)
                except ValueError as error:
                    problems.append(Problem(path=(table, key), text=str(error)))
    if problems:
        raise spec_error(document, problems)
    return found


def _archives_of(value: Any) -> tuple[Engine, ...]:
    """Read the engines whose jobs get a class-data archive.

    Raises:
        ValueError: it is no list of engines that run in JVMs.
    """
    rows = value if isinstance(value, list) else [value]
    wrong = [shown(item) for item in rows if item not in _WITH_ARCHIVES]
    if wrong or not isinstance(value, list):
        allowed = f"a list of {' and '.join(shown(str(engine)) for engine in _WITH_ARCHIVES)}"
        raise ValueError(complaint(f"it is {', '.join(wrong) or shown(value)}", allowed=allowed))
    return tuple(Engine(item) for item in rows)


def _own_value(table: str, key: str, value: Any) -> str:
    by_rule = value == "{workers}"
    text = check_setting(key, 1 if by_rule else value, in_profile=True)
    [file] = by_file({key: text})
    if file != table:
        allowed = f"{shown(key)} in the table {shown(file)}"
        raise ValueError(complaint("the engines read it from another file", allowed=allowed))
    return str(value) if by_rule else text


def own_file_digests(names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each name that is a user's own file; empty for one that is gone."""
    found = {}
    for name in sorted({name for name in names if name.endswith(".toml")}):
        path = Path(name)
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return found


def _check(
    name: str, properties: Mapping[str, Mapping[str, str]], spec: ClusterSpec, with_one_worker: str
) -> tuple[str, ...]:
    """Look for contradictions between fixed sizes and the declared nodes.

    ``with_one_worker`` says what its source must have done, where that had one.
    """
    merged = all_properties(properties)
    value = {key: container_mib(key, merged) for key in YARN_DEFAULTS_MIB}
    node = value["yarn.nodemanager.resource.memory-mb"]
    least = value["yarn.scheduler.minimum-allocation-mb"]
    most = value["yarn.scheduler.maximum-allocation-mb"]
    sizes = {
        "application master": value["yarn.app.mapreduce.am.resource.mb"],
        "map": value["mapreduce.map.memory.mb"],
        "reduce": value["mapreduce.reduce.memory.mb"],
    }
    given = {what: -(-size // least) * least for what, size in sizes.items()}
    am = given["application master"]
    remarks = []
    for what, size in given.items():
        if size > min(node, most):
            raise CapacityError(
                f"profile {name}: the {what} container needs {size} MB ({sizes[what]} rounded up "
                f"to {least}), but a node has {node} MB and YARN grants at most {most} MB",
                hint="choose another profile in cluster.toml",
            )
        if what != "application master" and am + size > node:
            together = f"application master {am} MB + {what} {size} MB > {node} MB of a node"
            if len(spec.workers) == 1:
                raise CapacityError(
                    f"profile {name}: {together}, so with one worker no {what} task could ever "
                    f"start and the job would hang{with_one_worker and '. '}{with_one_worker}",
                    hint=f"add a worker, choose another profile in cluster.toml, or set a smaller "
                    f"yarn.app.mapreduce.am.resource.mb and mapreduce.{what}.memory.mb in its "
                    "[settings]",
                )
            remarks.append(
                f"{together}: no {what} task can run at the same time as the application master"
            )
    for worker in spec.workers:
        memory = worker.memory_bytes // _MIB
        if node > memory:
            remarks.append(
                f"YARN promises {node} MB on {worker.name}, which has {memory} MiB: full "
                "containers would swap or be killed"
            )
            break
    replication = int(properties["hdfs-site"].get("dfs.replication", "3"))
    if replication > len(spec.workers):
        remarks.append(
            f"replication {replication} with {len(spec.workers)} workers: every block stays "
            "under-replicated"
        )
    return tuple(remarks)


def _default(spec: ClusterSpec) -> Profile:
    sizing = size_cluster(spec)
    workers = len(spec.workers)
    replication = min(2, workers)
    hdfs = {
        "dfs.replication": str(replication),
        "dfs.blocksize": str(64 * _MIB),
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.handler.count": "10",
        "dfs.datanode.handler.count": "4",
        "dfs.datanode.max.transfer.threads": "512",
    }
    if workers <= 3:
        hdfs["dfs.client.block.write.replace-datanode-on-failure.policy"] = "NEVER"
    yarn = {
        "yarn.scheduler.minimum-allocation-mb": str(STEP_MIB),
        "yarn.scheduler.maximum-allocation-mb": str(max(sizing.available.values())),
        # YARN refuses an executor with more cores than this, and its own value is 4.
        "yarn.scheduler.maximum-allocation-vcores": str(max(map(_vcores, spec.workers))),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    }
    mapred = {
        "yarn.app.mapreduce.am.resource.mb": str(sizing.am),
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{sizing.am_heap}m {_TASK_FLAGS}",
        "mapreduce.map.memory.mb": str(sizing.task),
        "mapreduce.map.java.opts": f"-Xmx{sizing.task_heap}m {_TASK_FLAGS}",
        "mapreduce.reduce.memory.mb": str(sizing.task),
        "mapreduce.reduce.java.opts": f"-Xmx{sizing.task_heap}m {_TASK_FLAGS}",
        "mapreduce.task.io.sort.mb": str(sizing.sort),
        "mapreduce.job.reduces": str(workers),
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "250",
        "mapreduce.client.progressmonitor.pollinterval": "250",
    }
    spark = {
        "spark.executor.instances": str(workers),
        "spark.executor.cores": str(sizing.executor_cores),
        "spark.executor.memory": f"{sizing.executor_heap}m",
        "spark.executor.memoryOverhead": f"{sizing.executor_overhead}m",
        "spark.yarn.am.memory": "256m",
        "spark.yarn.am.memoryOverhead": "128m",
        "spark.driver.memory": "512m",
    }
    return Profile(
        name="default",
        source="computed from each node's memory and cores, see docs/reference/profiles.md",
        properties={
            "core-site": {},
            "hdfs-site": hdfs,
            "yarn-site": yarn,
            "mapred-site": mapred,
            "spark-defaults": spark,
        },
        per_node={
            worker.name: {
                "yarn.nodemanager.resource.memory-mb": str(sizing.available[worker.name]),
                "yarn.nodemanager.resource.cpu-vcores": str(_vcores(worker)),
            }
            for worker in spec.workers
        },
        small_daemons=True,
        class_data_archives=frozenset(_WITH_ARCHIVES),
        remarks=(sizing.spark_refusal,) if sizing.spark_refusal else (),
        spark_refusal=sizing.spark_refusal,
    )


def _vcores(worker: NodeSpec) -> int:
    """One more than cores, for the application master; a combined master gives one up."""
    return max(1, worker.cores + (0 if Role.MASTER in worker.roles else 1))
