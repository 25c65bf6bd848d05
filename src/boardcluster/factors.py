"""The experimental factors: one table of everything that trials of a campaign may differ in.

A campaign file, ``--only``, the plan and its trial ids, the columns of the store, the cells of the
analysis, the axes of figures, the exports and the reference read this table. A new factor is a row
here and a field of ``records.Trial``; tools/write_reference.py writes its lines of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from boardcluster.records import (
    MANY_YEARS,
    Checksum,
    Engine,
    MasterPlacement,
    PlannedFault,
    Trial,
    Variant,
)

__all__ = [
    "FACTORS",
    "FACTORS_BY_NAME",
    "Acts",
    "Factor",
    "engine_of_setting",
    "hashable",
    "later_levels",
    "levels",
    "levels_without",
    "setting_value",
    "setting_words",
    "settings_words",
]

_MIB = 1 << 20


class Acts(StrEnum):
    """Where a factor acts.

    CLUSTER: on the cluster's variant, so that another level restarts the daemons. JOB: on the jobs
    of a trial only. BY_KEY: each key of the level by itself, as services/settings.py knows it.
    """

    CLUSTER = "cluster"
    JOB = "job"
    BY_KEY = "by key"


def _nothing(_: Any) -> dict[str, dict[str, str]]:
    return {}


def _size_words(size_bytes: int) -> str:
    whole = size_bytes >= _MIB and size_bytes % _MIB == 0
    return f"{size_bytes // _MIB} MiB" if whole else f"{size_bytes} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One row of the table."""

    name: str
    """Name of the attribute of ``Trial`` and of the store's column."""
    key: str = ""
    """Name in a ``[[matrix]]`` and in ``--only``; empty if it is ``name``."""
    label: str
    """What it is called before a level: ``replication 2``."""
    meaning: str
    """What it is, for the reference and the exports."""
    left_out: str
    """What holds where a matrix leaves it out, for the reference."""
    allowed: str
    """What a matrix may say, for the reference."""
    kind: type[Any]
    """Type of a level: ``int``, ``str``, ``dict`` or an enumeration."""
    default: Any = None
    """The level of a trial that sets none; None if every trial sets it."""
    unit: str = ""
    """Unit of a number; empty if it has none."""
    least: int = 1
    """Smallest level of a number in a campaign file."""
    most: int | None = None
    """Largest level of a number in a campaign file; None if only the cluster limits it."""
    acts: Acts = Acts.JOB
    """Where it acts."""
    changes_work: bool = False
    """Whether trials of other levels do other work, so that ratios of their times mean nothing."""
    noun: str = ""
    """What a level is, with its article, for messages."""
    says: Callable[[Any], str] | None = None
    """A level in words, for labels and axes; None puts the label before it."""
    properties: Callable[[Any], Mapping[str, Mapping[str, str]]] = _nothing
    """A level as the engines' properties of one submission, by configuration file. Nobody may set
    these as settings then."""
    migration: tuple[str, str] | tuple[()] = ()
    """Name of the migration that adds its column, and the column's type; empty for the columns of
    the first two formats. A released one never changes."""

    @property
    def file_key(self) -> str:
        """Its name in a ``[[matrix]]`` and in ``--only``."""
        return self.key or self.name

    @property
    def is_plain(self) -> bool:
        """Whether its levels are numbers or words that are checked by this table alone."""
        is_word = issubclass(self.kind, StrEnum) and self.kind is not Engine
        return is_word or (self.kind is int and not self.changes_work)

    def words(self, level: Any) -> str:
        """Return a level in words."""
        if self.says:
            return self.says(level)
        return f"{self.label} {_size_words(level) if self.unit == 'bytes' else level}"

    def words_alone(self, level: Any) -> str:
        """Return a level in words where the label stands beside it, as in a table."""
        return self.words(level).removeprefix(f"{self.label} ")

    def level(self, trial: Trial) -> Any:
        """Return a trial's level."""
        return getattr(trial, self.name)

    def is_default(self, trial: Trial) -> bool:
        """Whether a trial has the default level."""
        return bool(self.level(trial) == self.empty)

    @property
    def empty(self) -> Any:
        """The default level; of a table, an empty one."""
        return {} if self.kind is dict else self.default


