"""Advice on made-up runs: each rule speaks of what is planted, and is silent without it."""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.closed_queue import Workload, board_result, simulate
from tests.unit.analysis.advising import (
    BOARDS,
    EMULATED,
    TWIN,
    advised,
    cluster,
    counters,
    diagnosis,
    facts,
    run,
    use,
)

from boardcluster.analysis.advice import Advice, AdviceEvidence, Certainty, advise
from boardcluster.analysis.advice.published import published
from boardcluster.analysis.advice.rules import RULES
from boardcluster.analysis.bottleneck import Bound, diagnose
from boardcluster.analysis.cells import summarise
from boardcluster.records import (
    AttemptState,
    Checksum,
    Engine,
    Fingerprint,
    MasterPlacement,
    Result,
    Role,
    Variant,
)

ROOT = Path(__file__).parents[3]
MIB = 2**20


def only(found: tuple[Advice, ...]) -> Advice:
    (row,) = found
    return row


def sort_run(
    *,
    reduces: int = 4,
    tail_seconds: float = 40.0,
    more: dict[str, Any] | None = None,
    **fields: Any,
) -> Result:
    phases = {
        "sort": 100.0,
        "sort/start": 5.0,
        "sort/map": 50.0,
        "sort/reduce after the last map": tail_seconds,
        "sort/mean reduce of a reduce task": 30.0,
    }
    measured = {"counters": counters(reduces=reduces), "phases_seconds": phases, **(more or {})}
    return run(measured=measured, **fields)


# Reducers


def test_too_few_reducers() -> None:
    # 4 boards with 4 cores: 16 at once, 0.95 of them 15; 40 of 100 s become 40 * 4 / 15.
    row = only(advised(sort_run(), rule="reducers"))
    assert row.gain == pytest.approx(100 / (60 + 40 * 4 / 15))
    assert row.title == "Give terasort on mapreduce 15 reducers"
    assert "4 reduce tasks where 16 can run at once" in row.seen
    assert "40 s, 40 % of the run" in row.seen
    assert "--set reduces=15" in row.setting
    assert "at most 1.42 times as fast" in row.brings
    assert row.runs == ("engine=mapreduce-size_bytes=1000000000-workload=terasort-1/1",)


@pytest.mark.parametrize(
    "result",
    [
        sort_run(reduces=15),
        sort_run(tail_seconds=9.0),
        run(measured={"counters": {}}),
        sort_run(engine=Engine.SPARK, more={"counters": {}}),
        sort_run(warm_up=True),
        sort_run(state=AttemptState.INVALID),
        # One node of two cores below all of them: two at once, of which two reducers are enough.
        sort_run(reduces=2, setup=EMULATED),
    ],
)
def test_reducers_are_not_spoken_of(result: Result) -> None:
    assert advised(result, rule="reducers") == ()


def test_reducers_that_memory_cannot_hold_are_not_counted() -> None:
    small = replace(BOARDS, node_memory_bytes=2 * 2**30)  # two containers of 1 GiB on each board
    assert only(advised(sort_run(setup=small), rule="reducers")).title.endswith("7 reducers")


def test_failed_and_killed_reducers_do_not_count() -> None:
    tried = counters(reduces=17, NUM_FAILED_REDUCES=10, NUM_KILLED_REDUCES=3)
    row = only(advised(sort_run(more={"counters": tried}), rule="reducers"))
    assert row.seen.startswith("4 reduce tasks")


def test_more_reducers_than_workers_do_not_help_their_disks() -> None:
    tail = "sort/reduce after the last map"
    bound = diagnosis(Bound.STORAGE, phases={"sort": Bound.STORAGE, tail: Bound.STORAGE})
    assert advised(sort_run(), rule="reducers", diagnosed=bound) == ()
    row = only(advised(sort_run(reduces=2), rule="reducers", diagnosed=bound))
    assert row.gain == pytest.approx(100 / (60 + 40 * 2 / 4))


def test_counters_of_two_jobs_are_sums() -> None:
    phases = {"search": 50.0, "search/job 1: map": 20.0, "search/job 2: map": 5.0}
    more = {"phases_seconds": phases | {"search/job 1: reduce after the last map": 20.0}}
    assert advised(sort_run(workload="grep", more=more), rule="reducers") == ()


def test_where_reducers_are_set() -> None:
    fixed = sort_run(workload="wordcount", profile="paper-2026", reduces=2)
    row = only(advised(fixed, rule="reducers"))
    assert 'profile = "default"' in row.setting
    assert row.title.endswith("4 reducers")  # one per worker, as that profile has it
    own = sort_run(workload="submit", arguments=("hadoop", "x.jar"), reduces=1)
    assert "-D mapreduce.job.reduces=15" in only(advised(own, rule="reducers")).setting
    usual = only(advised(sort_run(workload="wordcount", reduces=1), rule="reducers"))
    assert '"mapreduce.job.reduces" = "15"' in usual.setting
    assert "[settings]` of cluster.toml" in usual.setting


# Cores without a task


def spark_run(
    *,
    tasks: int,
    stages: int = 2,
    work_seconds: float = 160.0,
    stage_seconds: float = 80.0,
    **fields: Any,
) -> Result:
    each = stage_seconds / stages
    phases = {"sort": 100.0} | {f"sort/stage {n}: sortByKey": each for n in range(stages)}
    measured = {
        "counters": {"spark/tasks": tasks, "spark/executorRunTime": round(1000 * work_seconds)},
        "phases_seconds": phases,
    }
    return run(engine=Engine.SPARK, measured=measured, **fields)


