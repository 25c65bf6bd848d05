"""The life of a campaign, with the real store: what ends how, and what is never ok."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from boardcluster.campaign.driver import Watch, now_utc, run_campaign
from boardcluster.campaign.plan import plan_trials
from boardcluster.errors import ClusterError, RemoteError, RemoteTimeoutError, VerificationError
from boardcluster.fetch.cache import no_progress
from boardcluster.records import (
    Attempt,
    AttemptState,
    Dataset,
    Engine,
    Measurement,
    Trial,
    Verification,
)
from boardcluster.remote.gate import Completed
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.workloads.base import Prepared, Submission

PROOF = Verification(
    method="made up", expected_sha256="ab" * 32, actual_sha256="ab" * 32, records=3
)


def ended(status: int = 0, *, seconds: float = 12.5) -> Completed:
    return Completed(
        argv=("job",), returncode=status, stdout=b"", stderr=b"", duration_seconds=seconds
    )


def good() -> Completed:
    return ended()


class FakeWorkload:
    """A workload whose verification is a script; it finds the output right unless told so."""

    name = "fake"
    engines = (Engine.MAPREDUCE, Engine.SPARK)

    def __init__(self) -> None:
        self.verdicts: dict[int, BaseException] = {}
        self.verified: list[Submission] = []
        self.prepare_fails: BaseException | None = None
        self.looks: Callable[[], None] = lambda: None

    def prepare(
        self, live: LiveCluster, dataset: Dataset, *, cache: Path, progress: Any
    ) -> Prepared:
        if self.prepare_fails:
            raise self.prepare_fails
        return Prepared(dataset=dataset, input_path="/in", expected=cache / "expected")

    def command(self, live: LiveCluster, prepared: Prepared, job: Submission) -> list[str]:
        return ["job", job.engine, prepared.input_path, job.output_path]

    def verify(
        self, live: LiveCluster, prepared: Prepared, job: Submission, *, work: Path
    ) -> Verification:
        self.verified.append(job)
        self.looks()
        work.mkdir()
        (work / "large").write_text("only needed for the proof")
        if verdict := self.verdicts.get(len(self.verified)):
            raise verdict
        return PROOF


@dataclass
class Stage:
    """A campaign that is about to run.

    Attributes:
        began: trials as they were announced.
        ended: attempts as they were announced.
    """

    live: LiveCluster
    world: Any
    store: Store
    trials: tuple[Trial, ...]
    campaign: Any
    tmp_path: Path
    workload: FakeWorkload = field(default_factory=FakeWorkload)
    began: list[Trial] = field(default_factory=list)
    ended: list[tuple[Trial, Attempt, Measurement | None]] = field(default_factory=list)

    def run(self) -> None:
        run_campaign(
            self.live,
            self.store,
            self.campaign,
            self.trials,
            workload=self.workload,
            dataset=Dataset(
                name="flights",
                path=self.tmp_path / "flights",
                size_bytes=1000,
                sha256="cd" * 32,
                source="made up",
            ),
            cache=self.tmp_path / "cache",
            timeout_seconds=60,
            watch=Watch(
                progress=no_progress,
                began=self.began.append,
                ended=lambda *row: self.ended.append(row),
            ),
        )

    def counts(self) -> tuple[int, int, int, int]:
        summary = self.store.summary(self.campaign.id)
        counts = (summary.ok, summary.failed, summary.invalid, summary.pending)
        assert sum(counts) == summary.planned == len(self.trials)
        return counts

    def attempts(self) -> list[Attempt]:
        results = self.store.results(self.campaign.id)
        return [result.attempt for result in results if result.attempt]


@pytest.fixture
def stage(live: LiveCluster, world: Any, make_campaign: Any, tmp_path: Path) -> Iterator[Stage]:
    campaign = make_campaign()
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
    with Store.open(tmp_path / "home") as store:
        yield Stage(live, world, store, trials, campaign, tmp_path)


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


def test_artefacts_stay_and_the_work_of_the_proof_goes(stage: Stage) -> None:
    stage.run()

    for attempt in stage.attempts():
        folder = stage.store.artefact_folder(attempt)
        names = {path.name for path in folder.iterdir()}
        assert {"conf", "stdout.txt", "stderr.txt", "counters.json"} <= names
        assert "work" not in names
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
    stage.world.apps[tag] = [
        [
            {
                "id": "application_1_0001",
                "state": "FAILED",
                "finalStatus": "FAILED",
                "diagnostics": "java.lang.OutOfMemoryError: Java heap space",
                "startedTime": 1,
            }
        ]
    ]

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[0]
    assert attempt.reason == (
        "oom (raise the node's memory in cluster.toml, or mapreduce.map.memory.mb, "
        "mapreduce.reduce.memory.mb, spark.executor.memory): "
        "exit status 1, YARN says FAILED: java.lang.OutOfMemoryError: Java heap space"
    )
    assert measurement is None
    assert len(stage.workload.verified) == 3


def test_a_job_that_yarn_calls_failed_is_no_result_though_it_exits_with_0(stage: Stage) -> None:
    failed = {
        "id": "application_1_0001",
        "state": "FINISHED",
        "finalStatus": "FAILED",
        "startedTime": 1,
    }
    stage.world.default_apps = [failed]

    stage.run()

    assert stage.counts() == (0, 4, 0, 0)


def test_a_job_that_yarn_never_saw_is_failed_though_it_ends_well(stage: Stage) -> None:
    tag = f"{stage.trials[1].id}-1"
    stage.world.apps[tag] = [[]]

    stage.run()

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[1]
    assert attempt.state is AttemptState.FAILED
    assert attempt.reason == (
        "the job ended well, but YARN never saw it: it did not run on the cluster"
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
    "lost connection": Ending(AttemptState.FAILED, job=cut),
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
    job, before = stage.world.jobs[1], []

    def submit() -> Completed:
        before.extend(stage.world.deleted)
        stage.world.refused_deletes = int(refused)
        return job()  # type: ignore[no-any-return]

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
    stage.workload.looks = lambda: seen.append(len(stage.world.deleted))

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

    assert stage.counts() == (3, 1, 0, 0)
    _, attempt, measurement = stage.ended[1]
    assert (attempt.state, attempt.reason) == (AttemptState.FAILED, "master: out of reach")
    assert measurement is None


def test_a_node_lost_during_a_job_makes_it_invalid_and_stops_the_campaign(stage: Stage) -> None:
    def lose() -> Completed:
        stage.world.lost.add("worker3")
        return ended(1)

    stage.world.jobs[1] = lose

    with pytest.raises(ClusterError, match=r"node worker3.*the trials left stay pending") as caught:
        stage.run()

    assert "boardcluster status" in caught.value.hint
    assert stage.counts() == (1, 0, 1, 2)
    assert len(stage.began) == 2
    _, attempt, measurement = stage.ended[1]
    assert attempt.reason.startswith("node_lost: node worker3; exit status 1")
    assert measurement is None


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
    assert attempt.reason == (
        "node_lost: datanode on worker1 ended during the run; the output was right"
    )
    assert measurement is not None  # kept, but no result


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyboardInterrupt(), "Ctrl-C or SIGTERM"),
        (SystemExit(143), "Ctrl-C or SIGTERM"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
)
def test_an_interrupted_attempt_is_invalid_and_the_rest_pending(
    error: BaseException, why: str, stage: Stage
) -> None:
    def interrupt() -> Completed:
        raise error

    stage.world.jobs[2] = interrupt

    with pytest.raises(type(error)):
        stage.run()

    assert stage.counts() == (2, 0, 1, 1)
    attempt = stage.attempts()[2]
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason == f"interrupted: {why}"
    assert attempt.ended_utc


def test_a_submission_that_cannot_be_prepared_is_a_failed_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RemoteError("no configuration")

    monkeypatch.setattr("boardcluster.campaign.driver.Execution", refuse)
    stage.run()

    assert stage.counts() == (0, 4, 0, 0)
    assert {attempt.reason for attempt in stage.attempts()} == {"no configuration"}


def test_ctrl_c_during_the_proof_is_no_result(stage: Stage) -> None:
    stage.workload.verdicts[1] = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        stage.run()

    assert stage.counts() == (0, 0, 1, 3)


def test_ctrl_c_while_preparing_leaves_the_plan(stage: Stage) -> None:
    stage.workload.prepare_fails = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        stage.run()

    assert stage.counts() == (0, 0, 0, 4)
    assert stage.began == []


def test_the_attempt_is_on_record_while_the_job_runs(stage: Stage) -> None:
    seen: list[AttemptState] = []

    def look() -> Completed:
        result = stage.store.results(stage.campaign.id)[0]
        assert result.attempt is not None
        seen.append(result.attempt.state)
        return ended()

    stage.world.jobs[0] = look
    stage.run()

    assert seen == [AttemptState.RUNNING]


def test_time_is_stored_in_utc_to_the_second() -> None:
    text = now_utc()

    assert text.endswith("+00:00")
    assert len(text) == len("2026-08-01T12:00:00+00:00")
