"""Settings: which properties there are, whose they are, what they may be, where they belong."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.test_conf import rows_of, spark_rows

from boardcluster.errors import CapacityError, SpecError, UsageError
from boardcluster.factors import FACTORS_BY_NAME
from boardcluster.records import ClusterSpec, Security
from boardcluster.services.conf import render_node
from boardcluster.services.layout import Layout
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile, own_file_digests, own_parts
from boardcluster.services.settings import (
    by_file,
    check_for_pair,
    check_setting,
    known_settings,
    memory_mib,
    of_daemons,
    of_jobs,
    refusal_of,
    settings_of_submission,
)

ROOT = Path(__file__).resolve().parents[3]
MakeSpec = Callable[..., ClusterSpec]
MakeLayout = Callable[[ClusterSpec], Layout]


@pytest.fixture
def make_spec(make_spec: MakeSpec) -> MakeSpec:
    """The clusters of the other tests, of a pair that there is."""
    return lambda **changes: make_spec(**{"engines": "hadoop-3.4.2-spark-4.1.4", **changes})


@pytest.mark.parametrize("pair_id", pair_ids())
def test_every_pair_has_a_list_with_properties_of_every_engine(pair_id: str) -> None:
    known = known_settings(pair_id)
    assert len(known) > 2500
    assert known["dfs.blocksize"].default == "134217728"
    for key, file in {
        "io.file.buffer.size": "core-site",
        "dfs.blocksize": "hdfs-site",
        "yarn.nodemanager.resource.memory-mb": "yarn-site",
        "mapreduce.map.output.compress": "mapred-site",
        "mapreduce.map.java.opts": "mapred-site",
        "spark.executor.cores": "spark-defaults",
        "spark.sql.shuffle.partitions": "spark-defaults",
    }.items():
        assert known[key].file == file


@pytest.mark.parametrize("security", list(Security))
def test_nobody_else_sets_what_boardcluster_sets(
    security: Security, make_spec: MakeSpec, make_layout: MakeLayout
) -> None:
    """Everything of a generated configuration but the profile's part is refused with a reason."""
    spec = make_spec(profile="upstream")
    node = replace(spec.nodes[0], address="198.18.0.2")
    nodes = (
        node,
        *(replace(row, address=f"198.18.0.{n}") for n, row in enumerate(spec.nodes[1:], 3)),
    )
    layout = make_layout(replace(spec, security=security, nodes=nodes))
    files = render_node(layout, layout.spec.master)
    rows = [
        row
        for name, text in files.items()
        if name.endswith((".xml", "defaults.conf"))
        for row in (rows_of(text) if name.endswith(".xml") else spark_rows(text))
    ]
    assert len(rows) > 40
    own = build_profile("upstream", spec).properties
    mine = {key for file in own.values() for key in file}
    mine.add("spark.ui.enabled")  # off by default, and whoever needs the pages may ask for them
    mine.add("dfs.blockreport.intervalMsec")  # it keeps disks free, and may be any time
    assert [key for key, _ in rows if key not in mine and not refusal_of(key)] == []


