"""The search finds what is good, prunes what is not, and follows from its record alone."""

from __future__ import annotations

import dataclasses
import errno
import math
import os
from pathlib import Path

import pytest
from tests.unit.tuning.surface import (
    SPACE,
    World,
    begin,
    field,
    request,
    search,
    sit,
    work_seconds,
)

from boardcluster.errors import StoreError
from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Objective,
    Outcome,
    Purpose,
    Sitting,
    TrialRecord,
    TuningRecord,
    begin_record,
    read_record_file,
    read_records,
)
from boardcluster.tuning.sampler import Tried, propose
from boardcluster.tuning.search import (
    SearchEnd,
    Standing,
    Step,
    next_step,
    proof_pairs,
    proof_seconds,
    sizes_of,
)
from boardcluster.tuning.summary import summarise_tuning

GOOD = {"a.instances": "8", "a.fraction": "0.6", "a.compiler": "fast"}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_the_time_of_25_runs_it_finds_what_takes_half_of_the_base(seed: int) -> None:
    record = begin(seed=seed)
    assert search(record, World(), field()) is SearchEnd.BUDGET
    best = Standing(record).best
    assert best is not None
    assert work_seconds(record.candidates[best].settings) < 0.6 * work_seconds({})
    assert record.spent_seconds <= 1600 - proof_seconds(62, 5) + 60


def test_a_good_profile_of_others_is_tried_first_and_kept() -> None:
    record = begin(budget_seconds=1200.0)
    search(record, World(), field({"upstream": GOOD}))
    purposes = [row.purpose for row in record.runs]
    assert purposes[:4] == [Purpose.BASE, Purpose.BASE, Purpose.BASE, Purpose.KNOWN]
    assert Standing(record).best == "upstream"


def test_most_runs_are_small_ones_and_the_good_are_promoted() -> None:
    record = begin()
    search(record, World(), field())
    at = [sum(row.rung == rung for row in record.runs) for rung in range(3)]
    assert at[2] > at[1] > 0
    assert at[2] > at[0] > 1
    standing = Standing(record)
    promoted = {row.candidate for row in record.runs if row.rung == 0} - {BASE}
    scores = [standing.score(name, 2) for name in promoted]
    assert all(score is not None and score < math.log(1.05) for score in scores)


def test_sizes_that_save_nothing_are_left_out() -> None:
    record = begin(budget_seconds=7000.0)
    search(record, World(start_seconds=300.0), field(), runs_most=6)
    assert [row.rung for row in record.runs] == [0, 1, 0, 0, 0, 0]
    assert sizes_of(3_000_000) == (3_000_000,)
    assert sizes_of(0) == (0,)
    assert all(size % 1000 == 0 for size in sizes_of(99_999_900)[1:])


def test_what_takes_much_longer_than_the_best_is_stopped() -> None:
    record = begin(seed=3, budget_seconds=8000.0)
    search(record, World(start_seconds=0.1, times=6.0, noise=0.0), field())
    stopped = [row for row in record.runs if row.outcome is Outcome.STOPPED]
    assert stopped
    for row in stopped:
        before = record.runs[: record.runs.index(row)]
        took = [r.seconds for r in before if r.rung == row.rung and r.outcome is Outcome.OK]
        assert row.seconds == pytest.approx(max(20.0, 2 * min(took)))
        assert row.candidate != BASE


def test_a_machine_that_grows_slow_does_not_make_late_points_worse() -> None:
    def speed(spent_seconds: float) -> float:
        return 1.0 if spent_seconds < 300 else 1.6

    record = begin(seed=5)
    search(record, World(noise=0.0, speed=speed), field())
    standing = Standing(record)
    low, high = standing.drift
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(1.6)
    late = [
        row
        for row in record.runs
        if row.spent_seconds > 450 and row.outcome is Outcome.OK and row.rung == 2
    ]
    assert len(late) > 5
    base = 2 + work_seconds({}) / 8
    for row in late:
        true = 2 + work_seconds(record.candidates[row.candidate].settings) / 8
        assert math.exp(standing.relative(row)) == pytest.approx(true / base, rel=0.02)
    assert sum(row.purpose is Purpose.DRIFT for row in record.runs) >= 4