def test_fewer_tasks_than_cores() -> None:
    watched = facts(
        *(use(name, busy_share=0.1) for name in ("pi1", "pi2")),
        use("pi3", jobs_cpu_seconds=3.0, busy_share=0.01),
        use("pi4", jobs_cpu_seconds=2.0, busy_share=0.01),
    )
    row = only(advised(spark_run(tasks=8), rule="idle cores", watched=watched, spec=cluster()))
    # 160 s of tasks in 80 s: two at once on 16 cores; those 80 s could be 10.
    assert row.gain == pytest.approx(100 / (20 + 80 * 2 / 16))
    assert "8 tasks in 2 stages on 16 cores: 2.0 tasks ran at once" in row.seen
    assert "almost idle: pi3 (3 s of CPU time, the busiest 3 min 00 s), pi4" in row.seen
    assert "pi0" not in row.seen  # which only submits
    assert "--set reduces=16" in row.setting


def test_idle_nodes_are_not_named_where_the_workers_are_not_known() -> None:
    watched = facts(use("pi3", jobs_cpu_seconds=3.0))
    row = only(advised(spark_run(tasks=8), rule="idle cores", watched=watched))
    assert "almost idle" not in row.seen


def test_a_master_of_its_own_is_no_worker_of_the_run() -> None:
    spec = cluster(pi0=[Role.WORKER], pi1=[Role.MASTER, Role.WORKER])  # then pi0, pi2 and pi3 work
    watched = facts(use("pi1", jobs_cpu_seconds=3.0), use("pi3", jobs_cpu_seconds=2.0))
    made = spark_run(tasks=8, workers=3, master=MasterPlacement.SEPARATE)
    row = only(advised(made, rule="idle cores", watched=watched, spec=spec))
    assert "pi3 (2 s of CPU time" in row.seen
    assert "pi1" not in row.seen


def test_cores_that_are_busy_already_cannot_be_filled() -> None:
    row = only(advised(spark_run(tasks=8), rule="idle cores", watched=facts(), spec=cluster()))
    assert row.gain == pytest.approx(100 / (20 + 80 * 0.5))  # half of their CPU time was used
    busy = facts(*(use(f"pi{number}", busy_share=0.99) for number in (1, 2, 3, 4)))
    found = advised(spark_run(tasks=8), rule="idle cores", watched=busy, spec=cluster())
    assert found == ()


def test_storage_is_only_helped_by_idle_workers() -> None:
    bound = diagnosis(Bound.STORAGE)
    made = spark_run(tasks=8)
    quiet = [use(f"pi{number}", busy_share=0.1) for number in (1, 2, 3, 4)]
    given: dict[str, Any] = {"rule": "idle cores", "diagnosed": bound, "spec": cluster()}
    assert advised(made, watched=facts(*quiet), **given) == ()
    assert advised(made, rule="idle cores", diagnosed=bound) == ()
    quiet[3] = use("pi4", busy_share=0.1, jobs_cpu_seconds=1.0)
    row = only(advised(made, watched=facts(*quiet), **given))
    assert row.gain == pytest.approx(100 / (20 + 80 * 3 / 4))


def test_a_larger_input_is_another_job() -> None:
    measured = {
        "counters": counters(maps=2, reduces=0, map_seconds=100.0),
        "phases_seconds": {"x": 100.0, "x/map": 50.0},
    }
    row = only(advised(run(workload="wordcount", measured=measured), rule="idle cores"))
    assert row.gain is None
    assert "at most 1.78 times the bytes per second" in row.brings  # 100 / (50 + 50 * 2 / 16)


def test_enough_tasks() -> None:
    assert advised(spark_run(tasks=32), rule="idle cores") == ()
    assert advised(spark_run(tasks=8, work_seconds=1280.0), rule="idle cores") == ()
    assert advised(spark_run(tasks=8, workload="terasort+grep"), rule="idle cores") == ()


def test_narrow_executors_of_a_fixed_profile() -> None:
    row = only(
        advised(spark_run(tasks=64, work_seconds=600.0, profile="paper-2026"), rule="idle cores")
    )
    assert 'profile = "default"' in row.setting
    assert row.gain == pytest.approx(100 / (20 + 80 * 7.5 / 16))


@pytest.mark.parametrize(
    ("workload", "engine", "words"),
    [
        ("teragen", Engine.MAPREDUCE, "--set maps=16"),
        ("dfsio", Engine.MAPREDUCE, "--set files=16"),
        ("wordcount", Engine.MAPREDUCE, 'size = "8 GB"'),
        ("terasort", Engine.MAPREDUCE, 'size = "8 GB"'),
        ("pi", Engine.MAPREDUCE, "--set maps=16`, with `samples` divided by 8"),
        ("submit", Engine.MAPREDUCE, "repartition"),
    ],
)
def test_where_tasks_are_set(workload: str, engine: Engine, words: str) -> None:
    made = run(
        workload=workload,
        engine=engine,
        measured={
            "counters": counters(maps=2, reduces=0, map_seconds=100.0),
            "phases_seconds": {"x": 100.0, "x/map": 50.0},
        },
    )
    assert words in only(advised(made, rule="idle cores")).setting


def test_times_of_counters_are_not_undilated_yet() -> None:
    # At dilation 4 the counters say 640 s for what are 160 s on the boards.
    made = spark_run(tasks=8, work_seconds=640.0)
    assert made.measurement
    slowed = replace(made, measurement=replace(made.measurement, dilation=4.0))
    row = only(advised(slowed, rule="idle cores"))
    assert "2.0 tasks ran at once" in row.seen
    assert row.gain == pytest.approx(100 / (20 + 80 * 2 / 16))


# Start-up


def test_start_up_that_outweighs_the_work() -> None:
    row = only(advised(sort_run(), rule="start-up", diagnosed=diagnosis(Bound.START_UP, 0.6)))
    assert row.gain is None
    assert "1 min 00 s of 1 min 40 s, 60 %" in row.seen
    assert 'size = "4 GB"' in row.setting
    assert "about 1.8 times the bytes per second" in row.brings  # 4 / (0.6 + 4 * 0.4)


