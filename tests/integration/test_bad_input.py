"""Bad input to the real program: a clear message, the documented exit code, nothing touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from boardcluster.services.install import Installation
from boardcluster.services.pair import pair_ids
from tests.integration.conftest import Cli


@pytest.fixture
def program(tmp_path: Path, cli: Callable[..., Cli]) -> Cli:
    return cli(tmp_path / "home")


def test_no_cluster_yet(program: Cli) -> None:
    for command in ("up", "status"):
        program(command, code=3)
        assert "boardcluster init" in program.stderr
    program("down", code=7)
    program("run", "wordcount", code=7)
    assert "boardcluster up" in program.stderr
    program("results", code=9)
    assert "boardcluster run" in program.stderr


def test_wrong_toml_names_line_key_and_the_nearest_name(program: Cli) -> None:
    program("init", "--workers", "2")
    path = program.home / "cluster.toml"
    text = path.read_text().replace('profile = "default"', 'profile = "defualt"')
    path.write_text(text)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "defualt" in row)
    program("up", code=3)
    assert f"cluster.toml:{line}:" in program.stderr
    assert "cluster.profile" in program.stderr
    assert 'did you mean "default"' in program.stderr


def test_more_workers_than_memory_holds(program: Cli) -> None:
    program("init", "--workers", "63", code=5)
    assert "GiB" in program.stderr
    program("init", "--workers", "2")
    path = program.home / "cluster.toml"
    path.write_text(path.read_text().replace("GiB", "TiB"))
    program("up", code=5)
    assert "available" in program.stderr
    program("init", "--workers", "2", code=2)
    assert "--force" in program.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"", "empty"),
        (b"text\n\x00\x01binary\n", "NUL"),
        (b"caf\xe9\n", "UTF-8"),
    ],
)
def test_unusable_input_files(
    program: Cli, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "input.txt"
    if content is not None:
        path.write_bytes(content)
    program("data", "text", str(path), code=4)
    assert str(path) in program.stderr
    assert words in program.stderr


def test_usage_errors(program: Cli) -> None:
    program("run", "nonsense", code=2)
    assert "wordcount" in program.stderr
    program("init", "--profile", "nonsense", code=2)
    program("init", "--engines", "nonsense", code=2)
    program("data", "airline", "--size", "many", code=2)
    program("submit", "spark", "--", "/nonexistent.py", code=4)


def test_no_network_and_an_empty_cache(program: Cli, tmp_path: Path) -> None:
    program.env |= {
        "BOARDCLUSTER_CACHE": str(tmp_path / "empty"),
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_NO_INDEX": "0",
        "PIP_FIND_LINKS": "",
        "PIP_RETRIES": "0",
        "PIP_DEFAULT_TIMEOUT": "2",
    }
    program("init", "--workers", "1", "--subnet", "198.18.204.0/24")
    program("up", code=6)
    assert "network" in program.stderr
    assert not (program.home / "state.json").exists()
    program("data", "airline", "--size", "1MB", code=6)
    assert "network" in program.stderr


def test_a_corrupt_jar_is_deleted_and_fetched_again(
    program: Cli, cache: Path, installed: Callable[[str], Installation], open_folder: Path
) -> None:
    """In a cache of its own, which shares the files: other clusters start from the same jars.

    With a profile that has no class-data archives, which would have to be made for these jars.
    """
    installed(pair_ids()[0])
    own = open_folder / "cache"
    program.env["BOARDCLUSTER_CACHE"] = str(own)
    shutil.copytree(cache / "engines", own / "engines", copy_function=link_or_copy, symlinks=True)
    folder = own / "engines" / pair_ids()[0] / "hadoop"
    jar = next(folder.glob("hadoop-yarn-common-*.jar"))
    whole = jar.read_bytes()
    jar.unlink()  # what it shares with the user's cache stays as it is
    jar.write_bytes(whole[: len(whole) // 2])
    program("init", "--workers", "1", "--subnet", "198.18.204.0/24", "--profile", "upstream")
    try:
        program("up")
        assert "corrupt" in program.stderr
        assert jar.read_bytes() == whole
    finally:
        program("down", "--wipe")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
