from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.report.shown import (
    block,
    build_report,
    groups,
    tables,
    times,
    times_part,
    write_report,
)

from boardcluster.records import Campaign, Checksum, Engine, Result
from boardcluster.report import words
from boardcluster.report.tables import ReportTable

Make = Callable[..., Result]
MIX = "wordcount+terasort+grep+pi"
ENGINES = (Engine.MAPREDUCE, Engine.SPARK)


def _rows(table: ReportTable, *titles: str) -> list[tuple[str, ...]]:
    places = [[column.title for column in table.columns].index(title) for title in titles]
    return [tuple(row[place] for place in places) for row in table.rows]


def test_figures_of_a_workload_have_a_table(make: Make, campaign: Campaign) -> None:
    runs = [
        make(
            0, Engine.MPI, 20.0, workload="hpl", measured={"figures": {"gflops_per_second": 10.0}}
        ),
        make(
            1, Engine.MPI, 20.0, workload="hpl", measured={"figures": {"gflops_per_second": 12.5}}
        ),
    ]
    report = build_report(runs, [campaign], cluster=None)
    (table,) = times_part(report).tables[1:]
    assert table.caption == "HPL: what the workload itself measured"
    assert table.emulated
    assert _rows(table, "Engine", "Figure", "Mean", "Runs") == [
        ("MPI", "rate (Gflop/s)", "11.25", "2")
    ]
    assert _rows(table, "95 % interval") == [("-4.633 to 27.13",)]


def test_phases_are_shown_where_a_job_has_several(make: Make, campaign: Campaign) -> None:
    phases = {"sort": 30.0, "sort/map": 12.0}
    runs = [
        make(0, Engine.MAPREDUCE, 30.0, measured={"phases_seconds": phases}),
        make(1, Engine.MAPREDUCE, 30.0, measured={"phases_seconds": {**phases, "sort/map": 14.0}}),
    ]
    (table,) = times_part(build_report(runs, [campaign], cluster=None)).tables[1:]
    assert _rows(table, "Part", "Mean (s)", "Range (s)") == [
        ("sort", "30.0", "30.0 to 30.0"),
        ("sort/map", "13.0", "12.0 to 14.0"),
    ]
    assert "need not add up" in table.note
    alone = make(0, Engine.MAPREDUCE, 30.0, measured={"phases_seconds": {"sort": 30.0}})
    assert times_part(build_report([alone], [campaign], cluster=None)).tables[1:] == ()


def test_intermediate_data_is_shown_by_the_engine_and_by_node(
    make: Make, campaign: Campaign
) -> None:
    measured = {
        "intermediate_bytes": 3_000_000,
        "node_written_bytes": {"worker1": 10_000_000, "worker2": 20_000_000},
        "node_read_bytes": {"worker1": 5_000_000},
    }
    run = make(0, Engine.SPARK, 20.0, measured=measured)
    (table,) = times_part(build_report([run], [campaign], cluster=None)).tables[1:]
    assert _rows(table, "Bytes", "All nodes", "worker1", "worker2") == [
        ("intermediate, by the engine", "3 MB", "", ""),
        ("written to storage", "30 MB", "10 MB", "20 MB"),
        ("read from storage", "5 MB", "5 MB", ""),
    ]


def test_settings_that_vary_name_the_configuration(make: Make, campaign: Campaign) -> None:
    runs = [
        make(0, Engine.SPARK, 20.0),
        make(1, Engine.SPARK, 30.0, replication=1, checksum=Checksum.NULL),
    ]
    report = build_report(runs, [campaign], cluster=None)
    assert groups(report) == ["256 MB", "256 MB, replication 1, checksum null"]
    assert _rows(times(report), "Settings") == [
        ("default",),
        ("replication 1, checksum null",),
    ]
    assert _rows(tables(report, "runs")[0], "Settings")[1] == ("replication 1, checksum null",)
    assert "replication 1, checksum null" in tables(report, "bytes")[1].caption
    alike = times(build_report(runs[1:], [campaign], cluster=None))
    assert "replication 1, checksum null" in alike.caption


def test_warm_ups_are_marked_and_left_out(make: Make, campaign: Campaign) -> None:
    runs = [make(0, Engine.SPARK, 90.0, warm_up=True), make(1, Engine.SPARK, 20.0)]
    report = build_report(runs, [campaign], cluster=None)
    assert _rows(tables(report, "runs")[0], "Repetition") == [("warm-up 1",), ("1",)]
    assert times_part(report).notes[0].startswith("1 warm-up attempt is not")
    assert report.headline == "WordCount over 256 MB: Spark 20.0 s"
    assert (report.verified, report.attempted) == (1, 1)


