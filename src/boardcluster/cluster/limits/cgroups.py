"""Control groups of emulated nodes, in version 1 and version 2 of the kernel's interface.

Every node has one group per controller (version 1) or one group (version 2), named
``boardcluster-<identity>/<node>`` at the root of the hierarchy: a group below our own would share
what the session or the container was given. Processes join by a prefix of their command, see
``joining``, because a program that enters a node's namespaces stays in its caller's group.

Sources: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import errno
import operator
import resource
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import ClusterError, HostError
from boardcluster.records import DiskLimits
from boardcluster.waiting import wait_until

__all__ = ["Cgroups", "CgroupsV1", "CgroupsV2", "find_cgroups", "joining", "quota_microseconds"]

PERIOD_MICROSECONDS = 100_000
"""The kernel's own: what a node may use is handed out ten times a second."""

_MOUNTS = Path("/proc/self/mountinfo")
_QUOTA_LEAST_MICROSECONDS = 1000  # the kernel refuses less
_REMOVED_WITHIN_SECONDS = 10.0
_UNLIMITED_V1 = -1
_MEMORY = "memory"
_SWAP = "swap"
_PAGE_BYTES = resource.getpagesize()
_JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'
_HINT_RIGHTS = (
    "limits need root on the machine itself, or a container with CAP_SYS_ADMIN and a writable "
    "/sys/fs/cgroup"
)
_HINTS = {
    # Version 2 gives controllers only to groups that hold no processes themselves (cgroup-v2.rst,
    # "No Internal Process Constraint"); the root is free, but a container's root is not the root.
    errno.EBUSY: "processes are in that group itself, as in a container with groups of its own: "
    "run on the machine itself, or start the container with --cgroupns=host and the host's "
    "/sys/fs/cgroup"
}
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

    @abstractmethod
    def _read_disk(self, node: str, device: str) -> dict[str, str]:
        """Return the limits of a device, ``none`` where there is none."""

    @abstractmethod
    def create(self, node: str) -> None:
        """Make a node's groups; what exists already is taken over.

        Raises:
            HostError: the kernel refused.
        """

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

    def set_cpu(self, node: str, cores: float | None) -> None:
        """Limit a node's CPU time; None lifts the limit."""
        files = self._files(node)
        for limit, text in self._cpu(cores).items():
            _write(files[limit], text)

    def set_memory(self, node: str, limit_bytes: int) -> None:
        """Limit a node's memory, page cache included, without swap."""
        files = self._files(node)
        _write(files[_MEMORY], str(limit_bytes))
        with contextlib.suppress(HostError):  # the file is absent where swap is not accounted for
            _write(files[_SWAP], "0")

    def read(self, node: str, device: str) -> Mapping[str, str]:
        """Return every limit of a node as the kernel has it, in the words of ``expected``."""
        found = {limit: _read(file) for limit, file in self._files(node).items() if limit != _SWAP}
        return found | (self._read_disk(node, device) if device else {})

    def expected(
        self, cores: float | None, memory_bytes: int, device: str, disk: DiskLimits | None
    ) -> Mapping[str, str]:
        """Return what ``read`` must yield for these limits."""
        wanted = {**self._cpu(cores), _MEMORY: str(memory_bytes // _PAGE_BYTES * _PAGE_BYTES)}
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
                    folder.rmdir()
                    folder.parent.rmdir()

    def remove(self) -> None:
        """Remove all groups of the cluster; their processes must have ended.

        Raises:
            ClusterError: a group still holds processes.
        """
        for root in self._own():
            _remove(root / self.name)


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


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise HostError(
            f"the kernel refuses {text!r} for {path}: {error.strerror}",
            hint=_HINTS.get(error.errno or 0, _HINT_RIGHTS),
        ) from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"the control group {folder} cannot be created: {error.strerror}",
            hint="limits need root; without it bring up a cluster without boards",
        ) from error


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _counted(path: Path) -> str:
    """Return what the kernel counts; unlike a limit it cannot be read as some words."""
    try:
        return path.read_text()
    except OSError as error:
        raise HostError(
            f"the control group's {path} cannot be read: {error.strerror}",
            hint="the cluster was taken down, or another program removed its groups; see "
            "`boardcluster status`",
        ) from error


def _rows(text: str) -> dict[str, str]:
    """Return lines ``DEVICE REST`` by device."""
    return dict(line.partition(" ")[::2] for line in text.splitlines())


def _remove(folder: Path) -> None:
    """Remove a group and those in it; processes that were killed leave it a moment later.

    Raises:
        ClusterError: a group still holds processes after a while.
    """

    def refusal() -> OSError | None:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:
            return error
        return None

    for inner in folder.iterdir() if folder.is_dir() else ():
        if inner.is_dir():
            _remove(inner)
    if error := wait_until(
        refusal, ready=operator.not_, timeout_seconds=_REMOVED_WITHIN_SECONDS, poll_seconds=0.02
    ):
        raise ClusterError(
            f"the control group {folder} cannot be removed: {error.strerror}",
            hint=f"see which processes are in it: cat {folder}/cgroup.procs",
        ) from error


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
            "cpu quota": cpu / "cpu.cfs_quota_us",
            _MEMORY: memory / "memory.limit_in_bytes",
            _SWAP: memory / "memory.swappiness",
        }

    def _cpu(self, cores: float | None) -> dict[str, str]:
        quota = _UNLIMITED_V1 if cores is None else quota_microseconds(cores)
        return {"cpu period": str(PERIOD_MICROSECONDS), "cpu quota": str(quota)}

    def _read_disk(self, node: str, device: str) -> dict[str, str]:  # noqa: ARG002
        folder = self.roots["blkio"]
        return {
            field: _rows(_read(folder / f"blkio.throttle.{file}")).get(device, "none")
            for file, field in _THROTTLES.items()
        }

    def create(self, node: str) -> None:
        """Make a group in the hierarchy of each controller but ``blkio``."""
        for root in self._own():
            _make(root / self.name / node)

    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the files of these groups, and of the root of ``blkio``."""
        folders = [*(root / self.name / node for root in self._own()), self.roots["blkio"]]
        return tuple(dict.fromkeys(str(folder / "cgroup.procs") for folder in folders))

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:  # noqa: ARG002
        """Throttle the device in the root of ``blkio``; 0 lifts a limit."""
        for file, field in _THROTTLES.items():
            value = 0 if limits is None else int(getattr(limits, field))
            _write(self.roots["blkio"] / f"blkio.throttle.{file}", f"{device} {value}")

    def cpu_seconds(self, node: str) -> float:
        """Return ``cpuacct.usage``, which is in nanoseconds."""
        return int(_counted(self.roots["cpuacct"] / self.name / node / "cpuacct.usage")) / 1e9


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
        names = {"cpu quota": "cpu.max", _MEMORY: "memory.max", _SWAP: "memory.swap.max"}
        return {limit: self._of(node) / name for limit, name in names.items()}

    def _cpu(self, cores: float | None) -> dict[str, str]:
        quota = "max" if cores is None else str(quota_microseconds(cores))
        return {"cpu quota": f"{quota} {PERIOD_MICROSECONDS}"}

    def _read_disk(self, node: str, device: str) -> dict[str, str]:
        row = _rows(_read(self._of(node) / "io.max")).get(device, "")
        values = dict(word.partition("=")[::2] for word in row.split())
        return {
            field: values.get(key, "max").replace("max", "none") for key, field in _IO_KEYS.items()
        }

    def create(self, node: str) -> None:
        """Make a group below the cluster's, the controllers handed down to both."""
        wanted = " ".join(f"+{name}" for name in _V2_CONTROLLERS)
        _write(self.root / "cgroup.subtree_control", wanted)
        _make(self.root / self.name)
        _write(self.root / self.name / "cgroup.subtree_control", wanted)
        _make(self._of(node))

    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the one file of the node's group."""
        return (str(self._of(node) / "cgroup.procs"),)

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        """Write one line of ``io.max``; ``max`` lifts a limit."""
        words = [
            f"{key}={'max' if limits is None else int(getattr(limits, field))}"
            for key, field in _IO_KEYS.items()
        ]
        _write(self._of(node) / "io.max", f"{device} {' '.join(words)}")

    def cpu_seconds(self, node: str) -> float:
        """Return ``usage_usec`` of ``cpu.stat``, which is in microseconds."""
        return int(_rows(_counted(self._of(node) / "cpu.stat"))["usage_usec"]) / 1e6
