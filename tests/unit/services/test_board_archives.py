"""Class-data archives of boards: once per kind of board, to its equals, and never needed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from boardcluster.errors import CapacityError, RemoteError
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import Completed
from boardcluster.remote.node_archives import look, refuse
from boardcluster.services import board_archives as module
from boardcluster.services.archive import ARCHIVES
from boardcluster.services.board_archives import (
    BoardArchives,
    refuse_board_archives,
    refuse_on_boards,
)
from boardcluster.services.layout import Layout
from boardcluster.services.provision.desired import ARCHIVES_WORK
from boardcluster.services.provision.provisioning import Change
from boardcluster.services.provision.resources import Tree

ALL = frozenset(ARCHIVES)
NONE: frozenset[str] = frozenset()
PLACE = "/opt/boardcluster/archives"
JAVA = "/opt/boardcluster/java"
COPIED_AT = 1_700_000_000


class Pi:
    """A board that is a folder, on which Java makes archives that say who made them."""

    def __init__(self, name: str, root: Path, jars: Sequence[str]) -> None:
        self.name = name
        self.root = root
        self.free_bytes = 8_000_000_000
        self.memory_bytes = 2_000_000_000
        self.dumped: list[str] = []
        self.fails = ""
        self.lost = False
        self.full = False
        for path in (*jars, f"{JAVA}/lib/modules", f"{JAVA}/lib/server/libjvm.so"):
            self.write(path, "bytes")
        self.write(f"{JAVA}/release", 'JAVA_VERSION="17.0.15"')

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_text(text)
        os.utime(self.at(path), (COPIED_AT, COPIED_AT))

    def archives(self) -> list[str]:
        folder = self.at(PLACE)
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", **_: Any) -> Completed:
        if self.lost:
            raise RemoteError(f"{self.name}: no connection")
        out = b""
        if argv[0] == "python3":
            request = {**json.loads(stdin), "root": str(self.root)}
            if request["do"] == "refuse":
                return Completed(
                    argv=tuple(argv),
                    returncode=0,
                    stdout=json.dumps(refuse(request)).encode(),
                    stderr=b"",
                    duration_seconds=0.0,
                )
            found = look({**json.loads(stdin), "root": str(self.root)})
            found |= {"free_bytes": self.free_bytes, "memory_bytes": self.memory_bytes}
            out = json.dumps(found).encode()
        elif argv[:3] == ["rm", "-rf", "--"]:
            assert argv[3] == ARCHIVES_WORK
            shutil.rmtree(self.at(argv[3]), ignore_errors=True)
        else:
            assert argv[:5] == ["nice", "-n", "19", f"{JAVA}/bin/java", "-Xshare:dump"]
            self.dump(argv[5].removeprefix("@"))
        return Completed(
            argv=tuple(argv), returncode=0, stdout=out, stderr=b"", duration_seconds=0.0
        )

    def dump(self, options: str) -> None:
        words = self.at(options).read_text().split()
        rows = dict(word.split("=", 1) for word in words if "=" in word)
        jars = words[words.index("-cp") + 1].split(":")
        assert all(self.at(jar).is_file() for jar in jars)
        assert self.at(rows["-XX:SharedClassListFile"]).read_text() == "classes"
        target = rows["-XX:SharedArchiveFile"]
        if Path(target).stem == self.fails:
            raise RemoteError(f"{self.name}: command failed with status 1: java")
        self.dumped.append(Path(target).stem)
        self.at(target).write_text(f"{target} of {self.name}, {len(self.dumped)}")

    def put(self, source: Path, target: str) -> None:
        shutil.rmtree(self.at(target), ignore_errors=True)
        shutil.copytree(source, self.at(target))

    def get(self, source: str, target: Path) -> None:
        shutil.copytree(self.at(source), target)


class Shelf:
    """Boards and a driver with a cache.

    Attributes:
        pis: the boards.
        said: what was told of progress.
        copied: the boards that archives were copied to.
        at_once: the most copies that went on at one time.
    """

    def __init__(self, layout: Layout, folder: Path) -> None:
        self.layout = layout
        self.cache = folder / "cache"
        jars = [path for engine in ("hadoop", "spark") for path in layout.engines.jars(engine)]
        self.pis = {
            node.name: Pi(node.name, folder / node.name, jars) for node in layout.spec.nodes
        }
        self.said: list[str] = []
        self.copied: list[str] = []
        self.now = self.at_once = 0
        self.counting = threading.Lock()

    def apply(
        self,
        remote: Pi,
        wanted: Sequence[Any],
        *,
        copying: contextlib.AbstractContextManager[Any],
        said: Callable[[str], None],
        **_: Any,
    ) -> list[Change]:
        assert wanted[0] == f"all of {remote.name}"  # else its units would be taken away
        tree = cast("Tree", wanted[-1])
        assert tree.path == PLACE
        assert all(digest for _, digest in tree.files.values())
        if remote.full:
            raise CapacityError(f"{remote.name}: 405 MB are to be copied, but only 3 MB are free")
        with copying:
            with self.counting:
                self.now += 1
                self.at_once = max(self.now, self.at_once)
            said(f"{remote.name}: copying")
            remote.put(tree.source, tree.path)
            with self.counting:
                self.now -= 1
        self.copied.append(remote.name)
        return [Change(node=remote.name, words="copies")]

    def archives(self, layout: Layout | None = None) -> BoardArchives:
        made = BoardArchives(
            layout or self.layout,
            cast("Mapping[str, Remote]", self.pis),
            [Tree(source=self.cache, path="/engines", files={"a.jar": (1, "00")})],
            cache=self.cache,
            progress=lambda what, *_: self.said.append(what),
        )
        made.look()
        return made

    def provide(self, *, deep: bool = False, layout: Layout | None = None) -> dict[str, Any]:
        """What ``up`` does; returns what each board has."""
        self.said.clear()
        self.copied.clear()
        wanted = {name: [cast("Any", f"all of {name}")] for name in self.pis}
        return self.archives(layout).provide(wanted, deep=deep)

    def dumps(self) -> dict[str, int]:
        return {name: len(pi.dumped) for name, pi in self.pis.items() if pi.dumped}

    def folders(self) -> list[Path]:
        return sorted(path for path in (self.cache / "archives/boards").iterdir() if path.is_dir())


@pytest.fixture
def shelf(
    tmp_path: Path,
    make_spec: Callable[..., ClusterSpec],
    make_layout: Callable[[ClusterSpec], Layout],
    monkeypatch: pytest.MonkeyPatch,
) -> Shelf:
    layout = make_layout(make_spec(workers=5))
    layout = replace(
        layout,
        engines=replace(layout.engines, on_nodes=Path("/opt/boardcluster/engines/pair")),
        java=replace(layout.java, program=Path(JAVA) / "bin" / "java"),
        archives=Path(PLACE),
    )
    monkeypatch.setattr(module, "class_list", lambda *_: b"classes")
    monkeypatch.setattr(module, "lists_digest", lambda _: "lists")
    made = Shelf(layout, tmp_path)
    monkeypatch.setattr(module, "apply", made.apply)
    return made


def everywhere(shelf: Shelf, names: frozenset[str]) -> dict[str, frozenset[str]]:
    return dict.fromkeys(shelf.pis, names)


def test_equal_boards_get_what_one_of_them_made(shelf: Shelf) -> None:
    shelf.pis["worker3"].memory_bytes *= 2

    assert shelf.provide() == everywhere(shelf, ALL)

    assert shelf.dumps() == {"worker3": len(ARCHIVES)}
    assert sorted(shelf.copied) == sorted(shelf.pis)
    assert 1 <= shelf.at_once <= 4
    for pi in shelf.pis.values():
        assert pi.archives() == [
            *("made.json", "mapreduce.jsa", "master.jsa"),
            "spark.jsa",
            "worker.jsa",
        ]
        assert "of worker3" in (pi.at(PLACE) / "spark.jsa").read_text()
        assert not pi.at(ARCHIVES_WORK).exists()
    told = "worker3: making class-data archives (once per kind of board)"
    assert shelf.said.count(told) == len(ARCHIVES) + 1


def test_the_next_time_nothing_is_made_and_nothing_copied(shelf: Shelf) -> None:
    shelf.provide()

    assert shelf.archives().expected() == everywhere(shelf, ALL)
    assert shelf.archives().planned() == []
    assert shelf.provide() == everywhere(shelf, ALL)
    assert (shelf.copied, shelf.said) == ([], [])
    assert len(shelf.dumps()) == 1
    shelf.provide(deep=True)
    assert len(shelf.copied) == len(shelf.pis)  # where nothing differs, it is only read


def newer_java(shelf: Shelf, pi: Pi) -> None:
    pi.write(f"{JAVA}/release", 'JAVA_VERSION="17.0.16"')


def older_jar(shelf: Shelf, pi: Pi) -> None:
    os.utime(pi.at(shelf.layout.engines.jars("spark")[0]), (1, 1))


def larger_jar(shelf: Shelf, pi: Pi) -> None:
    pi.write(shelf.layout.engines.jars("hadoop")[0], "more bytes")


def other_modules(shelf: Shelf, pi: Pi) -> None:
    os.utime(pi.at(f"{JAVA}/lib/modules"), (1, 1))


@pytest.mark.parametrize("changed", [newer_java, older_jar, larger_jar, other_modules])
def test_a_board_that_differs_in_what_a_jvm_compares_gets_its_own(
    changed: Callable[[Shelf, Pi], None], shelf: Shelf
) -> None:
    changed(shelf, shelf.pis["worker2"])

    assert shelf.provide() == everywhere(shelf, ALL)

    assert shelf.dumps()["worker2"] == len(ARCHIVES)
    assert len(shelf.dumps()) == 2
    own, other = (shelf.pis[name].at(PLACE) / "spark.jsa" for name in ("worker2", "worker1"))
    assert "of worker2" in own.read_text()
    assert "of worker2" not in other.read_text()
    assert len(shelf.folders()) == 2


@pytest.mark.parametrize(
    "what", ["architecture", "lists of classes", "engines' content", "nothing"]
)
def test_what_else_makes_another_kind(
    what: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.provide()
    if what == "architecture":
        monkeypatch.setattr("platform.machine", lambda: "aarch64")
    if what == "lists of classes":
        monkeypatch.setattr(module, "lists_digest", lambda _: "newer lists")
    if what == "engines' content":
        monkeypatch.setattr(Tree, "digest", "other bytes")

    shelf.provide()

    again = what != "nothing"
    assert len(shelf.copied) == again * len(shelf.pis)
    assert len(shelf.folders()) == 1 + again


def test_a_new_board_gets_a_copy(shelf: Shelf) -> None:
    shelf.provide()
    shutil.rmtree(shelf.pis["worker4"].at(PLACE))

    assert shelf.provide() == everywhere(shelf, ALL)

    assert shelf.copied == ["worker4"]
    assert len(shelf.dumps()) == 1


def test_what_boards_have_is_not_made_again_for_another_driver(shelf: Shelf) -> None:
    shelf.provide()
    shutil.rmtree(shelf.cache)

    assert shelf.archives().expected() == everywhere(shelf, ALL)
    assert shelf.provide() == everywhere(shelf, ALL)
    assert shelf.copied == []
    assert sum(shelf.dumps().values()) == len(ARCHIVES)


def test_damage_on_a_board_is_not_taken_over(shelf: Shelf) -> None:
    shelf.provide()
    shutil.rmtree(shelf.cache)
    for pi in shelf.pis.values():
        path = pi.at(PLACE) / "spark.jsa"
        row = path.stat()
        path.write_text("x" * row.st_size)
        os.utime(path, ns=(row.st_atime_ns, row.st_mtime_ns))

    assert shelf.provide() == everywhere(shelf, ALL)
    assert sum(shelf.dumps().values()) == 2 * len(ARCHIVES)
    for pi in shelf.pis.values():
        assert "xx" not in (pi.at(PLACE) / "spark.jsa").read_text()


def cut_marker(pi: Pi) -> None:
    (pi.at(PLACE) / "made.json").unlink()


def cut_file(pi: Pi) -> None:
    (pi.at(PLACE) / "spark.jsa").unlink()


def torn_file(pi: Pi) -> None:
    with (pi.at(PLACE) / "spark.jsa").open("r+") as stream:
        stream.truncate(3)


def stale_file(pi: Pi) -> None:
    os.utime(pi.at(PLACE) / "spark.jsa", (1, 1))


def torn_marker(pi: Pi) -> None:
    path = pi.at(PLACE) / "made.json"
    path.write_text(path.read_text()[:40])


@pytest.mark.parametrize("left", [cut_marker, cut_file, torn_file, stale_file, torn_marker])
def test_what_a_kill_left_half_copied_is_copied_again(
    left: Callable[[Pi], None], shelf: Shelf
) -> None:
    shelf.provide()
    left(shelf.pis["worker1"])

    assert shelf.archives().expected()["worker1"] == NONE
    assert shelf.provide()["worker1"] == ALL
    assert shelf.copied == ["worker1"]


def test_what_a_kill_left_half_made_is_made_again(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    pi = shelf.pis["master"]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pi, "get", killed)
        patch.setattr(module, "each_node", lambda names, one: ({n: one(n) for n in names}, {}))
        with pytest.raises(KeyboardInterrupt):
            shelf.provide()
    assert shelf.folders() == []  # nothing has the name of a kind
    pi.write(f"{ARCHIVES_WORK}/made/spark.jsa", "half")

    assert shelf.provide() == everywhere(shelf, ALL)
    assert "half" not in (pi.at(PLACE) / "spark.jsa").read_text()


@pytest.mark.parametrize(
    ("planted", "why"),
    [
        ({"free_bytes": 3_000_000}, "making them takes 450 MB of disk, but only 3 MB are free"),
        ({"memory_bytes": 1 << 28}, "of memory, but only 256 MiB are available"),
        ({"fails": "spark"}, "master: command failed with status 1: java"),
    ],
)
def test_boards_that_cannot_make_them_do_without(
    planted: dict[str, Any], why: str, shelf: Shelf
) -> None:
    for pi in shelf.pis.values():
        vars(pi).update(planted)

    assert shelf.provide() == everywhere(shelf, NONE)

    told = [line for line in shelf.said if "no class-data archives, JVMs start slower" in line]
    assert len(told) == 1
    assert told[0].startswith("master, worker1, worker2, worker3, worker4, worker5: ")
    assert why in told[0]
    assert shelf.folders() == []
    assert not any(pi.at(ARCHIVES_WORK).exists() for pi in shelf.pis.values())
    # Their units are not written as if they had them, time and again.
    assert shelf.archives().expected() == everywhere(shelf, NONE)
    assert len(shelf.archives().planned()) == len(shelf.pis)


def test_a_driver_without_space_does_without(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(free=1_000_000)
    monkeypatch.setattr("boardcluster.fetch.cache.shutil.disk_usage", lambda _: full)

    assert shelf.provide() == everywhere(shelf, NONE)
    assert "450 MB" in shelf.said[-1]


def test_a_board_that_has_no_room_does_without_alone(shelf: Shelf) -> None:
    shelf.pis["worker2"].full = True

    assert shelf.provide() == everywhere(shelf, ALL) | {"worker2": NONE}
    assert (
        shelf.said.count(
            "worker2: no class-data archives, JVMs start slower: "
            "405 MB are to be copied, but only 3 MB are free"
        )
        == 1
    )


def test_a_board_that_cannot_be_looked_at_does_without_alone(shelf: Shelf) -> None:
    shelf.pis["worker2"].lost = True

    assert shelf.provide() == everywhere(shelf, ALL) | {"worker2": NONE}
    assert "worker2" not in shelf.archives().expected()


def test_a_pair_without_lists_has_none(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "class_list", lambda *_: b"")

    assert shelf.archives().planned() == []
    assert shelf.provide() == everywhere(shelf, NONE)
    assert "has no lists of classes" in shelf.said[-1]


def test_a_fresh_board_is_expected_to_get_them(shelf: Shelf) -> None:
    for pi in shelf.pis.values():
        shutil.rmtree(pi.at(JAVA))

    archives = shelf.archives()

    assert archives.expected() == everywhere(shelf, ALL)
    assert {row.node for row in archives.planned()} == set(shelf.pis)
    assert {row.words for row in archives.planned()} == {
        "gets class-data archives (about 0.4 GB), made once per kind of board"
    }


def test_after_a_crash_they_are_gone_and_not_made_again_until_the_kind_changes(
    shelf: Shelf,
) -> None:
    shelf.provide()
    (folder,) = shelf.archives().folders
    refuse_board_archives(folder, "SIGSEGV in the namenode")

    assert shelf.archives().expected() == everywhere(shelf, NONE)
    for copies in (len(shelf.pis), 0):
        assert shelf.provide() == everywhere(shelf, NONE)
        assert len(shelf.copied) == copies
    assert {tuple(pi.archives()) for pi in shelf.pis.values()} == {("made.json",)}
    assert shelf.archives().planned() == []
    assert len(shelf.dumps()) == 1
    assert "SIGSEGV in the namenode" in (folder / "made.json").read_text()

    # A refusal is known to whoever comes to these boards.
    shutil.rmtree(shelf.cache)
    assert shelf.provide() == everywhere(shelf, NONE)
    assert len(shelf.dumps()) == 1

    for pi in shelf.pis.values():
        newer_java(shelf, pi)
    assert shelf.provide() == everywhere(shelf, ALL)


def test_after_a_jobs_crash_a_whole_kind_is_refused(shelf: Shelf) -> None:
    shelf.provide()
    shelf.pis["worker1"].lost = True

    refuse_on_boards(cast("Mapping[str, Remote]", shelf.pis), Path(PLACE), "SIGBUS in a task")

    assert shelf.pis["worker2"].archives() == ["made.json"]
    assert len(shelf.pis["worker1"].archives()) == 1 + len(ARCHIVES)  # it did not answer
    shelf.pis["worker1"].lost = False
    (folder,) = shelf.archives().folders
    before = (folder / "made.json").read_text()
    assert shelf.archives().expected() == everywhere(shelf, NONE)
    assert shelf.archives().planned() == []
    assert (folder / "made.json").read_text() == before, "to look changes nothing"
    assert shelf.provide() == everywhere(shelf, NONE)
    assert shelf.pis["worker1"].archives() == ["made.json"]
    assert len(shelf.dumps()) == 1
