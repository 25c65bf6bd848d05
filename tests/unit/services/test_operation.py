"""What ``up`` leaves behind when even cleaning up fails, and in which form it brings it up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import make_live_node, make_state

from boardcluster.catalog.lookup import entry_path
from boardcluster.cluster.kinds.boards.nodes import BoardNodes
from boardcluster.cluster.kinds.emulated.nodes import EmulatedNodes
from boardcluster.cluster.state import (
    LiveState,
    boot_id,
    load_state,
    save_state,
)
from boardcluster.errors import (
    CapacityError,
    ClusterError,
    ClusterNotUpError,
    JvmCrashError,
    UnreadyNameNodeError,
    UsageError,
)
from boardcluster.fetch.cache import no_progress
from boardcluster.records import ClusterSpec, MasterPlacement, NodeTwin, TwinSpec
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.services.install import Installation
from boardcluster.services.java import Java
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster, spec_as_run
from boardcluster.services.pair import EnginePair, load_pair, pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.spec.variant import ClusterVariant

EMULATED = "boardcluster.cluster.kinds.emulated.nodes"


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize(
    "error",
    [SystemExit(130), JvmCrashError("the JVM crashed"), UnreadyNameNodeError("not yet")],
)
def test_what_could_not_be_ended_is_said_and_stays_recorded(
    error: BaseException,
    stays: bool,
    layout: Layout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[str] = []

    def bring_up(*_: object, **__: object) -> None:
        starts.append("start")
        raise error

    def destroy(*_: object) -> int:
        if stays:
            raise ClusterError("processes do not end")
        return 0

    (tmp_path / "cluster.toml").touch()
    monkeypatch.setattr(operation, "read_spec", lambda _: layout.spec)
    monkeypatch.setattr(operation, "check_memory", lambda _: None)
    monkeypatch.setattr(operation, "require_disk_space", lambda _: None)
    monkeypatch.setattr(f"{EMULATED}.check_host", lambda _: None)
    monkeypatch.setattr(operation, "_layout", lambda *_: layout)
    monkeypatch.setattr(operation, "_bring_up", bring_up)
    monkeypatch.setattr(f"{EMULATED}.EmulatedNodes.destroy", destroy)
    monkeypatch.setattr(operation, "refuse_archives", lambda *_: None)
    with pytest.raises(type(error)) as caught:
        operation.up(tmp_path, cache=tmp_path, progress=no_progress, seen=lambda _: None)

    notes = getattr(caught.value, "__notes__", [])
    assert any(f"boardcluster down --home {tmp_path}" in note for note in notes) == stays
    assert (load_state(tmp_path) is not None) == stays
    again = not isinstance(error, SystemExit) and not stays
    assert len(starts) == (2 if again else 1)


class Machine:
    """A home on a machine where starting a cluster does nothing but record it.

    Attributes:
        started: what was brought up, as (specification, state as recorded before).
        destroyed: states that were cleared away.
    """

    def __init__(self, home: Path, spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.spec = spec
        self.started: list[tuple[ClusterSpec, LiveState]] = []
        self.destroyed: list[LiveState] = []
        self.said: list[str] = []
        home.mkdir()
        self.declare(spec)
        monkeypatch.setattr(operation, "check_memory", lambda _: None)
        monkeypatch.setattr(operation, "require_disk_space", lambda _: None)
        monkeypatch.setattr(f"{EMULATED}.check_host", lambda _: None)
        monkeypatch.setattr(f"{EMULATED}.leftover_processes", lambda _: [1])
        monkeypatch.setattr(f"{EMULATED}.is_alive", lambda *_: True)
        monkeypatch.setattr(
            f"{EMULATED}.remote_of",
            lambda node, _: FakeRemote(node.name),
        )
        monkeypatch.setattr(
            f"{EMULATED}.EmulatedNodes.destroy", lambda _, state: self._destroy(state)
        )
        monkeypatch.setattr(operation, "_layout", self._make_layout)
        monkeypatch.setattr(operation, "_bring_up", self._bring_up)
        monkeypatch.setattr(operation, "dead_daemons", lambda _: [])
        good = SimpleNamespace(is_good=lambda _: True)
        monkeypatch.setattr("boardcluster.services.lifecycle.health", lambda *_: good)

    def declare(self, spec: ClusterSpec) -> None:
        text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
        (self.home / "cluster.toml").write_text(text)

    def _destroy(self, state: LiveState) -> int:
        self.destroyed.append(state)
        return 0

    def _make_layout(self, spec: ClusterSpec, state: LiveState, *_: object) -> Layout:
        return Layout(
            spec=spec,
            profile=build_profile(spec.profile, spec),
            engines=Installation(pair=load_pair(spec.engines), folder=self.home),
            java=Java(program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="M"),
            archives=self.home,
            folders={node.name: f"/nodes/{node.name}" for node in spec.nodes},
            user="root",
            storage=state.storage,
        )

    def _bring_up(
        self, home: Path, spec: ClusterSpec, state: LiveState, layout: Layout, **named: Any
    ) -> LiveCluster:
        assert named["facts"] == {}
        assert state.java == layout.java.description
        self.started.append((spec, state))
        assert load_state(home) == state  # recorded before anything starts
        nodes = tuple(make_live_node(node.name) for node in spec.nodes)
        state = replace(state, phase="up", boot_id=boot_id(), nodes=nodes)
        save_state(home, state)
        return LiveCluster(home=home, state=state, layout=layout, remotes={})

    def up(self, variant: ClusterVariant | None = None) -> LiveCluster:
        return operation.up(
            self.home,
            cache=self.home / "cache",
            progress=lambda what, *_: self.said.append(what),
            seen=lambda _: None,
            variant=variant,
        )

    def attach(self, *, any_variant: bool = False) -> LiveCluster:
        return operation.attach(
            self.home, cache=self.home, progress=no_progress, any_variant=any_variant
        )


@pytest.fixture
def machine(
    tmp_path: Path, make_spec: Callable[..., ClusterSpec], monkeypatch: pytest.MonkeyPatch
) -> Machine:
    return Machine(tmp_path / "home", make_spec(engines=pair_ids()[0]), monkeypatch)


def test_root_installs_engines_that_others_can_read(
    tmp_path: Path, make_spec: Callable[..., ClusterSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Daemons and jobs are another user; with umask 077 no emulated cluster ever came up."""
    cache = tmp_path / "cache"
    java = Java(program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="M")

    def made(name: str) -> Path:
        (cache / name).mkdir(parents=True)
        return cache / name

    def install(pair: EnginePair, *_: object, **__: object) -> Installation:
        return Installation(pair=pair, folder=made("engines"))

    monkeypatch.setattr("boardcluster.fetch.cache.os.geteuid", lambda: 0)
    monkeypatch.setattr(operation, "provide_java", lambda *_, **__: java)
    monkeypatch.setattr(operation, "install", install)
    monkeypatch.setattr(operation, "provide_archives", lambda *_, **__: made("archives"))
    before = os.umask(0o077)
    try:
        operation._layout(
            make_spec(engines=pair_ids()[0]), make_state(service_uid=61000), cache, no_progress
        )
    finally:
        left = os.umask(before)

    folders = (cache, cache / "engines", cache / "archives")
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o755}
    assert left == 0o077


