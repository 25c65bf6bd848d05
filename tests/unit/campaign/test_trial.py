"""One attempt at a trial: alone and as a mix, what it measures, and what each end is called."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.builders import make_proof, make_trial
from tests.unit.campaign import world as made_up
from tests.unit.campaign.fake_workload import PROOF, FakeWorkload, dataset_in
from tests.unit.campaign.world import AGENT, PHASES, Node, World, app, ended

from boardcluster.analysis.phases import engine_phases, submissions
from boardcluster.campaign import observation
from boardcluster.campaign import trial as module
from boardcluster.campaign.accounting import NO_STORAGE
from boardcluster.campaign.trial import Bench, TrialEnd, run_trial
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DriverSpaceError,
    HostError,
    InstallError,
    MeasuringLimitError,
    NotThereError,
    RemoteError,
    RemoteTimeoutError,
    UnreachableError,
    UsageError,
    VerificationError,
)
from boardcluster.records import (
    HOST,
    AttemptState,
    CachePolicy,
    Checksum,
    Dataset,
    Engine,
    Measurement,
    NodeLimits,
    PlannedFault,
    Policy,
    Trial,
    Verdict,
    Verification,
)
from boardcluster.remote.gate import Completed
from boardcluster.services.operation import LiveCluster
from boardcluster.workloads.base import Context, InputKind, JobSpec, Need, Phase

PATIENCE_SECONDS = 20.0
"""Bound of a wait that ends at once when the program is right."""


def trial_of(workload: str = "fake", **fields: Any) -> Trial:
    return make_trial(workload, **{"engine": Engine.MAPREDUCE, **fields})


@dataclass
class Bed:
    """Where one trial runs.

    Attributes:
        texts: trials for which a text was asked.
    """

    live: LiveCluster
    world: World
    folder: Path
    workloads: dict[str, FakeWorkload] = field(default_factory=dict)
    texts: list[Trial] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def workload(self) -> FakeWorkload:
        return self.workloads.setdefault("fake", FakeWorkload())

    def run(self, trial: Trial | None = None, policy: Policy | None = None) -> TrialEnd:
        bench = Bench(
            policy=policy or Policy(timeout_seconds=60),
            cache=self.folder / "cache",
            progress=lambda what, *_: self.said.append(what),
            text=self.text,
        )
        return run_trial(
            self.live, trial or trial_of(), bench, folder=self.folder / "attempt", attempt="t-1"
        )

    def text(self, trial: Trial) -> Dataset:
        self.texts.append(trial)
        return dataset_in(self.folder)

    def measured(self, trial: Trial | None = None, policy: Policy | None = None) -> Measurement:
        end = self.run(trial, policy)
        assert (end.state, end.reason, end.lost) == (AttemptState.OK, "", "")
        assert end.measurement is not None
        return end.measurement

    def left(self) -> set[object]:
        """Return outputs of which the last deletion is not behind the last submission, and folders.

        The folders are those on nodes, in which jobs have their configuration and work.
        """
        outputs = {path for path in self.world.deleted if self.world.deleted.count(path) < 2}
        return {*outputs, *self.world.folders_left()}


@pytest.fixture
def bed(live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    bed = Bed(live, world, tmp_path)
    monkeypatch.setattr(
        "boardcluster.campaign.trial_jobs.load_workload",
        lambda name: bed.workloads.setdefault(name, FakeWorkload(name=name)),
    )
    world.jobs = [ended]
    return bed


def mix(*names: str, concurrency: int = 1, **fields: Any) -> Trial:
    return trial_of("+".join(names), concurrency=concurrency, **fields)


@dataclass
class FakeLimits:
    """In place of a Limiter: remembers what was done to the limits last."""

    done: str = "set"
    limits: tuple[NodeLimits, ...] = ()

    def lift(self) -> None:
        self.done = "lifted"

    def set(self) -> None:
        self.done = "set"

    def set_shares(self, shares: Mapping[str, float]) -> None:
        assert shares == {}

    def changed(self, *, links: bool) -> list[str]:
        return []

    def cpu_seconds(self) -> dict[str, float]:
        return {}


def during_the_job(bed: Bed, limits: FakeLimits) -> list[str]:
    """Limit a cluster at a dilation of 4; return how each of its jobs finds the limits."""
    stand_in: Any = limits
    bed.live = replace(bed.live, limiter=stand_in, state=replace(bed.live.state, dilation=4.0))
    found: list[str] = []

    def job() -> Completed:
        found.append(limits.done)
        return ended()

    bed.world.jobs = [job]
    return found


@pytest.mark.parametrize(("warm_up", "then"), [(False, "set"), (True, "lifted")])
def test_only_a_warm_up_of_emulated_boards_runs_at_full_speed(
    bed: Bed, *, warm_up: bool, then: str
) -> None:
    limits = FakeLimits()
    found = during_the_job(bed, limits)
    measurement = bed.measured(trial_of(warm_up=warm_up))
    assert (found, limits.done) == ([then], "set")
    assert measurement.dilation == (1.0 if warm_up else 4.0)
    said = [line for line in measurement.remarks if "full speed" in line]
    assert len(said) == warm_up


@pytest.mark.parametrize(
    ("warm_up", "fault"), [(False, PlannedFault.KILL), (True, PlannedFault.NONE)]
)
def test_a_warm_up_at_full_speed_has_no_fault(
    bed: Bed, *, warm_up: bool, fault: PlannedFault
) -> None:
    """A fault lasts as long as at the boards' speed: the load would end before it."""
    during_the_job(bed, FakeLimits())
    bed.workloads["fake"] = FakeWorkload(faults=tuple(PlannedFault))
    measurement = bed.measured(trial_of(warm_up=warm_up, fault=PlannedFault.KILL))
    assert bed.workload.verified[0].spec.fault is fault
    assert ("this warm-up had no fault kill" in measurement.remarks) == warm_up


