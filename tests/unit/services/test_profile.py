"""Profiles: the papers' values as printed, contradictions found before a job hangs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import ClusterSpec, Engine
from boardcluster.services import profile as module
from boardcluster.services.profile import FILES, build_profile, profile_names
from boardcluster.services.sizing import size_cluster

MakeSpec = Callable[..., ClusterSpec]

# Lee and Park 2026, Tables 9 and 10.
PAPER_2026 = {
    "yarn.app.mapreduce.am.resource.mb": "1536",
    "yarn.app.mapreduce.am.resource.cpu-vcores": "1",
    "mapreduce.map.memory.mb": "1024",
    "mapreduce.reduce.memory.mb": "1024",
    "mapreduce.map.cpu.vcores": "1",
    "mapreduce.reduce.cpu.vcores": "1",
    "mapreduce.job.reduces": "2",
    "dfs.replication": "1",
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-mb": "4096",
    "yarn.scheduler.minimum-allocation-vcores": "1",
    "yarn.scheduler.maximum-allocation-vcores": "32",
    "yarn.nodemanager.vmem-pmem-ratio": "2.1",
    "spark.executor.instances": "8",  # "1, 2, 4 or 8": the number of nodes
    "spark.executor.cores": "2",
}
# Lee, Oh and Park 2021, Table 11.
PAPER_2021 = {
    "yarn.app.mapreduce.am.resource.mb": "3072",
    "mapreduce.map.cpu.vcores": "1",
    "mapreduce.reduce.cpu.vcores": "1",
    "mapreduce.map.memory.mb": "2048",
    "mapreduce.reduce.memory.mb": "4096",
    "mapreduce.input.fileinputformat.split.minsize": str(4 * 1024 * 1024),  # "4MB"
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "1024",
    "yarn.scheduler.maximum-allocation-mb": "4096",
    "yarn.scheduler.minimum-allocation-vcores": "1",
    "yarn.scheduler.maximum-allocation-vcores": "4",
    "yarn.nodemanager.vmem-pmem-ratio": "2.1",
    "dfs.replication": "3",
}


def merged(properties: dict[str, dict[str, str]]) -> dict[str, str]:
    everything: dict[str, str] = {}
    for file in properties.values():
        assert not everything.keys() & file.keys()
        everything |= file
    return everything


def test_names_default_first() -> None:
    assert profile_names() == ("default", "upstream", "paper-2026", "paper-2021")


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_can_be_built_and_says_where_it_is_from(
    name: str, make_spec: MakeSpec
) -> None:
    profile = build_profile(name, make_spec(memory_mib=8192))

    assert profile.name == name
    assert profile.source
    assert tuple(profile.properties) == FILES
    assert profile.small_daemons == (name == "default")


def test_unknown_profile_names_the_known_ones(make_spec: MakeSpec) -> None:
    with pytest.raises(UsageError, match="fastest") as caught:
        build_profile("fastest", make_spec())

    assert caught.value.hint == (
        "choose: default, upstream, paper-2026, paper-2021, or the path of a .toml file of your own"
    )


@pytest.mark.parametrize(
    ("name", "table", "year"),
    [("paper-2026", PAPER_2026, "2026"), ("paper-2021", PAPER_2021, "2021")],
)
def test_papers_profiles_equal_the_papers_tables(
    name: str, table: dict[str, str], year: str, make_spec: MakeSpec
) -> None:
    profile = build_profile(name, make_spec(workers=8, memory_mib=8192))

    inferred = {row.key for row in profile.inferred}
    every = merged(profile.properties)
    assert {key: value for key, value in every.items() if key not in inferred} == table
    assert not inferred & set(table)
    for row in profile.inferred:
        assert row.because
        assert row.workload or every[row.key] == row.value
    assert year in profile.source
    assert "Table" in profile.source
    assert profile.per_node == {}


def test_spark_executors_of_the_2026_paper_follow_the_number_of_nodes(make_spec: MakeSpec) -> None:
    for workers in (1, 2, 4, 8):
        spark = build_profile("paper-2026", make_spec(workers=workers)).properties["spark-defaults"]
        assert spark["spark.executor.instances"] == str(workers)


def test_properties_stand_in_the_file_that_reads_them(make_spec: MakeSpec) -> None:
    starts = {
        "hdfs-site": ("dfs.",),
        "yarn-site": ("yarn.nodemanager.", "yarn.scheduler.", "yarn.resourcemanager."),
        "mapred-site": ("mapreduce.", "yarn.app.mapreduce."),
        "spark-defaults": ("spark.",),
    }
    for name in profile_names():
        properties = build_profile(name, make_spec()).properties
        assert not properties["core-site"]
        for file, allowed in starts.items():
            assert all(key.startswith(allowed) for key in properties[file]), (name, file)


def test_upstream_sets_nothing(make_spec: MakeSpec) -> None:
    assert merged(build_profile("upstream", make_spec()).properties) == {}


def test_2021_paper_on_one_worker_is_refused_with_the_arithmetic(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError) as caught:
        build_profile("paper-2021", make_spec(workers=1, memory_mib=4096))

    assert "application master 3072 MB + map 2048 MB > 4096 MB of a node" in caught.value.message
    assert "hang" in caught.value.message
    assert "add a worker" in caught.value.hint


def test_what_the_2021_paper_must_have_done_is_said_and_smaller_sizes_are_taken(
    make_spec: MakeSpec, tmp_path: Path
) -> None:
    spec = replace(make_spec(workers=1, memory_mib=4096), engines="hadoop-3.4.2-spark-4.1.4")
    with pytest.raises(CapacityError, match="cannot have had these sizes") as caught:
        build_profile("paper-2021", spec)
    assert "mapreduce.map.memory.mb" in caught.value.hint

    smaller = {
        "yarn.app.mapreduce.am.resource.mb": "1024",
        "mapreduce.map.memory.mb": "3072",
        "mapreduce.reduce.memory.mb": "3072",
    }
    by_settings = build_profile("paper-2021", replace(spec, settings=smaller))
    own = tmp_path / "smaller.toml"
    rows = "\n".join(f'"{key}" = {value}' for key, value in smaller.items())
    own.write_text(f'base = "paper-2021"\n["mapred-site"]\n{rows}\n')
    by_file = build_profile(str(own), spec)

    for profile in (by_settings, by_file):
        assert profile.properties["mapred-site"]["mapreduce.map.memory.mb"] == "3072"
        assert profile.properties["hdfs-site"]["dfs.replication"] == "3"


def test_what_is_inferred_for_one_workload_holds_for_its_mapreduce_jobs_alone(
    make_spec: MakeSpec,
) -> None:
    profile = build_profile("paper-2021", make_spec(workers=4, memory_mib=4096))
    key = "mapreduce.input.fileinputformat.split.maxsize"

    assert profile.of_jobs("wordcount", Engine.MAPREDUCE) == {"mapred-site": {key: "4194304"}}
    assert profile.of_jobs("wordcount", Engine.SPARK) == {}
    assert profile.of_jobs("terasort", Engine.MAPREDUCE) == {}
    assert key not in profile.properties["mapred-site"]


def test_2021_paper_on_four_workers_gets_remarks(make_spec: MakeSpec) -> None:
    remarks = build_profile("paper-2021", make_spec(workers=4, memory_mib=4096)).remarks

    assert [remark.split(": ") for remark in remarks] == [
        [
            "application master 3072 MB + map 2048 MB > 4096 MB of a node",
            "no map task can run at the same time as the application master",
        ],
        [
            "application master 3072 MB + reduce 4096 MB > 4096 MB of a node",
            "no reduce task can run at the same time as the application master",
        ],
    ]


def test_2026_paper_on_its_own_board_has_no_contradiction(make_spec: MakeSpec) -> None:
    assert build_profile("paper-2026", make_spec(workers=1, memory_mib=8192)).remarks == ()


def test_memory_that_is_promised_but_not_there_is_remarked_once(make_spec: MakeSpec) -> None:
    remarks = build_profile("paper-2026", make_spec(workers=4, memory_mib=2048)).remarks

    (remark,) = remarks
    assert "YARN promises 8192 MB on worker1, which has 2048 MiB" in remark


def test_upstream_is_checked_with_the_engines_own_defaults(make_spec: MakeSpec) -> None:
    remarks = build_profile("upstream", make_spec(workers=2, memory_mib=1024)).remarks

    assert any("promises 8192 MB" in remark for remark in remarks)
    assert "replication 3 with 2 workers: every block stays under-replicated" in remarks


MADE_UP = """
source = "made up"
["yarn-site"]
"yarn.nodemanager.resource.memory-mb" = "{node}"
"yarn.scheduler.minimum-allocation-mb" = "1024"
"yarn.scheduler.maximum-allocation-mb" = "8192"
["mapred-site"]
"yarn.app.mapreduce.am.resource.mb" = "1536"
"mapreduce.map.memory.mb" = "1024"
["hdfs-site"]
"dfs.replication" = "1"
"""


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ship one profile more, with nodes of so many MB."""

    def ship(node_mb: int) -> None:
        (tmp_path / "made-up.toml").write_text(MADE_UP.replace("{node}", str(node_mb)))
        monkeypatch.setattr(module, "_FOLDER", tmp_path)

    return ship


