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

__all__ = ["LiveSite", "Measure", "Probe", "Site", "Tell", "Tool", "figures_from"]

Tell = Callable[[str], None]
"""Told what is being done, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that must be on the node.

    Attributes:
        program: its name on PATH.
        package: Debian's package that brings it.
        version: arguments that make it print its version.
    """

    program: str
    package: str
    version: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSite:
    """A node on which probes may run.

    Attributes:
        node: its name.
        remote: the node, as the user that jobs run as.
        admin: the node as root; the same where there is no other way.
        cores: cores that the node may use.
        memory_bytes: its memory.
        folder: a folder on its data medium, below which each run gets its own.
        address: its address in the cluster.
        hardware: one line on the machine.
        cluster: name of its cluster; empty for a machine that is in none.
        emulated: whether it is a namespace on this machine.
        watts: reads the power meter of this node alone: watts now, or None if it gives no reading;
            None where no meter is declared.
        dilation: by how much it is slower than the board it stands for.
    """

    node: str
    remote: Remote
    admin: Remote
    cores: int
    memory_bytes: int
    folder: str
    address: str
    hardware: str = ""
    cluster: str = ""
    emulated: bool = False
    watts: Callable[[], float | None] | None = None
    dilation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(LiveSite):
    """Where a probe runs: a node whose ``folder`` is empty, the run's own, and deleted afterwards.

    Attributes:
        mode: quick or paper.
        tell: told what is being done.
        peer: the other node of a pair; None for probes of one node.
        settings: the probe's own options, as text.
    """

    mode: ProbeMode
    tell: Tell
    peer: Site | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


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
    """One node benchmark.

    Attributes:
        name: lower-case with hyphens; the name of its file with underscores.
        area: ``cpu``, ``memory``, ``storage``, ``whole`` (a job that needs all of these),
            ``network``, ``heat`` or ``power``.
        summary: one line for the help.
        matches: the papers' tables and figures that it repeats.
        tools: what must be on the node (and on the peer).
        measure: runs it.
        pair: whether it runs between two nodes.
        quick_seconds: about how long quick mode takes on a fast board.
        paper_seconds: about how long paper mode takes there.
        default: whether ``boardcluster probe`` without names runs it.
        needs_root: whether it needs ``site.admin`` to be root.
    """

    name: str
    area: str
    summary: str
    matches: tuple[str, ...]
    tools: tuple[Tool, ...]
    measure: Measure
    pair: bool = False
    quick_seconds: float
    paper_seconds: float
    default: bool = True
    needs_root: bool = False