def test_remarks_stand_beside_the_reason(make: Make, campaign: Campaign) -> None:
    run = make(0, Engine.SPARK, 20.0, reason="slow", measured={"remarks": ("still 61 °C",)})
    (table,) = tables(build_report([run], [campaign], cluster=None), "runs")
    assert _rows(table, "Reason or remark") == [("slow; still 61 °C",)]


def test_mpi_has_no_counters_and_no_empty_table(make: Make, campaign: Campaign) -> None:
    run = make(0, Engine.MPI, 20.0, workload="hpl", size_bytes=0)
    assert run.measurement is not None
    bare = replace(run, measurement=replace(run.measurement, output_bytes=0))
    report = build_report([bare], [campaign], cluster=None)
    assert tables(report, "bytes") == ()
    assert report.headline == "HPL: MPI 20.0 s"


def test_three_engines_name_the_fastest_and_the_slowest(make: Make, campaign: Campaign) -> None:
    runs = [
        make(place, engine, seconds, workload="pi")
        for place, (engine, seconds) in enumerate(
            ((Engine.MAPREDUCE, 40.0), (Engine.SPARK, 20.0), (Engine.MPI, 10.0))
        )
    ]
    headline = build_report(runs, [campaign], cluster=None).headline
    assert headline.endswith(": MPI is 4.0 times as fast as MapReduce")


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ((254.0, 134.0), "1.9 times as fast"),
        ((100.0, 200.0), "2.0 times as slow"),
    ],
)
def test_a_mix_run_both_ways_is_a_finding(
    make: Make, campaign: Campaign, times: tuple[float, float], verdict: str
) -> None:
    runs = [
        make(2 * place + number, Engine.SPARK, seconds + place, workload=MIX, concurrency=count)
        for number, (seconds, count) in enumerate(zip(times, (1, 4), strict=True))
        for place in range(3)
    ]
    finding = block(build_report(runs, [campaign], cluster=None), "findings")[-1]
    assert finding.sentence == (
        f"WordCount + TeraSort + Grep + Pi over 256 MB on Spark: {times[0] + 1:.1f} s one after the"
        f" other, {times[1] + 1:.1f} s with 4 at once: {verdict}"
    )
    assert "95 % interval of the ratio" in finding.certainty
    once = block(build_report([runs[0], runs[3]], [campaign], cluster=None), "findings")[-1]
    assert "was run only once" in once.certainty


def test_findings_of_mixes_say_what_sets_them_apart(make: Make, campaign: Campaign) -> None:
    runs = [
        make(place, Engine.SPARK, 20.0, workload=MIX, concurrency=count, replication=copies)
        for place, (count, copies) in enumerate(((1, 0), (4, 0), (1, 1), (4, 1)))
    ]
    first, second = block(build_report(runs, [campaign], cluster=None), "findings")[-2:]
    assert "over 256 MB on Spark" in first.sentence
    assert "over 256 MB, replication 1 on Spark" in second.sentence


def test_a_report_of_nine_workloads_is_whole(
    make: Make, campaign: Campaign, tmp_path: Path
) -> None:
    measured = {
        "figures": {"read_throughput_mebibytes_per_second": 12.5},
        "phases_seconds": {"a": 1.0, "b": 2.0},
        "intermediate_bytes": 5,
        "node_written_bytes": {f"worker{number}": number for number in range(8)},
    }
    names = ("wordcount", "terasort", "grep", "pi", "dfsio", "sort", "kmeans", "own", MIX)
    runs = [
        make(
            4 * place + 2 * number + index,
            engine,
            20.0 + place,
            workload=name,
            replication=number,
            parameters={f"{name}.pattern": "A" * 60},
            measured=measured,
        )
        for place, name in enumerate(names)
        for number in range(2)
        for index, engine in enumerate(ENGINES)
    ]
    html, markdown = write_report(runs, [campaign], cluster=None, folder=tmp_path)
    page = html.read_text(encoding="utf-8")
    assert len(re.findall(r'<title id="workload-[\w-]+-times-980-title"', page)) == len(names)
    assert markdown.read_text(encoding="utf-8").count("what the workload itself measured") == 9


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("write_throughput_mebibytes_per_second", "write throughput (MiB/s)"),
        ("gflops_per_second", "rate (Gflop/s)"),
        ("slowest_task_seconds", "slowest task (s)"),
        ("estimate_of_pi", "estimate of pi"),
    ],
)
def test_a_figures_unit_is_written_as_a_unit(name: str, shown: str) -> None:
    assert words.figure_name(name) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (3.14159265, "3.142"),
        (21.456, "21.46"),
        (0.000012345, "1.234e-05"),
        (-4.6326, "-4.633"),
        (123456.7, "123,457"),
    ],
)
def test_figures_have_four_digits_or_more(value: float, shown: str) -> None:
    assert words.number(value) == shown
