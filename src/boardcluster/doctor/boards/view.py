"""What the checks of boards look at: every board, and what the masters say. Pure data."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.errors import BoardclusterError, CapacityError
from boardcluster.records import ClusterSpec, Mount, NodeFacts, NodeSpec
from boardcluster.services.pair import EnginePair, load_pair
from boardcluster.services.profile import Profile, build_profile

__all__ = [
    "BoardView",
    "ClusterView",
    "Inside",
    "LostBoard",
    "Manager",
    "Masters",
    "WaitingJob",
    "each",
    "fault",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What only the doctor asks of a board.

    Attributes:
        provisioned: whether `up` has installed the cluster there.
        firewall: whether our table of nftables is loaded; None if nft gives no answer.
        firewall_file: whether its rules are there to be loaded.
        name_addresses: what its name in cluster.toml resolves to, there.
        cluster_ids: per VERSION file of HDFS's data, the clusterID in it.
        login_id: user id of who logged in.
        permissions: path to (owner, mode) of that user's home and SSH files.
        listening: addresses and ports that take TCP connections.
        java: the Java that was installed for the daemons, links resolved; empty if none was.
        dead_daemons: names of daemons that were started and no longer run.
    """

    provisioned: bool = False
    firewall: bool | None = None
    firewall_file: bool = False
    name_addresses: tuple[str, ...] = ()
    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    login_id: int = 0
    permissions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    listening: tuple[tuple[str, int], ...] = ()
    java: str = ""
    dead_daemons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardView:
    """A board that answered.

    Attributes:
        spec: what is declared.
        facts: what it is.
        inside: what else was asked.
    """

    spec: NodeSpec
    facts: NodeFacts
    inside: Inside

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return self.spec.name

    @property
    def mount(self) -> Mount | None:
        """The file system that holds its folder, or will hold it."""
        point = self.facts.folder_mount
        return next((row for row in self.facts.mounts if row.folder == point), None)

    def there(self, command: str) -> str:
        """Return the command line that runs a command on the board."""
        return f"ssh {self.spec.host} {shlex.quote(command)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBoard:
    """A board that did not answer.

    Attributes:
        spec: what is declared.
        error: why.
    """

    spec: NodeSpec
    error: BoardclusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A NodeManager as the ResourceManager sees it.

    Attributes:
        host: its node.
        state: e.g. RUNNING, UNHEALTHY, LOST.
        report: its own words on its health.
    """

    host: str
    state: str
    report: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """An application that YARN took and has not started.

    Attributes:
        id: YARN's id.
        name: its name.
        waited_seconds: since it was submitted.
        diagnostics: what YARN says about it.
    """

    id: str
    name: str
    waited_seconds: float
    diagnostics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Masters:
    """What the masters of a running cluster say; None where one did not answer.

    Attributes:
        live_datanodes: DataNodes that report to the NameNode.
        managers: every NodeManager the ResourceManager knows.
        waiting: jobs in the state ACCEPTED.
    """

    live_datanodes: int | None
    managers: tuple[Manager, ...] | None
    waiting: tuple[WaitingJob, ...] | None


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """A cluster of boards as the doctor sees it.

    Attributes:
        spec: as ``cluster.toml`` declares it.
        boards: those that answered, in the order of the file.
        lost: those that did not.
        masters: what the masters say; None unless the cluster is recorded as up.
        running: as it was started, perhaps with fewer workers; None if it was not.
        options: command-line options that name this cluster again, with a space before each.
    """

    spec: ClusterSpec
    boards: tuple[BoardView, ...]
    lost: tuple[LostBoard, ...] = ()
    masters: Masters | None = None
    running: ClusterSpec | None = None
    options: str = ""

    @property
    def expected(self) -> tuple[NodeSpec, ...]:
        """The workers that should be live."""
        return (self.running or self.spec).workers

    @property
    def pair(self) -> EnginePair:
        """The engine pair."""
        return load_pair(self.spec.engines)

    @cached_property
    def profile(self) -> Profile | None:
        """The engine configuration; None if it fits no node, which the check profile says."""
        try:
            return build_profile(self.spec.profile, self.spec)
        except CapacityError:
            return None

    def setting(self, file: str, name: str, default: str, *, node: str = "") -> str:
        """Return a property as the profile sets it, on a node if that is named."""
        if self.profile is None:
            return default
        own = self.profile.per_node.get(node, {}) if file == "yarn-site" else {}
        return own.get(name) or self.profile.properties[file].get(name, default)

    def command(self, name: str) -> str:
        """Return the command line of a boardcluster command for this cluster."""
        return f"boardcluster {name}{self.options}"


def fault(
    check: Check[ClusterView],
    board: BoardView,
    seen: str,
    *,
    fix: str,
    why: str = "",
    severity: Severity | None = None,
    repair: tuple[str, ...] = (),
) -> Finding:
    """Return a fault of one board; see ``Check.wrong``."""
    words: dict[str, Any] = {"fix": fix, "why": why, "severity": severity, "repair": repair}
    return check.wrong(f"{board.name}: {seen}", node=board.name, **words)


def each(
    check: Check[ClusterView],
    view: ClusterView,
    judge: Callable[[BoardView], Finding | None],
    *,
    good: str,
) -> Iterator[Finding]:
    """Judge every board that answered; if nothing is wrong, say so once for all of them."""
    faults = [found for board in view.boards if (found := judge(board)) is not None]
    yield from faults
    if not view.boards:
        yield check.good("cannot tell: no board answered")
    elif not faults:
        yield check.good(good)
