"""Gather the facts about this machine and what is recorded about the cluster."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from boardcluster.cluster.processes import leftover_processes
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveState, boot_id, load_state
from boardcluster.doctor.facts import Facts
from boardcluster.doctor.machine import Machine
from boardcluster.errors import ClusterError, HostError, SpecError
from boardcluster.records import ClusterSpec
from boardcluster.services.declaration import read_spec
from boardcluster.services.operation import nodes_of
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["driver_of", "gather_facts"]


def gather_facts(
    home: Path,
    *,
    cache: Path,
    options: str = "",
    cache_option: str = "",
    deep: bool = False,
    machine: Machine | None = None,
) -> Facts:
    """Gather all facts but those of boards, see ``Facts``; changes nothing and takes no lock."""
    spec, spec_error = _read(home / "cluster.toml")
    state, state_error = _state_of(home)
    this_boot = state is not None and state.boot_id == boot_id()
    return Facts(
        machine=machine or Machine(),
        home=home,
        cache=cache,
        options=options,
        cache_option=cache_option,
        deep=deep,
        spec=spec,
        spec_error=spec_error,
        state=state,
        state_error=state_error,
        running=_read(home / "running.toml")[0] if state is not None else None,
        this_boot=this_boot,
        alive=state is not None and this_boot and _all_alive(home, state),
        processes=tuple(leftover_processes(state.identity)) if state and this_boot else (),
        driver=driver_of(home),
    )


def _all_alive(home: Path, state: LiveState) -> bool:
    """Whether every recorded node of this machine lives; boards are asked elsewhere."""
    if not state.capabilities.on_this_machine:
        return False
    return bool(state.nodes) and len(nodes_of(home, state.kind).alive(state)) == len(state.nodes)


def _read(path: Path) -> tuple[ClusterSpec | None, SpecError | None]:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, SpecError(
            f"{path} cannot be read: {error.strerror}",
            hint=f"correct the permissions of {path.parent}",
        )
    try:
        return read_spec(path, meter_kinds=meter_facts()), None
    except SpecError as error:
        return None, error


def _state_of(home: Path) -> tuple[LiveState | None, ClusterError | None]:
    try:
        return load_state(home), None
    except ClusterError as error:
        processes = f"`grep -ls {IDENTITY_VARIABLE}= /proc/[0-9]*/environ`"
        return None, ClusterError(error.message, hint=f"{error.hint}; {processes} lists them")
    except HostError as error:
        return None, ClusterError(error.message, hint=error.hint)


def driver_of(home: Path) -> int | None:
    """Return the process that holds the driver's lock of a home, or None.

    Trying the lock would make a driver that starts at the same moment fail, so the holder that the
    file names is believed if it still has the file open.
    """
    lock = home / "driver.lock"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        holder = json.loads(lock.read_text())
        pid = int(holder["pid"])
        if holder["boot_id"] == boot_id():
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if entry.samefile(lock):
                        return pid
    return None
