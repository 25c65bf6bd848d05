"""Class-data archives: made once, made again for new jars, and never needed."""

import errno
import gzip
import os
import time
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import RemoteError
from boardcluster.fetch.cache import no_progress
from boardcluster.remote.gate import Completed
from boardcluster.services import archive as module
from boardcluster.services.archive import (
    ARCHIVES,
    made_archives,
    provide_archives,
    refuse_archives,
    refused_archives,
)
from boardcluster.services.install import Installation
from boardcluster.services.java import Java
from boardcluster.services.layout import Layout

JAVA = Java(program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="N/A Maker")


class Jvm:
    """Stands for ``java -Xshare:dump``."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.dumped: list[dict[str, str]] = []

    def __call__(self, argv: list[str], **_: Any) -> Completed:
        options = dict(option.split("=", 1) for option in argv if "=" in option)
        options["classes"] = Path(options["-XX:SharedClassListFile"]).read_text()
        options["cp"] = argv[argv.index("-cp") + 1]
        self.dumped.append(options)
        if self.fails:
            raise RemoteError("command failed with status 1: java\nlong text")
        Path(options["-XX:SharedArchiveFile"]).write_text("archive")
        return Completed(argv=(), returncode=0, stdout=b"", stderr=b"", duration_seconds=1)


@pytest.fixture
def there(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    lists = tmp_path / "lists"
    lists.mkdir()
    for name in ARCHIVES:
        packed = gzip.compress(f"classes of {name}".encode())
        (lists / f"{layout.engines.pair.id}.{name}.classes.gz").write_bytes(packed)
    monkeypatch.setattr(module, "_LISTS", lists)
    (layout.engines.folder / "manifest.json").write_text("{}")
    return layout.engines


def test_makes_each_archive_from_its_list_and_jars(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Jvm()
    monkeypatch.setattr(module, "run_program", jvm)

    folder = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    # Another Java has other archives; its name is safe as the name of a folder.
    assert folder.parent == tmp_path / "cache" / "archives" / there.pair.id
    assert folder.name.startswith("N-A-Maker-17.0.1-")
    assert sorted(path.name for path in folder.iterdir()) == [
        "mapreduce.jsa",
        "master.jsa",
        "spark.jsa",
        "worker.jsa",
    ]
    by_list = {row["classes"]: row["cp"] for row in jvm.dumped}
    assert by_list == {
        "classes of worker": ":".join(there.jars("hadoop")),
        "classes of master": ":".join(there.jars("hadoop")),
        "classes of mapreduce": ":".join(there.jars("hadoop")),
        "classes of spark": ":".join(there.jars("spark")),
    }


def test_makes_them_once(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Jvm()
    monkeypatch.setattr(module, "run_program", jvm)
    for _ in range(2):
        provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    assert len(jvm.dumped) == len(ARCHIVES)


def test_makes_them_again_when_the_jars_are_newer(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Jvm()
    monkeypatch.setattr(module, "run_program", jvm)
    folder = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)
    os.utime(folder / "worker.jsa", (0, 0))

    provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    assert [row["classes"] for row in jvm.dumped[len(ARCHIVES) :]] == ["classes of worker"]


def test_makes_others_for_other_lists(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Jvm()
    monkeypatch.setattr(module, "run_program", jvm)
    first = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)
    packed = tmp_path / "lists" / f"{there.pair.id}.spark.classes.gz"
    packed.write_bytes(gzip.compress(b"more classes"))

    second = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    assert first != second
    assert len(jvm.dumped) == 2 * len(ARCHIVES)


def test_refused_archives_are_gone_and_never_made_again(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = Jvm()
    monkeypatch.setattr(module, "run_program", jvm)
    folder = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    refuse_archives(folder, "SIGSEGV in the namenode")
    again = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    assert again == folder
    assert len(jvm.dumped) == len(ARCHIVES)
    marks = {path.name: path.read_text() for path in folder.iterdir()}
    assert marks == {f"{name}.refused": "SIGSEGV in the namenode" for name in ARCHIVES}


def test_one_refused_archive_leaves_the_others(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_program", Jvm())
    folder = provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    refuse_archives(folder, "SIGSEGV in a task", ["mapreduce"])
    provide_archives(there, JAVA, cache=tmp_path / "cache", progress=no_progress)

    assert refused_archives(folder) == {"mapreduce"}
    assert refused_archives(folder, since_seconds=time.time() + 60) == set()
    assert {path.stem for path in folder.glob("*.jsa")} == set(ARCHIVES) - {"mapreduce"}
    (folder / "mapreduce.jsa").touch()  # a kill came between the mark and its removal
    assert made_archives(folder) == set(ARCHIVES) - {"mapreduce"}


def test_a_java_that_cannot_dump_is_told_and_not_fatal(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_program", Jvm(fails=True))
    told: list[str] = []

    folder = provide_archives(
        there, JAVA, cache=tmp_path / "cache", progress=lambda what, *_: told.append(what)
    )

    assert list(folder.iterdir()) == []
    assert told.count(
        "no class-data archive, JVMs start slower: command failed with status 1: java"
    ) == len(ARCHIVES)


def test_a_cache_without_room_is_told_and_not_fatal(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "run_program", Jvm())
    monkeypatch.setattr(Path, "write_bytes", full)
    told: list[str] = []

    folder = provide_archives(
        there, JAVA, cache=tmp_path / "cache", progress=lambda what, *_: told.append(what)
    )

    assert list(folder.iterdir()) == []
    assert sum("JVMs start slower" in row and "No space left" in row for row in told) == len(
        ARCHIVES
    )


def test_a_pair_without_lists_has_none(
    there: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_program", Jvm())
    monkeypatch.setattr(module, "_LISTS", tmp_path)
    told: list[str] = []

    folder = provide_archives(
        there, JAVA, cache=tmp_path / "cache", progress=lambda what, *_: told.append(what)
    )

    assert list(folder.iterdir()) == []
    assert any("has no list of classes for worker" in line for line in told)
