"""The configuration of the volume's daemons, and which bricks keep the same files. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "CLIENT_TOOLS",
    "GLUSTER_PORT",
    "SERVER_TOOLS",
    "VOLUME",
    "BrickPlace",
    "client_of",
    "place_bricks",
    "render_daemon",
    "render_member",
    "render_peer",
    "version_number",
]

VOLUME = "boardcluster"
"""Name of the volume."""

GLUSTER_PORT = 24007
"""Where every glusterd listens: clients and peers know no other port."""

_BRICK_PORTS = (24100, 24355)
"""The bricks' ports. Gluster's own range begins at 49152, where the kernel's ports are, too."""

SERVER_TOOLS: Mapping[str, str] = {
    "/usr/sbin/glusterd": "glusterfs-server",
    "/usr/sbin/glusterfsd": "glusterfs-server",
    "/usr/sbin/gluster": "glusterfs-cli",
}
"""What workers need, each program with its Debian package."""

CLIENT_TOOLS: Mapping[str, str] = {"/usr/sbin/glusterfs": "glusterfs-client", "/usr/bin/fio": "fio"}
"""What the master needs."""

_DAEMON = """\
volume management
    type mgmt/glusterd
    option working-directory /var/lib/glusterd
    option transport-type socket
    option transport.socket.listen-port {port}
    option transport.socket.bind-address {address}
    option transport.socket.keepalive-time 10
    option transport.socket.keepalive-interval 2
    option transport.socket.read-fail-log off
    option ping-timeout 0
    option event-threads 1
    option base-port {first}
    option max-port {last}
end-volume
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrickPlace:
    """One brick: a folder of a worker that keeps a copy of every file of its set."""

    worker: str
    """Name of the worker."""
    group: int
    """Number of its set, whose bricks all keep the same files."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"brick-{self.group}"


def place_bricks(workers: Sequence[str], replicas: int) -> tuple[BrickPlace, ...]:
    """Return the bricks, those of a set beside each other, as ``volume create`` wants them.

    Where the workers divide into sets, each has one brick. Otherwise each begins a set and has
    one brick of as many sets as there are replicas, so that all of them are used alike.

    Args:
        workers: names of the workers.
        replicas: copies of every file, at most as many as workers.
    """
    count = len(workers)
    starts = range(0, count, replicas) if count % replicas == 0 else range(count)
    return tuple(
        BrickPlace(worker=workers[(start + step) % count], group=group)
        for group, start in enumerate(starts)
        for step in range(replicas)
    )


def client_of(bricks: Sequence[BrickPlace], worker: str) -> tuple[str, ...]:
    """Return what the client calls its connections to a worker's bricks."""
    return tuple(
        f"{VOLUME}-client-{number}" for number, brick in enumerate(bricks) if brick.worker == worker
    )


def render_daemon(address: str) -> str:
    """Return the configuration of the glusterd that listens at an address, and nowhere else."""
    first, last = _BRICK_PORTS
    return _DAEMON.format(address=address, port=GLUSTER_PORT, first=first, last=last)


def version_number(said: str) -> int:
    """Return the number by which daemons agree on a format, from ``glusterfs --version``.

    Source: GlusterFS, ``GD_OP_VERSION_MAX`` in ``globals.h``: 100000 for all of 10.

    Raises:
        ValueError: it says something else.
    """
    words = said.split()
    if words[:1] != ["glusterfs"] or len(words) < 2:
        raise ValueError(f"no version of GlusterFS: {said[:80]!r}")
    return int(words[1].split(".")[0]) * 10_000


def render_member(identity: str, version: int) -> str:
    """Return the file in which a glusterd keeps who it is."""
    return f"UUID={identity}\noperating-version={version}\n"


def render_peer(identity: str, address: str) -> str:
    """Return the file in which a glusterd keeps another: one that belongs to the pool, state 3.

    ``gluster peer probe`` writes the same, and takes about five seconds for each, one after the
    other.
    """
    return f"uuid={identity}\nstate=3\nhostname1={address}\n"
