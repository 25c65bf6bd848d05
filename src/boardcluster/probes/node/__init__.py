"""Programs of probes that run on nodes: standard library only, sent as text.

Each is one self-contained file that takes a request ``{"do": VERB, ...}`` as JSON, on standard
input or as its first argument, and writes one answer as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from boardcluster.errors import ProbeOutputError
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import node_program

__all__ = ["ask_program", "program_command"]

_PYTHON = ("python3", "-I", "-S", "-c")


def program_command(name: str, request: Mapping[str, Any]) -> list[str]:
    """Return the command that runs a program of this folder without standard input."""
    return [*_PYTHON, node_program(name, package=__name__), json.dumps(request)]


def ask_program(
    remote: Remote, name: str, request: Mapping[str, Any], *, timeout_seconds: float
) -> Any:
    """Run a program of this folder on a node to its end and return its answer.

    Raises:
        ProbeOutputError: the answer is not JSON.
        RemoteError: the program failed or did not end in time.
    """
    done = remote.run(
        [*_PYTHON, node_program(name, package=__name__)],
        stdin=json.dumps(request).encode(),
        timeout_seconds=timeout_seconds,
    )
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise ProbeOutputError(
            f"{remote.name}: the answer of {name}.py is not JSON: {done.text[:200]!r}",
            hint=f"make the shell's start-up files on {remote.name} (.bashrc) print nothing",
        ) from error
