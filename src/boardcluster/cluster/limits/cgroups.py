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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
    "/sys/fs/cgroup",
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


class Cgroups(Protocol):
    """The groups of one cluster."""

    def create(self, node: str) -> None:
        """Make a node's groups; what exists already is taken over.

        Raises:
            HostError: the kernel refused.
        """

    def join_files(self, node: str) -> tuple[str, ...]:
        """Return the files into which a process writes itself to join a node."""

    def set_cpu(self, node: str, cores: float | None) -> None:
        """Limit a node's CPU time; None lifts the limit."""

    def set_memory(self, node: str, limit_bytes: int) -> None:
        """Limit a node's memory, page cache included, without swap."""

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        """Limit a block device, given as MAJOR:MINOR; None lifts the limits."""

    def read(self, node: str, device: str) -> Mapping[str, str]:
        """Return every limit of a node as the kernel has it, in the words of ``expected``."""

    def expected(
        self, cores: float | None, memory_bytes: int, device: str, disk: DiskLimits | None
    ) -> Mapping[str, str]:
        """Return what ``read`` must yield for these limits."""

    def cpu_seconds(self, node: str) -> float:
        """Return the CPU time that a node's processes have used.

        Raises:
            HostError: the node's group is gone.
        """

    def sweep(self, node: str) -> None:
        """Remove the groups of this node that drivers which were killed left, of any cluster.

        Those in use stay: the kernel refuses to remove them.
        """

    def remove(self) -> None:
        """Remove all groups of the cluster; their processes must have ended.

        Raises:
            ClusterError: a group still holds processes.
        """


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

    Args:
        identity: of the cluster.

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
            f"the control group {folder} cannot be made: {error.strerror}",
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


