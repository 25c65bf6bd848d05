"""How daemons are started and stopped on a node: by systemd, or as plain processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from boardcluster.errors import DaemonError, RemoteError
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.node_rpc import end_processes, processes
from boardcluster.services.provision.units import unit_name

__all__ = ["DaemonCommand", "PlainProcesses", "ServiceManager", "Systemd"]

_SYSTEMCTL_SECONDS = 90.0
_START_TICKS = 19
"""Place of the start time in ``/proc/PID/stat`` after the program's name, from 0 (proc(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonCommand:
    """A daemon to be started."""

    name: str
    """Its name, as in ``DAEMONS``."""
    argv: Sequence[str]
    """The command that runs it in the foreground."""
    env: Mapping[str, str]
    """Its environment."""
    cwd: str
    """The folder it runs in."""
    log: str
    """The file of the node to which its output is appended."""


class ServiceManager(Protocol):
    """What keeps the daemons of one node."""

    def start(self, daemon: DaemonCommand) -> ProcessRef:
        """Start a daemon; return its process.

        Raises:
            DaemonError, RemoteError: it could not be started.
        """

    def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
        """Return the process of each daemon that is alive, by name.

        It differs from the known one where the manager has started a daemon again.
        """

    def stop(self, known: Mapping[str, ProcessRef], *, grace_seconds: float) -> int:
        """End daemons, by name and process; return how many had to be killed."""


class PlainProcesses:
    """Daemons as processes of the user they run as, for nodes without systemd."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def start(self, daemon: DaemonCommand) -> ProcessRef:
        """Start the daemon, detached, its output appended to its log."""
        return self._remote.start(daemon.argv, log=daemon.log, env=daemon.env, cwd=daemon.cwd)

    def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
        """Return the processes that live; nobody starts one again."""
        views = processes(self._remote, list(known.values()))
        rows = zip(known.items(), views, strict=True)
        return {name: process for (name, process), view in rows if view.alive}

    def stop(self, known: Mapping[str, ProcessRef], *, grace_seconds: float) -> int:
        """End the processes, and kill what is left after the grace period."""
        return end_processes(self._remote, list(known.values()), grace_seconds=grace_seconds)


class Systemd:
    """Daemons as systemd units, which ``render_units`` describes; needs the node as root."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def start(self, daemon: DaemonCommand) -> ProcessRef:
        """Start the unit, which has command, environment, folder and log."""
        unit = unit_name(daemon.name)
        # What failed too often before would not be started at all.
        self._remote.run(["systemctl", "reset-failed", unit], check=False)
        try:
            self._remote.run(["systemctl", "start", unit], timeout_seconds=_SYSTEMCTL_SECONDS)
        except RemoteError as error:
            raise DaemonError(
                f"{daemon.name} on {self._remote.name} could not be started: {error.message}",
                hint=f"run `sudo systemctl status {unit}` on {self._remote.name}; see {daemon.log}",
            ) from error
        process = self._processes([daemon.name]).get(daemon.name)
        if process is None:
            raise DaemonError(
                f"{daemon.name} on {self._remote.name} ended immediately", hint=f"see {daemon.log}"
            )
        return process

    def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
        """Return the main process of each unit that runs."""
        return self._processes(known)

    def stop(self, known: Mapping[str, ProcessRef], *, grace_seconds: float) -> int:
        """Stop the units; how long each may take is in the unit."""
        if not known:
            return 0
        units = [unit_name(name) for name in known]
        self._remote.run(
            ["systemctl", "stop", *units], timeout_seconds=grace_seconds + _SYSTEMCTL_SECONDS
        )
        return sum(row["Result"] == "timeout" for row in self._show(known, "Result").values())

    def _show(self, names: Iterable[str], field: str) -> dict[str, dict[str, str]]:
        """Return a property of each daemon's unit."""
        rows = list(names)
        units = [unit_name(name) for name in rows]
        text = self._remote.run(["systemctl", "show", "-p", field, *units]).text
        blocks = [block.strip() for block in text.strip().split("\n\n")]
        return {
            name: dict(line.split("=", 1) for line in block.splitlines())
            for name, block in zip(rows, blocks, strict=True)
        }

    def _processes(self, names: Collection[str]) -> dict[str, ProcessRef]:
        shown = self._show(names, "MainPID") if names else {}
        pids = {name: int(row["MainPID"]) for name, row in shown.items()}
        paths = [f"/proc/{pid}/stat" for pid in pids.values() if pid]
        text = self._remote.run(["cat", *paths], check=False).text if paths else ""
        ticks = {}
        for line in text.splitlines():
            fields = line.rsplit(")", 1)[1].split()
            ticks[int(line.split()[0])] = int(fields[_START_TICKS])
        return {name: ProcessRef(pid, ticks[pid]) for name, pid in pids.items() if pid in ticks}
