"""The life of a campaign, with the real store: what ends how, and what is never ok."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign
from tests.unit.campaign.fake_workload import PROOF, FakeWorkload, dataset_in
from tests.unit.campaign.planning import plan_trials
from tests.unit.campaign.world import World, app, ended

from boardcluster.analysis.trust import precision_reached
from boardcluster.campaign import driver as module
from boardcluster.campaign.driver import Watch, interruption, now_utc, run_trials
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.campaign.trial import Bench, TrialEnd, run_trial
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    ClusterError,
    DriverSpaceError,
    HostError,
    HostKeyError,
    RemoteError,
    RemoteTimeoutError,
    UnreachableError,
    VerificationError,
)
from boardcluster.fetch.cache import no_progress
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Engine,
    Fingerprint,
    Measurement,
    NodeTwin,
    OnLoss,
    Policy,
    Result,
    Trial,
    Verdict,
    in_cell,
)
from boardcluster.remote.gate import Completed
from boardcluster.services import disk_space
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.workloads.base import Context, Job


def good() -> Completed:
    return ended()


@dataclass
class Stage:
    """A campaign that is about to run.

    Attributes:
        began: trials as they were announced.
        ended: attempts as they were announced.
        asked: trials for which a cluster was asked.
    """

    live: LiveCluster
    world: World
    store: Store
    trials: tuple[Trial, ...]
    campaign: Campaign
    tmp_path: Path
    workload: FakeWorkload = field(default_factory=FakeWorkload)
    began: list[Trial] = field(default_factory=list)
    ended: list[tuple[Trial, Attempt, Measurement | None]] = field(default_factory=list)
    asked: list[Trial] = field(default_factory=list)

    def run(
        self,
        trials: Sequence[Trial] | None = None,
        cluster: Callable[[Trial], LiveCluster] | None = None,
        repeat_tainted: int = 0,
        recovery: Any = None,
        on_loss: OnLoss = OnLoss.RESTART,
    ) -> None:
        run_trials(
            self.store,
            self.campaign,
            self.trials if trials is None else trials,
            cluster=cluster or self.cluster,
            bench=Bench(
                policy=Policy(timeout_seconds=60, repeat_tainted=repeat_tainted, on_loss=on_loss),
                cache=self.tmp_path / "cache",
                progress=no_progress,
                text=lambda _: dataset_in(self.tmp_path),
            ),
            watch=Watch(began=self.began.append, ended=lambda *row: self.ended.append(row)),
            recovery=recovery,
        )

    def cluster(self, trial: Trial) -> LiveCluster:
        self.asked.append(trial)
        return self.live

    def counts(self) -> tuple[int, int, int, int]:
        summary = self.store.summary(self.campaign.id)
        counts = (summary.ok, summary.failed, summary.invalid, summary.pending)
        assert sum(counts) == summary.planned == len(self.trials)
        return counts

    def attempts(self) -> list[Attempt]:
        results = self.store.results(self.campaign.id)
        return [result.attempt for result in results if result.attempt]


@pytest.fixture
def stage(
    live: LiveCluster,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    campaign = make_campaign(name="small")
    trials = plan_trials(
        campaign,
        workload="fake",
        engines=(Engine.MAPREDUCE, Engine.SPARK),
        profile="default",
        size_bytes=1000,
        workers=4,
        repetitions=2,
    )
    world.jobs = [good] * 4
    monkeypatch.setattr(disk_space, "require_disk_space", lambda _: None)
    with Store.open(tmp_path / "home") as store:
        store.add_campaign(campaign, trials)
        stage = Stage(live, world, store, trials, campaign, tmp_path)
        monkeypatch.setattr(
            "boardcluster.campaign.trial_jobs.load_workload", lambda _: stage.workload
        )
        yield stage


def test_all_goes_well(stage: Stage) -> None:
    stage.run()

    assert stage.counts() == (4, 0, 0, 0)
    assert stage.began == list(stage.trials)
    assert [trial for trial, _, _ in stage.ended] == list(stage.trials)
    for result in stage.store.results(stage.campaign.id):
        assert result.attempt is not None
        assert result.measurement is not None
        assert result.attempt.reason == ""
        assert result.measurement.duration_seconds == 12.5
        assert result.measurement.input_bytes == 1000
        assert result.measurement.output_bytes == 4321
        assert result.measurement.verification == PROOF
        assert result.measurement.application_id == "application_1_0001"
        if result.trial.engine is Engine.MAPREDUCE:
            assert result.measurement.counters == {"TaskCounter/SPILLED_RECORDS": 12}


def test_trials_run_in_the_planned_order_each_with_its_own_output(stage: Stage) -> None:
    stage.run()

    rows = [(row["argv"][1], row["argv"][3]) for row in stage.world.submissions]
    assert [engine for engine, _ in rows] == [trial.engine for trial in stage.trials]
    outputs = [output for _, output in rows]
    assert outputs == [f"/boardcluster/output/{trial.id}-1" for trial in stage.trials]
    # Each place is cleared before the job and again after the proof.
    assert stage.world.deleted == [output for output in outputs for _ in range(2)]
    assert [job.output_path for job in stage.workload.verified] == outputs


def test_only_the_chosen_trials_run(stage: Stage) -> None:
    stage.run([stage.trials[3], stage.trials[1]])

    assert stage.counts() == (2, 0, 0, 2)
    assert stage.began == [stage.trials[3], stage.trials[1]]


def test_each_trial_asks_for_the_cluster_in_its_form(stage: Stage) -> None:
    other = replace(stage.live, state=replace(stage.live.state, config_sha256="ef" * 32))
    clusters = [stage.live, other, other, stage.live]

    def cluster(trial: Trial) -> LiveCluster:
        stage.asked.append(trial)
        return clusters[len(stage.asked) - 1]

    stage.run(cluster=cluster)

    assert stage.asked == list(stage.trials)
    # Each attempt says what it ran on, not what the first one ran on.
    digests = [attempt.fingerprint.config_sha256[:2] for attempt in stage.attempts()]
    assert digests == ["cd", "ef", "ef", "cd"]


def test_the_machine_is_described_once_for_the_same_cluster(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[LiveCluster] = []

    def take(live: LiveCluster) -> Fingerprint:
        taken.append(live)
        return take_fingerprint(live)

    monkeypatch.setattr(module, "take_fingerprint", take)

    stage.run()

    assert taken == [stage.live]


def test_a_part_that_was_edited_between_two_runs_makes_another_setup(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fan = tmp_path / "fan.toml"
    fan.write_text("a = 1\n")
    twin = NodeTwin(board="rpi-3b", cooling=str(fan))
    nodes = tuple(replace(node, twin=twin) for node in stage.live.spec.nodes)
    layout = replace(stage.live.layout, spec=replace(stage.live.spec, nodes=nodes))
    stage.live = replace(stage.live, layout=layout)

    def take(live: LiveCluster) -> Fingerprint:
        return replace(take_fingerprint(live), limits=fan.read_text())

    monkeypatch.setattr(module, "take_fingerprint", take)
    asked: list[Trial] = []

    def cluster(trial: Trial) -> LiveCluster:
        asked.append(trial)
        if len(asked) == 2:
            fan.write_text("a = 2\n")
        return stage.live

    stage.run(cluster=cluster)

    limits = [attempt.fingerprint.limits[-2] for attempt in stage.attempts()]
    assert limits == ["1", "2", "2", "2"]


def test_a_cluster_that_does_not_come_up_begins_no_attempt(stage: Stage) -> None:
    def cluster(trial: Trial) -> LiveCluster:
        if trial == stage.trials[1]:
            raise ClusterError("does not come up")
        return stage.live

    with pytest.raises(ClusterError, match="does not come up"):
        stage.run(cluster=cluster)

    assert stage.counts() == (1, 0, 0, 3)
    assert stage.began == [stage.trials[0]]


def test_a_full_disk_of_the_driver_stops_before_an_attempt_begins(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def require_room(home: Path) -> None:
        looked.append(home)
        if len(looked) == 3:
            raise CapacityError("the disk is full")

    monkeypatch.setattr(disk_space, "require_disk_space", require_room)

    with pytest.raises(CapacityError, match="the disk is full"):
        stage.run()

    assert looked == [stage.live.home] * 3
    assert stage.counts() == (2, 0, 0, 2)
    assert len(stage.began) == 2


def test_a_driver_of_boards_only_needs_room_for_results(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk may be 95 % full: no node of YARN uses it."""
    looked: list[Path] = []
    boards = replace(stage.live.layout, spec=replace(stage.live.spec, kind="boards"))
    stage.live = replace(stage.live, layout=boards)
    monkeypatch.setattr(
        disk_space, "require_disk_space", lambda _: pytest.fail("not a node's disk")
    )
    monkeypatch.setattr(disk_space, "require_space_of_driver", looked.append)

    stage.run(stage.trials[:1])

    assert looked == [stage.live.home]


