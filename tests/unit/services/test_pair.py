"""Lock files: what is shipped is whole, and versions stand nowhere else."""

import ast
import re
from importlib import resources
from pathlib import Path

import pytest

import boardcluster
from boardcluster.errors import UsageError
from boardcluster.services.pair import LockedJar, load_pair, pair_ids

SHIPPED = ("hadoop-3.4.2-spark-4.1.4", "hadoop-3.3.6-spark-3.5.9")
DIGEST = re.compile(r"[0-9a-f]{64}")


def test_ships_two_pairs_newest_first() -> None:
    assert pair_ids() == SHIPPED


@pytest.mark.parametrize("pair_id", SHIPPED)
def test_shipped_lock_file_is_whole(pair_id: str) -> None:
    pair = load_pair(pair_id)

    assert pair.id == pair_id == f"hadoop-{pair.hadoop}-spark-{pair.spark}"
    assert pair.pyspark_requirement == f"pyspark=={pair.spark}"
    assert DIGEST.fullmatch(pair.pyspark_sha256)
    assert pair.pyspark_size_bytes > 100_000_000
    assert (pair.java_oldest, pair.java_newest) == (17, 21)
    assert 100 < len(pair.jars) < 250
    for jar in pair.jars:
        assert DIGEST.fullmatch(jar.sha256), jar
        assert jar.size_bytes > 0, jar
        assert jar.organisation, jar
        assert jar.classifier in ("", "tests") or "-" in jar.classifier, jar


@pytest.mark.parametrize("pair_id", SHIPPED)
def test_no_two_jars_of_a_pair_take_the_same_place(pair_id: str) -> None:
    jars = load_pair(pair_id).jars

    assert len({jar.place for jar in jars}) == len(jars)
    assert len({jar.file_name for jar in jars}) == len(jars)


@pytest.mark.parametrize("pair_id", SHIPPED)
def test_shipped_lock_file_holds_what_the_daemons_need(pair_id: str) -> None:
    pair = load_pair(pair_id)
    names = {jar.place for jar in pair.jars}
    version = pair.hadoop

    for module in (
        "hadoop-common",
        "hadoop-hdfs",
        "hadoop-yarn-server-resourcemanager",
        "hadoop-yarn-server-nodemanager",
        "hadoop-yarn-server-timelineservice",  # the NodeManager fails without it
        "hadoop-mapreduce-client-hs",
        "hadoop-mapreduce-client-shuffle",
        "hadoop-mapreduce-examples",
    ):
        assert f"{module}-{version}.jar" in names
    assert f"tests/hadoop-hdfs-{version}-tests.jar" in names  # holds the web pages


def test_unknown_pair_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="hadoop-1-spark-1") as caught:
        load_pair("hadoop-1-spark-1")

    assert all(pair_id in caught.value.hint for pair_id in SHIPPED)


def test_a_path_is_no_pair() -> None:
    with pytest.raises(UsageError):
        load_pair("../profiles/upstream")


def test_names_of_jars() -> None:
    plain = LockedJar(
        organisation="o", module="m", revision="1.2", classifier="", sha256="", size_bytes=1
    )
    tests = LockedJar(
        organisation="o", module="m", revision="1.2", classifier="tests", sha256="", size_bytes=1
    )
    native = LockedJar(
        organisation="o", module="m", revision="1.2", classifier="linux-x86_64", sha256="",
        size_bytes=1,
    )  # fmt: skip

    assert (plain.file_name, plain.place) == ("m-1.2.jar", "m-1.2.jar")
    assert (tests.file_name, tests.place) == ("m-1.2-tests.jar", "tests/m-1.2-tests.jar")
    assert native.place == "m-1.2-linux-x86_64.jar"


def strings(source: Path) -> list[str]:
    return [
        found.value
        for found in ast.walk(ast.parse(source.read_text()))
        if isinstance(found, ast.Constant) and isinstance(found.value, str)
    ]


def test_no_engine_version_is_used_in_the_code() -> None:
    pairs = [load_pair(pair_id) for pair_id in SHIPPED]
    versions = {version for pair in pairs for version in (pair.hadoop, pair.spark)}
    assert versions == {"3.4.2", "4.1.4", "3.3.6", "3.5.9"}
    # Prose may name a version (why a check exists, where a fact is from); a file name, a
    # coordinate, a requirement or a bare version may not.
    either = "|".join(map(re.escape, versions))
    used = re.compile(rf"^({either})|[-_=:/]({either})(?![.]?\d)")
    sources = list(Path(boardcluster.__file__).parent.rglob("*.py"))

    assert used.search("pyspark==4.1.4")
    assert len(sources) > 50
    assert [(path.name, s) for path in sources for s in strings(path) if used.search(s)] == []


def test_class_lists_belong_to_a_shipped_pair() -> None:
    folder = resources.files("boardcluster.services").joinpath("pairs")
    lists = [entry.name for entry in folder.iterdir() if entry.name.endswith(".classes.gz")]

    assert lists
    assert {name.rsplit(".", 3)[0] for name in lists} <= set(SHIPPED)
