"""Engine pairs: which Hadoop and Spark go together, as data.

A pair is one lock file in ``pairs/``; its file name is its id. Adding a pair adds a file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

from boardcluster.errors import UsageError

__all__ = ["EnginePair", "LockedJar", "load_pair", "pair_ids"]

_FOLDER = resources.files("boardcluster.services").joinpath("pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJar:
    """One jar of Maven Central."""

    organisation: str
    """The Maven group."""
    module: str
    """The Maven artifact."""
    revision: str
    """Its version."""
    classifier: str
    """Its classifier; empty for the main jar."""
    sha256: str
    """Hexadecimal digest of the file."""
    size_bytes: int
    """Size of the file."""

    @property
    def place(self) -> str:
        """Path inside the folder of jars; test jars stay off the class path of every job."""
        return f"tests/{self.file_name}" if self.classifier == "tests" else self.file_name

    @property
    def file_name(self) -> str:
        """Name of the file as Maven repositories name it."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.module}-{self.revision}{tail}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePair:
    """A Hadoop and a Spark that go together."""

    id: str
    """Name of the lock file."""
    hadoop: str
    """Version of Hadoop."""
    spark: str
    """Version of Spark."""
    java_oldest: int
    """Oldest Java feature version that runs it."""
    java_newest: int
    """Newest Java feature version that runs it."""
    pyspark_requirement: str
    """What pip fetches."""
    pyspark_sha256: str
    """Digest of the source distribution."""
    pyspark_size_bytes: int
    """Its size."""
    jars: tuple[LockedJar, ...]
    """Every Hadoop jar."""


def pair_ids() -> tuple[str, ...]:
    """Return the ids of all pairs, newest Hadoop first."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(n.removesuffix(".toml") for n in names if n.endswith(".toml"))[::-1])


def load_pair(pair_id: str) -> EnginePair:
    """Read a lock file.

    Raises:
        UsageError: there is no such pair.
    """
    if pair_id not in pair_ids():
        raise UsageError(
            f"unknown engine pair {pair_id!r}", hint=f"choose one of: {', '.join(pair_ids())}"
        )
    raw = tomllib.loads(_FOLDER.joinpath(f"{pair_id}.toml").read_text())
    oldest, newest = raw["java"]
    return EnginePair(
        **{name: raw[name] for name in ("id", "hadoop", "spark")},
        **{f"pyspark_{name}": value for name, value in raw["pyspark"].items()},
        java_oldest=oldest,
        java_newest=newest,
        jars=tuple(_jar(coordinate, value) for coordinate, value in raw["jars"].items()),
    )


def _jar(coordinate: str, value: str) -> LockedJar:
    organisation, module, revision, *classifier = coordinate.split(":")
    sha256, size_bytes = value.split()
    return LockedJar(
        organisation=organisation,
        module=module,
        revision=revision,
        classifier=classifier[0] if classifier else "",
        sha256=sha256,
        size_bytes=int(size_bytes),
    )
