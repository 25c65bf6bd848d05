"""What a cluster cost, declared and catalogued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_node

from boardcluster.catalog.lookup import find_board
from boardcluster.catalog.prices import CATALOG_CURRENCY, DECLARED, price_list
from boardcluster.errors import UsageError
from boardcluster.records import ClusterSpec, NodeTwin, Prices, Role

BOARD = "rpi-4b-4gb-1500mhz"
OTHER = "rpi-5b-8gb-2400mhz"
MEDIUM = "sk-hynix-gold-p31-500gb"


def cluster(prices: Prices | None = None, *twins: NodeTwin, nodes: int = 3) -> ClusterSpec:
    made = (
        make_node(
            f"n{place}",
            Role.MASTER if place == 0 else Role.WORKER,
            twin=twins[min(place, len(twins) - 1)] if twins else None,
        )
        for place in range(nodes)
    )
    return make_cluster(*made, kind="emulated" if twins else "boards", prices=prices)


FULL = Prices(
    currency="EUR", per_kwh=0.3, board=80.0, medium=40.0, supply=10.0, switch=20.0, cooling=5.0
)


def printed_price(board: str, year: str) -> float:
    (price,) = (
        row.figure.value
        for row in find_board(board).figures
        if row.figure.name == "price_us_dollars" and row.figure.conditions.get("year") == year
    )
    return price


def test_what_is_declared_is_counted_by_node() -> None:
    prices = price_list(cluster(FULL))
    assert {part.name: (part.count, part.each) for part in prices.parts} == {
        "boards": (3, 80.0),
        "media": (3, 40.0),
        "supplies": (3, 10.0),
        "switch": (1, 20.0),
        "cooling": (3, 5.0),
    }
    assert prices.total == 3 * 135 + 20
    assert (prices.currency, prices.per_kwh, prices.missing) == ("EUR", 0.3, ())
    assert {part.source for part in prices.parts} == {DECLARED}


def test_fewer_supplies_than_nodes_and_all_the_rest() -> None:
    prices = price_list(cluster(replace(FULL, supplies=1, other=33.0)))
    assert prices.total == 3 * 125 + 10 + 20 + 33


def test_only_nodes_that_took_part_count() -> None:
    assert price_list(cluster(FULL), nodes=2).total == 2 * 135 + 20


def test_a_total_is_of_the_whole_cluster_only() -> None:
    spec = cluster(Prices(currency="EUR", total=500.0, per_kwh=0.25))
    assert price_list(spec).total == price_list(spec, nodes=3).total == 500
    part = price_list(spec, nodes=2)
    assert part.total is None
    assert part.per_kwh == 0.25
    assert part.missing == ("the price is for the whole cluster, and not every node took part",)


def test_nothing_declared_of_real_boards_has_no_price() -> None:
    prices = price_list(cluster())
    assert (prices.currency, prices.per_kwh, prices.parts, prices.total) == ("", None, (), None)
    assert len(prices.missing) == 4
    assert prices.missing[0] == "no price of boards; set `board` in [prices] of cluster.toml"


def test_what_emulated_boards_stand_for_has_the_catalogs_latest_price() -> None:
    spec = cluster(None, NodeTwin(board=OTHER), NodeTwin(board=BOARD, medium=MEDIUM))
    prices = price_list(spec)
    assert prices.currency == CATALOG_CURRENCY
    assert [(part.what, part.count, part.each) for part in prices.parts] == [
        (OTHER, 1, printed_price(OTHER, "2026")),
        (BOARD, 2, printed_price(BOARD, "2026")),
    ]
    assert prices.parts[1].source == f"catalog: {BOARD}, lee-park-2026 Table 1"
    assert prices.total is None, "media, supplies and the switch have none"
    assert [line.partition(";")[0] for line in prices.missing] == [
        "no price of media",
        "no price of supplies",
        "no price of switch",
    ]


def test_a_medium_without_a_price_is_named() -> None:
    spec = cluster(None, NodeTwin(board=BOARD, medium=MEDIUM))
    (line,) = (line for line in price_list(spec).missing if "media" in line)
    assert f"the catalog has no price of {MEDIUM}" in line


def test_declared_prices_fill_what_the_catalog_lacks() -> None:
    said = Prices(currency="USD", medium=40.0, supply=10.0, switch=20.0)
    prices = price_list(cluster(said, NodeTwin(board=BOARD, medium=MEDIUM)))
    assert prices.total == 3 * (printed_price(BOARD, "2026") + 50) + 20
    assert prices.parts[0].source.startswith("catalog")


def test_the_catalogs_dollars_are_not_taken_for_another_currency() -> None:
    said = Prices(currency="EUR", medium=40.0, supply=10.0, switch=20.0)
    prices = price_list(cluster(said, NodeTwin(board=BOARD, medium=MEDIUM)))
    assert prices.total is None
    (line,) = prices.missing
    assert "the catalog has it in USD only" in line


def test_a_board_that_the_catalog_lost_is_an_error() -> None:
    with pytest.raises(UsageError, match="the catalog has no 'rpi-9'"):
        price_list(cluster(None, NodeTwin(board="rpi-9")))


def test_a_board_of_ones_own_may_have_a_price(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'id = "own"\nname = "Own"\ncores = 4\nmemory_bytes = 1000\n'
        '[[figure]]\nname = "price_us_dollars"\nvalue = 61.0\nunit = "us dollars"\n'
        'conditions = { year = "2027" }\nsource = "a shop"\n'
    )
    (part,) = price_list(cluster(None, NodeTwin(board=str(path)))).parts
    assert (part.count, part.each, part.source) == (3, 61.0, f"catalog: {path}, a shop")
