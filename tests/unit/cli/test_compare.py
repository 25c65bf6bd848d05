"""What `compare` finds, what it refuses, and what it writes."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_measurement, store_run
from tests.unit.cli.stocked import FINGERPRINT, campaign, run, stock
from typer.testing import CliRunner

from boardcluster import api
from boardcluster.analysis.inference import compare_values
from boardcluster.analysis.result_sets import MatchOutcome, ResultSetComparison
from boardcluster.cli.app import app
from boardcluster.errors import BoardclusterError, ClusterError, EmptySelectionError, UsageError
from boardcluster.records import AttemptState, Engine, Verdict
from boardcluster.report.compared import COMPARISON, describe
from boardcluster.store import Store

SLOW = (40.0, 41.0, 42.0)
FAST = (20.0, 20.5, 21.0)
TERASORT = "published:lee-oh-park-2021-table-15"


def compare(first: str, second: str, home: Path, *, tainted: bool = False) -> ResultSetComparison:
    return api.compare(first, second, home=home, tainted=tainted).sides


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Profiles in one home: `default` takes 41 s, `tuned` 20.5 s."""
    folder = tmp_path / "boards"
    stock(folder, "20260801-1", SLOW, name="grün")
    stock(folder, "20260801-2", FAST, name="grün", profile="tuned")
    return folder


def test_profiles_are_compared_with_the_interval_of_the_ratio(home: Path) -> None:
    found = compare("profile:default", "profile:tuned", home)

    (match,) = found.matches
    assert match.ratio is not None
    assert match.ratio.value == pytest.approx(compare_values(SLOW, FAST).value)
    assert match.ratio.interval is not None
    assert match.ratio.allows_for_starts
    assert match.outcome is MatchOutcome.HIGHER
    assert [(row.name, row.first, row.second) for row in found.apart] == [
        ("profile", "default", "tuned")
    ]
    assert found.machines == ("profile: default, tuned",)
    assert match.ratio.pairs == 0


def test_own_profiles_are_shown_by_the_names_of_their_files(tmp_path: Path) -> None:
    own = str(tmp_path / "a-long-way-to-it" / "lean.toml")
    stock(tmp_path, "20260801-a", SLOW)
    stock(tmp_path, "20260801-b", FAST, profile=own)
    [table, *_] = describe(compare("20260801-a", "20260801-b", tmp_path)).tables
    shown = " ".join([table.caption, *(cell for row in table.rows for cell in row)])
    assert "default / lean.toml" in shown
    assert "a-long-way-to-it" not in shown


def test_own_profiles_are_found_from_here_and_from_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    stock(home, "20260801-a", SLOW)
    stock(home, "20260801-b", FAST, profile=str(home / "tunings" / "lean.toml"))
    for folder, name in ((tmp_path, "tunings/lean.toml"), (home / "tunings", "lean.toml")):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        found = compare("profile:default", f"profile:{name}", home)
        assert [match.second.values for match in found.matches] == [FAST]
        assert found.second.title == f"profile {name}"


def test_campaigns_by_id_and_clusters_by_name_and_path(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    stock(other, "20260901-1", FAST, cluster="other", workers=4)
    by_id = compare("20260801-1", "20260801-2", home)
    by_name = compare("20260801-1", "cluster:other/20260901-1", home)
    by_path = compare(f"cluster:{home}/20260801-1", str(other), home)
    for found in (by_id, by_name, by_path):
        assert [match.first.values for match in found.matches] == [SLOW]
        assert [match.second.values for match in found.matches] == [FAST]
    assert by_name.apart == ()


def test_of_campaigns_with_one_name_the_latest_is_taken_and_said(home: Path) -> None:
    found = compare("20260801-1", "grün", home)

    assert found.second.title == "campaign grün (20260801-2) on cluster boards"
    (note,) = found.second.notes
    assert "20260801-2" in note
    assert "20260801-1" in note


def test_engines_that_ran_in_turn_are_paired(tmp_path: Path) -> None:
    order = [(Engine.SPARK, FAST), (Engine.MAPREDUCE, SLOW)]
    trials = [
        replace(trial, position=2 * place + turn)
        for turn, (engine, seconds) in enumerate(order)
        for place, trial in enumerate(stock(tmp_path, "c", seconds, engine=engine, add=False))
    ]
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign("c", "", "boards", FINGERPRINT), trials)
        run(store, trials, (*FAST, *SLOW))
    found = compare("engine:mapreduce", "engine:spark", tmp_path)

    (match,) = found.matches
    assert match.ratio is not None
    assert match.ratio.pairs == 3
    assert match.ratio.value == pytest.approx(2)


