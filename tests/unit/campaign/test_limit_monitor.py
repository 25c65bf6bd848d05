"""What watches over limits during a run, with limits that only remember what was asked of them."""

from __future__ import annotations

import csv
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaign.world import World, live_cluster

from boardcluster.campaign import limit_monitor
from boardcluster.campaign.limit_monitor import HEAT_FILE, LimitMonitor
from boardcluster.errors import BoardclusterError, ClusterError, HostError, RemoteError
from boardcluster.records import ClusterSpec, NodeLimits, NodeTwin, TwinSpec
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster

BOARD, COOLING = "rpi-4b-4gb-1500mhz", "rpi-4b-closed-case"
TURNS = 3
CORES = 0.5
HOT = {"celsius": 82.0, "watts": 6.4, "clock_share": 0.76, "limited_by": "heat"}


@dataclass
class Limits:
    """In place of a Limiter; nodes are always busy, as far as their share allows."""

    limits: tuple[NodeLimits, ...]
    wrong: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    shares: list[Mapping[str, float]] = field(default_factory=list)
    turned: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    refusal: Exception | None = None

    def set(self) -> None:
        self.calls.append("set")
        if self.refusal is not None:
            raise self.refusal

    def renew(self) -> None:
        self.calls.append("renew")

    def set_shares(self, shares: Mapping[str, float]) -> None:
        self.calls.append("shares")
        self.shares.append(dict(shares))

    def changed(self, *, links: bool = True) -> list[str]:
        self.calls.append("all" if links else "quick")
        if self.calls.count("quick") >= TURNS:
            self.turned.set()
        return list(self.wrong)

    def cpu_seconds(self) -> dict[str, float]:
        if self.error is not None:
            self.turned.set()
            raise self.error
        return {row.node: time.monotonic() for row in self.limits}


@pytest.fixture(autouse=True)
def _quick_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_monitor, "_TURN_SECONDS", 0.001)


@pytest.fixture
def make_live(
    make_spec: Callable[..., ClusterSpec],
    make_layout: Callable[[ClusterSpec], Layout],
    world: World,
    tmp_path: Path,
) -> Callable[..., tuple[LiveCluster, Limits]]:
    def make(*, cooling: str = "", board: str = BOARD) -> tuple[LiveCluster, Limits]:
        plain = make_spec(workers=1)
        master, worker = plain.nodes
        spec = replace(
            plain,
            nodes=(
                replace(master, twin=NodeTwin(board=board)),
                replace(worker, twin=NodeTwin(board=board, cooling=cooling)),
            ),
            twin=TwinSpec(dilation=2.0),
        )
        limits = Limits(
            limits=tuple(
                NodeLimits(
                    node=node.name,
                    cpu_cores=CORES,
                    memory_bytes=node.memory_bytes,
                    disk=None,
                    link_bits_per_second=10**8,
                )
                for node in spec.nodes
            )
        )
        live = live_cluster(make_layout(spec), world, tmp_path)
        stand_in: Any = limits
        state = replace(live.state, dilation=2.0, limits=limits.limits)
        return replace(live, state=state, limiter=stand_in), limits

    return make


MakeLive = Callable[..., tuple[LiveCluster, Limits]]


def test_without_limits_nothing_is_kept(live: LiveCluster, tmp_path: Path) -> None:
    folder = tmp_path / "attempt"
    folder.mkdir()
    with LimitMonitor(live, folder) as monitor:
        assert monitor.limits == ()
    assert monitor.end() == ()
    assert monitor.remarks(0.0, math.inf) == ()
    assert list(folder.iterdir()) == []
    assert not (live.home / "heat-modelled.json").exists()


def test_limits_are_set_again_before_a_run_and_all_read_at_both_ends(
    make_live: MakeLive, tmp_path: Path
) -> None:
    live, limits = make_live()
    with LimitMonitor(live, tmp_path) as monitor:
        assert limits.turned.wait(10)
        assert monitor.end() == ()
    assert limits.calls[:3] == ["shares", "set", "all"]
    assert limits.calls[-2:] == ["all", "shares"]
    assert "quick" in limits.calls[3:-2]
    assert limits.shares == [{}, {}]
    assert [row.cpu_cores for row in monitor.limits] == [CORES] * 2
    assert monitor.steered == frozenset()
    assert not list(tmp_path.glob("heat*"))


def test_what_was_changed_is_told_once(make_live: MakeLive, tmp_path: Path) -> None:
    live, limits = make_live()
    limits.wrong = ["worker1: cpu quota is 1000, but was set to 50000"]
    with LimitMonitor(live, tmp_path) as monitor:
        assert limits.turned.wait(10)
        assert monitor.end() == ("worker1: cpu quota is 1000, but was set to 50000",)
        assert monitor.end()[:1] == ("worker1: cpu quota is 1000, but was set to 50000",)


