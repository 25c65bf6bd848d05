"""The daemons of a cluster: what each is, where it runs, and how to know that it is healthy."""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.records import ClusterSpec, NodeSpec, Role
from boardcluster.services.jvm import daemon_options
from boardcluster.services.layout import PORTS, Layout

__all__ = [
    "DAEMONS",
    "DaemonKind",
    "command_of",
    "daemons_of",
    "namenode_format_command",
    "ports_of",
    "safe_mode_command",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonKind:
    """One kind of daemon."""

    name: str
    """Its name."""
    role: Role
    """On which nodes it runs."""
    main: str
    """Its Java class."""
    ports: tuple[str, ...]
    """Every port it binds, by name."""
    spark: bool = False
    """Whether it runs from Spark's jars instead of Hadoop's."""
    web_pages: bool = False
    """Whether its web pages come in Hadoop's test jar."""

    @property
    def web(self) -> str:
        """The port of its web page, by name."""
        return f"{self.name}-web"


DAEMONS = (
    DaemonKind(
        name="namenode",
        role=Role.MASTER,
        main="org.apache.hadoop.hdfs.server.namenode.NameNode",
        ports=("namenode", "namenode-web"),
        web_pages=True,
    ),
    DaemonKind(
        name="resourcemanager",
        role=Role.MASTER,
        main="org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
        ports=(
            "resourcemanager",
            "resourcemanager-scheduler",
            "resourcemanager-tracker",
            "resourcemanager-admin",
            "resourcemanager-web",
        ),
    ),
    DaemonKind(
        name="datanode",
        role=Role.WORKER,
        main="org.apache.hadoop.hdfs.server.datanode.DataNode",
        ports=("datanode", "datanode-web", "datanode-ipc"),
        web_pages=True,
    ),
    DaemonKind(
        name="nodemanager",
        role=Role.WORKER,
        main="org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        ports=("nodemanager", "nodemanager-localizer", "nodemanager-web", "shuffle"),
    ),
    DaemonKind(
        name="jobhistory",
        role=Role.MASTER,
        main="org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
        ports=("jobhistory", "jobhistory-admin", "jobhistory-web"),
    ),
    DaemonKind(
        name="sparkhistory",
        role=Role.MASTER,
        main="org.apache.spark.deploy.history.HistoryServer",
        ports=("sparkhistory-web",),
        spark=True,
    ),
)
"""In start order: what others wait for comes first, history last."""


def daemons_of(spec: ClusterSpec) -> list[tuple[DaemonKind, NodeSpec]]:
    """Return every daemon of a cluster with its node, in start order."""
    return [(kind, node) for kind in DAEMONS for node in spec.nodes if kind.role in node.roles]


def _java(layout: Layout, node: NodeSpec, kind: DaemonKind) -> list[str]:
    if kind.spark:
        class_path = ":".join([*layout.engines.jars("spark"), layout.conf(node)])
    else:
        class_path = layout.class_path(node, web_pages=kind.web_pages)
    options = daemon_options(layout, node, kind.name)
    return [str(layout.java.program), *options, "-cp", class_path]


def command_of(layout: Layout, node: NodeSpec, kind: DaemonKind) -> list[str]:
    """Return the command that runs a daemon in the foreground."""
    extra = ["--properties-file", f"{layout.conf(node)}/spark-defaults.conf"] if kind.spark else []
    name = f"-Dproc_{kind.name}"
    return [*_java(layout, node, kind), name, kind.main, *extra]


_TOLD = "-Dboardcluster.appender=console"
"""Words of a program that the driver waits for are its error, not a log."""


def namenode_format_command(layout: Layout) -> list[str]:
    """Return the command that creates an empty HDFS; it refuses to overwrite one."""
    (kind,) = (kind for kind in DAEMONS if kind.name == "namenode")
    java = _java(layout, layout.spec.master, kind)
    return [*java, _TOLD, kind.main, "-format", "-nonInteractive"]


def safe_mode_command(layout: Layout) -> list[str]:
    """Return the command that has the NameNode leave its safe mode."""
    (kind,) = (kind for kind in DAEMONS if kind.name == "namenode")
    java = _java(layout, layout.spec.master, kind)
    return [*java, _TOLD, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", "leave"]


def ports_of(kind: DaemonKind) -> list[int]:
    """Return the ports that a daemon binds."""
    return [PORTS[port] for port in kind.ports]
