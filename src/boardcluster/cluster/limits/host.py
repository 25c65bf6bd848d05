"""How fast this machine is: what the nodes' CPU quotas are worked out from.

Measured as nodes will be: by the program that gave the boards' figures, under a quota that leaves
idle headroom, with more threads than cores. A thread that is held back loses what it had in its
caches, and cores that share units slow each other down, so a free core would promise too much. What
counts is the CPU time that was spent, so that other programs on this machine do not matter much.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from boardcluster.cluster.cores import available_cores
from boardcluster.cluster.limits.cgroups import find_cgroups, joining
from boardcluster.cluster.limits.disks import can_hold_unwritten, held_bytes
from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import HostError, RemoteError
from boardcluster.remote.gate import run_program
from boardcluster.twin.plan import IDLE_HEADROOM, Host

__all__ = ["check_sysbench", "events_of", "look_at_host", "with_own_disks"]

_PRIME_LIMIT = 2000  # as in the papers
_SECONDS = 3
_EVENTS = re.compile(r"total number of events:\s*([0-9]+)")
_GROUP = "speed"


def events_of(output: str) -> int:
    """Return how many events ``sysbench cpu`` counted, from its output.

    Raises:
        HostError: it says none.
    """
    found = _EVENTS.search(output)
    if found is None or int(found.group(1)) == 0:
        raise HostError(
            f"sysbench reported no events: {output[-200:].strip()!r}",
            hint="run it by hand: sysbench cpu --cpu-max-prime=2000 run",
        )
    return int(found.group(1))


def check_sysbench() -> None:
    """Check that the program is there which measures this machine's speed.

    Raises:
        HostError: it is missing.
    """
    if shutil.which("sysbench") is None:
        raise HostError(
            "the program sysbench is missing: without it this machine's speed cannot be measured",
            hint="install it: sudo apt install sysbench",
        )


def look_at_host(home: Path, identity: str, *, memory_available_bytes: int) -> Host:
    """Measure this machine, in a control group of its own that is gone afterwards.

    The file system of ``home``, the state folder, will hold the nodes' disks.

    Raises:
        HostError: sysbench is missing or fails, or there are no control groups.
    """
    check_sysbench()
    cores = available_cores()
    share = 1 - IDLE_HEADROOM
    groups = find_cgroups(identity)
    groups.sweep(_GROUP)
    groups.create(_GROUP)
    command = [
        *joining(groups.join_files(_GROUP)),
        *("sysbench", "cpu", f"--cpu-max-prime={_PRIME_LIMIT}", f"--threads={2 * cores}"),
        *(f"--time={_SECONDS}", "run"),
    ]
    try:
        groups.set_cpu(_GROUP, cores * share)
        before = groups.cpu_seconds(_GROUP)
        # By the variable `down` finds it, should this driver be killed meanwhile.
        events = events_of(run_program(command, env={IDENTITY_VARIABLE: identity}).text)
        spent = groups.cpu_seconds(_GROUP) - before
    except RemoteError as error:
        raise HostError(
            f"sysbench failed: {error.message}", hint="run it by hand: sysbench cpu run"
        ) from error
    finally:
        groups.remove()
    return Host(
        cores=cores,
        events_per_second_per_core=events / spent,
        memory_available_bytes=memory_available_bytes,
        disk_free_bytes=shutil.disk_usage(home).free,
        limits_unwritten=can_hold_unwritten(),
    )


def with_own_disks(host: Host, nodes: Path, names: Iterable[str]) -> Host:
    """Return this machine as nodes find it: what their disks hold already is theirs, too.

    The folders of the nodes are in ``nodes``.
    """
    return replace(host, disk_free_bytes=host.disk_free_bytes + held_bytes(nodes, names))
