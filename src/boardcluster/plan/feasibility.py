"""Whether a run fits: its data into the disks, its containers into the memory. Pure.

Disks: everything that is there at once must be at most ``DISK_SHARE`` of them, input and output
with their replicas, and the intermediate data. That limit repeats the verdicts of Lee and Park
2026, section "Massive dataset and parallel processing", on 1 and 2 TB.

Memory: a node needs its system, its daemons, and the containers that run at once. A run is
possible if one task and the application master find a place; it has margin if everything that
YARN may start together is there as memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boardcluster.units import format_bytes

__all__ = [
    "DISK_SHARE",
    "HDFS_SHARES",
    "MARGIN_DISK_SHARE",
    "ContainerMemory",
    "DiskNeed",
    "HdfsShares",
    "ProfileNeeds",
    "RunFit",
    "disk_shares",
]

_Floats = NDArray[np.float64]

DISK_SHARE = 0.92
"""Share of the disks that data may take. The rest is the file system's own and the system's."""

MARGIN_DISK_SHARE = 0.9
"""The same with margin: YARN takes a node out above 90 %
(``yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage``)."""


@dataclass(frozen=True, slots=True)
class HdfsShares:
    """What a run keeps in HDFS per byte of its size, before replication."""

    input: float
    """What it reads."""
    output: float
    """The most that it writes."""
    intermediate_bytes: float | None = None
    """Its intermediate data where the model does not know it; None where nobody does."""


_LITTLE = 1e9
"""Of workloads that neither sort nor shuffle much, the 2026 paper saw at most 0.6 GB up to 32 GB of
input (Tables 12, 14 and 15)."""

HDFS_SHARES = {
    "wordcount": HdfsShares(1.0, 1.0),
    "grep": HdfsShares(1.0, 0.25, _LITTLE),
    "teragen": HdfsShares(0.0, 1.0, _LITTLE),
    "terasort": HdfsShares(1.0, 1.0),
    "teravalidate": HdfsShares(2.0, 0.0, _LITTLE),
    "dfsio": HdfsShares(0.0, 1.0, _LITTLE),
    "pi": HdfsShares(0.0, 0.0, _LITTLE),
}
"""By workload. Word count writes at most what it reads: where every line is one word that occurs
once, as in the papers' data. TeraValidate keeps the rows beside their sorted copy. Grep's share is
what ``run`` plans for it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskNeed:
    """What a run keeps on all disks at once."""

    size_bytes: float
    """Its size."""
    shares: HdfsShares
    """What that is in HDFS."""
    intermediate_bytes: float
    """What the engine writes to local storage besides the output."""
    replication: int
    """Copies of each block of HDFS; at most one on each worker counts."""
    workers: int
    """Number of workers."""
    disk_bytes: float
    """Size of the disk of each; of the smallest where they differ."""

    @property
    def copies(self) -> int:
        """How many copies of a block there can be."""
        return min(self.replication, self.workers)

    @property
    def need_bytes(self) -> float:
        """Everything that is there at once."""
        in_hdfs = (self.shares.input + self.shares.output) * self.size_bytes * self.copies
        return in_hdfs + self.intermediate_bytes

    @property
    def share(self) -> float:
        """How much of the disks that is; 1 is all of them."""
        return self.need_bytes / (self.workers * self.disk_bytes)

    @property
    def fits(self) -> bool:
        """Whether the run can end."""
        return self.share <= DISK_SHARE

    @property
    def words(self) -> str:
        """The arithmetic."""
        parts = [
            f"{format_bytes(share * self.size_bytes)} {what} x {self.copies}"
            for what, share in (("input", self.shares.input), ("output", self.shares.output))
            if share
        ]
        parts.insert(
            1 if self.shares.input else 0, f"{format_bytes(self.intermediate_bytes)} intermediate"
        )
        there = f"{self.workers} x {format_bytes(self.disk_bytes)}"
        return (
            f"disks: {' + '.join(parts)} = {format_bytes(self.need_bytes)},"
            f" {100 * self.share:.0f} % of {there}; at most {100 * DISK_SHARE:.0f} % fits"
        )