def test_the_best_is_measured_again() -> None:
    record = begin()
    search(record, World(), field())
    assert any(row.purpose is Purpose.AGAIN for row in record.runs)


def test_failed_points_are_kept_and_the_search_goes_on() -> None:
    world = World(fails=lambda settings: int(settings.get("a.instances", "1")) > 16)
    record = begin(seed=2)
    assert search(record, world, field()) is SearchEnd.BUDGET
    failed = [row for row in record.runs if row.outcome is Outcome.FAILED]
    assert failed
    assert {row.reason for row in failed} == {"oom: too little"}
    assert all(row.candidate != Standing(record).best for row in failed)


def test_one_failure_after_the_other_stops_it_with_the_cause() -> None:
    record = begin()
    world = World(fails=bool)  # everything but the base
    assert search(record, world, field()) is SearchEnd.FAILING
    assert [row.outcome for row in record.runs[-4:]] == [Outcome.FAILED] * 4
    found = next_step(record, field(), spent_seconds=record.spent_seconds)
    assert found.cause == "oom: too little"
    sit(record)  # who goes on has mended the cause
    assert next_step(record, field(), spent_seconds=record.spent_seconds).step is not None


def test_a_base_that_fails_twice_stops_it() -> None:
    record = begin()
    assert search(record, World(fails=lambda _: True), field()) is SearchEnd.FAILING
    assert len(record.runs) == 2


def test_sizes_at_which_the_base_cannot_run_are_left_out() -> None:
    # As a pattern that matches nothing in a quarter of a log.
    record = begin()
    world = World(fails_at=lambda _, step: step.rung > 0)
    assert search(record, world, field({"upstream": GOOD})) is SearchEnd.BUDGET
    small = [row for row in record.runs if row.rung > 0]
    assert [(row.candidate, row.rung) for row in small] == [(BASE, 1), (BASE, 1)]
    assert Standing(record).rungs == (0,)
    assert Standing(record).best == "upstream"


def test_making_the_input_for_the_first_run_is_not_taken_for_a_part_of_every_run() -> None:
    record = begin()
    world = World()
    for expected in (62.0 + 20, 62.0 + 1):
        step = Step(
            candidate=record.candidates[BASE], rung=0, purpose=Purpose.BASE, limit_seconds=None
        )
        run = world.run(record, step)
        first = not record.runs
        record.add(dataclasses.replace(run, wall_seconds=run.wall_seconds + 300 * first))
        assert Standing(record).wall_seconds(0) == pytest.approx(expected, rel=0.05)


def test_a_base_that_fails_later_at_a_smaller_size_stops_the_search() -> None:
    record = begin()
    world = World(fails_at=lambda record, step: len(record.runs) > 6)
    assert search(record, world, field()) is SearchEnd.FAILING
    assert len(record.runs) < 12


def test_what_fails_now_and_then_is_not_the_best() -> None:
    def third_time(record: TuningRecord, step: Step) -> bool:
        before = sum((row.candidate, row.rung) == ("upstream", 0) for row in record.runs)
        return (step.candidate.id, step.rung) == ("upstream", 0) and before == 1

    record = begin(budget_seconds=1400.0)
    search(record, World(fails_at=third_time), field({"upstream": GOOD}))
    whole = [row.outcome for row in record.runs if (row.candidate, row.rung) == ("upstream", 0)]
    assert whole[:2] == [Outcome.OK, Outcome.FAILED]
    assert Standing(record).best != "upstream"


def lost_so_far(record: TuningRecord, name: str, rung: int) -> int:
    return sum((r.candidate, r.rung, r.outcome) == (name, rung, "invalid") for r in record.runs)