def test_the_blas_that_a_workload_brings_is_in_the_fingerprint(stage: Stage) -> None:
    """Two runs of HPL with different libraries were one cell of 14.69 Gflop/s."""
    stage.workload.blas = "OpenBLAS 0.3.21, kernels for Haswell"
    stage.run()

    assert {row.fingerprint.blas for row in stage.attempts()} == {stage.workload.blas}


def test_a_program_that_cannot_be_had_makes_attempts_invalid_with_the_way_out(stage: Stage) -> None:
    stage.workload.lacking = HostError("HPL cannot be built: no compiler", hint="install gcc")
    stage.run(stage.trials[:2])

    assert stage.counts() == (0, 0, 2, 2)
    assert {row.reason for row in stage.attempts()} == {
        "host: HPL cannot be built: no compiler; install gcc"
    }
    assert not stage.world.submissions


def test_warm_ups_are_run_like_others(stage: Stage) -> None:
    warm = replace(stage.trials[0], id="warm", warm_up=True, campaign_id="other")
    campaign = replace(stage.campaign, id="other")
    stage.store.add_campaign(campaign, [warm])
    stage.campaign, stage.trials = campaign, (warm,)

    stage.run()

    assert stage.counts() == (1, 0, 0, 0)
    (result,) = stage.store.results("other")
    assert result.trial.warm_up
    assert result.measurement is not None
    assert result.measurement.verification == PROOF


