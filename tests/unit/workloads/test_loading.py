"""Workloads are found by their folder, and their jar where it was built."""

from pathlib import Path

import pytest

from boardcluster.errors import HostError, UsageError
from boardcluster.records import Engine
from boardcluster.workloads import base, load_workload, workload_names
from boardcluster.workloads.base import jobs_jar


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


@pytest.mark.parametrize(
    "place", ["src/boardcluster/workloads/jars/boardcluster-jobs.jar",
              "jvm/target/boardcluster-jobs.jar"],
)  # fmt: skip
def test_the_jar_is_found_in_the_package_or_where_maven_puts_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "src" / "boardcluster" / "workloads" / "base.py"
    monkeypatch.setattr(base, "__file__", str(module))
    jar = tmp_path / place
    jar.parent.mkdir(parents=True)
    jar.touch()

    assert jobs_jar() == jar


def test_a_jar_that_was_not_built_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "src" / "boardcluster" / "workloads" / "base.py"
    monkeypatch.setattr(base, "__file__", str(module))

    with pytest.raises(HostError, match="not built") as caught:
        jobs_jar()

    assert caught.value.hint == "run `make jar`"