def test_start_up_without_an_input() -> None:
    made = run(workload="pi", size_bytes=0)
    row = only(advised(made, rule="start-up", diagnosed=diagnosis(Bound.START_UP, 0.6)))
    assert "`samples`" in row.setting


def test_a_short_start_up() -> None:
    assert advised(run(), rule="start-up", diagnosed=diagnosis(Bound.START_UP, 0.5)) == ()
    assert advised(run(), rule="start-up", diagnosed=diagnosis(Bound.CPU, 0.6)) == ()
    assert advised(run(), rule="start-up") == ()


def test_a_start_that_keeps_the_cpu_busy_is_one_all_the_same() -> None:
    made = spark_run(tasks=8, work_seconds=60.0, stage_seconds=30.0)
    row = only(advised(made, rule="start-up", diagnosed=diagnosis(Bound.CPU, 1.0)))
    assert row.gain is None
    assert row.seen.startswith("no task ran for 1 min 10 s of 1 min 40 s, 70 %")
    long = spark_run(tasks=8, work_seconds=60.0, stage_seconds=60.0)
    assert advised(long, rule="start-up", diagnosed=diagnosis(Bound.CPU, 1.0)) == ()


# Memory


def map_run(**sizes: Any) -> Result:
    profile = sizes.pop("profile", "upstream")
    measured = {
        "counters": counters(**{"container_mib": 4096, "peak_mib": 600, **sizes}),
        "phases_seconds": {"count": 100.0, "count/map": 60.0},
    }
    return run(workload="wordcount", profile=profile, measured=measured)


def test_containers_that_waste_memory() -> None:
    row = only(advised(map_run(), rule="containers"))
    # 8 GiB hold two containers of 4 GiB, and as many of 600 MiB as there are cores.
    assert row.gain == pytest.approx(100 / (40 + 60 * 8 / 16))
    assert "map containers of 4096 MiB, of which the largest map used 600 MiB (15 %)" in row.seen
    assert "memory holds 8 of them at once, on 16 cores" in row.seen
    assert 'profile = "default"' in row.setting


@pytest.mark.parametrize(
    "sizes",
    [{"peak_mib": 2200}, {"container_mib": 1500}, {"profile": "default"}, {"map_seconds": 0.0}],
)
def test_containers_that_fit(sizes: dict[str, Any]) -> None:
    assert advised(map_run(**sizes), rule="containers") == ()


def test_smaller_containers_do_not_help_disks() -> None:
    bound = diagnosis(Bound.STORAGE)
    assert advised(map_run(), rule="containers", diagnosed=bound) == ()


def test_a_node_that_swaps() -> None:
    watched = facts(use("pi2", swap_bytes=200 * MIB, swap_used_most_bytes=400 * MIB))
    row = only(advised(run(), rule="swap", watched=watched, spec=cluster()))
    assert row.subject == "pi2"
    assert "pi2 swapped 200 MiB" in row.seen
    assert "in 1 of 1 runs" in row.seen
    assert '`memory = "7744 MiB"` of pi2' in row.setting  # 8192 - 400, in steps of 64
    assert row.gain is None
    bound = diagnosis(Bound.MEMORY, 0.3, twice=1.6)
    found = advised(run(), rule="swap", watched=watched, diagnosed=bound)
    assert only(found).gain == 1.6
    assert "a smaller `memory` of pi2" in only(found).setting  # nobody says what is declared


def test_memory_is_lowered_by_what_was_in_swap_and_not_by_what_went_to_and_fro() -> None:
    use_of_swap = use("pi2", swap_bytes=50_000 * MIB, swap_used_most_bytes=400 * MIB)
    row = only(advised(run(), rule="swap", watched=facts(use_of_swap), spec=cluster()))
    assert 'memory = "7744 MiB"' in row.setting  # of 8 GiB, in steps of 64 MiB


def test_little_swapping() -> None:
    assert advised(run(), rule="swap", watched=facts(use("pi2", swap_bytes=16.0 * MIB))) == ()
    assert advised(run(), rule="swap", watched=facts(use("pi2", swap_bytes=None))) == ()


def test_where_memory_is_set() -> None:
    watched = facts(use("pi2", swap_bytes=200 * MIB))
    row = only(advised(run(profile="paper-2021"), rule="swap", watched=watched))
    assert "the sizes of paper-2021 are fixed" in row.setting
    host = facts(use("host", swap_bytes=200 * MIB))
    row = only(advised(run(setup=EMULATED), rule="swap", watched=host))
    assert row.title == "Declare less memory for the nodes of this machine"
    assert "or fewer workers" in row.setting
    assert row.emulated == "emulated nodes"


# Copies and checksums of blocks

WRITTEN = {
    "node_written_bytes": {f"pi{number}": 500 * 10**6 for number in (1, 2, 3, 4)},
    "intermediate_bytes": 0,
}


def test_copies_that_storage_waits_for() -> None:
    row = only(
        advised(
            run(workload="teragen", measured=WRITTEN),
            rule="replication",
            diagnosed=diagnosis(Bound.STORAGE, 0.8),
        )
    )
    # 2 GB were written, of which 1 GB is the second copy: half of the 80 s go.
    assert row.gain == pytest.approx(100 / 60)
    assert (
        "the nodes wrote 2 GB, 0 B of it intermediate data, for 1 GB of output: 2.0 copies"
        in row.seen
    )
    assert "storage bound 80 % of the run (pi2 waited for storage)" in row.seen
    assert "replication = 1" in row.setting
    assert "if a node is lost" in row.brings


