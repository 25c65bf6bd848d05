"""A driver that is killed at every commit point, on nodes that are made up: I1 to I4 of a campaign.

The store, its files and the driver are the real ones. Six of the points are tried with real
daemons in tests/integration/test_campaign.py.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.builders import make_campaign
from tests.killing import kill_at
from tests.unit.campaign.fake_workload import FakeWorkload, dataset_in
from tests.unit.campaign.planning import plan_trials
from tests.unit.campaign.world import World, ended

from boardcluster.campaign.driver import Watch, run_trials
from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.trial import Bench
from boardcluster.campaign.upkeep import recover
from boardcluster.fetch.cache import no_progress
from boardcluster.records import AttemptState, Campaign, Engine, Policy, Trial
from boardcluster.services import disk_space
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.store.recovery import rebuild

TRIALS = 3
KILLED = "interrupted: the driver was killed"
_DATABASE = "boardcluster.store.database"
_FILES = "boardcluster.store.files"
_JOB = "boardcluster.campaign.job:JobRun"
_TRIAL = "boardcluster.campaign.trial"
PLAN_POINTS = [
    (f"{_DATABASE}:write_record", "before", 1),
    (f"{_DATABASE}:write_record", "after", 1),
    (f"{_DATABASE}:transaction", "after", 2),
]
"""Where the plan becomes durable: before and after its file, and after its transaction."""

POINTS = [
    # The first record is the plan; then an attempt begins.
    (f"{_DATABASE}:write_record", "before", 2),
    (f"{_DATABASE}:write_record", "after", 1),
    (f"{_FILES}:put_in_place", "before", 1),
    # Its steps.
    (f"{_JOB}.prepare", "before", 1),
    (f"{_JOB}.prepare", "after", 1),
    (f"{_TRIAL}:prepare_conditions", "after", 1),
    (f"{_TRIAL}:storage_totals", "after", 1),
    (f"{_JOB}.run", "before", 1),
    (f"{_JOB}.run", "after", 1),
    (f"{_JOB}.prove", "after", 1),
    (f"{_JOB}.clean", "after", 1),
    # It ends: before and after its file, and after its transaction.
    (f"{_DATABASE}:write_record", "before", 3),
    (f"{_FILES}:put_in_place", "before", 3),
    (f"{_FILES}:put_in_place", "after", 3),
    (f"{_DATABASE}:write_record", "after", 3),
    ("boardcluster.campaign.driver:_finish", "after", 1),
]
"""Where the driver is killed in its first trial: function, moment, and how many calls in."""


@dataclass
class Drive:
    """A driver with a home, which can be killed and started again."""

    home: Path
    live: LiveCluster
    world: World
    campaign: Campaign
    trials: tuple[Trial, ...]

    def run(self) -> None:
        """Do what ``run`` and ``run --resume`` do: what has no verified result yet."""
        self.world.jobs = [ended] * TRIALS
        with Store.open(self.home) as store:
            recover(store, LineProgress(lambda _: None))
            if not store.campaigns():
                store.add_campaign(self.campaign, self.trials)
            states = store.states(self.campaign.id)
            run_trials(
                store,
                self.campaign,
                [trial for trial in self.trials if states[trial.id] is not AttemptState.OK],
                cluster=lambda _: self.live,
                bench=Bench(
                    policy=Policy(timeout_seconds=60, repeat_tainted=0),
                    cache=self.home / "cache",
                    progress=no_progress,
                    text=lambda _: dataset_in(self.home),
                ),
                watch=Watch(began=lambda _: None, ended=lambda *_: None),
            )

    def killed(self, point: tuple[str, str, int]) -> int:
        """Run in a process that is killed at a point; return the signal that ended it."""
        child = os.fork()
        if child == 0:
            try:
                kill_at(*point)
                self.run()
            finally:
                os._exit(1)  # it was not killed
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def drive(
    live: LiveCluster,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Drive:
    campaign = make_campaign()
    trials = plan_trials(
        campaign,
        workload="fake",
        engines=(Engine.MAPREDUCE,),
        profile="default",
        size_bytes=1000,
        workers=4,
        repetitions=TRIALS,
    )
    monkeypatch.setattr(disk_space, "require_disk_space", lambda _: None)
    monkeypatch.setattr("boardcluster.campaign.trial_jobs.load_workload", lambda _: FakeWorkload())
    return Drive(tmp_path / "home", live, world, campaign, trials)


pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.mark.parametrize(
    "point", [*PLAN_POINTS, *POINTS], ids=lambda point: "-".join(map(str, point))
)
def test_a_kill_costs_one_attempt_at_most(drive: Drive, point: tuple[str, str, int]) -> None:
    assert drive.killed(point) == -signal.SIGKILL

    drive.run()
    assert not list((drive.home / "attempts").rglob("work")), "outputs that were being verified"

    with Store.open(drive.home) as store:
        summary = store.summary(drive.campaign.id)
        assert (summary.planned, summary.ok) == (TRIALS, TRIALS)
        rows = store.results(drive.campaign.id, all_attempts=True)
        attempts = [row.attempt for row in rows if row.attempt]
    for trial in drive.trials:
        states = [attempt.state for attempt in attempts if attempt.trial_id == trial.id]
        assert states[-1] is AttemptState.OK
        assert set(states[:-1]) <= {AttemptState.INVALID}
    assert len(attempts) <= TRIALS + 1
    rebuild(drive.home)
    with Store.open(drive.home) as store:
        again = store.results(drive.campaign.id, all_attempts=True)
        assert [row.attempt for row in again] == attempts


@pytest.mark.parametrize("point", PLAN_POINTS, ids=lambda point: "-".join(map(str, point)))
def test_the_plan_is_stored_whole_or_not_at_all(drive: Drive, point: tuple[str, str, int]) -> None:
    assert drive.killed(point) == -signal.SIGKILL

    with Store.open(drive.home) as store:
        store.mark_interrupted(KILLED)
        stored = store.campaigns()
        assert len(stored) == (0 if point[1] == "before" else 1)
        for campaign in stored:
            assert store.trials(campaign.id) == drive.trials