def engine_of_setting(key: str) -> Engine | None:
    """Return the engine whose jobs alone read a property; None where others may read it too."""
    if key.startswith("spark."):
        return Engine.SPARK
    if key.startswith(("mapreduce.", "yarn.app.mapreduce.")):
        return Engine.MAPREDUCE
    return None


def setting_value(key: str, value: str) -> str:
    """Return the value of an engine setting as it is shown: ``32 MiB``."""
    is_size = any(word in key.lower() for word in ("size", "bytes")) and value.isdecimal()
    if is_size and int(value) >= _MIB and int(value) % _MIB == 0:
        return _size_words(int(value))
    return value


def setting_words(key: str, value: str) -> str:
    """Return one engine setting in words: ``dfs.blocksize 32 MiB``."""
    return f"{key} {setting_value(key, value)}"


def settings_words(settings: Mapping[str, str]) -> str:
    """Return engine settings in words, sorted by key; empty if there are none."""
    return ", ".join(setting_words(key, settings[key]) for key in sorted(settings))


def _parameter_words(parameters: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(parameters.items()))


FACTORS = (
    Factor(
        name="workload",
        label="workload",
        meaning="name of the workload; several joined by + are a mix",
        left_out="needed",
        allowed="workloads and [mixes](#mixes)",
        kind=str,
        changes_work=True,
    ),
    Factor(
        name="engine",
        label="engine",
        meaning="the engine",
        left_out="all that the workload has",
        allowed="`mapreduce`, `spark`, `mpi`, `http`, `galera`, `gluster`",
        kind=Engine,
        noun="an engine",
    ),
    Factor(
        name="profile",
        label="profile",
        meaning="the engine configuration; your own is the path of its file",
        left_out="the cluster's",
        allowed="a profile, or the path of a file of your own; see [profiles.md](profiles.md)",
        kind=str,
        acts=Acts.CLUSTER,
        says=lambda name: f"profile {PurePath(name).name}",
    ),
    Factor(
        name="size_bytes",
        key="size",
        label="size",
        meaning="size of the input; 0 where there is none",
        left_out="none",
        allowed="1 B to 1000 TB; needed by workloads that take a size, except `hpl`",
        kind=int,
        default=0,
        unit="bytes",
        changes_work=True,
    ),
    Factor(
        name="workers",
        label="workers",
        meaning="number of workers",
        left_out="all of the cluster's",
        allowed="1 to 64: the first so many workers of `cluster.toml`",
        kind=int,
        most=64,
        acts=Acts.CLUSTER,
        says=lambda number: "1 worker" if number == 1 else f"{number} workers",
    ),
    Factor(
        name="concurrency",
        label="concurrency",
        meaning="jobs of a mix at once",
        left_out="all jobs at once, and 1",
        allowed="1 to the number of jobs of the mix",
        kind=int,
        default=1,
        unit="jobs",
        says=lambda jobs: "one after the other" if jobs == 1 else f"{jobs} at once",
    ),
    Factor(
        name="replication",
        label="replication",
        meaning="copies of each block; 0 is the profile's own number",
        left_out="the profile's",
        allowed="1 to 512: copies of each HDFS block",
        kind=int,
        default=0,
        unit="copies",
        most=512,  # dfs.replication.max of hdfs-default.xml
        says=lambda copies: f"replication {copies}" if copies else "the profile's replication",
        properties=lambda copies: {"hdfs-site": {"dfs.replication": str(copies)}} if copies else {},
    ),
    Factor(
        name="checksum",
        label="checksum",
        meaning="checksums of blocks",
        left_out="`crc32c`",
        allowed="`crc32c`, `null`: checksums of HDFS blocks",
        kind=Checksum,
        default=Checksum.CRC32C,
        noun="a checksum type",
        properties=lambda kind: (
            {"hdfs-site": {"dfs.checksum.type": "NULL"}} if kind is Checksum.NULL else {}
        ),
    ),
    Factor(
        name="master",
        label="master",
        meaning="where the master runs",
        left_out="`declared`",
        allowed="`declared` as in `cluster.toml`, `separate` on a node of its own, `combined` with "
        "the first worker",
        kind=MasterPlacement,
        default=MasterPlacement.DECLARED,
        noun="a master placement",
        acts=Acts.CLUSTER,
    ),
    Factor(
        name="input",
        label="input",
        meaning="the text that is read; empty for the flights",
        left_out="real flights",
        allowed="path of a text file for the workloads that read text; a relative one starts at "
        f"the folder of this file. Or `{MANY_YEARS}`: "
        "[flights as distinct as the papers'](#text-of-the-papers-shape)",
        kind=str,
        default="",
        changes_work=True,
        says=lambda path: f"input {PurePath(path).name}" if path else "flights",
    ),
    Factor(
        name="parameters",
        label="parameters",
        meaning="workload.parameter and value, only what was set",
        left_out="each workload's own",
        allowed="tables `[matrix.parameters.WORKLOAD]`; see below",
        kind=dict,
        changes_work=True,
        says=lambda found: _parameter_words(found) or "no parameters set",
    ),
    Factor(
        name="settings",
        label="settings",
        meaning="properties of the engines and values, only what was set",
        left_out="the cluster's",
        allowed="table `[matrix.settings]` of the engines' properties; see [settings](settings.md)",
        kind=dict,
        acts=Acts.BY_KEY,
        says=lambda found: settings_words(found) or "no settings",
        migration=("0006_settings", "TEXT NOT NULL DEFAULT '{}'"),  # a JSON object of strings
    ),
    Factor(
        name="variant",
        label="variant",
        meaning="the program that runs: ours, or one written as textbooks do",
        left_out="`fast`",
        allowed="`fast`, `textbook`: which program of each workload runs on Spark, ours or one "
        "written as textbooks and the papers do; on MapReduce Hadoop's stock example is the "
        "textbook one and runs unless the workload's `form` says otherwise",
        kind=Variant,
        default=Variant.FAST,
        noun="a variant",
        migration=("0009_variant", "TEXT NOT NULL DEFAULT 'fast'"),
    ),
    Factor(
        name="fault",
        label="fault",
        meaning="what happens to a worker of a service in the middle of the run",
        left_out="`none`",
        allowed="`none`, `kill`: the last worker's server is killed and started again, `link`: its "
        "network link is down for a while, on emulated nodes only; for services",
        kind=PlannedFault,
        default=PlannedFault.NONE,
        noun="a fault",
        migration=("0011_fault", "TEXT NOT NULL DEFAULT 'none'"),
    ),
)
"""Every factor, in the order in which tables show them."""

