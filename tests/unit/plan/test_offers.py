"""What can be bought, and what it costs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.unit.plan.made_up import FIVE, FOUR, PRICES

from boardcluster.catalog.lookup import entry_path
from boardcluster.errors import UsageError
from boardcluster.plan.offers import (
    find_offers,
    is_compatible,
    read_prices,
    switches_needed,
)


def test_of_a_kind_with_prices_what_has_none_is_left_out_and_said() -> None:
    offers = find_offers(media=list(PRICES)[:2], prices={"sk-hynix-gold-p31-500gb": 45.0})
    assert [row.name for row in offers.media] == ["sk-hynix-gold-p31-500gb"]
    assert ("samsung-pro-plus-256gb", "no price") in [
        (row.name, row.why) for row in offers.left_out
    ]


def test_a_kind_without_any_price_is_kept_and_said() -> None:
    offers = find_offers(boards=[FIVE])
    assert offers.unpriced == ("medium", "switch", "supply")
    assert len(offers.media) > 1


def test_the_users_price_counts_before_the_catalogs() -> None:
    [board] = find_offers(boards=[FIVE], prices={FIVE: 99.0}).boards
    assert board.price is not None
    assert (board.price.amount, board.price.source) == (99.0, "you")
    [board] = find_offers(boards=[FIVE], prices={"board": 70.0, FIVE: 99.0}).boards
    assert board.price is not None
    assert board.price.amount == 99.0


def test_a_supply_has_twice_the_power_that_its_board_draws() -> None:
    four, five = find_offers(boards=[FOUR, FIVE]).boards
    assert four.supply is not None
    assert five.supply is not None
    assert (four.supply.name, five.supply.name) == ("rpi-15w", "rpi-27w")


def test_a_board_whose_supply_has_no_price_is_left_out_where_others_have_one() -> None:
    offers = find_offers(boards=[FOUR, FIVE], prices={"rpi-27w": 12.0})
    assert [row.name for row in offers.boards] == [FIVE]
    assert "supply" not in offers.unpriced
    assert (FOUR, "no price of its supply, rpi-15w") in [
        (row.name, row.why) for row in offers.left_out
    ]


def test_media_go_with_boards_whose_chip_they_were_measured_with() -> None:
    offers = find_offers(
        boards=[FOUR, FIVE, "rpi-5b-4gb-2400mhz"], media=["sk-hynix-gold-p31-500gb"]
    )
    [medium] = offers.media
    assert [is_compatible(board, medium) for board in offers.boards] == [False, True, True]


def test_overclocked_boards_are_tried_only_if_named() -> None:
    name = "rpi-5b-8gb-3000mhz"
    assert name in {row.name for row in find_offers().left_out}
    assert [row.name for row in find_offers(boards=[name]).boards] == [name]


def test_a_file_of_ones_own_is_taken(tmp_path: Path) -> None:
    own = tmp_path / "fast.toml"
    own.write_text(
        'id = "fast-1tb"\nname = "Fast"\nkind = "NVMe SSD"\n[[figure]]\nname = "capacity_bytes"\n'
        'value = 1e12\nunit = "bytes"\nsource = "label"\n[[figure]]\nname = "price_us_dollars"\n'
        'value = 70.0\nunit = "us dollars"\nconditions = { year = "2026" }\nsource = "my shop"\n'
    )
    offers = find_offers(boards=[FOUR], media=[str(own)])
    [medium] = offers.media
    assert medium.capacity_bytes == 1e12
    assert medium.price is not None
    assert medium.price.source == "my shop"
    assert is_compatible(offers.boards[0], medium)


def test_a_name_that_does_not_exist_gets_the_nearest_offered() -> None:
    with pytest.raises(UsageError, match="rpi-5b-8gb-2400mhz"):
        find_offers(boards=["rpi5b-8gb-2400"])


@pytest.mark.parametrize("text", ["medium", "medium=", "medium=-1", "=5", "medium=inf"])
def test_a_price_is_a_name_and_an_amount(text: str) -> None:
    with pytest.raises(UsageError, match="not NAME=AMOUNT"):
        read_prices([text])


def test_a_price_of_nothing_gets_the_nearest_offered() -> None:
    with pytest.raises(UsageError, match="nothing is called") as caught:
        read_prices(["sk-hynix-gold=45"])
    assert "sk-hynix-gold-p31-500gb" in caught.value.hint


def test_a_switch_that_cannot_be_joined_to_another_is_left_out(tmp_path: Path) -> None:
    text = (entry_path("networks", "switch-1gbit-8")).read_text()
    own = tmp_path / "two.toml"
    own.write_text(re.sub(r"(?s)(switch_ports\"\nvalue = )8\.0", r"\g<1>2.0", text))
    offers = find_offers(boards=[FIVE], switches=[str(own), "switch-1gbit-8"])
    assert [row.name for row in offers.switches] == ["switch-1gbit-8"]
    assert (str(own), "fewer than 3 ports, so several join none") in [
        (row.name, row.why) for row in offers.left_out
    ]


def test_switches_form_a_tree_whose_links_take_ports() -> None:
    nodes = np.array([7, 8, 15, 16, 49, 50])
    assert list(switches_needed(nodes, np.full(6, 8))) == [1, 2, 3, 3, 8, 9]
