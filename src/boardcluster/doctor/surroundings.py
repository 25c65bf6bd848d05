"""Everything the checks look at, gathered once."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from boardcluster.capabilities import every_kind
from boardcluster.cluster.processes import leftover_processes
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveState, boot_id, load_state
from boardcluster.doctor.machine import LocalMachine, Machine
from boardcluster.errors import ClusterError, HostError, SpecError
from boardcluster.records import ClusterSpec, NetworkSpec
from boardcluster.services.operation import nodes_of, read_spec
from boardcluster.services.pair import EnginePair, load_pair, pair_ids
from boardcluster.spec import DEFAULT_LINK_BITS_PER_SECOND, DEFAULT_SUBNET
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["Surroundings", "driver_of", "look_around"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """This machine, and the cluster of one home.

    Attributes:
        machine: the machine.
        home: the cluster's state folder; need not exist.
        cache: folder of fetched engines; need not exist.
        options: command-line options that name this cluster again, with a space before each.
        cache_option: the option that names the cache again, with a space before it.
        deep: whether checks may take long, e.g. to hash every byte.
        spec: the cluster as ``cluster.toml`` declares it; None if there is none or it is wrong.
        spec_error: what is wrong with ``cluster.toml``.
        state: what is recorded as alive; None if nothing is or the record is damaged.
        state_error: why the record cannot be read.
        running: the cluster as it was started, perhaps in another form; None if nothing is
            recorded as alive.
        this_boot: whether the record is from this boot of the machine.
        alive: whether every recorded node lives.
        processes: ids of all processes that carry the cluster's identity.
        driver: id of the boardcluster that is busy with this cluster right now, if any.
    """

    machine: Machine
    home: Path
    cache: Path
    options: str = ""
    cache_option: str = ""
    deep: bool = False
    spec: ClusterSpec | None = None
    spec_error: SpecError | None = None
    state: LiveState | None = None
    state_error: ClusterError | None = None
    running: ClusterSpec | None = None
    this_boot: bool = False
    alive: bool = False
    processes: tuple[int, ...] = ()
    driver: int | None = None

    @property
    def pair(self) -> EnginePair:
        """The engine pair of the specification, or the newest."""
        return load_pair(self.spec.engines if self.spec else pair_ids()[0])

    @property
    def declared(self) -> ClusterSpec:
        """The specification, or an empty one with the defaults that ``init`` would write."""
        if self.spec is not None:
            return self.spec
        network = NetworkSpec(
            subnet=DEFAULT_SUBNET, link_bits_per_second=DEFAULT_LINK_BITS_PER_SECOND
        )
        return ClusterSpec(
            name="default",
            kind=next(iter(every_kind())),
            engines=pair_ids()[0],
            profile="default",
            network=network,
            nodes=(),
        )

    def command(self, name: str, *, fetches: bool = False) -> str:
        """Return the command line of a boardcluster command for this cluster.

        Args:
            name: the command.
            fetches: whether it uses the cache.
        """
        return f"boardcluster {name}{self.options}{self.cache_option if fetches else ''}"


def look_around(
    home: Path,
    *,
    cache: Path,
    options: str = "",
    cache_option: str = "",
    deep: bool = False,
    machine: Machine | None = None,
) -> Surroundings:
    """Gather what the checks look at; changes nothing and takes no lock."""
    spec, spec_error = _read(home / "cluster.toml")
    state, state_error = _state_of(home)
    this_boot = state is not None and state.boot_id == boot_id()
    processes = tuple(leftover_processes(state.identity)) if state and this_boot else ()
    return Surroundings(
        machine=machine or LocalMachine(),
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
        processes=processes,
        driver=driver_of(home),
    )


def _all_alive(home: Path, state: LiveState) -> bool:
    """Whether every recorded node of this machine lives; boards are looked at elsewhere."""
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
            hint=f"mend the permissions of {path.parent}",
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
