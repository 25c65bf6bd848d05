"""Parameters of a workload: every one has a value, unknown and wrong ones are refused."""

import pytest
from tests.unit.campaign.fake_workload import FakeWorkload

from boardcluster.errors import UsageError
from boardcluster.workloads import load_workload, workload_names
from boardcluster.workloads.base import Parameter, check_parameters

FILES = Parameter(
    default="4", allowed="a whole number", meaning="how many files", is_allowed=str.isdecimal
)
MODE = Parameter(
    default="read",
    allowed="read or write",
    meaning="what to do",
    is_allowed=("read", "write").__contains__,
)


@pytest.fixture
def workload() -> FakeWorkload:
    return FakeWorkload(name="dfs", parameters={"files": FILES, "mode": MODE})


def test_what_is_not_given_has_its_default(workload: FakeWorkload) -> None:
    assert check_parameters(workload, {}) == {"files": "4", "mode": "read"}
    assert check_parameters(workload, {"mode": "write"}) == {"files": "4", "mode": "write"}


def test_an_unknown_parameter_names_the_known_ones(workload: FakeWorkload) -> None:
    with pytest.raises(UsageError, match="dfs has no parameter 'file'") as caught:
        check_parameters(workload, {"files": "9", "file": "9"})

    assert caught.value.hint == "its parameters: files, mode"


def test_a_workload_without_parameters_says_so() -> None:
    with pytest.raises(UsageError) as caught:
        check_parameters(FakeWorkload(name="pi"), {"x": "1"})

    assert caught.value.hint == "its parameters: none"


@pytest.mark.parametrize("value", ["", "x", "4.5", "-1"])
def test_a_wrong_value_says_what_is_allowed(value: str, workload: FakeWorkload) -> None:
    with pytest.raises(UsageError, match=r"dfs\.files = .*; allowed: a whole number") as caught:
        check_parameters(workload, {"files": value})

    assert caught.value.hint == "for example dfs.files = '4'"


@pytest.mark.parametrize("name", workload_names())
def test_every_default_is_a_value_that_is_allowed(name: str) -> None:
    workload = load_workload(name)

    for parameter in workload.parameters.values():
        assert parameter.is_allowed(parameter.default)
        assert parameter.meaning
        assert parameter.allowed