def form(workers: int = 4, **fields: Any) -> ClusterVariant:
    values = {"profile": "default", "master": MasterPlacement.DECLARED, **fields}
    return ClusterVariant(workers=workers, **values)


def test_up_without_a_form_is_what_is_declared(machine: Machine) -> None:
    live = machine.up()

    assert live.spec == machine.spec
    assert (live.state.form, live.state.storage, live.layout.storage) == ("", "data", "data")
    assert (machine.home / "running.toml").read_text() == (
        machine.home / "cluster.toml"
    ).read_text()


def test_up_in_a_form_runs_and_records_it(machine: Machine) -> None:
    declared = (machine.home / "cluster.toml").read_text()

    live = machine.up(form(2, profile="upstream", master=MasterPlacement.COMBINED))

    assert [node.name for node in live.spec.nodes] == ["worker1", "worker2"]
    assert live.spec.profile == "upstream"
    assert live.state.form == "2 of 4 workers, profile upstream, the master on a worker"
    assert (live.state.storage, live.layout.storage) == ("data-2w-combined",) * 2
    assert load_state(machine.home) == live.state
    assert read_spec(machine.home / "running.toml") == live.spec
    assert (machine.home / "cluster.toml").read_text() == declared  # the user's own stays
    # A report is on what was declared then, all nodes of it, and not on what is edited later.
    (machine.home / "cluster.toml").write_text(declared + "[nonsense]\n")
    assert spec_as_run(machine.home) == machine.spec
    (machine.home / "declared.toml").unlink()  # as in homes of earlier versions
    assert spec_as_run(machine.home) == live.spec


