"""One job: phases in order, what serves them, what they leave, and what is cleared away."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaign.fake_workload import PROOF, FakeWorkload, dataset_in
from tests.unit.campaign.world import PHASES, World, app, ended

from boardcluster.campaign.job import JobRun, RunPaths
from boardcluster.campaign.trial_jobs import TrialJob
from boardcluster.errors import (
    HostError,
    NotThereError,
    RemoteError,
    RemoteTimeoutError,
    RunError,
    StalledError,
)
from boardcluster.records import Checksum, Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.operation import LiveCluster
from boardcluster.workloads.base import Context, JobSpec, Need, Phase, PhaseOutcome

MARK = {"BOARDCLUSTER_ATTEMPT": "trial-1"}
SCRATCH = "/nodes/master/scratch/trial-1"
CONF = [("mkdir", "master", SCRATCH), ("put", "master", f"{SCRATCH}/conf")]
"""What happens when a job is made: the master gets the configuration to submit with."""


def case_on(engine: Engine) -> JobSpec:
    return JobSpec(
        engine=engine,
        size_bytes=1000,
        replication=2,
        checksum=Checksum.CRC32C,
        parameters={},
        workers=4,
        least_memory_bytes=2 << 30,
        smallest_memory_bytes=2 << 30,
        worker_cores=4,
    )


@dataclass
class Shop:
    """Where a job is made."""

    live: LiveCluster
    world: World
    folder: Path
    workload: FakeWorkload = field(default_factory=FakeWorkload)
    said: list[str] = field(default_factory=list)

    def job(
        self,
        *phases: Phase,
        engine: Engine = Engine.MAPREDUCE,
        label: str = "fake",
        in_mix: bool = False,
        timeout_seconds: float = 60.0,
        settings: dict[str, dict[str, str]] | None = None,
        text: bool = False,
    ) -> JobRun:
        if phases:
            self.workload.made = phases
        place = RunPaths(
            folder=self.folder,
            attempt="trial-1",
            cache=self.folder.parent / "cache",
            timeout_seconds=timeout_seconds,
            progress=lambda what, *_: self.said.append(what),
        )
        return JobRun(
            self.live,
            TrialJob(label=label, workload=self.workload, spec=case_on(engine)),
            place,
            dataset=dataset_in(self.folder) if text else None,
            settings=settings or {},
            in_mix=in_mix,
        )

    def node(self, name: str) -> FakeRemote:
        remote = self.live.remotes[name]
        assert isinstance(remote, FakeRemote)
        return remote


@pytest.fixture
def shop(live: LiveCluster, world: World, tmp_path: Path) -> Shop:
    return Shop(live, world, tmp_path / "attempt")


def phase(name: str, **fields: Any) -> Phase:
    return Phase(**{"name": name, "command": (name, "x"), "yarn": False, **fields})


def finish(job: JobRun) -> None:
    job.prepare()
    job.run()


def taking(*seconds: float) -> list[Callable[[], Completed]]:
    return [lambda took=took: ended(seconds=took) for took in seconds]  # type: ignore[misc]


def test_phases_run_in_order_each_in_its_own_folder(shop: Shop) -> None:
    shop.world.jobs = taking(1.5, 2.25)
    job = shop.job(phase("write"), phase("read back"))

    finish(job)

    rows = [(row["argv"], row["cwd"]) for row in shop.world.submissions]
    assert rows == [
        (["write", "x"], f"{SCRATCH}/write"),
        (["read back", "x"], f"{SCRATCH}/read-back"),
    ]
    assert job.duration_seconds == 3.75
    assert job.phases_seconds == {"write": 1.5, "read back": 2.25}
    for name in ("write", "read-back"):
        assert (shop.folder / name / "stdout.txt").read_text() == "printed\n"
    # The folder on the node is there before the program starts in it.
    assert shop.world.happened[:4] == [
        *CONF,
        ("mkdir", "master", f"{SCRATCH}/write"),
        ("submit", "master", "write", "x"),
    ]


def test_files_are_written_before_and_results_fetched_after(shop: Shop) -> None:
    results = "/nodes/worker2/scratch/trial-1/solve/HPL.out"

    def solve() -> Completed:
        shop.node("worker2").files[results] = b"WR11C2R4"
        return ended()

    shop.world.jobs = [solve]
    job = shop.job(
        phase("solve", node="worker2", files={"HPL.dat": "the input"}, results=("HPL.out",))
    )

    finish(job)
    job.prove()

    cwd = "/nodes/worker2/scratch/trial-1/solve"
    assert shop.world.happened == [
        *CONF,
        ("mkdir", "worker2", cwd),
        ("put", "worker2", f"{cwd}/HPL.dat"),
        ("submit", "worker2", "solve", "x"),
    ]
    assert shop.node("worker2").files[f"{cwd}/HPL.dat"] == b"the input"
    assert (shop.folder / "solve" / "HPL.dat").read_text() == "the input"
    ((outcome,),) = [tuple(row.values()) for row in shop.workload.outcomes]
    assert outcome.results == {"HPL.out": shop.folder / "solve" / "HPL.out"}
    assert outcome.results["HPL.out"].read_bytes() == b"WR11C2R4"


def test_a_missing_result_is_an_error(shop: Shop) -> None:
    shop.world.jobs = [ended]
    job = shop.job(phase("solve", results=("HPL.out",)))

    with pytest.raises(NotThereError, match=r"HPL\.out does not exist"):
        finish(job)


def test_the_proof_sees_what_each_phase_left(shop: Shop) -> None:
    shop.world.jobs = taking(1.0, 2.0)
    job = shop.job(phase("write"), phase("read", yarn=True))

    finish(job)
    proof = job.prove()

    assert proof.verification == PROOF
    (outcomes,) = shop.workload.outcomes
    assert list(outcomes) == ["write", "read"]
    assert outcomes["write"].name == "write"
    assert outcomes["write"].duration_seconds == 1.0
    assert outcomes["write"].counters == {}
    assert outcomes["read"].counters == {"TaskCounter/SPILLED_RECORDS": 12}
    assert outcomes["read"].stdout == shop.folder / "read" / "stdout.txt"
    assert outcomes["read"].stderr.read_text().startswith("log line 1")


def test_what_serves_a_phase_starts_before_and_ends_after_it(shop: Shop) -> None:
    shop.world.jobs = [ended, ended]
    served = phase(
        "net", servers=(("worker1", ("server", "-p", "1")), ("worker2", ("other",))), node="worker3"
    )
    finish(shop.job(served, phase("alone")))

    verbs = [row for row in shop.world.happened if row[0] in ("start", "submit", "end")]
    assert verbs == [
        ("start", "worker1", "server", "-p", "1"),
        ("start", "worker2", "other"),
        ("submit", "worker3", "net", "x"),
        ("end", "worker2", "other"),
        ("end", "worker1", "server", "-p", "1"),
        ("submit", "master", "alone", "x"),
    ]
    rows = list(shop.world.started.values())
    assert [row["env"] for row in rows] == [MARK] * 2  # so that they are found again
    assert rows[0]["log"] == "/nodes/worker1/logs/trial-1-net.log"


@pytest.mark.parametrize("status", [0, 1])
def test_a_service_surrounds_all_phases_and_ends_however_they_do(
    status: int, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = []

    @contextlib.contextmanager
    def serving(context: Context, *_: object) -> Iterator[None]:
        marks.append(context.mark)
        shop.world.happened.append(("serve", ""))
        try:
            yield
        finally:
            shop.world.happened.append(("served", ""))

    monkeypatch.setattr(shop.workload, "serving", serving, raising=False)
    shop.world.jobs = [ended, lambda: ended(status)]

    with contextlib.suppress(RunError):
        finish(shop.job(phase("warm-up"), phase("load")))

    verbs = [verb for verb in shop.world.verbs() if verb in ("serve", "served", "submit")]
    assert verbs == ["serve", "submit", "submit", "served"]
    assert marks == [MARK]


def test_what_is_aside_is_judged_but_no_part_of_the_measurement(shop: Shop) -> None:
    shop.world.jobs = taking(1.0, 2.0, 4.0)
    job = shop.job(phase("warm-up", aside=True), phase("load"), phase("counts", aside=True))

    finish(job)
    job.prove()

    assert job.duration_seconds == 2.0
    assert list(job.phases_seconds) == list(job.spans_seconds) == ["load"]
    assert job.ended_seconds - job.started_seconds == 2.0
    (outcomes,) = shop.workload.outcomes
    assert list(outcomes) == ["warm-up", "load", "counts"]


def test_what_stands_for_a_user_is_not_charged_to_its_node(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def uncharged(remote: FakeRemote) -> FakeRemote:
        asked.append(remote.name)
        return remote

    monkeypatch.setattr("boardcluster.campaign.execution.without_limits", uncharged)
    shop.world.jobs = [ended, ended]

    finish(shop.job(phase("load", outside=True), phase("work", node="worker1")))

    assert asked == ["master"]


def failing() -> Completed:
    return ended(1)


def interrupted() -> Completed:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("job", "error"), [(failing, RunError), (interrupted, KeyboardInterrupt)])
def test_what_serves_a_phase_ends_also_when_the_phase_does_not_end_well(
    job: Callable[[], Completed], error: type[BaseException], shop: Shop
) -> None:
    shop.world.jobs = [job]

    with pytest.raises(error):
        finish(shop.job(phase("net", servers=(("worker1", ("server",)),))))

    assert shop.world.happened[-1] == ("end", "worker1", "server")


def test_a_server_that_does_not_start_ends_those_that_did(shop: Shop) -> None:
    shop.world.lost.add("worker2")
    served = phase("net", servers=(("worker1", ("server",)), ("worker2", ("server",))))

    with pytest.raises(RemoteError, match="worker2"):
        finish(shop.job(served))

    assert shop.world.submissions == []
    assert shop.world.happened[-1] == ("end", "worker1", "server")


@pytest.mark.parametrize("status", [0, 1])
def test_an_mpi_phase_runs_inside_the_launchers_service(
    status: int, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def serving(*_: object, **named: Any) -> Iterator[dict[str, str]]:
        given.append(named)
        shop.world.happened.append(("serve", ""))
        try:
            yield {**named["environment"], "BOARDCLUSTER_MPI": "unique"}
        finally:
            shop.world.happened.append(("served", ""))

    monkeypatch.setattr("boardcluster.campaign.job.serving", serving)
    shop.world.jobs = [lambda: ended(status)]
    job = shop.job(
        phase("hpl", node="worker1", mpi_hosts=("worker1", "worker2")), engine=Engine.MPI
    )

    with contextlib.suppress(RunError):
        finish(job)

    assert shop.world.verbs() == ["mkdir", "put", "mkdir", "serve", "submit", "served"]
    (named,) = given
    assert named["hosts"] == ("worker1", "worker2")
    assert named["folder"] == "/nodes/worker1/scratch/trial-1/hpl"
    assert named["environment"] == MARK
    (submission,) = shop.world.submissions
    assert submission["node"] == "worker1"
    assert submission["env"].items() >= {**MARK, "BOARDCLUSTER_MPI": "unique"}.items()


def test_a_failed_phase_is_the_last_one(shop: Shop) -> None:
    shop.world.jobs = [failing]

    with pytest.raises(RunError, match="write: exit status 1: log line 1 log line 2"):
        finish(shop.job(phase("write"), phase("read")))

    assert len(shop.world.submissions) == 1


def test_a_crash_with_an_archive_says_nothing_about_the_job(shop: Shop) -> None:
    archives = shop.live.layout.archives
    archives.mkdir()
    (archives / "mapreduce.jsa").touch()
    report = "An error has occurred while processing the shared archive file.\n"

    def crashing() -> Completed:
        (stdout,) = shop.folder.rglob("stdout.txt")
        stdout.write_text(report)
        return failing()

    shop.world.jobs = [crashing]

    with pytest.raises(HostError, match="later jobs start without the class-data archive") as told:
        finish(shop.job(phase("write", yarn=True), engine=Engine.MAPREDUCE))
    assert "--resume" in told.value.hint


def test_yarn_is_not_asked_about_what_does_not_run_on_it(shop: Shop) -> None:
    shop.world.yarn_answers = False
    shop.world.jobs = [ended]
    job = shop.job(phase("mpi"), engine=Engine.MAPREDUCE)

    finish(job)

    assert shop.world.asked_tags == []
    assert (job.application_id, job.counters) == ("", {})


def test_a_phase_that_yarn_never_saw_is_a_failure_if_it_should_have(shop: Shop) -> None:
    shop.world.jobs = [ended]
    shop.world.default_apps = []

    with pytest.raises(RunError, match="count: the job succeeded, but YARN never saw it"):
        finish(shop.job(phase("count", yarn=True)))


def test_counters_add_up_over_phases_and_each_keeps_its_own_parts(shop: Shop) -> None:
    shop.world.jobs = taking(4.0, 5.0)
    first, second = app("SUCCEEDED", number=1), app("SUCCEEDED", number=2)
    shop.world.apps["trial-1"] = [[first], [first], [first, second]]
    job = shop.job(phase("sort", yarn=True), phase("check", yarn=True))

    finish(job)

    assert job.counters == {"TaskCounter/SPILLED_RECORDS": 24}
    assert job.phases_seconds == {
        "sort": 4.0,
        **{f"sort/{name}": took for name, took in PHASES.items()},
        "check": 5.0,
        **{f"check/{name}": took for name, took in PHASES.items()},
    }
    assert job.application_id == "application_1_0002"


def test_the_last_application_stays_known_when_a_later_phase_has_none(shop: Shop) -> None:
    shop.world.jobs = [ended, ended]
    job = shop.job(phase("sort", yarn=True), phase("look"))

    finish(job)

    assert job.application_id == "application_1_0001"


def test_time_is_for_the_whole_job_in_seconds_of_the_boards(shop: Shop) -> None:
    shop.live = replace(shop.live, layout=replace(shop.live.layout, dilation=4.0))
    shop.world.jobs = taking(180.0, 60.0, 1.0)
    job = shop.job(phase("one"), phase("two"), phase("three"), timeout_seconds=60.0)

    with pytest.raises(StalledError, match="no time left for the phase three"):
        finish(job)

    assert [row["timeout"] for row in shop.world.submissions] == [240.0, 60.0]


def test_time_is_for_the_whole_job(shop: Shop) -> None:
    shop.world.jobs = taking(45.0, 15.0, 1.0)
    job = shop.job(phase("one"), phase("two"), phase("three"), timeout_seconds=60.0)

    with pytest.raises(StalledError, match="no time left for the phase three"):
        finish(job)

    assert [row["timeout"] for row in shop.world.submissions] == [60.0, 15.0]


def test_page_caches_are_dropped_just_before_a_phase_that_asks_for_it(shop: Shop) -> None:
    shop.world.jobs = [ended, ended]
    job = shop.job(phase("write"), phase("read", drops_caches=True))

    finish(job)

    first, then = ["mkdir", "submit"], ["drop caches", "mkdir", "submit"]
    assert shop.world.verbs() == ["mkdir", "put", *first, *then]
    assert job.remarks == ()


def test_page_caches_that_stay_are_remarked(shop: Shop) -> None:
    shop.world.jobs = [ended]
    shop.world.caches_kept = "not permitted"
    job = shop.job(phase("read", drops_caches=True))

    finish(job)

    assert job.remarks == ("page caches kept: not permitted",)


def test_what_prepares_input_is_no_part_of_the_measurement(shop: Shop) -> None:
    staged: list[PhaseOutcome] = []
    confs: list[str] = []

    def prepare(context: Context, job_spec: JobSpec) -> None:
        names = ("gen erate", "sort")
        staged.extend(context.run_job(Engine.MAPREDUCE, maker(name)) for name in names)

    def maker(name: str) -> Callable[[str], Phase]:
        def make(conf: str) -> Phase:
            confs.append(conf)
            return Phase(name=name, command=("stock",))

        return make

    shop.workload.preparing = prepare
    shop.world.jobs = [*taking(100.0, 200.0), *taking(3.0)]
    rows = [app("SUCCEEDED", number=number) for number in (1, 2, 3)]
    shop.world.apps["trial-1"] = [rows[:1], rows[:1], rows[:2], rows[:2], rows[:3]]
    job = shop.job(phase("validate", yarn=True))

    finish(job)
    job.prove()

    assert job.duration_seconds == 3.0
    assert set(job.phases_seconds) == {"validate", *(f"validate/{name}" for name in PHASES)}
    assert set(job.spans_seconds) == set(job.engine_spans) == {"validate"}
    assert job.counters == {"TaskCounter/SPILLED_RECORDS": 12}
    assert job.application_id == "application_1_0003"
    assert list(shop.workload.outcomes[0]) == ["validate"]
    assert confs == [f"{SCRATCH}/conf"] * 2
    # The preparing job is told how it went, and leaves its own artefacts.
    assert [row.duration_seconds for row in staged] == [100.0, 200.0]
    assert {"prepare-1-gen-erate", "prepare-2-sort", "validate"} <= {
        path.name for path in shop.folder.iterdir()
    }
    assert shop.said == ["preparing input: gen erate", "preparing input: sort"]


def test_a_preparing_job_that_fails_is_an_error_and_nothing_runs(shop: Shop) -> None:
    def prepare(context: Context, job_spec: JobSpec) -> None:
        context.run_job(Engine.MAPREDUCE, lambda _: Phase(name="generate", command=("stock",)))

    shop.workload.preparing = prepare
    shop.world.jobs = [failing]
    job = shop.job(phase("validate"))

    with pytest.raises(RunError, match="generate: exit status 1"):
        job.prepare()

    assert (job.counters, job.phases_seconds, job.application_id) == ({}, {}, "")


@pytest.mark.parametrize(("on_yarn", "seconds"), [(True, 60.0), (False, 86_400.0)])
def test_preparing_has_the_whole_time_for_itself_and_copying_a_day(
    shop: Shop, on_yarn: bool, seconds: float
) -> None:
    def prepare(context: Context, job_spec: JobSpec) -> None:
        made = Phase(name="generate", command=("stock",), yarn=on_yarn)
        context.run_job(Engine.MAPREDUCE, lambda _: made)

    shop.workload.preparing = prepare
    shop.world.jobs = taking(50.0, 3.0)
    finish(shop.job(phase("validate"), timeout_seconds=60.0))

    assert [row["timeout"] for row in shop.world.submissions] == [seconds, 60.0]


def test_a_search_over_mpi_has_the_time_of_a_run_and_is_named(shop: Shop) -> None:
    def stuck() -> Completed:
        raise RemoteTimeoutError("mpirun has not ended")

    def prepare(context: Context, job_spec: JobSpec) -> None:
        made = Phase(name="search", command=("xhpl",), yarn=False, mpi_hosts=("worker1",))
        context.run_job(Engine.MPI, lambda _: made)

    shop.workload.preparing = prepare
    shop.world.jobs = [stuck]
    with pytest.raises(StalledError, match="was the search before the run, which has the time of"):
        shop.job(phase("solve"), timeout_seconds=60.0).prepare()

    assert [row["timeout"] for row in shop.world.submissions] == [60.0]


def test_the_place_of_the_output_is_cleared_before_the_input_is_prepared(shop: Shop) -> None:
    cleared: list[list[str]] = []
    shop.workload.preparing = lambda *_: cleared.append(list(shop.world.deleted))
    job = shop.job(phase("count"))

    job.prepare()

    assert cleared == [["/boardcluster/output/trial-1"]]
    assert job.input_bytes == 1000


def test_cleaning_deletes_output_scratch_and_the_work_of_the_proof(shop: Shop) -> None:
    shop.world.jobs = [ended, ended]
    job = shop.job(phase("one"), phase("two", node="worker2"))
    finish(job)
    job.prove()
    assert (shop.folder / "work" / "large").exists()
    shop.world.happened.clear()

    job.clean()

    assert shop.world.happened == [
        ("rm", "master", SCRATCH),
        ("rm", "worker2", "/nodes/worker2/scratch/trial-1"),
    ]
    assert shop.node("master").files == {}
    assert shop.world.deleted == ["/boardcluster/output/trial-1"] * 2
    assert not (shop.folder / "work").exists()
    assert (shop.folder / "one" / "stdout.txt").exists()


def test_cleaning_goes_on_when_a_node_is_gone(shop: Shop) -> None:
    shop.world.jobs = [ended, ended]
    job = shop.job(phase("one", node="worker1"), phase("two", node="worker2"))
    finish(job)
    shop.world.lost.add("worker1")
    shop.world.refused_deletes = 1
    shop.world.happened.clear()

    job.clean()

    assert shop.world.happened == [
        ("rm", "master", SCRATCH),
        ("rm", "worker2", "/nodes/worker2/scratch/trial-1"),
    ]


def test_a_job_that_never_ran_takes_its_configuration_back(shop: Shop) -> None:
    job = shop.job(phase("one", node="worker2"))
    assert shop.world.folders_left() == {("master", SCRATCH)}

    job.clean()

    assert shop.world.folders_left() == set()
    assert shop.node("master").files == {}


def test_a_job_whose_master_is_out_of_reach_is_not_made(shop: Shop) -> None:
    shop.world.lost.add("master")

    with pytest.raises(RemoteError, match="master: out of reach"):
        shop.job(phase("count"))


def test_what_a_trial_sets_is_what_is_submitted_with(shop: Shop) -> None:
    shop.world.jobs = [ended]
    settings = {"hdfs-site": {"dfs.replication": "3", "dfs.checksum.type": "NULL"}}
    finish(shop.job(phase("count"), settings=settings))

    text = (shop.folder / "conf" / "hdfs-site.xml").read_text()
    assert shop.node("master").files[f"{SCRATCH}/conf/hdfs-site.xml"] == text.encode()
    assert "<name>dfs.replication</name>\n    <value>3</value>" in text
    assert "<name>dfs.checksum.type</name>\n    <value>NULL</value>" in text
    (submission,) = shop.world.submissions
    assert submission["env"]["HADOOP_CONF_DIR"] == f"{SCRATCH}/conf"
    assert submission["env"]["BOARDCLUSTER_ATTEMPT"] == "trial-1"


def test_the_record_of_a_case_says_what_was_asked(shop: Shop) -> None:
    shop.job(phase("count"), text=True)

    record = json.loads((shop.folder / "case.json").read_text())
    assert record["workload"] == "fake"
    assert record["case"]["size_bytes"] == 1000
    assert record["case"]["engine"] == "mapreduce"
    assert record["dataset"]["sha256"] == "cd" * 32


def test_a_workload_gets_what_it_may_use(shop: Shop) -> None:
    job = shop.job(phase("count"), text=True)
    job.prepare()

    (context,) = shop.workload.contexts
    assert context.live is shop.live
    assert context.dataset == dataset_in(shop.folder)
    assert context.work == shop.folder / "work"
    assert context.work.is_dir()
    context.progress("counting", 0, 0)
    assert shop.said == ["counting"]


def test_a_job_of_a_mix_has_its_own_folder_tag_and_place(shop: Shop) -> None:
    shop.world.jobs = [ended]
    job = shop.job(phase("count", yarn=True), label="2-grep", in_mix=True)
    finish(job)
    job.prove()

    folder = shop.folder / "2-grep"
    assert {"conf", "count", "case.json", "work"} <= {path.name for path in folder.iterdir()}
    (verified,) = shop.workload.verified
    assert verified.tag == "trial-1,trial-1-2-grep"
    assert verified.output_path == "/boardcluster/output/trial-1-2-grep"
    assert verified.conf == f"{SCRATCH}-2-grep/conf"
    text = (folder / "conf" / "mapred-site.xml").read_text()
    assert "<value>trial-1,trial-1-2-grep</value>" in text
    assert shop.node("master").files[f"{verified.conf}/mapred-site.xml"] == text.encode()
    # Its own applications only; its processes are the attempt's.
    assert shop.world.asked_tags == ["trial-1-2-grep"]
    (submission,) = shop.world.submissions
    assert submission["env"]["BOARDCLUSTER_ATTEMPT"] == "trial-1"
    assert submission["cwd"] == f"{SCRATCH}-2-grep/count"


def test_the_space_of_a_run_is_the_workloads_word(shop: Shop) -> None:
    shop.workload.space = Need(input_bytes=5, run_bytes=77)

    assert shop.job(phase("count")).run_bytes == 77


_LINK_RIGHT = "-all,+net_admin"


@pytest.mark.parametrize(
    ("uid", "becoming"),
    [
        (
            61000,
            (
                *("setpriv", "--reuid=61000", "--regid=61000", "--clear-groups"),
                *(f"--inh-caps={_LINK_RIGHT}", f"--ambient-caps={_LINK_RIGHT}"),
                *("--no-new-privs", "--"),
            ),
        ),
        (0, ()),  # an ordinary user's own namespaces, where groups cannot be dropped
    ],
)
def test_a_server_that_sets_links_is_the_nodes_user_with_that_right_alone(
    shop: Shop, uid: int, becoming: tuple[str, ...]
) -> None:
    """Root itself would follow the links that a job left in the folders of logs and records."""
    name = "worker1"
    user, root = shop.node(name), FakeRemote("root")
    log = f"/nodes/{name}/logs/trial-1-load.log"
    user.tell("id", "-u", stdout=f"{uid}\n")
    argv = (*becoming, "sh", "-c", 'exec "$@" >> "$0" 2>&1', log, "cut", "eth0")
    root.tell(*argv)
    root.tell_node_agent("end", {"killed": 0})
    shop.live = replace(shop.live, admins={**shop.live.remotes, name: root})
    shop.world.jobs = taking(1.0)

    finish(shop.job(phase("load", servers=((name, ("cut", "eth0")),), servers_as_root=True)))

    assert root.calls == [argv, ("node_agent", "end")]


def test_root_works_in_a_folder_that_no_job_can_exchange(shop: Shop) -> None:
    root, own = FakeRemote("root"), "/nodes/worker1/root-trial-1"
    root.tell("rm", "-rf", own)
    root.tell("mkdir", "-m", "700", own)
    root.tell("mkdir", "-p", f"{own}/audit")
    root.tell("audit", "x")
    shop.live = replace(shop.live, admins={**shop.live.remotes, "worker1": root})
    job = shop.job(phase("audit", node="worker1", as_root=True))

    finish(job)
    job.clean()

    assert root.calls == [
        ("rm", "-rf", own),
        ("mkdir", "-m", "700", own),
        ("mkdir", "-p", f"{own}/audit"),
        ("audit", "x"),
        ("rm", "-rf", own),
    ]