def test_values_of_a_setting_are_compared_where_all_else_is_equal(tmp_path: Path) -> None:
    """The other setting is a condition of each match, and is not averaged over."""
    blocks = {"33554432": 1.0, "134217728": 2.0}
    for place, (block, times) in enumerate(blocks.items()):
        for compress, seconds in (("true", FAST), ("false", SLOW), ("", SLOW)):
            settings = {"dfs.blocksize": block} | ({"a.compress": compress} if compress else {})
            values = tuple(times * each for each in seconds)
            stock(tmp_path, f"c{place}{compress}", values, settings=settings)

    found = compare("setting:a.compress=false", "setting:a.compress=true", tmp_path)

    assert [(row.name, row.first, row.second) for row in found.apart] == [
        ("setting a.compress", "false", "true")
    ]
    assert sorted(match.first.values[0] for match in found.matches) == [SLOW[0], 2 * SLOW[0]]
    assert {match.outcome for match in found.matches} == {MatchOutcome.HIGHER}
    assert not found.only_first

    blocks_apart = compare(
        "setting:dfs.blocksize=32 MiB", "setting:dfs.blocksize=134217728", tmp_path
    )
    assert (blocks_apart.apart[0].first, blocks_apart.apart[0].second) == ("32 MiB", "128 MiB")

    unset = compare("setting:a.compress=", "setting:a.compress=true", tmp_path)
    assert unset.apart[0].first == "as the profile"
    assert len(unset.matches) == 2
    for asked, nearest in (("a.compres=true", "a.compress"), ("a.compress=tru", "compress=true")):
        with pytest.raises(EmptySelectionError, match="no setting") as caught:
            compare(f"setting:{asked}", "c0", tmp_path)
        assert nearest in caught.value.hint


def test_a_setting_that_one_engine_reads_does_not_part_the_others(tmp_path: Path) -> None:
    for number, cores in enumerate(("1", "2")):
        for engine in Engine.SPARK, Engine.MAPREDUCE:
            settings = {"spark.executor.cores": cores} if engine is Engine.SPARK else {}
            name = f"{number}{engine.value}"
            stock(tmp_path, name, FAST, name=f"n{number}", engine=engine, settings=settings)

    for first, second in (("0spark", "1spark"), ("0mapreduce", "1mapreduce")):
        assert len(compare(first, second, tmp_path).matches) == 1
    [apart] = compare("0spark", "1spark", tmp_path).apart
    assert apart.name == "setting spark.executor.cores"


def test_one_run_has_no_interval_and_shows_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stock(tmp_path, "a", SLOW[:1])
    stock(tmp_path, "b", FAST[:1], profile="tuned")
    found = compare("a", "b", tmp_path)
    assert found.matches[0].outcome is MatchOutcome.NO_INTERVAL

    shown = CliRunner().invoke(app, ["compare", "a", "b", "--home", str(tmp_path)]).output
    assert "one run, no interval" in shown
    assert "±" not in shown.replace("mean ± half", "")


def test_a_paper_is_matched_by_all_that_it_says(home: Path) -> None:
    found = compare("20260801-1", TERASORT, home)

    # Table 15: 500 MB on four nodes, three media; nothing says which medium the boards had.
    said = {match.second.machine["storage"]: match for match in found.matches}
    assert len(found.matches) == 3
    assert said["ufs"].second.conditions["workers"] == 4
    # Our mean is 41 s, its interval 38.5 to 43.5 s.
    outcomes = {match.second.mean: match.outcome for match in found.matches}
    assert outcomes == {
        value: MatchOutcome.INSIDE if 38.6 < value < 43.4 else MatchOutcome.OUTSIDE
        for value in outcomes
    }
    assert set(outcomes.values()) == {MatchOutcome.INSIDE, MatchOutcome.OUTSIDE}
    assert all(match.ratio and match.ratio.interval is None for match in found.matches)
    assert len(found.only_second) == 60 - 3
    assert found.machines == ()


