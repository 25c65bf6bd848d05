"""Installing a tiny made-up pair: the fetching functions are replaced, everything else is real."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from boardcluster.errors import InstallError, RemoteError
from boardcluster.remote.gate import Completed
from boardcluster.services import install as module
from boardcluster.services.install import (
    Installation,
    corrupt_files,
    find_installation,
    install,
    verify,
)
from boardcluster.services.java import Java
from boardcluster.services.pair import EnginePair, LockedJar

CLASSIFIER = "{http://ant.apache.org/ivy/maven}classifier"
JAVA = Java(program=Path("/java/bin/java"), feature=17, version="17", vendor="Maker")
COORDINATES = (
    "org.apache.hadoop:hadoop-common:9.8.7",
    "org.apache.hadoop:hadoop-common:9.8.7:tests",
    "io.netty:netty-native:4.1:linux-x86_64",
    "io.netty:netty-native:4.1:linux-aarch_64",
    "com.google:guava:27",
)
NAMES = [
    "hadoop-common-9.8.7.jar",
    "hadoop-common-9.8.7-tests.jar",
    "netty-native-4.1-linux-x86_64.jar",
    "netty-native-4.1-linux-aarch_64.jar",
    "guava-27.jar",
]
Change = Callable[[bytes], bytes]


def content_of(name: str) -> bytes:
    return f"content of {name} ".encode() * 20


def locked(coordinate: str) -> LockedJar:
    organisation, name, revision, *classifier = coordinate.split(":")
    bare = LockedJar(
        organisation=organisation,
        module=name,
        revision=revision,
        classifier="".join(classifier),
        sha256="",
        size_bytes=0,
    )
    content = content_of(bare.file_name)
    return LockedJar(
        organisation=organisation,
        module=name,
        revision=revision,
        classifier="".join(classifier),
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
    )


class World:
    """The outside: Maven Central behind Ivy, and PyPI. Counts what is asked of it."""

    def __init__(self, sdist: Path) -> None:
        self._sdist = sdist
        self.jars: list[list[str]] = []
        self.archives: list[str] = []
        self.damage: dict[str, list[Change]] = {}
        self.before_batch: Callable[[int], None] = lambda _: None
        self.ivy_xml = ""

    def run_ivy(self, argv: list[str], **_: Any) -> Completed:
        self.before_batch(len(self.jars))
        option = {argv[i]: argv[i + 1] for i in range(len(argv) - 1)}
        assert Path(option["-jar"]).name == "ivy-2.5.3.jar"
        assert "central" in Path(option["-settings"]).read_text()
        self.ivy_xml = Path(option["-ivy"]).read_text()
        wanted = ElementTree.fromstring(self.ivy_xml)
        modules = [dict(dependency.attrib) for dependency in wanted.iter("dependency")]
        # What Ivy does to a module that is named twice: it drops artefacts of it.
        assert len({(m["org"], m["name"]) for m in modules}) == len(modules)
        assert all(m["transitive"] == "false" for m in modules)
        names = []
        for dependency in wanted.iter("dependency"):
            for artefact in dependency.iter("artifact"):
                classifier = artefact.get(CLASSIFIER)
                tail = f"-{classifier}" if classifier else ""
                names.append(f"{artefact.get('name')}-{dependency.get('rev')}{tail}.jar")
        self.jars.append(names)
        target, pattern = option["-retrieve"].rsplit("/", 1)
        assert pattern == "[artifact]-[revision](-[classifier]).[ext]"
        Path(target).mkdir(parents=True)
        for name in names:
            change = self.damage[name].pop(0) if self.damage.get(name) else bytes
            (Path(target) / name).write_bytes(change(content_of(name)))
        return Completed(
            argv=tuple(argv), returncode=0, stdout=b"", stderr=b"", duration_seconds=0.1
        )

    def fetch_from_pypi(self, requirement: str, *, folder: Path, **kwargs: Any) -> Path:
        assert kwargs["only_source"] is True
        self.archives.append(requirement)
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / self._sdist.name
        target.write_bytes(self._sdist.read_bytes())
        return target


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    path = tmp_path / "pyspark-6.5.4.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, mode in (
            ("deps/jars/ivy-2.5.3.jar", 0o644),
            ("deps/jars/spark-core.jar", 0o644),
            ("deps/bin/spark-submit", 0o755),
            ("lib/py4j-src.zip", 0o644),
            ("setup.py", 0o644),
        ):
            data = content_of(name)
            member = tarfile.TarInfo(f"pyspark-6.5.4/{name}")
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def pair(sdist: Path) -> EnginePair:
    return EnginePair(
        id="hadoop-9.8.7-spark-6.5.4",
        hadoop="9.8.7",
        spark="6.5.4",
        java_oldest=17,
        java_newest=21,
        pyspark_requirement="pyspark==6.5.4",
        pyspark_sha256=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        pyspark_size_bytes=sdist.stat().st_size,
        jars=tuple(map(locked, COORDINATES)),
    )


@pytest.fixture
def world(sdist: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(sdist)
    monkeypatch.setattr(module, "run_program", world.run_ivy)
    monkeypatch.setattr(module, "fetch_from_pypi", world.fetch_from_pypi)
    return world


class Told:
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, what: str, done_bytes: int, total_bytes: int) -> None:
        assert 0 <= done_bytes <= total_bytes
        self.lines.append(what)


def put(pair: EnginePair, cache: Path, told: Told | None = None) -> Installation:
    return install(pair, JAVA, cache=cache, progress=told or Told())


def assert_whole(there: Installation) -> None:
    for jar in there.pair.jars:
        assert (there.hadoop_jars / jar.place).read_bytes() == content_of(jar.file_name)
    assert (there.spark_home / "jars" / "spark-core.jar").is_file()
    assert find_installation(there.pair, cache=there.folder.parent.parent) == there


def change(path: Path, *, to: bytes, later_seconds: int = 5) -> None:
    """Change a file as bit rot or a person does: the time stamp moves."""
    status = path.stat()
    path.write_bytes(to)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + later_seconds * 10**9))


def test_first_run_lays_out_both_engines(world: World, pair: EnginePair, tmp_path: Path) -> None:
    there = put(pair, tmp_path / "cache")

    assert_whole(there)
    assert world.jars == [NAMES]
    assert world.archives == ["pyspark==6.5.4"]
    assert os.access(there.spark_home / "bin" / "spark-submit", os.X_OK)
    assert (there.spark_home / "python" / "lib" / "py4j-src.zip").is_file()
    assert [Path(jar).name for jar in there.jars("hadoop")] == sorted(
        name for name in NAMES if "tests" not in name
    )
    assert [Path(jar).name for jar in there.jars("spark")] == ["ivy-2.5.3.jar", "spark-core.jar"]
    assert there.hadoop_jar("hadoop-common").is_file()
    assert there.hadoop_test_jar("hadoop-common").is_file()


def test_nodes_with_files_of_their_own_see_the_same_jars_elsewhere(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    here = put(pair, tmp_path / "cache")
    there = replace(here, on_nodes=Path("/opt/boardcluster/engines/x"))

    for engine, folder in (("hadoop", "hadoop"), ("spark", "spark/jars")):
        assert here.jars(engine)
        assert there.jars(engine) == [
            f"/opt/boardcluster/engines/x/{folder}/{Path(jar).name}" for jar in here.jars(engine)
        ]
    assert (str(there.hadoop_jars), str(there.spark_home)) == (
        "/opt/boardcluster/engines/x/hadoop",
        "/opt/boardcluster/engines/x/spark",
    )
    assert str(there.hadoop_jar("hadoop-common")) == (
        "/opt/boardcluster/engines/x/hadoop/hadoop-common-9.8.7.jar"
    )
    assert str(there.hadoop_test_jar("hadoop-common")) == (
        "/opt/boardcluster/engines/x/hadoop/tests/hadoop-common-9.8.7-tests.jar"
    )
    assert there.folder == here.folder  # what is fetched and verified stays on this machine


def test_leaves_nothing_but_the_engines(world: World, pair: EnginePair, tmp_path: Path) -> None:
    there = put(pair, tmp_path / "cache")

    assert sorted(path.name for path in there.folder.iterdir()) == [
        "hadoop",
        "manifest.json",
        "spark",
    ]
    assert not (tmp_path / "cache" / "ivy").exists()
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []


def test_second_run_fetches_nothing_and_reads_no_file(
    world: World, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(pair, tmp_path / "cache")
    calls = (len(world.jars), len(world.archives))
    monkeypatch.setattr(module, "sha256_of", lambda _: pytest.fail("a file was read"))

    there = put(pair, tmp_path / "cache")

    assert (len(world.jars), len(world.archives)) == calls
    assert_whole(there)


def test_works_with_the_tarfile_of_debian_12(
    world: World, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python 3.11.2 has no extraction filters; the keyword came with 3.11.4.
    original = tarfile.TarFile.extractall
    trusting: dict[str, Any] = (
        {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
    )

    def old(self: tarfile.TarFile, path: Any = ".", members: Any = None) -> None:
        original(self, path, members, **trusting)

    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", old)

    assert_whole(put(pair, tmp_path / "cache"))


@pytest.mark.parametrize(
    "damaged",
    [
        lambda data: b"X" + data[1:],  # same size
        lambda data: data[: len(data) // 2],  # truncated
        lambda _: b"",
    ],
)
def test_corrupt_jar_is_fetched_again_and_only_that(
    world: World, pair: EnginePair, tmp_path: Path, damaged: Change
) -> None:
    there = put(pair, tmp_path / "cache")
    change(there.hadoop_jars / "guava-27.jar", to=damaged(content_of("guava-27.jar")))
    assert find_installation(pair, cache=tmp_path / "cache") is None
    told = Told()

    put(pair, tmp_path / "cache", told)

    assert world.jars[1:] == [["guava-27.jar"]]
    assert len(world.archives) == 1
    assert "corrupt in the cache, will be fetched again: guava-27.jar" in told.lines
    assert_whole(there)


def test_missing_jar_is_fetched_again(world: World, pair: EnginePair, tmp_path: Path) -> None:
    there = put(pair, tmp_path / "cache")
    (there.hadoop_jars / "tests" / "hadoop-common-9.8.7-tests.jar").unlink()

    put(pair, tmp_path / "cache")

    assert world.jars[1:] == [["hadoop-common-9.8.7-tests.jar"]]
    assert_whole(there)


def test_corrupt_spark_is_laid_out_again(world: World, pair: EnginePair, tmp_path: Path) -> None:
    there = put(pair, tmp_path / "cache")
    change(there.spark_home / "jars" / "spark-core.jar", to=b"rot")

    put(pair, tmp_path / "cache")

    assert len(world.archives) == 2
    assert len(world.jars) == 1
    assert (there.spark_home / "jars" / "spark-core.jar").read_bytes() == content_of(
        "deps/jars/spark-core.jar"
    )
    assert_whole(there)


def test_touched_but_equal_file_is_accepted_and_its_stamp_refreshed(
    world: World, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = put(pair, tmp_path / "cache")
    change(there.hadoop_jars / "guava-27.jar", to=content_of("guava-27.jar"))
    assert find_installation(pair, cache=tmp_path / "cache") is None

    put(pair, tmp_path / "cache")

    assert len(world.jars) == 1
    assert_whole(there)
    # With the stamp refreshed the next run does not even read it.
    monkeypatch.setattr(module, "sha256_of", lambda _: pytest.fail("a file was read"))
    put(pair, tmp_path / "cache")


def test_rot_that_keeps_the_time_stamp_is_found_when_every_byte_is_read(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    there = put(pair, tmp_path / "cache")
    jar = there.hadoop_jars / "guava-27.jar"
    change(jar, to=b"X" + jar.read_bytes()[1:], later_seconds=0)

    assert verify(there, progress=Told())
    assert not verify(there, progress=Told(), every_byte=True)
    assert not jar.exists()


def test_verify_of_a_whole_installation_reads_every_byte_and_keeps_it(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    there = put(pair, tmp_path / "cache")

    assert verify(there, progress=Told(), every_byte=True)
    assert_whole(there)


@pytest.mark.parametrize("text", [None, "", '{"hadoop/guava-27.jar": [1,'])
def test_damaged_manifest_costs_a_check_but_no_download(
    world: World, pair: EnginePair, tmp_path: Path, text: str | None
) -> None:
    there = put(pair, tmp_path / "cache")
    manifest = there.folder / "manifest.json"
    manifest.unlink()
    if text is not None:
        manifest.write_text(text)

    put(pair, tmp_path / "cache")

    assert (len(world.jars), len(world.archives)) == (1, 1)
    assert_whole(there)


def test_sums_that_a_power_cut_left_empty_prove_nothing(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    there = put(pair, tmp_path / "cache")
    (there.folder / "manifest.json").unlink()
    (there.spark_home / ".sums").write_text("")

    put(pair, tmp_path / "cache")

    assert len(world.archives) == 2


def test_wrong_content_is_fetched_once_more(world: World, pair: EnginePair, tmp_path: Path) -> None:
    world.damage["guava-27.jar"] = [lambda data: data[:-1]]

    there = put(pair, tmp_path / "cache")

    assert world.jars == [NAMES, ["guava-27.jar"]]
    assert_whole(there)


def test_wrong_content_twice_is_an_error_and_never_installed(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    world.damage["guava-27.jar"] = [lambda data: data[:-1], lambda data: b"X" + data[1:]]

    with pytest.raises(InstallError, match=r"SHA-256 still differs.*guava-27\.jar") as caught:
        put(pair, tmp_path / "cache")

    assert "mirror" in caught.value.hint
    there = Installation(pair=pair, folder=tmp_path / "cache" / "engines" / pair.id)
    assert not (there.hadoop_jars / "guava-27.jar").exists()
    assert find_installation(pair, cache=tmp_path / "cache") is None
    # What was right stays: the next try asks for the wrong one alone.
    assert_whole(put(pair, tmp_path / "cache"))
    assert world.jars[2:] == [["guava-27.jar"]]


def test_interrupted_installation_goes_on_where_it_stopped(
    world: World, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)

    def interrupt(number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    world.before_batch = interrupt
    with pytest.raises(KeyboardInterrupt):
        put(pair, tmp_path / "cache")
    assert find_installation(pair, cache=tmp_path / "cache") is None
    world.before_batch = lambda _: None

    there = put(pair, tmp_path / "cache")

    assert world.jars == [NAMES[:2], NAMES[2:4], NAMES[4:]]
    assert len(world.archives) == 1
    assert_whole(there)


def test_a_stray_jar_does_not_get_onto_the_class_path(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "engines" / pair.id / "hadoop"
    folder.mkdir(parents=True)
    (folder / "guava-11.jar").write_bytes(b"old")

    there = put(pair, tmp_path / "cache")

    assert not (there.hadoop_jars / "guava-11.jar").exists()


def test_one_dependency_holds_all_classifiers_of_a_module(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    put(pair, tmp_path / "cache")

    rows = {
        dependency.get("name"): [
            (artefact.get("type"), artefact.get(CLASSIFIER))
            for artefact in dependency.iter("artifact")
        ]
        for dependency in ElementTree.fromstring(world.ivy_xml).iter("dependency")
    }
    assert rows == {
        "hadoop-common": [("jar", None), ("test-jar", "tests")],
        "netty-native": [("jar", "linux-x86_64"), ("jar", "linux-aarch_64")],
        "guava": [("jar", None)],
    }


def test_no_network_is_an_install_error_with_a_hint(
    world: World, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any, **__: Any) -> Completed:
        raise RemoteError("command failed with status 1: java\n" + "noise\n" * 50 + "UNRESOLVED")

    monkeypatch.setattr(module, "run_program", unreachable)

    with pytest.raises(InstallError, match=r"Hadoop 9\.8\.7 could not be fetched") as caught:
        put(pair, tmp_path / "cache")

    assert caught.value.message.endswith("UNRESOLVED")
    assert caught.value.message.count("noise") == 5
    assert "network" in caught.value.hint


def test_progress_ends_with_everything(world: World, pair: EnginePair, tmp_path: Path) -> None:
    rows: list[tuple[str, int, int]] = []

    install(pair, JAVA, cache=tmp_path / "cache", progress=lambda *row: rows.append(row))

    total = sum(jar.size_bytes for jar in pair.jars)
    assert rows[-1] == ("Hadoop 9.8.7 is complete", total, total)
    assert ("fetching Hadoop 9.8.7 from Maven Central", 0, total) in rows


def test_manifest_lists_every_file_with_its_digest(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    there = put(pair, tmp_path / "cache")
    manifest = json.loads((there.folder / "manifest.json").read_text())

    for name, (size_bytes, _, digest) in manifest.items():
        data = (there.folder / name).read_bytes()
        assert (size_bytes, digest) == (len(data), hashlib.sha256(data).hexdigest())
    files = {
        str(path.relative_to(there.folder))
        for path in there.folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert set(manifest) == files


def test_corrupt_files_are_named_and_left_alone(
    world: World, pair: EnginePair, tmp_path: Path
) -> None:
    there = put(pair, tmp_path / "cache")
    rotten, gone = there.hadoop_jars / "guava-27.jar", there.spark_home / "bin" / "spark-submit"
    assert corrupt_files(there, every_byte=True) == []
    change(rotten, to=b"rot", later_seconds=0)
    gone.unlink()
    touched = there.hadoop_jars / "hadoop-common-9.8.7.jar"
    change(touched, to=touched.read_bytes())

    assert corrupt_files(there) == [rotten, gone]
    assert rotten.read_bytes() == b"rot"
    (there.folder / "manifest.json").write_text("{")
    assert corrupt_files(there) == [there.folder / "manifest.json"]