def test_containers_are_counted_as_yarn_rounds_them_up(
    made_up: Callable[[int], None], make_spec: MakeSpec
) -> None:
    # 1536 + 1024 = 2560 would fit, but YARN grants 2048 for the 1536.
    made_up(2560)
    with pytest.raises(CapacityError, match=r"master 2048 MB \+ map 1024 MB > 2560 MB"):
        build_profile("made-up", make_spec(workers=1, memory_mib=4096))

    made_up(3072)
    assert build_profile("made-up", make_spec(workers=1, memory_mib=4096)).remarks == ()


def test_a_container_larger_than_a_node_is_refused(
    made_up: Callable[[int], None], make_spec: MakeSpec
) -> None:
    made_up(1536)

    with pytest.raises(CapacityError) as caught:
        build_profile("made-up", make_spec(workers=4, memory_mib=4096))

    assert "application master container needs 2048 MB (1536 rounded" in caught.value.message
    assert "but a node has 1536 MB" in caught.value.message
    assert "another profile" in caught.value.hint


def test_default_follows_the_rule(make_spec: MakeSpec) -> None:
    spec = make_spec(workers=4, memory_mib=4096)
    sizing = size_cluster(spec)
    profile = build_profile("default", spec)
    mapred, spark = profile.properties["mapred-site"], profile.properties["spark-defaults"]

    assert mapred["mapreduce.map.memory.mb"] == str(sizing.task) == "672"
    assert mapred["mapreduce.reduce.memory.mb"] == "672"
    assert mapred["mapreduce.map.java.opts"].startswith("-Xmx537m ")
    assert mapred["yarn.app.mapreduce.am.resource.mb"] == "512"
    assert mapred["yarn.app.mapreduce.am.command-opts"].startswith("-Xmx409m ")
    assert mapred["mapreduce.task.io.sort.mb"] == "134"
    assert mapred["mapreduce.job.reduces"] == "4"
    assert spark["spark.executor.memory"] == "2784m"
    assert spark["spark.executor.memoryOverhead"] == "320m"
    assert spark["spark.executor.instances"] == "4"
    assert spark["spark.executor.cores"] == "4"
    assert profile.per_node["worker2"] == {
        "yarn.nodemanager.resource.memory-mb": "3488",
        "yarn.nodemanager.resource.cpu-vcores": "5",
    }
    assert "master" not in profile.per_node
    assert profile.remarks == ()