FACTORS_BY_NAME = {factor.name: factor for factor in FACTORS}


def hashable(level: Any) -> Any:
    """Return a level that can be sorted and hashed: a table as sorted pairs."""
    return tuple(sorted(level.items())) if isinstance(level, dict) else level


def levels(trial: Trial, *, without: Iterable[str] = ()) -> tuple[Any, ...]:
    """Return a trial's level of every factor but some: equal tuples are equal cells."""
    left_out = frozenset(without)
    return tuple(hashable(factor.level(trial)) for factor in FACTORS if factor.name not in left_out)


def levels_without(trial: Trial, name: str) -> tuple[Any, ...]:
    """Return every level of a trial but one: of a factor, or of one parameter or setting."""
    if name in FACTORS_BY_NAME:
        return levels(trial, without=[name])
    return tuple(
        tuple(pair for pair in level if not isinstance(pair, tuple) or pair[0] != name)
        if isinstance(level, tuple)
        else level
        for level in levels(trial)
    )


def later_levels(trial: Trial) -> tuple[tuple[str, Any], ...]:
    """Return names and levels of what a trial sets among factors that came with a migration."""
    return tuple(
        (factor.name, hashable(factor.level(trial)))
        for factor in FACTORS
        if factor.migration and not factor.is_default(trial)
    )