@pytest.mark.parametrize("name", ["default", "upstream", "paper-2026", "paper-2021"])
def test_what_the_profiles_set_is_known_and_may_be_set(name: str, make_spec: MakeSpec) -> None:
    properties = build_profile(name, make_spec(memory_mib=8192)).properties
    for file, rows in properties.items():
        for key, value in rows.items():
            assert check_setting(key, value, in_profile=True) == value
            assert list(by_file({key: value})) == [file]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("dfs.blocksize", "32 MiB", "33554432"),
        ("dfs.blocksize", "32MiB", "33554432"),
        ("dfs.blocksize", 33554432, "33554432"),
        ("mapreduce.map.memory.mb", "1 GiB", "1024"),
        ("spark.executor.memory", "1 GiB", "1024m"),
        ("spark.executor.memory", "1 GB", "954m"),
        ("spark.executor.memory", 1024, "1024m"),
        ("spark.driver.memory", "1 GB", "954m"),
        ("spark.driver.memory", 1024, "1024m"),
        ("spark.driver.memory", "1073741824b", "1024m"),
        ("spark.driver.memory", "512mb", "512m"),
        ("spark.executor.memory", "1g", "1g"),
        ("spark.memory.offHeap.size", "128 MB", "128000000b"),
        ("spark.hadoop.dfs.blocksize", "1 MiB", "1048576"),
        ("dfs.blocksize", (1 << 20) + 512, "1049088"),
        ("yarn.scheduler.capacity.maximum-am-resource-percent", 1, "1"),
        ("yarn.scheduler.capacity.maximum-am-resource-percent", "0.25", "0.25"),
        ("mapreduce.input.fileinputformat.split.maxsize", "64 MiB", "67108864"),
        ("spark.default.parallelism", 8, "8"),
        ("mapreduce.map.output.compress", True, "true"),
        ("mapreduce.job.reduce.slowstart.completedmaps", 0.5, "0.5"),
        ("spark.executor.cores", 2, "2"),
        ("spark.network.timeout", "200s", "200s"),
        ("spark.executorEnv.LANG", "C", "C"),
        ("spark.network.timeout", "2 min", "2min"),
        ("spark.locality.wait", "3 s", "3s"),
        ("spark.executor.memory", "1 g", "1g"),
        ("dfs.heartbeat.interval", "3 s", "3s"),
        ("dfs.datanode.outliers.report.interval", "30 min", "30m"),
        ("spark.executorEnv.X", "10 MB", "10 MB"),
        ("spark.executorEnv.BUFFER_SIZE", "10 MB", "10 MB"),
        ("dfs.blocksize", "128m", "134217728"),
        ("mapreduce.map.memory.mb", "1g", "1024"),
        ("mapreduce.map.memory.mb", -1, "-1"),
        ("dfs.datanode.du.reserved", "10 GiB", "10737418240"),
        ("dfs.datanode.balance.bandwidthPerSec", "100m", "104857600"),
        ("dfs.heartbeat.interval", "3s", "3s"),
        ("spark.shuffle.sort.bypassMergeThreshold", 100, "100"),
        ("mapreduce.map.java.opts", " -Xmx300m -XX:+UseG1GC ", "-Xmx300m -XX:+UseG1GC"),
    ],
)
def test_values_become_what_the_engines_read(key: str, value: Any, text: str) -> None:
    assert check_setting(key, value) == text
    assert check_setting(key, text) == text, "what was written is read again as the same"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("dfs.block.size", 1, 'no engine has a property "dfs.block.size".*"dfs.blocksize"'),
        ("spark.executor.core", 1, 'did you mean "spark.executor.cores"'),
        ("nonsense", 1, "no engine has a property"),
        ("spark.hadoop.dfs.block.size", 1, '"dfs.blocksize"'),
        ("fs.defaultFS", "hdfs://x", "its address and port"),
        ("dfs.datanode.data.dir", "/x", "keep their files"),
        ("hadoop.tmp.dir", "/x", "keep their files"),
        ("dfs.permissions.enabled", False, "who may do what"),
        ("spark.hadoop.dfs.permissions.enabled", False, "who may do what"),
        ("spark.authenticate", False, "who may do what"),
        ("mapreduce.framework.name", "local", "start the engines"),
        ("spark.eventLog.enabled", False, "start the engines"),
        ("mapreduce.job.end-notification.max.retry.interval", 3, "Hadoop declares it final"),
        ("mapreduce.output.fileoutputformat.compress", True, "verifies outputs as they are"),
        ("mapreduce.job.reduces", 0, "a whole number from 1"),
        ("dfs.replication", 1, "`replication` in a \\[\\[matrix\\]\\]"),
        ("spark.hadoop.dfs.checksum.type", "NULL", "`checksum` in a \\[\\[matrix\\]\\]"),
        ("mapreduce.map.output.compress", "yes", "allowed: true, false"),
        ("spark.executor.cores", "two", "a whole number, as its default 1"),
        ("spark.executor.cores", [1], "text, a number, true or false"),
        ("mapreduce.map.memory.mb", "1 MB", "not a whole number of MiB"),
        ("spark.executorEnv.X", "a\nb", "control characters"),
        ("spark.executorEnv.A\nspark.master", "local[1]", "names no environment variable after"),
        ("spark.yarn.appMasterEnv.FOO BAR", "x", "allowed: letters, digits, _ and"),
        ("spark.executorEnv.A:B", "x", "names no environment variable after"),
        ("dfs.blocksize", "1.5", "a whole number, .* or a size such as 64 MiB"),
        ("dfs.blocksize", 0, "at least 1 MiB"),
        ("dfs.blocksize", "512 KiB", '"524288" is not .* at least 1 MiB, and a multiple of 512 b'),
        ("dfs.blocksize", "1.5 MB", '"1500000" is not .* a multiple of 512 bytes'),
        ("spark.hadoop.dfs.blocksize", 1 << 19, "at least 1 MiB"),
        ("yarn.scheduler.capacity.maximum-am-resource-percent", "50%", "its default 0.1"),
        ("yarn.scheduler.capacity.maximum-am-resource-percent", "0.5 s", "its default 0.1"),
        ("spark.default.parallelism", "many", "a whole number from 1"),
        ("spark.default.parallelism", 0, "a whole number from 1"),
        ("mapreduce.input.fileinputformat.split.maxsize", "large", "a whole number.* as 64 MiB"),
        ("spark.driver.memory", "much", "a number, as its default 1g"),
        ("mapreduce.map.memory.mb", 512.5, "a whole number"),
        ("yarn.scheduler.minimum-allocation-mb", 0, "a whole number from 1"),
        ("spark.executor.cores", "2x", "a whole number, as its default 1"),
        ("spark.rpc.message.maxSize", "256 MiB", "a number without unit, as its default 128"),
        ("dfs.datanode.handler.count", "10 GB", "a number without unit"),
        ("spark.executorEnv.DB_PASSWORD", "x", "looks like a secret"),
        ("spark.yarn.appMasterEnv.AWS_SECRET_ACCESS_KEY", "x", "looks like a secret|who may"),
        ("spark.hadoop.fs.s3a.access.key", "x", "who may do what"),
        ("spark.executor.extraJavaOptions", "-Xss1m -Dpassword=x", "looks like a secret"),
        ("spark.executorEnv.X", "a" * 5000, "at most 4096 characters"),
    ],
)
def test_what_cannot_be_set_is_refused(key: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_setting(key, value)


def test_a_property_of_another_pair_is_refused_with_the_nearest() -> None:
    old, new = sorted(pair_ids())
    only = sorted(set(known_settings(new)) - set(known_settings(old)))[0]
    check_for_pair({only: "1", "spark.executorEnv.X": "1"}, new)
    with pytest.raises(UsageError, match=f"{old} has no property"):
        check_for_pair({only: "1"}, old)


def test_daemons_and_jobs_read_different_properties() -> None:
    jobs = {
        "dfs.blocksize": "1",
        "spark.executor.cores": "1",
        "mapreduce.map.output.compress": "true",
        "yarn.app.mapreduce.am.resource.mb": "512",
    }
    daemons = {
        "dfs.datanode.handler.count": "1",
        "mapreduce.shuffle.max.threads": "2",
        "yarn.scheduler.minimum-allocation-mb": "32",
        "io.file.buffer.size": "4096",
    }
    assert of_jobs(jobs | daemons) == jobs
    assert of_daemons(jobs | daemons) == daemons


def test_a_submission_has_settings_of_its_own() -> None:
    assert settings_of_submission(["dfs.blocksize=1 MiB", "spark.executor.cores = 2"]) == {
        "dfs.blocksize": "1048576",
        "spark.executor.cores": "2",
    }
    for text, words in {
        "dfs.blocksize": "is not KEY=VALUE",
        "=1": "is not KEY=VALUE",
        "spark.executor.core=1": "did you mean",
        "dfs.datanode.handler.count=3": "is read by the daemons",
    }.items():
        with pytest.raises(UsageError, match=words):
            settings_of_submission([text])


@pytest.mark.parametrize(
    ("text", "mib"), [("1g", 1024), ("512m", 512), ("512", 512), ("1b", 1), ("2048k", 2)]
)
def test_sizes_of_the_engines(text: str, mib: int) -> None:
    assert memory_mib(text) == mib
    with pytest.raises(ValueError, match="is not a size"):
        memory_mib(f"{text}!")


# Memory


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spark.executor.memory": "64g"}, "memory 65536 MiB \\+ overhead 128 MiB.*at most"),
        ({"spark.executor.memory": "300m"}, "Spark needs 450 MiB"),
        ({"spark.executor.memoryOverhead": "8g"}, "overhead 8192 MiB"),
        ({"spark.executor.pyspark.memory": "8g"}, "pyspark.memory 8192 MiB"),
        (
            {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "8g"},
            "offHeap.size 8192 MiB",
        ),
        ({"spark.yarn.am.memory": "8g"}, "Spark application master"),
        ({"spark.driver.memory": "8g"}, "master, on which drivers run, has 2048 MiB"),
        ({"spark.driver.memory": "much"}, "'much' is not a size"),
        ({"mapreduce.map.memory.mb": "9000"}, "9024 MiB \\(in steps of 32\\), but YARN"),
        ({"mapreduce.map.memory.mb": "many"}, "'many' is not a whole number"),
        ({"mapreduce.map.memory.mb": "256"}, "heap of .* MiB, but .* = 256 MiB"),
        ({"mapreduce.reduce.java.opts": "-Xmx8g"}, "heap of 8192 MiB"),
        ({"mapreduce.task.io.sort.mb": "1500"}, "does not fit into the heap of a map"),
        ({"yarn.app.mapreduce.am.resource.mb": "9000"}, "application master container"),
        ({"yarn.nodemanager.resource.memory-mb": "8192"}, "but worker1 has 2048 MiB"),
        ({"yarn.scheduler.maximum-allocation-mb": "64"}, "grants at most 64 MiB"),
    ],
)
def test_memory_that_the_nodes_do_not_have_is_refused_with_the_arithmetic(
    changes: dict[str, str], words: str, make_spec: MakeSpec
) -> None:
    with pytest.raises(CapacityError, match=words) as caught:
        build_profile("default", replace(make_spec(), settings=changes))
    assert "cluster.toml" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spark.executor.cores": "6"}, r"cores = 6, but .* offers YARN 5 .*vcores is 5"),
        (
            {"spark.executor.cores": "5", "yarn.scheduler.maximum-allocation-vcores": "4"},
            r"cores = 5, but .* offers YARN 5 .*vcores is 4",
        ),
        ({"spark.yarn.am.cores": "8"}, "spark.yarn.am.cores = 8"),
        ({"mapreduce.map.cpu.vcores": "8"}, "mapreduce.map.cpu.vcores = 8"),
    ],
)
def test_cores_that_yarn_would_refuse_are_refused_beforehand(
    changes: dict[str, str], words: str, make_spec: MakeSpec
) -> None:
    with pytest.raises(CapacityError, match=words) as caught:
        build_profile("default", replace(make_spec(cores=4), settings=changes))
    assert "ask for fewer" in caught.value.hint