def _sweep(root: Path, node: str) -> None:
    for folder in root.glob(f"{_PREFIX}*/{node}"):
        with contextlib.suppress(OSError):
            folder.rmdir()
            folder.parent.rmdir()


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
class CgroupsV1:
    """Groups of version 1: one hierarchy per controller.

    Throttling there holds for a group only and not for those below, and writes that the kernel
    does later count for the root. So nodes' processes join the root group of ``blkio``, and each
    node's own device is throttled there.

    Args:
        roots: folder of each controller's hierarchy.
        name: of the cluster's group.
    """

    roots: Mapping[str, Path]
    name: str

    def _of(self, controller: str, node: str) -> Path:
        return self.roots[controller] / self.name / node

    def create(self, node: str) -> None:
        """See Cgroups."""
        for controller in _V1_OWN_GROUPS:
            _make(self._of(controller, node))

    def join_files(self, node: str) -> tuple[str, ...]:
        """See Cgroups."""
        folders = [self._of(name, node) for name in _V1_OWN_GROUPS]
        files = [str(folder / "cgroup.procs") for folder in folders]
        return tuple(dict.fromkeys([*files, str(self.roots["blkio"] / "cgroup.procs")]))

    def set_cpu(self, node: str, cores: float | None) -> None:
        """See Cgroups."""
        folder = self._of("cpu", node)
        quota = _UNLIMITED_V1 if cores is None else quota_microseconds(cores)
        _write(folder / "cpu.cfs_period_us", str(PERIOD_MICROSECONDS))
        _write(folder / "cpu.cfs_quota_us", str(quota))

    def set_memory(self, node: str, limit_bytes: int) -> None:
        """See Cgroups."""
        folder = self._of("memory", node)
        _write(folder / "memory.limit_in_bytes", str(limit_bytes))
        with contextlib.suppress(HostError):  # the file is absent where swap is not accounted for
            _write(folder / "memory.swappiness", "0")

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:  # noqa: ARG002
        """See Cgroups."""
        for file, field in _THROTTLES.items():
            value = 0 if limits is None else int(getattr(limits, field))
            _write(self.roots["blkio"] / f"blkio.throttle.{file}", f"{device} {value}")

    def read(self, node: str, device: str) -> Mapping[str, str]:
        """See Cgroups."""
        cpu, memory = self._of("cpu", node), self._of("memory", node)
        found = {
            "cpu period": _read(cpu / "cpu.cfs_period_us"),
            "cpu quota": _read(cpu / "cpu.cfs_quota_us"),
            "memory": _read(memory / "memory.limit_in_bytes"),
        }
        for file, field in _THROTTLES.items() if device else ():
            text = _read(self.roots["blkio"] / f"blkio.throttle.{file}")
            found[field] = _rows(text).get(device, "none")
        return found

    def expected(
        self, cores: float | None, memory_bytes: int, device: str, disk: DiskLimits | None
    ) -> Mapping[str, str]:
        """See Cgroups."""
        quota = _UNLIMITED_V1 if cores is None else quota_microseconds(cores)
        wanted = {
            "cpu period": str(PERIOD_MICROSECONDS),
            "cpu quota": str(quota),
            "memory": str(memory_bytes // _PAGE_BYTES * _PAGE_BYTES),
        }
        for field in _THROTTLES.values() if device else ():
            wanted[field] = "none" if disk is None else str(getattr(disk, field))
        return wanted

    def cpu_seconds(self, node: str) -> float:
        """See Cgroups."""
        return int(_counted(self._of("cpuacct", node) / "cpuacct.usage")) / 1e9

    def sweep(self, node: str) -> None:
        """See Cgroups."""
        for controller in _V1_OWN_GROUPS:
            _sweep(self.roots[controller], node)

    def remove(self) -> None:
        """See Cgroups."""
        for controller in _V1_OWN_GROUPS:
            _remove(self.roots[controller] / self.name)


@dataclass(frozen=True, slots=True)
class CgroupsV2:
    """Groups of version 2: one hierarchy; a node's own group limits also what is written later.

    Args:
        root: folder of the hierarchy.
        name: of the cluster's group.
    """

    root: Path
    name: str

    def _of(self, node: str) -> Path:
        return self.root / self.name / node

    def create(self, node: str) -> None:
        """See Cgroups."""
        wanted = " ".join(f"+{name}" for name in _V2_CONTROLLERS)
        _write(self.root / "cgroup.subtree_control", wanted)
        _make(self.root / self.name)
        _write(self.root / self.name / "cgroup.subtree_control", wanted)
        _make(self._of(node))

    def join_files(self, node: str) -> tuple[str, ...]:
        """See Cgroups."""
        return (str(self._of(node) / "cgroup.procs"),)

    def set_cpu(self, node: str, cores: float | None) -> None:
        """See Cgroups."""
        _write(self._of(node) / "cpu.max", self._cpu_max(cores))

    @staticmethod
    def _cpu_max(cores: float | None) -> str:
        quota = "max" if cores is None else str(quota_microseconds(cores))
        return f"{quota} {PERIOD_MICROSECONDS}"

    def set_memory(self, node: str, limit_bytes: int) -> None:
        """See Cgroups."""
        _write(self._of(node) / "memory.max", str(limit_bytes))
        with contextlib.suppress(HostError):  # absent where swap is not accounted for
            _write(self._of(node) / "memory.swap.max", "0")

    def set_disk(self, node: str, device: str, limits: DiskLimits | None) -> None:
        """See Cgroups."""
        words = [
            f"{key}={'max' if limits is None else int(getattr(limits, field))}"
            for key, field in _IO_KEYS.items()
        ]
        _write(self._of(node) / "io.max", f"{device} {' '.join(words)}")

    def read(self, node: str, device: str) -> Mapping[str, str]:
        """See Cgroups."""
        folder = self._of(node)
        found = {
            "cpu quota": _read(folder / "cpu.max"),
            "memory": _read(folder / "memory.max"),
        }
        if device:
            row = _rows(_read(folder / "io.max")).get(device, "")
            values = dict(word.partition("=")[::2] for word in row.split())
            for key, field in _IO_KEYS.items():
                found[field] = values.get(key, "max").replace("max", "none")
        return found

    def expected(
        self, cores: float | None, memory_bytes: int, device: str, disk: DiskLimits | None
    ) -> Mapping[str, str]:
        """See Cgroups."""
        wanted = {
            "cpu quota": self._cpu_max(cores),
            "memory": str(memory_bytes // _PAGE_BYTES * _PAGE_BYTES),
        }
        for field in _IO_KEYS.values() if device else ():
            wanted[field] = "none" if disk is None else str(getattr(disk, field))
        return wanted

    def cpu_seconds(self, node: str) -> float:
        """See Cgroups."""
        values = _rows(_counted(self._of(node) / "cpu.stat"))
        return int(values["usage_usec"]) / 1e6

    def sweep(self, node: str) -> None:
        """See Cgroups."""
        _sweep(self.root, node)

    def remove(self) -> None:
        """See Cgroups."""
        _remove(self.root / self.name)
