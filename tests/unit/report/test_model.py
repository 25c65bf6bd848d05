from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.builders import make_cluster
from tests.unit.report.shown import block, build_report, groups, part, tables, times, times_part

from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    Disturbance,
    Engine,
    Fingerprint,
    Prices,
    Result,
    Security,
    Verdict,
)
from boardcluster.report import words
from boardcluster.report.model import Report
from boardcluster.report.render import named_tables
from boardcluster.report.tables import ReportTable

Make = Callable[..., Result]


def _column(table: ReportTable, title: str) -> list[str]:
    index = [column.title for column in table.columns].index(title)
    return [row[index] for row in table.rows]


def _setup(report: Report) -> ReportTable | None:
    """What the runs ran on."""
    return next(
        (row for row in tables(report, "setup") if row.caption.startswith("Machine, versions")),
        None,
    )


def test_the_headline_says_what_the_runs_show(demo: list[Result], campaign: Campaign) -> None:
    report = build_report(demo, [campaign], cluster=None)
    assert report.headline == (
        "WordCount over 256 MB: Spark 24.1 s, MapReduce 38.9 s: 1.6 times as fast"
    )
    assert report.headline_note == (
        "95 % interval of the ratio 1.47 to 1.77, from 3 pairs in one start of the cluster."
    )
    assert (report.verified, report.attempted) == (6, 6)


def test_one_run_gives_no_interval_and_says_so(demo: list[Result], campaign: Campaign) -> None:
    report = build_report(demo[:2], [campaign], cluster=None)
    assert "one run cannot show" in report.headline_note
    assert "one run cannot show how much times vary" in times_part(report).notes[0]
    titles = [column.title for column in times(report).columns]
    assert "95 % interval (s)" not in titles
    assert "whisker" not in times_part(report).figures[0].caption


def test_a_difference_that_is_shown_comes_before_a_larger_input(
    demo: list[Result], make: Make, campaign: Campaign
) -> None:
    noise = [
        make(100 + place, engine, seconds, size_bytes=10**9)
        for place, (engine, seconds) in enumerate(
            (engine, seconds) for engine in Engine for seconds in (20.0, 30.0, 40.0)
        )
    ]
    report = build_report([*demo, *noise], [campaign], cluster=None)
    assert report.headline.startswith("WordCount over 256 MB: Spark 24.1 s")
    assert [row.is_shown for row in block(report, "findings")] == [True, False]


def test_noise_is_not_called_a_difference(make: Make, campaign: Campaign) -> None:
    runs = [
        make(place, engine, seconds)
        for place, (engine, seconds) in enumerate(
            (engine, seconds) for engine in Engine for seconds in (20.0, 30.0, 40.0)
        )
    ]
    runs[0] = make(0, Engine.MAPREDUCE, 21.0)
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline.endswith(": no difference shown")
    assert "which includes 1" in report.headline_note
    pairs = len(Engine) * (len(Engine) - 1) // 2
    assert f"corrected for {pairs} comparisons" in report.headline_note
    assert "more blocks would show a difference of 5.0 %" in report.headline_note
    assert report.headline_finding is not None
    assert report.headline_finding.ratio == ""


def test_notes_on_speed_up_say_of_which_size_they_are(make: Make, campaign: Campaign) -> None:
    plan = ((1, 1), (1, 2), (2, 2), (3, 1), (3, 2), (6, 2))
    runs = [
        make(place, Engine.SPARK, 10.0 * size, workers=workers, size_bytes=size * 10**9)
        for place, (size, workers) in enumerate(plan)
    ]
    [table] = tables(build_report(runs, [campaign], cluster=None), "workload-wordcount-workers")
    beginnings = {note.partition(": ")[0] for note in table.note.split(". ")}
    assert beginnings == {
        "Spark, the same work, 1 GB",
        "Spark, the same work, 3 GB",
        "Spark, work that grows with the workers, 1 GB per worker",
        "Spark, work that grows with the workers, 3 GB per worker",
    }
    one_size = [run for run in runs if run.trial.size_bytes == 10**9]
    [table] = tables(build_report(one_size, [campaign], cluster=None), "workload-wordcount-workers")
    assert "1 GB" not in table.note