def test_several_cells_of_a_paper_are_said_and_no_mean_is_made(home: Path) -> None:
    shown = CliRunner().invoke(app, ["compare", "20260801-1", TERASORT, "--home", str(home)]).output
    assert "3 numbers in common: " in shown
    assert "the published number lies in our interval in 1" in shown
    assert "outside our interval in 2" in shown
    assert "geometric mean" not in shown
    assert "up to 3 published cells match one of ours" in shown
    assert "And 47 more." in shown

    narrowed = ["compare", "20260801-1", f"{TERASORT}?storage=UFS", "--home", str(home)]
    assert "published cells are like one" not in CliRunner().invoke(app, narrowed).output


def test_means_of_several_ratios_are_geometric(home: Path) -> None:
    for name, seconds, profile in (("8", (30.0, 31.0), "default"), ("9", (60.0, 62.0), "tuned")):
        stock(home, f"20260801-{name}", seconds, profile=profile, size_bytes=10**9)
    arguments = ["compare", "profile:default", "profile:tuned", "--home", str(home)]
    shown = CliRunner().invoke(app, arguments).output
    # Ratios of 2 and of 0.5.
    assert "times of A are 1 times those of B, by geometric mean" in shown
    assert "A takes longer in 1, A takes less time in 1" in shown


def test_a_paper_is_narrowed_by_the_medium_that_the_boards_had(tmp_path: Path) -> None:
    line = "worker1: Raspberry Pi 4 Model B Rev 1.4, 4 x Cortex-A72, 4 GiB, sd SC64G, 1 Gbit/s"
    stock(tmp_path, "a", SLOW, fingerprint=replace(FINGERPRINT, hardware=(line,)))
    found = compare("a", TERASORT, tmp_path)
    assert {match.second.label.split("storage ")[1][:8] for match in found.matches} == {
        "microSD1",
        "microSD2",
    }


def home_with(folder: Path, name: str, seconds: tuple[float, ...]) -> Path:
    stock(folder, name, seconds)
    return folder


def test_a_published_number_inside_our_interval(tmp_path: Path) -> None:
    home_with(tmp_path / "near", "a", (20.0, 40.0, 60.0))
    where = f"{TERASORT}?storage=UFS&nodes=4&data_size=500MB"
    found = compare("a", where, tmp_path / "near")
    (match,) = found.matches
    assert match.second.interval is None
    assert match.first.interval is not None
    assert match.ratio is not None
    assert match.ratio.value == match.first.mean / match.second.mean
    far = compare("a", where, home_with(tmp_path / "far", "a", (80.0, 81.0, 82.0)))
    assert far.matches[0].outcome is MatchOutcome.OUTSIDE
    assert match.outcome is MatchOutcome.INSIDE


def test_a_ratio_to_a_published_number_is_said_to_be_of_the_arithmetic_mean(tmp_path: Path) -> None:
    own = home_with(tmp_path / "a", "a", (20.0, 40.0, 60.0))
    found = compare("a", f"{TERASORT}?storage=UFS&nodes=4&data_size=500MB", own)
    (match,) = found.matches
    assert match.ratio is not None
    assert match.ratio.value == pytest.approx(40.0 / match.second.mean)
    assert any("arithmetic mean" in line for line in describe(found).method)
    meaning = next(row.field.meaning for row in COMPARISON if row.field.name == "ratio")
    assert "beside a published number, arithmetic mean" in meaning


def test_two_papers() -> None:
    found = compare(
        "published:lee-park-2026-table-16?storage=SSD",
        "published:lee-oh-park-2021-table-18?storage=UFS",
        Path("/nowhere"),
    )
    ratios = {
        match.first.conditions["workers"]: match.ratio.value
        for match in found.matches
        if match.ratio
    }
    assert ratios == {1: 246 / 571.1, 2: 131 / 293.3, 4: 76 / 154.7}
    assert {match.outcome for match in found.matches} == {MatchOutcome.NO_INTERVAL}


def test_what_a_table_was_narrowed_by_tells_sides_apart() -> None:
    table = "published:lee-oh-park-2021-table-15?storage=UFS&data_size=1GB&nodes="
    found = compare(f"{table}1", f"{table}4", Path("/nowhere"))
    assert len(found.matches) == 1
    assert [(row.name, row.first, row.second) for row in found.apart] == [("workers", 1, 4)]