def test_up_in_the_declared_form_is_no_form_of_a_campaign(machine: Machine) -> None:
    live = machine.up(form(4))

    assert live.spec == machine.spec
    assert (live.state.form, live.state.storage) == ("", "data")
    machine.attach()


def test_a_profile_of_a_campaign_keeps_the_clusters_own_storage(machine: Machine) -> None:
    state = machine.up(form(4, profile="upstream")).state

    assert (state.form, state.storage) == ("profile upstream", "data")


def test_a_form_that_runs_already_is_left_as_it_is(machine: Machine) -> None:
    first = machine.up(form(2))
    again = machine.up(form(2))

    assert len(machine.started) == 1
    assert machine.destroyed == []
    assert again.state == first.state
    assert again.spec == first.spec
    assert again.layout.storage == "data-2w"
    assert set(again.remotes) == {"master", "worker1", "worker2"}
    # Inside an emulated node everybody is root.
    assert set(again.admins) == set(again.remotes)
    assert again.facts == {}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (None, form(2), "what cluster.toml says"),
        (form(2), form(3), "2 of 4 workers"),
        (form(2), None, "2 of 4 workers"),
        (form(4, profile="upstream"), form(4), "profile upstream"),
    ],
)
def test_another_form_is_brought_down_first(
    before: ClusterVariant | None, after: ClusterVariant | None, words: str, machine: Machine
) -> None:
    first = machine.up(before)
    second = machine.up(after)

    assert [state.identity for state in machine.destroyed] == [first.state.identity]
    assert len(machine.started) == 2
    assert second.state.identity != first.state.identity
    assert f"the cluster is up with {words}: taking it down" in machine.said
    assert load_state(machine.home) == second.state


def test_a_form_that_the_cluster_does_not_take_changes_nothing(machine: Machine) -> None:
    first = machine.up()

    with pytest.raises(UsageError, match="5 workers"):
        machine.up(form(5))

    assert machine.destroyed == []
    assert load_state(machine.home) == first.state


def test_a_profile_that_does_not_fit_is_refused_before_anything_is_written(
    machine: Machine,
) -> None:
    with pytest.raises(CapacityError, match="no map task could ever start"):
        machine.up(form(1, profile="paper-2021"))

    assert load_state(machine.home) is None
    assert not (machine.home / "running.toml").exists()


def test_an_edited_specification_is_said_in_every_form(machine: Machine) -> None:
    machine.up(form(2))
    path = machine.home / "cluster.toml"
    path.write_text(path.read_text().replace("2 GiB", "3 GiB"))

    for wanted in (form(2), form(3), None):
        with pytest.raises(ClusterError, match="was edited since the cluster came up"):
            machine.up(wanted)

    assert machine.destroyed == []


def test_a_comment_may_be_added_while_it_is_up(machine: Machine) -> None:
    """The next change of variant of a campaign ended it, and its --resume was refused."""
    first = machine.up(form(2))
    path = machine.home / "cluster.toml"
    path.write_text(path.read_text() + "# a comment\n")

    assert machine.up(form(2)).state == first.state
    assert machine.destroyed == []
    assert machine.up(form(3)).state != first.state
    assert len(machine.destroyed) == 1


