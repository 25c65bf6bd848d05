"""Time a program on a node by the node's own clock."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from boardcluster.errors import ProbeOutputError, RemoteError
from boardcluster.remote.ask import node_program
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import tail_text

__all__ = ["time_program"]


def time_program(
    remote: Remote, argv: Sequence[str], *, folder: str, repeats: int, timeout_seconds: float
) -> tuple[float, ...]:
    """Run a program so many times, one after the other; return the seconds that each run took.

    Args:
        remote: the node.
        argv: program and arguments.
        folder: folder on the node to run in.
        repeats: how often.
        timeout_seconds: for all runs together.

    Raises:
        ProbeOutputError: the answer is not one.
        RemoteError: the program failed, or did not end in time.
    """
    request = {"argv": list(argv), "folder": folder, "repeats": repeats}
    program = node_program("stopwatch", package="boardcluster.probes")
    done = remote.run(
        ["python3", "-I", "-S", "-c", program, json.dumps(request)],
        timeout_seconds=timeout_seconds,
    )
    try:
        answer = json.loads(done.stdout)
        seconds = tuple(float(row) for row in answer["seconds"])
        status, words = int(answer["status"]), str(answer["words"])
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeOutputError(
            f"{remote.name}: timing {argv[0]} answered {done.text[:120]!r}",
            hint=f"make the shell's start-up files on {remote.name} print nothing",
        ) from error
    if status != 0:
        raise RemoteError(
            f"{remote.name}: {argv[0]} ended with status {status}: "
            f"{' '.join(tail_text(words.encode(), lines=3).split())}"
        )
    if len(seconds) != repeats or not all(math.isfinite(row) and row > 0 for row in seconds):
        raise ProbeOutputError(f"{remote.name}: timing {argv[0]} answered {seconds}")
    return seconds
