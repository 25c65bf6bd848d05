"""The state of the nodes before a run, on made-up nodes and with a made-up clock."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from boardcluster.campaign import conditions as module
from boardcluster.campaign.conditions import (
    await_copies,
    drop_node_caches,
    prepare_conditions,
    trim_nodes,
)
from boardcluster.errors import RemoteError
from boardcluster.fetch.cache import no_progress
from boardcluster.records import CachePolicy, ClusterSpec, NodeTwin, OnLoss, Policy
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Copying
from boardcluster.services.operation import LiveCluster

NAMES = ("master", "worker1", "worker2")
DENIED = "not permitted for this user"


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_seconds = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_seconds += seconds

    def clock(self) -> float:
        return self.now_seconds


@pytest.fixture
def nodes() -> dict[str, FakeRemote]:
    return {name: FakeRemote(name) for name in NAMES}


@pytest.fixture
def cluster(
    live: LiveCluster,
    nodes: dict[str, FakeRemote],
    make_spec: Callable[..., ClusterSpec],
    make_layout: Callable[[ClusterSpec], Layout],
) -> LiveCluster:
    return replace(live, remotes=nodes, layout=make_layout(make_spec(workers=2)))


def share_kernels(nodes: dict[str, FakeRemote], *boots: str) -> None:
    for node, boot in zip(nodes.values(), boots, strict=True):
        node.tell_node_agent("boot", {"boot_id": boot})


def asked(nodes: dict[str, FakeRemote], verb: str) -> list[str]:
    return [name for name, node in nodes.items() for row in node.requests if row["do"] == verb]


def caches(node: FakeRemote, reason: str = "") -> None:
    node.tell_node_agent(
        "drop_caches", {"dropped": not reason, "reason": reason, "boot_id": "whatever"}
    )


def blocks(node: FakeRemote, *rows: tuple[str, int, str]) -> None:
    node.tell_node_agent(
        "trim",
        [
            {"mount": "/data", "device": device, "trimmed_bytes": size, "reason": reason}
            for device, size, reason in rows
        ],
    )


def heat(node: FakeRemote, *celsius: float | None) -> None:
    for value in celsius:
        node.tell_node_agent("temperatures", {"hottest_celsius": value})


def test_a_plain_policy_does_nothing(cluster: LiveCluster, nodes: dict[str, FakeRemote]) -> None:
    time = Time()

    remarks = prepare_conditions(
        cluster, Policy(), drop=False, progress=no_progress, sleep=time.sleep, clock=time.clock
    )

    assert (remarks, time.slept) == ((), [])
    assert not any(node.calls for node in nodes.values())


@pytest.mark.parametrize(
    ("cache", "drop", "dropped"),
    [
        (CachePolicy.KEEP, False, []),
        (CachePolicy.KEEP, True, ["master"]),
        (CachePolicy.DROP, False, ["master"]),
    ],
)
def test_caches_are_dropped_by_policy_or_because_a_phase_needs_it(
    cluster: LiveCluster,
    nodes: dict[str, FakeRemote],
    cache: CachePolicy,
    drop: bool,
    dropped: list[str],
) -> None:
    share_kernels(nodes, "k", "k", "k")
    caches(nodes["master"])

    remarks = prepare_conditions(cluster, Policy(cache=cache), drop=drop, progress=no_progress)

    assert remarks == ()
    assert asked(nodes, "drop_caches") == dropped


def test_each_step_in_its_order(cluster: LiveCluster, nodes: dict[str, FakeRemote]) -> None:
    share_kernels(nodes, "k", "k", "k")
    heat(nodes["master"], 70.0, 50.0)
    for node in nodes.values():
        blocks(node)
    caches(nodes["master"])
    time = Time()
    told: list[str] = []
    policy = Policy(
        cache=CachePolicy.DROP, trim=True, cool_down_seconds=30.0, cool_below_celsius=55.0
    )

    remarks = prepare_conditions(
        cluster,
        policy,
        drop=False,
        progress=lambda what, done, total: told.append(what),
        sleep=time.sleep,
        clock=time.clock,
    )

    assert remarks == ()
    assert time.slept == [30.0, 5.0]
    verbs = [row["do"] for row in nodes["master"].requests if row["do"] != "boot"]
    assert verbs == ["temperatures", "temperatures", "trim", "drop_caches"]
    assert told == [
        "pausing for 30 s",
        "cooling: master has 70 °C, waiting for 55 °C",
        "discarding unused blocks",
        "dropping page caches",
    ]


def test_every_kernel_is_dropped_once(cluster: LiveCluster, nodes: dict[str, FakeRemote]) -> None:
    share_kernels(nodes, "one", "two", "one")
    caches(nodes["master"])
    caches(nodes["worker1"])

    assert drop_node_caches(cluster) == ()
    assert asked(nodes, "drop_caches") == ["master", "worker1"]


def test_a_right_that_is_missing_everywhere_is_one_remark(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "k", "k", "k")
    caches(nodes["master"], DENIED)

    assert drop_node_caches(cluster) == (f"page caches kept: {DENIED}",)


def test_nodes_that_differ_are_named(cluster: LiveCluster, nodes: dict[str, FakeRemote]) -> None:
    share_kernels(nodes, "one", "two", "one")
    caches(nodes["master"], DENIED)
    caches(nodes["worker1"], "read-only")

    assert drop_node_caches(cluster) == (
        f"page caches kept on master, worker2: {DENIED}",
        "page caches kept on worker1: read-only",
    )


def test_nodes_that_do_not_answer_are_named(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    nodes["master"].tell_node_agent("boot", {"boot_id": "one"})
    nodes["worker2"].tell_node_agent("boot", {"boot_id": "two"})
    caches(nodes["master"])

    assert drop_node_caches(cluster) == (
        "page caches kept on worker1, worker2: the node does not answer",
    )


def test_what_only_root_may_do_is_done_as_root(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "one", "two", "three")
    admins = {name: FakeRemote(name) for name in NAMES}
    for admin in admins.values():
        heat(admin, 40.0)
        blocks(admin, ("8:1", 10, ""))
        caches(admin)
    policy = Policy(cache=CachePolicy.DROP, trim=True, cool_below_celsius=55.0)

    remarks = prepare_conditions(
        replace(cluster, admins=admins), policy, drop=False, progress=no_progress
    )

    assert remarks == ()
    for verb in ("temperatures", "trim", "drop_caches"):
        assert asked(nodes, verb) == []
        assert asked(admins, verb) == list(NAMES)


def test_a_device_that_nodes_share_is_trimmed_once(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "k", "k", "other")
    blocks(nodes["master"], ("8:1", 100, ""), ("8:2", 50, ""))
    blocks(nodes["worker1"])
    blocks(nodes["worker2"], ("8:1", 7, ""))

    assert trim_nodes(cluster) == ({"master": 150, "worker1": 0, "worker2": 7}, ())
    (request,) = [row for row in nodes["worker1"].requests if row["do"] == "trim"]
    assert request["skip"] == ["8:1", "8:2"]
    assert request["folders"] == ["/nodes/worker1", "/nodes/worker1/data"]
    (request,) = [row for row in nodes["worker2"].requests if row["do"] == "trim"]
    assert request["skip"] == []


def test_what_is_not_trimmed_is_a_remark(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "one", "two", "three")
    blocks(nodes["master"], ("8:1", 10, ""), ("8:2", 0, DENIED))
    blocks(nodes["worker1"], ("8:1", 10, ""))

    discarded, remarks = trim_nodes(cluster)

    assert discarded == {"master": 10, "worker1": 10}
    assert remarks == (
        f"unused blocks not discarded on master: /data: {DENIED}",
        "unused blocks not discarded on worker2: the node does not answer",
    )


def test_one_file_system_under_all_nodes_is_one_remark(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "k", "k", "k")
    blocks(nodes["master"], ("8:1", 0, DENIED))
    blocks(nodes["worker1"])
    blocks(nodes["worker2"])

    remarks = prepare_conditions(cluster, Policy(trim=True), drop=False, progress=no_progress)

    assert remarks == (f"unused blocks not discarded: /data: {DENIED}",)


def cooled(cluster: LiveCluster, time: Time, *, wait_seconds: float = 12.0) -> tuple[str, ...]:
    return prepare_conditions(
        cluster,
        Policy(cool_below_celsius=50.0, cool_wait_seconds=wait_seconds),
        drop=False,
        progress=no_progress,
        sleep=time.sleep,
        clock=time.clock,
    )


def test_waits_for_the_hottest_node(cluster: LiveCluster, nodes: dict[str, FakeRemote]) -> None:
    share_kernels(nodes, "one", "two", "three")
    heat(nodes["master"], 40.0)
    heat(nodes["worker1"], 70.0, 49.9)
    heat(nodes["worker2"], 60.0, 50.0, 45.0)
    time = Time()

    assert cooled(cluster, time) == ()
    assert time.slept == [5.0, 5.0]


def test_the_wait_for_a_cool_node_is_bounded(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "one", "one", "two")
    heat(nodes["master"], 80.0, 71.25)
    heat(nodes["worker2"], 30.0)
    time = Time()

    remarks = cooled(cluster, time)

    assert remarks == ("master still had 71.2 °C after 12 s, not below 50 °C",)
    assert time.slept == [5.0, 5.0, 5.0]
    assert "worker1" not in asked(nodes, "temperatures")


def test_nodes_without_a_sensor_are_not_waited_for(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "k", "k", "k")
    heat(nodes["master"], None)
    time = Time()

    assert cooled(cluster, time) == ("not known to be below 50 °C: no temperature sensor",)
    assert time.slept == []


def test_a_silent_node_is_not_waited_for(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "one", "two", "three")
    heat(nodes["master"], 40.0)
    heat(nodes["worker2"], 60.0, 40.0)

    remarks = cooled(cluster, Time())

    assert remarks == ("not known to be below 50 °C on worker1: the node does not answer",)


def test_a_node_that_answers_again_while_others_cool_is_no_remark(
    cluster: LiveCluster, nodes: dict[str, FakeRemote]
) -> None:
    share_kernels(nodes, "one", "two", "three")
    heat(nodes["master"], 60.0, 40.0)
    nodes["worker1"].tell("node_agent", "temperatures", returncode=1)
    heat(nodes["worker1"], 40.0)
    heat(nodes["worker2"], 40.0)

    assert cooled(cluster, Time()) == ()


def test_modelled_boards_cool_as_slowly_as_they_work(
    cluster: LiveCluster,
) -> None:
    slept: list[float] = []
    board = "rpi-4b-4gb-1500mhz"
    hot = NodeTwin(board=board, cooling="rpi-4b-closed-case")
    for own, seconds in ((NodeTwin(board=board), 30.0), (hot, 120.0)):
        spec = replace(
            cluster.spec, nodes=tuple(replace(node, twin=own) for node in cluster.spec.nodes)
        )
        layout = replace(cluster.layout, spec=spec, dilation=4.0)
        prepare_conditions(
            replace(cluster, layout=layout),
            Policy(cool_down_seconds=30),
            drop=False,
            progress=no_progress,
            sleep=slept.append,
        )
        assert slept.pop() == seconds


def copies(monkeypatch: pytest.MonkeyPatch, seen: Iterator[tuple[int, int]]) -> None:
    """Have the NameNode say so many blocks that it copies, and that lack copies."""

    def look(*_: object) -> Copying:
        blocks, lacking = next(seen)
        return Copying(blocks=blocks, lacking_blocks=lacking)

    monkeypatch.setattr(module, "copying", look)


def waited(
    cluster: LiveCluster, policy: Policy, said: list[str] | None = None
) -> tuple[tuple[str, ...], Time]:
    time = Time()
    told: list[str] = [] if said is None else said
    remarks = await_copies(
        cluster,
        policy,
        progress=lambda what, *_: told.append(what),
        sleep=time.sleep,
        clock=time.clock,
    )
    return remarks, time


def test_a_run_begins_when_hdfs_has_copied_the_blocks_of_a_replaced_board(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measured the copying, and no rule saw it."""
    copies(monkeypatch, iter([(8, 90), (8, 60), (2, 30), (0, 28)]))
    said: list[str] = []

    remarks, time = waited(cluster, Policy(), said)

    assert (remarks, time.slept) == ((), [2.0] * 3)
    assert set(said) == {"waiting until HDFS has copied blocks of which it lacks copies"}