def test_hpl_matches_baun_at_the_papers_own_matrix(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "workload": "hpl",
        "engine": Engine.MPI,
        "workers": 8,
        "size_bytes": 2717908992,  # N = 18,432, as in examples/paper-2016-hpl.toml
        "parameters": {"hpl.nb": "32", "hpl.p": "2", "hpl.ranks_per_node": "1"},
    }
    figures = {"gflops_per_second": 1.5, "solve_seconds": 2900.0}
    stock(tmp_path, "a", (3000.0, 3100.0), measured={"figures": figures}, **fields)
    found = compare("a", "published:baun-2016-table-07", tmp_path)
    assert {row.quantity: row.second.mean for row in found.matches} == {
        "solve_seconds": 3055.37,
        "gflops_per_second": 1.367,
    }


def test_hpl_of_a_share_of_memory_is_not_bauns_share_of_n(tmp_path: Path) -> None:
    rate = {"figures": {"gflops_per_second": 1.5}}
    fields: dict[str, Any] = {"workload": "hpl", "engine": Engine.MPI, "workers": 8}
    stock(tmp_path, "a", (3000.0,), size_bytes=0, measured=rate, **fields)
    with pytest.raises(EmptySelectionError, match="no cell in common"):
        compare("a", "published:baun-2016-table-07", tmp_path)


@pytest.mark.parametrize(
    ("sides", "kind", "message", "hint"),
    [
        (("profil:a", "x"), UsageError, "'profil' cannot be compared", "profile:NAME"),
        (("profile:", "x"), UsageError, "does not name anything", "profile:NAME"),
        (("profile:tunde", "x"), EmptySelectionError, "no profile 'tunde'", "nearest: tuned"),
        (("engine:sparc", "x"), EmptySelectionError, "no engine 'sparc'", "nearest: spark"),
        (("setting:a.b=1", "x"), EmptySelectionError, "an engine setting", "[matrix.settings]"),
        (("20260801-3", "x"), EmptySelectionError, "no campaign '20260801-3'", "20260801-2"),
        (("cluster:/nowhere/at/all", "x"), ClusterError, "no cluster in /nowhere/at/all", "--home"),
        (
            ("published:lee-park-2026-tabel-16", "x"),
            UsageError,
            'did you mean "lee-park-2026-table-16"',
            "catalog published",
        ),
        (("published:lee-park-2026-table-s24", "x"), UsageError, "supplement", "catalog published"),
        ((f"{TERASORT}?storge=UFS", "x"), UsageError, 'mean "storage"', "nodes"),
        ((f"{TERASORT}?storage=UFO", "x"), UsageError, 'did you mean "UFS"', "microSD1"),
        ((f"{TERASORT}?storage", "x"), UsageError, "not column=value", "?column=value"),
    ],
)
def test_bad_sides(
    sides: tuple[str, str], kind: type[BoardclusterError], message: str, hint: str, home: Path
) -> None:
    with pytest.raises(kind) as caught:
        compare(*sides, home)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_no_cell_in_common_names_what_there_is_and_the_nearest(home: Path) -> None:
    stock(home, "20260801-9", FAST, size_bytes=10**9)
    with pytest.raises(EmptySelectionError) as caught:
        compare("20260801-1", "20260801-9", home)
    lines = caught.value.message.splitlines()
    assert lines[0] == "A and B have no cell in common"
    assert "terasort spark 500 MB 4 workers" in lines[1]
    assert "terasort spark 1 GB 4 workers" in lines[2]
    assert lines[3].endswith("differ in size (500000000 against 1000000000)")


def test_a_side_of_tainted_runs_only_offers_to_count_them(home: Path) -> None:
    stock(home, "20260801-9", FAST, verdict=Verdict.TAINTED)
    with pytest.raises(EmptySelectionError) as caught:
        compare("20260801-1", "20260801-9", home)
    assert "all 3 verified runs are tainted" in caught.value.message
    assert "--tainted" in caught.value.hint

    found = compare("20260801-1", "20260801-9", home, tainted=True)
    assert found.matches[0].second.values == FAST