def test_copies_that_the_network_waits_for() -> None:
    made = run(workload="teragen", measured=WRITTEN)
    bound = diagnosis(Bound.NETWORK, 0.8)
    watched = facts(master=use("pi0", received_bytes_per_second=0.0))
    # Four workers received 10 MB/s for 100 s: 4 GB, of which 1 GB is the second copy.
    row = only(advised(made, rule="replication", diagnosed=bound, watched=watched))
    assert row.gain == pytest.approx(100 / (20 + 80 * 0.75))
    assert advised(made, rule="replication", diagnosed=bound) == ()  # nobody knows the traffic


@pytest.mark.parametrize(
    ("result", "bound"),
    [
        (run(measured=WRITTEN, replication=1), Bound.STORAGE),
        (run(measured=WRITTEN), Bound.CPU),
        (run(measured=WRITTEN | {"output_bytes": 10**6}), Bound.STORAGE),
        (run(measured=WRITTEN | {"intermediate_bytes": None}), Bound.STORAGE),
        (run(measured=WRITTEN | {"intermediate_bytes": 10**9}), Bound.STORAGE),
        (run(), Bound.STORAGE),
    ],
)
def test_copies_are_not_spoken_of(result: Result, bound: Bound) -> None:
    assert advised(result, rule="replication", diagnosed=diagnosis(bound)) == ()


def cells(field: str, fast: Any, slow: Any, times: int = 3, **fields: Any) -> list[Result]:
    """Runs of two values of a setting, the second of them taking 1.5 times as long."""
    return [
        run(seconds=base + number, number=number, **{field: value}, **fields)
        for value, base in ((fast, 100.0), (slow, 151.5))
        for number in range(1, times + 1)
    ]


def test_copies_that_were_measured() -> None:
    row = only(advised(*cells("replication", 1, 3), rule="replication"))
    assert row.certainty is Certainty.COMPARED
    assert row.gain == pytest.approx(153.5 / 102, rel=1e-3)
    assert "1 instead of 3 copies" in row.seen
    assert "95 % interval 1.4" in row.brings
    assert set(row.runs) == {
        f"engine=mapreduce-replication=3-size_bytes=1000000000-workload=terasort-{n}/1"
        for n in (1, 2, 3)
    }


def test_a_profile_that_was_faster_comes_first() -> None:
    rows = advised(*cells("profile", "upstream", "default"))
    assert rows[0].rule == "profile"
    assert rows[0].title == "Use the profile upstream for terasort on mapreduce"
    assert rows[0].setting == '`profile = "upstream"` in `[[matrix]]` of campaign.toml'
    assert rows[0].gain == pytest.approx(153.5 / 102, rel=1e-3)
    assert advised(*cells("profile", "upstream", "default", times=1)[:1], rule="profile") == ()


def test_what_was_faster_for_one_size_is_advised_for_that_size() -> None:
    large = cells("profile", "default", "upstream", size_bytes=4 * 10**9)
    rows = advised(*cells("profile", "upstream", "default"), *large, rule="profile")
    assert {row.title for row in rows} == {
        "Use the profile upstream for terasort on mapreduce over 1 GB",
        "Use the profile default for terasort on mapreduce over 4 GB",
    }
    assert not {*rows[0].runs} & {*rows[1].runs}


def test_settings_are_not_praised_for_what_another_program_does() -> None:
    """The faster runs had the settings and the other variant: nobody knows which of them it was."""
    fast = {"mapreduce.map.output.compress": "true"}
    made = [
        run(seconds=base + number, number=number, settings=settings, variant=variant)
        for settings, variant, base in (
            (fast, Variant.FAST, 100.0),
            ({}, Variant.TEXTBOOK, 151.5),
        )
        for number in (1, 2, 3)
    ]
    assert advised(*made, rule="settings") == ()


def test_a_profile_is_not_said_to_differ_from_itself() -> None:
    made = [
        replace(row, attempt=replace(row.attempt, fingerprint=setup))
        for row in cells("profile", "upstream", "default")
        if row.attempt is not None
        for setup in [
            replace(BOARDS, profile=row.trial.profile, config_sha256=row.trial.profile * 8)
        ]
    ]
    row = only(advised(*made, rule="profile"))
    assert "profile upstream instead of default" in row.seen
    assert "also different" not in row.seen


def test_settings_that_were_faster_come_first() -> None:
    fast = {"mapreduce.map.output.compress": "true"}
    row = advised(*cells("settings", fast, {}))[0]
    assert row.title == "Run terasort on mapreduce with mapreduce.map.output.compress true"
    assert "true instead of no settings" in row.seen
    assert row.setting.startswith('`"mapreduce.map.output.compress" = "true"` in')
    many = {f"mapreduce.job.{name}": "1" for name in "abc"}
    row = only(advised(*cells("settings", many, {}), rule="settings"))
    assert row.title == "Run terasort on mapreduce with the 3 settings that were faster"
    row = only(advised(*cells("settings", {}, fast), rule="settings"))
    assert row.title == "Run terasort on mapreduce with no settings"
    assert row.setting.startswith("nothing in")


def test_of_many_pairs_of_settings_one_is_faster_by_chance() -> None:
    """Pairs that differ in several settings are in no table of effects, so they are a family."""
    slow = (100.0, 103.0, 106.0, 109.0, 112.0)

    def pair(size: int, *times_as_fast: float) -> list[Result]:
        fast = [value / by for value, by in zip(slow, times_as_fast, strict=True)]
        return [
            run(seconds=value, number=number, size_bytes=size * 10**9, settings=settings)
            for settings, values in (
                ({"mapreduce.job.a": "1"}, slow),
                ({"mapreduce.job.b": "1"}, fast),
            )
            for number, value in enumerate(values, start=1)
        ]

    one = pair(1, 1.0, 1.06, 1.08, 1.12, 1.1)
    assert "95 % interval 1." in only(advised(*one, rule="settings")).brings
    alike = [row for size in range(2, 7) for row in pair(size, 0.97, 1.03, 0.99, 1.01, 1.0)]
    assert advised(*one, *alike, rule="settings") == ()


