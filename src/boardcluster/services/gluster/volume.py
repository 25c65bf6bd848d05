"""Have a replicated volume on a cluster: its daemons, its bricks, and the master's mount of it.

GlusterFS has fixed places for what it keeps, says and listens on: /var/lib/glusterd, /run and
/var/log/glusterfs. So each daemon, and the client, runs in a mount namespace of its own in which
these are folders of the cluster. What a daemon starts is in there with it and carries its marks.
The mount is seen in the client's namespace alone, and so is gone with the client, however it ends.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.cluster.each_node import each_node, raise_first
from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DaemonError,
    HostError,
)
from boardcluster.records import NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import Completed
from boardcluster.remote.node_rpc import end_marked, listening, start_detached
from boardcluster.services.beside import (
    check_ports,
    end_service,
    ending,
    look_at,
    missing_programs,
    on_each,
    write_files,
)
from boardcluster.services.gluster.config import (
    CLIENT_TOOLS,
    GLUSTER_PORT,
    SERVER_TOOLS,
    VOLUME,
    BrickPlace,
    client_of,
    place_bricks,
    render_daemon,
    render_member,
    render_peer,
    version_number,
)
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.cluster import address_of
from boardcluster.units import format_bytes
from boardcluster.waiting import wait_until

__all__ = [
    "PING_SECONDS_MOST",
    "SERVER_VARIABLE",
    "VOLUME_VARIABLE",
    "VolumeRequest",
    "bricks_of",
    "daemon_command",
    "gluster_folder",
    "in_client",
    "in_daemon",
    "mount_folder",
    "printed_log",
    "serving",
]

VOLUME_VARIABLE = "BOARDCLUSTER_GLUSTER"
"""Carried by every process of a cluster's volume, on every node: the cluster's identity."""

SERVER_VARIABLE = "BOARDCLUSTER_GLUSTER_SERVER"
"""Carried by the daemons and bricks among them, with the same value."""

PING_SECONDS_MOST = 1013
"""The largest ``network.ping-timeout`` that GlusterFS takes."""

_START_SECONDS = 30.0
_COMMAND_SECONDS = 60.0
_DELETE_SECONDS = 900.0
"""For gigabytes of files, at the speed of a slow disk."""
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_ASK_SECONDS = 30.0
_SPARE_BYTES = 64 << 20
"""Of each brick, for what GlusterFS and the file system keep beside the files."""
_SPARE_FACTOR = 1.25
"""Sets of bricks do not get equal shares: a file's place follows from its name."""

_ENTER = """\
for place in lib=/var/lib/glusterd run=/run log=/var/log/glusterfs; do
    mount --bind "$0/${place%%=*}" "${place#*=}" || exit 1
done
for place in /usr/lib/*/glusterfs/gsyncd /usr/libexec/glusterfs/gsyncd; do
    test ! -e "$place" -o ! -e "$0/gsyncd" || mount --bind "$0/gsyncd" "$place" || exit 1
done
echo $$ > "$0/pid"
exec "$@"
"""
"""Shows a daemon the cluster's folders where it looks for its own, and becomes it."""

_NO_COPIES_ELSEWHERE = "#!/bin/sh\necho gsyncd\n"
"""In the place of gsyncd: glusterd has it set up copies at other sites, of which there are none, a
dozen times at each start, and answers nobody for the seconds that takes."""

_INSIDE = 'exec nsenter --mount --wd="$PWD" --target "$(cat "$0")" -- "$@"'
_LOOK = """\
for needed in "$@"; do
    case $needed in
        /dev/fuse) test -c /dev/fuse && { true <> /dev/fuse; } 2> /dev/null || echo "no fuse" ;;
        *) test -x "$needed" || echo "lacks $needed" ;;
    esac
done
test "$(id -u)" = 0 && awk '{ n += $3 } END { exit n <= 65536 }' /proc/self/uid_map \\
    && unshare --mount true 2> /dev/null || echo "no root"
exit 0
"""
"""Says what a node lacks: a program, the way to mount, or a root that is the machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRequest:
    """What a volume is to be."""

    replicas: int
    """Copies of every file."""
    size_bytes: int
    """Bytes of all files that will be written, each counted once."""
    ping_seconds: float
    """So long a brick may be silent until it counts as lost (``network.ping-timeout``)."""


def gluster_folder(layout: Layout, node: NodeSpec, *parts: str) -> str:
    """Return a path in GlusterFS's folder on a node, on the medium of its data."""
    return layout.on_medium(node, "gluster", *parts)