@pytest.mark.parametrize(
    "error", [HostError("the group\nis gone"), OSError("no file"), ValueError("no number")]
)
def test_limits_that_cannot_be_read_are_told(
    make_live: MakeLive, tmp_path: Path, error: Exception
) -> None:
    live, limits = make_live()
    limits.error = error
    with LimitMonitor(live, tmp_path) as monitor:
        assert limits.turned.wait(10)
        (line,) = monitor.end()
    assert line == f"limits cannot be read: {' '.join(str(error).split())}"


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (ClusterError("worker1: memory is 0"), "limits cannot be set: worker1: memory is 0"),
        (RemoteError("tc: no such queue"), "limits cannot be set: tc: no such queue"),
        (HostError("the kernel refuses 5"), "the kernel refuses 5"),
    ],
)
def test_limits_that_cannot_be_set_are_this_machines_fault_and_not_the_trials(
    make_live: MakeLive, tmp_path: Path, refusal: BoardclusterError, words: str
) -> None:
    live, limits = make_live()
    limits.refusal = refusal
    with pytest.raises(HostError) as caught, LimitMonitor(live, tmp_path):
        pytest.fail("a run began without its limits")
    assert caught.value.message == words
    assert limits.calls == ["shares", "set"]


def test_a_hot_board_gets_less_and_its_heat_is_kept(make_live: MakeLive, tmp_path: Path) -> None:
    live, limits = make_live(cooling=COOLING)
    kept = {"at": time.time(), "nodes": {"worker1": {**HOT, "heat_clock_share": 0.76}}}
    (live.home / "heat-modelled.json").write_text(json.dumps(kept))
    folder = tmp_path / "attempt"
    folder.mkdir()
    with LimitMonitor(live, folder) as monitor:
        assert limits.turned.wait(10)
        monitor.end()

    first, *_, last = limits.shares
    assert 0.4 < first["worker1"] < 0.9
    assert last == {}
    with (folder / HEAT_FILE).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["node"] for row in rows} == {"worker1"}
    assert {row["limited_by"] for row in rows} == {"heat"}
    assert all(80 < float(row["celsius"]) < 85 for row in rows)
    now = time.monotonic()
    slowed = ("modelled: worker1 was slowed down by heat for 100 % of the run",)
    assert monitor.remarks(0.0, now) == slowed
    assert monitor.remarks(now, math.inf) == (), "what was before or after the run is no part of it"
    assert monitor.steered == {"worker1"}
    left = json.loads((live.home / "heat-modelled.json").read_text())
    assert left["nodes"]["worker1"]["at"] >= kept["at"]
    assert left["nodes"]["worker1"]["celsius"] == pytest.approx(82, abs=1)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        "[]",
        '{"at": "noon", "nodes": {}}',
        '{"at": 0, "nodes": {"another": {}}}',
        '{"at": 0, "nodes": {"worker1": {"celsius": "hot"}}}',
    ],
)
def test_what_is_kept_of_other_boards_is_not_used(
    make_live: MakeLive, tmp_path: Path, text: str | None
) -> None:
    live, limits = make_live(cooling=COOLING)
    if text is not None:
        (live.home / "heat-modelled.json").write_text(text)
    with LimitMonitor(live, tmp_path):
        assert limits.turned.wait(10)
    assert limits.shares[0] == {"worker1": 1.0}


def test_a_board_that_had_a_supply_only_is_heated_once_it_has_a_case(
    make_live: MakeLive, tmp_path: Path
) -> None:
    live, limits = make_live(cooling=COOLING)
    kept = {"at": time.time(), "nodes": {"worker1": {**HOT, "celsius": None}}}
    (live.home / "heat-modelled.json").write_text(json.dumps(kept))
    with LimitMonitor(live, tmp_path) as monitor:
        assert limits.turned.wait(10)
        monitor.end()
    left = json.loads((live.home / "heat-modelled.json").read_text())
    assert left["nodes"]["worker1"]["celsius"] > 20


def test_nodes_that_a_smaller_cluster_lacks_stay_as_hot_as_they_were(
    make_live: MakeLive, tmp_path: Path
) -> None:
    live, limits = make_live(cooling=COOLING)
    other = {**HOT, "heat_clock_share": 0.76, "at": time.time()}
    kept = {"nodes": {"worker2": other}}
    (live.home / "heat-modelled.json").write_text(json.dumps(kept))
    with LimitMonitor(live, tmp_path):
        assert limits.turned.wait(10)
    left = json.loads((live.home / "heat-modelled.json").read_text())
    assert left["nodes"]["worker2"] == other
    assert "worker1" in left["nodes"], "a node that is new does not hide the others"


def test_boards_have_cooled_since_the_last_run(make_live: MakeLive, tmp_path: Path) -> None:
    live, limits = make_live(cooling=COOLING)
    kept = {"at": time.time() - 3600, "nodes": {"worker1": {**HOT, "heat_clock_share": 0.76}}}
    (live.home / "heat-modelled.json").write_text(json.dumps(kept))
    with LimitMonitor(live, tmp_path):
        assert limits.turned.wait(10)
    assert limits.shares[0]["worker1"] == 1.0


def test_power_is_modelled_for_all_boards_or_for_none(make_live: MakeLive, tmp_path: Path) -> None:
    known, _ = make_live()
    models = LimitMonitor(known, tmp_path).power_models
    assert [(row.node, row.idle_watts) for row in models] == [("master", 2.7), ("worker1", 2.7)]
    plain = replace(known.spec.nodes[0], twin=None)
    spec = replace(known.spec, nodes=(plain, known.spec.nodes[1]))
    partly = replace(known, layout=replace(known.layout, spec=spec))
    assert LimitMonitor(partly, tmp_path).power_models == ()
