"""The jar of the Spark jobs is found where it was built, and where nodes have their copy."""

from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.errors import HostError
from boardcluster.services import jobs
from boardcluster.services.jobs import jobs_jar, jobs_jar_on_nodes
from boardcluster.services.layout import Layout


@pytest.mark.parametrize(
    "place", ["src/boardcluster/workloads/jars/boardcluster-jobs.jar",
              "jvm/target/boardcluster-jobs.jar"],
)  # fmt: skip
def test_the_jar_is_found_in_the_package_or_where_maven_puts_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "src" / "boardcluster" / "services" / "jobs.py"
    monkeypatch.setattr(jobs, "__file__", str(module))
    jar = tmp_path / place
    jar.parent.mkdir(parents=True)
    jar.touch()

    assert jobs_jar() == jar


def test_a_jar_that_was_not_built_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "src" / "boardcluster" / "services" / "jobs.py"
    monkeypatch.setattr(jobs, "__file__", str(module))

    with pytest.raises(HostError, match="not been built") as caught:
        jobs_jar()

    assert caught.value.hint == "run `make jar`"


def test_nodes_that_see_this_machines_files_read_the_jar_itself(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "jobs_jar", lambda: tmp_path / "jobs.jar")

    assert layout.shares_files
    assert jobs_jar_on_nodes(layout) == str(tmp_path / "jobs.jar")


def test_nodes_with_files_of_their_own_have_a_copy(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "jobs_jar", lambda: pytest.fail("looked for on this machine"))
    boards = replace(
        layout, spec=replace(layout.spec, kind="boards"), jobs_jar="/opt/boardcluster/jobs.jar"
    )

    assert not boards.shares_files
    assert jobs_jar_on_nodes(boards) == "/opt/boardcluster/jobs.jar"
