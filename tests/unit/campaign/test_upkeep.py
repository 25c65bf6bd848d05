"""What is said of a cluster that came up."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from boardcluster.campaign.upkeep import nodes_words
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import LiveCluster


@pytest.mark.parametrize(("workers", "words"), [(1, "1 worker"), (3, "3 workers")])
def test_the_workers_are_counted(
    workers: int, words: str, make_spec: Callable[..., ClusterSpec]
) -> None:
    live = cast("LiveCluster", SimpleNamespace(spec=make_spec(workers=workers)))
    assert nodes_words(live) == f"1 master and {words}"