def test_a_tainted_run_whose_repeat_failed_is_not_forgotten(home: Path) -> None:
    stock(home, "20260801-9", FAST[:2], verdict=Verdict.TAINTED, profile="slim")
    with Store.open(home) as store:
        first, second = store.results("20260801-9")
        store_run(store, first.trial, fingerprint=FINGERPRINT, state=AttemptState.FAILED)
        again = make_measurement(FAST[1], verdict=Verdict.VALID)
        store_run(store, second.trial, again, fingerprint=FINGERPRINT)
    found = compare("profile:default", "profile:slim", home)
    assert found.second.notes == ("1 tainted run is left out; --tainted includes it",)
    found = compare("profile:default", "profile:slim", home, tainted=True)
    assert found.matches[0].second.values == FAST[:2]


def test_one_tainted_run_that_is_left_out_is_one(home: Path) -> None:
    stock(home, "20260801-9", FAST[:1], verdict=Verdict.TAINTED, profile="tuned")
    notes = compare("profile:default", "profile:tuned", home).second.notes
    assert notes == ("1 tainted run is left out; --tainted includes it",)
    notes = compare("profile:default", "profile:tuned", home, tainted=True).second.notes
    assert notes == ("1 of these runs is tainted",)


def test_a_side_without_any_verified_run(home: Path) -> None:
    stock(home, "20260801-9", (1.0, 2.0, None), state=AttemptState.FAILED)
    with pytest.raises(EmptySelectionError, match="2 failed, 1 pending"):
        compare("20260801-1", "20260801-9", home)


def test_an_empty_cluster(tmp_path: Path) -> None:
    with pytest.raises(EmptySelectionError, match="no runs in"):
        compare("a", "b", tmp_path)


def test_emulated_numbers_say_so_wherever_they_are(home: Path, tmp_path: Path) -> None:
    emulated = replace(FINGERPRINT, emulated=True)
    stock(home, "20260801-9", FAST, fingerprint=emulated)
    arguments = ["compare", "20260801-1", "20260801-9", "--home", str(home)]

    shown = CliRunner().invoke(app, arguments).output
    assert "B (emulated), seconds" in re.sub(r"\s+", " ", shown)
    assert "A (emulated)" not in shown
    assert "one side is emulated and the other is not" in shown
    for ending in (".html", ".md"):
        path = tmp_path / f"it{ending}"
        done = CliRunner().invoke(app, [*arguments, "-o", str(path)])
        assert done.exit_code == 0, done.output
        text = path.read_text()
        assert "network namespaces" in text
        assert "B (emulated), seconds" in text.replace("\\", "")
    rows = list(csv.DictReader(_written(arguments, tmp_path / "it.csv").splitlines()))
    assert [(row["a_emulated"], row["b_emulated"]) for row in rows] == [("false", "true")]
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)["sides"][1][
        "emulated"
    ]


def _written(arguments: list[str], path: Path) -> str:
    CliRunner().invoke(app, [*arguments, "-o", str(path)])
    return path.read_text()


def test_csv_and_json_hold_the_exact_numbers(home: Path, tmp_path: Path) -> None:
    arguments = ["compare", "20260801-1", "20260801-2", "--home", str(home)]
    (row,) = csv.DictReader(_written(arguments, tmp_path / "it.csv").splitlines())
    document = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    expected = compare_values(SLOW, FAST)
    assert expected.interval is not None
    assert float(row["ratio"]) == document["rows"][0]["ratio"] == pytest.approx(expected.value)
    assert float(row["ratio_low"]) < expected.interval.low < expected.value
    assert float(row["p"]) == document["rows"][0]["p"] < 0.05
    assert row["a_runs"] == "3"
    assert row["outcome"] == "higher"


def test_names_of_any_script_survive(home: Path, tmp_path: Path) -> None:
    arguments = ["compare", "20260801-1", "grün", "--home", str(home)]
    assert "campaign grün (20260801-2)" in _written(arguments, tmp_path / "it.html")
    assert "campaign grün (20260801-2)" in CliRunner().invoke(app, arguments).output


@pytest.mark.parametrize("options", [["-o", "it.pdf"], ["-o", "it.md", "--json"]])
def test_options_that_do_not_fit(options: list[str], home: Path) -> None:
    done = CliRunner().invoke(app, ["compare", "a", "b", "--home", str(home), *options])
    assert isinstance(done.exception, UsageError)