def test_files_that_ask_for_more_copies_than_there_are_nodes_cost_one_look(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies(monkeypatch, iter([(0, 28)]))
    said: list[str] = []

    assert waited(cluster, Policy(), said)[1].slept == []
    assert said == []


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        (Policy(loss_wait_seconds=100.0, on_loss=OnLoss.RESTART), 100),
        (Policy(loss_wait_seconds=0.0, on_loss=OnLoss.WAIT), 30),
        (Policy(loss_wait_seconds=100.0, on_loss=OnLoss.STOP), 30),
    ],
)
def test_copying_that_goes_on_is_a_remark_after_the_longest_wait(
    policy: Policy, seconds: float, cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies(monkeypatch, ((8, 10_000 - number) for number in range(10_000)))

    remarks, time = waited(cluster, policy)

    assert remarks == ("HDFS was still copying 8 blocks when the run began",)
    assert sum(time.slept) == pytest.approx(seconds, abs=2)


def test_copying_in_which_nothing_changes_is_not_waited_for(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies(monkeypatch, ((1, 5) for _ in range(10_000)))

    remarks, time = waited(cluster, Policy(loss_wait_seconds=86_400.0, on_loss=OnLoss.WAIT))

    assert remarks == ("HDFS was still copying 1 block when the run began",)
    assert sum(time.slept) == pytest.approx(600, abs=2)


def test_a_namenode_that_does_not_answer_is_not_waited_for(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> Copying:
        raise RemoteError("master: no answer")

    monkeypatch.setattr(module, "copying", silent)
    assert waited(cluster, Policy())[0] == ()