def test_as_many_cores_as_yarn_grants_are_allowed(make_spec: MakeSpec) -> None:
    build_profile("default", replace(make_spec(cores=4), settings={"spark.executor.cores": "5"}))
    build_profile("upstream", replace(make_spec(), settings={"spark.executor.cores": "4"}))
    with pytest.raises(CapacityError, match=r"offers YARN 8 virtual cores, and .* is 4"):
        build_profile("upstream", replace(make_spec(), settings={"spark.executor.cores": "5"}))
    more = {
        "spark.executor.cores": "16",
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.scheduler.maximum-allocation-vcores": "16",
    }
    build_profile("default", replace(make_spec(cores=1), settings=more))


def test_the_least_overhead_of_an_executor_counts(make_spec: MakeSpec) -> None:
    settings_ = {"spark.executor.minMemoryOverhead": "8g"}
    with pytest.raises(CapacityError, match="memory 1024 MiB \\+ overhead 8192 MiB"):
        build_profile("upstream", replace(make_spec(memory_mib=8192), settings=settings_))
    # `default` sets the overhead itself, which Spark then takes.
    build_profile("default", replace(make_spec(), settings=settings_))


def test_one_worker_must_hold_a_task_beside_the_application_master(make_spec: MakeSpec) -> None:
    settings_ = {"spark.executor.memory": "1100m"}
    build_profile("default", replace(make_spec(workers=2), settings=settings_))
    with pytest.raises(CapacityError, match="of the only worker, so it could never start"):
        build_profile("default", replace(make_spec(workers=1), settings=settings_))


