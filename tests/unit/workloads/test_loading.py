"""Workloads are found by their folder."""

import pytest

from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.workloads import load_workload, workload_names


def test_every_workload_can_be_loaded_and_knows_its_name() -> None:
    assert "wordcount" in workload_names()
    for name in workload_names():
        workload = load_workload(name)
        assert workload.name == name
        assert set(workload.engines) <= set(Engine)
        assert workload.engines


@pytest.mark.parametrize("name", ["word-count", "base", "", "../wordcount"])
def test_an_unknown_workload_names_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="no workload") as caught:
        load_workload(name)

    assert "wordcount" in caught.value.hint