def mount_folder(layout: Layout) -> str:
    """Return where the volume is mounted, as the master's client alone sees it."""
    return gluster_folder(layout, layout.spec.master, "client", "mount")


def in_client(layout: Layout, *argv: str) -> tuple[str, ...]:
    """Return a command of the master so that it sees the mount; its working folder stays."""
    return ("sh", "-c", _INSIDE, gluster_folder(layout, layout.spec.master, "client", "pid"), *argv)


def in_daemon(layout: Layout, node: NodeSpec, *argv: str) -> tuple[str, ...]:
    """Return a command of a worker so that it sees the folders and sockets of its glusterd."""
    return ("sh", "-c", _INSIDE, gluster_folder(layout, node, "server", "pid"), *argv)


def printed_log(layout: Layout, node: NodeSpec, part: str) -> str:
    """Return the file of what the daemon (``server``) or the ``client`` of a node prints."""
    return gluster_folder(layout, node, part, "log", "printed.log")


def _marked(identity: str, mark: Mapping[str, str]) -> tuple[str, ...]:
    marks = {**mark, IDENTITY_VARIABLE: identity, VOLUME_VARIABLE: identity}
    return ("env", *(f"{name}={value}" for name, value in marks.items()))


def daemon_command(
    live: LiveCluster, node: NodeSpec, *, mark: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command of a worker's glusterd, with the marks of a volume."""
    folder, identity = gluster_folder(live.layout, node, "server"), live.state.identity
    return (
        *(*_marked(identity, mark), f"{SERVER_VARIABLE}={identity}"),
        *("unshare", "--mount", "sh", "-c", _ENTER, folder),
        *("/usr/sbin/glusterd", "--no-daemon", f"--volfile={folder}/glusterd.vol"),
        *("--pid-file=/run/glusterd.pid", "--log-file=/var/log/glusterfs/glusterd.log"),
    )


def bricks_of(layout: Layout, replicas: int) -> tuple[BrickPlace, ...]:
    """Return the bricks of a volume."""
    return place_bricks([worker.name for worker in layout.spec.workers], replicas)


@contextlib.contextmanager
def serving(
    live: LiveCluster,
    request: VolumeRequest,
    *,
    mark: Mapping[str, str],
    remark: Callable[[str], None],
) -> Iterator[None]:
    """Have the volume served and mounted while the block runs; leave nothing of it but its logs.

    Args:
        live: the cluster.
        request: what it is to be.
        mark: variables of every process, by which a killed driver's are found.
        remark: told where its files could not be deleted, which the next volume does.

    Raises:
        HostError: no root, no FUSE, or a package is missing; says which, and what helps.
        AddressError: a port is taken.
        CapacityError: a worker's disk is too small.
        DaemonError: it did not come up; with what was said.
    """
    _look(live)
    volume = _Volume(live, request, mark)
    volume.end_processes()  # what a killed driver left
    check_ports(
        live.as_root,
        {node.name: [GLUSTER_PORT] for node in live.spec.workers},
        what="GlusterFS",
        whose=", perhaps the system's own: `sudo systemctl disable --now glusterd`",
    )
    volume.clear()
    _check_space(live, request)
    with ending(lambda: volume.end(remark), "daemons of the volume"):
        volume.start()
        yield


def _look(live: LiveCluster) -> None:
    """Refuse nodes that lack a program, FUSE, or root."""
    if live.spec.capabilities.over_ssh:
        raise HostError(
            "GlusterFS runs on nodes of this machine only: it needs root, and `down` ends on "
            "boards what runs as the user of daemons and jobs, who is not root",
            hint="use emulated nodes: `boardcluster init --kind emulated`",
        )
    wanted = {
        node.name: [
            *(SERVER_TOOLS if node in live.spec.workers else ()),
            *((*CLIENT_TOOLS, "/dev/fuse") if node == live.spec.master else ()),
        ]
        for node in live.spec.nodes
    }
    said = look_at(live.as_root, _LOOK, wanted)
    if powerless := [name for name, rows in said.items() if "no root" in rows]:
        raise HostError(
            f"GlusterFS cannot start: it needs root, and on {', '.join(powerless)} programs run "
            "without it. glusterd says so itself, and its bricks keep their records in attributes "
            "of files (trusted.*) that the kernel lets only the machine's root write",
            hint="use emulated nodes, and run boardcluster with sudo",
        )
    words, packages = missing_programs(said, {**SERVER_TOOLS, **CLIENT_TOOLS})
    if words:
        raise HostError(
            f"GlusterFS cannot start: {words}",
            hint=f"run `sudo apt-get install -y --no-install-recommends {' '.join(packages)}` "
            "there; the system's own service glusterd, which that does not start, is not needed",
        )
    if blind := [name for name, rows in said.items() if "no fuse" in rows]:
        raise HostError(
            f"the volume cannot be mounted: {', '.join(blind)} has no /dev/fuse that may be opened",
            hint="run `sudo modprobe fuse` there; a container needs `--device /dev/fuse`",
        )


def _check_space(live: LiveCluster, request: VolumeRequest) -> None:
    """Refuse a disk that its share of the files would fill.

    Raises:
        CapacityError: with the arithmetic.
    """
    share = request.size_bytes * request.replicas / len(live.spec.workers)
    need_bytes = round(share * _SPARE_FACTOR) + _SPARE_BYTES

    def one(node: NodeSpec) -> None:
        folder = gluster_folder(live.layout, node)
        done = live.as_root[node.name].run(["df", "-B1", "--output=avail", folder])
        free_bytes = int(done.text.split()[-1])
        if free_bytes < need_bytes:
            raise CapacityError(
                f"the disk of {node.name} is too small: its share of the files with their replicas "
                f"is {format_bytes(round(share))}, and with what is kept beside them and unequal "
                f"shares {format_bytes(need_bytes)}; {format_bytes(free_bytes)} are free",
                hint=f"free space below {folder}, or take a smaller size",
            )

    on_each(live.spec.workers, one)


class _Volume:
    """One volume, from its first daemon to its last."""

    def __init__(self, live: LiveCluster, request: VolumeRequest, mark: Mapping[str, str]) -> None:
        self._live = live
        self._layout = live.layout
        self._workers = list(live.spec.workers)
        self._request = request
        self._master = live.as_root[live.spec.master.name]
        self._tag = live.state.identity
        self._mark = mark
        self._delete_seconds = _DELETE_SECONDS * live.layout.dilation

    def _address(self, node: NodeSpec) -> str:
        return str(address_of(self._live.spec, node.name))

    def clear(self) -> None:
        """Delete what an earlier volume left, and make the folders of this one."""

        def one(node: NodeSpec) -> None:
            remote = self._live.as_root[node.name]
            folder = gluster_folder(self._layout, node)
            remote.run(["rm", "-rf", folder], timeout_seconds=self._delete_seconds)
            # The folder above is root's, so no job exchanges it; with a job's own in its place,
            # this fails.
            remote.run(["mkdir", "-m", "700", folder])
            parts = [
                *(["server"] if node in self._workers else []),
                *(["client"] if node == self._live.spec.master else []),
            ]
            places = [f"{folder}/{part}/{each}" for part in parts for each in ("lib", "run", "log")]
            remote.run(["mkdir", "-p", *places, f"{folder}/client/mount"])

        on_each(self._live.spec.nodes, one)

    def start(self) -> None:
        """Start the daemons, make the volume of them, and mount it."""
        self._write_pool()
        on_each(self._workers, self._start_daemon)
        self._await_pool()
        self._make()
        self._mount()

    def _write_pool(self) -> None:
        """Write for every worker what its glusterd is to listen on, and whom it is to know."""
        said, errors = each_node(
            {node.name: node for node in self._workers},
            lambda name: self._live.as_root[name].run(["/usr/sbin/glusterfs", "--version"]).text,
        )
        raise_first(errors)
        version = min(version_number(text) for text in said.values())
        identities = {node.name: str(uuid.uuid4()) for node in self._workers}

        def one(node: NodeSpec) -> None:
            folder = gluster_folder(self._layout, node, "server")
            texts = {
                "glusterd.vol": render_daemon(self._address(node)),
                "lib/glusterd.info": render_member(identities[node.name], version),
                "gsyncd": _NO_COPIES_ELSEWHERE,
            }
            for other in self._workers:
                identity = identities[other.name]
                if other != node:
                    texts[f"lib/peers/{identity}"] = render_peer(identity, self._address(other))
            remote = self._live.as_root[node.name]
            _write(remote, folder, texts)
            remote.run(["chmod", "755", f"{folder}/gsyncd"])

        on_each(self._workers, one)

    def _start_daemon(self, node: NodeSpec) -> None:
        argv = daemon_command(self._live, node, mark=self._mark)
        log = printed_log(self._layout, node, "server")
        start_detached(self._live.as_root[node.name], argv, log=log)

    def _gluster(self, *words: str) -> Completed:
        """Have the first worker's glusterd do something; it may refuse."""
        seconds = round(_COMMAND_SECONDS * self._layout.dilation)
        first = self._workers[0]
        argv = ("/usr/sbin/gluster", "--mode=script", f"--timeout={seconds}", *words)
        return self._live.as_root[first.name].run(
            in_daemon(self._layout, first, *argv), check=False, timeout_seconds=seconds + 10
        )

    def _ask(self, *words: str) -> None:
        """As ``_gluster``, but a refusal is an error."""
        done = self._gluster(*words)
        if done.returncode != 0:
            said = (done.text + done.stderr.decode(errors="replace")).strip()
            raise DaemonError(
                f"GlusterFS refused `gluster {' '.join(words[:2])}`: {said[-500:]}",
                hint=f"see {gluster_folder(self._layout, self._workers[0], 'server', 'log')}",
            )

    def _await_pool(self) -> None:
        """Wait until the first glusterd answers and has every other in its pool.

        Raises:
            DaemonError: one does not come up in time; with the last state seen.
        """
        waits_seconds = _START_SECONDS * self._layout.dilation
        self._await_listeners(waits_seconds)
        last = wait_until(
            lambda: self._gluster("pool", "list").text,
            ready=lambda text: _connected(text) == len(self._workers),
            timeout_seconds=waits_seconds,
            poll_seconds=_POLL_SECONDS,
        )
        if _connected(last) != len(self._workers):
            raise DaemonError(
                f"the glusterds have not found each other after {waits_seconds:g} s:\n{last}",
                hint="see the folders gluster/server/log of the workers",
            )

    def _await_listeners(self, waits_seconds: float) -> None:
        def silent() -> list[NodeSpec]:
            return [
                node
                for node in self._workers
                if not listening(self._live.as_root[node.name], [GLUSTER_PORT])
            ]

        late = wait_until(
            silent,
            ready=lambda rows: not rows,
            timeout_seconds=waits_seconds,
            poll_seconds=_POLL_SECONDS,
        )
        for node in late:
            own = gluster_folder(self._layout, node, "server", "log", "glusterd.log")
            log = printed_log(self._layout, node, "server")
            done = self._live.as_root[node.name].run(
                ["tail", "-q", "-n", "4", log, own], check=False
            )
            raise DaemonError(
                f"the glusterd on {node.name} does not listen after {waits_seconds:g} s:\n"
                f"{done.text.strip()}",
                hint=f"see {own}",
            )

    def _make(self) -> None:
        """Make the volume, and let nobody but the members at it."""
        nodes = {node.name: node for node in self._workers}
        bricks = [
            f"{self._address(nodes[brick.worker])}:"
            f"{gluster_folder(self._layout, nodes[brick.worker], brick.name)}"
            for brick in bricks_of(self._layout, self._request.replicas)
        ]
        copies = str(self._request.replicas)
        # `force`: bricks may be on the disk that holds the system, as on most boards.
        self._ask("volume", "create", VOLUME, "replica", copies, *bricks, "force")
        members = ",".join(self._address(node) for node in self._live.spec.nodes)
        seconds = round(self._request.ping_seconds * self._layout.dilation)
        ping = str(min(PING_SECONDS_MOST, seconds))
        options = ("auth.allow", members, "network.ping-timeout", ping)
        self._ask("volume", "set", VOLUME, *options)
        self._ask("volume", "start", VOLUME)

    def _mount(self) -> None:
        """Mount the volume, and wait until the client has a connection to every brick."""
        master, layout = self._live.spec.master, self._layout
        folder = gluster_folder(layout, master, "client")
        servers = [f"--volfile-server={self._address(node)}" for node in self._workers]
        argv = (
            *(*_marked(self._tag, self._mark), "unshare", "--mount", "sh", "-c", _ENTER, folder),
            *("/usr/sbin/glusterfs", "--no-daemon", *servers, f"--volfile-id={VOLUME}"),
            *("--log-file=/var/log/glusterfs/client.log", mount_folder(layout)),
        )
        start_detached(self._master, argv, log=printed_log(layout, master, "client"))
        bricks = bricks_of(layout, self._request.replicas)
        names = [name for node in self._workers for name in client_of(bricks, node.name)]
        waits_seconds = _START_SECONDS * layout.dilation
        states = [f"{mount_folder(layout)}/.meta/graphs/active/{name}/private" for name in names]

        def connected() -> int:
            done = self._master.run(in_client(layout, "cat", *states), check=False)
            return len(re.findall(r"^connected = 1$", done.text, re.MULTILINE))

        last = wait_until(
            connected,
            ready=lambda count: count == len(names),
            timeout_seconds=waits_seconds,
            poll_seconds=_POLL_SECONDS,
        )
        if last != len(names):
            log = f"{folder}/log/client.log"
            said = self._master.run(["tail", "-n", "4", log], check=False).text.strip()
            raise DaemonError(
                f"the volume is not mounted after {waits_seconds:g} s: the client reaches {last} "
                f"of {len(names)} bricks\n{said}",
                hint=f"see {log}",
            )

    def end_processes(self) -> None:
        """End every process of a volume of this cluster, also of an earlier driver."""
        grace_seconds = _GRACE_SECONDS * self._layout.dilation

        def one(node: NodeSpec) -> None:
            end_marked(
                self._live.as_root[node.name],
                f"{VOLUME_VARIABLE}={self._tag}",
                grace_seconds=grace_seconds,
                timeout_seconds=grace_seconds + _ASK_SECONDS * self._layout.dilation,
            )

        on_each(self._live.spec.nodes, one)

    def end(self, remark: Callable[[str], None]) -> list[str]:
        """End every process and delete the bricks; return what may still run."""

        def delete(node: NodeSpec) -> None:
            folder = gluster_folder(self._layout, node)
            command = ["sh", "-c", 'rm -rf "$0"/brick-*', folder]
            try:
                self._live.as_root[node.name].run(command, timeout_seconds=self._delete_seconds)
            except BoardclusterError as error:
                remark(f"files of the volume are left in {folder}: {error.message}")

        return end_service(
            self._live.as_root,
            self._live.spec.nodes,
            f"{VOLUME_VARIABLE}={self._tag}",
            ports={node.name: [GLUSTER_PORT] for node in self._workers},
            grace_seconds=_GRACE_SECONDS,
            dilation=self._layout.dilation,
            then=delete,
        )


def _connected(pool: str) -> int:
    """Return how many members of a pool are connected, itself included."""
    return len(re.findall(r"\bConnected\s*$", pool, re.MULTILINE))


def _write(remote: Remote, folder: str, texts: Mapping[str, str]) -> None:
    folders: Iterable[str] = {str(Path(folder, name).parent) for name in texts}
    remote.run(["mkdir", "-p", *sorted(folders)])
    write_files(remote, folder, texts)