def test_a_home_of_an_earlier_version_takes_no_edit(machine: Machine) -> None:
    """What its file held when the cluster came up is not kept there."""
    machine.up()
    (machine.home / "declared.toml").unlink()
    machine.up()
    path = machine.home / "cluster.toml"
    path.write_text(path.read_text() + "# a comment\n")

    with pytest.raises(ClusterError, match="was edited since the cluster came up"):
        machine.up()


def test_another_boardcluster_does_not_go_on_with_daemons_that_it_did_not_configure(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs would be configured in another way, under the digest of the old daemons."""
    state = machine.up().state
    assert len(state.rules_sha256) == 64
    assert machine.attach().state == state

    with monkeypatch.context() as upgraded:
        upgraded.setattr(operation, "rules_sha256", lambda: "ab" * 32)
        for call in (machine.attach, machine.up):
            with pytest.raises(ClusterError, match="boardcluster was changed since") as caught:
                call()
            assert "down" in caught.value.hint
        assert machine.destroyed == []
        operation.down(machine.home)
        assert machine.up().state.rules_sha256 == "ab" * 32
        # One that an earlier version brought up has no such hash, and goes on.
        save_state(machine.home, replace(state, rules_sha256=""))
        assert machine.attach().state.rules_sha256 == ""


def test_an_edited_profile_of_ones_own_is_said_too(machine: Machine) -> None:
    own = machine.home / "mine.toml"
    own.write_text('["hdfs-site"]\n"dfs.blocksize" = "1 MiB"\n')
    text = (machine.home / "cluster.toml").read_text()
    (machine.home / "cluster.toml").write_text(
        text.replace('profile = "default"', 'profile = "mine.toml"')
    )
    live = machine.up()
    assert live.layout.profile.properties["hdfs-site"] == {"dfs.blocksize": "1048576"}
    assert machine.attach().state == live.state

    own.write_text('["hdfs-site"]\n"dfs.blocksize" = "2 MiB"\n')

    for enter in (machine.up, machine.attach):
        with pytest.raises(ClusterError, match=r"mine\.toml was edited since the cluster came up"):
            enter()
    assert machine.destroyed == []


def test_an_edited_part_of_a_board_is_said_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "_limited", lambda *given: given[2])
    own = machine.home / "fan.toml"
    own.write_text(entry_path("cooling", "rpi-5b-fan").read_text())
    twin = NodeTwin(board="rpi-5b-8gb-2400mhz", cooling=str(own))
    nodes = tuple(replace(node, twin=twin) for node in machine.spec.nodes)
    machine.declare(replace(machine.spec, nodes=nodes, twin=TwinSpec()))
    live = machine.up()
    assert machine.attach().state == live.state
    first = own.read_text()
    own.write_text(first + "# edited\n")

    for enter in (machine.up, machine.attach):
        with pytest.raises(ClusterError, match=r"fan\.toml: edited since the cluster came up"):
            enter()
    own.write_text(first)
    machine.attach()
    assert machine.destroyed == []


def test_settings_of_daemons_are_a_form(machine: Machine) -> None:
    settings = (("dfs.datanode.handler.count", "7"),)
    live = machine.up(form(4, settings=settings))

    assert live.layout.profile.properties["hdfs-site"]["dfs.datanode.handler.count"] == "7"
    assert (live.state.form, live.state.storage) == ("dfs.datanode.handler.count 7", "data")
    assert read_spec(machine.home / "running.toml") == live.spec
    machine.up(form(4, settings=settings))
    assert len(machine.started) == 1


def test_nobody_attaches_by_accident_to_what_a_campaign_made(machine: Machine) -> None:
    machine.up(form(2))

    with pytest.raises(
        ClusterNotUpError, match="a variant that a campaign chose: 2 of 4"
    ) as caught:
        machine.attach()

    assert "boardcluster up" in caught.value.hint
    live = machine.attach(any_variant=True)
    assert len(live.spec.workers) == 2
    assert live.layout.storage == "data-2w"


def test_who_only_looks_fetches_and_locks_nothing_and_sees_any_variant(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = machine.up(form(2)).state
    monkeypatch.setattr(operation, "_layout", lambda *_: pytest.fail("engines were looked for"))
    cache = machine.home / "another-cache"

    live = operation.look_at_cluster(machine.home, cache=cache)

    assert live.state == state
    assert len(live.spec.workers) == 2
    assert live.layout.folder(live.spec.master, "tmp") == f"{state.nodes[0].folder}/tmp"
    assert set(live.remotes) == {"master", "worker1", "worker2"}
    assert not cache.exists()


def test_after_up_everybody_attaches_again(machine: Machine) -> None:
    machine.up(form(2))
    machine.up()

    assert machine.attach().spec == machine.spec


def test_a_state_of_before_there_were_forms_is_read(machine: Machine) -> None:
    machine.up()
    path = machine.home / "state.json"
    raw = json.loads(path.read_text())
    del raw["form"], raw["storage"]
    path.write_text(json.dumps(raw))

    state = load_state(machine.home)

    assert state is not None
    assert (state.form, state.storage) == ("", "data")


@pytest.mark.parametrize(
    ("phase", "temporary", "alive", "found"),
    [
        ("up", False, True, True),
        ("up", True, True, False),  # a killed campaign's own
        ("starting", False, True, False),
        ("up", False, False, False),
    ],
)
def test_what_a_campaign_finds_up_it_leaves_up(
    *,
    phase: str,
    temporary: bool,
    alive: bool,
    found: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = tuple(
        make_live_node(name, pid=pid) for pid, name in enumerate(("master", "worker1"), start=1)
    )
    state = make_state(*nodes, boot_id=boot_id(), phase=phase, temporary=temporary)
    save_state(tmp_path, state)
    # One node that is gone is enough.
    monkeypatch.setattr(f"{EMULATED}.is_alive", lambda pid, _: alive or pid == 1)

    assert operation.found_up(tmp_path) is found
    assert operation.found_up(tmp_path / "nowhere") is False


def test_nothing_is_up_after_a_restart_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_state(tmp_path, make_state(make_live_node(), boot_id="an earlier one"))
    monkeypatch.setattr(f"{EMULATED}.is_alive", lambda *_: True)

    assert operation.found_up(tmp_path) is False


def test_the_nodes_of_a_cluster_are_of_its_kind(tmp_path: Path) -> None:
    boards = operation.nodes_of(tmp_path, "boards")

    assert isinstance(boards, BoardNodes)
    assert isinstance(operation.nodes_of(tmp_path, "emulated"), EmulatedNodes)
    # They keep their connections.
    assert operation.nodes_of(tmp_path, "boards") is boards
    assert operation.nodes_of(tmp_path / "other", "boards") is not boards


def test_root_is_the_same_way_where_there_is_no_other(layout: Layout, tmp_path: Path) -> None:
    state = make_state()
    remotes, admins = {"master": FakeRemote("master")}, {"master": FakeRemote("root@master")}
    live = LiveCluster(home=tmp_path, state=state, layout=layout, remotes=remotes)

    assert live.as_root is remotes
    assert replace(live, admins=admins).as_root is admins
    assert live.master is remotes["master"]


def test_disks_have_minutes_to_be_written_before_limits_are_set_again(
    layout: Layout, tmp_path: Path
) -> None:
    """A minute is too short for gigabytes on a slow disk; a run would write what was left."""
    done: list[object] = []

    class Slow(FakeRemote):
        def run(self, argv: Sequence[str], **named: Any) -> Completed:
            done.append((tuple(argv[:2]), named["timeout_seconds"] > 600))
            return super().run(argv, **named)

    limiter: Any = SimpleNamespace(lift=lambda: done.append("lift"), set=lambda: done.append("set"))
    node, remote = make_live_node("master"), Slow("master")
    remote.tell("sync", "-f", f"{node.folder}/disk")
    live = LiveCluster(
        home=tmp_path,
        state=make_state(node),
        layout=layout,
        remotes={"master": remote},
        limiter=limiter,
    )

    with live.unlimited():
        done.append("prepare")

    assert done == ["lift", "prepare", (("sync", "-f"), True), "set"]