def test_one_run_of_each_has_no_interval() -> None:
    row = only(advised(*cells("replication", 1, 3, times=1), rule="replication"))
    assert "interval" not in row.brings.replace("no interval", "")
    assert "no interval" in row.brings


def test_more_copies_are_never_advised() -> None:
    assert advised(*cells("replication", 3, 1), rule="replication") == ()


def test_checksums_where_the_cpu_binds() -> None:
    row = only(advised(run(), rule="checksums", diagnosed=diagnosis(Bound.CPU, 0.9)))
    assert row.certainty is Certainty.PUBLISHED
    assert row.gain == pytest.approx(1 / (0.1 + 0.9 * 52.5 / 59.5))
    assert row.seen.startswith("the CPU bound 90 % of the run (pi2 waited for cpu); it moves")
    assert 'checksum = "null"' in row.setting
    assert "59.5 against 52.5 % of CPU" in row.brings
    assert "no longer notices" in row.brings


@pytest.mark.parametrize(
    ("result", "bound"),
    [
        (run(), Bound.STORAGE),
        (run(workload="pi"), Bound.CPU),
        (run(checksum=Checksum.NULL), Bound.CPU),
        (run(setup=EMULATED), Bound.CPU),
        (run(setup=TWIN), Bound.CPU),
    ],
)
def test_checksums_are_not_spoken_of(result: Result, bound: Bound) -> None:
    assert advised(result, rule="checksums", diagnosed=diagnosis(bound)) == ()


def test_checksums_that_were_measured() -> None:
    row = only(advised(*cells("checksum", Checksum.NULL, Checksum.CRC32C), rule="checksums"))
    assert row.certainty is Certainty.COMPARED
    assert row.title == "Run terasort on mapreduce without checksums of blocks"
    assert advised(*cells("checksum", Checksum.CRC32C, Checksum.NULL), rule="checksums") == ()


# Media


def drifting(setup: Fingerprint = BOARDS, **measured: Any) -> list[Result]:
    return [
        run(seconds=100.0 + 10 * number, number=number, setup=setup, measured=measured)
        for number in range(1, 7)
    ]


def test_runs_that_take_longer_and_longer() -> None:
    row = only(advised(*drifting(), rule="trim", diagnosed=diagnosis(Bound.STORAGE)))
    assert row.gain == pytest.approx(135 / 115)  # the mean of all against the first two
    assert "115 s at first and 155 s at last" in row.seen  # the first and the last two
    assert "trim = true" in row.setting
    assert len(row.runs) == 6
    refused = drifting(remarks=("unused blocks not discarded: /: not supported",))
    row = only(advised(*refused, rule="trim", diagnosed=diagnosis(Bound.STORAGE)))
    assert "trim = true" not in row.setting
    assert "not supported" in row.seen


def test_runs_that_ended_as_fast_as_they_began_did_not_take_longer_and_longer() -> None:
    """Other cells of the campaign drift; this one's last run was its fastest."""
    others = [
        run(seconds=size * (100.0 + 10 * number), number=number, size_bytes=size * 10**9)
        for size in (2, 3, 4)
        for number in range(1, 7)
    ]
    own = [run(seconds=s, number=n) for n, s in enumerate((100.0, 170.0, 170.0, 99.0), start=1)]
    row = only(advised(*others, *own, rule="trim", diagnosed=diagnosis(Bound.STORAGE)))
    assert "terasort on mapreduce, 1 GB" not in row.seen


def test_what_all_cells_of_a_campaign_show_together_is_said_of_each() -> None:
    """Three runs of a cell show no drift; four cells with the same one do, as in the report."""
    by_size = [
        [
            run(seconds=size * (100.0 + 10 * number + size), number=number, size_bytes=size * 10**9)
            for number in range(1, 4)
        ]
        for size in (1, 2, 3, 4)
    ]
    bound = diagnosis(Bound.STORAGE)
    assert advised(*by_size[0], rule="trim", diagnosed=bound) == ()
    row = only(advised(*(one for rows in by_size for one in rows), rule="trim", diagnosed=bound))
    assert "over all configurations of campaign 20260801-a" in row.seen
    even = [
        run(seconds=100.0 + (number % 2), number=number, size_bytes=size * 10**9)
        for size in (5, 6, 7)
        for number in range(1, 9)
    ]
    assert advised(*by_size[0], *even, rule="trim", diagnosed=bound) == (), "one cell of four"


def test_what_else_makes_runs_longer() -> None:
    bound = diagnosis(Bound.STORAGE)
    hot = facts(use("pi1", heat_seconds=20.0))
    disks = replace(BOARDS, hardware=("pi1: a PC, hdd WD10, 1 Gbit/s",))
    assert advised(*drifting(), rule="trim", diagnosed=diagnosis(Bound.CPU)) == ()
    assert advised(*drifting(), rule="trim", diagnosed=bound, watched=hot) == ()
    assert advised(*drifting(setup=disks), rule="trim", diagnosed=bound) == ()
    assert advised(*drifting(setup=EMULATED), rule="trim", diagnosed=bound) == ()
    assert advised(*drifting()[:4], rule="trim", diagnosed=bound) == ()
    assert advised(*drifting()[::-1][:0], rule="trim", diagnosed=bound) == ()
    runs = drifting()
    for waiting, count in ((3, 0), (4, 1)):
        diagnoses = {
            (row.trial.id, 1): bound if place < waiting else diagnosis(Bound.CPU)
            for place, row in enumerate(runs)
        }
        found = advise(AdviceEvidence(results=tuple(runs), diagnoses=diagnoses))
        assert sum(row.rule == "trim" for row in found) == count, "of most runs, not of one"


