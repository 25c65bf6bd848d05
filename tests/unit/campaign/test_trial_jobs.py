"""From a trial to its jobs: parameters, replicas, sizes, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_trial
from tests.unit.campaign.fake_workload import PARAMETER, FakeWorkload

from boardcluster.campaign.trial_jobs import jobs_of, settings_of, variant_of
from boardcluster.errors import CapacityError, UsageError
from boardcluster.factors import FACTORS, FACTORS_BY_NAME
from boardcluster.records import (
    Checksum,
    ClusterSpec,
    Engine,
    MasterPlacement,
    PlannedFault,
    Role,
    Trial,
    Variant,
)
from boardcluster.services.profile import Profile, build_profile
from boardcluster.spec.variant import ClusterVariant
from boardcluster.workloads.base import BOTH_VARIANTS, InputKind, JobSpec

Workloads = dict[str, FakeWorkload]


@pytest.fixture
def workloads(monkeypatch: pytest.MonkeyPatch) -> Workloads:
    found = {
        "grep": FakeWorkload(
            name="grep", input_kind=InputKind.TEXT, parameters={"pattern": PARAMETER}
        ),
        "sort": FakeWorkload(name="sort", parameters={"files": PARAMETER, "pattern": PARAMETER}),
        "pi": FakeWorkload(name="pi", input_kind=InputKind.NOTHING),
        "hpl": FakeWorkload(name="hpl", input_kind=InputKind.MATRIX, engines=(Engine.MPI,)),
    }
    monkeypatch.setattr("boardcluster.campaign.trial_jobs.load_workload", found.__getitem__)
    return found


@pytest.fixture
def cluster(make_spec: Callable[..., ClusterSpec]) -> tuple[ClusterSpec, Profile]:
    spec = make_spec()
    return spec, build_profile("default", spec)


def trial_of(workload: str, **fields: Any) -> Trial:
    return make_trial(workload, **{"engine": Engine.MAPREDUCE, **fields})


def test_a_trial_of_one_workload_is_one_job_of_its_name(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    (job,) = jobs_of(trial_of("grep", checksum=Checksum.NULL), *cluster)

    assert (job.label, job.workload) == ("grep", workloads["grep"])
    assert job.spec == JobSpec(
        engine=Engine.MAPREDUCE,
        size_bytes=1000,
        replication=2,
        checksum=Checksum.NULL,
        parameters={"pattern": "4"},
        workers=4,
        least_memory_bytes=2 << 30,
        smallest_memory_bytes=2 << 30,
        worker_cores=4,
        block_bytes=16 << 20,
    )
    assert workloads["grep"].checked == [job.spec]


def test_jobs_of_a_mix_are_numbered_in_its_order(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    jobs = jobs_of(trial_of("sort+grep+sort"), *cluster)

    assert [job.label for job in jobs] == ["1-sort", "2-grep", "3-sort"]
    assert [job.workload.name for job in jobs] == ["sort", "grep", "sort"]


def test_spark_jobs_at_once_on_one_worker_leave_each_other_room(
    make_spec: Callable[..., ClusterSpec],
    workloads: Workloads,
) -> None:
    spec = make_spec(workers=1)
    profile = build_profile("default", spec)
    for concurrency, fewer in ((1, False), (2, True)):
        mix = trial_of("sort+grep", engine=Engine.SPARK, concurrency=concurrency)
        for job in jobs_of(mix, spec, profile):
            assert job.sizing is not None
            assert ("spark.executor.memory" in job.sizing.properties["spark-defaults"]) is fewer


def test_each_job_gets_its_own_parameters_and_defaults(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    given = {"sort.files": "9", "grep.pattern": "7"}

    grep, sort = jobs_of(trial_of("grep+sort", parameters=given), *cluster)

    assert grep.spec.parameters == {"pattern": "7"}
    assert sort.spec.parameters == {"files": "9", "pattern": "4"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"grep.colour": "7"}, "grep has no parameter 'colour'"),
        ({"grep.pattern": "x"}, r"grep\.pattern = 'x'; allowed: a whole number"),
    ],
)
def test_parameters_that_are_none_are_refused(
    parameters: dict[str, str],
    words: str,
    workloads: Workloads,
    cluster: tuple[ClusterSpec, Profile],
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        jobs_of(trial_of("grep", parameters=parameters), *cluster)

    assert caught.value.hint


def test_a_workload_without_input_has_size_0(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    pi, grep = jobs_of(trial_of("pi+grep"), *cluster)

    assert (pi.spec.size_bytes, grep.spec.size_bytes) == (0, 1000)


def test_replicas_are_the_trials_or_the_profiles(
    workloads: Workloads, make_spec: Callable[..., ClusterSpec]
) -> None:
    spec = make_spec(memory_mib=16384)
    profile = build_profile("default", spec)
    hdfs = {**profile.properties["hdfs-site"], "dfs.replication": "1"}
    single = replace(profile, properties={**profile.properties, "hdfs-site": hdfs})
    silent = replace(profile, properties={**profile.properties, "hdfs-site": {}})

    def copies(profile: Profile, **fields: Any) -> int:
        (job,) = jobs_of(trial_of("grep", **fields), spec, profile)
        return job.spec.replication

    assert copies(single) == 1
    assert copies(single, replication=3) == 3
    assert copies(silent) == 3  # HDFS's own number


def test_a_case_is_told_of_the_smallest_worker(
    workloads: Workloads, make_spec: Callable[..., ClusterSpec]
) -> None:
    spec = make_spec()
    nodes = list(spec.nodes)
    nodes[2] = replace(nodes[2], memory_bytes=1 << 30)
    nodes[3] = replace(nodes[3], cores=1)
    small = replace(spec, nodes=tuple(nodes))

    (job,) = jobs_of(trial_of("grep"), small, build_profile("default", spec))

    assert (job.spec.least_memory_bytes, job.spec.worker_cores) == (1 << 30, 1)
    nodes[0] = replace(nodes[0], memory_bytes=1 << 29)
    (job,) = jobs_of(
        trial_of("grep"), replace(spec, nodes=tuple(nodes)), build_profile("default", spec)
    )
    assert job.spec.least_memory_bytes == 1 << 29, "the master's"


def test_the_smallest_worker_is_the_one_with_the_least_beside_its_daemons(
    workloads: Workloads, make_spec: Callable[..., ClusterSpec]
) -> None:
    spec = make_spec(workers=2, memory_mib=4096, combined=True)
    profile = build_profile("default", spec)

    (both,) = jobs_of(trial_of("grep"), spec, profile)
    nodes = (replace(spec.nodes[0], memory_bytes=16 << 30), spec.nodes[1])
    (alone,) = jobs_of(trial_of("grep"), replace(spec, nodes=nodes), profile)

    assert both.spec.smallest_roles == {Role.MASTER, Role.WORKER}
    assert alone.spec.smallest_roles == {Role.WORKER}
    assert alone.spec.smallest_memory_bytes == 4 << 30


def test_the_memory_of_the_smallest_worker_is_its_own(
    workloads: Workloads, make_spec: Callable[..., ClusterSpec]
) -> None:
    """The master of 4 GiB has 2208 MiB beside its daemons, the worker of 3 GiB has 2560."""
    spec = make_spec(workers=2, memory_mib=3072, master_memory_mib=4096, combined=True)

    (job,) = jobs_of(trial_of("grep"), spec, build_profile("default", spec))

    assert job.spec.smallest_roles == {Role.MASTER, Role.WORKER}
    assert (job.spec.smallest_memory_bytes, job.spec.least_memory_bytes) == (4 << 30, 3 << 30)


@pytest.mark.parametrize(
    ("profile", "settings", "maps"),
    [
        ("default", {}, 10),  # at least one for each core: 10 make three blocks each
        ("default", {"mapreduce.job.maps": "5"}, 5),
        ("upstream", {}, 0),
        ("upstream", {"mapreduce.job.maps": "5"}, 5),
        ("paper-2021", {}, 48),
    ],
)
def test_rows_are_generated_by_as_many_maps_whichever_engine_reads_them(
    profile: str,
    settings: dict[str, str],
    maps: int,
    workloads: Workloads,
    make_spec: Callable[..., ClusterSpec],
) -> None:
    plain = make_spec(workers=2, memory_mib=8192, engines="hadoop-3.4.2-spark-4.1.4")
    spec = replace(plain, kind="boards", settings=settings)
    built = build_profile(profile, spec)
    for engine in (Engine.MAPREDUCE, Engine.SPARK):
        trial = trial_of("sort+grep", engine=engine, size_bytes=4 * 10**9)
        rows, text = jobs_of(trial, spec, built)
        assert (rows.spec.input_maps, text.spec.input_maps) == (maps, 0)


def test_an_engine_that_a_job_does_not_run_on_is_refused(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    with pytest.raises(UsageError, match="hpl does not run on mapreduce") as caught:
        jobs_of(trial_of("grep+hpl"), *cluster)

    assert caught.value.hint == "its engines: mpi"


def test_spark_that_does_not_fit_is_refused_with_the_arithmetic(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    spec, profile = cluster
    tight = replace(profile, spark_refusal="an executor takes 1 GB, a node has 0.5 GB")

    jobs_of(trial_of("grep"), spec, tight)  # MapReduce does
    with pytest.raises(UsageError, match=r"Spark does not fit .*an executor takes 1 GB") as caught:
        jobs_of(trial_of("grep", engine=Engine.SPARK), spec, tight)

    assert "MapReduce" in caught.value.hint


def test_a_case_that_the_workload_refuses_is_refused(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    workloads["sort"].refuses = CapacityError("the matrix takes 9 GB")

    with pytest.raises(CapacityError, match="the matrix takes 9 GB"):
        jobs_of(trial_of("grep+sort"), *cluster)


def test_the_form_of_a_trial() -> None:
    trial = trial_of("grep", workers=2, profile="upstream", master=MasterPlacement.COMBINED)

    assert variant_of(trial) == ClusterVariant(
        profile="upstream", workers=2, master=MasterPlacement.COMBINED
    )


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({}, {}),
        ({"replication": 3}, {"hdfs-site": {"dfs.replication": "3"}}),
        ({"checksum": Checksum.NULL}, {"hdfs-site": {"dfs.checksum.type": "NULL"}}),
        (
            {"replication": 1, "checksum": Checksum.NULL},
            {"hdfs-site": {"dfs.replication": "1", "dfs.checksum.type": "NULL"}},
        ),
    ],
)
def test_settings_are_only_what_the_trial_says(
    fields: dict[str, Any], settings: dict[str, dict[str, str]]
) -> None:
    assert settings_of(trial_of("grep", **fields)) == settings


def test_a_variant_that_a_workload_lacks_is_refused(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    trial = trial_of("grep+sort", variant=Variant.TEXTBOOK)
    with pytest.raises(UsageError, match='grep has no program of the variant "textbook"') as caught:
        jobs_of(trial, *cluster)
    assert '"fast"' in caught.value.hint
    for workload in workloads.values():
        workload.variants = BOTH_VARIANTS

    assert {job.spec.variant for job in jobs_of(trial, *cluster)} == {Variant.TEXTBOOK}


def test_mpi_jobs_of_a_mix_do_not_run_at_once(
    workloads: Workloads, cluster: tuple[ClusterSpec, Profile]
) -> None:
    """They would share the nodes' memory and NetPIPE's port."""
    workloads["grep"].engines = (Engine.MPI,)
    mix = trial_of("grep+grep", engine=Engine.MPI)

    with pytest.raises(UsageError, match="cannot run at once") as caught:
        jobs_of(replace(mix, concurrency=2), *cluster)

    assert "concurrency = 1" in caught.value.hint
    assert len(jobs_of(mix, *cluster)) == 2


def test_a_fault_is_for_one_job(workloads: Workloads, cluster: tuple[ClusterSpec, Profile]) -> None:
    with pytest.raises(UsageError, match=r"sort\+grep: a fault needs a run of one job"):
        jobs_of(trial_of("sort+grep", fault=PlannedFault.KILL), *cluster)
    assert not workloads["sort"].checked


def test_settings_of_jobs_are_set_per_submission_and_those_of_daemons_in_the_form(
    workloads: Workloads, make_spec: Callable[..., ClusterSpec]
) -> None:
    spec = make_spec(engines="hadoop-3.4.2-spark-4.1.4")
    profile = build_profile("default", spec)
    settings = {
        "dfs.blocksize": "1048576",
        "spark.executor.cores": "1",
        "dfs.datanode.handler.count": "7",
    }
    trial = trial_of("sort", settings=settings, replication=1)
    assert settings_of(trial) == {
        "hdfs-site": {"dfs.blocksize": "1048576", "dfs.replication": "1"},
        "spark-defaults": {"spark.executor.cores": "1"},
    }
    assert variant_of(trial).settings == (("dfs.datanode.handler.count", "7"),)
    (job,) = jobs_of(trial, spec, profile)
    assert job.spec.block_bytes == 1 << 20
    much = trial_of("sort", settings={"mapreduce.map.memory.mb": "9000"})
    with pytest.raises(CapacityError, match="map container"):
        jobs_of(much, spec, profile)


@pytest.mark.usefixtures("workloads")
def test_what_a_job_knows_of_properties_obeys_every_factor(
    cluster: tuple[ClusterSpec, Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A factor that sets blocks needs no line of its own."""
    row = replace(
        FACTORS_BY_NAME["workers"],
        properties=lambda number: {"hdfs-site": {"dfs.blocksize": str(number << 20)}},
    )
    monkeypatch.setattr("boardcluster.campaign.trial_jobs.FACTORS", (*FACTORS, row))
    trial = trial_of("grep", workers=2, replication=1)
    (job,) = jobs_of(trial, *cluster)
    assert (job.spec.block_bytes, job.spec.replication) == (2 << 20, 1)
    assert settings_of(trial)["hdfs-site"] == {"dfs.blocksize": "2097152", "dfs.replication": "1"}