def disk_shares(
    *,
    size_bytes: _Floats,
    shares: HdfsShares,
    intermediate_bytes: _Floats,
    replication: _Floats,
    workers: _Floats,
    disk_bytes: _Floats,
) -> _Floats:
    """Return ``DiskNeed.share`` of many runs at once; NaN where the intermediate data is unknown.

    All arrays have one element for each run, with the meaning of the fields of ``DiskNeed``.
    """
    copies = np.minimum(replication, workers)
    need = (shares.input + shares.output) * size_bytes * copies + intermediate_bytes
    return np.asarray(need / (workers * disk_bytes), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMemory:
    """What one worker's memory must hold for jobs of an engine, in MiB."""

    node_mib: int
    """Its memory."""
    system_mib: int
    """Kernel, page cache, logs."""
    daemons_mib: int
    """DataNode and NodeManager."""
    granted_mib: int
    """What YARN may hand out on it."""
    am_mib: int
    """The application master."""
    task_mib: int
    """The largest container that the job needs: a map, a reduce or an executor."""
    at_once_mib: int
    """The containers that run on it at once: one executor and the application master, or as many
    tasks as YARN starts."""
    alone: bool
    """Whether it is the only worker, which then has the application master, too."""
    refusal: str = ""
    """Why the engine cannot run on it at all; empty if it can."""

    @property
    def _least_mib(self) -> int:
        containers = self.task_mib + (self.am_mib if self.alone else 0)
        return self.system_mib + self.daemons_mib + max(containers, self.am_mib)

    @property
    def fits(self) -> bool:
        """Whether a task finds a place beside what it needs."""
        containers = max(self.task_mib + (self.am_mib if self.alone else 0), self.am_mib)
        return (
            not self.refusal and containers <= self.granted_mib and self._least_mib <= self.node_mib
        )

    @property
    def share(self) -> float:
        """How much of the memory is taken when everything runs at once; above 1 it swaps."""
        return (self.system_mib + self.daemons_mib + self.at_once_mib) / self.node_mib

    @property
    def has_margin(self) -> bool:
        """Whether it fits, and also when everything runs at once."""
        return self.fits and self.share <= 1

    @property
    def words(self) -> str:
        """The arithmetic."""
        if self.refusal:
            return f"memory: {self.refusal}"
        return (
            f"memory: {self.system_mib} system + {self.daemons_mib} daemons + {self.at_once_mib}"
            f" containers at once (application master {self.am_mib}, largest task"
            f" {self.task_mib}) = {100 * self.share:.0f} % of {self.node_mib} MiB"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFit:
    """Whether one run fits, as far as that is known."""

    disks: DiskNeed | None
    """What it keeps on the disks; None where a size is not known."""
    memory: ContainerMemory | None
    """What it needs of a worker's memory; None where that is not known."""

    @property
    def fits(self) -> bool:
        """Whether nothing that is known speaks against it."""
        return (self.disks is None or self.disks.fits) and (self.memory is None or self.memory.fits)

    @property
    def words(self) -> str:
        """The verdict with its shares; the arithmetic where it does not fit."""
        known = [row for row in (self.disks, self.memory) if row is not None]
        if wrong := [row.words for row in known if not row.fits]:
            return f"no, {'; '.join(wrong)}"
        names = (("disks", self.disks), ("memory", self.memory))
        shares = [f"{100 * row.share:.0f} % of the {name}" for name, row in names if row]
        return f"yes, {', '.join(shares)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileNeeds:
    """What a profile asks of a cluster for one engine."""

    memory: ContainerMemory
    """Of the smallest worker."""
    replication: int
    """Copies of each block of HDFS."""
