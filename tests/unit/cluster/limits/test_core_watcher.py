"""What is moved where, in folders that stand for groups; integration tests use real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.cluster.limits import core_watcher
from boardcluster.cluster.limits.core_watcher import (
    HELD_TURNS,
    Core,
    NodeCores,
    level,
    remove,
    share,
)

BUSY = frozenset("12345678")


@pytest.fixture(autouse=True)
def _states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_watcher, "wants_to_run", lambda thread: thread in BUSY)


def core(folder: Path, threads: str) -> Core:
    folder.mkdir(parents=True)
    (folder / "tasks").write_text(threads)
    (folder / "cpu.stat").write_text("nr_periods 10\nnr_throttled 3\nthrottled_time 9\n")
    return Core(folder, "tasks")


def held(folder: Path, times: int) -> None:
    (folder / "cpu.stat").write_text(f"nr_periods 99\nnr_throttled {times}\nthrottled_time 9\n")


def threads(folder: Path) -> str:
    return (folder / "tasks").read_text()


def test_busy_threads_of_a_held_core_go_to_free_ones(tmp_path: Path) -> None:
    cores = [core(tmp_path / "0", "1 a 2 b 3"), *(core(tmp_path / n, "") for n in "123")]

    assert share(cores[0], cores[1:])

    assert sorted(threads(tmp_path / name) for name in "123") == ["", "2", "3"]


def test_no_more_threads_are_looked_at_than_there_are_cores_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are looked at first: those of a daemon are many, and mostly idle."""
    seen = []

    def wants(thread: str) -> bool:
        seen.append(thread)
        return thread in BUSY

    monkeypatch.setattr(core_watcher, "wants_to_run", wants)
    crowd = " ".join(str(number) for number in range(100, 300))
    cores = [core(tmp_path / "0", f"1 {crowd} 2 a 3 4"), *(core(tmp_path / n, "") for n in "12")]

    assert share(cores[0], cores[1:])

    assert seen == ["4", "3", "a", "2"]
    assert {threads(tmp_path / "1"), threads(tmp_path / "2")} == {"3", "4"}


def test_one_busy_thread_stays_among_few(tmp_path: Path) -> None:
    cores = [core(tmp_path / "0", "1 a b"), core(tmp_path / "1", "")]

    assert not share(cores[0], cores[1:])

    assert threads(tmp_path / "1") == ""


def test_one_busy_thread_leaves_a_crowd(tmp_path: Path) -> None:
    cores = [core(tmp_path / "0", " ".join(["1", *"abcdefghij"])), core(tmp_path / "1", "")]

    assert share(cores[0], cores[1:])

    assert threads(tmp_path / "1") == "1"


def test_busy_cores_are_levelled(tmp_path: Path) -> None:
    cores = [core(tmp_path / "0", "1 2 3"), core(tmp_path / "1", "4")]

    assert level(cores)

    assert threads(tmp_path / "1") == "3"
    (tmp_path / "0" / "tasks").write_text("1 2")
    (tmp_path / "1" / "tasks").write_text("3 4")
    assert not level(cores)


def test_only_what_the_kernel_held_back_is_looked_through(tmp_path: Path) -> None:
    node = NodeCores([core(tmp_path / "0", "1 2"), core(tmp_path / "1", "")])
    node.look()
    node.spread(1.0)
    assert threads(tmp_path / "1") == ""

    held(tmp_path / "0", 4)
    node.look()
    node.spread(2.0)
    assert threads(tmp_path / "1") == "2"


def test_threads_that_begin_do_not_wait_for_those_that_were_looked_at_in_vain(
    tmp_path: Path,
) -> None:
    crowd = " ".join(["1", *"abcdefgh"])
    node = NodeCores([core(tmp_path / "0", crowd), core(tmp_path / "1", "")])
    held(tmp_path / "0", 4)
    node.look()
    node.spread(1.0)
    assert threads(tmp_path / "1") == "1"  # it leaves the crowd

    (tmp_path / "1" / "tasks").write_text("")
    (tmp_path / "0" / "tasks").write_text("a b c d e f g h i")
    held(tmp_path / "0", 5)
    node.look()
    node.spread(2.0)  # in vain
    (tmp_path / "0" / "tasks").write_text("a b c d e f g h i 2")
    held(tmp_path / "0", 6)
    node.look()
    node.spread(2.001)
    assert threads(tmp_path / "1") == "2"


def test_what_begins_while_no_core_is_free_was_not_looked_at_in_vain(tmp_path: Path) -> None:
    node = NodeCores([core(tmp_path / "0", "a b c d e f g h i"), core(tmp_path / "1", "")])
    held(tmp_path / "0", 4)
    node.look()
    node.spread(1.0)  # in vain
    (tmp_path / "0" / "tasks").write_text("a b c d e f g h i 2")
    (tmp_path / "1" / "tasks").write_text("3")
    held(tmp_path / "0", 5)
    held(tmp_path / "1", 4)
    node.look()
    node.spread(1.001)  # both are busy: nothing to level
    (tmp_path / "1" / "tasks").write_text("")
    for times in range(HELD_TURNS):
        held(tmp_path / "0", 6 + times)
        node.look()
    node.spread(1.002)
    assert threads(tmp_path / "1") == "2"


def test_a_core_that_was_held_back_lately_is_not_free(tmp_path: Path) -> None:
    node = NodeCores([core(tmp_path / "0", "1 2"), core(tmp_path / "1", "3 4")])
    held(tmp_path / "1", 4)
    node.look()
    held(tmp_path / "0", 4)
    for _ in range(HELD_TURNS):
        assert not node.cores[1].is_free
        node.look()
    assert node.cores[1].is_free


def test_the_state_of_a_thread_is_the_kernels() -> None:
    assert not core_watcher.wants_to_run("no such thread")


def test_groups_are_removed_with_those_inside(tmp_path: Path) -> None:
    (tmp_path / "cluster" / "worker1" / "core0").mkdir(parents=True)
    used = tmp_path / "used"
    used.mkdir()
    (used / "a-process").write_text("")

    assert remove([tmp_path / "cluster"])
    assert not remove([used])
    assert not (tmp_path / "cluster").exists()
