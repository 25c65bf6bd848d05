"""Control groups of emulated nodes, in version 1 and version 2 of the kernel's interface.

Every node has one group per controller (version 1) or one group (version 2), named
``boardcluster-<identity>/<node>`` at the root of the hierarchy: a group below our own would share
what the session or the container was given. Processes join by a prefix of their command, see
``joining``, because a program that enters a node's namespaces stays in its caller's group.

Below it every core of the board has a group for CPU time alone, with its share of the node's quota
(threaded groups of version 2). Every thread is in one of them, so that none gets more than a core;
``core_watcher.py`` spreads those that are busy.

Sources: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import resource
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.cluster.limits.group_files import (
    make_group,
    read_counted,
    read_limit,
    remove_group,
    rows_by_device,
    write_limit,
)
from boardcluster.errors import HostError
from boardcluster.records import QUOTA_CORES_LEAST, DiskLimits

__all__ = [
    "Cgroups",
    "CgroupsV1",
    "CgroupsV2",
    "amount_of",
    "find_cgroups",
    "joining",
    "quota_microseconds",
]

PERIOD_MICROSECONDS = 100_000
"""The kernel's own: what a node may use is handed out ten times a second."""

_MOUNTS = Path("/proc/self/mountinfo")
_QUOTA_LEAST_MICROSECONDS = round(QUOTA_CORES_LEAST * PERIOD_MICROSECONDS)
_UNLIMITED_V1 = -1
_CORE = "core"
_QUOTA = "cpu quota"
_OUTSIDE = "threads in no core's group"
_MEMORY = "memory"
_SWAP = "swap"
_PAGE_BYTES = resource.getpagesize()
_JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'
_PREFIX = "boardcluster-"
_V1_OWN_GROUPS = ("cpu", "cpuacct", "memory")
_V1_CONTROLLERS = (*_V1_OWN_GROUPS, "blkio")
_V2_CONTROLLERS = ("cpu", "io", "memory")
_THROTTLES = {
    "read_bps_device": "read_bytes_per_second",
    "write_bps_device": "write_bytes_per_second",
    "read_iops_device": "read_iops",
    "write_iops_device": "write_iops",
}
_IO_KEYS = {
    "rbps": "read_bytes_per_second",
    "wbps": "write_bytes_per_second",
    "riops": "read_iops",
    "wiops": "write_iops",
}


def joining(files: Sequence[str]) -> tuple[str, ...]:
    """Return the command prefix that puts a program into groups before it becomes itself.

    Args:
        files: ``cgroup.procs`` of each group.
    """
    return ("sh", "-c", _JOIN, "join", *files, "--") if files else ()


def quota_microseconds(cores: float) -> int:
    """Return what is written for so many cores: CPU time per period."""
    return max(_QUOTA_LEAST_MICROSECONDS, round(cores * PERIOD_MICROSECONDS))


