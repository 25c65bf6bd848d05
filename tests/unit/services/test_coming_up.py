"""A start that goes on is waited for; one that stands still is not, and lost files are named."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_daemon

from boardcluster.errors import DaemonError, RemoteError
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services import lifecycle
from boardcluster.services.coming_up import MissingFiles, StartWatch, end_safe_mode, missing_files
from boardcluster.services.daemons import safe_mode_command
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health

HOME = Path("/homes/pis")
SAFE_WORDS = "Safe mode is ON. The reported blocks 3 needs additional 2 blocks"
FSCK = (
    "Connecting to namenode\n......\n/boardcluster/input/x/part-0: MISSING 1 blocks of total size "
    "10 B.\n/mine/a b: MISSING 2 blocks of total size 9 B.\n/fine: Under replicated\n"
)


class Node(FakeRemote):
    """A node whose one daemon has used so many ticks and read so many bytes at each look."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.words = [SAFE_WORDS]
        self.ticks = [0]
        self.read_bytes = 0

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", **named: Any) -> Completed:
        if argv[0] == "cat":
            ticks = self.ticks.pop(0) if len(self.ticks) > 1 else self.ticks[0]
            stat = f"7 (java) x) S {' '.join(['1'] * 10)} {ticks} 0 {' '.join(['1'] * 20)}"
            io = f"rchar: 1\nread_bytes: {self.read_bytes}\nwrite_bytes: 0"
            self._answers.pop(tuple(argv), None)
            self.tell(*argv, stdout=f"{stat}\n{io}\n")
        elif argv[0] == "python3":
            self._answers.clear()
            words = self.words.pop(0) if len(self.words) > 1 else self.words[0]
            page = f'{{"beans": [{{"Safemode": "{words}"}}]}}'
            row = {"status": 200, "body": page, "location": None}
            self.tell_node_agent("http", [row, row])
        return super().run(argv, stdin=stdin, **named)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watched(layout: Layout) -> tuple[StartWatch, Node, Clock]:
    node, clock = Node("master"), Clock()
    daemon = make_daemon("namenode", "master", process=ProcessRef(7, 1))
    return StartWatch(layout, {"master": node}, [daemon], clock=clock), node, clock


def passing(watch: StartWatch, clock: Clock, seconds: int, state: object = "same") -> float:
    """Let time pass, with a look each second; return how long nothing went on."""
    for _ in range(seconds):
        clock.now += 1
        watch.look(state)
    return watch.still_seconds


def test_what_stands_still_is_seen(watched: tuple[StartWatch, Node, Clock]) -> None:
    watch, _, clock = watched
    assert passing(watch, clock, 60) > 50
    assert watch.safe_mode == SAFE_WORDS
    assert watch.safe_mode_seconds > 50


def test_more_workers_and_more_blocks_are_progress(
    watched: tuple[StartWatch, Node, Clock],
) -> None:
    watch, node, clock = watched
    passing(watch, clock, 60)
    assert passing(watch, clock, 1, "one more worker") == 0
    node.words = ["reported 4", "reported 5", "reported 6", "reported 7"]
    assert passing(watch, clock, 20, "one more worker") <= 5


@pytest.mark.parametrize("per_look", [0, 20, 400])
def test_a_daemon_that_computes_or_reads_goes_on(
    watched: tuple[StartWatch, Node, Clock], per_look: int
) -> None:
    """Of a core 4 % is asking again and again; 80 % is work."""
    watch, node, clock = watched
    node.ticks = [place * per_look for place in range(100)]
    assert (passing(watch, clock, 60) <= 6) is (per_look == 400)
    passing(watch, clock, 30)
    node.read_bytes = 1 << 20
    assert passing(watch, clock, 6) <= 6


def test_missing_files_are_those_that_fsck_calls_so(layout: Layout) -> None:
    remote = FakeRemote()
    remote.tell_node_agent("http", [{"status": 200, "body": FSCK, "location": None}])
    found = missing_files(layout, remote)
    assert found.paths == ("/boardcluster/input/x/part-0", "/mine/a b")
    assert found.words == "2 files lack blocks: /boardcluster/input/x/part-0, /mine/a b"
    many = MissingFiles(paths=tuple(f"/{n:02}" for n in range(12)))
    assert many.words.endswith("/09 and 2 more")
    with pytest.raises(RemoteError):  # who does not know deletes nothing and gives nothing up
        missing_files(layout, FakeRemote())


