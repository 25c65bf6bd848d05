"""JVM options of the daemons, by node size; what jobs' JVMs must know; and how a JVM crashed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from boardcluster.records import Engine, NodeSpec
from boardcluster.services.archive import archive_options
from boardcluster.services.layout import Layout

__all__ = [
    "JOB_ARCHIVE",
    "crash_words",
    "daemon_environment",
    "daemon_options",
    "job_options",
    "processor_flags",
    "uses_archive",
]

_MIB = 1 << 20
_SHARE = {
    "namenode": (10, 160, 2048),
    "resourcemanager": (10, 160, 2048),
    "jobhistory": (16, 128, 1024),
    "sparkhistory": (10, 192, 1024),
    "datanode": (24, 96, 1024),
    "nodemanager": (24, 96, 1024),
}
"""Heap of a daemon: memory divided by the first figure, but within the other two (MiB)."""

_ARCHIVE = {
    "namenode": "master",
    "resourcemanager": "master",
    "jobhistory": "master",
    "sparkhistory": "spark",
    "datanode": "worker",
    "nodemanager": "worker",
}
"""Which class-data archive a daemon shares."""

JOB_ARCHIVE = {Engine.MAPREDUCE: "mapreduce", Engine.SPARK: "spark"}
"""Which class-data archive the JVMs of a job share."""

_CRASHES = (
    "A fatal error has been detected by the Java Runtime Environment",
    "An error has occurred while processing the shared archive file",
)
_CRASH_LINE = re.compile(r"^# +(SIG[A-Z]+|[VCJjv]  |Internal Error)")
_CRASH_LINES = 20
"""Lines of a crash report within which it names the signal and the frame."""

_BRIEF = ("-XX:TieredStopAtLevel=1",)
"""Not the collector: two that are named keep a JVM from starting, and a user may name one."""

_SMALL = (
    "-XX:+UseSerialGC",  # the parallel collectors' threads and tables cost more than they save
    "-XX:TieredStopAtLevel=1",  # a daemon's hot code is small; C2's code cache is not
    "-XX:ReservedCodeCacheSize=32m",
    "-XX:CICompilerCount=1",
    "-Xms8m",
    "-Xmn4m",  # a daemon's garbage is small; a large nursery stays resident
    "-Xss320k",
    "-XX:-UsePerfData",
)


_AUDITED = ("namenode", "resourcemanager")
"""Daemons with an audit log of their own."""


def daemon_options(layout: Layout, node: NodeSpec, daemon: str) -> list[str]:
    """Return the JVM options of a daemon on a node.

    The profile ``default`` keeps daemons small. The others run them as the JVM would by itself on
    a board of the declared size: a quarter of its memory as heap, all its cores.
    """
    memory = node.memory_bytes // _MIB
    if layout.profile.small_daemons:
        divisor, least, most = _SHARE[daemon]
        options = [f"-Xmx{min(most, max(least, memory // divisor))}m", *_SMALL]
        options += _shared(layout, _ARCHIVE[daemon], [node])
    else:
        options = [f"-Xmx{max(64, memory // 4)}m"]
    return [
        *options,
        f"-XX:ActiveProcessorCount={node.cores}",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={layout.folder(node, 'tmp')}",
        f"-Dhadoop.log.dir={layout.folder(node, 'logs')}",
        f"-Dboardcluster.log={layout.folder(node, 'logs', f'{daemon}.log')}",
        "-Dboardcluster.appender=rolling",
        *_audit(layout, node, daemon),
    ]


def _audit(layout: Layout, node: NodeSpec, daemon: str) -> list[str]:
    """Return where a master writes down who did what; nothing for the others."""
    if daemon not in _AUDITED:
        return []
    path = layout.folder(node, "logs", f"{daemon}-audit.log")
    return [f"-Dboardcluster.audit.log={path}", "-Dboardcluster.audit=audit"]


def processor_flags(layout: Layout, nodes: Sequence[NodeSpec]) -> list[str]:
    """Return what tells a job's JVM how many cores its node has; nothing where it sees them.

    On an emulated node a JVM would count this machine's cores, or a quota's. It is told all cores
    of the node, as a board's JVM sees all, also where several tasks share them. One configuration
    serves all nodes: where they differ, it is the fewest, so that no JVM counts on cores that its
    node lacks.
    """
    if not layout.spec.capabilities.emulated:
        return []
    return [f"-XX:ActiveProcessorCount={min(node.cores for node in nodes)}"]


def job_options(layout: Layout, engine: Engine, *, brief: bool = False) -> list[str]:
    """Return what makes the JVMs of an engine's jobs start fast, as far as the profile allows.

    One configuration serves all nodes, so an archive is used if all of them have it: a JVM that is
    told of one which is missing does without Java's own, too, and starts slower than without.

    An archive works only behind the very jars that it was made of: they must stand first on the
    class path, which is for the caller to see to.

    Args:
        layout: the cluster.
        engine: the engine.
        brief: whether the JVM ends before the second compiler's work would have paid, as clients
            and application masters do, which only direct others.
    """
    profile = layout.profile
    archived = engine in profile.class_data_archives
    return [
        *(_BRIEF if brief and profile.small_daemons else ()),
        *(_shared(layout, JOB_ARCHIVE[engine], layout.spec.nodes) if archived else ()),
    ]


def _shared(layout: Layout, name: str, nodes: Sequence[NodeSpec]) -> list[str]:
    """Return the options that use an archive, if each of the nodes has it.

    On this machine it may have been refused since.
    """
    path = layout.archives / f"{name}.jsa"
    if not all(name in layout.archived.get(node.name, ()) for node in nodes):
        return []
    return [] if layout.shares_files and not path.is_file() else archive_options(path)


def daemon_environment(layout: Layout, node: NodeSpec) -> dict[str, str]:
    """Return the environment of a node's daemons; containers inherit JAVA_HOME from it."""
    environment = {
        "JAVA_HOME": str(layout.java.home),
        "HADOOP_USER_NAME": layout.user,
        "HADOOP_CONF_DIR": layout.conf(node),
        "SPARK_HOME": str(layout.engines.spark_home),
        "SPARK_CONF_DIR": layout.conf(node),
        "SPARK_LOCAL_IP": node.name,  # else its web pages are bound to every address
    }
    if layout.profile.small_daemons:
        environment["MALLOC_ARENA_MAX"] = "2"
    return environment


def uses_archive(layout: Layout, engine: Engine) -> bool:
    """Whether jobs of an engine are told of a class-data archive."""
    return engine in JOB_ARCHIVE and bool(job_options(layout, engine))


def crash_words(lines: Iterable[str]) -> str:
    """Say in one line how a JVM itself crashed, from what it printed; empty if it did not."""
    rest = iter(lines)
    for line in rest:
        if any(crash in line for crash in _CRASHES):
            told = itertools.islice(rest, _CRASH_LINES)
            words = [each.strip("# \n") for each in told if _CRASH_LINE.search(each)]
            return "; ".join(words[-2:]) or line.strip("# \n.:")
    return ""