def hardware(medium: str) -> Fingerprint:
    return replace(BOARDS, hardware=(f"pi1: Raspberry Pi 5 Model B, 8 GiB, {medium}, 1 Gbit/s",))


def test_a_slow_medium() -> None:
    bound = diagnosis(Bound.STORAGE, 0.8, twice=1.6)
    row = only(advised(run(measured=WRITTEN), rule="medium", diagnosed=bound))
    assert row.gain == 1.6
    assert "pi0, pi1, pi2 and 2 more have cards or disks" in row.seen
    assert "nodes wrote 2 GB" in row.seen
    assert "`folder`" in row.setting
    twin = only(advised(run(setup=TWIN), rule="medium", diagnosed=bound))
    assert "samsung-pro-plus-256gb" in twin.seen
    assert "medium =" in twin.setting
    assert "emulated boards, dilation 1.0" in twin.brings
    old = run(setup=hardware("nvme GOLD P31, PCIe 2 x1"))
    assert "pciex1_gen=3" in only(advised(old, rule="medium", diagnosed=bound)).setting


def test_runs_on_another_medium_are_not_pooled() -> None:
    """Else the typical run would be one on an SSD, of which there is nothing to say."""
    cards = [run(seconds=100.0, number=number) for number in (1, 2)]
    lines = tuple(line.replace("sd SD128", "nvme P31") for line in BOARDS.hardware)
    ssds = [
        run(seconds=50.0, number=number, setup=replace(BOARDS, hardware=lines))
        for number in (3, 4, 5)
    ]
    bounds = {True: diagnosis(Bound.STORAGE, 0.8, twice=1.6), False: diagnosis(Bound.CPU)}
    case = AdviceEvidence(
        results=(*cards, *ssds),
        diagnoses={(row.trial.id, 1): bounds[row in cards] for row in (*cards, *ssds)},
    )
    row = only(tuple(row for row in advise(case) if row.rule == "medium"))
    assert row.runs == tuple(f"{each.trial.id}/1" for each in cards)
    assert "2 runs, on Raspberry Pi 5 Model B, 4 x Cortex-A76 at 2.40 GHz, 8 GiB, sd" in row.seen


def test_runs_of_another_kernel_on_the_same_boards_are_pooled() -> None:
    lines = tuple(line.replace("6.12.25", "6.12.34") for line in BOARDS.hardware)
    new = run(number=2, setup=replace(BOARDS, hardware=lines, kernel="6.12.34"))
    bound = diagnosis(Bound.STORAGE, 0.8, twice=1.6)
    row = only(advised(run(), new, rule="medium", diagnosed=bound))
    assert len(row.runs) == 2
    assert "2 runs)" in row.seen


def test_an_ssd_that_is_waited_for_can_serve_more_tasks_at_once() -> None:
    bound = diagnosis(Bound.STORAGE, 0.7, twice=1.54)
    new = run(setup=hardware("nvme GOLD P31, PCIe 3 x1"))
    row = only(advised(new, rule="medium", diagnosed=bound))
    assert "more tasks at once" in row.setting
    assert "microSD" not in row.brings


@pytest.mark.parametrize(
    ("load", "title"),
    [
        (Workload(cpu=30, storage=20, seconds=20), "Put the data on a faster medium"),
        (
            Workload(cpu=30, storage=70, disk_servers=32, seconds=20),
            "Let more tasks of terasort on spark wait for the SSDs at once",
        ),
    ],
    ids=["card", "ssd"],
)
def test_tasks_that_wait_for_a_disk_while_others_compute_get_advice(
    load: Workload, title: str
) -> None:
    """Four tasks on four cores: somebody always computes, and the disk is what limits."""
    result = board_result(load)
    found = diagnose(result, simulate(load).telemetry)
    row = only(advised(result, rule="medium", diagnosed=found))
    assert row.title == title
    low, high = found.run.gain_bounds[Bound.STORAGE]
    assert row.gain == found.run.gains[Bound.STORAGE] > 1.4
    assert f"(between {low:.3g} and {high:.3g})" in row.brings


def test_a_medium_that_is_fast_enough() -> None:
    bound = diagnosis(Bound.STORAGE, 0.8, twice=1.6)
    assert advised(run(setup=EMULATED), rule="medium", diagnosed=bound) == ()
    unknown = run(setup=hardware("virtual"))
    assert advised(unknown, rule="medium", diagnosed=bound) == ()
    little = diagnosis(Bound.STORAGE, 0.4, twice=1.05)
    assert advised(run(), rule="medium", diagnosed=little) == ()
    assert advised(run(), rule="medium", diagnosed=diagnosis(Bound.CPU)) == ()


# Boards


def test_heat() -> None:
    hot = use("pi2", heat_seconds=60.0, temperature_most_celsius=84.6, slowed_clock_ratio=0.625)
    row = only(advised(run(), rule="cooling", watched=facts(hot)))
    assert row.title == "Cool pi2"
    assert "lowered the clock for 1 min 00 s of 1 min 40 s, at 62 % of its clock, 85 °C" in row.seen
    assert row.gain == pytest.approx(100 / (40 + 60 * 0.625))
    assert "cool_below_celsius" in row.setting
    assert "1.97 times" in row.brings
    bound = diagnosis(Bound.CPU, rest={Bound.HEAT: 1.3})
    assert only(advised(run(), rule="cooling", watched=facts(hot), diagnosed=bound)).gain == 1.3


def test_heat_of_unknown_clock_promises_nothing() -> None:
    row = only(advised(run(), rule="cooling", watched=facts(use("pi2", heat_seconds=60.0))))
    assert row.gain is None
    assert row.certainty is Certainty.PUBLISHED