def test_a_single_engine_is_reported_alone(make: Make, campaign: Campaign) -> None:
    runs = [make(place, Engine.SPARK, 20.0 + place) for place in range(3)]
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline == "WordCount over 256 MB: Spark 21.0 s"
    assert report.headline_note == "Mean of 3 runs, 95 % interval 18.5 to 23.5 s."


def test_the_largest_compared_size_is_the_headline(make: Make, campaign: Campaign) -> None:
    runs = [
        make(2 * place + index, engine, 10.0 + place, size_bytes=size)
        for place, size in enumerate((64_000_000, 10**9))
        for index, engine in enumerate(Engine)
    ]
    runs.append(make(9, Engine.SPARK, 99.0, size_bytes=4 * 10**9))
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline.startswith("WordCount over 1 GB")
    assert len(block(report, "findings")) == 3
    assert groups(report) == ["64 MB", "1 GB", "4 GB"]


def test_failed_and_invalid_runs_are_shown_and_left_out(
    make: Make, demo: list[Result], campaign: Campaign
) -> None:
    runs = [
        *demo,
        make(6, Engine.SPARK, None, state=AttemptState.FAILED, reason="oom on worker2"),
        make(6, Engine.SPARK, 24.2, number=2),
        make(7, Engine.SPARK, None, state=AttemptState.INVALID, reason="node_lost"),
        make(8, Engine.SPARK, None, state=None),
    ]
    report = build_report(runs, [campaign], cluster=None)
    (table,) = tables(report, "runs")
    assert "9 planned = 7 ok + 0 failed + 1 invalid + 1 pending" in table.caption
    assert _column(table, "State")[-4:] == ["failed", "ok", "invalid", "pending"]
    assert _column(table, "Reason or remark")[-4:-1] == ["oom on worker2", "", "node_lost"]
    assert _column(times(report), "Runs") == ["3", "4"]
    assert times_part(report).notes[0].startswith("1 failed and 1 invalid attempts are not")
    assert (report.verified, report.attempted) == (7, 9)


def test_runs_are_in_the_order_they_ran(demo: list[Result], campaign: Campaign) -> None:
    (table,) = tables(build_report(demo[::-1], [campaign], cluster=None), "runs")
    assert _column(table, "Order") == ["1", "2", "3", "4", "5", "6"]
    assert _column(table, "Seconds") == ["23.4", "38.2", "40.0", "24.0", "24.9", "38.6"]
    assert _column(table, "Verified") == ["V1 3f2a9c1b"] * 6
    assert "seed 4711" in table.caption


def test_a_wrong_output_is_named_wrong(make: Make, demo: list[Result], campaign: Campaign) -> None:
    found = make(6, Engine.SPARK, 20.0, state=AttemptState.FAILED, reason="output is wrong")
    assert found.measurement is not None
    assert found.measurement.verification is not None
    proof = replace(found.measurement.verification, actual_sha256="00" * 32)
    wrong = replace(found, measurement=replace(found.measurement, verification=proof))
    report = build_report([*demo, wrong], [campaign], cluster=None)
    assert _column(tables(report, "runs")[0], "Verified")[-1] == "V1 wrong"
    assert report.verified == 6
    assert block(report, "verification")[0].extent == "6 outputs, 2,712,345 records each"


def test_counters_are_named_as_what_they_are(make: Make, campaign: Campaign) -> None:
    files = "org.apache.hadoop.mapreduce.FileSystemCounter/"
    counters = {files + "FILE_BYTES_WRITTEN": 1_300_000_000, "unknown/COUNTER": 5}
    more = {files + "FILE_BYTES_WRITTEN": 1_400_000_000, files + "HDFS_BYTES_READ": 1}
    runs = [
        make(0, Engine.MAPREDUCE, 40.0, counters=counters),
        make(1, Engine.MAPREDUCE, 41.0, counters=more),
        make(2, Engine.SPARK, 20.0, counters={"spark/executorCpuTime": 38_000_000_000}),
    ]
    mapreduce, spark = tables(build_report(runs, [campaign], cluster=None), "bytes")
    rows = {row[3]: row[:3] for row in mapreduce.rows}
    assert rows["FileSystemCounter/FILE_BYTES_WRITTEN"] == (
        "intermediate: written to local disks (spills, merges)",
        "1.35 GB",
        "1.3 GB to 1.4 GB",
    )
    assert rows["FileSystemCounter/HDFS_BYTES_READ"][0] == "read from HDFS (in 1 of 2 runs)"
    assert "unknown/COUNTER" not in rows
    assert ("CPU time of all tasks", "38 s", "spark/executorCpuTime") in spark.rows