@pytest.fixture
def warmed(stage: Stage) -> Stage:
    """A stage with two warm-ups of one cell before its measured runs, and a run of another cell."""
    own = [trial for trial in stage.trials if trial.engine is Engine.SPARK]
    other = next(trial for trial in stage.trials if trial.engine is not Engine.SPARK)
    rows = [(own[0], "w1"), (own[0], "w2"), (own[0], "1"), (own[1], "2"), (other, "o1")]
    campaign = replace(stage.campaign, id="warm")
    trials = tuple(
        replace(
            trial,
            id=f"warm-{name}",
            campaign_id="warm",
            position=place,
            repetition=int(name[-1]),
            warm_up=name[0] == "w",
        )
        for place, (trial, name) in enumerate(rows)
    )
    stage.store.add_campaign(campaign, trials)
    stage.campaign, stage.trials, stage.world.jobs = campaign, trials, [good] * 9
    return stage


def started(stage: Stage, identity: str) -> LiveCluster:
    return replace(stage.live, state=replace(stage.live.state, identity=identity))


def names(stage: Stage) -> list[str]:
    return [trial.id.removeprefix("warm-") for trial in stage.began]


def test_warm_ups_run_once_in_a_start_of_the_daemons(warmed: Stage) -> None:
    warmed.run()
    assert names(warmed) == ["w1", "w2", "1", "2", "o1"]


def test_after_a_restart_a_cell_is_warmed_up_again_before_its_next_measured_run(
    warmed: Stage,
) -> None:
    """The first run of each cell on fresh daemons was cold, and went into the mean."""
    clusters = [started(warmed, "first")] * 3 + [started(warmed, "second")] * 2

    warmed.run(cluster=lambda _: clusters.pop(0))

    assert names(warmed) == ["w1", "w2", "1", "w1", "w2", "2", "o1"]
    assert warmed.counts() == (5, 0, 0, 0)
    rows = warmed.store.results("warm", all_attempts=True)
    warm_ups = [row.attempt.start_id for row in rows if row.attempt and row.trial.warm_up]
    assert sorted(warm_ups) == ["first", "first", "second", "second"]


def test_a_resume_on_other_daemons_warms_up_again_and_on_the_same_it_does_not(
    warmed: Stage,
) -> None:
    first, second = started(warmed, "first"), started(warmed, "second")
    warmed.run(warmed.trials[:3], cluster=lambda _: first)
    warmed.run(warmed.trials[3:4], cluster=lambda _: first)
    assert names(warmed) == ["w1", "w2", "1", "2"]
    again = replace(warmed.trials[3], id="warm-3", position=9, repetition=3)
    warmed.store.add_trials("warm", [again])
    warmed.run([again], cluster=lambda _: second)

    assert names(warmed)[4:] == ["w1", "w2", "3"]


def test_a_loss_while_a_cell_is_warmed_up_again_is_a_loss(warmed: Stage) -> None:
    clusters = [started(warmed, name) for name in ("first", "first", "second", "third")]
    warmed.world.jobs[2] = lose(warmed, "worker2")

    def cluster(_: Trial) -> LiveCluster:
        warmed.world.unhealthy = []
        return clusters.pop(0)

    recovery = FakeRecovery(1)
    warmed.run(
        [warmed.trials[0], warmed.trials[1], warmed.trials[2]], cluster=cluster, recovery=recovery
    )

    assert names(warmed) == ["w1", "w2", "w1", "w1", "w2", "1"]
    assert recovery.told == [("warm-1", "worker2: 1/1 local-dirs", 1)]
    assert warmed.counts() == (3, 0, 0, 2)


def test_artefacts_stay_and_the_work_of_the_proof_goes(stage: Stage) -> None:
    stage.run()

    for attempt in stage.attempts():
        folder = stage.store.artefact_folder(attempt)
        names = {path.name for path in folder.iterdir()}
        assert {"conf", "count", "case.json", "telemetry.npz"} <= names
        assert "work" not in names
        inner = {path.name for path in (folder / "count").iterdir()}
        assert {"stdout.txt", "stderr.txt", "counters.json", "command.json"} <= inner
        tag = f"{attempt.trial_id}-1"
        assert f"<value>{tag}</value>" in (folder / "conf" / "mapred-site.xml").read_text()


def test_every_attempt_says_what_it_ran_on(stage: Stage) -> None:
    stage.run()

    for attempt in stage.attempts():
        fingerprint = attempt.fingerprint
        assert (fingerprint.hadoop, fingerprint.spark) == ("9.8.7", "6.5.4")
        assert fingerprint.config_sha256 == "cd" * 32
        assert fingerprint.java == "Maker 17.0.1 x86_64"
        assert (fingerprint.nodes, fingerprint.node_cores) == (5, 4)
        assert fingerprint.node_memory_bytes == 2 << 30
        assert fingerprint.emulated
        assert fingerprint.cpu_cores >= 1


def test_a_wrong_output_is_failed_and_never_ok(stage: Stage) -> None:
    stage.workload.verdicts[2] = VerificationError("the output is wrong:\n 3 words differ")

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[1]
    assert attempt.state is AttemptState.FAILED
    assert attempt.reason == "the output is wrong: 3 words differ"
    assert measurement is None
    assert not (stage.store.artefact_folder(attempt) / "work").exists()