def test_a_weak_supply() -> None:
    weak = use("pi3", weak_supply_seconds=30.0, slowed_clock_ratio=0.5)
    row = only(advised(run(), rule="supply", watched=facts(weak)))
    assert row.title == "Give pi3 a stronger power supply"
    assert row.gain == pytest.approx(100 / (70 + 30 * 0.5))
    assert advised(run(), rule="cooling", watched=facts(weak)) == ()


@pytest.mark.parametrize("rule", ["cooling", "supply", "swap", "link", "master"])
def test_healthy_boards(rule: str) -> None:
    assert advised(run(), rule=rule, watched=facts(), spec=cluster()) == ()
    moment = facts(use("pi1", heat_seconds=1.0, weak_supply_seconds=1.0))
    assert advised(run(), rule=rule, watched=moment, spec=cluster()) == ()


def test_the_machine_below_emulated_nodes_is_no_board() -> None:
    hot = facts(use("host", heat_seconds=60.0, weak_supply_seconds=60.0))
    assert advised(run(setup=EMULATED), rule="cooling", watched=hot) == ()
    assert advised(run(setup=EMULATED), rule="supply", watched=hot) == ()


def test_modelled_heat_and_supply() -> None:
    made = run(
        setup=TWIN,
        measured={
            "dilation": 2.0,
            "remarks": (
                "modelled: worker1 was slowed down by heat for 40 % of the run",
                "modelled: worker2 was slowed down by supply for 7 % of the run",
            ),
        },
    )
    heat = only(advised(made, rule="cooling"))
    assert heat.seen.startswith("modelled: worker1")
    assert "`cooling` of worker1" in heat.setting
    assert heat.emulated == "emulated boards, dilation 2.0"
    supply = only(advised(made, rule="supply"))
    assert supply.seen.startswith("modelled: worker2")
    assert "`supply` of worker2" in supply.setting


def test_a_slow_link() -> None:
    watched = facts(use("pi4", link_bits_per_second=1e8))
    bound = diagnosis(Bound.NETWORK, twice=1.4)
    row = only(advised(run(), rule="link", watched=watched, diagnosed=bound))
    assert row.title == "Bring the link of pi4 to 1 Gbit/s"
    assert "pi4 was linked at 100 Mbit/s" in row.seen
    assert "Cat 5e" in row.setting
    assert row.gain == 1.4
    unbound = only(advised(run(), rule="link", watched=watched, diagnosed=diagnosis(Bound.CPU)))
    assert unbound.gain is None
    assert "no gain in these runs" in unbound.brings


def test_declared_links_of_emulated_nodes() -> None:
    bound = diagnosis(Bound.NETWORK, twice=1.4)
    slow = replace(EMULATED, link_bits_per_second=10**8)
    row = only(advised(run(setup=slow), rule="link", diagnosed=bound))
    assert 'link = "200 Mbit/s"' in row.setting
    assert row.seen.startswith("the network bound 80 % of the run (pi2 waited for network), with")
    assert row.gain == 1.4
    assert "emulated nodes" in row.brings
    assert advised(run(setup=slow), rule="link", diagnosed=diagnosis(Bound.CPU)) == ()


def test_ports_of_emulated_boards() -> None:
    bound = diagnosis(Bound.NETWORK, twice=1.4)
    lines = "node1: 0.2 cores of this machine, 4 GiB memory, link 50 Mbit/s"
    made = run(setup=replace(TWIN, limits=lines), measured={"dilation": 2.0})
    row = only(advised(made, rule="link", diagnosed=bound))
    assert row.title == "Try boards with faster ports"
    assert "(pi2 waited for network), with" in row.seen
    assert "with links of 100 Mbit/s" in row.seen  # as on the board
    assert "another `board`" in row.setting
    rate = replace(bound.run, evidence=("node1 had 48 Mbit/s on its link of 50 Mbit/s",))
    row = only(advised(made, rule="link", diagnosed=replace(bound, run=rate)))
    assert "50 Mbit/s; rates are those on this machine, where it took 2 times as long)" in row.seen
    declared = replace(TWIN, limits=lines, link_bits_per_second=10**8)
    made = run(setup=declared, measured={"dilation": 2.0})
    row = only(advised(made, rule="link", diagnosed=bound))
    assert 'link = "200 Mbit/s"' in row.setting


# The master, and jobs at once


def test_a_worker_that_is_the_master_too() -> None:
    both = use("pi1", busy_share=0.8, master_cpu_seconds=64.0)
    bound = diagnosis(Bound.CPU, 0.9)
    spec = cluster(pi0=[Role.WORKER], pi1=[Role.MASTER, Role.WORKER])
    master = use("pi0")
    row = only(
        advised(
            run(workers=5),
            rule="master",
            watched=facts(both, master=master),
            diagnosed=bound,
            spec=spec,
        )
    )
    assert row.title == "Move the master off worker pi1"
    # 64 of its 320 s of CPU time are the master's.
    assert row.gain == pytest.approx(1 / (0.1 + 0.9 * 0.8))
    assert "80 % of its CPU, the other workers 50 %" in row.seen
    assert 'master = "separate"' in row.setting
    assert "42.2 %" in row.brings
    quiet = facts(use("pi1", busy_share=0.5, master_cpu_seconds=64.0), master=master)
    assert advised(run(workers=5), rule="master", watched=quiet, diagnosed=bound, spec=spec) == ()
    plain = run(workers=5, setup=EMULATED)
    watched = facts(both, master=master)
    assert advised(plain, rule="master", watched=watched, diagnosed=bound, spec=spec) == ()


