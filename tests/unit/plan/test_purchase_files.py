"""The files of a plan: they load, they say what to buy, and a twin is made where it can be."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.unit.plan.made_up import FIVE, FOUR, plan_for

from boardcluster.campaign.purchase import write_plan
from boardcluster.catalog.lookup import entry_path
from boardcluster.plan.composition import BoardsThere, WorkersThere
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import find_offers
from boardcluster.plan.purchase_files import twin_spec
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids

NVME, CARD = "sk-hynix-gold-p31-500gb", "samsung-pro-plus-256gb"
DEADLINE = PlanLimits(deadline_seconds=1200)


def test_the_cluster_loads_with_its_boards_and_prices(tmp_path: Path) -> None:
    plan = plan_for(limits=DEADLINE)
    files, words = write_plan(plan, tmp_path / "plan")
    assert words == ()
    assert [path.name for path in files] == [
        "cluster.toml",
        "shopping-list.md",
        "shopping-list.csv",
        "twin.toml",
    ]
    spec = read_spec(tmp_path / "plan" / "cluster.toml")
    assert spec.kind == "boards"
    assert len(spec.workers) == plan.best.workers
    assert len({node.address for node in spec.nodes}) == plan.best.workers + 1
    assert spec.prices is not None
    assert (spec.prices.board, spec.prices.medium, spec.prices.switch) == (80.0, 45.0, 60.0)


def test_the_twin_loads_and_emulates_the_boards(tmp_path: Path) -> None:
    write_plan(plan_for(limits=DEADLINE), tmp_path)
    spec = read_spec(tmp_path / "twin.toml")
    assert spec.twin is not None
    assert {
        (node.twin.board, node.twin.medium, node.twin.pcie) for node in spec.nodes if node.twin
    } == {(FIVE, NVME, "3.0")}


def test_the_list_adds_up_to_the_price(tmp_path: Path) -> None:
    plan = plan_for(limits=DEADLINE)
    write_plan(plan, tmp_path)
    with (tmp_path / "shopping-list.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["together"]) for row in rows) == plan.best.price
    text = (tmp_path / "shopping-list.md").read_text()
    assert f"| board | {FIVE} | 6 | 80.00 | 480.00 | lee-park-2026 Table 1 |" in text
    assert "Together: USD 870.00." in text


def test_a_board_that_nobody_measured_is_emulated_by_one_with_its_chip_and_clock() -> None:
    name = "rpi-5b-4gb-2400mhz"
    offers = find_offers(boards=[name], media=[NVME], switches=["switch-1gbit-16"])
    spec, words = twin_spec(plan_for(offers=offers, limits=DEADLINE), engines=pair_ids()[0])
    assert spec is not None
    assert {node.twin.board for node in spec.nodes if node.twin} == {FIVE}
    assert {node.memory_bytes for node in spec.nodes} == {4 << 30}
    assert words == (
        f"in the twin {FIVE} with less memory stands for {name}, which nobody measured",
    )


def test_without_figures_there_is_no_twin_and_it_is_said() -> None:
    offers = find_offers(boards=["rpi-4b-2gb-1800mhz"], media=["samsung-evo-32gb"], prices={})
    plan = plan_for(offers=offers, size_bytes=10**9, limits=DEADLINE)
    spec, words = twin_spec(plan, engines=pair_ids()[0])
    assert spec is None
    assert words[0].startswith("no twin: node master cannot emulate its board")


def test_a_twin_has_as_many_workers_as_a_machine_can_emulate(tmp_path: Path) -> None:
    limits = PlanLimits(deadline_seconds=101)
    plan = plan_for(limits=limits, workers_most=100)
    assert plan.best.workers > 63
    assert not any("itself runs at most" in row for row in plan.remarks)
    _, words = write_plan(plan, tmp_path)
    assert len(read_spec(tmp_path / "twin.toml").workers) == 63
    assert words == (f"the twin has the first 63 of {plan.best.workers} workers",)


def test_what_is_there_already_is_in_the_cluster_but_not_on_the_list(tmp_path: Path) -> None:
    offers = find_offers(boards=[FOUR], media=[CARD])
    there = BoardsThere(
        rows=(WorkersThere(count=2, board=offers.boards[0], medium=offers.media[0]),)
    )
    plan = plan_for(there=there, limits=DEADLINE)
    write_plan(plan, tmp_path)
    spec = read_spec(tmp_path / "cluster.toml")
    assert len(spec.workers) == plan.best.workers + 2
    assert f"| board | {FOUR}" not in (tmp_path / "shopping-list.md").read_text()


def test_files_of_ones_own_are_found_from_the_folder_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are named from where the command runs, and read from where it writes."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('base = "default"\n')
    Path("board.toml").write_text(entry_path("boards", FIVE).read_text())
    offers = find_offers(boards=["board.toml"], media=[NVME], switches=["switch-1gbit-16"])
    plan = plan_for(offers=offers, profiles=("mine.toml",), limits=DEADLINE)
    write_plan(plan, tmp_path / "plan")
    assert read_spec(tmp_path / "plan" / "cluster.toml").profile == str(tmp_path / "mine.toml")
    twin = read_spec(tmp_path / "plan" / "twin.toml")
    assert twin.profile == str(tmp_path / "mine.toml")
    assert {node.twin.board for node in twin.nodes if node.twin} == {str(tmp_path / "board.toml")}


def test_words_of_a_file_of_ones_own_are_text_in_the_lists(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'id = "own"\nname = "Own"\nkind = "SSD"\n[[figure]]\nname = "capacity_bytes"\n'
        'value = 1e12\nunit = "bytes"\nsource = "label"\n[[figure]]\nname = "price_us_dollars"\n'
        'value = 70.0\nunit = "us dollars"\nsource = "=1+1 | <b>shop</b>"\n'
    )
    offers = find_offers(boards=[FIVE], media=[str(own)], switches=["switch-1gbit-16"])
    plan = plan_for(offers=offers, limits=DEADLINE)
    write_plan(plan, tmp_path / "plan")
    text = (tmp_path / "plan" / "shopping-list.md").read_text()
    assert r"=1+1 \| \<b\>shop\</b\>" in text
    assert ",'=1+1 | <b>shop</b>" in (tmp_path / "plan" / "shopping-list.csv").read_text()
