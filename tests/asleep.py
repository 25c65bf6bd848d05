"""A process that does nothing, for tests of how processes are found and ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

from boardcluster.remote.node_agent import stat_of
from tests.waiting import wait_until

__all__ = ["asleep"]


@contextlib.contextmanager
def asleep(**variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``sleep`` for as long as the block takes, with these variables in its environment.

    ``Popen`` returns while the kernel still sets the new program up: for a moment its
    environment and its command line are empty, which a busy machine makes long. So this waits
    until the program sleeps.
    """
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **variables}) as process:
        try:
            wait_until(lambda: stat_of(process.pid)[0] == "S", "the process to sleep", seconds=60)
            yield process
        finally:
            process.kill()