def test_a_master_that_only_waits() -> None:
    spec = cluster()
    large = replace(spec, nodes=(replace(spec.nodes[0], memory_bytes=16 * 2**30), *spec.nodes[1:]))
    bound = diagnosis(Bound.CPU, 0.9)
    row = only(advised(run(), rule="master", watched=facts(), diagnosed=bound, spec=large))
    assert row.title == "Make pi0 a worker, too"
    assert row.gain == pytest.approx(1 / (0.1 + 0.9 * 4 / 5))
    assert '`roles = ["master", "worker"]` of pi0' in row.setting
    for result, diagnosed, declared in (
        (run(), bound, spec),  # as little memory as the workers
        (run(), diagnosis(Bound.STORAGE, 0.9), large),
        (run(workers=2), bound, large),
        (run(master=MasterPlacement.COMBINED), bound, large),
    ):
        found = advised(result, rule="master", watched=facts(), diagnosed=diagnosed, spec=declared)
        assert found == ()


def test_places_of_the_master_that_were_measured() -> None:
    made = cells("master", MasterPlacement.SEPARATE, MasterPlacement.COMBINED)
    row = only(advised(*made, rule="master"))
    assert 'master = "separate"' in row.setting
    assert row.certainty is Certainty.COMPARED


def test_jobs_at_once() -> None:
    made = cells("concurrency", 4, 1, workload="grep+grep+grep+grep", engine=Engine.SPARK)
    row = only(advised(*made, rule="jobs at once"))
    assert row.title == "Run 4 jobs of grep+grep+grep+grep on spark at once"
    assert "1.9 times" in row.brings


def test_jobs_in_turn() -> None:
    made = cells("concurrency", 1, 4, workload="wordcount+grep", engine=Engine.SPARK)
    row = only(advised(*made, rule="jobs at once"))
    assert row.title == "Run the jobs of wordcount+grep on spark one after the other"
    assert "concurrency = 1" in row.setting


def test_differences_that_runs_do_not_show() -> None:
    made = [
        run(seconds=seconds, number=number, workload="wordcount+grep", concurrency=concurrency)
        for concurrency, series in ((1, (100.0, 140.0, 90.0)), (2, (99.0, 150.0, 101.0)))
        for number, seconds in enumerate(series, start=1)
    ]
    assert advised(*made, rule="jobs at once") == ()


def test_what_else_differs_is_said() -> None:
    made = cells("master", MasterPlacement.SEPARATE, MasterPlacement.COMBINED)
    other = replace(BOARDS, kernel="6.6.0 aarch64", config_sha256="0" * 64)
    rows = [
        replace(row, attempt=replace(row.attempt, fingerprint=other))
        if row.attempt and row.trial.master is MasterPlacement.COMBINED
        else row
        for row in made
    ]
    row = only(advised(*rows, rule="master"))
    assert "also different: kernel: " in row.seen
    assert "generated configuration" not in row.seen  # it follows from what is compared


# All together


def test_nothing_is_said_of_nothing() -> None:
    assert advise(AdviceEvidence(results=())) == ()
    assert advised(run()) == ()
    pending = Result(trial=run().trial, attempt=None, measurement=None)
    assert advise(AdviceEvidence(results=(pending,))) == ()


def test_the_best_comes_first_and_unknown_gains_last() -> None:
    watched = facts(
        use("pi2", swap_bytes=200 * MIB),
        use("pi3", heat_seconds=60.0, slowed_clock_ratio=0.5),
    )
    found = advised(sort_run(), watched=watched)
    assert [row.rule for row in found] == ["cooling", "reducers", "swap"]
    assert [row.gain and round(row.gain, 2) for row in found] == [1.43, 1.42, None]


def test_one_rule_speaks_once_of_one_subject() -> None:
    watched = facts(use("pi3", heat_seconds=60.0, slowed_clock_ratio=0.5))
    made = [sort_run(number=1), sort_run(number=2), sort_run(workers=2, reduces=1)]
    row = only(advised(*made, rule="cooling", watched=watched))
    assert len(row.runs) == 3
    row = only(advised(*made, rule="reducers"))
    assert row.title.endswith("7 reducers")  # of two workers: the larger gain
    assert len(row.runs) == 3


def test_cells_that_are_there_already_are_taken() -> None:
    made = tuple(cells("replication", 1, 3))
    assert advise(AdviceEvidence(results=made, cells=summarise(made))) == advise(
        AdviceEvidence(results=made)
    )
    assert advise(AdviceEvidence(results=made, cells=())) == ()


def test_names_that_are_not_ascii_survive() -> None:
    watched = facts(use("büro-π", heat_seconds=60.0))
    assert only(advised(run(), rule="cooling", watched=watched)).title == "Cool büro-π"


# The table and its documentation


def test_every_rule_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "advice.md").read_text()
    table = page.partition("## Rules")[2].partition("\n### ")[0]
    written = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| [")]
    assert written == [f"[{rule.name}](#{rule.name.replace(' ', '-')})" for rule in RULES]
    sections = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert sections == [rule.name for rule in RULES]
    for rule in RULES:
        part = (page.partition(f"### {rule.name}\n")[2]).partition("\n### ")[0]
        assert " ".join(rule.source.split()) in " ".join(part.split())


def test_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("name", sorted(published()))
def test_published_numbers_are_those_of_the_catalog(name: str) -> None:
    """A number that is written down twice is the same in both places."""
    folder = ROOT / "src" / "boardcluster" / "catalog" / "published"
    row = published()[name]
    if row.of.startswith("ratio "):
        ratios = tomllib.loads((folder / "ratios.toml").read_text())["ratio"]
        said = {ratio["id"]: float(ratio["says"]) for ratio in ratios}
        assert row.value == said[row.of.removeprefix("ratio ")]
    else:
        file, _, what = row.of.partition(": ")
        with (folder / f"{file}.csv").open(newline="") as stream:
            values = {line["what"]: float(line["value"]) for line in csv.DictReader(stream)}
        assert row.value == values[what]