@pytest.mark.parametrize("rung", [0, 2])
def test_a_run_that_was_lost_says_nothing_and_is_made_again(rung: int) -> None:
    def once(record: TuningRecord, step: Step) -> bool:
        at = (step.candidate.id, step.rung)
        return at == ("upstream", rung) and not lost_so_far(record, *at)

    record = begin(budget_seconds=1200.0)
    search(record, World(loses=once), field({"upstream": GOOD}))
    own = [row for row in record.runs if row.candidate == "upstream" and row.rung == rung]
    assert [row.outcome for row in own[:2]] == [Outcome.INVALID, Outcome.OK]


def test_a_candidate_whose_runs_are_lost_twice_counts_as_failed() -> None:
    record = begin(budget_seconds=1200.0)
    world = World(loses=lambda _, step: step.candidate.id == "upstream")
    assert search(record, world, field({"upstream": GOOD})) is SearchEnd.BUDGET
    assert lost_so_far(record, "upstream", 2) == 2
    assert Standing(record).score("upstream", 2) == pytest.approx(math.log(10))


def hand_made(
    record: TuningRecord,
    candidate: str,
    *,
    outcome: Outcome,
    run: str = "t/1",
    times: float = 1.0,
    watts: float = 1.0,
) -> None:
    """Add a run at the whole size that took half the base's time if it ended well.

    With watts, its value is energy x time.
    """
    seconds = 0.0 if outcome is Outcome.INVALID else 60.0 if candidate == BASE else 30.0
    seconds *= times
    record.add(
        TrialRecord(
            candidate=candidate,
            rung=0,
            purpose=Purpose.BASE if candidate == BASE else Purpose.PROMOTED,
            outcome=outcome,
            seconds=seconds,
            value=seconds if watts == 1.0 else watts * seconds * seconds,
            wall_seconds=seconds + 1,
            spent_seconds=record.spent_seconds + seconds + 1,
            run=run,
            reason="",
        )
    )


@pytest.mark.parametrize(
    ("lost", "run", "counts"), [(1, "t/1", False), (2, "t/1", True), (3, "", False)]
)
def test_only_losses_in_a_row_of_runs_that_began_count(lost: int, run: str, counts: bool) -> None:
    record = begin()
    record.add(Candidate(id="one", origin="search", settings={"a.idle": "1"}, params={"idle": 1}))
    hand_made(record, BASE, outcome=Outcome.OK)
    for _ in range(2):  # another loss hours later is another
        hand_made(record, "one", outcome=Outcome.OK)
        for _ in range(lost):
            hand_made(record, "one", outcome=Outcome.INVALID, run=run)
    score = Standing(record).score("one", 0)
    assert score is not None
    assert (score > math.log(0.5) + 1e-9) == counts
    assert (Standing(record).best is None) == counts


@pytest.mark.parametrize(("objective", "times"), [("time", 2), ("both", 2), ("energy", 4)])
def test_a_run_may_take_longer_where_only_energy_counts(objective: str, times: int) -> None:
    record = begin(objective=Objective(objective))
    hand_made(record, BASE, outcome=Outcome.OK)
    assert Standing(record).limit_seconds("one", 0) == pytest.approx(60.0 * times)


def test_a_limit_follows_the_machines_time_and_not_its_energy_times_time() -> None:
    record = begin(objective=Objective.BOTH)
    hand_made(record, BASE, outcome=Outcome.OK, watts=5.0)
    hand_made(record, BASE, outcome=Outcome.OK, watts=5.0, times=0.5)  # twice as fast since
    assert Standing(record).limit_seconds("one", 0) == pytest.approx(60.0)


def test_a_lost_look_at_the_base_is_made_again() -> None:
    def the_first_of_drift(record: TuningRecord, step: Step) -> bool:
        return step.purpose is Purpose.DRIFT and not lost_so_far(record, BASE, 2)

    record = begin()
    search(record, World(loses=the_first_of_drift), field())
    looks = [place for place, row in enumerate(record.runs) if row.purpose is Purpose.DRIFT]
    first, second = looks[:2]
    assert (second - first, record.runs[second].outcome) == (1, Outcome.OK)