def test_a_warm_up_also_heats_boards_whose_heat_is_modelled(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "heat_models", lambda nodes: {nodes[0].name: object()})
    found = during_the_job(bed, FakeLimits())
    bed.measured(trial_of(warm_up=True))
    assert found == ["set"]


def test_a_warm_up_that_fails_leaves_the_limits_set(bed: Bed) -> None:
    limits = FakeLimits()
    during_the_job(bed, limits)
    bed.world.jobs = [lambda: ended(1)]
    assert bed.run(trial_of(warm_up=True)).state is AttemptState.FAILED
    assert limits.done == "set"


class FakeHeartbeat:
    """A heartbeat that a test makes report a loss."""

    def __init__(self, live: LiveCluster, *, on_loss: Callable[[str], None]) -> None:
        self.report = on_loss
        self.lost, self.is_storage = "", False
        self.watching = False
        beats.append(self)

    def __enter__(self) -> Self:
        self.watching = True
        return self

    def __exit__(self, *_: object) -> None:
        self.watching = False


beats: list[FakeHeartbeat] = []


@pytest.fixture
def heartbeat(monkeypatch: pytest.MonkeyPatch) -> list[FakeHeartbeat]:
    beats.clear()
    monkeypatch.setattr(module, "Heartbeat", FakeHeartbeat)
    return beats


def test_one_job_is_measured_without_what_lies_between_its_phases(bed: Bed) -> None:
    bed.workload.made = (
        Phase(name="write", command=("w",), yarn=False),
        Phase(name="read", command=("r",)),
    )
    bed.workload.figures = {"throughput_mebibytes_per_second": 8.5}
    bed.world.jobs = [lambda: ended(seconds=2.0), lambda: ended(seconds=0.5)]

    measurement = bed.measured()

    assert measurement == Measurement(
        duration_seconds=2.5,
        input_bytes=1000,
        output_bytes=4321,
        counters={"TaskCounter/SPILLED_RECORDS": 12},
        verification=PROOF,
        exit_status=0,
        application_id="application_1_0001",
        figures={"throughput_mebibytes_per_second": 8.5},
        phases_seconds={
            "write": 2.0,
            "read": 0.5,
            **{f"read/{name}": took for name, took in PHASES.items()},
        },
        intermediate_bytes=None,
        node_written_bytes=dict.fromkeys(bed.live.remotes, 700),
        node_read_bytes=dict.fromkeys(bed.live.remotes, 30),
        remarks=(),
        verdict=Verdict.VALID,
    )


def test_artefacts_lie_in_the_attempts_own_folder(bed: Bed) -> None:
    bed.measured()

    folder = bed.folder / "attempt"
    assert {path.name for path in folder.iterdir()} == {"conf", "count", "case.json"}


@pytest.mark.parametrize("engine", [Engine.HTTP, Engine.GALERA, Engine.GLUSTER])
def test_storage_of_a_service_that_ends_with_the_run_is_left_out(bed: Bed, engine: Engine) -> None:
    """Its processes are gone by then, and what the kernel counted for them with them."""
    bed.workload.engines = (engine,)
    bed.workload.made = (Phase(name="load", command=("load",), yarn=False),)
    bed.world.jobs = [ended]

    measurement = bed.measured(trial_of(engine=engine))

    assert (measurement.node_written_bytes, measurement.node_read_bytes) == ({}, {})
    assert NO_STORAGE in measurement.remarks


def test_bytes_are_counted_around_the_run_only(bed: Bed) -> None:
    totals: list[int] = []

    def look() -> Completed:
        totals.append(bed.world.storage["worker1"]["bounded"])
        return ended()

    bed.workload.preparing = lambda *_: totals.append(len(bed.world.storage))
    bed.world.jobs = [look]

    bed.measured()

    assert totals == [0, 700]
    assert bed.world.storage["worker1"]["bounded"] == 1400  # nothing was asked after the proof


