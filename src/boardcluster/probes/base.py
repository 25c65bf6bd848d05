"""What a probe is: which tools it needs, what it runs on a node, how its output reads.

A probe is one file of this folder with a module-level ``PROBE``. Parsers are pure: text in, figures
out; what they cannot read they refuse with ``ProbeOutputError``, naming the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.base import Remote

__all__ = ["LiveSite", "Measure", "NodeTool", "Probe", "Site", "Tell", "figures_from"]

Tell = Callable[[str], None]
"""Told what is being done, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTool:
    """A program that must be on the node."""

    program: str
    """Its name on PATH."""
    package: str
    """Debian's package that brings it."""
    version: tuple[str, ...] = ("--version",)
    """Arguments that make it print its version; none where it has none to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSite:
    """A node on which probes may run."""

    node: str
    """Its name."""
    remote: Remote
    """The node, as the user that jobs run as."""
    admin: Remote
    """The node as root; the same where there is no other way."""
    cores: int
    """Cores that the node may use."""
    memory_bytes: int
    """Its memory."""
    folder: str
    """A folder on its data medium, below which each run gets its own."""
    address: str
    """Its address in the cluster."""
    hardware: str = ""
    """One line on the machine."""
    cluster: str = ""
    """Name of its cluster; empty for a machine that is in none."""
    emulated: bool = False
    """Whether it is a namespace on this machine."""
    watts: Callable[[], float | None] | None = None
    """Reads the power meter of this node alone: watts now, or None if it gives no reading; None
    where no meter is declared."""
    dilation: float = 1.0
    """By how much it is slower than the board it stands for."""
    identity: str = ""
    """Identity of its cluster; empty for a machine that is in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(LiveSite):
    """Where a probe runs: a node with an empty ``folder`` of the run's own, deleted afterwards."""

    mode: ProbeMode
    """Quick or paper."""
    tell: Tell
    """Told what is being done."""
    peer: Site | None = None
    """The other node of a pair; None for probes of one node."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The probe's own options, as text."""


def figures_from(values: Mapping[str, float], conditions: dict[str, str]) -> list[ProbeFigure]:
    """Return values by name as figures that were measured under the same conditions."""
    return [
        ProbeFigure(name=name, value=value, conditions=conditions) for name, value in values.items()
    ]


Measure: TypeAlias = Callable[[Site], tuple[ProbeFigure, ...]]
"""Runs a probe's commands at a site and returns what they measured.

It leaves nothing behind: no process and nothing outside ``site.folder``, also when it fails. It
raises ProbeOutputError where a tool's output is not what it should be, and RemoteError where a tool
failed or did not end in time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One node benchmark."""

    name: str
    """lower-case with hyphens; the name of its file with underscores."""
    area: str
    """``cpu``, ``memory``, ``storage``, ``whole`` (a job that needs all of these), ``network``,
    ``heat`` or ``power``."""
    summary: str
    """One line for the help."""
    matches: tuple[str, ...]
    """The papers' tables and figures that it repeats."""
    tools: tuple[NodeTool, ...]
    """What must be on the node (and on the peer)."""
    measure: Measure
    """Runs it."""
    pair: bool = False
    """Whether it runs between two nodes."""
    quick_seconds: float
    """About how long quick mode takes on a fast board."""
    paper_seconds: float
    """About how long paper mode takes there."""
    default: bool = True
    """Whether ``boardcluster probe`` without names runs it."""
    needs_root: bool = False
    """Whether it needs ``site.admin`` to be root."""
    shows: frozenset[str] = frozenset()
    """Disturbances, by the names of their rules, that are what it measures: no verdict counts them
    against it."""
