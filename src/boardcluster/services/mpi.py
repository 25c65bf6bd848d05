"""Open MPI: how a program is started on several nodes, without SSH between them.

``mpirun`` runs on one of the nodes. For every other node it calls a remote shell, usually ssh, to
start its daemon there (``orted``, in version 5 ``prted``). Here that shell is ``mpi_agent.py``: it
writes the request into a file, and the driver, which reaches every node anyway, starts the daemon.
So no node needs a key for another one, and emulated nodes and boards work alike.

``mpirun_command`` makes the command; ``serving`` must surround its run, or ``serving_in`` on nodes
on which no cluster is laid out.

Source: Open MPI 4.1, mpirun(1) and ``ompi_info --all`` (plm_rsh, btl_tcp, oob_tcp); the same
command works with 5.0, which translates these names.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from boardcluster.errors import BoardclusterError, RemoteError
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import end_marked
from boardcluster.services import mpi_agent
from boardcluster.services.layout import Layout

__all__ = ["MPI_VARIABLE", "delete_left", "mpirun_command", "serving", "serving_in"]

MPI_VARIABLE = "BOARDCLUSTER_MPI"
"""Carried by every process of one ``mpirun``, on every node; its value is unique."""

_AGENT = "mpi_agent.py"
_FOLDER = "mpi-"
_SHARED_FOLDER = "/dev/shm/boardcluster-"  # noqa: S108  the folder is ours
"""Beginnings of a run's two folders on a node, in its temporary files and in its shared memory.

Both end with the same word, so the first one, which is among one cluster's files, names the other.
"""
_DELETE_LEFT = f"""for left in "$0"/{_FOLDER}*; do
    rm -rf -- "{_SHARED_FOLDER}${{left##*/{_FOLDER}}}" "$left"
