"""What an experiment cites has its doubt beside it."""

from __future__ import annotations

from boardcluster.campaign.experiment import _cited
from boardcluster.catalog.ratios import Answer, check_ratios
from boardcluster.spec.experiment import PublishedSpec


def cited(ratio: str) -> str:
    row = PublishedSpec(place="x", file="", where={}, quantity="", ratio=ratio, of={})
    return _cited(row).source


def test_a_stated_ratio_that_its_tables_do_not_give_says_so() -> None:
    checks = {check.ratio.id: check for check in check_ratios()}
    doubtful = next(name for name, check in checks.items() if check.answer is Answer.NOT)
    given = checks[doubtful].given
    assert given is not None
    assert cited(doubtful).endswith(f"(doubtful: the paper's tables give {given.value:.2f})")
    for answer in (Answer.ROUNDED, Answer.UNKNOWN):
        good = next(name for name, check in checks.items() if check.answer is answer)
        assert "doubtful" not in cited(good)
