"""Runs of a tuning are trials of one campaign, whatever was interrupted before."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest
from tests.unit.cli.desk import Desk
from tests.unit.tuning.surface import request

from boardcluster.campaign.follow import LineProgress
from boardcluster.campaign.submit import UserProgram
from boardcluster.campaign.trial import Bench, TrialEnd
from boardcluster.campaign.tune_runs import ProgramRuns, TuneTools, WorkloadRuns
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.errors import CapacityError, RemoteError, RunError, UnreachableError
from boardcluster.records import AttemptState, Engine, Trial
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.tuning.record import Candidate, Outcome, ProofPlan, begin_record

REQUEST = request(engine=Engine.MAPREDUCE, size_bytes=64_000_000)
POINT = Candidate(
    id="1", origin="search", settings={"mapreduce.task.io.sort.factor": "20"}, params={}
)


@pytest.fixture
def tools(desk: Desk) -> Iterator[TuneTools]:
    cache, follow = desk.home / "cache", LineProgress()
    with Store.open(desk.home) as store:
        cluster = VariantSwitcher(
            desk.home, cache=cache, progress=follow.progress, seen=lambda _: None
        )
        yield TuneTools(
            home=desk.home,
            cache=cache,
            follow=follow,
            store=store,
            declared=desk.declared,
            cluster=cluster,
            clock=monotonic,
        )


def test_what_was_interrupted_keeps_its_place_and_others_come_behind(
    desk: Desk, tools: TuneTools
) -> None:
    desk.ends["wordcount"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        WorkloadRuns(tools, REQUEST).run(POINT, 64_000_000, None)
    del desk.ends["wordcount"]

    runs = WorkloadRuns(tools, REQUEST)  # of the next call, which may choose another size
    small = runs.run(POINT, 16_000_000, None)
    whole = runs.run(POINT, 64_000_000, None)

    assert (small.outcome, whole.outcome) == (Outcome.OK, Outcome.OK)
    trials = tools.store.trials(REQUEST.id)
    assert [(row.position, row.size_bytes) for row in trials] == [(0, 64_000_000), (1, 16_000_000)]
    assert [row.id for row in desk.ran] == [trials[0].id, trials[1].id, trials[0].id]


def test_a_node_that_cannot_be_asked_before_a_run_costs_that_run(
    desk: Desk, tools: TuneTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection may break while no run is under way, which only an attempt would note."""
    answers = [UnreachableError("node2 does not answer", hint="look at its cable")]

    def full_disk(*_: object) -> str:
        if answers:
            raise answers.pop()
        return ""

    monkeypatch.setattr("boardcluster.campaign.driver.full_disk", full_disk)
    runs = WorkloadRuns(tools, REQUEST)
    lost = runs.run(POINT, 64_000_000, None)
    assert (lost.outcome, lost.reason, lost.run) == (Outcome.INVALID, "node2 does not answer", "")
    assert runs.run(POINT, 64_000_000, None).outcome is Outcome.OK
    calls = [call for call in desk.calls if call not in {"attach", "down"}]
    assert len(calls) == 2, "looked again"