def test_programs_that_nobody_can_see_are_remarked(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their load was no load at all, and the run as valid as any."""
    monkeypatch.setattr("boardcluster.telemetry.collector._FIRST_PROCESS", Path("/nowhere"))
    bed.world.jobs = [ended]
    bed.world.apps["t-1"] = [[app("SUCCEEDED")]]

    [remark] = bed.measured().remarks

    assert "this machine hides those of other users" in remark


def test_conditions_come_before_the_run_and_what_was_not_met_is_remarked(bed: Bed) -> None:
    bed.world.caches_kept = "not permitted"
    bed.workload.made = (
        Phase(name="one", command=("x",), drops_caches=True),
        Phase(name="two", command=("x",), drops_caches=True),
    )
    bed.world.jobs = [ended, ended]
    first, second = app("SUCCEEDED"), app("SUCCEEDED", number=2)
    bed.world.apps["t-1"] = [[first], [first], [first, second]]

    measurement = bed.measured(policy=Policy(timeout_seconds=60, cache=CachePolicy.DROP, trim=True))

    # Said once, though it happened three times.
    assert measurement.remarks == ("page caches kept: not permitted",)
    verbs = [verb for verb in bed.world.verbs() if verb in ("trim", "drop caches", "submit")]
    assert verbs == [
        *["trim"] * 5,
        *("drop caches", "drop caches", "submit", "drop caches", "submit"),
    ]


def test_a_policy_of_kept_caches_drops_none(bed: Bed) -> None:
    bed.measured(policy=Policy(timeout_seconds=60, cache=CachePolicy.KEEP))

    assert "drop caches" not in bed.world.verbs()


def test_every_node_is_watched_while_its_jobs_run(bed: Bed) -> None:
    bed.world.jobs = [lambda: ended(seconds=4.0)]

    telemetry = bed.run().telemetry

    assert telemetry is not None
    assert [node.node for node in telemetry.nodes] == [*bed.live.remotes, HOST]
    assert telemetry.duration_seconds == pytest.approx(4.0)
    assert telemetry.phases["count"] == pytest.approx((0.0, 4.0))
    agents = [row for row in bed.world.started.values() if row["argv"] == [AGENT]]
    assert {row["node"] for row in agents} == {*bed.live.remotes, HOST}
    assert {row["env"]["BOARDCLUSTER_ATTEMPT"] for row in agents} == {"t-1"}
    for remote in (*bed.live.remotes.values(), bed.live.host):
        assert isinstance(remote, Node)
        assert not [path for path in remote.files if "telemetry-" in path]


def dating(monkeypatch: pytest.MonkeyPatch, *, ahead_seconds: float = 0.0) -> Completed:
    """End a job after 8 s of its own time, dated by a clock that is ahead of the driver's."""
    began = round((time.time() + ahead_seconds) * 1000)
    times = {"submitTime": began + 1000, "finishTime": began + 9000}
    task = {"type": "MAP", "startTime": began + 2000, "finishTime": began + 7000}
    monkeypatch.setattr(made_up, "JOB", made_up.JOB | times)
    monkeypatch.setattr(made_up, "TASKS", {"tasks": {"task": [task]}})
    return ended(seconds=8.0)


@pytest.mark.parametrize("ahead_seconds", [0.0, -7200.0])
def test_phases_of_the_engine_lie_within_their_submission_whatever_the_clock(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    monkeypatch.setattr(
        World,
        "do_moment",
        lambda *_: {
            "monotonic_seconds": time.monotonic(),
            "wall_seconds": time.time() + ahead_seconds,
            "boot_id": "a boot",
            "free_bytes": 10**12,
        },
    )
    bed.workload.made = (Phase(name="read", command=("r",)),)
    bed.world.jobs = [lambda: dating(monkeypatch, ahead_seconds=ahead_seconds)]

    telemetry = bed.run().telemetry

    assert telemetry is not None
    assert list(telemetry.phases) == ["read", "read/start", "read/map", "read/commit"]
    assert telemetry.phases["read/map"] == pytest.approx((2.0, 7.0), abs=0.5)
    # The job's own end is 9 s: later than that of its submission, to which it is cut.
    assert telemetry.phases["read/commit"][1] == pytest.approx(8.0)


def test_phases_of_the_engine_in_a_mix_are_named_after_their_job(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.world.jobs = [lambda: dating(monkeypatch)] * 2
    bed.workloads["sort"] = FakeWorkload(name="sort")

    telemetry = bed.run(mix("grep", "sort")).telemetry

    assert telemetry is not None
    assert set(submissions(telemetry.phases)) == {"1-grep/count", "2-sort/count"}
    for name in ("1-grep/count", "2-sort/count"):
        assert set(engine_phases(telemetry.phases, name)) == set(PHASES)


def test_a_run_beside_which_hdfs_copies_says_so(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boardcluster.campaign.conditions._COPY_LEAST_SECONDS", 0.0)
    bed.world.space |= {"PendingReplicationBlocks": 7, "ScheduledReplicationBlocks": 1}

    found = bed.measured(policy=Policy(timeout_seconds=60, loss_wait_seconds=0.0))

    assert "HDFS was still copying 8 blocks when the run began" in found.remarks
    assert "waiting until HDFS has copied blocks of which it lacks copies" in bed.said


def test_a_run_that_cannot_be_watched_is_not_begun(bed: Bed) -> None:
    node: Any = bed.live.remotes["worker2"]

    def refuse(*_: object, **__: object) -> None:
        raise RemoteError("worker2: no process can be started")

    node.start = refuse

    end = bed.run()

    assert (end.state, end.measurement) == (AttemptState.INVALID, None)
    assert end.reason == "host: no telemetry of worker2: worker2: no process can be started"
    assert end.passing  # mostly the network was broken for a moment
    assert bed.world.submissions == []


def test_a_run_that_telemetry_does_not_cover_is_invalid(bed: Bed) -> None:
    bed.world.mute = {"worker2"}

    end = bed.run()

    assert end.state is AttemptState.INVALID
    assert end.reason.startswith("telemetry: worker2: gave no samples")
    assert end.measurement is not None
    assert end.measurement.verdict is Verdict.INVALID
    assert any("no telemetry of worker2" in remark for remark in end.measurement.remarks)


def sleep_through(bed: Bed, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """Let this machine be suspended for two hours while a job runs."""
    real, asleep = time.clock_gettime, [0.0]

    def job() -> Completed:
        asleep[0] = 7200.0
        return ended(status)

    monkeypatch.setattr(
        time,
        "clock_gettime",
        lambda which: real(which) + asleep[0] * (which == time.CLOCK_BOOTTIME),
    )
    bed.world.jobs = [job]


def test_a_run_through_which_this_machine_slept_is_invalid(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep_through(bed, monkeypatch, 0)

    end = bed.run()

    assert end.state is AttemptState.INVALID
    assert end.reason == "telemetry: this machine slept for 2 h 00 min 00 s"
    assert end.measurement is not None
    assert end.measurement.verdict is Verdict.INVALID


def test_a_job_that_fails_while_this_machine_sleeps_is_not_blamed(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep_through(bed, monkeypatch, 1)

    end = bed.run()

    assert (end.state, end.lost) == (AttemptState.INVALID, "")
    assert end.reason.startswith(
        "clock: this machine slept for 2 h 00 min 00 s; count: exit status 1"
    )


def test_a_job_that_fails_when_a_clock_is_set_is_not_blamed(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ("worker2: its wall clock was set back by 30 s",)
    monkeypatch.setattr(observation, "clock_steps", lambda samples: steps if samples else ())
    bed.world.jobs = [lambda: ended(1)]

    end = bed.run()

    assert end.state is AttemptState.INVALID
    assert end.reason.startswith(f"clock: {steps[0]}; count: exit status 1")


def test_what_was_before_a_cool_down_does_not_taint_the_run(bed: Bed) -> None:
    """The baseline is the quiet moment before the run, and not the heat of the run before."""
    bed.world.jobs = [lambda: ended(seconds=10.0)]
    telemetry = bed.run().telemetry
    assert telemetry is not None
    node = telemetry.nodes[-1]
    seconds = np.arange(-120.0, 11.0)
    bits = np.where(seconds < -100, 4.0, 0.0)
    hot = replace(node, seconds=seconds, columns={"throttle_bits": bits})
    until = observation._before(hot)
    assert until.seconds[0] > -13
    assert not until.columns["throttle_bits"].any()


def test_a_disturbed_run_is_tainted_and_names_what_disturbed_it(bed: Bed) -> None:
    bed.world.foreign_cores = 2.0
    bed.world.jobs = [lambda: ended(seconds=10.0)]

    end = bed.run()

    assert (end.state, end.excluded) == (AttemptState.OK, True)
    assert end.measurement is not None
    (reason,) = end.measurement.verdict_reasons
    assert reason.startswith("host: other programs used")
    assert "make" in reason


def test_text_is_prepared_for_workloads_that_take_it(bed: Bed) -> None:
    bed.workloads = {
        "grep": FakeWorkload(name="grep", input_kind=InputKind.TEXT),
        "pi": FakeWorkload(name="pi", input_kind=InputKind.NOTHING),
    }
    bed.world.jobs = [ended, ended]
    trial = mix("grep", "pi")

    bed.measured(trial)

    assert bed.texts == [trial]
    (context,) = bed.workloads["grep"].contexts
    assert context.dataset == dataset_in(bed.folder)
    (context,) = bed.workloads["pi"].contexts
    assert context.dataset is None
    assert bed.workloads["pi"].verified[0].spec.size_bytes == 0


def test_replication_and_checksums_of_a_trial_reach_its_configuration(bed: Bed) -> None:
    bed.measured(trial_of(replication=3, checksum=Checksum.NULL))

    root = ElementTree.parse(bed.folder / "attempt" / "conf" / "hdfs-site.xml")
    rows = {row.findtext("name"): row.findtext("value") for row in root.iter("property")}
    assert (rows["dfs.replication"], rows["dfs.checksum.type"]) == ("3", "NULL")


def test_warm_ups_run_and_are_proved_like_others(bed: Bed) -> None:
    assert bed.measured(trial_of(warm_up=True)).verification == PROOF


def test_a_mix_in_turn(bed: Bed) -> None:
    bed.world.jobs = [lambda: ended(seconds=2.0), lambda: ended(seconds=3.0)]
    bed.world.apps["t-1-2-sort"] = [[app("SUCCEEDED", number=2)]]
    bed.workloads["sort"] = FakeWorkload(name="sort", figures={"rate_rows_per_second": 7.0})

    measurement = bed.measured(mix("grep", "sort"))

    # What lies between the jobs, gathering logs and the like, is not in it.
    assert measurement.duration_seconds == 5.0
    assert measurement.input_bytes == 2000
    assert measurement.output_bytes == 2 * 4321
    assert measurement.counters == {"TaskCounter/SPILLED_RECORDS": 24}
    assert measurement.application_id == "application_1_0002"
    assert measurement.figures == {"2-sort/rate_rows_per_second": 7.0}
    assert measurement.phases_seconds == {
        "1-grep": 2.0,
        "2-sort": 3.0,
        "1-grep/count": 2.0,
        **{f"1-grep/count/{name}": took for name, took in PHASES.items()},
        "2-sort/count": 3.0,
        **{f"2-sort/count/{name}": took for name, took in PHASES.items()},
    }
    programs = [row["argv"][0] for row in bed.world.submissions]
    assert programs == ["grep", "sort"]


def test_jobs_of_a_mix_have_their_own_folders_tags_and_outputs(bed: Bed) -> None:
    bed.world.jobs = [ended, ended]

    bed.measured(mix("grep", "grep"))

    folder = bed.folder / "attempt"
    assert {path.name for path in folder.iterdir()} == {"1-grep", "2-grep"}
    jobs = bed.workloads["grep"].verified
    assert [job.tag for job in jobs] == ["t-1,t-1-1-grep", "t-1,t-1-2-grep"]
    outputs = ["/boardcluster/output/t-1-1-grep", "/boardcluster/output/t-1-2-grep"]
    assert [job.output_path for job in jobs] == outputs
    assert bed.world.deleted == outputs * 2  # both before, both after
    assert bed.world.asked_tags == ["t-1-1-grep", "t-1-2-grep"]


def test_proofs_of_a_mix_are_joined(bed: Bed) -> None:
    one = make_proof("A", digest="1" * 64)
    two = make_proof("B", digest="2" * 64, records=4)
    bed.workloads = {
        "grep": FakeWorkload(name="grep", proof=one),
        "sort": FakeWorkload(name="sort", proof=two),
    }
    bed.world.jobs = [ended] * 3

    proof = bed.measured(mix("grep", "sort", "grep")).verification

    digest = hashlib.sha256(b"1" * 64 + b"2" * 64 + b"1" * 64).hexdigest()
    assert proof == Verification(
        method="A; B", expected_sha256=digest, actual_sha256=digest, records=10
    )


def test_a_proof_that_does_not_hold_spoils_the_joined_one(bed: Bed) -> None:
    wrong = replace(PROOF, actual_sha256="cd" * 32)
    bed.workloads["sort"] = FakeWorkload(name="sort", proof=wrong)
    bed.world.jobs = [ended, ended]

    proof = bed.measured(mix("grep", "sort")).verification

    assert proof is not None
    assert proof.expected_sha256 != proof.actual_sha256


@pytest.mark.parametrize("all_say", [True, False])
def test_intermediate_bytes_need_the_word_of_every_job(all_say: bool, bed: Bed) -> None:
    group = "org.apache.hadoop.mapreduce.FileSystemCounter"
    row = {"name": "FILE_BYTES_WRITTEN", "totalCounterValue": 50}
    counters = {"jobCounters": {"counterGroup": [{"counterGroupName": group, "counter": [row]}]}}
    bed.world.counters = counters
    bed.world.jobs = [ended, ended]
    if not all_say:
        mute = Phase(name="count", command=("mpi",), yarn=False)
        bed.workloads["sort"] = FakeWorkload(name="sort", made=(mute,))

    measurement = bed.measured(mix("grep", "sort"))

    assert measurement.intermediate_bytes == (100 if all_say else None)


class Gate:
    """Jobs that meet: counts how many run at once, and lets them go on when enough did."""

    def __init__(self, together: int) -> None:
        self._together = together
        self._changed = threading.Condition()
        self.running = 0
        self.arrived = 0
        self.most = 0

    def job(self) -> Completed:
        with self._changed:
            self.running += 1
            self.arrived += 1
            self.most = max(self.most, self.running)
            wanted = min(self._together * -(-self.arrived // self._together), 4)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.arrived >= wanted, timeout=PATIENCE_SECONDS)
            self.running -= 1
        return ended()


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (4, 4)])
def test_as_many_jobs_run_at_once_as_the_trial_says(concurrency: int, most: int, bed: Bed) -> None:
    gate = Gate(concurrency)
    bed.world.programs = dict.fromkeys(("grep", "sort"), gate.job)

    measurement = bed.measured(mix("grep", "sort", "grep", "sort", concurrency=concurrency))

    assert gate.most == most
    assert gate.arrived == 4
    labels = [name for name in measurement.phases_seconds if "/" not in name]
    assert labels == ["1-grep", "2-sort", "3-grep", "4-sort"]


def test_a_mix_at_once_lasts_from_the_first_start_to_the_last_end(bed: Bed) -> None:
    bed.world.programs = {
        "grep": lambda: ended(seconds=700.0),
        "sort": lambda: ended(seconds=200.0),
    }

    # Both begin at about the same moment, so the longer one decides.
    took = bed.measured(mix("grep", "sort", concurrency=2)).duration_seconds
    assert took == pytest.approx(700, abs=60)


@pytest.mark.parametrize("failing", ["grep", "sort"])
def test_one_failing_job_of_a_mix_ends_the_others_and_fails_the_attempt(
    failing: str, bed: Bed
) -> None:
    killed = threading.Event()
    both = threading.Barrier(2)
    waited: list[bool] = []
    other = "sort" if failing == "grep" else "grep"
    bed.world.when_ended = killed.set

    def fail() -> Completed:
        both.wait(PATIENCE_SECONDS)
        return ended(7)

    def wait() -> Completed:
        both.wait(PATIENCE_SECONDS)
        waited.append(killed.wait(PATIENCE_SECONDS))
        return ended(143)

    bed.world.programs = {failing: fail, other: wait}

    end = bed.run(mix("grep", "sort", "grep", "sort", concurrency=2))

    assert waited == [True]  # ended because it was killed, not of itself
    assert (end.state, end.measurement) == (AttemptState.FAILED, None)
    assert end.reason.startswith("count: exit status 7")
    assert len(bed.world.submissions) == 2  # the other two never began
    assert bed.left() == set()


def test_a_failing_job_of_a_mix_in_turn_is_the_last_one(bed: Bed) -> None:
    bed.world.programs = {"grep": lambda: ended(7), "sort": ended}

    end = bed.run(mix("sort", "grep", "sort"))

    assert end.state is AttemptState.FAILED
    assert [row["argv"][0] for row in bed.world.submissions] == ["sort", "grep"]


def test_ctrl_c_ends_a_mix(bed: Bed) -> None:
    def interrupt() -> Completed:
        raise KeyboardInterrupt

    bed.world.programs = {"grep": interrupt, "sort": ended}

    with pytest.raises(KeyboardInterrupt):
        bed.run(mix("grep", "sort", concurrency=2))

    assert {mark for _, mark in bed.world.ended} == {"BOARDCLUSTER_ATTEMPT=t-1"}
    assert bed.left() == set()


def test_a_run_that_does_not_fit_is_no_failure_of_the_trial(bed: Bed) -> None:
    bed.workloads["grep"] = FakeWorkload(name="grep", space=Need(input_bytes=9, run_bytes=700))
    bed.workloads["sort"] = FakeWorkload(name="sort", space=Need(input_bytes=9, run_bytes=400))
    bed.world.space = {"CapacityRemaining": 1099}

    end = bed.run(mix("grep", "sort"))

    assert (end.state, end.measurement, end.lost) == (AttemptState.INVALID, None, "")
    assert end.reason == (
        "storage: output and intermediate data take 700 B (1-grep) + 400 B (2-sort) = 1.1 KB, "
        "but the nodes have 1.1 KB left"
    )
    assert bed.world.submissions == []
    assert bed.left() == set()


def test_a_run_that_just_fits_runs(bed: Bed) -> None:
    bed.workload.space = Need(input_bytes=10**15, run_bytes=1100)  # the input is there already
    bed.world.space = {"CapacityRemaining": 1100}

    bed.measured()


ERRORS: list[tuple[BoardclusterError, AttemptState, str]] = [
    (VerificationError("3 words differ"), AttemptState.FAILED, "3 words differ"),
    (MeasuringLimitError("the client was busy"), AttemptState.INVALID, "the client was busy"),
    (NotThereError("no /out/part-0"), AttemptState.FAILED, "no /out/part-0"),
    (InstallError("no network"), AttemptState.INVALID, "host: no network"),
    (CapacityError("the disk\nbecame full"), AttemptState.INVALID, "storage: the disk became full"),
    (HostError("no sort here"), AttemptState.INVALID, "host: no sort here"),
]


@pytest.mark.parametrize("during", ["prepare", "prove"])
@pytest.mark.parametrize(("error", "state", "reason"), ERRORS)
def test_what_an_error_makes_of_the_attempt(
    error: BoardclusterError, state: AttemptState, reason: str, during: str, bed: Bed
) -> None:
    def fail(*_: object) -> None:
        raise error

    if during == "prepare":
        bed.workload.preparing = fail
    else:
        bed.workload.proving = fail

    assert bed.run() == TrialEnd(state=state, reason=reason, measurement=None)
    assert bed.left() == set()


@pytest.mark.parametrize("during", ["preparing", "proving"])
@pytest.mark.parametrize("kind", [RemoteError, RemoteTimeoutError])
def test_what_fails_on_a_node_outside_the_job_is_no_result_and_is_tried_again(
    kind: type[RemoteError], during: str, bed: Bed
) -> None:
    """A NameNode that was slow for a moment made a run ``failed``, which no resume repeats."""

    def fail(*_: object) -> None:
        raise kind("HDFS: listing /out failed")

    setattr(bed.workload, during, fail)

    assert bed.run() == TrialEnd(
        state=AttemptState.INVALID,
        reason="host: HDFS: listing /out failed",
        measurement=None,
        passing=True,
    )
    assert {mark for _, mark in bed.world.ended} == {"BOARDCLUSTER_ATTEMPT=t-1"}
    assert bed.left() == set()


def test_a_driver_without_room_for_the_proof_is_told_and_not_judged(bed: Bed) -> None:
    """Every further run of that size was made, and then thrown away like this one."""

    def fail(*_: object) -> None:
        raise DriverSpaceError("reading /out needs 30 GB")

    bed.workload.proving = fail

    with pytest.raises(DriverSpaceError, match="needs 30 GB"):
        bed.run()

    assert bed.left() == set()


def test_a_driver_without_room_for_an_input_costs_only_the_runs_that_read_it(bed: Bed) -> None:
    def fail(*_: object) -> None:
        raise DriverSpaceError("sorting the input needs 30 GB")

    bed.workload.preparing = fail

    assert bed.run().reason == "storage: sorting the input needs 30 GB"
    assert bed.world.submissions == []


@pytest.mark.parametrize("during", ["preparing", "proving"])
def test_an_outage_that_is_over_says_nothing_of_the_trial(during: str, bed: Bed) -> None:
    def fail(*_: object) -> None:
        raise UnreachableError("worker1: the connection broke")

    setattr(bed.workload, during, fail)

    end = bed.run()

    assert (end.state, end.reason) == (
        AttemptState.INVALID,
        "node_lost: worker1: the connection broke",
    )
    assert end.passing
    assert not end.lost
    assert {mark for _, mark in bed.world.ended} == {"BOARDCLUSTER_ATTEMPT=t-1"}


def test_a_case_that_makes_no_sense_is_a_failure(bed: Bed) -> None:
    bed.workload.refuses = UsageError("grep: a size of 0 bytes")

    end = bed.run()

    assert (end.state, end.reason) == (AttemptState.FAILED, "grep: a size of 0 bytes")
    assert bed.world.deleted == []


def stall() -> Completed:
    raise RemoteTimeoutError("did not end")


def test_a_stalled_job_is_invalid(bed: Bed) -> None:
    bed.world.jobs = [stall]

    end = bed.run()

    assert (end.state, end.measurement, end.lost) == (AttemptState.INVALID, None, "")
    assert end.reason.startswith("stalled: not done after 60 s")


def test_a_job_that_stalls_because_yarn_gave_a_node_up_says_so(bed: Bed) -> None:
    bed.world.jobs = [stall]
    bed.world.unhealthy = [{"nodeHostName": "worker2", "healthReport": "full"}]

    end = bed.run()

    assert (end.state, end.lost) == (AttemptState.INVALID, "worker2: full")
    assert end.reason.startswith("storage: worker2: full; stalled: not done after 60 s")


def test_nodes_that_yarn_gave_up_make_a_failure_invalid_and_are_lost(bed: Bed) -> None:
    bed.world.jobs = [lambda: ended(1)]
    bed.world.unhealthy = [
        {"nodeHostName": "worker2", "healthReport": "1/1 local-dirs have errors"},
        {"nodeHostName": "worker3", "healthReport": "1/1 log-dirs have errors"},
    ]

    end = bed.run()

    sick = "worker2: 1/1 local-dirs have errors; worker3: 1/1 log-dirs have errors"
    assert (end.state, end.lost) == (AttemptState.INVALID, sick)
    assert end.reason.startswith(f"storage: {sick}; count: exit status 1")


@pytest.mark.parametrize(
    "words",
    [
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create directory",
        "Name node is in safe mode. Resources are low on NN.",
    ],
)
def test_a_failure_for_safe_mode_is_the_storages_and_stops_the_campaign(
    words: str, bed: Bed
) -> None:
    def fail(*_: object) -> None:
        raise RemoteError(words)

    bed.workload.preparing = fail

    end = bed.run()

    assert (end.state, end.lost) == (
        AttemptState.INVALID,
        "HDFS is in safe mode, so nothing can be written",
    )
    assert end.reason.startswith("storage: HDFS is in safe mode")


@pytest.mark.parametrize("gone", [set(), {"worker2"}])
def test_a_disk_that_was_full_makes_a_failure_invalid_also_when_it_has_room_again(
    bed: Bed, gone: set[str]
) -> None:
    """A job that fails deletes its output; HDFS has no room when its DataNodes are gone, too."""

    def fail(*_: object) -> None:
        bed.world.disks = {"worker2": (1000, 140), "worker3": (1000, 500)}
        bed.world.lost = gone
        raise RemoteError("File /x could only be written to 0 of the 1 minReplication nodes; Task")

    bed.workload.preparing = fail

    end = bed.run()

    told = "no DataNode took a block (worker2: its disk is 86.0 % full now)"
    assert end.state is AttemptState.INVALID
    assert end.lost == ("node worker2" if gone else told)
    assert end.reason.startswith(f"{'node_lost' if gone else 'storage'}: {end.lost}; File /x could")


def test_a_masters_full_disk_is_seen_too(bed: Bed) -> None:
    def fill() -> Completed:
        bed.world.disks = {"master": (1000, 40)}
        return ended(1)

    bed.world.jobs = [fill]

    assert bed.run().lost == "master: its disk is 96.0 % full"


def test_a_disk_that_is_full_before_yarn_looks_makes_a_failure_invalid(bed: Bed) -> None:
    def fill() -> Completed:
        bed.world.disks = {"worker2": (1000, 40), "worker3": (1000, 101)}
        return ended(1)

    bed.world.jobs = [fill]

    end = bed.run()

    assert (end.state, end.lost) == (AttemptState.INVALID, "worker2: its disk is 96.0 % full")
    assert end.reason.startswith("storage: worker2: its disk is 96.0 % full; count: exit status 1")


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("EXT4-fs error (device sdb1): old\nusb 1-1: new device\n", ""),
        (
            "EXT4-fs error (device sda1): iget\nEXT4-fs (sda1): Remounting filesystem read-only\n",
            " (kernel: EXT4-fs (sda1): Remounting filesystem read-only)",
        ),
    ],
)
def test_a_disk_that_died_comes_before_the_daemon_that_died_of_it(
    log: str, words: str, bed: Bed
) -> None:
    def fail() -> Completed:
        bed.world.read_only.add("worker2")
        bed.world.dead.add(("datanode", "worker2"))
        bed.world.kernel_log = log
        return ended(1)

    bed.world.jobs = [fail]

    end = bed.run()

    assert (end.state, end.lost) == (
        AttemptState.INVALID,
        f"worker2: its disk cannot be written to: Read-only file system{words}",
    )
    assert end.reason.startswith(f"storage: {end.lost}; count: exit status 1")


@pytest.mark.parametrize(
    "told", ["", "File /x could only be written to 0 of the 1 minReplication nodes"]
)
def test_a_disk_that_stood_still_and_works_again_is_not_the_jobs_fault(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    """It takes no block meanwhile, which is not for want of room."""
    bed.world.default_apps = [app("FAILED", diagnostics=told)]
    words = {"worker2": "its disk sda did nothing for 64 s"}
    monkeypatch.setattr("boardcluster.campaign.observation.standstills", lambda *_, **__: words)
    bed.world.jobs = [lambda: ended(1)]

    end = bed.run()

    assert end.state is AttemptState.INVALID
    assert end.reason.startswith("storage: worker2: its disk sda did nothing for 64 s; count: exit")
    assert end.lost == "worker2: its disk sda did nothing for 64 s"


def test_a_job_without_memory_is_blamed_though_its_node_stood_still_and_swapped(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"worker2": "no sample could be written for 30 s"}
    monkeypatch.setattr("boardcluster.campaign.observation.standstills", lambda *_, **__: words)
    bed.world.jobs = [lambda: ended(1)]
    bed.world.default_apps = [app("FAILED", diagnostics="java.lang.OutOfMemoryError")]

    assert bed.run().state is AttemptState.FAILED


def test_a_yarn_that_does_not_answer_leaves_the_failure_as_it_is(bed: Bed) -> None:
    def fail() -> Completed:
        bed.world.yarn_answers = False
        return ended(1)

    bed.world.jobs = [fail]

    assert bed.run().state is AttemptState.FAILED


def test_reasons_are_one_bounded_line(bed: Bed) -> None:
    bed.workload.verdicts[1] = VerificationError("word\n" * 10_000)

    reason = bed.run().reason

    assert reason.startswith("word word")
    assert len(reason) <= 1000
    assert "\n" not in reason


def test_a_loss_while_the_job_runs_kills_the_submission(
    bed: Bed, heartbeat: list[FakeHeartbeat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    running = [app("UNDEFINED", state="RUNNING")]
    bed.world.apps["t-1"] = [running]
    ends: list[list[str]] = []

    def lose() -> Completed:
        assert heartbeat[0].watching
        heartbeat[0].report("node worker2 unreachable from master (timed out)")
        ends.append(sorted({node for node, _ in bed.world.ended}))
        assert bed.world.killed == ["application_1_0001"]
        return ended(143)

    bed.world.jobs = [lose]

    end = bed.run()

    words = "node worker2 unreachable from master (timed out)"
    assert (end.state, end.measurement, end.lost) == (AttemptState.INVALID, None, words)
    assert end.reason.startswith(f"node_lost: {words}; count: exit status 143, YARN says KILLED")
    assert ends == [sorted(bed.live.remotes)]
    assert {mark for _, mark in bed.world.ended} == {"BOARDCLUSTER_ATTEMPT=t-1"}
    assert bed.left() == set()
    assert not heartbeat[0].watching


def test_a_loss_that_the_job_survives_spoils_its_time(
    bed: Bed, heartbeat: list[FakeHeartbeat]
) -> None:
    def lose() -> Completed:
        heartbeat[0].report("datanode on worker2 refuses connections")
        return ended()

    bed.world.jobs = [lose]

    end = bed.run()

    assert (end.state, end.lost) == (
        AttemptState.INVALID,
        "datanode on worker2 refuses connections",
    )
    assert end.reason == (
        "node_lost: datanode on worker2 refuses connections during the run; the output was right"
    )
    assert end.measurement is not None
    assert end.measurement.verification == PROOF


def test_a_loss_during_which_yarn_does_not_answer_either_is_still_a_loss(
    bed: Bed, heartbeat: list[FakeHeartbeat]
) -> None:
    def lose() -> Completed:
        bed.world.yarn_answers = False
        heartbeat[0].report("node master unreachable")
        return ended(1)

    bed.world.jobs = [lose]

    end = bed.run()

    assert (end.state, end.lost) == (AttemptState.INVALID, "node master unreachable")


def test_preparing_and_proving_are_not_watched(bed: Bed, heartbeat: list[FakeHeartbeat]) -> None:
    seen: list[bool] = []
    bed.workload.preparing = lambda *_: seen.append(any(beat.watching for beat in heartbeat))
    bed.workload.proving = lambda *_: seen.append(heartbeat[0].watching)

    bed.measured()

    assert seen == [False, False]


def test_a_loss_ends_what_prepares_over_mpi(bed: Bed, heartbeat: list[FakeHeartbeat]) -> None:
    """HPL's search would wait for the worker for ever."""
    lost = "node worker2 unreachable from master (timed out)"

    def search() -> Completed:
        assert heartbeat[0].watching
        heartbeat[0].report(lost)
        return ended(143)

    def prepare(context: Context, job_spec: JobSpec) -> None:
        made = Phase(name="search", command=("xhpl",), yarn=False)
        context.run_job(Engine.MPI, lambda _: made)

    bed.workload.engines = (Engine.MPI,)
    bed.workload.preparing = prepare
    bed.world.jobs = [search]

    end = bed.run(trial_of(engine=Engine.MPI))

    assert (end.state, end.measurement, end.lost) == (AttemptState.INVALID, None, lost)
    assert end.reason.startswith(f"node_lost: {lost}; search: exit status 143")
    assert {mark for _, mark in bed.world.ended} == {"BOARDCLUSTER_ATTEMPT=t-1"}
    assert not heartbeat[0].watching


def test_a_daemon_that_ended_is_found_after_a_failure_of_any_kind(bed: Bed) -> None:
    def lose(*_: object) -> None:
        bed.world.dead.add(("nodemanager", "worker4"))

    bed.workload.proving = lose
    bed.workload.verdicts[1] = VerificationError("3 words differ")

    end = bed.run()

    assert end == TrialEnd(
        state=AttemptState.INVALID,
        reason="node_lost: nodemanager on worker4; 3 words differ",
        measurement=None,
        lost="nodemanager on worker4",
    )


def names_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["argv"][0] for row in rows]


def test_preparations_of_all_jobs_come_before_the_first_run(bed: Bed) -> None:
    submitted: list[list[str]] = []
    bed.workloads = {name: FakeWorkload(name=name) for name in ("grep", "sort")}
    for workload in bed.workloads.values():
        workload.preparing = lambda *_: submitted.append(names_of(bed.world.submissions))
        workload.proving = lambda *_: submitted.append(names_of(bed.world.submissions))
    bed.world.jobs = [ended, ended]

    bed.measured(mix("grep", "sort"))

    assert submitted == [[], [], ["grep", "sort"], ["grep", "sort"]]
