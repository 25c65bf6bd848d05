"""``demo``: everything once, and nothing of the cluster is left, whatever happens."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.desk import Desk, MakeLayout, bad, make_desk

from boardcluster.cluster.lock import driver_at_work
from boardcluster.errors import HostError, LockedError, RunError, SpecError, UsageError
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.security import LOCAL_WARNING, ROOT_WARNING
from boardcluster.spec.template import render_cluster

GIB = 1 << 30


class Machine:
    """Nodes on a machine that can hold them, or cannot."""

    def __init__(self, refusal: HostError | None = None) -> None:
        self.refusal = refusal

    def check(self, _: ClusterSpec) -> None:
        if self.refusal is not None:
            raise self.refusal


@pytest.fixture
def desk(
    tmp_path: Path,
    make_spec: Callable[..., ClusterSpec],
    make_layout: MakeLayout,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    desk = make_desk(tmp_path / "home", make_spec(engines=pair_ids()[0]), make_layout, monkeypatch)
    monkeypatch.setattr("boardcluster.campaign.propose.available_memory_bytes", lambda: 64 * GIB)
    monkeypatch.setattr(operation, "nodes_of", lambda *_: Machine())
    monkeypatch.setattr(operation, "wipe", lambda _: desk.calls.append("wipe"))
    return desk


def test_it_runs_both_engines_reports_and_leaves_only_results(desk: Desk) -> None:
    held: list[str] = []
    run_trial = desk.run_trial
    desk.ends = {}

    def seen(*words: object, **named: object) -> object:
        held.append(driver_at_work(desk.home))
        return run_trial(*words, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("boardcluster.campaign.driver.run_trial", seen)
        ran = desk("demo", "--workers", "4", "--size", "1MB", "--repetitions", "2")

    assert {trial.engine for trial in desk.ran} == {Engine.MAPREDUCE, Engine.SPARK}
    assert len(desk.ran) == 4
    assert held == ["demo"] * 4  # one lock, from before the cluster is up to after it is gone
    assert desk.calls == ["down", None, "attach", "down", "wipe"]
    assert "report:" in ran.stdout
    assert (desk.home / "report" / "report.html").is_file()
    assert "input: airline-1000000" in ran.stderr


def test_where_namespaces_are_forbidden_this_machine_is_the_node(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden = Machine(HostError("no namespaces", hint="-"))
    monkeypatch.setattr(operation, "nodes_of", lambda *_: forbidden)

    ran = desk("demo", "--size", "1MB", "--repetitions", "1")

    assert read_spec(desk.home / "cluster.toml").kind == "local"
    assert "so the demo runs on one local node" in ran.stderr
    with pytest.raises(HostError, match="no namespaces"):
        desk("demo", "--workers", "2")


@pytest.mark.parametrize(("uid", "warned"), [(0, True), (1000, False)])
def test_root_is_told_that_its_local_node_is_root(
    uid: int, warned: bool, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden = Machine(HostError("no namespaces", hint="-"))
    monkeypatch.setattr(operation, "nodes_of", lambda *_: forbidden)
    monkeypatch.setattr("boardcluster.campaign.upkeep.os.geteuid", lambda: uid)

    ran = desk("demo", "--size", "1MB", "--repetitions", "1")

    assert (ROOT_WARNING in ran.stderr) is warned
    assert (LOCAL_WARNING in ran.stderr) is not warned  # an ordinary user of what others can do
    assert "every user of this machine" in ran.stderr.split("up: ")[0]


def test_who_gets_several_nodes_is_told_nothing_of_that(desk: Desk) -> None:
    ran = desk("demo", "--workers", "4", "--size", "1MB", "--repetitions", "1")

    assert "every user of this machine" not in ran.stderr


def test_after_an_interruption_nothing_of_the_cluster_is_left(desk: Desk) -> None:
    desk.ends["wordcount"] = KeyboardInterrupt()

    assert desk("demo", "--workers", "4").exit_code != 0
    assert desk.calls[-2:] == ["down", "wipe"]
    assert not (desk.home / "report").exists()


def test_a_failed_run_is_reported_and_an_error(desk: Desk) -> None:
    desk.ends["wordcount"] = bad()

    with pytest.raises(RunError, match="2 of 2 runs have no verified result"):
        desk("demo", "--workers", "4", "--repetitions", "1")
    assert (desk.home / "report" / "report.html").is_file()


@pytest.mark.parametrize("name", ["cluster.toml", "running.toml"])
def test_a_folder_of_another_cluster_is_left_as_it_is(name: str, desk: Desk) -> None:
    ours = (desk.home / "cluster.toml").read_text()
    other = ours.replace('"demo"', '"lab"', 1)
    (desk.home / "cluster.toml").unlink()
    (desk.home / name).write_text(other)
    desk.is_up = True

    with pytest.raises(UsageError, match='the cluster "lab", which no demo made') as caught:
        desk("demo", "--size", "1MB", "--repetitions", "1")

    assert "--home" in caught.value.hint
    assert desk.calls == []
    assert (desk.home / name).read_text() == other


def test_boards_that_are_called_demo_are_no_demo(desk: Desk, board_spec: ClusterSpec) -> None:
    boards = render_cluster(board_spec, engine_pairs=pair_ids(), profiles=profile_names())
    for text, error in ((boards, UsageError), ("[cluster", SpecError)):
        (desk.home / "cluster.toml").write_text(text)
        with pytest.raises(error):
            desk("demo", "--size", "1MB", "--repetitions", "1")
        assert (desk.home / "cluster.toml").read_text() == text
    assert desk.calls == []


def test_only_one_driver_at_a_time(desk: Desk) -> None:
    from boardcluster.cluster.lock import driver_lock

    with driver_lock(desk.home, doing="run"), pytest.raises(LockedError):
        desk("demo")
    assert desk.calls == []
