"""Keep the driver awake while it measures."""

from __future__ import annotations

import contextlib
import shutil
from contextlib import AbstractContextManager

from boardcluster.remote.gate import beside

__all__ = ["kept_awake"]

_INHIBIT = "systemd-inhibit"


def kept_awake() -> AbstractContextManager[None]:
    """Ask systemd not to suspend this machine during the block; nothing where it cannot.

    The lock ends with the program that holds it, and that with its standard input: also when the
    driver is killed. A sleep that nothing prevented is found by ``telemetry.clock_watch``.
    """
    if shutil.which(_INHIBIT) is None:
        return contextlib.nullcontext()
    options = ("--what=sleep:idle", "--who=boardcluster", "--why=measuring", "--mode=block")
    return beside([_INHIBIT, *options, "cat"])
