"""How much of a board's CPU quota each class of workload gets. Pure.

The quota follows one synthetic figure, ``sysbench cpu``: whole-number division in a loop. Java on
an ARM board does not compare with Java on this machine as that loop does, and code that sorts not
as code that counts. So for each class one published time was taken, of one node, and the share of
the quota found with which this cluster takes as long; every other published cell is then a test of
it, not part of it. ``calibration.toml`` has the data, docs/explanation/fidelity.md the residuals.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from boardcluster.records import Engine

__all__ = ["Calibration", "calibrations", "cpu_share_of", "share_of"]

_FILE = "calibration.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One class of workloads."""

    name: str
    """Of the class."""
    engine: Engine
    """What its workloads run on."""
    workloads: tuple[str, ...]
    """By name."""
    share: float
    """Of a board's CPU quota; 1 is what ``sysbench cpu`` says."""
    board: str
    """Whose published time it is from."""
    table: str
    """The published table, by the name of its file."""
    cell: dict[str, str]
    """Keys of the row that was taken."""
    published_seconds: float
    """What that row says; a test compares it with the file."""
    runs: tuple[tuple[float, float], ...]
    """What this cluster took with which share: pairs of share and seconds, in the board's time."""
    machine: str
    """The processor of the machine that the emulated boards ran on."""

    @property
    def calibrated_seconds(self) -> float | None:
        """What it took with the share; None if nobody ran it."""
        return dict(self.runs).get(self.share)

    @property
    def residual(self) -> float | None:
        """What is left of the difference: calibrated over published, minus 1."""
        seconds = self.calibrated_seconds
        return None if seconds is None else seconds / self.published_seconds - 1


@cache
def calibrations() -> tuple[Calibration, ...]:
    """Return all classes."""
    text = resources.files("boardcluster.twin").joinpath(_FILE).read_text(encoding="utf-8")
    return tuple(
        Calibration(
            **{
                **row,
                "engine": Engine(row["engine"]),
                "workloads": tuple(row["workloads"]),
                "runs": tuple((run["share"], run["seconds"]) for run in row["runs"]),
            }
        )
        for row in tomllib.loads(text).get("class", ())
    )


def cpu_share_of(workloads: Iterable[str], engine: Engine) -> tuple[float, tuple[str, ...]]:
    """Return the share of the CPU quota for jobs that run together, and the names of its classes.

    Jobs of several classes get the mean of their shares. Work that no published time is known of
    has the whole quota.

    Args:
        workloads: names of the jobs.
        engine: what they run on.
    """
    classes = {
        name: row for row in calibrations() if row.engine is engine for name in row.workloads
    }
    found = [classes.get(name) for name in workloads]
    shares = [1.0 if row is None else row.share for row in found]
    names = tuple(dict.fromkeys("uncalibrated" if row is None else row.name for row in found))
    return (sum(shares) / len(shares) if shares else 1.0), names


def share_of(runs: Sequence[tuple[float, float]], wanted_seconds: float) -> float:
    """Return the share of CPU with which a run takes as long as it should.

    Between two runs the logarithm of the time is taken as linear in the logarithm of the share.

    Args:
        runs: pairs of share and seconds, at least two with different ones.
        wanted_seconds: how long it should take.

    Raises:
        ValueError: there are too few runs, or more CPU did not make them shorter.
    """
    near = sorted(runs, key=lambda run: abs(math.log(run[1] / wanted_seconds)))[:2]
    if len({share for share, _ in near}) < 2:
        raise ValueError("two runs with different shares are needed")
    (share, seconds), (other_share, other_seconds) = near
    slope = math.log(seconds / other_seconds) / math.log(share / other_share)
    if slope >= 0:
        raise ValueError(f"with more of the CPU the run did not get shorter: {runs}")
    return share * math.exp(math.log(wanted_seconds / seconds) / slope)
