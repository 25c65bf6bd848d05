"""A store that an earlier version wrote opens, and reports the same numbers.

What was measured stays as it was, to 12 digits, and so do means and counts. Speed-ups and intervals
of comparisons are those of docs/decisions/0032: made anew when it came, and held since.
"""

import contextlib
import csv
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import boardcluster as bc
from boardcluster.cli.app import app
from boardcluster.store import Store

FIXTURE = Path(__file__).parents[1] / "fixtures" / "store-b7912e2"
EXPECTED = FIXTURE / "expected"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE / "home", tmp_path / "shelf"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def assert_same(found: list[dict[str, str]], name: str) -> None:
    """Every value that there was is still there, to 12 digits; there may be new columns."""
    expected = rows(EXPECTED / f"{name}.csv")
    assert expected
    assert len(found) == len(expected)
    for now, before in zip(found, expected, strict=True):
        for key, value in before.items():
            assert alike(now[key], value), key


def alike(one: str, other: str) -> bool:
    """Say whether two fields hold the same, whatever the last digits of a float are."""
    if one == other:
        return True
    with contextlib.suppress(ValueError):
        return math.isclose(float(one), float(other), rel_tol=1e-12)
    return False


@pytest.mark.parametrize("table", ["runs", "cells", "probes", "power"])
def test_exports_are_the_same(table: str, home: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{table}.csv"
    words = ["export", "--format", "csv", "--what", table, "-o", str(path), "--home", str(home)]
    CliRunner().invoke(app, words, catch_exceptions=False)

    assert_same(rows(path), table)


def test_the_comparison_is_the_same(home: Path, tmp_path: Path) -> None:
    bc.compare("profile:default", "profile:tuned", home=home).write(tmp_path / "compare.csv")

    assert_same(rows(tmp_path / "compare.csv"), "compare")


def test_the_numbers_of_the_report_are_the_same(home: Path, tmp_path: Path) -> None:
    written = bc.report(home=home, out=tmp_path / "report")

    found = {path.name: path for path in written.data}
    names = {path.name.removeprefix("report-") for path in EXPECTED.glob("report-*.csv")}
    assert len(names) > 3
    assert names <= set(found)
    for name in names:
        assert_same(rows(found[name]), f"report-{name.removesuffix('.csv')}")


def test_samples_are_the_same(home: Path) -> None:
    words = ["telemetry", "20260901-a-000/1", "--json", "--home", str(home)]
    found: dict[str, Any] = json.loads(CliRunner().invoke(app, words).stdout)

    assert found == json.loads((EXPECTED / "telemetry.json").read_text())


def test_a_run_can_be_added_to_it(home: Path) -> None:
    """The store is brought to the present format, and what is in it stays."""
    before = bc.results(home=home).rows()
    with Store.open(home) as store:
        assert store.summary("20260901-a").ok == 13
        assert [trial.id for trial in store.trials("20260910-2")]
    assert bc.results(home=home).rows() == before
