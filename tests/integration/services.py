"""What tests of services share: a cluster's nodes, who listens on them, and its latest result."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import listening
from tests.integration.conftest import Cli
from tests.waiting import wait_until

__all__ = ["held_port", "kill_while_it_serves", "latest", "reaching", "serving", "state_of"]


def state_of(program: Cli) -> LiveState:
    """Return what is known of the live cluster."""
    state = load_state(program.home)
    assert state is not None
    return state


def reaching(program: Cli, name: str) -> Remote:
    """Return the way to a node."""
    state = state_of(program)
    return emulated.remote_of(next(row for row in state.nodes if row.name == name), state)


def serving(program: Cli, ports: list[int]) -> dict[str, list[int]]:
    """Return the ports of a service that somebody listens on, by node."""
    names = [node.name for node in state_of(program).nodes]
    found = {name: listening(reaching(program, name), ports) for name in names}
    return {name: own for name, own in found.items() if own}


def latest(program: Cli) -> dict[str, Any]:
    """Return the latest result, whatever became of it."""
    row: dict[str, Any] = program.json("results", "--all")["results"][-1]
    return row


def figures_of_fault(program: Cli, file: str, *phases: str) -> dict[str, float]:
    """Run a campaign whose fault must pass; a server was away for a second in each phase."""
    program("run", file)
    row = latest(program)
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    figures: dict[str, float] = row["measurement"]["figures"]
    for phase in phases:
        assert figures[f"{phase}_server_away_seconds"] >= 1
    return figures


def kill_while_it_serves(program: Cli, file: str) -> None:
    """Have the driver of a campaign killed when a phase of its service has ended."""
    place = "boardcluster.campaign.execution:Execution._gather"
    command = [
        *(sys.executable, "-m", "tests.integration.killer"),
        *(place, "before", "3", "--", "run", file),
    ]
    done = subprocess.run(command, env=program.env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@contextmanager
def held_port(node: Remote, port: int) -> Iterator[None]:
    """Have another program of a node listen on a port."""
    text = f"import socket, time; s = socket.create_server(('0.0.0.0', {port})); time.sleep(600)"
    process = node.start(["python3", "-c", text], log="/dev/null")
    try:
        wait_until(lambda: listening(node, [port]), seconds=90, what="the port")
        yield
    finally:
        node.run(["kill", str(process.pid)])
