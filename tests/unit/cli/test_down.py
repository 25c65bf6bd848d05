"""The order in which ``down`` works: first end and free, the store last."""

from collections.abc import Collection
from pathlib import Path

import pytest
from typer.testing import CliRunner

from boardcluster.cli import app
from boardcluster.errors import StoreError, UsageError
from boardcluster.records import ClusterSpec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.template import render_cluster
from boardcluster.store import Store


def test_a_full_disk_is_freed_and_said_before_the_store_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path):
        pass
    (tmp_path / "nodes").mkdir()
    seen: list[bool] = []

    def full(*_: object) -> None:
        seen.append((tmp_path / "nodes").exists())
        raise StoreError("database or disk is full")

    monkeypatch.setattr("boardcluster.services.operation.down", lambda *_, **__: 7)
    monkeypatch.setattr("boardcluster.campaign.upkeep.recover", full)
    result = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)])
    assert seen == [False]
    assert "HDFS was deleted" in result.stdout
    assert isinstance(result.exception, StoreError)


@pytest.fixture
def ended(
    tmp_path: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> list[set[str]]:
    """Declare a cluster of boards; what was said to be gone each time that it was ended."""
    text = render_cluster(board_spec, engine_pairs=pair_ids(), profiles=profile_names())
    (tmp_path / "cluster.toml").write_text(text)
    seen: list[set[str]] = []

    def down(home: Path, *, without: Collection[str], scratch_stays: object) -> int:
        assert callable(scratch_stays)
        assert home == tmp_path
        seen.append(set(without))
        return 1

    monkeypatch.setattr("boardcluster.services.operation.down", down)
    return seen


@pytest.mark.parametrize(
    ("words", "answer", "done"),
    [([], "y\n", ["down"]), ([], "n\n", []), (["--yes"], "", ["down"])],
)
def test_hdfs_is_not_deleted_unasked(
    words: list[str],
    answer: str,
    done: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("boardcluster.cli.asking.can_ask", lambda: True)
    monkeypatch.setattr("boardcluster.cli.down.can_ask", lambda: True)
    monkeypatch.setattr("boardcluster.cli.down.take_down", lambda *_, **__: seen.append("down"))

    ran = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path), *words], input=answer)

    assert ran.exit_code == 0, ran.output
    assert seen == done
    assert ("Delete everything in HDFS" in ran.output) == (not words)


def test_hdfs_on_boards_is_not_deleted_by_a_script_that_does_not_say_yes(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").touch()
    ran = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)])
    assert isinstance(ran.exception, UsageError)
    assert ran.exception.hint == "add --yes"


def test_a_wipe_does_not_claim_that_nothing_was_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board that came back after `down --without` runs its daemons, and nothing records them."""
    monkeypatch.setattr("boardcluster.services.operation.down", lambda *_, **__: 0)
    ran = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)])
    assert ran.stdout == "the nodes' folders were deleted\n"


def test_boards_that_are_gone_are_left_out(ended: list[set[str]], tmp_path: Path) -> None:
    for words in ([], ["--without", "worker1", "--without", "worker2"]):
        CliRunner().invoke(app, ["down", "--home", str(tmp_path), *words], catch_exceptions=False)

    assert ended == [set(), {"worker1", "worker2"}]


def test_a_board_that_is_none_of_the_clusters_cannot_be_gone(
    ended: list[set[str]], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="the cluster has no node 'pi7'") as caught:
        CliRunner().invoke(
            app, ["down", "--home", str(tmp_path), "--without", "pi7"], catch_exceptions=False
        )

    assert caught.value.hint == "its nodes: master, worker1, worker2"
    assert ended == []
