"""All limits of one emulated cluster: set, lifted, read back, and removed with it.

Groups and disks exist from the start of the nodes, so that every process is in its group; rates
are set once the daemons are healthy, and lifted while input is prepared or output proved, so that
only what is measured takes the board's time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boardcluster.cluster.limits.cgroups import Cgroups, find_cgroups, joining
from boardcluster.cluster.limits.disks import (
    detach_leftovers,
    forget_device,
    hold_unwritten,
    is_unwritten_held,
    noted_devices,
)
from boardcluster.cluster.limits.links import batch, is_rate, rate_of, shape
from boardcluster.cluster.limits.watching import CoreWatch, forget_watch
from boardcluster.errors import BoardclusterError, ClusterError, HostError
from boardcluster.records import NodeLimits
from boardcluster.remote.netns import enter

__all__ = ["Limiter", "Port", "clear_leftovers", "join_prefix", "make_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """Where a node's link is shaped."""

    node_pid: int
    """A process in the node's network namespace."""
    switch_pid: int
    """A process in the switch's."""
    name: str
    """Interface of the switch that leads to the node."""
    open_bits_per_second: int
    """Its rate where no limit is set."""

    @property
    def ends(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Both ends: how to get there, and the interface."""
        return (
            (enter(self.switch_pid, own_user=False, kinds="nm"), self.name),
            (enter(self.node_pid, own_user=False, kinds="nm"), "eth0"),
        )


@dataclass(slots=True, kw_only=True)
class Limiter:
    """The limits of a cluster that is up."""

    groups: Cgroups
    """Its control groups."""
    limits: tuple[NodeLimits, ...]
    """What each node is to have."""
    devices: Mapping[str, str]
    """By node, the device of its disk as MAJOR:MINOR; nodes without one have none."""
    ports: Mapping[str, Port]
    """By node, where its link is shaped."""
    watch: CoreWatch
    """What spreads the nodes' threads over their cores."""
    _shares: dict[str, float] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def _cpu_cores(self, node: NodeLimits) -> float:
        return node.cpu_cores * self._shares.get(node.node, 1.0)

    def set(self) -> None:
        """Set every limit, and read it back.

        Raises:
            HostError: the kernel refused one.
            ClusterError: one reads back differently.
        """
        with self._lock:
            for node in self.limits:
                self.groups.create(node.node, node.board_cores)  # others may have removed some
                self.groups.set_memory(node.node, node.memory_bytes)
                self.groups.set_cpu(node.node, self._cpu_cores(node), node.board_cores)
                if node.disk is not None:
                    device = self.devices[node.node]
                    self.groups.set_disk(node.node, device, node.disk)
                    hold_unwritten(device, node.disk.unwritten_bytes)
                self._set_link(node.node, node.link_bits_per_second)
            self.watch.ensure(self.groups, self.limits)
            if wrong := self.changed():
                raise ClusterError(
                    f"limits do not read back as they were set: {'; '.join(wrong)}",
                    hint="find out which other program changes control groups on this machine",
                )

    def lift(self) -> None:
        """Let nodes run as fast as this machine; their memory stays limited."""
        with self._lock:
            for node in self.limits:
                self.groups.set_cpu(node.node, None, node.board_cores)
                if node.disk is not None:
                    device = self.devices[node.node]
                    self.groups.set_disk(node.node, device, None)
                    hold_unwritten(device, None)
                self._set_link(node.node, self.ports[node.node].open_bits_per_second)

    def set_shares(self, shares: Mapping[str, float]) -> None:
        """Give nodes only a share of their CPU limit, as firmware does with hot boards.

        Nodes that are left out have all of it.
        """
        with self._lock:
            before, self._shares = self._shares, dict(shares)
            for node in self.limits:
                if before.get(node.node, 1.0) != self._shares.get(node.node, 1.0):
                    self.groups.set_cpu(node.node, self._cpu_cores(node), node.board_cores)

    def _set_link(self, node: str, rate_bits_per_second: int) -> None:
        for prefix, device in self.ports[node].ends:
            batch(prefix, "tc", [shape(device, rate_bits_per_second, verb="replace")])

    def renew(self) -> None:
        """Set again how much may wait to be written: the kernel keeps a share of what is free.

        Raises:
            HostError: the kernel refused.
        """
        with self._lock:
            for node in self.limits:
                if node.disk is not None and node.disk.unwritten_bytes is not None:
                    hold_unwritten(self.devices[node.node], node.disk.unwritten_bytes)

    def changed(self, *, links: bool = True) -> list[str]:
        """Read limits back; return in words what is not as it was set. Links take longest."""
        found = []
        with self._lock:
            for node in self.limits:
                device = self.devices.get(node.node, "")
                wanted = self.groups.expected(
                    self._cpu_cores(node), node.memory_bytes, device, node.disk, node.board_cores
                )
                read = self.groups.read(node.node, device)
                found += [
                    f"{node.node}: {name} is {read.get(name, 'gone')}, but was set to {value}"
                    for name, value in wanted.items()
                    if read.get(name) != value
                ]
                limited = node.disk is not None and node.disk.unwritten_bytes is not None
                if limited and not is_unwritten_held(device):
                    found.append(f"{node.node}: what waits to be written is not limited any more")
                if links:
                    found += self._link_changed(node)
        if not self.watch.is_running():
            found.append(
                "the program that spreads threads over the boards' cores has ended, so busy "
                "threads may share a core while others are free"
            )
        return found

    def _link_changed(self, node: NodeLimits) -> Iterator[str]:
        for prefix, device in self.ports[node.node].ends:
            rate = rate_of(prefix, device)
            if not is_rate(rate, node.link_bits_per_second):
                yield (
                    f"{node.node}: link rate of {device} is {rate or 'none'} bit/s, but was set to "
                    f"{node.link_bits_per_second}"
                )

    def cpu_seconds(self) -> dict[str, float]:
        """Return by node the CPU time that its processes have used."""
        return {node.node: self.groups.cpu_seconds(node.node) for node in self.limits}


def make_groups(identity: str, limits: Iterable[NodeLimits]) -> None:
    """Make the groups of a cluster's nodes, before their first processes.

    Memory is limited from now on: later, what is cached could not be given back at once.

    Raises:
        HostError: this machine has no such groups, or not for us.
    """
    groups = find_cgroups(identity)
    for node in limits:
        groups.create(node.node, node.board_cores)
        groups.set_memory(node.node, node.memory_bytes)


def join_prefix(identity: str, name: str) -> tuple[str, ...]:
    """Return the command prefix that puts a program into a node's groups."""
    return joining(find_cgroups(identity).join_files(name))


def clear_leftovers(identity: str, nodes: Path) -> None:
    """Remove all that limits left: throttles, loop devices, groups; processes have ended.

    Safe to repeat, and for a cluster without limits.

    Raises:
        ClusterError: a group still holds processes.
    """
    try:
        groups = find_cgroups(identity)
    except HostError:
        return  # without groups nothing was limited
    for name, device in noted_devices(nodes).items():
        with contextlib.suppress(BoardclusterError):
            groups.set_disk(name, device, None)
        with contextlib.suppress(BoardclusterError):
            hold_unwritten(device, None)
    for folder in nodes.glob("*"):
        forget_device(folder)
    detach_leftovers(nodes)
    forget_watch(nodes.parent, identity)
    groups.remove()
