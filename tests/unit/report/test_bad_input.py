"""Reports of what is missing, damaged or odd: each is right, and says what is not there."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.report.stored import CAMPAIGN, FINGERPRINT, Run, fill

from boardcluster import api
from boardcluster.errors import EmptySelectionError
from boardcluster.records import AttemptState, Engine, Verdict
from boardcluster.store import Store

SPARK, MAPREDUCE = Engine.SPARK, Engine.MAPREDUCE


def _write(home: Path, **options: str) -> tuple[str, str]:
    written = api.report(home=home, **options)  # type: ignore[arg-type]
    html, markdown = written.html, written.markdown
    return html.read_text(encoding="utf-8"), markdown.read_text(encoding="utf-8")


def _plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace("\N{NO-BREAK SPACE}", " ")


def test_an_empty_store(tmp_path: Path) -> None:
    with Store.open(tmp_path):
        pass
    html, markdown = _write(tmp_path)
    assert "<h1>Nothing has been run yet</h1>" in html
    assert "What matters" not in markdown
    assert not list((tmp_path / "report").glob("data/*"))


def test_an_empty_campaign(tmp_path: Path) -> None:
    fill(tmp_path, [Run(engine=engine, seconds=None, state=None) for engine in (SPARK, MAPREDUCE)])
    html, markdown = _write(tmp_path)
    assert "<h1>No run has ended with a verified result yet</h1>" in html
    assert "2 planned = 0 ok + 0 failed + 0 invalid + 2 pending." in markdown
    assert "No attempt at a workload has ended." in markdown
    assert "shelf-scaling" in markdown
    assert "<svg" not in html


def test_a_campaign_that_is_not_there(tmp_path: Path) -> None:
    fill(tmp_path, [Run(engine=SPARK, seconds=20.0)])
    with pytest.raises(EmptySelectionError, match="no campaign 20260901-z"):
        _write(tmp_path, campaign="20260901-z")


def test_one_run_only_has_no_interval_and_no_bar(tmp_path: Path) -> None:
    fill(tmp_path, [Run(engine=SPARK, seconds=21.5, joules=500.0)])
    html, markdown = _write(tmp_path)
    assert "One run: no interval can be given." in markdown
    assert "one run, no interval" in markdown  # of its energy
    assert "95 % interval (s)" not in markdown
    assert html.count("stroke-width: 1.6") == 0
    assert "No two configurations differ in exactly one factor" in markdown
    assert "Each configuration was run once, so no confidence intervals are given." in markdown


@pytest.mark.parametrize("state", [AttemptState.INVALID, AttemptState.FAILED])
def test_all_runs_invalid(tmp_path: Path, state: AttemptState) -> None:
    fill(
        tmp_path,
        [
            Run(engine=engine, seconds=None, state=state, reason="pi2 was lost")
            for engine in (SPARK, MAPREDUCE)
        ],
    )
    html, markdown = _write(tmp_path)
    assert "No run has ended with a verified result yet" in html
    assert "2 of 2 trials have no run that counts, most often because: pi2 was lost" in markdown
    assert (
        f"Of 2 attempts, 2 {state if state is AttemptState.FAILED else f'are {state}'}; 0 count."
        in markdown
    )
    assert "Methods, ready" not in markdown
    assert "<svg" not in html


def test_runs_of_which_most_are_tainted_are_not_trusted(tmp_path: Path) -> None:
    hot = Run(engine=SPARK, seconds=30.0, verdict=Verdict.TAINTED, reason="pi1: the clock fell")
    fill(tmp_path, [Run(engine=SPARK, seconds=20.0), hot, hot])
    _, markdown = _write(tmp_path)
    first = next(line for line in markdown.splitlines() if line.startswith("1. "))
    assert first.startswith("1. These numbers cannot be trusted: 2 of 3 trials have no run that ")
    assert "pi1: the clock fell (2 of 3)" in markdown


def test_a_failed_attempt_is_of_the_configuration_whose_dilation_it_never_knew(
    tmp_path: Path,
) -> None:
    twin = replace(FINGERPRINT, twin="5 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb")
    ran = [
        Run(engine=SPARK, seconds=20.0, fingerprint=twin, more={"dilation": dilation})
        for dilation in (4.0, 4.1)
    ]
    lost = Run(engine=SPARK, seconds=None, fingerprint=twin, state=AttemptState.FAILED, reason="x")
    fill(tmp_path, [*ran, lost])
    _, markdown = _write(tmp_path)
    [row] = [line for line in markdown.splitlines() if "x (1 of 3)" in line]
    assert "| 3 |" in row


def test_missing_telemetry(tmp_path: Path) -> None:
    runs = [
        Run(engine=SPARK, seconds=20.0 + place, watched=False, verdict=Verdict.UNJUDGED)
        for place in range(3)
    ]
    fill(tmp_path, [*runs, Run(engine=MAPREDUCE, seconds=30.0)])
    html, markdown = _write(tmp_path)
    assert (
        "3 measured runs have no telemetry (20260901-a-000/1, 20260901-a-001/1, 20260901-a-002/1)"
        in markdown
    )
    assert "MapReduce over time" in html
    assert "Spark over time" not in html
    assert (tmp_path / "report/runs/run-20260901-a-003-1.html").exists()


def test_no_telemetry_at_all(tmp_path: Path) -> None:
    fill(tmp_path, [Run(engine=SPARK, seconds=20.0, watched=False, verdict=Verdict.UNJUDGED)])
    html, markdown = _write(tmp_path)
    assert "What holds these runs back is not known: they have no telemetry" in markdown
    assert "These runs have no telemetry, which most rules need." in markdown
    assert "What held it back" not in markdown
    assert 'href="#validity"' in html


def test_missing_energy(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            Run(engine=SPARK, seconds=20.0, joules=400.0),
            Run(engine=SPARK, seconds=21.0),
            Run(engine=MAPREDUCE, seconds=33.0),
        ],
    )
    _, markdown = _write(tmp_path)
    [row] = [line for line in markdown.splitlines() if "| 400 |" in line]
    assert "| one run, no interval |" in row
    assert "| 2, 1 with energy |" in row
    assert "Energy is missing: no meter, and no power is modelled." in markdown
    assert "Energy of 1 of 3 runs was metered by plug (shelly)" in markdown


def test_no_energy_at_all(tmp_path: Path) -> None:
    fill(tmp_path, [Run(engine=SPARK, seconds=20.0)])
    _, markdown = _write(tmp_path)
    assert "Energy is missing: no meter, and no power is modelled." in markdown
    assert "Energy was not measured." in markdown
    assert "J/GB |" not in markdown


def test_mixed_versions_are_named(tmp_path: Path) -> None:
    newer = replace(FINGERPRINT, hadoop="3.4.3", kernel="6.12.1 aarch64")
    fill(
        tmp_path,
        [
            Run(engine=SPARK, seconds=20.0),
            Run(engine=SPARK, seconds=21.0, fingerprint=newer),
            Run(engine=SPARK, seconds=22.0, fingerprint=newer),
        ],
    )
    _, markdown = _write(tmp_path)
    assert "There are 2 different setups" in markdown
    assert "| Hadoop (differs) | 3.4.2 | 3.4.3 |" in markdown
    assert "TeraSort over 64 MB, kernel 6.12.1 aarch64, Hadoop 3.4.3: Spark 21.5 s" in markdown
    assert "kernel 6.6.51 aarch64, Hadoop 3.4.2" in markdown
    assert "Hadoop 3.4.3 and 3.4.2" in markdown
    assert "with software kernel 6.6.51 aarch64, Hadoop 3.4.2 as with software" in markdown


def test_a_damaged_artefact_costs_only_itself(tmp_path: Path) -> None:
    first, _ = fill(tmp_path, [Run(engine=SPARK, seconds=20.0), Run(engine=SPARK, seconds=24.0)])
    with Store.open(tmp_path, read_only=True) as store:
        [attempt] = [row.attempt for row in store.results() if row.trial.id == first]
        assert attempt is not None
        folder = store.artefact_folder(attempt)
    [samples] = folder.glob("telemetry*")
    samples.write_bytes(samples.read_bytes()[:300])
    html, markdown = _write(tmp_path)
    assert "Samples of run 20260901-a-000/1 are damaged: " in markdown
    assert "WordCount" not in markdown
    assert "TeraSort over 64 MB: Spark 22.0 s" in html
    assert "Run 20260901-a-001/1 took 24.0 s" in _plain(html)
    row = next(line for line in markdown.splitlines() if "| whole run |" in line)
    assert "| 1 of 2 |" in row


def test_names_of_other_scripts_survive(tmp_path: Path) -> None:
    home = tmp_path / "großer Würfel 東京"
    campaign = replace(CAMPAIGN, cluster="Ладога", name="été 東京", dataset="Flüge")
    odd = replace(FINGERPRINT, hardware=("pi0: Пи 5 «быстрый»",))
    fill(
        home,
        [Run(engine=SPARK, seconds=20.0 + place, fingerprint=odd) for place in range(2)],
        campaign=campaign,
    )
    html, markdown = _write(home)
    for name in ("Ладога", "été 東京", "Flüge", "Пи 5 «быстрый»"):
        assert name in html
        assert name in markdown
    assert (home / "report/tables/methods.tex").read_text(encoding="utf-8").count("Flüge") == 1


def test_every_link_within_the_report_leads_somewhere(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            Run(engine=engine, seconds=20.0 + place, workers=workers, joules=300.0)
            for place in range(2)
            for engine in (SPARK, MAPREDUCE)
            for workers in (2, 4)
        ],
    )
    html, markdown = _write(tmp_path)
    folder = tmp_path / "report"
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert len(ids) == len(re.findall(r'\bid="([^"]+)"', html))
    links = [link for link in re.findall(r'href="([^"]+)"', html) if not link.startswith("data:")]
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (folder / link).exists(), link
    assert any(link.startswith("runs/") for link in links)
    for link in re.findall(r"\]\(([^)]+)\)", markdown):
        assert (folder / link).exists(), link
    assert "<script" not in html
    assert "default-src 'none'" in html


def test_headings_are_in_order_and_every_drawing_has_words(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            Run(engine=engine, seconds=20.0 + place)
            for place in range(2)
            for engine in (SPARK, MAPREDUCE)
        ],
    )
    html, _ = _write(tmp_path)
    levels = [int(level) for level in re.findall(r"<h([1-6])", html)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= former + 1 for former, later in itertools.pairwise(levels))
    drawings = re.findall(r"<svg [^>]*>", html)
    assert len(drawings) > 4
    assert all('role="img"' in drawing for drawing in drawings)
    named = re.findall(r'aria-labelledby="([^"]+)"', html)
    assert all(f'<title id="{name}">' in html for name in named)
    for row in re.findall(r"<thead>.*?</thead>", html):
        assert row.count("<th ") == row.count('<th scope="col"')
