"""Which daemons run where, with which command, ports and memory."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from boardcluster.records import ClusterSpec, Role
from boardcluster.services.daemons import (
    DAEMONS,
    command_of,
    daemons_of,
    namenode_format_command,
    ports_of,
)
from boardcluster.services.jvm import daemon_environment, daemon_options
from boardcluster.services.layout import PORTS, Layout

MakeSpec = Callable[..., ClusterSpec]
MakeLayout = Callable[[ClusterSpec], Layout]
KINDS = {kind.name: kind for kind in DAEMONS}


def heap_mib(options: list[str]) -> int:
    (heap,) = (option for option in options if option.startswith("-Xmx"))
    return int(heap.removeprefix("-Xmx").removesuffix("m"))


def test_masters_and_workers_in_start_order(make_spec: MakeSpec) -> None:
    rows = [(kind.name, node.name) for kind, node in daemons_of(make_spec(workers=2))]

    assert rows == [
        ("namenode", "master"),
        ("resourcemanager", "master"),
        ("datanode", "worker1"),
        ("datanode", "worker2"),
        ("nodemanager", "worker1"),
        ("nodemanager", "worker2"),
        ("jobhistory", "master"),
        ("sparkhistory", "master"),
    ]


def test_a_combined_master_runs_everything_once(make_spec: MakeSpec) -> None:
    rows = daemons_of(make_spec(workers=2, combined=True, memory_mib=4096))

    assert Counter(node.name for _, node in rows) == {"master": 6, "worker1": 2}
    assert len({(kind.name, node.name) for kind, node in rows}) == len(rows)


def test_no_port_is_bound_twice_on_a_node(make_spec: MakeSpec) -> None:
    spec = make_spec(workers=2, combined=True, memory_mib=4096)
    for node in spec.nodes:
        ports = [
            port for kind, where in daemons_of(spec) if where == node for port in ports_of(kind)
        ]
        assert len(set(ports)) == len(ports)
    assert len(set(PORTS.values())) == len(PORTS)


def test_every_port_belongs_to_a_daemon_and_every_web_page_to_a_port() -> None:
    assert {port for kind in DAEMONS for port in kind.ports} == set(PORTS)
    for kind in DAEMONS:
        assert kind.web in kind.ports
        assert ports_of(kind) == [PORTS[name] for name in kind.ports]


def test_hadoop_daemons_run_from_the_locked_jars_then_their_configuration(layout: Layout) -> None:
    node = layout.spec.workers[0]
    command = command_of(layout, node, KINDS["nodemanager"])
    class_path = command[command.index("-cp") + 1].split(":")
    hadoop = layout.engines.hadoop_jars

    assert command[0] == "/java/bin/java"
    assert command[-2:] == [
        "-Dproc_nodemanager",
        "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
    ]
    # An archive refuses a folder before the jars, so the configuration comes last.
    assert class_path == [
        f"{hadoop}/hadoop-common-9.8.7.jar",
        f"{hadoop}/hadoop-mapreduce-examples-9.8.7.jar",
        "/nodes/worker1/conf",
    ]


@pytest.mark.parametrize("name", ["namenode", "datanode"])
def test_hdfs_daemons_find_their_web_pages_behind_the_configuration(
    name: str, layout: Layout
) -> None:
    command = command_of(layout, layout.spec.master, KINDS[name])
    class_path = command[command.index("-cp") + 1].split(":")

    # Test jars hold stray *-site.xml files: they must not come before ours.
    assert class_path[-2:] == [
        "/nodes/master/conf",
        f"{layout.engines.hadoop_jars}/tests/hadoop-hdfs-9.8.7-tests.jar",
    ]


def test_spark_history_runs_from_sparks_jars_with_the_generated_properties(layout: Layout) -> None:
    command = command_of(layout, layout.spec.master, KINDS["sparkhistory"])
    class_path = command[command.index("-cp") + 1].split(":")

    assert class_path == [*layout.engines.jars("spark"), "/nodes/master/conf"]
    assert len(class_path) == 3
    assert command[-3:] == [
        "org.apache.spark.deploy.history.HistoryServer",
        "--properties-file",
        "/nodes/master/conf/spark-defaults.conf",
    ]


def test_format_refuses_to_overwrite(layout: Layout) -> None:
    command = namenode_format_command(layout)

    assert command[-3:] == [KINDS["namenode"].main, "-format", "-nonInteractive"]
    assert "-force" not in command


# Memory of the node, and the documented heap: a share of it, within bounds.
@pytest.mark.parametrize(
    ("memory_mib", "daemon", "heap"),
    [
        (1024, "datanode", 96),
        (4096, "datanode", 170),
        (65536, "datanode", 1024),
        (1472, "namenode", 160),  # the least master
        (8192, "namenode", 819),
        (65536, "resourcemanager", 2048),
        (2048, "jobhistory", 128),
        (2048, "sparkhistory", 204),
    ],
)
def test_small_daemons_get_a_share_of_their_node(
    memory_mib: int, daemon: str, heap: int, make_spec: MakeSpec, make_layout: MakeLayout
) -> None:
    spec = make_spec(memory_mib=memory_mib, master_memory_mib=max(memory_mib, 1472))
    layout = make_layout(spec)
    node = next(n for n in layout.spec.nodes if KINDS[daemon].role in n.roles)
    assert node.memory_bytes == memory_mib << 20
    options = daemon_options(layout, node, daemon)

    assert heap_mib(options) == heap
    assert "-XX:+UseSerialGC" in options
    assert "-XX:ActiveProcessorCount=4" in options


def test_the_daemons_of_a_1_gb_worker_stay_within_the_256_mib_of_the_rule(
    make_spec: MakeSpec, make_layout: MakeLayout
) -> None:
    layout = make_layout(make_spec(memory_mib=1024, master_memory_mib=2048))
    worker = layout.spec.workers[0]
    heaps = sum(heap_mib(daemon_options(layout, worker, d)) for d in ("datanode", "nodemanager"))

    assert heaps <= 192


def test_other_profiles_run_daemons_as_the_jvm_would(
    make_spec: MakeSpec, make_layout: MakeLayout
) -> None:
    layout = make_layout(make_spec(memory_mib=4096, profile="upstream"))
    options = daemon_options(layout, layout.spec.workers[0], "datanode")

    assert heap_mib(options) == 1024
    assert not any("SerialGC" in option or "Archive" in option for option in options)
    assert "MALLOC_ARENA_MAX" not in daemon_environment(layout, layout.spec.workers[0])


@pytest.mark.parametrize("name", list(KINDS))
def test_every_daemon_can_start_on_java_17_and_keeps_to_its_folder(
    name: str, layout: Layout
) -> None:
    node = layout.spec.master if KINDS[name].role is Role.MASTER else layout.spec.workers[0]
    options = daemon_options(layout, node, name)

    assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in options
    assert f"-Djava.io.tmpdir=/nodes/{node.name}/tmp" in options
    assert len(set(options)) == len(options)


def test_environment_of_a_node(layout: Layout) -> None:
    assert daemon_environment(layout, layout.spec.workers[0]) == {
        "JAVA_HOME": "/java",
        "HADOOP_USER_NAME": "root",
        "HADOOP_CONF_DIR": "/nodes/worker1/conf",
        "SPARK_HOME": str(layout.engines.spark_home),
        "SPARK_CONF_DIR": "/nodes/worker1/conf",
        "SPARK_LOCAL_IP": "worker1",
        "MALLOC_ARENA_MAX": "2",
    }


def test_an_archive_is_used_only_where_it_is(layout: Layout) -> None:
    first, second, *_ = layout.spec.workers
    there = {first.name: frozenset({"worker"}), layout.spec.master.name: frozenset({"worker"})}
    made = replace(layout, archived=there)
    layout.archives.mkdir()
    (layout.archives / "worker.jsa").touch()

    option = f"-XX:SharedArchiveFile={layout.archives}/worker.jsa"
    assert option in daemon_options(made, first, "datanode")
    for node, daemon in ((second, "datanode"), (layout.spec.master, "namenode")):
        found = daemon_options(made, node, daemon)
        assert not any("SharedArchiveFile" in option for option in found), node.name


def test_paths_and_addresses(layout: Layout) -> None:
    assert layout.conf(layout.spec.workers[0]) == "/nodes/worker1/conf"
    assert layout.folder(layout.spec.master, "a", "b") == "/nodes/master/a/b"
    assert layout.spark_events == "/nodes/master/spark-events"
    assert layout.url(layout.spec.master, "namenode-web") == "http://master:9870"
