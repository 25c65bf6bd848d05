"""Whatever a report says of two cells, it says the same everywhere, and only what runs show."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from tests.builders import make_fingerprint
from tests.unit.report.conftest import Make
from tests.unit.report.shown import block, build_report, tables

from boardcluster.records import Campaign, DeclaredComparison, Engine, Result, Verdict
from boardcluster.report.model import Report

ENGINES = (Engine.MAPREDUCE, Engine.SPARK)


def text_of(report: Report) -> str:
    """Every sentence and every row of a report."""
    parts = [report.headline, report.headline_note]
    for part in report.walk():
        parts += [*part.text, *part.notes, str(part.data or "")]
        for table in part.tables:
            parts += [table.caption, table.note, *(" | ".join(row) for row in table.rows)]
    return "\n".join(parts)


def campaign_of(
    make: Make,
    draw: random.Random,
    *,
    workloads: int,
    effect: float,
    cv: float = 0.03,
    repetitions: int = 5,
) -> list[Result]:
    """Both engines in turn over several sizes, in blocks; Spark takes ``effect`` less."""
    rows, place = [], 0
    for repetition in range(1, repetitions + 1):
        for number in range(workloads):
            for engine in ENGINES:
                by = 1 - effect if engine is Engine.SPARK else 1.0
                seconds = (30 + 10 * number) * by * draw.gauss(1, cv)
                rows.append(
                    make(
                        place,
                        engine,
                        seconds,
                        size_bytes=(number + 1) * 10**8,
                        repetition=repetition,
                    )
                )
                place += 1
    return rows


def test_tainted_tries_and_their_repeats_do_not_reverse_a_result(
    make: Make, campaign: Campaign
) -> None:
    """The last tries were paired and the means were of all: 107 s, 117 s and 0.953 times."""
    rows: list[Result] = []
    for repetition in range(1, 6):
        for side, (engine, seconds) in enumerate(zip(ENGINES, (107.0, 102.0), strict=True)):
            place = 2 * repetition + side
            good = make(place, engine, seconds + repetition / 10, repetition=repetition)
            assert good.attempt is not None
            if engine is Engine.SPARK and repetition < 4:
                bad = make(
                    place,
                    engine,
                    125.0 + repetition,
                    repetition=repetition,
                    measured={"verdict": Verdict.TAINTED, "verdict_reasons": ("stolen",)},
                )
                rows.append(bad)
                good = replace(good, attempt=replace(good.attempt, number=2))
            rows.append(good)
    for tainted in (False, True):
        report = build_report(rows, [campaign], cluster=None, tainted=tainted)
        assert "MapReduce 107.3 s" in report.headline
        assert "Spark 102.3 s" in report.headline
        (point, *_) = block(report, "summary").points
        assert "0.9" not in point.sentence
        if "times as fast" in report.headline:
            assert "times as fast on Spark as on MapReduce" in point.sentence


@pytest.mark.parametrize("effect", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_no_two_sentences_of_a_report_disagree(
    make: Make, campaign: Campaign, effect: float, seed: int
) -> None:
    """With a true effect of 5 %, 93 % of reports of six workloads contradicted themselves."""
    rows = campaign_of(make, random.Random(seed), workloads=6, effect=effect)
    report = build_report(rows, [campaign], cluster=None)
    findings = block(report, "findings")
    shown = {row.sentence.partition(":")[0]: row for row in findings}
    effects = {
        f"WordCount over {row[3]}": row
        for part in report.walk()
        for table in part.tables
        if "effect of changing one factor" in table.caption
        for row in table.rows
    }
    assert len(shown) == 6
    titles = next(
        [column.title for column in table.columns]
        for part in report.walk()
        for table in part.tables
        if "effect of changing one factor" in table.caption
    )
    verdicts = {name: row[titles.index("Difference")] for name, row in effects.items()}
    assert len(verdicts) == 6
    for name, finding in shown.items():
        verdict = verdicts[name]
        assert finding.is_shown == (verdict == "shown")
        assert ("no worthwhile" in finding.sentence) == ("no worthwhile" in verdict)
        assert ("more block" in finding.certainty) == verdict.startswith("not shown")
        assert "corrected for 6 comparisons" in finding.certainty
    point = block(report, "summary").points[0]
    any_shown = any(row.is_shown for row in findings)
    assert (point.name == "What differs most") == any_shown
    assert report.headline_finding is not None
    assert report.headline_finding.is_shown == any_shown


def test_runs_on_two_blas_are_never_averaged(make: Make, campaign: Campaign) -> None:
    """2.66 and 26.72 Gflop/s were "rate 14.69 Gflop/s, mean of 2 runs, 0.000 to 370.9 s"."""
    rows = [
        make(
            place,
            Engine.MPI,
            seconds,
            workload="hpl",
            size_bytes=0,
            setup=make_fingerprint(blas=blas),
            measured={"figures": {"gflops_per_second": rate}},
        )
        for place, (blas, seconds, rate) in enumerate(
            (("reference BLAS 3.11", 146.0, 2.66), ("OpenBLAS 0.3.21", 15.0, 26.72))
        )
    ]
    report = build_report(rows, [campaign], cluster=None)
    text = text_of(report)
    assert "14.69" not in text
    assert "BLAS OpenBLAS 0.3.21" in text
    assert "BLAS reference BLAS 3.11" in text
    point = block(report, "summary").points[0]
    assert "OpenBLAS" in point.sentence
    assert "One run, no interval" in point.certainty


def test_null_campaigns_seldom_show_a_difference_or_a_drift(make: Make, campaign: Campaign) -> None:
    draw = random.Random(8)
    false = drifting = 0
    for _ in range(12):
        rows = campaign_of(make, draw, workloads=12, effect=0.0)
        report = build_report(rows, [campaign], cluster=None)
        false += any(row.is_shown for row in block(report, "findings"))
        drifting += "Times drift" in text_of(report)
    assert false <= 3
    assert drifting <= 3


def scaling_rows(make: Make, times: dict[int, float]) -> list[Result]:
    draw = random.Random(4)
    return [
        make(
            10 * workers + place,
            Engine.SPARK,
            seconds * draw.gauss(1, 0.01),
            workers=workers,
            repetition=place + 1,
        )
        for workers, seconds in times.items()
        for place in range(5)
    ]


def test_a_set_that_bends_back_has_no_asymptote(make: Make, campaign: Campaign) -> None:
    times = {1: 100.0, 2: 60.0, 4: 45.0, 8: 70.0}
    text = text_of(build_report(scaling_rows(make, times), [campaign], cluster=None))
    assert "this set bends back: 8 workers take longer than 4 workers" in text
    assert "no number of workers is more than" not in text


def test_a_serial_share_that_may_be_nothing_has_no_asymptote(
    make: Make, campaign: Campaign
) -> None:
    times = {1: 100.0, 2: 50.5, 4: 25.6}
    text = text_of(build_report(scaling_rows(make, times), [campaign], cluster=None))
    assert re.search(r"95 % interval 0\.0 to \d+\.\d %", text)
    assert "no number of workers is more than" not in text


def test_a_law_that_fits_has_its_limit_with_an_interval(make: Make, campaign: Campaign) -> None:
    times = {workers: 100 * (0.2 + 0.8 / workers) for workers in (1, 2, 4, 8)}
    text = text_of(build_report(scaling_rows(make, times), [campaign], cluster=None))
    found = re.search(
        r"no number of workers is more than (\S+) times as fast as one \(95 % interval (\S+) to"
        r" (\S+)\)",
        text,
    )
    assert found is not None
    most, low, high = map(float, found.groups())
    assert low < 5 < high
    assert low < most < high


def test_the_methods_name_what_was_done(make: Make, campaign: Campaign) -> None:
    rows = campaign_of(make, random.Random(1), workloads=3, effect=0.1)
    report = build_report(rows, [campaign], cluster=None)
    methods = block(report, "methods")
    assert "within blocks (Student's t of the logarithms of ratios)" in methods
    assert "The p values were corrected for 3 comparisons by the method of Benjamini" in methods
    for word in ("Welch", "Fieller", "bootstrap"):
        assert word not in methods


def test_starts_are_replicates_and_are_shown(make: Make, campaign: Campaign) -> None:
    rows = []
    draw = random.Random(2)
    for start in (1, 2, 3):
        by = draw.gauss(1, 0.02)
        for number, row in enumerate(campaign_of(make, draw, workloads=1, effect=0.2)):
            assert row.measurement is not None
            place = 100 * start + number
            trial = replace(row.trial, id=f"t{place}", position=place, start=start)
            seconds = row.measurement.duration_seconds * by
            measured = replace(row.measurement, duration_seconds=seconds)
            rows.append(replace(row, trial=trial, measurement=measured))
    report = build_report(rows, [campaign], cluster=None)
    assert "from 15 pairs in 3 starts of the cluster" in report.headline_note
    text = text_of(report)
    assert "means were the replicates" in text
    times = next(row for row in report.walk() if row.name.endswith("-times")).tables[0]
    assert "CV between starts" in [column.title for column in times.columns]


def test_what_a_campaign_declared_is_a_family_of_its_own(make: Make, campaign: Campaign) -> None:
    rows = campaign_of(make, random.Random(3), workloads=3, effect=0.2)
    explored = text_of(build_report(rows, [campaign], cluster=None))
    assert "corrected for 3 comparisons by the method of Benjamini and Hochberg" in explored
    assert "Holm" not in explored

    declared = DeclaredComparison(factor="engine", levels=(Engine.MAPREDUCE, Engine.SPARK))
    confirmed = text_of(
        build_report(rows, [replace(campaign, comparisons=(declared,))], cluster=None)
    )
    assert "corrected for 3 declared comparisons by the method of Holm" in confirmed
    assert "Benjamini" not in confirmed

    part = replace(declared, where={"size_bytes": (10**8, 2 * 10**8)})
    planned = replace(campaign, comparisons=(part,))
    both = text_of(build_report(rows, [planned], cluster=None))
    assert "corrected for 2 declared comparisons by the method of Holm" in both
    assert "Benjamini" not in both  # one comparison that is left needs no correction


def test_means_of_earlier_setups_are_not_left_out_without_a_word(
    make: Make, campaign: Campaign
) -> None:
    rows = [
        make(
            place,
            Engine.SPARK,
            seconds,
            workers=workers,
            setup=make_fingerprint(nodes=workers + 1, config_sha256=f"{seconds}{workers}"),
        )
        for place, (seconds, workers) in enumerate(((90.0, 1), (45.0, 2), (60.0, 1), (30.0, 2)))
    ]
    report = build_report(rows, [campaign], cluster=None)
    (table,) = tables(report, "workload-wordcount-workers")
    assert table.note.endswith("; 2 earlier means of another setup are left out.")


def test_a_local_node_is_no_emulated_board(make: Make, campaign: Campaign) -> None:
    here = make_fingerprint(emulated=False, kind="local", nodes=1)
    rows = [make(place, Engine.SPARK, 20.0 + place, setup=here) for place in range(2)]
    text = text_of(build_report(rows, [replace(campaign, emulated=False)], cluster=None))
    assert "Emulated boards" not in text