def test_a_failed_job_is_failed_without_looking_at_its_output(stage: Stage) -> None:
    stage.world.jobs[0] = lambda: ended(1)
    tag = f"{stage.trials[0].id}-1"
    words = "java.lang.OutOfMemoryError: Java heap space"
    stage.world.apps[tag] = [[app("FAILED", state="FAILED", diagnostics=words)]]

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[0]
    assert attempt.reason == (
        "count: oom (raise the node's memory in cluster.toml, or mapreduce.map.memory.mb, "
        "mapreduce.reduce.memory.mb, spark.executor.memory): "
        f"exit status 1, YARN says FAILED: {words}"
    )
    assert measurement is None
    assert len(stage.workload.verified) == 3


def test_a_job_that_yarn_calls_failed_is_no_result_though_it_exits_with_0(stage: Stage) -> None:
    stage.world.default_apps = [app("FAILED")]

    stage.run(stage.trials[:2])

    assert stage.counts() == (0, 2, 0, 2)


def test_a_job_that_yarn_never_saw_is_failed_though_it_ends_well(stage: Stage) -> None:
    tag = f"{stage.trials[1].id}-1"
    stage.world.apps[tag] = [[]]

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[1]
    assert attempt.state is AttemptState.FAILED
    assert attempt.reason == (
        "count: the job succeeded, but YARN never saw it: it did not run on the cluster"
    )
    assert measurement is None
    assert tag not in [job.tag for job in stage.workload.verified]


def stall() -> Completed:
    raise RemoteTimeoutError("command did not end within 60 s")


def cut() -> Completed:
    raise RemoteError("master: out of reach")


def test_a_failure_whose_words_begin_like_a_time_out_is_failed(stage: Stage) -> None:
    stage.workload.verdicts[1] = VerificationError("stalled: the words of something else")

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    assert stage.ended[0][1].state is AttemptState.FAILED


def interrupt() -> Completed:
    raise KeyboardInterrupt


@dataclass(frozen=True)
class Ending:
    """One way in which the second attempt of a campaign ends, and what it must be called."""

    state: AttemptState
    job: Callable[[], Completed] = good
    verdict: BaseException | None = None
    seen_by_yarn: bool = True

    def plant(self, stage: Stage) -> str:
        """Return the place of the attempt's output."""
        tag = f"{stage.trials[1].id}-1"
        stage.world.jobs[1] = self.job
        if self.verdict:
            stage.workload.verdicts[2] = self.verdict
        if not self.seen_by_yarn:
            stage.world.apps[tag] = [[]]
        return f"/boardcluster/output/{tag}"


ENDINGS = {
    "success": Ending(AttemptState.OK),
    "failed": Ending(AttemptState.FAILED, job=lambda: ended(1)),
    "never seen": Ending(AttemptState.FAILED, seen_by_yarn=False),
    "wrong": Ending(AttemptState.FAILED, verdict=VerificationError("3 words differ")),
    "stalled": Ending(AttemptState.INVALID, job=stall),
    "lost connection": Ending(AttemptState.INVALID, job=cut),
    "Ctrl-C": Ending(AttemptState.INVALID, job=interrupt),
    "Ctrl-C during the proof": Ending(AttemptState.INVALID, verdict=KeyboardInterrupt()),
}


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("name", list(ENDINGS))
def test_the_output_is_deleted_however_it_ends_and_a_refusal_changes_nothing(
    name: str, refused: bool, stage: Stage
) -> None:
    ending = ENDINGS[name]
    output = ending.plant(stage)
    job = stage.world.jobs[1]
    before: list[str] = []

    def submit() -> Completed:
        before.extend(stage.world.deleted)
        stage.world.refused_deletes = int(refused)
        return job()

    stage.world.jobs[1] = submit
    if name.startswith("Ctrl-C"):
        with pytest.raises(KeyboardInterrupt):
            stage.run()
    else:
        stage.run()
        assert len(stage.ended) == 4
        assert [row[1].state for row in stage.ended].count(AttemptState.OK) >= 3

    assert stage.attempts()[1].state is ending.state
    assert before.count(output) == 1
    assert stage.world.deleted.count(output) == 2
    assert stage.world.refused_deletes == 0
    assert not (stage.store.artefact_folder(stage.attempts()[1]) / "work").exists()


def test_the_output_stands_until_it_is_proved(stage: Stage) -> None:
    seen: list[int] = []
    stage.workload.proving = lambda *_: seen.append(len(stage.world.deleted))

    stage.run()

    # By the n-th proof: the clearing before n jobs, the deletion after n - 1.
    assert seen == [1, 3, 5, 7]


def test_a_master_that_is_lost_takes_its_output_with_it(stage: Stage) -> None:
    def lose() -> Completed:
        stage.world.lost.add("master")
        return ended(1)

    stage.world.jobs[0] = lose

    with pytest.raises(ClusterError, match="node master"):
        stage.run()

    assert stage.counts() == (0, 0, 1, 3)
    assert stage.attempts()[0].reason.startswith("node_lost: ")