def test_runs_lost_one_after_the_other_stop_it() -> None:
    record = begin()
    world = World(loses=lambda _, step: step.candidate.id != BASE)
    assert search(record, world, field()) is SearchEnd.FAILING
    last = record.runs[-4:]
    assert {row.outcome for row in last} == {Outcome.INVALID}
    assert [row.candidate for row in last] == ["1", "1", "2", "2"]


@pytest.mark.parametrize("budget_seconds", [830.0, 885.0, 900.0, 950.0])
def test_a_budget_that_is_just_enough_has_room_for_the_whole_size(budget_seconds: float) -> None:
    """The base takes 63 s, five pairs 693: 819 s are needed, before smaller sizes are looked at."""
    record = begin(budget_seconds=budget_seconds)
    search(record, World(noise=0.0), field({"upstream": GOOD}))
    assert any(row.rung == 0 and row.candidate != BASE for row in record.runs)
    best = Standing(record).best
    assert best is not None
    assert work_seconds(record.candidates[best].settings) < work_seconds({})


def test_smaller_sizes_are_looked_at_once_there_is_room() -> None:
    record = begin(budget_seconds=830.0)
    search(record, World(noise=0.0), field({"upstream": GOOD}))
    assert {row.rung for row in record.runs} == {0}
    record.add(Sitting(started_utc="2026-08-01T13:00:00+00:00", budget_seconds=1200.0))
    search(record, World(noise=0.0), field({"upstream": GOOD}))
    assert {row.rung for row in record.runs} == {0, 1, 2}


def test_what_cannot_run_is_not_tried_but_counted() -> None:
    def refusal_of(settings: dict[str, str]) -> str:
        return "too many instances" if int(settings.get("a.instances", "1")) > 4 else ""

    record = begin()
    search(record, World(), field(refusal_of=refusal_of), runs_most=40)
    assert all(int(r.settings.get("a.instances", "1")) <= 4 for r in record.candidates.values())
    [(reason, count)] = summarise_tuning(record).ruled_out
    assert reason == "too many instances"
    assert count > 1


def test_a_space_without_a_further_point_ends_it() -> None:
    record = begin()
    where = dataclasses.replace(field(), space=SPACE[2:3])
    assert search(record, World(), where) is SearchEnd.EXHAUSTED
    tried = [row for row in record.candidates.values() if row.origin == "search"]
    assert len(tried) == 2
    best = Standing(record).best
    assert best is not None, "what looked better ran at the whole size before"
    assert record.candidates[best].settings == {"a.compiler": "fast"}


def test_the_rest_of_the_budget_is_for_more_pairs_but_never_for_too_many() -> None:
    record = begin(pairs=5)
    search(record, World(noise=0.0), field(), runs_most=3)
    wall = Standing(record).wall_seconds(0)
    assert proof_pairs(record, 1600.0) == 5
    assert proof_pairs(record, 1600.0 - proof_seconds(wall, 7) - 1) == 7
    assert proof_pairs(record, 0.0) == 10


def test_the_budget_counts_this_machines_seconds_and_not_those_of_slower_nodes() -> None:
    record = begin(budget_seconds=8000.0)
    search(record, World(noise=0.0, dilation=4.0), field(), runs_most=3)
    base = record.runs[0]
    assert Standing(record).wall_seconds(0) == pytest.approx(4 * base.seconds + 1)
    assert Standing(record).wall_seconds(0) == pytest.approx(base.wall_seconds)


def test_equal_records_give_equal_points() -> None:
    tried = [Tried(params={"instances": 4, "compiler": "fast"}, scores=(-0.1,), finished=False)]
    assert propose(SPACE, tried, seed=3) == propose(SPACE, tried, seed=3)
    drawn = [propose(SPACE, tried, seed=seed) for seed in range(20)]
    assert len({repr(point) for point in drawn}) > 10
    assert {type(point["instances"]) for point in drawn} == {int}


# The record