def test_a_dilated_name_node_has_longer_to_check_its_files(layout: Layout) -> None:
    remote = FakeRemote()
    remote.tell_node_agent("http", [{"status": 200, "body": FSCK, "location": None}])
    missing_files(replace(layout, dilation=12.5), remote)
    (item,) = remote.requests[0]["requests"]
    assert item["timeout"] == 3750.0


def test_leaving_safe_mode_deletes_what_the_next_run_makes_again(layout: Layout) -> None:
    remote = FakeRemote()
    remote.tell(*safe_mode_command(layout))
    remote.tell_node_agent("http", [{"status": 200, "body": "{}", "location": None}])

    end_safe_mode(layout, remote, MissingFiles(paths=("/boardcluster/input/x/part-0", "/mine")))

    urls = [row["url"] for request in remote.requests for row in request["requests"]]
    assert len(urls) == 1
    assert "/webhdfs/v1/boardcluster/input/x/part-0?op=DELETE" in urls[0]


SAFE = Health(
    live_datanodes=4, live_nodemanagers=4, safe_mode=True, history=True, hdfs_free_bytes=1
)


class Stuck:
    """A watch that has seen everything that will come."""

    safe_mode = SAFE_WORDS
    safe_mode_seconds = 100.0
    still_seconds = 0.0

    def look(self, state: object) -> None:
        """See nothing new."""


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> list[Health]:
    """Make the masters say SAFE once, then what the list says."""
    later = [SAFE]
    monkeypatch.setattr(lifecycle, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(lifecycle, "StartWatch", lambda *_: Stuck())
    monkeypatch.setattr(lifecycle, "health", lambda *_: later[0])
    lost = MissingFiles(paths=("/mine",))
    monkeypatch.setattr(lifecycle, "missing_files", lambda *_: lost)
    return later


def test_a_safe_mode_that_would_never_end_names_the_files_and_the_ways_out(
    layout: Layout, stuck: list[Health]
) -> None:
    with pytest.raises(DaemonError, match="1 files lack blocks: /mine") as caught:
        lifecycle.wait_healthy(
            replace(layout, storage="disk/data"),
            {"master": FakeRemote()},
            [],
            home=HOME,
            patience_seconds=9,
            seen=lambda _: None,
        )
    assert SAFE_WORDS in caught.value.message
    assert "`boardcluster up --home /homes/pis --leave-safe-mode`" in caught.value.hint
    assert "`boardcluster down --home /homes/pis --wipe`" in caught.value.hint


@pytest.mark.parametrize("storage", ["data-1w", "disk/data-2w-combined"])
def test_in_a_variant_with_its_own_hdfs_no_way_out_is_named_that_is_none(
    storage: str, layout: Layout, stuck: list[Health]
) -> None:
    """``up`` starts what is declared, so that the variant's HDFS stayed as it was."""
    with pytest.raises(DaemonError, match="1 files lack blocks: /mine") as caught:
        lifecycle.wait_healthy(
            replace(layout, storage=storage),
            {"master": FakeRemote()},
            [],
            home=HOME,
            patience_seconds=9,
            seen=lambda _: None,
        )
    assert "--leave-safe-mode" not in caught.value.hint
    assert "`boardcluster down --home /homes/pis --wipe`" in caught.value.hint


def test_a_safe_mode_is_left_where_that_was_asked_for(
    layout: Layout, stuck: list[Health], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: object) -> None:
        stuck[0] = Health(
            live_datanodes=4, live_nodemanagers=4, safe_mode=False, history=True, hdfs_free_bytes=1
        )

    monkeypatch.setattr(lifecycle, "end_safe_mode", leave)
    told: list[str] = []
    lifecycle.wait_healthy(
        layout,
        {"master": FakeRemote()},
        [],
        home=HOME,
        patience_seconds=9,
        seen=lambda _: None,
        leaving=told.append,
    )
    assert told == ["leaving safe mode: 1 files lack blocks: /mine"]
