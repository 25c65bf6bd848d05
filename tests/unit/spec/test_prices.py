"""[prices] of a cluster.toml."""

import re
from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, Prices
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.prices import PricesTable
from boardcluster.spec.template import render_cluster

CLUSTER = """\
[cluster]
name = "pis"
kind = "emulated"
engines = "pair"
profile = "default"

[[node]]
name = "one"
roles = ["master", "worker"]
cores = 4
memory = "4 GiB"

"""


def load(folder: Path, table: str) -> ClusterSpec:
    (folder / "cluster.toml").write_text(CLUSTER + table)
    return load_cluster(folder / "cluster.toml", engine_pairs=("pair",), profiles=("default",))


def test_all_of_it(tmp_path: Path) -> None:
    table = """\
[prices]
currency = "USD"
per_kwh = 0.25
board = 80
medium = 40.5
supply = 12
supplies = 2
cooling = 5
switch = 20
other = 0
"""
    assert load(tmp_path, table).prices == Prices(
        currency="USD",
        per_kwh=0.25,
        board=80.0,
        medium=40.5,
        supply=12.0,
        supplies=2,
        cooling=5.0,
        switch=20.0,
        other=0.0,
    )


def test_without_it_there_are_no_prices(tmp_path: Path) -> None:
    assert load(tmp_path, "").prices is None


@pytest.mark.parametrize(
    "table",
    [
        '[prices]\ncurrency = "EUR"\nper_kwh = 0.3\n',
        '[prices]\ncurrency = "EUR"\ntotal = 500\n',
        '[prices]\ncurrency = "USD"\nboard = 80\nsupply = 9.99\nsupplies = 3\nswitch = 20\n',
        "",
    ],
)
def test_what_is_written_is_read_again(tmp_path: Path, table: str) -> None:
    spec = load(tmp_path, table)
    text = render_cluster(spec, engine_pairs=("pair",), profiles=("default",))
    path = tmp_path / "again.toml"
    path.write_text(text)
    assert load_cluster(path, engine_pairs=("pair",), profiles=("default",)) == spec


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[prices]\nper_kwh = 0.3\n", "prices.currency: missing; allowed: three capital letters"),
        (
            '[prices]\ncurrency = "usd"\nboard = 80\n',
            (
                '"usd" is not a currency; allowed: three capital letters (ISO 4217), e.g. "USD" or '
                '"EUR"; did you mean "USD"?'
            ),
        ),
        ('[prices]\ncurrency = "$"\nboard = 80\n', '"$" is not a currency; allowed: three capital'),
        ("[prices]\ncurrency = 5\nboard = 80\n", "5 is not a currency"),
        (
            '[prices]\ncurrency = "USD"\nboard = "80 USD"\n',
            (
                'prices.board: "80 USD" is not a price; allowed: a number from 0 to 10000000, '
                "without a currency sign"
            ),
        ),
        ('[prices]\ncurrency = "USD"\nboard = -1\n', "prices.board: -1 is not a price"),
        ('[prices]\ncurrency = "USD"\nper_kwh = nan\n', "prices.per_kwh: nan is not a price"),
        ('[prices]\ncurrency = "USD"\nswitch = inf\n', "prices.switch: inf is not a price"),
        ('[prices]\ncurrency = "USD"\nswitch = true\n', "prices.switch: true is not a price"),
        (
            '[prices]\ncurrency = "USD"\nboards = 80\n',
            (
                "prices.boards: unknown key; allowed: currency, per_kwh, total, board, medium, "
                'supply, supplies, cooling, switch, other; did you mean "board"?'
            ),
        ),
        (
            '[prices]\ncurrency = "USD"\nsupply = 5\nsupplies = 0\n',
            "prices.supplies: 0 is not allowed; allowed: a whole number from 1 to 1000",
        ),
        (
            '[prices]\ncurrency = "USD"\nboard = 80\nsupplies = 2\n',
            "prices.supplies: it has no effect without `supply`; allowed: with a supply only",
        ),
        (
            '[prices]\ncurrency = "USD"\ntotal = 500\nswitch = 20\n',
            (
                "prices.switch: prices.total in line 15 has the price of everything; allowed: "
                "either total, or the parts one by one"
            ),
        ),
        ('[prices]\ncurrency = "USD"\n', "prices: a currency, but no price; allowed: one [prices]"),
        ("[[prices]]\nboard = 80\n", "prices"),
        ("prices = 5\n", "prices"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, table)
    assert words in str(caught.value)


def test_a_wrong_price_is_said_with_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cluster\.toml:15: prices\.board"):
        load(tmp_path, '[prices]\ncurrency = "USD"\nboard = "x"\n')


def test_the_reference_has_every_key_and_a_valid_example(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "cluster-toml.md"
    part = page.read_text().partition("\n## [prices]\n")[2].partition("\n## ")[0]
    table = part.partition("```toml\n")[2].partition("```")[0]
    spec = load(tmp_path, table)
    assert spec.prices is not None
    assert spec.prices.per_kwh == 0.25
    rows = "".join(row.split("|")[1] for row in part.splitlines() if row.startswith("| `"))
    assert set(PricesTable.model_fields) == set(re.findall(r"`(\w+)`", rows))
