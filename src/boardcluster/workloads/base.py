"""What a workload is: a handful of verbs. The campaign driver owns time, order and storage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from boardcluster.errors import HostError
from boardcluster.fetch.cache import Progress
from boardcluster.records import Dataset, Engine, Verification
from boardcluster.services.operation import LiveCluster

__all__ = ["Prepared", "Submission", "Workload", "jobs_jar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Input that is in place.

    Attributes:
        dataset: the data on the driver.
        input_path: where it is in HDFS.
        expected: the canonical expected output, on the driver.
    """

    dataset: Dataset
    input_path: str
    expected: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One job to submit.

    Attributes:
        engine: the engine it runs on.
        conf: folder of the configuration to submit with.
        tag: YARN tag by which it is found again.
        output_path: where it writes in HDFS.
    """

    engine: Engine
    conf: str
    tag: str
    output_path: str


class Workload(Protocol):
    """One benchmark on one or more engines."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        ...

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Engines it runs on."""
        ...

    def prepare(
        self, live: LiveCluster, dataset: Dataset, *, cache: Path, progress: Progress
    ) -> Prepared:
        """Put the input into HDFS and compute what the output must be; both are cached."""
        ...

    def command(self, live: LiveCluster, prepared: Prepared, job: Submission) -> list[str]:
        """Return the command that submits the job from the master node."""
        ...

    def verify(
        self, live: LiveCluster, prepared: Prepared, job: Submission, *, work: Path
    ) -> Verification:
        """Prove that the output is right.

        Raises:
            VerificationError: it is not; says where it differs.
        """
        ...


def jobs_jar() -> Path:
    """Return the jar of our Spark jobs.

    Raises:
        HostError: it was not built.
    """
    here = Path(__file__).resolve()
    places = [here.parent / "jars" / "boardcluster-jobs.jar"]
    places += [parent / "jvm" / "target" / "boardcluster-jobs.jar" for parent in here.parents[2:4]]
    for place in places:
        if place.is_file():
            return place
    raise HostError("the jar of the Spark jobs was not built", hint="run `make jar`")