def test_a_stalled_job_is_invalid_and_the_campaign_goes_on(stage: Stage) -> None:
    stage.world.jobs[1] = stall

    stage.run()

    assert stage.counts() == (3, 0, 1, 0)
    _, attempt, _ = stage.ended[1]
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason.startswith("stalled: not done after 60 s; last seen: ")


def test_a_lost_connection_is_not_called_stalled(stage: Stage) -> None:
    stage.world.jobs[1] = cut

    stage.run()

    assert stage.counts() == (3, 0, 1, 0)
    _, attempt, measurement = stage.ended[1]
    assert (attempt.state, attempt.reason) == (AttemptState.INVALID, "host: master: out of reach")
    assert measurement is None


def test_a_node_lost_during_a_job_makes_it_invalid_and_stops_the_campaign(stage: Stage) -> None:
    def lose() -> Completed:
        stage.world.lost.add("worker3")
        return ended(1)

    stage.world.jobs[1] = lose

    with pytest.raises(
        ClusterError, match=r"node worker3.*the other trials stay pending"
    ) as caught:
        stage.run()

    assert "boardcluster status" in caught.value.hint
    assert "--resume" in caught.value.hint
    assert stage.counts() == (1, 0, 1, 2)
    assert len(stage.began) == 2
    _, attempt, measurement = stage.ended[1]
    assert attempt.reason.startswith("node_lost: node worker3; count: exit status 1")
    assert measurement is None


def test_nodes_that_yarn_gave_up_stop_the_campaign(stage: Stage) -> None:
    def fill() -> Completed:
        stage.world.unhealthy = [
            {"nodeHostName": "worker2", "healthReport": "1/1 local-dirs usable space is below"}
        ]
        return ended(1)

    stage.world.jobs[0] = fill

    with pytest.raises(ClusterError, match="worker2: 1/1 local-dirs usable space is below"):
        stage.run()

    assert stage.counts() == (0, 0, 1, 3)
    assert stage.attempts()[0].reason.startswith("storage: worker2: 1/1 local-dirs")


def test_a_daemon_lost_during_a_job_spoils_the_time_though_the_output_is_right(
    stage: Stage,
) -> None:
    def lose() -> Completed:
        stage.world.dead.add(("datanode", "worker1"))
        return ended()

    stage.world.jobs[0] = lose

    with pytest.raises(ClusterError, match="datanode on worker1"):
        stage.run()

    assert stage.counts() == (0, 0, 1, 3)
    _, attempt, measurement = stage.ended[0]
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason == ("node_lost: datanode on worker1 during the run; the output was right")
    assert measurement is not None  # kept, but no result
    (stored, *_) = stage.store.results(stage.campaign.id)
    assert stored.measurement == measurement


ERRORS = [
    (KeyboardInterrupt(), "Ctrl-C or SIGTERM"),
    (SystemExit(143), "Ctrl-C or SIGTERM"),
    (OSError(28, "No space left on device"), "No space left on device"),
    (ZeroDivisionError(), "ZeroDivisionError"),
]


@pytest.mark.parametrize("during", ["prepare", "run", "prove"])
@pytest.mark.parametrize(("error", "why"), ERRORS)
def test_an_interrupted_attempt_is_invalid_its_output_deleted_and_the_rest_pending(
    error: BaseException, why: str, during: str, stage: Stage
) -> None:
    calls: list[str] = []

    def third(*_: object) -> None:
        calls.append(during)
        if len(calls) == 3:
            raise error

    def interrupt() -> Completed:
        raise error

    if during == "prepare":
        stage.workload.preparing = third
    elif during == "prove":
        stage.workload.proving = third
    else:
        stage.world.jobs[2] = interrupt

    with pytest.raises(type(error)) as caught:
        stage.run()

    assert caught.value is error
    assert stage.counts() == (2, 0, 1, 1)
    attempt = stage.attempts()[2]
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason == f"interrupted: {why}"
    assert attempt.ended_utc
    assert len(stage.ended) == 2  # an interruption is no end that is announced
    assert stage.world.deleted.count(f"/boardcluster/output/{stage.trials[2].id}-1") == 2
    assert not (stage.store.artefact_folder(attempt) / "work").exists()


def test_a_driver_that_cannot_hold_what_a_proof_reads_stops_the_campaign(stage: Stage) -> None:
    """Every run of that size ran to its end, and was thrown away."""
    words = "reading /out needs 30 GB, but /home has 20 GB free"
    stage.workload.verdicts[2] = DriverSpaceError(words, hint="free 10 GB there")

    with pytest.raises(DriverSpaceError, match="needs 30 GB") as caught:
        stage.run(recovery=FakeRecovery(9))

    again = "continue with `boardcluster run FILE --resume`"
    assert caught.value.hint == f"free 10 GB there, then {again}"
    assert stage.counts() == (1, 0, 1, 2)
    attempt = stage.attempts()[1]
    assert (attempt.state, attempt.reason) == (AttemptState.INVALID, f"storage: {words}")
    assert stage.world.deleted.count(f"/boardcluster/output/{stage.trials[1].id}-1") == 2