def test_own_programs_have_a_table_of_their_own(
    make: Make, demo: list[Result], campaign: Campaign
) -> None:
    submitted = replace(campaign, id="20260802-s", kind=CampaignKind.SUBMIT)
    own = make(
        0,
        Engine.SPARK,
        5.0,
        state=AttemptState.FAILED,
        reason="status 3",
        workload="submit",
        size_bytes=0,
        arguments=("app.py", "--token", "abc"),
        campaign_id=submitted.id,
        exit_status=3,
    )
    report = build_report([*demo, own], [campaign, submitted], cluster=None)
    assert _column(tables(report, "programs")[0], "Program and arguments") == [
        "app.py --token (hidden)"
    ]
    assert _column(tables(report, "programs")[0], "Exit status") == ["3"]
    assert len(tables(report, "runs")) == 1
    assert (report.verified, report.attempted) == (6, 6)
    titles = [column.title for column in tables(report, "programs")[0].columns]
    assert "Workers" not in titles, "it is the same in every row"
    alone = build_report([own], [submitted], cluster=None)
    assert alone.headline == "1 run of your own programs"


def test_own_programs_with_other_settings_can_be_told_apart(make: Make, campaign: Campaign) -> None:
    submitted = replace(campaign, kind=CampaignKind.SUBMIT)
    own = {"workload": "submit", "size_bytes": 0, "arguments": ("app.py",)}
    runs = [
        make(0, Engine.SPARK, 5.0, **own, workers=1),
        make(1, Engine.SPARK, 4.0, **own, workers=2, settings={"spark.executor.cores": "2"}),
    ]

    [table] = tables(build_report(runs, [submitted], cluster=None), "programs")

    assert _column(table, "Workers") == ["1", "2"]
    assert _column(table, "Settings") == ["default", "spark.executor.cores 2"]
    assert "Profile" not in [column.title for column in table.columns]


def test_different_setups_are_listed_and_lettered(
    make: Make, demo: list[Result], campaign: Campaign, fingerprint: Fingerprint
) -> None:
    other = replace(fingerprint, kernel="7.0.0", emulated=False)
    runs = [*demo, make(6, Engine.SPARK, 24.4, setup=other)]
    report = build_report(runs, [replace(campaign, emulated=False)], cluster=None)
    setup = _setup(report)
    assert setup is not None
    assert ("Kernel (differs)", "6.18.0 x86_64", "7.0.0") in setup.rows
    assert _column(times(report), "Setup") == ["A", "A", "B"]
    assert "kernel 6.18.0 x86_64" in report.headline
    assert report.emulated
    assert report.partly_emulated


