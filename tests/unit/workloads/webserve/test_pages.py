"""The pages, their weights, and the bytes that a sequence of requests must bring."""

import hashlib
from pathlib import Path

import pytest

from boardcluster.workloads.webserve.pages import Page, expected_bytes, pages_of, write_pages

MASK = (1 << 64) - 1


def pages(*, computed: int = 5, largest: int = 1_000_000) -> tuple[Page, ...]:
    return pages_of(computed_percent=computed, rounds=3, largest_bytes=largest)


def splitmix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def test_classes_have_the_shares_of_specweb99() -> None:
    total = sum(page.weight for page in pages())
    shares = {
        name: 100 * sum(page.weight for page in pages() if low <= page.size_bytes <= high) / total
        for name, low, high in (
            ("small", 1000, 1000),
            ("middle", 2000, 10_000),
            ("large", 20_000, 100_000),
            ("huge", 200_000, 1_000_000),
            ("computed", 64, 64),
        )
    }
    assert shares == pytest.approx(
        {"small": 33.25, "middle": 47.5, "large": 13.3, "huge": 0.95, "computed": 5.0}
    )


@pytest.mark.parametrize("computed", [0, 100])
def test_pages_that_nobody_asks_for_are_left_out(computed: int) -> None:
    assert {bool(page.rounds) for page in pages(computed=computed)} == {computed == 100}


def test_the_largest_page_is_as_large_as_was_asked() -> None:
    assert max(page.size_bytes for page in pages(largest=20_000)) == 20_000
    assert max(page.size_bytes for page in pages(largest=3_000_000)) == 3_000_000


def test_a_computed_page_is_a_chain_of_digests() -> None:
    page = next(page for page in pages() if page.seed == 7)
    value = "7"
    for _ in range(3):
        value = hashlib.sha256(value.encode()).hexdigest()
    assert page.body() == value.encode()


def test_every_page_is_written_and_the_digest_is_of_all_of_them(tmp_path: Path) -> None:
    some = tuple(page for page in pages() if page.size_bytes <= 1000)
    digest = write_pages(some, tmp_path)
    for page in some:
        assert (tmp_path / page.file).stat().st_size == page.size_bytes
    lines = (tmp_path / "plan").read_text().splitlines()
    assert lines == [f"{page.weight} {page.path} {page.file}" for page in some]
    assert digest != write_pages(some[:-1], tmp_path / "other")


@pytest.mark.parametrize("seed", [0, 12345, (1 << 48) - 1])
def test_expected_bytes_are_those_of_the_pages_that_are_picked(seed: int) -> None:
    some = pages()
    total = sum(page.weight for page in some)

    def picked(number: int) -> Page:
        at = splitmix64(seed + number) % total
        for page in some:
            at -= page.weight
            if at < 0:
                return page
        raise AssertionError

    expected = sum(picked(number).size_bytes for number in range(500))
    assert expected_bytes(some, seed=seed, requests=500) == expected