def test_an_invalid_attempt_can_be_tried_again_under_a_new_number(stage: Stage) -> None:
    stage.world.jobs[0] = stall
    stage.run([stage.trials[0]])
    stage.run([stage.trials[0]])

    assert stage.counts() == (1, 0, 0, 3)
    tags = [job.tag for job in stage.workload.verified]
    assert tags == [f"{stage.trials[0].id}-2"]
    assert [attempt.number for _, attempt, _ in stage.ended] == [1, 2]


def test_a_submission_that_cannot_be_prepared_is_an_invalid_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RemoteError("no configuration")

    monkeypatch.setattr("boardcluster.campaign.job.write_configuration", refuse)
    stage.run(stage.trials[:2])

    assert stage.counts() == (0, 0, 2, 2)
    assert {attempt.reason for attempt in stage.attempts()} == {"host: no configuration"}


def failing(words: Sequence[str]) -> Callable[..., TrialEnd]:
    rest = iter(words)
    return lambda *_, **__: TrialEnd(state=AttemptState.FAILED, reason=next(rest), measurement=None)


def test_one_cause_that_ends_three_trials_of_several_cells_ends_the_campaign(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"container_17_{number} on 10.0.0.{number}: no space left" for number in range(4)]
    monkeypatch.setattr(module, "run_trial", failing(words))
    trials = sorted(stage.trials, key=lambda trial: trial.repetition)

    with pytest.raises(ClusterError, match=r"3 trials in a row .* for one cause: .*no space left"):
        stage.run(trials)

    assert stage.counts() == (0, 3, 0, 1)


