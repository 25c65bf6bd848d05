"""Where things are on a node, and which ports they have. One place for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.records import ClusterSpec, NodeSpec

if TYPE_CHECKING:  # a name in a layout needs none of what installs
    from boardcluster.services.install import Installation
    from boardcluster.services.java import Java
    from boardcluster.services.profile import Profile

__all__ = ["PORTS", "Layout"]

PORTS = {
    "namenode": 8020,
    "namenode-web": 9870,
    "datanode": 9866,
    "datanode-web": 9864,
    "datanode-ipc": 9867,
    "resourcemanager": 8032,
    "resourcemanager-scheduler": 8030,
    "resourcemanager-tracker": 8031,
    "resourcemanager-admin": 8033,
    "resourcemanager-web": 8088,
    "nodemanager": 8041,
    "nodemanager-localizer": 8040,
    "nodemanager-web": 8042,
    "shuffle": 13562,
    "jobhistory": 10020,
    "jobhistory-admin": 10033,
    "jobhistory-web": 19888,
    "sparkhistory-web": 18080,
}
"""The projects' own default ports; the NodeManager's, which defaults to a random one, is fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything that configuration and commands are made from."""

    spec: ClusterSpec
    """The cluster."""
    profile: Profile
    """The engine configuration."""
    engines: Installation
    """The engine pair on disk."""
    java: Java
    """The JVM."""
    archives: Path
    """Folder of the class-data archives, as nodes see it."""
    folders: dict[str, str]
    """Per node, its own folder as the node sees it."""
    user: str
    """The user name that everything runs as in Hadoop's eyes."""
    archived: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Per node, the names of the class-data archives that are there; a node that is missing has
    none."""
    storage: str = "data"
    """Name of the folder, on each node, of its HDFS data and the like."""
    jobs_jar: str = ""
    """The jar of our Spark jobs on nodes with files of their own; empty if they see this machine's.
    """
    dilation: float = 1.0
    """By how much the nodes run slower than the boards they stand for; the intervals that engines
    measure, and the driver's own waits for nodes, are so many times longer."""

    def folder(self, node: NodeSpec, *parts: str) -> str:
        """Return a path inside a node's own folder."""
        return str(Path(self.folders[node.name], *parts))

    def data(self, node: NodeSpec, *parts: str) -> str:
        """Return a path inside a node's storage folder."""
        return self.folder(node, self.storage, *parts)

    def on_medium(self, node: NodeSpec, *parts: str) -> str:
        """Return a path on the medium of a node's storage folder, beside that."""
        return self.folder(node, *Path(self.storage).parent.parts, *parts)

    def conf(self, node: NodeSpec) -> str:
        """Return the folder of a node's configuration files."""
        return self.folder(node, "conf")

    @property
    def shares_files(self) -> bool:
        """Whether nodes see the files of this machine under the same paths."""
        return self.spec.capabilities.shares_files

    @property
    def spark_events(self) -> str:
        """Folder, on the master, of Spark's event logs: the driver of a job runs there."""
        return self.folder(self.spec.master, "spark-events")

    def url(self, node: NodeSpec, port: str) -> str:
        """Return the address of a web interface."""
        return f"http://{node.name}:{PORTS[port]}"

    def class_path(self, node: NodeSpec, *, web_pages: bool = False) -> str:
        """Return Hadoop's class path on a node.

        The configuration comes after the jars because a class-data archive does not work behind
        a non-empty folder, and before the test jars because those hold stray ``*-site.xml`` files.
        """
        jars = [*self.engines.jars("hadoop"), self.conf(node)]
        if web_pages:
            jars.append(str(self.engines.hadoop_test_jar("hadoop-hdfs")))
        return ":".join(jars)
