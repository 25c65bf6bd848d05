"""Time a program on a node by the node's own clock."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from boardcluster.errors import ProbeOutputError, RemoteError
from boardcluster.probes.node import ask_program
from boardcluster.remote.base import Remote

__all__ = ["time_program"]

_WORDS_CHARACTERS = 300


def time_program(
    remote: Remote,
    *stages: Sequence[str],
    folder: str,
    timeout_seconds: float,
    output: str = os.devnull,
) -> float:
    """Run a program, or a pipeline of several, and return the seconds that it took.

    Args:
        remote: the node.
        stages: argument lists.
        folder: folder on the node to run in.
        timeout_seconds: longest duration.
        output: file for what it prints.

    Raises:
        ProbeOutputError: the answer is not one.
        RemoteError: a program failed, or did not end in time.
    """
    names = " | ".join(argv[0] for argv in stages)
    request = {"do": "time", "folder": folder, "stages": [*map(list, stages)], "output": output}
    answer = ask_program(remote, "single_machine", request, timeout_seconds=timeout_seconds)
    try:
        seconds, words = float(answer["seconds"]), str(answer["words"])
        statuses = [int(status) for status in answer["statuses"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeOutputError(
            f"{remote.name}: timing {names} answered {str(answer)[:80]!r}"
        ) from error
    if any(statuses):
        raise RemoteError(
            f"{remote.name}: {names} ended with status {', '.join(map(str, statuses))}: "
            f"{' '.join(words.split())[-_WORDS_CHARACTERS:] or 'it printed nothing'}"
        )
    if len(statuses) != len(stages) or not (math.isfinite(seconds) and seconds > 0):
        raise ProbeOutputError(f"{remote.name}: timing {names} answered {seconds} s, {statuses}")
    return seconds