def test_other_causes_and_one_cell_alone_end_no_campaign(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = sorted(stage.trials, key=lambda trial: trial.repetition)
    monkeypatch.setattr(module, "run_trial", failing(["a", "a", "b", "a"]))
    stage.run(trials)
    assert stage.counts() == (0, 4, 0, 0)
    monkeypatch.setattr(module, "run_trial", failing(["a"] * 4))
    one = [trial for trial in trials if trial.engine is trials[0].engine] * 2
    stage.run(one)
    assert len(stage.ended) == 8


def test_a_loss_that_the_trial_reports_ends_the_campaign(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = TrialEnd(
        state=AttemptState.INVALID,
        reason="node_lost: node worker2 unreachable; the job was killed",
        measurement=None,
        lost="node worker2 unreachable",
    )
    monkeypatch.setattr(module, "run_trial", lambda *_, **__: end)

    with pytest.raises(ClusterError, match=r"lost during campaign .*: node worker2 unreachable"):
        stage.run()

    assert stage.counts() == (0, 0, 1, 3)
    assert stage.attempts()[0].reason == end.reason


class FakeRecovery:
    """Mends so many losses, then says why it stops.

    Attributes:
        is_up: whether the cluster came up before these trials.
        skipped: the trials to be skipped.
        told: trial, loss and number of each loss.
    """

    def __init__(self, mends: int, skipped: Sequence[Trial] = (), *, is_up: bool = False) -> None:
        self.mends = mends
        self.is_up = is_up
        self.goes_on_without = False
        self.skipped = list(skipped)
        self.told: list[tuple[str, str, int]] = []

    def is_of_before(self, error: BoardclusterError) -> bool:
        return self.goes_on_without and isinstance(error, UnreachableError)

    def skips(self, trial: Trial) -> bool:
        return trial in self.skipped

    def after(self, trial: Trial, lost: str, *, tries: int) -> str:
        self.told.append((trial.id, lost, tries))
        return "" if len(self.told) <= self.mends else f"{lost}; it stays away"


def lose(stage: Stage, node: str) -> Callable[[], Completed]:
    def job() -> Completed:
        stage.world.unhealthy = [{"nodeHostName": node, "healthReport": "1/1 local-dirs"}]
        return ended(1)

    return job


def find_again(stage: Stage) -> Callable[[Trial], LiveCluster]:
    def cluster(trial: Trial) -> LiveCluster:
        stage.world.unhealthy = []
        return stage.cluster(trial)

    return cluster


def test_after_a_loss_that_was_mended_the_trial_is_run_again(stage: Stage) -> None:
    stage.world.jobs[1:2] = [lose(stage, "worker2"), lose(stage, "worker3"), good]
    recovery = FakeRecovery(2)

    stage.run(cluster=find_again(stage), recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    ends = [(trial.id, attempt.number, attempt.state) for trial, attempt, _ in stage.ended]
    second = stage.trials[1].id
    assert [row[1:] for row in ends if row[0] == second] == [
        (1, AttemptState.INVALID),
        (2, AttemptState.INVALID),
        (3, AttemptState.OK),
    ]
    lost = [(trial, tries) for trial, _, tries in recovery.told]
    assert lost == [(second, 1), (second, 2)]
    assert recovery.told[0][1] == "worker2: 1/1 local-dirs"


def test_what_a_lost_attempt_may_still_run_is_ended_before_the_next_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was out of reach has kept the job running."""
    stage.world.jobs[1:2] = [lose(stage, "worker2"), good]
    away = [RemoteError("YARN is still running what was submitted")]
    ended: list[str] = []

    def end(_: LiveCluster, tag: str) -> None:
        ended.append(tag)
        if away:
            raise away.pop()

    monkeypatch.setattr(module, "end_submission", end)
    recovery = FakeRecovery(2)
    stage.run(cluster=find_again(stage), recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    assert ended == [f"{stage.trials[1].id}-1"] * 2
    assert recovery.told[1][1] == "YARN is still running what was submitted"


def test_a_loss_that_is_not_mended_stops_the_campaign_and_says_why(stage: Stage) -> None:
    stage.world.jobs[1] = lose(stage, "worker2")

    with pytest.raises(ClusterError, match=r"worker2: 1/1 local-dirs; it stays away; the other"):
        stage.run(cluster=find_again(stage), recovery=FakeRecovery(0))

    assert stage.counts() == (1, 0, 1, 2)


def test_a_cluster_that_does_not_come_up_again_is_a_loss_and_one_that_never_did_is_not(
    stage: Stage,
) -> None:
    downs = ["worker1: out of reach", "", ""]

    def cluster(trial: Trial) -> LiveCluster:
        if words := downs.pop(0) if downs else "":
            raise RemoteError(words)
        return stage.cluster(trial)

    with pytest.raises(RemoteError, match="out of reach"):
        stage.run(cluster=cluster, recovery=FakeRecovery(9))
    downs[:] = ["", "worker1: out of reach"]
    recovery = FakeRecovery(9)
    stage.run(cluster=cluster, recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    assert recovery.told == [(stage.trials[1].id, "worker1: out of reach", 1)]


def test_what_helps_against_a_loss_is_said_when_the_campaign_stops(stage: Stage) -> None:
    """The error's own hint was dropped for a general one, which did not help."""
    hint = "run ssh-keygen -R worker1, then `boardcluster up` to see and accept the new one"
    downs = [None, HostKeyError("worker1 presents another host key", hint=hint)]

    def cluster(trial: Trial) -> LiveCluster:
        if error := downs.pop(0):
            raise error
        return stage.cluster(trial)

    with pytest.raises(ClusterError, match="another host key; it stays away") as caught:
        stage.run(cluster=cluster, recovery=FakeRecovery(0))

    again = "continue with `boardcluster run FILE --resume`"
    assert caught.value.hint == f"{hint}, then {again}"


def test_a_board_that_an_earlier_command_lost_is_a_loss_where_a_campaign_goes_on_without(
    stage: Stage,
) -> None:
    """The first run that needed it ended the campaign, whatever ``on_loss`` said."""
    downs = [UnreachableError("worker4: no answer")]

    def cluster(trial: Trial) -> LiveCluster:
        if downs:
            raise downs.pop()
        return stage.cluster(trial)

    recovery = FakeRecovery(9)
    recovery.goes_on_without = True
    stage.run(cluster=cluster, recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    assert recovery.told == [(stage.trials[0].id, "worker4: no answer", 1)]


def test_a_cluster_that_does_not_come_up_for_a_further_round_is_a_loss(stage: Stage) -> None:
    downs = ["worker1: out of reach"]

    def cluster(trial: Trial) -> LiveCluster:
        if downs:
            raise RemoteError(downs.pop())
        return stage.cluster(trial)

    recovery = FakeRecovery(9, is_up=True)
    stage.run(cluster=cluster, recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    assert recovery.told == [(stage.trials[0].id, "worker1: out of reach", 1)]


def test_a_full_disk_of_the_master_is_waited_for_before_an_attempt_begins(stage: Stage) -> None:
    stage.world.disks["master"] = (1000, 20)

    def after(trial: Trial, lost: str, *, tries: int) -> str:
        del stage.world.disks["master"]
        return FakeRecovery.after(recovery, trial, lost, tries=tries)

    recovery = FakeRecovery(1)
    recovery.after = after  # type: ignore[method-assign]
    stage.run(recovery=recovery)

    assert stage.counts() == (4, 0, 0, 0)
    assert recovery.told == [(stage.trials[0].id, "master: its disk is 98.0 % full", 1)]
    assert len(stage.ended) == 4


def test_a_trial_that_needs_what_was_left_out_stays_pending(stage: Stage) -> None:
    stage.run(recovery=FakeRecovery(0, skipped=[stage.trials[2]]))

    assert stage.counts() == (3, 0, 0, 1)
    assert stage.trials[2] not in stage.began


def test_every_trial_gets_its_own_folder_and_tag(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Path, str]] = []

    def run(*arguments: Any, **named: Any) -> TrialEnd:
        given.append((named["folder"], named["attempt"]))
        return run_trial(*arguments, **named)

    monkeypatch.setattr(module, "run_trial", run)
    stage.run()

    assert given == [
        (stage.store.artefact_folder(attempt), f"{attempt.trial_id}-1")
        for attempt in stage.attempts()
    ]
    assert len(set(given)) == 4


def test_prepared_input_is_asked_for_in_the_context_of_each_trial(stage: Stage) -> None:
    seen: list[tuple[Context, Job]] = []
    stage.workload.proving = lambda context, job: seen.append((context, job))

    stage.run()

    assert [context.dataset for context, _ in seen] == [None] * 4  # it takes no text
    assert [context.cache for context, _ in seen] == [stage.tmp_path / "cache"] * 4


def test_reasons_of_interruptions_are_one_line_each() -> None:
    assert interruption(OSError("odd")) == "interrupted: OSError"
    assert interruption(MemoryError()) == "interrupted: MemoryError"


def test_now_is_utc_to_the_second() -> None:
    assert now_utc().endswith("+00:00")
    assert "." not in now_utc()


@pytest.mark.parametrize("settles", [True, False])
def test_a_disturbed_run_is_repeated_after_a_pause_and_each_try_is_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, settles: bool
) -> None:
    paused: list[float] = []

    def pause(seconds: float) -> None:
        if seconds < 1:
            return  # whoever waits for a program that was started
        paused.append(seconds)
        stage.world.foreign_cores = 0.0 if settles else 2.0

    monkeypatch.setattr("boardcluster.campaign.driver.time.sleep", pause)
    stage.world.foreign_cores = 2.0
    (trial, *_) = stage.trials

    stage.run([trial], repeat_tainted=2)

    verdicts = [found.verdict for _, _, found in stage.ended if found]
    last = [Verdict.VALID] if settles else [Verdict.TAINTED] * 2
    assert verdicts == [Verdict.TAINTED, *last]
    assert paused == [10.0] * len(last)
    stored = stage.store.results(stage.campaign.id, all_attempts=True)
    assert [row.attempt.number for row in stored if row.attempt] == [*range(1, len(verdicts) + 1)]


def test_a_run_that_telemetry_does_not_cover_is_repeated_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = [
        TrialEnd(
            state=AttemptState.INVALID, reason=f"telemetry: {n}", measurement=None, passing=True
        )
        for n in range(2)
    ]
    monkeypatch.setattr(module, "run_trial", lambda *_, **__: rest.pop(0))
    monkeypatch.setattr("boardcluster.campaign.driver.time.sleep", lambda _: None)

    stage.run(stage.trials[:1], repeat_tainted=1)

    assert [attempt.reason for _, attempt, _ in stage.ended] == [
        "telemetry: 0",
        "telemetry: 1; attempt 1 was invalid, too",
    ]


@pytest.mark.parametrize(
    ("mends", "on_loss", "attempts"),
    [(True, OnLoss.RESTART, 3), (True, OnLoss.STOP, 1), (False, OnLoss.RESTART, 1)],
)
def test_a_run_without_a_result_is_repeated_where_losses_are_mended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, mends: bool, on_loss: OnLoss, attempts: int
) -> None:
    """Also with ``repeat_tainted = 0``: a medium that stood still left no result."""
    end = TrialEnd(
        state=AttemptState.INVALID, reason="telemetry: no samples", measurement=None, passing=True
    )
    monkeypatch.setattr(module, "run_trial", lambda *_, **__: end)
    monkeypatch.setattr("boardcluster.campaign.driver.time.sleep", lambda _: None)

    recovery = FakeRecovery(9) if mends else None
    stage.run(stage.trials[:1], recovery=recovery, on_loss=on_loss)

    assert len(stage.ended) == attempts


def test_a_run_that_a_model_can_adjust_for_is_not_repeated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(
        "boardcluster.campaign.driver.time.sleep",
        lambda seconds: paused.append(seconds) if seconds >= 1 else None,
    )
    stage.world.foreign_cores = 0.15
    (trial, *_) = stage.trials

    stage.run([trial], repeat_tainted=2)

    [found] = [found for _, _, found in stage.ended if found]
    assert found.verdict is Verdict.TAINTED
    assert [row.cause for row in found.disturbances] == ["foreign load"]
    assert in_cell(found)
    assert paused == []


def test_what_a_run_tolerates_is_what_its_cell_has_reached(stage: Stage) -> None:
    """Runs of one cell only: the fourth knows three before it, and how much those vary."""
    cell = [trial for trial in stage.trials if trial.engine is stage.trials[0].engine]
    stage.run(cell)
    tolerated = [found.tolerated_share for _, _, found in stage.ended if found]
    assert tolerated[:3] == [0.05] * len(tolerated[:3])
    durations = [found.duration_seconds for _, _, found in stage.ended if found]
    for place, share in enumerate(tolerated):
        assert share == precision_reached(durations[:place])


def test_the_results_of_a_campaign_are_read_once_for_all_its_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 10,000 trials, reading them before every run took hours of a campaign."""
    read = Store.results
    asked: list[str | None] = []

    def results(store: Store, campaign_id: str | None = None) -> tuple[Result, ...]:
        asked.append(campaign_id)
        return read(store, campaign_id)

    monkeypatch.setattr(Store, "results", results)
    stage.run()
    assert stage.counts() == (4, 0, 0, 0)
    assert asked == [stage.campaign.id]


def test_a_run_of_an_earlier_session_counts_for_what_the_next_tolerates(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def reached(durations: Sequence[float]) -> float:
        seen.append(len(durations))
        return 0.05

    monkeypatch.setattr(module, "precision_reached", reached)
    own, other = (
        [trial for trial in stage.trials if trial.engine is engine]
        for engine in (Engine.MAPREDUCE, Engine.SPARK)
    )
    stage.run([own[0], other[0]])
    stage.run([own[1], other[1]])
    assert seen == [0, 0, 1, 1]
