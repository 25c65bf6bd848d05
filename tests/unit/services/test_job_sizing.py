"""What one job gets by the profile ``default``, against numbers worked out by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec, Engine, TwinSpec
from boardcluster.services.job_sizing import (
    SIZED,
    JobSizing,
    input_maps,
    real_cores,
    size_job,
)
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile, with_settings

MB, GB, MIB = 10**6, 10**9, 1 << 20
MakeSpec = Callable[..., ClusterSpec]


@pytest.fixture
def boards(make_spec: MakeSpec) -> ClusterSpec:
    """Four boards of 4 GiB with four cores each; 2784 MiB are an executor's heap."""
    spec = make_spec(workers=4, memory_mib=4096, cores=4, engines=pair_ids()[0])
    return replace(spec, kind="boards")


@pytest.fixture
def emulated(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """The same as emulated nodes of a machine with two cores."""
    monkeypatch.setattr("boardcluster.services.job_sizing.available_cores", lambda: 2)
    return make_spec(workers=4, memory_mib=4096, cores=4)


def test_nodes_that_share_this_machine_have_its_cores_between_them(
    emulated: ClusterSpec, boards: ClusterSpec
) -> None:
    assert real_cores(emulated) == 2
    assert real_cores(replace(emulated, twin=TwinSpec())) == 16
    assert real_cores(boards) == 16


# Input: block in MiB, maps, reduces
MAPREDUCE_ON_BOARDS = {
    8 * MB: (16, 1, 1),
    256 * MB: (16, 16, 4),  # 256 MB / 16 = 15.3 MiB
    1 * GB: (64, 15, 4),  # 59.6 MiB
    4 * GB: (128, 30, 4),
}
MAPREDUCE_EMULATED = {
    8 * MB: (16, 1, 1),
    64 * MB: (32, 2, 2),  # 30.5 MiB
    256 * MB: (128, 2, 2),
    4 * GB: (128, 30, 2),
}


def test_boards_share_an_input_among_all_their_cores(boards: ClusterSpec) -> None:
    assert _mapreduce(boards, MAPREDUCE_ON_BOARDS) == MAPREDUCE_ON_BOARDS


def test_emulated_nodes_start_no_more_tasks_than_this_machine_has_cores(
    emulated: ClusterSpec,
) -> None:
    assert _mapreduce(emulated, MAPREDUCE_EMULATED) == MAPREDUCE_EMULATED


# Size of the output: maps
MAPS_THAT_MAKE_DATA = {64 * MB: 2, 256 * MB: 2, 1 * GB: 2, 2 * GB: 2, 4 * GB: 4}


@pytest.mark.parametrize(("size_bytes", "maps"), MAPS_THAT_MAKE_DATA.items())
def test_a_job_that_only_makes_data_starts_a_map_for_each_core(
    emulated: ClusterSpec, size_bytes: int, maps: int
) -> None:
    profile = build_profile("default", emulated)
    job = size_job(emulated, profile, Engine.MAPREDUCE, size_bytes=size_bytes, reads_input=False)
    assert job is not None
    assert job.properties["mapred-site"]["mapreduce.job.maps"] == str(maps)
    assert job.brief == (size_bytes / maps < 1 * GB)


# Size of the input: maps on 2 cores and 4 workers, on 16 cores and 4 workers
MAPS_THAT_MAKE_INPUT = {
    0: (0, 0),
    8 * MB: (1, 1),
    256 * MB: (2, 16),
    1 * GB: (4, 15),
    4 * GB: (5, 30),  # 5 files of 6 blocks, 30 of one
    17 * GB: (4, 16),  # 16 files of 8 blocks, the last of them short
}


@pytest.mark.parametrize(("size_bytes", "maps"), MAPS_THAT_MAKE_INPUT.items())
def test_an_input_is_generated_on_all_workers_and_in_whole_blocks(
    emulated: ClusterSpec, boards: ClusterSpec, size_bytes: int, maps: tuple[int, int]
) -> None:
    found = [
        input_maps(spec, build_profile("default", spec), size_bytes=size_bytes)
        for spec in (emulated, boards)
    ]
    assert tuple(found) == maps


def test_how_many_maps_generate_an_input_is_left_to_what_sets_it(boards: ClusterSpec) -> None:
    def maps(profile: str, **settings: str) -> int:
        built = with_settings(build_profile(profile, boards), settings, boards)
        return input_maps(boards, built, size_bytes=4 * GB)

    chosen = {"mapreduce.job.maps": "7"}
    assert (maps("default", **chosen), maps("upstream", **chosen)) == (7, 7)
    assert (maps("paper-2021"), maps("upstream")) == (48, 0)


def _mapreduce(
    spec: ClusterSpec, table: dict[int, tuple[int, int, int]]
) -> dict[int, tuple[int, int, int]]:
    found = {}
    for size_bytes in table:
        job = size_job(
            spec, build_profile("default", spec), Engine.MAPREDUCE, size_bytes=size_bytes
        )
        assert job is not None
        tasks = job.properties["mapred-site"]
        found[size_bytes] = (
            int(job.properties["hdfs-site"]["dfs.blocksize"]) // MIB,
            int(tasks["mapreduce.job.maps"]),
            int(tasks["mapreduce.job.reduces"]),
        )
    return found


# Input: executors, cores of each
SPARK_ON_BOARDS = {8 * MB: (1, 4), 256 * MB: (4, 4), 4 * GB: (4, 4)}
SPARK_EMULATED = {
    8 * MB: (1, 2),
    256 * MB: (2, 1),
    2 * GB - 2: (2, 1),
    2 * GB: (2, 2),  # tasks wait for HDFS, which pays where they work for long
    4 * GB: (2, 2),
    8 * GB: (3, 2),  # 7629 MiB / 2784 MiB of heap
    64 * GB: (4, 1),
}


def test_executors_are_as_many_as_cores_and_heaps_ask_for(
    boards: ClusterSpec, emulated: ClusterSpec
) -> None:
    assert _spark(boards, SPARK_ON_BOARDS) == SPARK_ON_BOARDS
    assert _spark(emulated, SPARK_EMULATED) == SPARK_EMULATED


def _spark(spec: ClusterSpec, table: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    found = {}
    for size_bytes in table:
        job = size_job(spec, build_profile("default", spec), Engine.SPARK, size_bytes=size_bytes)
        assert job is not None
        rows = job.properties["spark-defaults"]
        found[size_bytes] = (
            int(rows["spark.executor.instances"]),
            int(rows["spark.executor.cores"]),
        )
    return found


@pytest.mark.parametrize(
    ("size_bytes", "shared", "plain"),
    [(GB, True, False), (4 * GB, True, True), (4 * GB, False, False), (0, True, False)],
)
def test_shuffles_between_nodes_of_one_machine_are_not_compressed_in_long_jobs(
    boards: ClusterSpec, emulated: ClusterSpec, size_bytes: int, *, shared: bool, plain: bool
) -> None:
    spec = emulated if shared else boards
    profile = build_profile("default", spec)
    job = size_job(spec, profile, Engine.SPARK, size_bytes=size_bytes)
    assert job is not None
    found = job.properties["spark-defaults"].get("spark.shuffle.compress", "")
    assert found == ("false" if plain else "")


def test_all_that_it_sets_is_named(emulated: ClusterSpec) -> None:
    profile = build_profile("default", emulated)
    jobs = [
        size_job(emulated, profile, engine, size_bytes=4 * GB)
        for engine in (Engine.SPARK, Engine.MAPREDUCE)
    ]
    rows = [row for job in jobs if job for row in job.properties.values()]
    assert sorted({key for row in rows for key in row}) == list(SIZED)


def test_what_was_set_stays_as_it_is(boards: ClusterSpec) -> None:
    chosen = {"dfs.blocksize": str(32 * MIB), "spark.executor.instances": "3"}
    profile = with_settings(build_profile("default", boards), chosen, boards)

    job = size_job(boards, profile, Engine.SPARK, size_bytes=256 * MB)

    assert job is not None
    assert job.properties == {"hdfs-site": {}, "spark-defaults": {"spark.executor.cores": "4"}}


def test_the_rest_goes_by_what_was_set(boards: ClusterSpec, emulated: ClusterSpec) -> None:
    def sized(spec: ClusterSpec, engine: Engine, **chosen: str) -> JobSizing:
        settings = {key.replace("_", "."): value for key, value in chosen.items()}
        profile = with_settings(build_profile("default", spec), settings, spec)
        job = size_job(spec, profile, engine, size_bytes=3_600 * MB)
        assert job is not None
        return job

    alone = replace(emulated, engines=pair_ids()[0])
    one = sized(alone, Engine.SPARK, spark_executor_instances="1")
    assert one.properties["spark-defaults"] == {
        "spark.executor.cores": "4",
        "spark.shuffle.compress": "false",
    }
    assert sized(boards, Engine.SPARK).brief
    assert not sized(boards, Engine.SPARK, spark_executor_instances="1").brief
    assert not sized(boards, Engine.MAPREDUCE, mapreduce_job_reduces="1").brief
    small = sized(boards, Engine.MAPREDUCE, dfs_blocksize=str(32 * MIB))
    assert small.properties["mapred-site"]["mapreduce.job.maps"] == "108"


@pytest.mark.parametrize(
    "lowered",
    ["yarn.scheduler.maximum-allocation-vcores", "yarn.nodemanager.resource.cpu-vcores"],
)
def test_an_executor_asks_for_no_more_cores_than_yarn_was_set_to_grant(
    lowered: str, boards: ClusterSpec
) -> None:
    profile = with_settings(build_profile("default", boards), {lowered: "2"}, boards)
    job = size_job(boards, profile, Engine.SPARK, size_bytes=256 * MB)
    assert job is not None
    assert job.properties["spark-defaults"]["spark.executor.cores"] == "2"


def test_the_compiler_goes_by_the_maps_that_were_set(boards: ClusterSpec) -> None:
    profile = with_settings(build_profile("default", boards), {"mapreduce.job.maps": "1"}, boards)
    job = size_job(boards, profile, Engine.MAPREDUCE, size_bytes=3 * GB, reads_input=False)
    assert job is not None
    assert not job.brief


def test_a_heap_that_was_set_counts_in_its_own_unit(emulated: ClusterSpec) -> None:
    spec = replace(emulated, engines=pair_ids()[0])
    profile = with_settings(build_profile("default", spec), {"spark.executor.memory": "1g"}, spec)
    job = size_job(spec, profile, Engine.SPARK, size_bytes=3 * GB)
    assert job is not None
    assert job.properties["spark-defaults"]["spark.executor.instances"] == "3"


def test_the_first_compiler_alone_is_for_little_work(boards: ClusterSpec) -> None:
    profile = build_profile("default", boards)

    def brief(size_bytes: int) -> bool:
        job = size_job(boards, profile, Engine.SPARK, size_bytes=size_bytes)
        return job is not None and job.brief

    assert brief(3 * GB)
    assert not brief(4 * GB)


def test_a_job_without_a_size_gets_an_executor_per_core_and_both_compilers(
    emulated: ClusterSpec,
) -> None:
    profile = build_profile("default", emulated)
    job = size_job(emulated, profile, Engine.SPARK, size_bytes=0)
    assert job is not None
    assert not job.brief
    assert job.properties == {
        "spark-defaults": {"spark.executor.instances": "2", "spark.executor.cores": "1"}
    }


def test_other_profiles_and_mpi_are_left_alone(boards: ClusterSpec) -> None:
    default, upstream = build_profile("default", boards), build_profile("upstream", boards)
    assert size_job(boards, upstream, Engine.SPARK, size_bytes=256 * MB) is None
    assert size_job(boards, default, Engine.MPI, size_bytes=256 * MB) is None


def heap_mib(spec: ClusterSpec, at_once: int, **settings: str) -> int | None:
    profile = with_settings(build_profile("default", spec), settings, spec)
    job = size_job(spec, profile, Engine.SPARK, size_bytes=64 * MB, at_once=at_once)
    assert job is not None
    text = job.properties["spark-defaults"].get("spark.executor.memory")
    return int(text.removesuffix("m")) if text else None


@pytest.mark.parametrize(
    ("workers", "at_once", "masters"), [(1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 3, 1)]
)
def test_spark_jobs_at_once_leave_room_for_each_others_application_masters(
    make_spec: MakeSpec, workers: int, at_once: int, masters: int
) -> None:
    # 4096 - 327 - 256 = 3488 MiB of a worker in steps of 32; 320 MiB of overhead
    spec = make_spec(workers=workers, memory_mib=4096, cores=4, engines=pair_ids()[0])
    left = 3488 - 384 * masters - 320
    assert heap_mib(spec, at_once) == (None if masters == 1 else left)
    assert heap_mib(spec, at_once, **{"spark.executor.memory": "1g"}) is None, "the user's own"


def test_no_more_application_masters_are_counted_than_yarn_starts(make_spec: MakeSpec) -> None:
    spec = make_spec(workers=1, memory_mib=4096, cores=4, engines=pair_ids()[0])
    assert heap_mib(spec, 16) == heap_mib(spec, 4) == 3488 - 384 * 4 - 320


def test_the_limit_of_application_masters_is_rounded_up_as_yarn_does(make_spec: MakeSpec) -> None:
    # 2720 - 218 - 256 = 2240 MiB of a worker; half of it, 1120, is 1120 in steps of 32: 2 masters
    few = make_spec(workers=1, memory_mib=2720, cores=4, engines=pair_ids()[0])
    # 2752 - 221 - 256 = 2272 MiB; half of it, 1136, becomes 1152: 3 masters of 384
    more = make_spec(workers=1, memory_mib=2752, cores=4, engines=pair_ids()[0])
    heaps = heap_mib(few, 3), heap_mib(more, 3)
    assert heaps[0] is not None
    assert heaps[1] is not None
    assert heaps[0] - heaps[1] == 384 - 32


def test_jobs_at_once_that_leave_no_room_for_an_executor_are_refused(make_spec: MakeSpec) -> None:
    spec = make_spec(workers=1, memory_mib=2048, cores=4, engines=pair_ids()[0])
    assert heap_mib(spec, 4) is not None, "YARN starts two of their masters"
    all_masters = {"yarn.scheduler.capacity.maximum-am-resource-percent": "1.0"}
    with pytest.raises(CapacityError, match=r"4 Spark jobs at once: .* executor needs 450 MiB"):
        heap_mib(spec, 4, **all_masters)
