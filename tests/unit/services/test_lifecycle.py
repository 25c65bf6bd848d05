"""Configure, start, watch and stop, with nodes that only know what they were told."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.state import IDENTITY_VARIABLE, Daemon
from boardcluster.errors import (
    AddressError,
    DaemonError,
    JvmCrashError,
    RemoteError,
    UnreadyNameNodeError,
)
from boardcluster.records import ClusterSpec, TwinSpec
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services import lifecycle
from boardcluster.services.conf import config_sha256, render_node
from boardcluster.services.daemons import command_of, daemons_of, namenode_format_command
from boardcluster.services.jvm import daemon_environment
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.provision.manager import DaemonCommand, PlainProcesses

LIST = ("sh", "-c", 'mkdir -p "$1" && ls "$1"', "sh", "/nodes/master/data/namenode/current")
FILE_SYSTEM = "VERSION\nfsimage_0000000000000000000\nseen_txid\n"


@pytest.fixture
def remotes(layout: Layout) -> dict[str, FakeRemote]:
    return {node.name: FakeRemote(node.name) for node in layout.spec.nodes}


def plain(remotes: Mapping[str, FakeRemote]) -> dict[str, PlainProcesses]:
    return {name: PlainProcesses(remote) for name, remote in remotes.items()}


def start(
    layout: Layout,
    remotes: Mapping[str, FakeRemote],
    told: Callable[[Daemon], None] = lambda _: None,
) -> list[Daemon]:
    return lifecycle.start(
        layout, remotes, managers=plain(remotes), identity="identity-1", started=told
    )


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_POLL_SECONDS", 0.0)


def test_configure_writes_every_node_its_files_and_folders(
    layout: Layout, remotes: dict[str, FakeRemote], tmp_path: Path
) -> None:
    for name, remote in remotes.items():
        extra = ["/nodes/master/spark-events"] if name == "master" else []
        base = f"/nodes/{name}"
        remote.tell("mkdir", "-p", f"{base}/logs", f"{base}/data", f"{base}/tmp", *extra)
    staging = tmp_path / "conf"
    (staging / "worker9").mkdir(parents=True)  # of a cluster that was larger once

    digest = lifecycle.configure(layout, remotes, staging=staging)

    rendered = {node.name: render_node(layout, node) for node in layout.spec.nodes}
    assert digest == config_sha256(rendered)
    for name, remote in remotes.items():
        assert remote.files == {
            f"/nodes/{name}/conf/{file}": text.encode() for file, text in rendered[name].items()
        }
        assert len(remote.calls) == 1
        assert (staging / name / "core-site.xml").read_text() == rendered[name]["core-site.xml"]
    assert not (staging / "worker9").exists()


@pytest.mark.parametrize(("declared", "same"), [(None, True), (4.0, False)])
def test_a_dilation_that_follows_from_this_machines_speed_is_not_in_the_hash(
    layout: Layout, tmp_path: Path, declared: float | None, same: bool
) -> None:
    spec = replace(layout.spec, twin=TwinSpec(dilation=declared))
    hashes = []
    for dilation in (4.0, 4.1):
        remotes = {node.name: FakeRemote(node.name) for node in spec.nodes}
        for name, remote in remotes.items():
            extra = ["/nodes/master/spark-events"] if name == "master" else []
            base = f"/nodes/{name}"
            remote.tell("mkdir", "-p", f"{base}/logs", f"{base}/data", f"{base}/tmp", *extra)
        slowed = replace(layout, spec=spec, dilation=dilation)
        hashes.append(lifecycle.configure(slowed, remotes, staging=tmp_path / "conf"))
        heartbeat = remotes["worker1"].files["/nodes/worker1/conf/hdfs-site.xml"]
        assert f"time dilation {dilation:g}".encode() in heartbeat
    assert (hashes[0] == hashes[1]) is same


def test_each_form_has_its_own_storage_and_its_own_hdfs(
    layout: Layout, remotes: dict[str, FakeRemote], tmp_path: Path
) -> None:
    other = replace(layout, storage="data-2w")
    for name, remote in remotes.items():
        extra = ["/nodes/master/spark-events"] if name == "master" else []
        base = f"/nodes/{name}"
        remote.tell("mkdir", "-p", f"{base}/logs", f"{base}/data-2w", f"{base}/tmp", *extra)

    lifecycle.configure(other, remotes, staging=tmp_path / "conf")

    tell_everything(other, remotes)
    master = remotes["master"]
    master.tell(*LIST[:-1], "/nodes/master/data-2w/namenode/current")
    master.tell("rm", "-rf", "/nodes/master/data-2w/namenode")
    master.tell(*namenode_format_command(other))
    start(other, remotes)
    assert ("rm", "-rf", "/nodes/master/data-2w/namenode") in master.calls
    assert tuple(namenode_format_command(other)) in master.calls


def tell_everything(
    layout: Layout, remotes: dict[str, FakeRemote], *, held: str | None = FILE_SYSTEM
) -> None:
    for remote in remotes.values():
        remote.tell_node_agent("listening", [])
    for kind, node in daemons_of(layout.spec):
        remotes[node.name].tell(*command_of(layout, node, kind))
    remotes["master"].tell(*LIST, stdout=held or "", returncode=0 if held is not None else 2)


def test_start_starts_every_daemon_and_tells_of_each_at_once(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    tell_everything(layout, remotes)
    told: list[Daemon] = []
    kinds = {tuple(command_of(layout, n, k)): (k.name, n.name) for k, n in daemons_of(layout.spec)}

    def tell(daemon: Daemon) -> None:
        told.append(daemon)
        known = {(one.name, one.node) for one in told}
        running = {
            kinds[call] for remote in remotes.values() for call in remote.calls if call in kinds
        }
        assert known <= running
        # So that a driver killed now can still be cleaned up after: beside what is known runs only
        # what starts at this moment on other nodes.
        assert {kind for kind, _ in running - known} <= {daemon.name}

    daemons = start(layout, remotes, tell)

    assert told == daemons
    rows = {(daemon.name, daemon.node) for daemon in daemons}
    assert rows == {(kind.name, node.name) for kind, node in daemons_of(layout.spec)}
    assert daemons[-1].log == "/nodes/master/logs/sparkhistory.log"
    names = [daemon.name for daemon in daemons]
    assert names.index("namenode") < names.index("datanode")
    assert not any(call[-2:-1] == ("-format",) for call in remotes["master"].calls)


class Keeper:
    """Keeps the daemons of a node, and remembers what it was asked to start.

    Attributes:
        fails: the daemon that cannot be started.
    """

    def __init__(self, *, fails: str = "") -> None:
        self.commands: list[DaemonCommand] = []
        self.stopped: list[dict[str, ProcessRef]] = []
        self.fails = fails

    def start(self, daemon: DaemonCommand) -> ProcessRef:
        if daemon.name == self.fails:
            raise DaemonError(f"{daemon.name} could not be started")
        self.commands.append(daemon)
        return ProcessRef(100 + len(self.commands), 1)

    def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
        return dict(known)

    def stop(self, known: Mapping[str, ProcessRef], *, grace_seconds: float) -> int:
        assert grace_seconds == 1.5
        self.stopped.append(dict(known))
        return len(known) - 1


def test_each_daemon_is_kept_by_its_node_and_carries_the_identity(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    tell_everything(layout, remotes)
    keepers = {name: Keeper() for name in remotes}

    daemons = lifecycle.start(
        layout, remotes, managers=keepers, identity="identity-1", started=lambda _: None
    )

    commands = {
        (command.name, name): command
        for name, keeper in keepers.items()
        for command in keeper.commands
    }
    assert set(commands) == {(kind.name, node.name) for kind, node in daemons_of(layout.spec)}
    for daemon, (kind, node) in zip(
        sorted(daemons, key=lambda row: (row.name, row.node)),
        sorted(daemons_of(layout.spec), key=lambda row: (row[0].name, row[1].name)),
        strict=True,
    ):
        command = commands[daemon.name, node.name]
        assert list(command.argv) == command_of(layout, node, kind)
        assert command.env == {
            **daemon_environment(layout, node),
            IDENTITY_VARIABLE: "identity-1",
        }
        assert command.cwd == f"/nodes/{node.name}/tmp"
        assert command.log == daemon.log == f"/nodes/{node.name}/logs/{daemon.name}.log"
        place = keepers[node.name].commands.index(command)
        assert daemon.process == ProcessRef(101 + place, 1)


def test_what_started_before_one_that_does_not_is_known(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    tell_everything(layout, remotes)
    keepers = {name: Keeper(fails="datanode" if name == "worker3" else "") for name in remotes}
    told: list[Daemon] = []

    with pytest.raises(DaemonError, match="datanode could not be started"):
        lifecycle.start(
            layout, remotes, managers=keepers, identity="identity-1", started=told.append
        )

    rows = [(daemon.name, daemon.node) for daemon in told]
    assert rows[-2:] == [("datanode", "worker1"), ("datanode", "worker2")]
    # Nothing that follows was started.
    later = {command.name for keeper in keepers.values() for command in keeper.commands}
    assert later == {kind for kind, _ in rows}


def test_start_asks_for_exactly_the_ports_of_each_node(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    tell_everything(layout, remotes)

    start(layout, remotes)

    (request,) = remotes["worker1"].requests
    assert sorted(request["ports"]) == [8040, 8041, 8042, 9864, 9866, 9867, 13562]


@pytest.mark.parametrize(
    "left",
    ["", "VERSION\nfsimage.ckpt_0000000000000000000\nfsimage_0000000000000000000.md5\n"],
)
def test_start_formats_a_master_without_a_file_system_before_the_namenode(
    layout: Layout, remotes: dict[str, FakeRemote], left: str
) -> None:
    """Hadoop writes VERSION first and the image last: a format may have been killed between."""
    tell_everything(layout, remotes, held=left)
    master = remotes["master"]
    master.tell("rm", "-rf", "/nodes/master/data/namenode")
    master.tell(*namenode_format_command(layout))

    start(layout, remotes)

    namenode = next(tuple(command_of(layout, n, k)) for k, n in daemons_of(layout.spec))
    order = [
        call
        for call in master.calls
        if call[0] == "rm" or call in (tuple(namenode_format_command(layout)), namenode)
    ]
    assert order == [
        ("rm", "-rf", "/nodes/master/data/namenode"),
        tuple(namenode_format_command(layout)),
        namenode,
    ]


@pytest.mark.parametrize("held", ["fsimage_0000000000000000042\n", "VERSION\nedits_0-7\n"])
def test_a_damaged_file_system_is_never_formatted(
    layout: Layout, remotes: dict[str, FakeRemote], held: str
) -> None:
    """The NameNode says what is wrong with it; perhaps it can be mended."""
    tell_everything(layout, remotes, held=held)

    start(layout, remotes)

    assert not any(call[0] == "rm" for call in remotes["master"].calls)


def test_a_master_whose_disk_cannot_be_read_is_not_formatted(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    tell_everything(layout, remotes, held=None)

    with pytest.raises(RemoteError):
        start(layout, remotes)

    assert not any(call[0] == "rm" for call in remotes["master"].calls)


def test_a_failed_format_is_a_daemon_error(layout: Layout, remotes: dict[str, FakeRemote]) -> None:
    tell_everything(layout, remotes, held="")
    remotes["master"].tell("rm", "-rf", "/nodes/master/data/namenode")
    remotes["master"].tell(*namenode_format_command(layout), returncode=1)
    told: list[Daemon] = []

    with pytest.raises(DaemonError, match="HDFS could not be created on master") as caught:
        start(layout, remotes, told.append)

    assert caught.value.hint
    assert [daemon.name for daemon in told] == ["resourcemanager"]


def test_a_taken_port_is_named_before_anything_starts(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    for name, remote in remotes.items():
        remote.tell_node_agent("listening", [9866, 13562] if name == "worker2" else [])

    with pytest.raises(AddressError) as caught:
        start(layout, remotes, lambda _: pytest.fail("something started"))

    assert caught.value.message == (
        "on node worker2 another program already listens on port 9866 (datanode), 13562 (shuffle)"
    )
    assert "ss -ltnp" in caught.value.hint


def ok(body: object) -> dict[str, Any]:
    return {"status": 200, "body": json.dumps(body), "location": None}


NOBODY = {"status": 0, "body": "ConnectionRefusedError", "location": None}


def answers(
    datanodes: int = 4, managers: int = 4, *, state: str = "Operational", history: bool = True
) -> list[dict[str, Any]]:
    bean = {
        "NumLiveDataNodes": datanodes,
        "FSState": state,
        "CapacityRemaining": 12345,
        "UnderReplicatedBlocks": 6,
    }
    return [
        ok({"beans": [bean]}),
        ok({"clusterMetrics": {"activeNodes": managers}}),
        ok({"historyInfo": {}}),
        ok({"spark": "6"}) if history else NOBODY,
    ]


def test_health_reads_what_the_masters_say(layout: Layout) -> None:
    remote = FakeRemote()
    remote.tell_node_agent("http", answers(3, 2))

    health = lifecycle.health(layout, remote)

    assert health == Health(
        live_datanodes=3,
        live_nodemanagers=2,
        safe_mode=False,
        history=True,
        hdfs_free_bytes=12345,
        under_replicated_blocks=6,
    )
    assert [request["url"] for request in remote.requests[0]["requests"]] == [
        "http://master:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState",
        "http://master:8088/ws/v1/cluster/metrics",
        "http://master:19888/ws/v1/history/info",
        "http://master:18080/api/v1/version",
    ]


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (
            ok(
                {
                    "beans": [
                        {
                            "UnderReplicatedBlocks": 40,
                            "PendingReplicationBlocks": 5,
                            "PendingReconstructionBlocks": 5,
                            "ScheduledReplicationBlocks": 3,
                        }
                    ]
                }
            ),
            (8, 40),
        ),
        (ok({"beans": [{"UnderReplicatedBlocks": 6}]}), (0, 6)),
        (ok({"beans": []}), (0, 0)),
        (NOBODY, (0, 0)),
    ],
)
def test_what_hdfs_copies_is_asked_with_one_small_request(
    answer: dict[str, Any], seen: tuple[int, int], layout: Layout
) -> None:
    remote = FakeRemote()
    remote.tell_node_agent("http", [answer])

    found = lifecycle.copying(layout, remote)

    assert (found.blocks, found.lacking_blocks) == seen
    (request,) = remote.requests
    assert [row["url"] for row in request["requests"]] == [
        "http://master:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    ]


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        (answers(), True),
        (answers(3, 4), False),
        (answers(4, 3), False),
        (answers(5, 4), False),
        (answers(state="safeMode"), False),
        ([NOBODY] * 4, False),
        ([ok({"beans": []}), *answers()[1:]], False),
    ],
)
def test_health_is_good_only_when_every_worker_takes_data_and_work(
    rows: list[dict[str, Any]], good: bool, layout: Layout
) -> None:
    remote = FakeRemote()
    remote.tell_node_agent("http", rows)

    assert lifecycle.health(layout, remote).is_good(4) is good


def started(layout: Layout, remotes: Mapping[str, FakeRemote]) -> list[Daemon]:
    return [
        Daemon(
            name=kind.name,
            node=node.name,
            process=ProcessRef(7, 1),
            log=f"/{kind.name}.log",
            url="",
        )
        for kind, node in daemons_of(layout.spec)
        if node.name == "master"
    ]


def wait(
    layout: Layout, remotes: dict[str, FakeRemote], *, timeout_seconds: float = 30.0
) -> list[Health]:
    seen: list[Health] = []
    lifecycle.wait_healthy(
        layout,
        remotes,
        started(layout, remotes),
        home=Path("/homes/pis"),
        patience_seconds=timeout_seconds,
        seen=seen.append,
    )
    return seen


def views(*alive: bool) -> list[dict[str, Any]]:
    return [{"alive": a, "resident_bytes": 0, "proportional_bytes": 0} for a in alive]


def test_wait_goes_on_until_everything_answers(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    master = remotes["master"]
    for rows in ([NOBODY] * 4, answers(1, 0), answers(history=False), answers()):
        master.tell_node_agent("http", rows)

    seen = wait(layout, remotes)

    assert [(h.live_datanodes, h.live_nodemanagers, h.history) for h in seen] == [
        (0, 0, False),
        (1, 0, True),
        (4, 4, False),
        (4, 4, True),
    ]


def test_wait_reports_the_last_state_when_time_runs_out(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    remotes["master"].tell_node_agent("http", answers(4, 3, state="safeMode", history=False))
    remotes["master"].tell_node_agent("processes", views(True, True, True, True))

    with pytest.raises(DaemonError) as caught:
        wait(layout, remotes, timeout_seconds=0.05)

    assert "4 of 4 DataNodes and 3 of 4 NodeManagers live" in caught.value.message
    assert "safe mode on" in caught.value.message
    assert "history servers do not answer" in caught.value.message
    assert "logs" in caught.value.hint


LOG = """\
2026-01-01 10:00:00,000 INFO namenode.NameNode: STARTUP_MSG
2026-01-01 10:00:01,000 ERROR namenode.NameNode: Failed to start namenode.
java.net.BindException: Problem binding to [master:8020]
\tat org.apache.hadoop.Something(Something.java:1)
2026-01-01 10:00:02,000 INFO util.ExitUtil: Exiting with status 1
"""


def test_wait_names_a_daemon_that_died_with_the_lines_that_matter(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    remotes["master"].tell_node_agent("http", [NOBODY] * 4)
    remotes["master"].tell_node_agent("processes", views(False, True, True, True))
    remotes["master"].tell("tail", "-n", "200", "/namenode.log", stdout=LOG)

    with pytest.raises(DaemonError) as caught:
        wait(layout, remotes)

    assert caught.value.message.startswith("namenode on master ended while starting:\n")
    assert "Failed to start namenode" in caught.value.message
    assert "STARTUP_MSG" not in caught.value.message
    assert "a port of namenode on master is taken (8020, 9870)" in caught.value.hint
    assert "see /namenode.log" in caught.value.hint


CRASH = """\
2026-01-01 10:00:00,000 INFO namenode.NameNode: STARTUP_MSG
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGSEGV (0xb) at pc=0x00007f2b7e9a1234, pid=1234, tid=1235
#
# JRE version: OpenJDK Runtime Environment (17.0.15+6) (build 17.0.15+6-Debian-1deb12u1)
# Java VM: OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1, mixed mode, sharing)
# Problematic frame:
# V  [libjvm.so+0x9a1234]  SymbolTable::do_lookup(char const*, int, unsigned long)+0x44
#
# No core dump will be written.
"""


def test_a_crash_of_the_jvm_itself_is_told_apart(
    layout: Layout, remotes: dict[str, FakeRemote]
) -> None:
    remotes["master"].tell_node_agent("http", [NOBODY] * 4)
    remotes["master"].tell_node_agent("processes", views(False, True, True, True))
    remotes["master"].tell("tail", "-n", "200", "/namenode.log", stdout=CRASH)

    with pytest.raises(JvmCrashError, match="the JVM of namenode on master crashed") as caught:
        wait(layout, remotes)

    assert "SIGSEGV (0xb)" in caught.value.message
    assert "libjvm.so" in caught.value.message
    assert "STARTUP_MSG" not in caught.value.message


EARLY = """\
ERROR hs.JobHistoryServer: Error starting JobHistoryServer
org.apache.hadoop.yarn.exceptions.YarnRuntimeException: Error creating done directory
Caused by: org.apache.hadoop.ipc.RemoteException: NameNode still not started
INFO util.ExitUtil: Exiting with status -1: Error starting JobHistoryServer
"""
OTHER = """\
ERROR hs.JobHistoryServer: Error starting JobHistoryServer
java.io.IOException: No space left on device
Caused by: java.io.IOException: No space left on device
INFO util.ExitUtil: Exiting with status -1: Error starting JobHistoryServer
"""
BOUND = "java.net.BindException: Address already in use\n"


@pytest.mark.parametrize(
    ("log", "early"),
    [(EARLY, True), (OTHER + EARLY, True), (EARLY + OTHER, False), (EARLY + BOUND, False)],
    ids=["early", "only now early", "early in a former start", "a port is taken"],
)
def test_a_daemon_that_asked_a_moment_too_early_is_told_apart(
    layout: Layout, remotes: dict[str, FakeRemote], log: str, early: bool
) -> None:
    remotes["master"].tell_node_agent("http", [NOBODY] * 4)
    remotes["master"].tell_node_agent("processes", views(False, True, True, True))
    remotes["master"].tell("tail", "-n", "200", "/namenode.log", stdout=log)

    with pytest.raises(DaemonError, match="namenode on master ended while starting:\n") as caught:
        wait(layout, remotes)

    assert isinstance(caught.value, UnreadyNameNodeError) == early
    assert log.splitlines()[-1] in caught.value.message


def test_stop_ends_the_processes_of_each_node(remotes: dict[str, FakeRemote]) -> None:
    remotes["worker1"].tell_node_agent("end", {"killed": 2})
    remotes["worker2"].tell_node_agent("end", {"killed": 1})
    daemons = [
        ("worker1", "datanode", ProcessRef(10, 1)),
        ("worker2", "datanode", ProcessRef(20, 2)),
        ("worker1", "nodemanager", ProcessRef(11, 3)),
    ]

    assert lifecycle.stop(plain(remotes), daemons, grace_seconds=1.5) == 3
    assert remotes["worker1"].requests == [
        {"do": "end", "processes": [[10, 1], [11, 3]], "grace_seconds": 1.5}
    ]
    assert remotes["worker3"].calls == []


def test_stop_tells_what_keeps_the_daemons_their_names() -> None:
    keepers = {name: Keeper() for name in ("worker1", "worker2", "worker3")}
    one, two, three = ProcessRef(10, 1), ProcessRef(20, 2), ProcessRef(11, 3)
    daemons = [
        ("worker1", "datanode", one),
        ("worker2", "datanode", two),
        ("worker1", "nodemanager", three),
    ]

    assert lifecycle.stop(keepers, daemons, grace_seconds=1.5) == 1
    assert keepers["worker1"].stopped == [{"datanode": one, "nodemanager": three}]
    assert keepers["worker2"].stopped == [{"datanode": two}]
    assert keepers["worker3"].stopped == []


def test_stop_says_which_node_is_out_of_reach(remotes: dict[str, FakeRemote]) -> None:
    with pytest.raises(RemoteError, match="worker1"):
        lifecycle.stop(
            plain(remotes), [("worker1", "datanode", ProcessRef(10, 1))], grace_seconds=1
        )


def test_a_combined_master_asks_for_the_ports_of_both_roles(
    make_spec: Callable[..., ClusterSpec], make_layout: Callable[[ClusterSpec], Layout]
) -> None:
    layout = make_layout(make_spec(workers=1, combined=True, memory_mib=4096))
    remote = FakeRemote("master")
    remote.tell_node_agent("listening", [8020])

    with pytest.raises(AddressError, match=r"master .*8020 \(namenode\)"):
        start(layout, {"master": remote})

    assert len(remote.requests[0]["ports"]) == 18