class Cgroups(ABC):
    """The groups of one cluster, in one version of the kernel's interface."""

    name: str
    """Name of the cluster's group."""

    @abstractmethod
    def _own(self) -> list[Path]:
        """Return the folders of the hierarchies in which nodes have groups of their own."""

    @abstractmethod
    def _files(self, node: str) -> dict[str, Path]:
        """Return the files of a node's limits by name, that against swapping with them."""

    @abstractmethod
    def _cpu(self, cores: float | None) -> dict[str, str]:
        """Return what the files of the CPU's limits hold, by name."""

    @property
    @abstractmethod
    def threads_name(self) -> str:
        """Return the name of the file that lists a group's threads, and takes others."""

    @abstractmethod
    def cpu_folder(self, node: str) -> Path:
        """Return a node's group in the hierarchy of CPU time."""

    @abstractmethod
    def _make_core(self, folder: Path) -> None:
        """Make the group of one core."""

    @abstractmethod
    def _read_disk(self, node: str, device: str) -> dict[str, str]:
        """Return the limits of a device, ``none`` where there is none."""

    @abstractmethod
    def _make_node(self, node: str) -> None:
        """Make a node's groups, those of its cores excepted."""

    @abstractmethod
    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the files into which a process writes itself to join a node."""

    @abstractmethod
    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        """Limit a block device, given as MAJOR:MINOR; None lifts the limits."""

    @abstractmethod
    def cpu_seconds(self, node: str) -> float:
        """Return the CPU time that a node's processes have used.

        Raises:
            HostError: the node's group is gone.
        """

    def folders(self) -> tuple[Path, ...]:
        """Return the cluster's group in each hierarchy."""
        return tuple(dict.fromkeys(root / self.name for root in self._own()))

    def core_folders(self, node: str, board_cores: int) -> list[Path]:
        """Return the groups of a node's cores."""
        return [self.cpu_folder(node) / f"{_CORE}{core}" for core in range(board_cores)]

    def create(self, node: str, board_cores: int = 1) -> None:
        """Make a node's groups, and one for each of its cores; what exists is taken over.

        Raises:
            HostError: the kernel refused.
        """
        self._make_node(node)
        for folder in self.core_folders(node, board_cores):
            self._make_core(folder)

    def set_cpu(self, node: str, cores: float | None, board_cores: int = 1) -> None:
        """Limit a node's CPU time, and that of each of its cores; None lifts the limits.

        Raises:
            HostError: the kernel refused.
        """
        whole, part = self._cpu(cores), self._core_quota(cores, board_cores)
        own, quota = self._files(node), self._quota_name
        parts = [(folder / quota, part) for folder in self.core_folders(node, board_cores)]
        writes = [*((own[limit], text) for limit, text in whole.items()), *parts]
        # Version 1 refuses a part above the whole.
        if cores is not None and amount_of(part) < amount_of(read_limit(parts[0][0])):
            writes = [*parts, *writes[: -len(parts)]]
        for file, text in writes:
            write_limit(file, text)

    @property
    def _quota_name(self) -> str:
        return self._files("")[_QUOTA].name

    def _core_quota(self, cores: float | None, board_cores: int) -> str:
        return self._cpu(None if cores is None else cores / board_cores)[_QUOTA]

    def set_memory(self, node: str, limit_bytes: int) -> None:
        """Limit a node's memory, page cache included, without swap."""
        files = self._files(node)
        write_limit(files[_MEMORY], str(limit_bytes))
        with contextlib.suppress(HostError):  # the file is absent where swap is not accounted for
            write_limit(files[_SWAP], "0")

    def read(self, node: str, device: str) -> Mapping[str, str]:
        """Return every limit of a node as the kernel has it, in the words of ``expected``."""
        files = {limit: file for limit, file in self._files(node).items() if limit != _SWAP}
        for folder in sorted(self.cpu_folder(node).glob(f"{_CORE}*")):
            files[_core_limit(folder.name)] = folder / self._quota_name
        found = {limit: read_limit(file) for limit, file in files.items()}
        outside = read_limit(self.cpu_folder(node) / self.threads_name)
        found[_OUTSIDE] = outside if outside.startswith("unr") else str(len(outside.split()))
        return found | (self._read_disk(node, device) if device else {})

    def expected(
        self,
        cores: float | None,
        memory_bytes: int,
        device: str,
        disk: DiskLimits | None,
        board_cores: int = 1,
    ) -> Mapping[str, str]:
        """Return what ``read`` must yield for these limits."""
        wanted = {**self._cpu(cores), _MEMORY: str(memory_bytes // _PAGE_BYTES * _PAGE_BYTES)}
        for folder in self.core_folders("", board_cores):
            wanted[_core_limit(folder.name)] = self._core_quota(cores, board_cores)
        wanted[_OUTSIDE] = "0"
        for field in _IO_KEYS.values() if device else ():
            wanted[field] = "none" if disk is None else str(getattr(disk, field))
        return wanted

    def sweep(self, node: str) -> None:
        """Remove the groups of this node that killed drivers left, of any cluster.

        Those in use stay: the kernel refuses to remove them.
        """
        for root in self._own():
            for folder in root.glob(f"{_PREFIX}*/{node}"):
                with contextlib.suppress(OSError):
                    for core in folder.glob(f"{_CORE}*"):
                        core.rmdir()
                    folder.rmdir()
                    folder.parent.rmdir()

    def remove(self) -> None:
        """Remove all groups of the cluster; their processes must have ended.

        Raises:
            ClusterError: a group still holds processes.
        """
        for root in self._own():
            remove_group(root / self.name)


def _core_limit(name: str) -> str:
    return f"quota of {name}"


def amount_of(quota: str) -> float:
    """Return the number that a quota begins with; infinite for none."""
    word = quota.partition(" ")[0]
    return float(word) if word.isdecimal() else float("inf")


def _mounts() -> list[tuple[str, str, frozenset[str]]]:
    """Return mount point, type and options of every control group hierarchy."""
    found = []
    for line in _MOUNTS.read_text().splitlines():
        head, _, tail = line.partition(" - ")
        kind, _, options = tail.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            found.append((head.split(" ")[4], kind, frozenset(options.split(","))))
    return found


def find_cgroups(identity: str) -> Cgroups:
    """Return the groups of a cluster, in the version that this machine offers.

    Raises:
        HostError: a controller that limits need is in neither; it is named.
    """
    mounts = _mounts()
    first: dict[str, Path] = {}
    for folder, kind, options in mounts:
        for name in _V1_CONTROLLERS:
            if kind == "cgroup" and name in options:
                first.setdefault(name, Path(folder))
    unified = next((Path(folder) for folder, kind, _ in mounts if kind == "cgroup2"), None)
    offered: set[str] = set()
    if unified is not None:
        with contextlib.suppress(OSError):
            offered = set((unified / "cgroup.controllers").read_text().split())
    name = f"{_PREFIX}{identity[:8]}"
    if unified is not None and offered.issuperset(_V2_CONTROLLERS):
        return CgroupsV2(unified, name)
    missing = sorted(set(_V1_CONTROLLERS) - set(first))
    if missing:
        second = sorted(set(_V2_CONTROLLERS) - offered)
        raise HostError(
            "this machine's kernel does not offer the control groups that limits need: version 1 "
            f"lacks {', '.join(missing)}, version 2 lacks {', '.join(second)}",
            hint="on a Raspberry Pi add `cgroup_enable=memory cgroup_memory=1` to cmdline.txt and "
            "restart; in a container mount the host's /sys/fs/cgroup; or bring up a cluster whose "
            "nodes have no `board`, which needs no limits",
        )
    return CgroupsV1(first, name)


@dataclass(frozen=True, slots=True)
class CgroupsV1(Cgroups):
    """Groups of version 1: one hierarchy per controller.

    Throttling there holds for a group only and not for those below, and writes that the kernel
    does later count for the root. So nodes' processes join the root group of ``blkio``, and each
    node's own device is throttled there.
    """

    roots: Mapping[str, Path]
    """Folder of each controller's hierarchy."""
    name: str

    def _own(self) -> list[Path]:
        return [self.roots[controller] for controller in _V1_OWN_GROUPS]

    def _files(self, node: str) -> dict[str, Path]:
        cpu, memory = (self.roots[name] / self.name / node for name in ("cpu", "memory"))
        return {
            "cpu period": cpu / "cpu.cfs_period_us",
            _QUOTA: cpu / "cpu.cfs_quota_us",
            _MEMORY: memory / "memory.limit_in_bytes",
            _SWAP: memory / "memory.swappiness",
        }

    def _cpu(self, cores: float | None) -> dict[str, str]:
        quota = _UNLIMITED_V1 if cores is None else quota_microseconds(cores)
        return {"cpu period": str(PERIOD_MICROSECONDS), _QUOTA: str(quota)}

    def _read_disk(self, node: str, device: str) -> dict[str, str]:  # noqa: ARG002
        folder = self.roots["blkio"]
        return {
            field: rows_by_device(read_limit(folder / f"blkio.throttle.{file}")).get(device, "none")
            for file, field in _THROTTLES.items()
        }

    @property
    def threads_name(self) -> str:
        """Return ``tasks``."""
        return "tasks"

    def cpu_folder(self, node: str) -> Path:
        """Return the node's group of the controller ``cpu``."""
        return self.roots["cpu"] / self.name / node

    def _make_core(self, folder: Path) -> None:
        make_group(folder)

    def _make_node(self, node: str) -> None:
        """Make a group in the hierarchy of each controller but ``blkio``."""
        for root in self._own():
            make_group(root / self.name / node)

    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the files of its first core and its other groups, and of ``blkio``'s root."""
        [core] = self.core_folders(node, 1)
        others = [root / self.name / node for root in self._own() if root != self.roots["cpu"]]
        folders = [core, *others, self.roots["blkio"]]
        return tuple(dict.fromkeys(str(folder / "cgroup.procs") for folder in folders))

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:  # noqa: ARG002
        """Throttle the device in the root of ``blkio``; 0 lifts a limit."""
        for file, field in _THROTTLES.items():
            value = 0 if limits is None else int(getattr(limits, field))
            write_limit(self.roots["blkio"] / f"blkio.throttle.{file}", f"{device} {value}")

    def cpu_seconds(self, node: str) -> float:
        """Return ``cpuacct.usage``, which is in nanoseconds."""
        return int(read_counted(self.roots["cpuacct"] / self.name / node / "cpuacct.usage")) / 1e9


@dataclass(frozen=True, slots=True)
class CgroupsV2(Cgroups):
    """Groups of version 2: one hierarchy; a node's own group limits also what is written later."""

    root: Path
    """Folder of the hierarchy."""
    name: str

    def _own(self) -> list[Path]:
        return [self.root]

    def _of(self, node: str) -> Path:
        return self.root / self.name / node

    def _files(self, node: str) -> dict[str, Path]:
        names = {_QUOTA: "cpu.max", _MEMORY: "memory.max", _SWAP: "memory.swap.max"}
        return {limit: self._of(node) / name for limit, name in names.items()}

    def _cpu(self, cores: float | None) -> dict[str, str]:
        quota = "max" if cores is None else str(quota_microseconds(cores))
        return {_QUOTA: f"{quota} {PERIOD_MICROSECONDS}"}

    def _read_disk(self, node: str, device: str) -> dict[str, str]:
        row = rows_by_device(read_limit(self._of(node) / "io.max")).get(device, "")
        values = dict(word.partition("=")[::2] for word in row.split())
        return {
            field: values.get(key, "max").replace("max", "none") for key, field in _IO_KEYS.items()
        }

    @property
    def threads_name(self) -> str:
        """Return ``cgroup.threads``."""
        return "cgroup.threads"

    def cpu_folder(self, node: str) -> Path:
        """Return the node's only group."""
        return self._of(node)

    def _make_core(self, folder: Path) -> None:
        """Make a threaded group: memory and disk stay the node's, of which it is a part."""
        make_group(folder)
        write_limit(folder / "cgroup.type", "threaded")
        write_limit(folder.parent / "cgroup.subtree_control", "+cpu")

    def _make_node(self, node: str) -> None:
        """Make a group below the cluster's, the controllers handed down to both."""
        wanted = " ".join(f"+{name}" for name in _V2_CONTROLLERS)
        write_limit(self.root / "cgroup.subtree_control", wanted)
        make_group(self.root / self.name)
        write_limit(self.root / self.name / "cgroup.subtree_control", wanted)
        make_group(self._of(node))

    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the file of the node's first core, which is in the node's group."""
        [core] = self.core_folders(node, 1)
        return (str(core / "cgroup.procs"),)

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        """Write one line of ``io.max``; ``max`` lifts a limit."""
        words = [
            f"{key}={'max' if limits is None else int(getattr(limits, field))}"
            for key, field in _IO_KEYS.items()
        ]
        write_limit(self._of(node) / "io.max", f"{device} {' '.join(words)}")

    def cpu_seconds(self, node: str) -> float:
        """Return ``usage_usec`` of ``cpu.stat``, which is in microseconds."""
        return int(rows_by_device(read_counted(self._of(node) / "cpu.stat"))["usage_usec"]) / 1e6
