"""Programs that run on a node beside a measurement: servers of a pair, and load.

Each runs under ``timeout``, so that it ends even if the driver is killed; and it is ended by its id
when the block is left, in whatever way.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

from boardcluster.errors import AddressError, RemoteError
from boardcluster.probes.base import Site
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.node_rpc import end_processes, listening, processes
from boardcluster.waiting import wait_until

__all__ = ["check_running", "free_port", "running", "serving", "stressing"]

_GRACE_SECONDS = 3.0
_LISTEN_SECONDS = 10.0
_POLL_SECONDS = 0.1
_MARGIN_SECONDS = 20.0
"""By how much a load may outlive its measurement: nodes may be slow to answer."""


@contextlib.contextmanager
def running(
    remote: Remote, argv: Sequence[str], *, log: str, longest_seconds: float
) -> Iterator[ProcessRef]:
    """Run a program on a node while the block runs, its output going to a file there.

    Raises:
        RemoteError: it could not be started.
    """
    bounded = ["timeout", str(math.ceil(longest_seconds)), *argv]
    ref = remote.start(bounded, log=log)
    try:
        yield ref
    finally:
        end_processes(remote, [ref], grace_seconds=_GRACE_SECONDS)


def check_running(remote: Remote, ref: ProcessRef, *, program: str, log: str) -> None:
    """Make sure that a program started by ``running`` has not ended by itself.

    Raises:
        RemoteError: it has; the message holds its last words.
    """
    (view,) = processes(remote, [ref])
    if not view.alive:
        raise RemoteError(
            f"{remote.name}: {program} ended too early: {_last_words(remote, log)}",
            hint=f"run the same {program} by hand on {remote.name}",
        )


def _last_words(remote: Remote, log: str) -> str:
    return remote.run(["tail", "-n", "5", log], check=False).text.strip() or "it printed nothing"


def free_port(remote: Remote, first: int, *, count: int = 16) -> int:
    """Return the first port, of ``count`` ones from ``first`` on, that nobody listens on.

    Raises:
        AddressError: all are taken.
    """
    ports = list(range(first, first + count))
    taken = set(listening(remote, ports))
    for port in ports:
        if port not in taken:
            return port
    raise AddressError(
        f"{remote.name}: the ports {ports[0]} to {ports[-1]} are all in use",
        hint=f"end the program that listens there; `ss -ltnp` on {remote.name} shows it",
    )


@contextlib.contextmanager
def serving(
    remote: Remote, argv: Sequence[str], *, port: int, log: str, longest_seconds: float
) -> Iterator[None]:
    """Run a server as ``running`` does; the block begins when it listens.

    It is looked for among the node's sockets, never tried: some serve their first caller only.

    Raises:
        RemoteError: it ended, or does not listen in time; the message holds its last words.
    """
    with running(remote, argv, log=log, longest_seconds=longest_seconds) as ref:
        if not wait_until(
            lambda: listening(remote, [port]),
            failed=lambda: check_running(remote, ref, program=argv[0], log=log),
            timeout_seconds=_LISTEN_SECONDS,
            poll_seconds=_POLL_SECONDS,
        ):
            raise RemoteError(
                f"{remote.name}: {argv[0]} does not listen on port {port} after "
                f"{_LISTEN_SECONDS:g} s; its last output: {_last_words(remote, log)}",
                hint=f"run the same {argv[0]} by hand on {remote.name}",
            )
        yield


@contextlib.contextmanager
def stressing(site: Site, *, seconds: float) -> Iterator[None]:
    """Keep every core of a node at work while the block runs, which takes about ``seconds``.

    The work is that of ``stress --cpu``, which the papers use: square roots of random numbers.

    Raises:
        RemoteError: stress-ng did not start, or ended before the block did.
    """
    longest_seconds = math.ceil(seconds + _MARGIN_SECONDS)
    argv = [
        *("stress-ng", "--cpu", str(site.cores), "--cpu-method", "sqrt"),
        *("--timeout", f"{longest_seconds}s", "--temp-path", site.folder),
    ]
    log = f"{site.folder}/stress-ng.log"
    with running(site.remote, argv, log=log, longest_seconds=longest_seconds + 5) as ref:
        yield
        check_running(site.remote, ref, program="stress-ng", log=log)
