"""Class-data archives of boards: made on one board of each kind, and copied to its equals.

An archive fits one build of Java and the jars it was made of, with their paths, sizes and times.
The *kind* of a board is a digest over these and over the lists of classes: boards of one kind can
use the same archives.

The driver's cache has a folder for each kind: the archives and ``made.json``, which names each with
its size, time and SHA-256, or says why they are refused. Boards get the whole folder. One whose
``made.json`` and files agree has all of them; one that was left with a part of them has none.

Nothing depends on archives but speed and memory. So whatever goes wrong with them is said in a
line, and the boards that it concerns do without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardcluster.cluster.each_node import each_node
from boardcluster.errors import BoardclusterError, CapacityError, InstallError, StoreError
from boardcluster.fetch.cache import (
    Progress,
    hold_lock,
    make_folder,
    require_space,
    sha256_of,
    write_atomically,
    writing,
)
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import cleaning_up
from boardcluster.remote.node_rpc import rpc
from boardcluster.services.archive import ARCHIVES, class_list, dump_options, lists_digest
from boardcluster.services.layout import Layout
from boardcluster.services.provision.desired import ARCHIVES_WORK
from boardcluster.services.provision.provisioning import COPIES_AT_ONCE, Change, apply
from boardcluster.services.provision.resources import Resource, Tree, tree_of
from boardcluster.store import from_json, to_json
from boardcluster.units import format_bytes

__all__ = [
    "BoardArchives",
    "BoardArchivesSeen",
    "MadeArchives",
    "refuse_board_archives",
    "refuse_on_boards",
]

_MARKER = "made.json"
_NEW = ".new-"
_MAKING = "making class-data archives (once per kind of board)"
_NEED_DISK_BYTES = 450_000_000
"""The four of a pair take 405 MB."""
_NEED_MEMORY_BYTES = 850 << 20
"""The largest took 810 MiB, nearly all of it the JVM's own and none of it heap."""
_DUMP_SECONDS = 3600.0
"""The largest takes 27 s of a desktop's core; that of a small board is ten times slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeArchives:
    """What ``made.json`` says of the archives beside it."""

    kind: str
    """The kind of board that they fit."""
    files: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Each file with its size in bytes, its time in seconds and its SHA-256."""
    refused: str = ""
    """Why there are none."""

    @property
    def names(self) -> frozenset[str]:
        """Names of the archives."""
        return frozenset(name.removesuffix(".jsa") for name in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardArchivesSeen:
    """What was found on a board."""

    kind: str
    """Its kind; empty as long as it has no Java or no jars."""
    made: MadeArchives | None
    """The archives that it has; None unless all of them are whole and fit it."""
    free_bytes: int
    """Space on the disk that they lie on."""
    memory_bytes: int
    """Memory that is to be had, swap included: nothing is measured while they are made."""


class BoardArchives:
    """The archives of the boards of a cluster.

    Args:
        layout: the cluster.
        remotes: its boards by name, as root.
        trees: the engines that are copied to them.
        cache: the driver's folder of fetched engines.
        progress: told what takes long, and what could not be done.

    Attributes:
        changes: what was changed on boards.
    """

    def __init__(
        self,
        layout: Layout,
        remotes: Mapping[str, Remote],
        trees: Sequence[Tree],
        *,
        cache: Path,
        progress: Progress,
    ) -> None:
        self.changes: list[Change] = []
        self._layout = layout
        self._remotes = remotes
        self._kept = cache / "archives" / "boards"
        self._progress = progress
        self._place = str(layout.archives)
        self._jars = {
            engine: layout.engines.jars(engine) for engine in dict.fromkeys(ARCHIVES.values())
        }
        pair = layout.engines.pair.id
        self._lists = {name: listed for name in ARCHIVES if (listed := class_list(pair, name))}
        self._about = json.dumps([pair, lists_digest(pair), *(tree.digest for tree in trees)])
        self._seen: dict[str, BoardArchivesSeen] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the driver's cache that the boards' archives are in."""
        kinds = {seen.kind for seen in self._seen.values() if seen.kind}
        return tuple(self._kept / kind for kind in sorted(kinds))

    def look(self) -> None:
        """Look at the boards; one that cannot be looked at has none, and no kind."""
        jars = [path for paths in self._jars.values() for path in paths]
        request = {
            "do": "look_at_archives",
            "java": str(self._layout.java.home),
            "jars": jars,
            "folder": self._place,
        }
        found, errors = each_node(
            self._remotes, lambda name: rpc(self._remotes[name], request, program="node_archives")
        )
        self._seen = {name: self._read(row) for name, row in found.items()}
        for name, error in errors.items():
            self._say([name], error)

    def _read(self, row: dict[str, Any]) -> BoardArchivesSeen:
        kind = ""
        if row["kind"]:
            kind = hashlib.sha256(f"{row['kind']} {self._about}".encode()).hexdigest()[:16]
        there = {name: tuple(stamp) for name, stamp in row["files"].items() if name != _MARKER}
        return BoardArchivesSeen(
            kind=kind,
            made=_whole(row["marker"], there, kind),
            free_bytes=row["free_bytes"],
            memory_bytes=row["memory_bytes"],
        )

    def expected(self) -> dict[str, frozenset[str]]:
        """Return, by board, the archives that it will most likely have.

        A board that has its Java and its jars but no archives could not get them the last time.
        """
        everything, refused = frozenset(self._lists), self._refused()

        def of(seen: BoardArchivesSeen) -> frozenset[str]:
            if not seen.kind:
                return everything
            made = None if seen.kind in refused else self._made_of(seen)
            return made.names if made else frozenset()

        return {name: of(seen) for name, seen in self._seen.items()}

    def _made_of(self, seen: BoardArchivesSeen) -> MadeArchives | None:
        """Return the archives that a board has; a refusal that came later counts."""
        kept = self._kept_of(seen.kind)
        return seen.made if kept is None or kept == seen.made else None

    def _refused(self) -> dict[str, str]:
        """Return why kinds of board do without: what crashed on one board holds for its kind."""
        found = {}
        for seen in self._seen.values():
            for made in (seen.made, self._kept_of(seen.kind) if seen.kind else None):
                if made and made.refused:
                    found[seen.kind] = made.refused
        return found

    def planned(self) -> list[Change]:
        """Return what ``provide`` would do."""
        if not self._lists:
            return []
        words = "gets class-data archives (about 0.4 GB), made once per kind of board"
        refused = self._refused()
        return [
            Change(node=name, words=words)
            for name, seen in self._seen.items()
            if seen.kind not in refused and not (seen.kind and self._made_of(seen))
        ]

    def provide(
        self, wanted: Mapping[str, Sequence[Resource]], *, deep: bool
    ) -> dict[str, frozenset[str]]:
        """Give the boards what fits them; return, by board, the names of what it has then.

        Args:
            wanted: all else that each board is to have, and has.
            deep: read every byte of the copies, too.
        """
        none: dict[str, frozenset[str]] = dict.fromkeys(self._remotes, frozenset())
        if not self._lists:
            pair = self._layout.engines.pair.id
            self._say(list(none), InstallError(f"{pair} has no lists of classes"))
            return none
        for kind, reason in self._refused().items():
            kept = self._kept_of(kind)
            if not (kept and kept.refused):
                with contextlib.suppress(BoardclusterError, OSError):
                    refuse_board_archives(self._kept / kind, reason)
        kinds: dict[str, list[str]] = {}
        for name, seen in self._seen.items():
            kinds.setdefault(seen.kind, []).append(name)
        if unknown := kinds.pop("", []):
            self._say(unknown, InstallError("their Java or their jars cannot be read"))
        with_them, errors = each_node(kinds, lambda kind: self._make(kind, kinds[kind]))
        for kind, error in errors.items():
            self._say(kinds[kind], error)
        made = {name: made for kind, made in with_them.items() for name in kinds[kind]}
        copying = threading.Semaphore(COPIES_AT_ONCE)

        def copy(name: str) -> frozenset[str]:
            if deep or self._seen[name].made != made[name]:
                done = apply(
                    self._remotes[name],
                    [*wanted[name], self._tree(made[name])],
                    deep=deep,
                    said=lambda words: self._progress(words, 0, 0),
                    copying=copying,
                )
                self.changes.extend(done)
            return made[name].names

        there, errors = each_node(made, copy)
        for name, error in errors.items():
            self._say([name], error)
        return none | there

    def _say(self, boards: Sequence[str], error: BoardclusterError) -> None:
        why = error.message.splitlines()[0]
        if len(boards) == 1:
            why = why.removeprefix(f"{boards[0]}: ")
        self._progress(
            f"{', '.join(boards)}: no class-data archives, JVMs start slower: {why}", 0, 0
        )

    def _tree(self, made: MadeArchives) -> Tree:
        sums = {name: row[2] for name, row in made.files.items()}
        return tree_of(self._kept / made.kind, self._place, sums=sums)

    def _kept_of(self, kind: str) -> MadeArchives | None:
        """Return what the driver's cache has for a kind of board, if that is whole."""
        folder = self._kept / kind
        try:
            text = (folder / _MARKER).read_text()
        except OSError:
            return None
        there = {path.name: _stamp(path) for path in folder.glob("*.jsa")}
        return _whole(text, there, kind)

    def _make(self, kind: str, boards: Sequence[str]) -> MadeArchives:
        """Return the archives of a kind of board, making them unless they exist.

        Raises:
            CapacityError: there is not enough room for it.
            BoardclusterError: whatever else keeps them from being made.
        """
        if kept := self._kept_of(kind):
            return kept
        make_folder(self._kept)
        with hold_lock(self._kept / f".{kind}.lock", purpose=_MAKING):
            if kept := self._kept_of(kind):
                return kept
            for left in self._kept.glob(f"{_NEW}{kind}-*"):  # by a driver that was killed
                shutil.rmtree(left, ignore_errors=True)
            require_space(self._kept, need_bytes=_NEED_DISK_BYTES, purpose="keeping a copy")
            with self._new_folder(kind) as folder:
                if not self._adopt(boards, folder):
                    self._dump(self._remotes[self._roomiest(boards)], folder)
                    _write_down(MadeArchives(kind=kind, files=_sums(folder)), folder)
            made = self._kept_of(kind)
            if made is None:
                raise InstallError(f"{self._kept / kind} was changed while it was written")
            return made

    def _adopt(self, boards: Sequence[str], folder: Path) -> bool:
        """Fetch the archives that one of some boards has; return whether there are whole ones."""
        for name in boards:
            if made := self._seen[name].made:
                # What one board cannot give, another may have, or make.
                with contextlib.suppress(BoardclusterError, OSError):
                    self._remotes[name].get(self._place, folder)
                    if _sums(folder) == made.files:
                        return True
                shutil.rmtree(folder, ignore_errors=True)
        return False

    def _roomiest(self, boards: Sequence[str]) -> str:
        """Return the board with the most memory of those that have enough space.

        Raises:
            CapacityError: none has; says how much is needed.
        """
        roomy = [name for name in boards if self._seen[name].free_bytes >= _NEED_DISK_BYTES]
        if not roomy:
            most = max(self._seen[name].free_bytes for name in boards)
            raise CapacityError(
                f"making them takes {format_bytes(_NEED_DISK_BYTES)} of disk, but only "
                f"{format_bytes(most)} are free at {self._place}"
            )
        best = max(roomy, key=lambda name: self._seen[name].memory_bytes)
        memory_bytes = self._seen[best].memory_bytes
        if memory_bytes < _NEED_MEMORY_BYTES:
            raise CapacityError(
                f"making them takes {format_bytes(_NEED_MEMORY_BYTES, binary=True)} of memory, but "
                f"only {format_bytes(memory_bytes, binary=True)} are available"
            )
        return best

    @contextlib.contextmanager
    def _new_folder(self, kind: str) -> Iterator[Path]:
        """Yield a folder that gets the name of its kind when the block ends well."""
        target = self._kept / kind
        with (
            writing(target),
            tempfile.TemporaryDirectory(dir=self._kept, prefix=f"{_NEW}{kind}-") as work,
        ):
            folder = Path(work) / kind
            yield folder
            shutil.rmtree(target, ignore_errors=True)
            folder.rename(target)

    def _dump(self, remote: Remote, target: Path) -> None:
        """Make archives on a board and fetch them. Nothing of it stays there."""
        remove = ["rm", "-rf", "--", ARCHIVES_WORK]
        remote.run(remove)
        try:
            remote.put(self._write_lists(target.with_name("lists")), ARCHIVES_WORK)
            for done, name in enumerate(self._lists):
                self._progress(f"{remote.name}: {_MAKING}", done, len(self._lists))
                remote.run(
                    [
                        *("nice", "-n", "19", str(self._layout.java.program)),
                        *("-Xshare:dump", f"@{ARCHIVES_WORK}/{name}.options"),
                    ],
                    timeout_seconds=_DUMP_SECONDS,
                )
            self._progress(f"{remote.name}: {_MAKING}", len(self._lists), len(self._lists))
            remote.get(f"{ARCHIVES_WORK}/made", target)
        finally:
            with contextlib.suppress(BoardclusterError), cleaning_up():
                remote.run(remove)

    def _write_lists(self, folder: Path) -> Path:
        """Write what a board needs to make archives: lists, options, a place for the result."""
        (folder / "made").mkdir(parents=True)
        for name, listed in self._lists.items():
            (folder / f"{name}.classes").write_bytes(listed)
            options = dump_options(
                f"{ARCHIVES_WORK}/{name}.classes",
                f"{ARCHIVES_WORK}/made/{name}.jsa",
                self._jars[ARCHIVES[name]],
            )
            # In a file: sudo writes every command line into the board's log.
            (folder / f"{name}.options").write_text("\n".join(options))
        return folder


def refuse_board_archives(folder: Path, reason: str) -> None:
    """Do without the archives of a kind of board from now on: a JVM crashed while it used one."""
    make_folder(folder)
    _write_down(MadeArchives(kind=folder.name, refused=reason), folder)
    for path in folder.glob("*.jsa"):
        path.unlink()


def refuse_on_boards(remotes: Mapping[str, Remote], place: Path, reason: str) -> bool:
    """Take the archives from boards that run, because a JVM of a job crashed while it used one.

    JVMs that run keep what they have mapped; others start without. Each later ``up`` knows it.

    Args:
        remotes: the boards as root.
        place: where the archives are on them.
        reason: how the JVM crashed.

    Returns:
        Whether every board did it.
    """
    request = {"do": "refuse", "folder": str(place), "reason": reason}
    # A board that does not answer is told by the next `up`.
    _, errors = each_node(
        remotes, lambda name: rpc(remotes[name], request, program="node_archives")
    )
    return not errors


def _write_down(made: MadeArchives, folder: Path) -> None:
    write_atomically(folder / _MARKER, json.dumps(to_json(made), indent=1))


def _whole(text: str, there: Mapping[str, tuple[int, ...]], kind: str) -> MadeArchives | None:
    """Return what a ``made.json`` says, if it is of this kind and every file is as it says."""
    try:
        made = from_json(MadeArchives, json.loads(text))
    except (StoreError, ValueError):
        return None
    said = {name: (size, seconds) for name, (size, seconds, _) in made.files.items()}
    fits = made.kind == kind and (bool(made.refused) or said == there)
    return made if fits else None


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns // 1_000_000_000


def _sums(folder: Path) -> dict[str, tuple[int, int, str]]:
    return {path.name: (*_stamp(path), sha256_of(path)) for path in sorted(folder.glob("*.jsa"))}
