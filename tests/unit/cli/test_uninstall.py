"""``uninstall``: who is asked, and what is said; see test_boards.py for what is done."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli.app import app
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import ClusterError, UnreachableError, UsageError
from boardcluster.records import ClusterSpec, NodeSpec
from boardcluster.services import boards, operation
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster


class Desk:
    """Where somebody sits in front of boards that were made ready once.

    Attributes:
        done: what was done to them, in order.
        without: what was said to be gone when the cluster was ended.
        boards: those that were asked to take back.
    """

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.done: list[str] = []
        self.without: set[str] = set()
        self.boards: list[str] = []
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(operation, "down", self.down)
        monkeypatch.setattr(operation, "forget", lambda _: self.done.append("forget"))
        # What was there before `up` may have names that we use; taking back knows, wiping does not.
        monkeypatch.setattr(operation, "wipe", lambda _: pytest.fail("boards were wiped"))
        monkeypatch.setattr(boards, "take_back", self.take_back)

    def __call__(self, *words: str, text: str | None = None) -> Ran:
        arguments = ["uninstall", "--home", str(self.home), *words]
        return CliRunner().invoke(app, arguments, input=text, catch_exceptions=False)

    def down(self, home: Path, *, without: Collection[str]) -> int:
        assert home == self.home
        self.done.append("down")
        self.without = set(without)
        return 0

    def take_back(self, home: Path, boards: Sequence[NodeSpec], **_: Any) -> dict[str, list[str]]:
        assert home == self.home
        self.done.append("take back")
        self.boards = [node.name for node in boards]
        return {node.name: ["removes /opt/boardcluster"] for node in boards[:1]}

    def at_a_terminal(self) -> None:
        """Let somebody be there to be asked."""
        self._monkeypatch.setattr("boardcluster.cli.asking.can_ask", lambda: True)


@pytest.fixture
def desk(tmp_path: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Desk:
    text = render_cluster(board_spec, engine_pairs=pair_ids(), profiles=profile_names())
    (tmp_path / "cluster.toml").write_text(text)
    return Desk(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ([], "on master, worker1, worker2, and everything in HDFS? [y/N]"),
        (["--keep-data"], "on master, worker1, worker2? [y/N]"),
    ],
)
def test_a_person_is_asked_about_exactly_what_would_go(
    words: list[str], question: str, desk: Desk
) -> None:
    desk.at_a_terminal()

    ran = desk(*words, text="y\n")

    assert f"Remove what was installed {question}" in ran.stderr
    assert desk.done[:2] == ["down", "take back"]


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_whoever_says_no_keeps_everything(answer: str, desk: Desk) -> None:
    desk.at_a_terminal()

    ran = desk(text=answer)

    assert (ran.exit_code, desk.done) == (0, [])
    assert ran.stdout.splitlines()[-1] == "nothing was changed"


def test_nobody_is_asked_before_nothing_is_changed(desk: Desk) -> None:
    assert "[y/N]" not in desk("--dry-run").output
    assert desk.done == ["take back"]


def test_programs_get_what_was_done_by_node(desk: Desk) -> None:
    found = json.loads(desk("--yes", "--json").stdout)

    assert found == {"master": ["removes /opt/boardcluster"]}


@pytest.mark.parametrize("words", [["--yes"], ["--dry-run"]])
def test_a_cluster_that_another_driver_uses_is_left_alone(words: list[str], desk: Desk) -> None:
    with driver_lock(desk.home, doing="run"), pytest.raises(ClusterError, match="run"):
        desk(*words)

    assert desk.done == []


def test_boards_on_which_something_may_run_keep_what_it_needs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path, *, without: Collection[str]) -> None:
        raise UnreachableError("worker2: out of reach")

    monkeypatch.setattr(operation, "down", fail)

    with pytest.raises(UnreachableError):
        desk("--yes")
    assert desk.done == []


def test_boards_that_are_gone_are_left_out_and_the_cluster_is_remembered(desk: Desk) -> None:
    desk("--yes", "--without", "worker2", "--without", "master")

    assert desk.without == {"master", "worker2"}
    assert desk.boards == ["worker1"]
    # They may come back, and then what was installed on them is to be taken back too.
    assert desk.done == ["down", "take back"]


def test_with_every_board_there_the_cluster_is_forgotten(desk: Desk) -> None:
    desk("--yes")

    assert (desk.without, desk.boards) == (set(), ["master", "worker1", "worker2"])
    assert desk.done == ["down", "take back", "forget"]


def test_a_person_is_not_asked_about_boards_that_are_gone(desk: Desk) -> None:
    desk.at_a_terminal()

    ran = desk("--without", "worker1", text="n\n")

    assert "on master, worker2, and everything in HDFS? [y/N]" in ran.stderr


@pytest.mark.parametrize("words", [["--yes"], ["--dry-run"], []])
def test_a_board_that_is_none_of_the_clusters_cannot_be_gone(words: list[str], desk: Desk) -> None:
    with pytest.raises(UsageError, match="the cluster has no node 'pi7'") as caught:
        desk("--without", "worker1", "--without", "pi7", *words)

    assert caught.value.hint == "its nodes: master, worker1, worker2"
    assert desk.done == []