def test_a_proof_that_stops_says_what_was_lost(
    desk: Desk, tools: TuneTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> str:
        raise UnreachableError("node2 does not answer", hint="look at its cable")

    monkeypatch.setattr("boardcluster.campaign.driver.full_disk", full_disk)
    record = begin_record(desk.home, REQUEST)
    record.add(ProofPlan(campaign=f"{REQUEST.id}-proof", candidate="1", pairs=5, reason=""))
    with pytest.raises(RunError, match="lost more than once: node2 does not answer"):
        WorkloadRuns(tools, REQUEST).prove(POINT, record)


@pytest.mark.parametrize(("limit_seconds", "timeout_seconds"), [(None, 86_400.0), (40.0, 40.0)])
def test_only_a_limit_of_the_search_stops_a_run_within_a_day(
    tools: TuneTools,
    monkeypatch: pytest.MonkeyPatch,
    limit_seconds: float | None,
    timeout_seconds: float,
) -> None:
    seen: list[float] = []

    def run_trials(*_: object, bench: Bench, **__: object) -> None:
        seen.append(bench.policy.timeout_seconds)

    monkeypatch.setattr("boardcluster.campaign.tune_runs.run_trials", run_trials)
    WorkloadRuns(tools, REQUEST).run(POINT, 64_000_000, limit_seconds)
    assert seen == [timeout_seconds]


class Lost:
    """Stands for a submission: notes what is handed in, and loses a node."""

    def __init__(self) -> None:
        self.arguments: list[tuple[str, ...]] = []

    def __call__(self, *given: object, **_: object) -> None:
        program = given[4]
        assert isinstance(program, UserProgram)
        self.arguments.append(program.arguments)
        raise UnreachableError("node2 does not answer", hint="look at its cable")


def program_runs(tools: TuneTools, *arguments: str) -> ProgramRuns:
    own = request(target="/own/app.py", size_bytes=0, arguments=arguments)
    return ProgramRuns(tools, own, arguments=arguments, cwd=tools.home)


def test_what_a_run_of_a_program_wrote_under_its_own_name_is_deleted(
    desk: Desk, tools: TuneTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []

    class Hdfs:
        def __init__(self, *_: object) -> None: ...

        def delete(self, path: str) -> None:
            deleted.append(path)
            raise RemoteError("there is none", hint="")

    lost = Lost()
    monkeypatch.setattr("boardcluster.campaign.tune_runs.submit_program", lost)
    monkeypatch.setattr("boardcluster.campaign.tune_runs.WebHdfs", Hdfs)
    own = program_runs(
        tools,
        *("/data/in", "/data/out-{run}/part", "out-{run}", "--out=/b/{run}.txt"),
        *("hdfs:///c/{run}", "hdfs://master:8020/d/{run}/x", "file:/tmp/{run}", "s3a://b/{run}"),
        *("/e#{run}", "hdfs://{run}/f", "n=5"),
    )
    own.run(POINT, 0, None)
    own.run(POINT, 0, None)
    assert lost.arguments[0] != lost.arguments[1], "each run writes elsewhere"
    assert lost.arguments[0][0] == "/data/in"
    run = lost.arguments[0][2].removeprefix("out-")
    user = f"/user/{desk.live().layout.user}"
    assert {path for path in deleted if run in path} == {
        *(f"/data/out-{run}", f"{user}/out-{run}", f"/b/{run}.txt"),
        *(f"/c/{run}", f"/d/{run}", f"/e#{run}"),
    }
    assert len(deleted) == 12


def test_a_program_is_not_run_on_a_full_disk(
    tools: TuneTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise CapacityError("the disk is 95 % full", hint="free some")

    lost = Lost()
    monkeypatch.setattr("boardcluster.campaign.tune_runs.submit_program", lost)
    monkeypatch.setattr("boardcluster.campaign.tune_runs.require_space_for_run", full)
    with pytest.raises(CapacityError):
        program_runs(tools).run(POINT, 0, None)
    assert lost.arguments == []


def test_a_proof_tells_why_runs_of_it_failed(
    desk: Desk, tools: TuneTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [TrialEnd(state=AttemptState.FAILED, reason="oom: too little", measurement=None)]

    def run_trial(live: LiveCluster, trial: Trial, *rest: object, **named: object) -> TrialEnd:
        if failures and trial.settings:
            return failures.pop()
        return desk.run_trial(live, trial, *rest, **named)

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", run_trial)
    record = begin_record(desk.home, REQUEST)
    record.add(ProofPlan(campaign=f"{REQUEST.id}-proof", candidate="1", pairs=5, reason=""))
    made = WorkloadRuns(tools, REQUEST).prove(POINT, record)
    assert (len(made.runs), made.failures) == (9, ["oom: too little"])
