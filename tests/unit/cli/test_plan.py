"""``boardcluster plan``, with the learned model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign, make_fingerprint, make_measurement, make_trial, store_run
from typer.testing import CliRunner, Result

from boardcluster import api
from boardcluster.cli.app import app
from boardcluster.errors import UsageError
from boardcluster.plan.learning import learn
from boardcluster.queries import plan_model
from boardcluster.records import Engine
from boardcluster.services.containers import copies_of_profile
from boardcluster.store import Store
from boardcluster.workloads import parameter_defaults

HERE = ("--board", "rpi-5b-8gb-2400mhz", "--medium", "sk-hynix-gold-p31-500gb")
PRICES = ("--price", "medium=45", "--price", "supply=12", "--price", "switch=60")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def plan(home: Path, *words: str, size: str = "20GB") -> Result:
    sized = ["--size", size] if size else []
    return CliRunner().invoke(app, ["plan", *words, *sized, "--home", str(home)])


def fields(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_plan_names_the_cluster_the_front_and_what_falls_out(home: Path) -> None:
    done = plan(home, "terasort", "--engine", "spark", "--deadline", "15min", *HERE, *PRICES)
    assert done.exit_code == 0, done.output
    for words in (
        "buy: ",
        "no other cluster beats these",
        "alternatives to the choice",
        "what would change it",
        "at most 92 % fits",
    ):
        assert words in done.output
    assert not home.exists(), "a plan reads at most"


def test_json_has_the_same_and_the_choice_keeps_to_the_limits(home: Path) -> None:
    done = plan(
        home, "terasort", "--engine", "spark", "--deadline", "15min", *HERE, *PRICES, "--json"
    )
    found = fields(done)
    best = found["best"]
    assert best["most_seconds"] <= 900
    assert best["price"] == pytest.approx(
        sum(part["count"] * part["each"] for part in best["parts"])
    )
    assert found["limits"] == {"deadline": 900}
    assert best in found["front"]


def test_files_and_figures_are_written(home: Path, tmp_path: Path) -> None:
    found = fields(
        plan(
            home,
            "terasort",
            "--engine",
            "spark",
            *HERE,
            *("--out", str(tmp_path / "plan"), "--chart", str(tmp_path / "figures"), "--json"),
        )
    )
    names = {Path(path).name for path in found["files"]}
    assert {"cluster.toml", "twin.toml", "shopping-list.md", "shopping-list.csv"} <= names
    for name in ("plan-front", "plan-workers", "plan-sizes"):
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 1000


@pytest.mark.parametrize("name", ["cluster.toml", "twin.toml"])
def test_a_plan_replaces_no_cluster(home: Path, tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.write_text("mine")
    done = plan(home, "terasort", "--engine", "spark", *HERE, "--out", str(tmp_path))
    assert isinstance(done.exception, UsageError)
    assert f"{mine} exists already" in done.exception.message
    assert mine.read_text() == "mine"


def test_python_gives_the_same_plan(home: Path) -> None:
    done = plan(home, "terasort", "--engine", "spark", "--deadline", "15min", *HERE, "--json")
    made = api.plan(
        "terasort",
        size="20 GB",
        engine="spark",
        deadline="15min",
        boards=[HERE[1]],
        media=[HERE[3]],
        home=home,
    )
    assert made.best.words.startswith(str(fields(done)["best"]["workers"]))


@pytest.mark.parametrize(
    ("size", "words", "said"),
    [
        ("", (), "a plan needs the size"),
        ("20", (), "--size: '20' has no unit"),
        ("20XB", (), "is not a size"),
        ("20GB", ("--deadline", "soon"), "is not a duration"),
        ("20GB", ("--deadline", "0s"), "allows nothing"),
        ("20GB", ("--budget", "0"), "allows nothing"),
        ("20GB", ("--board", "rpi5-8gb"), "did you mean"),
        ("20GB", ("--medium", "sk-hynix"), "did you mean"),
        ("20GB", ("--price", "disk"), "is not NAME=AMOUNT"),
        ("20GB", ("--have", "four boards"), "is not COUNT x BOARD, MEDIUM"),
        ("20GB", ("--profile", "fastest"), "unknown profile"),
        ("20GB", ("--network", "wifi-r6220"), "no network to choose from: wifi-r6220: no ports"),
        ("20GB", ("--board", "desktop-i5-8400"), "no board to choose from: desktop-i5-8400: no ra"),
        ("20GB", ("--engine", "mpi"), "does not run on mpi"),
        ("20GB", ("--budget", "5", *HERE), "--budget USD 5: the cheapest"),
    ],
)
def test_bad_input_is_refused_with_what_is_allowed(
    home: Path, size: str, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(
            app,
            ["plan", "terasort", "--home", str(home), *(["--size", size] if size else []), *words],
            catch_exceptions=False,
            standalone_mode=False,
        )
    assert said in caught.value.message


def test_workloads_without_hdfs_are_not_planned(home: Path) -> None:
    with pytest.raises(UsageError, match="no plan for hpl"):
        api.plan("hpl", size="1GB", home=home)


def test_pi_takes_no_size(home: Path) -> None:
    with pytest.raises(UsageError, match="pi takes no input"):
        api.plan("pi", size="1GB", home=home)
    assert api.plan("pi", engine="mapreduce", home=home).over_sizes == ()


def test_runs_of_pi_count_with_the_maps_that_they_had(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight by default, of the papers' 100."""
    trial = make_trial(
        "pi",
        id="t0",
        campaign_id=make_campaign().id,
        engine=Engine.MAPREDUCE,
        size_bytes=0,
        parameters={},
    )
    stands_for = make_fingerprint(twin="5 x rpi-4b-4gb-1500mhz with samsung-ufs-256gb")
    with Store.open(home) as store:
        store.add_campaign(make_campaign(), [trial])
        store_run(store, trial, make_measurement(30.0), fingerprint=stands_for)
    amounts: list[float] = []

    def note(*parts: Any, own: Any) -> Any:
        amounts.extend(run.amount for runs in own.values() for run in runs)
        return learn(*parts, own=own)

    monkeypatch.setattr(plan_model, "learn", note)
    defaults = parameter_defaults("pi")
    plan_model.learn_for_plan(
        home, "pi", HERE[1:2], HERE[3:], defaults=defaults, copies_of=copies_of_profile
    )
    assert amounts == [0.08]


def test_boards_that_are_there_are_read_from_a_twin(home: Path) -> None:
    twin = Path(__file__).parents[3] / "examples" / "twin" / "rpi5-nvme-8.toml"
    made = api.plan(
        "terasort",
        size="20GB",
        engine="spark",
        deadline="15min",
        boards=[HERE[1]],
        media=[HERE[3]],
        have=[str(twin)],
        home=home,
    )
    assert made.best.workers_there == 8