done"""
_POLL_SECONDS = 0.1
_START_TIMEOUT_SECONDS = 60.0
_GRACE_SECONDS = 3.0
_ASK_SECONDS = 30.0


def mpirun_command(
    subnet: str,
    *,
    hosts: Sequence[str],
    ranks_per_host: int,
    program: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command that runs a program on several nodes. Pure.

    It must be started on the first of the hosts, in a folder of that node, inside ``serving``. Rank
    0 and its neighbours are on the first host and have that folder as working folder; on other
    nodes, where it may not exist, ranks start in it or in a temporary folder.

    Args:
        subnet: network that traffic stays in: an address with prefix length.
        hosts: names of the nodes, in the order of their ranks.
        ranks_per_host: processes on each node.
        program: the program and its arguments; it must be installed on every host.
        environment: variables of the program.
    """
    settings = {
        "plm_rsh_agent": f"python3 -I -S {_AGENT}",
        # Otherwise daemons would ask for further daemons, on nodes where nobody listens.
        "plm_rsh_no_tree_spawn": "1",
        "oob_tcp_if_include": subnet,
        "pml": "ob1",
        "btl": "tcp,self,vader",
        "btl_tcp_if_include": subnet,
        # Reading another process's memory needs a right that containers may lack.
        "btl_vader_single_copy_mechanism": "none",
        # Emulated nodes share cores: a rank that waits must let others run.
        "mpi_yield_when_idle": "1",
    }
    variables = (environment or {}).items()
    return [
        "mpirun",
        "--allow-run-as-root",
        *(word for name, value in settings.items() for word in ("--mca", name, value)),
        *("--bind-to", "none"),
        *("--map-by", "slot:OVERSUBSCRIBE"),
        *("--host", ",".join(f"{host}:{ranks_per_host}" for host in hosts)),
        *("-n", str(len(hosts) * ranks_per_host)),
        *(word for name, value in variables for word in ("-x", f"{name}={value}")),
        *program,
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Host:
    """A node that takes part."""

    remote: Remote
    """The way to it."""
    folders: tuple[str, str]
    """Its folders for Open MPI's own files; made before, deleted afterwards."""
    environment: dict[str, str]
    """Of everything that is started on it."""


def serving(
    layout: Layout,
    remotes: Mapping[str, Remote],
    *,
    hosts: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
) -> AbstractContextManager[dict[str, str]]:
    """Do as ``serving_in`` for nodes of a cluster, which are given by name."""
    nodes = {node.name: node for node in layout.spec.nodes}
    places = {name: (remotes[name], layout.folder(nodes[name], "tmp")) for name in hosts}
    return serving_in(places, folder=folder, environment=environment, dilation=layout.dilation)


@contextlib.contextmanager
def serving_in(
    places: Mapping[str, tuple[Remote, str]],
    *,
    folder: str,
    environment: Mapping[str, str],
    dilation: float = 1.0,
) -> Iterator[dict[str, str]]:
    """Start what one ``mpirun`` asks for while the block runs; leave nothing behind.

    Yields the variables to run ``mpirun`` with: ``environment`` and its own. When the block is
    left, in whatever way, every process that carries them is ended on every host.

    Args:
        places: the hosts of the command in their order, each with the way to it and a folder for
            temporary files.
        folder: existing folder of the first host in which ``mpirun`` is started.
        environment: marks for every process, to find what a killed driver left.
        dilation: by how much longer the hosts may take, as ``Layout.dilation``.

    Raises:
        RemoteError: a daemon could not be started, which also ends ``mpirun``; or a node could not
            be reached to clean it up.
    """
    tag = uuid.uuid4().hex
    taking_part = {
        name: _host(remote, temporary, tag=tag, environment=environment)
        for name, (remote, temporary) in places.items()
    }
    hosts = list(places)
    first = taking_part[hosts[0]]
    spool = f"{folder}/{mpi_agent.REQUESTS}"
    starter = _Starter(hosts=taking_part, spool=spool, tag=tag, dilation=dilation)
    try:
        for host in taking_part.values():
            host.remote.run(["mkdir", "-p", *host.folders])
        first.remote.run(["rm", "-f", starter.spool])
        first.remote.put(Path(mpi_agent.__file__), f"{folder}/{_AGENT}")
        with starter.running():
            yield first.environment
    except BaseException as error:
        # mpirun's own end says little if it ended because a daemon could not be started.
        cause = starter.failure
        _clean(taking_part, tag, dilation=dilation)
        if cause is not None and isinstance(error, BoardclusterError):
            raise cause from error
        raise
    if left := _clean(taking_part, tag, dilation=dilation):
        raise RemoteError(
            f"MPI processes or files may remain: {'; '.join(left)}",
            hint="run `boardcluster status`; `boardcluster down` ends everything",
        )
    if starter.failure is not None:
        raise starter.failure


def delete_left(remote: Remote, temporary: str) -> None:
    """Delete what runs whose driver was killed left on a node, also in its shared memory.

    Call it only while none is running there. What cannot be deleted stays.

    Args:
        remote: the way to the node.
        temporary: the folder for temporary files that ``serving`` was given of it.

    Raises:
        RemoteError: the node cannot be reached.
    """
    remote.run(["sh", "-c", _DELETE_LEFT, temporary], check=False)


def _host(remote: Remote, temporary: str, *, tag: str, environment: Mapping[str, str]) -> _Host:
    """Choose the folders of a node.

    Shared memory gets one of ours, because Open MPI leaves it behind when it is killed. Its name is
    the same on every node, since mpirun hands these variables on to all of them.
    """
    folder = f"{temporary}/{_FOLDER}{tag[:12]}"
    shared = f"{_SHARED_FOLDER}{tag[:12]}"
    own = {
        **environment,
        MPI_VARIABLE: tag,
        "TMPDIR": folder,
        # Where ranks start if the working folder of the first host is not there; the user that
        # daemons run as on boards has no home.
        "HOME": folder,
        "OMPI_MCA_btl_vader_backing_directory": shared,
        "OMPI_MCA_btl_sm_backing_directory": shared,
    }
    return _Host(remote=remote, folders=(folder, shared), environment=own)


def _clean(hosts: Mapping[str, _Host], tag: str, *, dilation: float) -> list[str]:
    """End every process and delete every folder of ours; return what did not work."""
    left = []
    for name, host in hosts.items():
        try:
            _end_marked(host.remote, tag, dilation=dilation)
            host.remote.run(["rm", "-rf", *host.folders])
        except BoardclusterError as error:
            left.append(f"{name}: {error.message}")
    return left


def _end_marked(remote: Remote, tag: str, *, dilation: float) -> None:
    grace_seconds = _GRACE_SECONDS * dilation
    end_marked(
        remote,
        f"{MPI_VARIABLE}={tag}",
        grace_seconds=grace_seconds,
        timeout_seconds=grace_seconds + _ASK_SECONDS * dilation,
    )


@dataclass(slots=True, kw_only=True)
class _Starter:
    """Reads requests on the first host and starts each on its host, until all were asked for.

    Once every daemon has been started it ends, so that it costs nothing while the program runs.
    """

    hosts: Mapping[str, _Host]
    """Nodes that take part, the first one first."""
    spool: str
    """File of requests on the first host."""
    tag: str
    """Mark of this run."""
    dilation: float
    """By how much longer a host may take."""
    failure: BoardclusterError | None = None
    """Why a daemon could not be started; None if all went well."""
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Serve in a thread of our own while the block runs."""
        thread = threading.Thread(target=self._serve, name="mpi-starter", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _serve(self) -> None:
        first = next(iter(self.hosts.values()))
        try:
            done = 0
            while done < len(self.hosts) - 1 and not self._stop.wait(_POLL_SECONDS):
                for host, command in self._requests(first.remote)[done:]:
                    self._start(host, command)
                    done += 1
        except (BoardclusterError, ValueError, KeyError) as error:
            self.failure = (
                error
                if isinstance(error, BoardclusterError)
                else RemoteError(f"mpirun's requests cannot be read: {error!r}")
            )
            # mpirun would wait for its daemon for ever.
            with contextlib.suppress(BoardclusterError):
                _end_marked(first.remote, self.tag, dilation=self.dilation)

    def _requests(self, remote: Remote) -> list[tuple[str, str]]:
        text = remote.run(["cat", self.spool], check=False).text
        whole = text[: text.rfind("\n") + 1]
        rows = [json.loads(line) for line in whole.splitlines()]
        return [(row["host"], row["command"]) for row in rows]

    def _start(self, name: str, command: str) -> None:
        """Do what sshd would: hand the command to a shell and report its status.

        Raises:
            RemoteError: the daemon did not start, or its node does not take part.
        """
        host = self.hosts.get(name)
        if host is None:
            raise RemoteError(
                f"mpirun asked for a daemon on {name!r}, which is not one of "
                f"{', '.join(self.hosts)}",
                hint="name the nodes as cluster.toml does",
            )
        try:
            host.remote.run(
                ["sh", "-c", command],
                env=host.environment,
                timeout_seconds=_START_TIMEOUT_SECONDS * self.dilation,
            )
        except RemoteError as error:
            raise RemoteError(
                f"the daemon of Open MPI did not start on {name}: {error.message}",
                hint="install openmpi-bin on every node, in the same version",
            ) from error