def test_two_starts_of_the_same_emulated_boards_are_one_setup(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    def start(quota: float) -> Fingerprint:
        given = f"worker1: {quota} cores of this machine as 4 of the board, link 117 Mbit/s"
        return replace(fingerprint, limits=f"{given}; of a board with 4 cores, link 943 Mbit/s")

    runs = [make(place, Engine.SPARK, 24.4, setup=start(0.4 + place / 100)) for place in (6, 7, 8)]
    report = build_report(runs, [campaign], cluster=None)
    setup = _setup(report)
    assert setup is not None
    assert len(setup.columns) == 2
    assert not any("(differs)" in str(row[0]) for row in setup.rows)


def test_every_field_of_a_fingerprint_changes_what_the_report_says(
    demo: list[Result], campaign: Campaign, fingerprint: Fingerprint
) -> None:
    def shown(setup: Fingerprint) -> object:
        assert demo[0].attempt is not None
        run = replace(demo[0], attempt=replace(demo[0].attempt, fingerprint=setup))
        table = _setup(build_report([run], [campaign], cluster=None))
        return table and table.rows

    plain = shown(fingerprint)
    for field in fields(Fingerprint):
        value = getattr(fingerprint, field.name)
        other: Any = {
            str: "different",
            int: 7 * 2**30,
            bool: False,
            tuple: ("pi0: a board",),
            Security: Security.CLOSED,
        }[type(value)]
        assert shown(replace(fingerprint, **{field.name: other})) != plain, field.name


def test_boards_are_not_called_emulated(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    setup = replace(fingerprint, emulated=False)
    runs = [make(0, Engine.SPARK, 20.0, setup=setup)]
    report = build_report(runs, [replace(campaign, emulated=False)], cluster=None)
    assert not report.emulated
    shown = [*tables(report, "runs"), *tables(report, "bytes"), times(report), _setup(report)]
    assert not any(table.emulated for table in shown if table)


def test_a_local_node_is_called_neither_boards_nor_emulated(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    setup = replace(fingerprint, emulated=False, kind="local", nodes=1, link_bits_per_second=0)
    runs = [make(0, Engine.SPARK, 20.0, setup=setup)]
    here = replace(campaign, emulated=False)
    report = build_report(runs, [here], cluster=None)
    assert (report.emulated, report.partly_emulated) == (True, False)
    mark = "local: the one node is the driver's own machine, not a board"
    assert words.emulated(report.twins) == mark
    assert {table.mark for table in named_tables(report).values()} == {mark}
    table = _setup(report)
    assert table is not None
    assert all(row.emulated for row in [*tables(report, "runs"), times(report), table])
    said = {row[0]: row[1] for row in table.rows}
    assert said["Nodes"] == "1 local node, which is the driver's own machine"
    assert said["Link of each node"] == words.NONE
    assert f"{here.cluster} (local)" in tables(report, "data")[0].rows[0]

    boards = replace(fingerprint, emulated=False)
    mixed = build_report([*runs, make(1, Engine.SPARK, 21.0, setup=boards)], [here], cluster=None)
    assert (mixed.emulated, mixed.partly_emulated) == (True, True)
    assert words.emulated(mixed.twins) == f"partly {mark}"


def test_each_board_and_who_could_reach_it_is_in_the_setup(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    hardware = ("pi0: Raspberry Pi 5, 8 GiB", "pi1: Raspberry Pi 4, 4 GiB")
    boards = replace(
        fingerprint, emulated=False, security=Security.CLOSED, hardware=hardware, cpu="Pi 4"
    )
    open_boards = replace(boards, security=Security.INSECURE_LAB)
    runs = [
        make(0, Engine.SPARK, 20.0),
        make(1, Engine.SPARK, 20.0, setup=boards),
        make(2, Engine.SPARK, 20.0, setup=open_boards),
    ]
    setup = _setup(build_report(runs, [campaign], cluster=None))
    assert setup is not None
    rows = {row[0]: row[1:] for row in setup.rows}
    assert rows["Hardware (differs)"] == (words.NONE, *(["; ".join(hardware)] * 2))
    assert rows["Security (differs)"] == (
        "reachable only from the machine that emulates it",
        "closed",
        words.INSECURE,
    )


def test_runs_of_an_open_cluster_stand_apart_and_are_named(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    closed = replace(fingerprint, emulated=False, security=Security.CLOSED)
    lab = replace(closed, security=Security.INSECURE_LAB)
    runs = [
        make(place, Engine.SPARK, seconds, setup=setup)
        for place, (seconds, setup) in enumerate([(20.0, closed), (60.0, lab), (22.0, closed)])
    ]
    report = build_report(runs, [replace(campaign, emulated=False)], cluster=None)
    assert report.insecure
    rows = {
        setting: (runs, mean)
        for setting, runs, mean in zip(
            _column(times(report), "Settings"),
            _column(times(report), "Runs"),
            _column(times(report), "Mean (s)"),
            strict=True,
        )
    }
    assert rows == {"default": ("2", "21.0"), "INSECURE LAB": ("1", "60.0")}
    assert _column(tables(report, "runs")[0], "Settings") == ["default", "INSECURE LAB", "default"]
    assert len(block(report, "findings")) == 2


@pytest.mark.parametrize(
    ("state", "security", "insecure"),
    [
        (AttemptState.OK, Security.INSECURE_LAB, True),
        (AttemptState.FAILED, Security.INSECURE_LAB, True),  # it was open all the same
        (AttemptState.OK, Security.CLOSED, False),
        (AttemptState.OK, Security.EMULATED, False),
        (None, Security.INSECURE_LAB, False),  # nothing has run
    ],
)
def test_one_run_of_an_open_cluster_is_enough_for_the_warning(
    *,
    state: AttemptState | None,
    security: Security,
    insecure: bool,
    make: Make,
    demo: list[Result],
    campaign: Campaign,
    fingerprint: Fingerprint,
) -> None:
    setup = replace(fingerprint, emulated=False, security=security)
    seconds = 20.0 if state is AttemptState.OK else None
    runs = [*demo, make(6, Engine.SPARK, seconds, state=state, setup=setup)]
    assert build_report(runs, [campaign], cluster=None).insecure == insecure


def test_the_figures_numbers_can_be_taken_away(
    make: Make, demo: list[Result], campaign: Campaign
) -> None:
    failed = make(6, Engine.SPARK, None, state=AttemptState.FAILED, reason="oom")
    report = build_report([*demo, failed], [campaign], cluster=None)
    rows = list(csv.DictReader(io.StringIO(times_part(report).files[0].text)))
    assert [row["duration_seconds"] for row in rows] == [
        *("23.4", "38.2", "40.0", "24.0", "24.9", "38.6"),
        "",
    ]
    assert {row["emulated"] for row in rows} == {"yes"}


@pytest.mark.parametrize("state", [AttemptState.FAILED, AttemptState.INVALID, None])
def test_without_a_verified_result_the_headline_says_so(
    make: Make, campaign: Campaign, state: AttemptState | None
) -> None:
    runs = [make(0, Engine.SPARK, None, state=state, reason="because")]
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline == "No run has ended with a verified result yet"
    assert report.headline_note.startswith("1 planned = 0 ok")
    assert [row for row in report.walk() if row.name.endswith("-times")] == []


TAINTED: dict[str, Any] = {
    "verdict": Verdict.TAINTED,
    "verdict_reasons": ("host: other programs used 38 % of the machine (from 14 s on)",),
}


def trusted(runs: list[Result], verdict: Verdict = Verdict.VALID) -> list[Result]:
    """The same runs with this verdict."""
    return [
        replace(run, measurement=run.measurement and replace(run.measurement, verdict=verdict))
        for run in runs
    ]


def test_tainted_runs_stay_out_and_are_counted_beside_the_mean(
    demo: list[Result], make: Make, campaign: Campaign
) -> None:
    runs = [*trusted(demo), make(6, Engine.SPARK, 99.0, measured=TAINTED)]
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline.startswith("WordCount over 256 MB: Spark 24.1 s, MapReduce 38.9 s")
    assert report.headline_note.endswith(" 1 tainted run was left out.")
    assert _column(times(report), "Verdicts") == ["3 valid", "3 valid; 1 left out"]
    assert (
        times_part(report).notes[0]
        == "1 tainted attempt is not in these numbers; see every run below."
    )
    assert tables(report, "untrusted") == ()
    assert not report.tainted
    assert _column(tables(report, "runs")[0], "Verdict") == ["valid"] * 6 + ["tainted"]
    assert (
        _column(tables(report, "runs")[0], "Reason or remark")[-1] == TAINTED["verdict_reasons"][0]
    )
    said = part(report, "verification").text[0]
    assert said.endswith("Also verified, but left out of the statistics: 1 tainted run.")
    assert (report.verified, report.attempted) == (7, 7)


def test_a_run_that_a_model_can_adjust_for_is_in_its_cell_and_labelled(
    demo: list[Result], make: Make, campaign: Campaign
) -> None:
    steal = Disturbance(cause="steal", node="host", share=0.1, adjustable=True)
    runs = [
        *trusted(demo),
        make(6, Engine.SPARK, 25.0, measured={**TAINTED, "disturbances": (steal,)}),
    ]
    report = build_report(runs, [campaign], cluster=None)
    assert _column(times(report), "Verdicts") == ["3 valid", "3 valid, 1 tainted"]
    assert report.headline_note.endswith(" 1 of these runs is tainted.")
    assert report.tainted
    assert not any("not in these numbers" in note for note in times_part(report).notes)


def test_tainted_runs_count_if_asked_for_and_are_named(
    demo: list[Result], make: Make, campaign: Campaign
) -> None:
    runs = [*trusted(demo), make(6, Engine.SPARK, 99.0, measured=TAINTED)]
    report = build_report(runs, [campaign], cluster=None, tainted=True)
    assert _column(times(report), "Runs") == ["3", "4"]
    assert _column(times(report), "Verdicts") == ["3 valid", "3 valid, 1 tainted"]
    assert times_part(report).notes == ()
    assert report.tainted
    assert report.headline_note.endswith(" 1 of these runs is tainted.")
    assert (
        part(report, "verification").text[0].startswith("The 7 runs in the statistics are verified")
    )


def test_where_every_run_is_tainted_the_headline_says_so_and_the_runs_are_there(
    make: Make, campaign: Campaign
) -> None:
    spark = [make(place, Engine.SPARK, 20.0 + place, measured=TAINTED) for place in range(3)]
    runs = [*spark, make(3, Engine.MAPREDUCE, 41.0, measured=TAINTED)]
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline == "No valid run yet: all 4 verified runs are tainted"
    assert report.headline_note.startswith("For instance: host: other programs used 38 %")
    assert "the option `--tainted`" in report.headline_note
    assert [row for row in report.walk() if row.name.endswith("-times")] == []
    assert tables(report, "untrusted")[0].emulated
    assert _column(tables(report, "untrusted")[0], "Engine") == ["MapReduce", "Spark"]
    assert _column(tables(report, "untrusted")[0], "Seconds, in run order") == [
        "41.0",
        "20.0, 21.0, 22.0",
    ]
    assert _column(tables(report, "untrusted")[0], "Runs") == ["1 tainted", "3 tainted"]
    assert _column(tables(report, "runs")[0], "Verdict") == ["tainted"] * 4
    assert (
        part(report, "verification")
        .text[0]
        .startswith("4 tainted runs: their outputs were proved right")
    )
    assert block(report, "verification")[0].extent.startswith("4 outputs")

    with_them = build_report(runs, [campaign], cluster=None, tainted=True)
    assert with_them.headline.startswith("WordCount over 256 MB: Spark 21.0 s, MapReduce 41.0 s")
    assert tables(with_them, "untrusted") == ()


def test_one_tainted_run_is_not_called_all(make: Make, campaign: Campaign) -> None:
    run = make(0, Engine.SPARK, 20.0, measured={"verdict": Verdict.TAINTED})
    report = build_report([run], [campaign], cluster=None)
    assert report.headline == "No valid run yet: the only verified run is tainted"
    assert part(report, "verification").text[0].endswith("so only its time cannot be trusted.")
    assert report.headline_note.startswith("Times and causes are below.")


def test_one_configuration_without_a_valid_run_does_not_hide_behind_the_others(
    demo: list[Result], make: Make, campaign: Campaign
) -> None:
    more = {**TAINTED, "verdict_reasons": (*TAINTED["verdict_reasons"], "pi1: swapped")}
    large = make(6, Engine.SPARK, 99.0, size_bytes=10**9, measured=more)
    report = build_report([*demo, large], [campaign], cluster=None)
    assert report.headline.startswith("WordCount over 256 MB")
    assert _column(tables(report, "untrusted")[0], "Input") == ["1 GB"]
    assert _column(tables(report, "untrusted")[0], "Why they are not counted")[0].endswith(
        "; and 1 more, see every run"
    )


def test_runs_from_before_verdicts_count_and_are_labelled(
    demo: list[Result], campaign: Campaign
) -> None:
    report = build_report(demo, [campaign], cluster=None)
    assert _column(times(report), "Verdicts") == ["3 unjudged", "3 unjudged"]
    assert _column(tables(report, "runs")[0], "Verdict") == ["unjudged"] * 6


def test_five_runs_may_have_outliers(make: Make, campaign: Campaign) -> None:
    seconds = (20.0, 20.1, 20.2, 20.3, 26.0)
    runs = [make(place, Engine.SPARK, value) for place, value in enumerate(seconds)]
    report = build_report(runs, [campaign], cluster=None)
    table = times(report)
    assert _column(table, "Outliers") == ["26.0 (order 5)"]
    assert _column(table, "Max (s)") == ["26.0"]
    assert table.note == ""


def test_few_runs_have_no_outliers(demo: list[Result], campaign: Campaign) -> None:
    table = times(build_report(demo, [campaign], cluster=None))
    titles = [column.title for column in table.columns]
    assert "95 % interval (s)" in titles
    assert "Outliers" not in titles
    assert table.note == ""


def test_a_comparison_across_setups_names_what_differs(
    demo: list[Result], make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    changes: dict[str, Any] = {"kernel": "7.0", "os": "Debian 13", "java": "x", "cpu": "y"}
    runs = [*demo, make(6, Engine.SPARK, 24.4, setup=replace(fingerprint, **changes))]
    report = build_report(runs, [campaign], cluster=None)
    labels = _column(times(report), "Settings")
    assert labels[2] == "kernel 7.0, operating system Debian 13, CPU y, Java x"
    assert labels[0] == labels[1] != labels[2]
    software = [
        row
        for part in report.walk()
        for table in part.tables
        for row in table.rows
        if row[0] == "software"
    ]
    assert len(software) == 1


def test_what_was_not_recorded_earlier_is_no_other_setup(
    demo: list[Result], make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    later = replace(fingerprint, governor="performance", blas="b", numa="1 node")
    runs = [*demo, make(6, Engine.SPARK, 24.4, setup=later)]
    report = build_report(runs, [campaign], cluster=None)
    assert "different setups" not in report.headline_note
    assert times(report).note == ""
    setup = _setup(report)
    assert setup is not None
    names = [row[0] for row in setup.rows]
    assert "Governor (differs)" in names
    assert "Kernel command line" not in names  # nobody recorded it


def test_the_csv_has_verdicts_and_reasons(make: Make, campaign: Campaign) -> None:
    runs = [make(0, Engine.SPARK, 20.0), make(1, Engine.SPARK, 30.0, measured=TAINTED)]
    text = times_part(build_report(runs, [campaign], cluster=None)).files[0].text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["verdict"] for row in rows] == ["unjudged", "tainted"]
    assert rows[1]["verdict_reasons"] == TAINTED["verdict_reasons"][0]


def test_verdicts_in_words() -> None:
    found = [Verdict.TAINTED, Verdict.VALID, Verdict.UNJUDGED, Verdict.VALID]
    assert words.verdicts(found) == "2 valid, 1 tainted, 1 unjudged"
    assert words.verdicts([]) == ""


def test_a_cluster_that_ran_nothing_costs_what_its_nodes_cost() -> None:
    prices = Prices(currency="EUR", board=80.0, medium=20.0, supply=10.0, switch=30.0)
    report = build_report([], [], cluster=make_cluster(workers=3, prices=prices))
    (table,) = [row for row in tables(report, "setup") if row.caption.startswith("What the")]
    titles = [column.title for column in table.columns]
    assert dict(zip(titles, table.rows[-1], strict=True))["Price (EUR)"] == "470.00"


def test_the_faster_engine_is_never_less_than_once_as_fast(make: Make, campaign: Campaign) -> None:
    """By its mean Spark is slower; by the geometric mean of runs that scatter much it is not."""
    spark, mapreduce = Engine.SPARK, Engine.MAPREDUCE
    runs = [make(0, mapreduce, 10.0), make(1, spark, 5.0), make(2, spark, 15.1)]
    report = build_report(runs, [campaign], cluster=None)
    assert report.headline == (
        "WordCount over 256 MB: MapReduce 10.0 s, Spark 10.1 s: no difference shown"
    )
    assert report.headline_note.startswith("One of the engines was run only once")
    point = block(report, "summary").points[0]
    assert point.sentence.endswith("no difference is shown between runs on MapReduce and on Spark")


def test_work_without_an_input_is_over_nothing(make: Make, campaign: Campaign) -> None:
    runs = [
        make(place, Engine.SPARK, 20.0 + place % 2, workload="pi", size_bytes=0, workers=workers)
        for place, workers in enumerate((2, 2, 4, 4))
    ]
    found = block(build_report(runs, [campaign], cluster=None), "findings")
    assert [row.sentence for row in found] == [
        "Pi, 2 workers: Spark 20.5 s",
        "Pi, 4 workers: Spark 20.5 s",
    ]


def test_a_tainted_try_that_another_one_replaced_is_said_to_be_left_out(
    make: Make, campaign: Campaign
) -> None:
    steal = Disturbance(cause="steal", node="host", share=0.1, adjustable=True)
    runs = [
        make(0, Engine.SPARK, 25.0, measured={**TAINTED, "disturbances": (steal,)}),
        make(0, Engine.SPARK, 20.0, number=2, measured={"verdict": Verdict.VALID}),
    ]
    report = build_report(runs, [campaign], cluster=None)
    assert _column(times(report), "Verdicts") == ["1 valid; 1 left out"]
    assert times_part(report).notes[0].startswith("1 tainted attempt is not in these numbers")