def test_settings_of_yarn_that_leave_spark_no_room_refuse_spark_only(make_spec: MakeSpec) -> None:
    small = {"yarn.nodemanager.resource.memory-mb": "1024"}
    refusal = build_profile("default", replace(make_spec(), settings=small)).spark_refusal
    assert "YARN hands out 1024 MiB on the largest node" in refusal
    fits = {**small, "spark.executor.memory": "500m"}
    assert not build_profile("default", replace(make_spec(), settings=fits)).spark_refusal


def test_settings_go_on_top_of_the_profile_and_of_nodes(make_spec: MakeSpec) -> None:
    wanted = {"yarn.nodemanager.resource.memory-mb": "1024", "dfs.blocksize": "1048576"}
    built = build_profile("default", replace(make_spec(), settings=wanted))
    assert built.properties["yarn-site"]["yarn.nodemanager.resource.memory-mb"] == "1024"
    assert built.properties["hdfs-site"]["dfs.blocksize"] == "1048576"
    assert built.settings == wanted
    assert all("yarn.nodemanager.resource.memory-mb" not in row for row in built.per_node.values())
    assert all("yarn.nodemanager.resource.cpu-vcores" in row for row in built.per_node.values())


def test_generated_files_name_settings_once_under_a_heading(
    make_spec: MakeSpec, make_layout: MakeLayout
) -> None:
    wanted = {"dfs.blocksize": "1048576", "spark.executor.cores": "1"}
    layout = make_layout(replace(make_spec(), settings=wanted))
    files = render_node(layout, layout.spec.master)
    assert rows_of(files["hdfs-site.xml"]).count(("dfs.blocksize", "1048576")) == 1
    assert [key for key, _ in rows_of(files["hdfs-site.xml"])].count("dfs.blocksize") == 1
    assert ("spark.executor.cores", "1") in spark_rows(files["spark-defaults.conf"])
    assert "<!-- settings -->" in files["hdfs-site.xml"]


