"""What the catalog lets a cluster.toml say."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from boardcluster.spec.twin import BoardFacts, MediumFacts
from boardcluster.twin.parts import catalog_parts
from boardcluster.units import GIB

PARTS = catalog_parts()
LOOKS: dict[str, Callable[[str], object]] = {
    "boards": PARTS.board,
    "media": PARTS.medium,
    "supplies": partial(PARTS.check, "supplies"),
}


def test_a_board_has_cores_and_memory() -> None:
    assert PARTS.board("rpi-5b-8gb-2400mhz") == BoardFacts(cores=4, memory_bytes=8 * GIB)


def test_a_medium_says_by_what_its_figures_differ() -> None:
    assert PARTS.medium("sk-hynix-gold-p31-500gb") == MediumFacts(
        pcie=("2.0", "3.0"), capacity_bytes=500 * 10**9
    )
    assert PARTS.medium("samsung-evo-32gb") == MediumFacts(pcie=(), capacity_bytes=32 * 10**9)


def test_a_part_that_exists_is_accepted() -> None:
    PARTS.check("supplies", "rpi-27w")


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [
        ("boards", "rpi5b-8gb", "rpi-5b-8gb-2400mhz"),
        ("media", "sk-hynix-gold-p31", "sk-hynix-gold-p31-500gb"),
        ("supplies", "rpi-27", "rpi-27w"),
    ],
)
def test_a_name_that_does_not_exist_gets_the_nearest(kind: str, name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f'"{name}" is not a') as caught:
        LOOKS[kind](name)
    assert f"`boardcluster catalog {kind}`" in str(caught.value)
    assert str(caught.value).endswith(f'did you mean "{near}"?')


def test_a_file_that_is_missing_or_wrong_is_a_problem_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        PARTS.board(str(tmp_path / "none.toml"))
    (tmp_path / "own.toml").write_text('id = "own"\ncores = 0\n')
    with pytest.raises(ValueError, match="cores") as caught:
        PARTS.board(str(tmp_path / "own.toml"))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"own\.toml"):
        PARTS.medium(str(tmp_path / "own.toml"))
