"""The jar of the Spark jobs is found where it was built."""

from pathlib import Path

import pytest

from boardcluster.errors import HostError
from boardcluster.services import jobs
from boardcluster.services.jobs import jobs_jar


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

    with pytest.raises(HostError, match="not built") as caught:
        jobs_jar()

    assert caught.value.hint == "run `make jar`"