# A profile of one's own


OWN = """\
source = "my measurements"
["hdfs-site"]
"dfs.replication" = 1
"dfs.blocksize" = "16 MiB"
["spark-defaults"]
"spark.executor.instances" = "{workers}"
"""


def test_a_profile_of_ones_own_is_read_like_the_others(tmp_path: Path, make_spec: MakeSpec) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    built = build_profile(str(path), make_spec(memory_mib=8192))
    assert (built.name, built.source, built.small_daemons) == (str(path), "my measurements", False)
    assert built.properties["hdfs-site"] == {"dfs.replication": "1", "dfs.blocksize": "16777216"}
    assert built.properties["spark-defaults"] == {"spark.executor.instances": "4"}
    first = own_file_digests(["default", str(path)])
    path.write_text(OWN + "# a comment\n")
    assert own_file_digests([str(path)]).keys() == first.keys() == {str(path)}
    assert own_file_digests([str(path)]) != first


@pytest.mark.parametrize(
    ("text", "archived"),
    [
        ('source = "x"', ""),
        ('class_data_archives = ["spark"]', "spark"),
        ('base = "paper-2021"', ""),
        ('base = "paper-2021"\nclass_data_archives = ["spark", "mapreduce"]', "spark mapreduce"),
        ('base = "default"', "mapreduce spark"),
        ('base = "default"\nclass_data_archives = []', ""),
    ],
)
def test_ones_own_profile_says_which_jobs_have_class_data_archives(
    text: str, archived: str, tmp_path: Path, make_spec: MakeSpec
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    written = tomllib.loads(text)
    built = build_profile(str(path), make_spec(memory_mib=8192, workers=4))
    assert built.class_data_archives == set(archived.split())
    assert built.small_daemons == (written.get("base") == "default")
    assert built.uses_archives == bool(archived or built.small_daemons)
    # What tune sets on top of it keeps it.
    again = own_parts(str(path)).class_data_archives
    assert again == (tuple(archived.split()) if "class_data_archives" in written else None)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('"spark"', 'it is "spark"; allowed: a list of "mapreduce" and "spark"'),
        ('["spark", "mpi", 3]', 'it is "mpi", 3; allowed: a list of "mapreduce" and "spark"'),
        ("true", "it is true; allowed: a list of"),
    ],
)
def test_archives_of_other_engines_are_refused(
    written: str, words: str, tmp_path: Path, make_spec: MakeSpec
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'source = "x"\nclass_data_archives = {written}\n')
    with pytest.raises(SpecError) as caught:
        build_profile(str(path), make_spec())
    assert caught.value.message.startswith(f"{path}:2: ")
    assert words in caught.value.message


