from __future__ import annotations

import pytest

from boardcluster.workloads import changes_work, load_workload, workload_names


def test_what_is_done_and_how_it_is_done_are_told_apart() -> None:
    assert changes_work("pi.samples")
    assert not changes_work("wordcount.form")
    assert not changes_work("submitted.input")


@pytest.mark.parametrize("name", workload_names())
def test_what_changes_the_work_is_a_parameter(name: str) -> None:
    workload = load_workload(name)
    assert set(workload.work_parameters) <= set(workload.parameters)