def test_a_kill_after_any_line_changes_nothing_of_the_search(tmp_path: Path) -> None:
    record = begin(tmp_path)
    world, where = World(), field({"upstream": {"a.instances": "4"}})
    search(record, world, where, runs_most=18)
    [path] = (tmp_path / "tunings").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [(row.candidate, row.rung, row.purpose, row.value) for row in record.runs]
    assert len(whole) == 18
    for count in range(3, len(lines)):
        path.write_bytes(b"".join(lines[:count]) + b'{"event": "ru')  # torn by the kill
        again = read_record_file(path)
        assert again is not None
        search(
            again, world, field({"upstream": {"a.instances": "4"}}), runs_most=18 - len(again.runs)
        )
        rows = [(row.candidate, row.rung, row.purpose, row.value) for row in again.runs]
        assert rows == whole, f"killed after line {count}"
        assert again.candidates == record.candidates


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    record = begin(tmp_path, arguments=("in", "out-{run}"), parameters={"wordcount.x": "1"})
    search(record, World(), field(), runs_most=5)
    [again] = read_records(tmp_path)
    assert again.request == record.request
    assert again.runs == record.runs
    assert again.candidates == record.candidates
    assert again.spent_seconds == record.spent_seconds
    assert (
        again.request.key
        == request(seed=1, arguments=("in", "out-{run}"), parameters={"wordcount.x": "1"}).key
    )
    assert again.request.key != request().key
    one, other = {"wordcount.x": "1", "wordcount.y": "2"}, {"wordcount.y": "2", "wordcount.x": "1"}
    assert request(parameters=one).key == request(parameters=other).key


def test_a_record_without_a_whole_line_is_none_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "tunings"
    folder.mkdir()
    (folder / "torn.jsonl").write_text('{"event": "beg')
    assert read_records(tmp_path) == ()
    record = begin(tmp_path)
    path = folder / f"{record.request.id}.jsonl"
    path.write_text(path.read_text() + '{"event": "run", "nothing": 1}\n')
    with pytest.raises(StoreError, match="line 4 is damaged"):
        read_records(tmp_path)


def test_a_line_that_the_disk_takes_in_parts_is_whole_or_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.pwrite, [10_000]

    def in_parts(descriptor: int, data: bytes, offset: int) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(descriptor, data[: min(7, room[0])], offset)
        room[0] -= done
        return done

    monkeypatch.setattr(os, "pwrite", in_parts)
    record = begin(tmp_path)
    search(record, World(), field(), runs_most=3)
    [read] = read_records(tmp_path)
    assert read.runs == record.runs
    room[0] = 20
    before = len(record.runs)
    with pytest.raises(OSError, match="No space"):
        search(record, World(), field(), runs_most=1)
    assert len(record.runs) == before, "nothing counts that is not on the disk"
    room[0] = 10_000
    search(record, World(), field(), runs_most=2)
    [read] = read_records(tmp_path)
    assert (read.runs, read.candidates) == (record.runs, record.candidates)


def test_an_argument_may_hold_any_character(tmp_path: Path) -> None:
    strange = dataclasses.replace(request(), arguments=("a\u2028b", "\udcff", "c\x85d\n"))
    begin_record(tmp_path, strange)
    [record] = read_records(tmp_path)
    assert record.request == strange


def test_secrets_of_a_program_are_not_written_down(tmp_path: Path) -> None:
    begin_record(tmp_path, request(arguments=("--password", "hunter2", "in")))
    [record] = read_records(tmp_path)
    assert record.request.arguments == ("--password", "(hidden)", "in")
    assert record.request.key == request(arguments=("--password", "hunter2", "in")).key


def test_the_summary_says_what_each_setting_brought() -> None:
    record = begin(seed=2)
    search(record, World(), field())
    summary = summarise_tuning(record)
    assert [row.number for row in summary.rows] == list(range(1, len(record.runs) + 1))
    effects = {row.name: row for row in summary.effects}
    assert effects["compiler"].better == "fast"
    assert effects["compiler"].times < 0.95
    assert list(effects) == sorted(effects, key=lambda name: effects[name].times)
    assert summary.rows[-1].best_so_far < 0.7
    assert summary.best
    assert "not finished" in summary.words
    empty = summarise_tuning(TuningRecord(request(), write=None))
    assert (empty.rows, empty.effects, empty.best) == ((), (), {})