def test_default_never_asks_for_more_than_a_node_offers(make_spec: MakeSpec) -> None:
    for memory_mib in range(2048, 20_000, 777):
        profile = build_profile("default", make_spec(workers=1, memory_mib=memory_mib))
        offered = int(profile.per_node["worker1"]["yarn.nodemanager.resource.memory-mb"])
        yarn, spark = profile.properties["yarn-site"], profile.properties["spark-defaults"]
        amounts = {
            name: int(value.rstrip("m")) for name, value in spark.items() if value[-1] == "m"
        }

        assert int(yarn["yarn.scheduler.maximum-allocation-mb"]) == offered
        assert (
            amounts["spark.yarn.am.memory"]
            + amounts["spark.yarn.am.memoryOverhead"]
            + amounts["spark.executor.memory"]
            + amounts["spark.executor.memoryOverhead"]
            <= offered
        )


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("cores", [1, 4, 5, 8, 64])
def test_yarn_grants_the_cores_of_an_executor_of_default(
    cores: int, combined: bool, make_spec: MakeSpec
) -> None:
    """Its own largest allocation is 4: Spark would not run on a node with more cores."""
    spec = make_spec(workers=1, memory_mib=8192, cores=cores, combined=combined)
    profile = build_profile("default", spec)
    granted = int(profile.properties["yarn-site"]["yarn.scheduler.maximum-allocation-vcores"])
    [offered] = (
        int(row["yarn.nodemanager.resource.cpu-vcores"]) for row in profile.per_node.values()
    )

    asked = int(profile.properties["spark-defaults"]["spark.executor.cores"])
    assert asked == cores <= min(granted, offered)


@pytest.mark.parametrize(("workers", "replication", "never"), [(1, 1, 1), (3, 2, 1), (4, 2, 0)])
def test_default_replication_fits_the_number_of_workers(
    workers: int, replication: int, never: int, make_spec: MakeSpec
) -> None:
    hdfs = build_profile("default", make_spec(workers=workers)).properties["hdfs-site"]

    assert hdfs["dfs.replication"] == str(replication)
    policy = "dfs.client.block.write.replace-datanode-on-failure.policy"
    assert hdfs.get(policy) == ("NEVER" if never else None)


def test_default_gives_the_combined_master_one_core_less(make_spec: MakeSpec) -> None:
    profile = build_profile("default", make_spec(workers=2, memory_mib=4096, combined=True))
    vcores = {
        name: row["yarn.nodemanager.resource.cpu-vcores"] for name, row in profile.per_node.items()
    }

    assert vcores == {"master": "4", "worker1": "5"}


def test_default_says_where_spark_cannot_run(make_spec: MakeSpec) -> None:
    profile = build_profile("default", make_spec(memory_mib=1024, master_memory_mib=2048, cores=1))

    assert "450 MiB" in profile.spark_refusal
    assert profile.remarks == (profile.spark_refusal,)


def test_default_refuses_what_cannot_fit(make_spec: MakeSpec) -> None:
    with pytest.raises(CapacityError, match=r"worker1: .* 384 MiB"):
        build_profile("default", make_spec(memory_mib=512, master_memory_mib=2048))
    with pytest.raises(CapacityError, match=r"master: .* = 1472 MiB, but it has 1024 MiB"):
        build_profile("default", make_spec(memory_mib=2048, master_memory_mib=1024))