def test_everything_wrong_in_ones_own_profile_is_named_with_its_line(
    tmp_path: Path, make_spec: MakeSpec
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'source = "x"\n["hdfs-sites"]\n"a" = 1\n["hdfs-site"]\n"dfs.block.size" = 1\n'
        '"spark.executor.cores" = 1\n"dfs.namenode.name.dir" = "/x"\n'
    )
    with pytest.raises(SpecError) as caught:
        build_profile(str(path), make_spec())
    lines = caught.value.message.splitlines()
    assert [line.removeprefix(f"{path}:").partition(":")[0] for line in lines] == list("2567")
    for line, words in zip(
        lines, ("hdfs-site", "dfs.blocksize", "spark-defaults", "keep their files"), strict=True
    ):
        assert words in line
    with pytest.raises(SpecError, match=r"gone\.toml"):
        build_profile(str(tmp_path / "gone.toml"), make_spec())


def test_contradictions_of_ones_own_profile_are_found(tmp_path: Path, make_spec: MakeSpec) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('["mapred-site"]\n"mapreduce.map.memory.mb" = 16384\n')
    with pytest.raises(CapacityError, match="map container needs 16384 MB"):
        build_profile(str(path), make_spec(memory_mib=8192))


def test_a_property_of_a_factor_is_no_setting_whatever_its_smallest_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def properties(size: int) -> dict[str, dict[str, str]]:
        return {"hdfs-site": {"dfs.blocksize": str(size)}} if size >= 1 << 20 else {}

    row = replace(FACTORS_BY_NAME["replication"], key="block", least=1 << 20, properties=properties)
    monkeypatch.setattr("boardcluster.services.settings.FACTORS", (row,))
    with pytest.raises(ValueError, match=r"has a key of its own; allowed: `block` in a \[\[matrix"):
        check_setting("dfs.blocksize", "32 MiB")
