"""What workloads that put a service under load share: phases beside it, and its fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from boardcluster.records import PlannedFault
from boardcluster.remote.node_clock import ahead_seconds
from boardcluster.remote.node_rpc import node_program
from boardcluster.workloads.base import JobSpec, Phase

if TYPE_CHECKING:  # what starts clusters is slow to load
    from boardcluster.services.operation import LiveCluster

__all__ = ["PYTHON", "aside_phase", "fault_beside", "read_faults"]

PYTHON = ("python3", "-I", "-S", "-c")
"""What runs a program on a node, which follows as text."""
_PATIENCE_SECONDS = 2.0
"""A server that is asked for its count and says nothing for so long is away."""


def aside_phase(name: str, program: str, *words: str) -> Phase:
    """Return a phase in which a program of ours on the master looks at the service."""
    command = (*PYTHON, program, *words)
    return Phase(name=name, command=command, yarn=False, aside=True, outside=True)


def fault_beside(
    live: LiveCluster, spec: JobSpec, asked: Mapping[str, object]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what runs beside a phase to take the last worker's server away; nothing without fault.

    Args:
        live: the cluster.
        spec: with the fault.
        asked: the rest of what ``services/http/faulting.py`` takes.
    """
    if spec.fault is PlannedFault.NONE:
        return ()
    whole = {
        **asked,
        "kind": spec.fault.value,
        "device": "eth0",
        "patience_seconds": _PATIENCE_SECONDS * live.layout.dilation,
    }
    program = node_program("faulting", package="boardcluster.services.http")
    return ((live.spec.workers[-1].name, (*PYTHON, program, json.dumps(whole))),)


def read_faults(
    live: LiveCluster, spec: JobSpec, records: Mapping[str, str]
) -> tuple[dict[str, str], float]:
    """Return what faults wrote down, and how far their clock is ahead of the master's.

    Args:
        live: the cluster.
        spec: with the fault.
        records: files of the last worker, by the phase. What is not there is an empty text.
    """
    if spec.fault is PlannedFault.NONE:
        return {}, 0.0
    remote = live.remotes[live.spec.workers[-1].name]
    texts = {name: remote.run(["cat", path], check=False).text for name, path in records.items()}
    return texts, ahead_seconds(remote, live.master)
