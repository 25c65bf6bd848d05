"""Nodes as machines of their own, reached by SSH.

Connections are shared per process of ours: their control sockets lie in a folder that only we may
enter and that is removed, connections first, when the process ends. The host keys that were shown
and accepted lie in ``<home>/known_hosts`` and no other key is believed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from boardcluster.cluster.discovery import SERVICE_LOGIN
from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node, raise_first
from boardcluster.cluster.owner import CLAIM_FILE, SERVICE_USER, Owner, home_owner, known_owner
from boardcluster.cluster.state import LiveNode, LiveState, boot_id
from boardcluster.errors import (
    BoardclusterError,
    ClusterError,
    HostError,
    LockedError,
    RemoteError,
    UnreachableError,
)
from boardcluster.records import ClusterSpec, NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.gate import run_program
from boardcluster.remote.node_rpc import boot_of, rpc
from boardcluster.remote.ssh import SshRemote
from boardcluster.remote.ssh_route import Patience, SshRoute

__all__ = [
    "DAEMON_UNITS",
    "SERVICE_USER",
    "BoardNodes",
    "board_nodes",
    "board_state",
    "known_hosts_of",
    "stop_units",
]

DAEMON_UNITS = tuple(
    f"boardcluster-{daemon}.service"
    for daemon in (
        *("namenode", "resourcemanager", "datanode", "nodemanager"),
        *("jobhistory", "sparkhistory"),
    )
)
"""The daemons' units of systemd. Not with a wildcard: the firewall's unit begins the same way."""

_GRACE_SECONDS = 5.0
_END_REQUEST = {"do": "end_of_user", "user": SERVICE_USER, "grace_seconds": _GRACE_SECONDS}
_STOP_UNITS = '[ ! -d /run/systemd/system ] || systemctl stop "$@"'
_STOP_SECONDS = 90.0
_TUNNEL_SECONDS = 20 * 24 * 3600.0
"""poll(2) takes no more than 2^31 ms, which is 24 days."""
_WHO_CHARACTERS = 200
_ROOT = "root"
_CONTROL = "bc-"
"""Start of the name of the folder of control sockets; the id of our process follows."""
_ROOTS_JOBS = "/run/boardcluster"
"""In memory, gone after a reboot, and not in a folder that provisioning has yet to make."""


def known_hosts_of(home: Path) -> Path:
    """Return the file of the host keys that were accepted for a cluster."""
    return home / "known_hosts"


def board_state(spec: ClusterSpec, *, identity: str) -> LiveState:
    """Return the state to record before anything is started on boards.

    The nodes are in it from the start: they exist, and what a killed driver left on them must be
    found.
    """
    return LiveState(
        identity=identity,
        boot_id=boot_id(),
        phase="starting",
        own_user=False,
        subnet=spec.network.subnet,
        kind=spec.kind,
        nodes=tuple(
            LiveNode(
                name=node.name,
                address=node.address,
                pid=0,
                start_ticks=0,
                folder=node.folder,
                host=node.host,
            )
            for node in spec.nodes
        ),
    )


class BoardNodes:
    """The boards of the cluster with a state folder."""

    def __init__(self, home: Path) -> None:
        self._known_hosts = known_hosts_of(home)
        self._control: Path | None = None
        self._remotes: dict[tuple[str, str], SshRemote] = {}
        self._routes: dict[str, SshRoute] = {}
        self._home = home
        self._making = threading.Lock()
        self._new_claims: list[NodeSpec] = []
        self._patience = Patience()

    def reach(self, name: str, host: str, *, user: str, folder: str) -> Remote:
        """Return the way to a host, the same object each time."""
        key = (host, user)
        with self._making:  # nodes are reached by many threads at once
            if key not in self._remotes:
                route = self._route(host)
                jobs = _ROOTS_JOBS if user in ("", _ROOT) else f"{folder}/tmp"  # noqa: S108  a folder of ours
                self._remotes[key] = SshRemote(name, route, user=user, jobs=jobs)
            return self._remotes[key]

    def _route(self, host: str) -> SshRoute:
        if self._control is None:
            base = os.environ.get("XDG_RUNTIME_DIR", "")
            # A socket's path is short; the runtime folder may be missing under sudo.
            place = base if len(base) < 24 and os.access(base or "/nowhere", os.W_OK) else None
            _remove_stale(Path(place or tempfile.gettempdir()))
            name = f"{_CONTROL}{os.getpid()}-"
            self._control = Path(tempfile.mkdtemp(prefix=name, dir=place))
            atexit.register(self.close)
        if host not in self._routes:
            self._routes[host] = SshRoute(
                host=host,
                known_hosts=self._known_hosts,
                control=self._control,
                patience=self._patience,
            )
        return self._routes[host]

    @contextlib.contextmanager
    def only_looking(self, connect_seconds: int) -> Iterator[None]:
        """Wait for boards no longer than so, while the block looks at them.

        One that is merely busy may then count as one that does not answer.
        """
        before, self._patience.connect_seconds = self._patience.connect_seconds, connect_seconds
        try:
            yield
        finally:
            self._patience.connect_seconds = before

    def admin(self, node: NodeSpec) -> Remote:
        """Return the way to a declared node as root."""
        return self._root_on(node)

    def hold_tunnel(self, node: NodeSpec, *, ports: Mapping[int, int], socks: int) -> None:
        """Forward ports of this machine, on its loopback address, until interrupted.

        ``ports`` are ports of this machine to those of the node's own address; a SOCKS proxy on the
        node is opened, too, unless its port is 0.

        Raises:
            RemoteError: the connection could not be made, or broke.
        """
        words = ["-N", "-o", "ExitOnForwardFailure=yes"]
        for here, there in ports.items():
            words += ["-L", f"127.0.0.1:{here}:{node.address}:{there}"]
        if socks:
            words += ["-D", f"127.0.0.1:{socks}"]
        # Of options that are given twice, ssh takes the first.
        own = ("-o", "ClearAllForwardings=no", "-o", "ControlPath=none")
        self.reach(node.name, node.host, user="", folder=node.folder).run(["true"])
        program, *rest = self._route(node.host).command(*words)
        run_program([program, *own, *rest], timeout_seconds=_TUNNEL_SECONDS)

    new_state = staticmethod(board_state)

    def close(self) -> None:
        """Close the shared connections and remove their folder."""
        if self._control is None:
            return
        remotes = list({remote.name: remote for remote in self._remotes.values()}.values())
        # Not by threads: none can be started once Python ends.
        for first in range(0, len(remotes), ASKED_AT_ONCE):
            with contextlib.ExitStack() as stack:
                for remote in remotes[first : first + ASKED_AT_ONCE]:
                    with contextlib.suppress(BoardclusterError, OSError):
                        stack.enter_context(remote.closing())
        shutil.rmtree(self._control, ignore_errors=True)
        self._control = None
        self._remotes.clear()
        self._routes.clear()
        atexit.unregister(self.close)

    def check(self, spec: ClusterSpec) -> None:
        """Claim every board for this home, and end what it left running there.

        All are claimed before anything else is changed, or none.

        Raises:
            LockedError: a board is another driver's; names it.
            RemoteError: a board cannot be reached, or refuses us.
        """
        self._claim(spec.nodes, take_over=False)
        self._end_all_on(spec.nodes)

    def take_over(self, boards: Sequence[NodeSpec]) -> None:
        """Claim boards, whosever they are, and end what runs there.

        Raises:
            RemoteError: a board cannot be reached, or refuses us.
        """
        self._claim(boards, take_over=True)
        self._end_all_on(boards)

    def _claim(self, boards: Sequence[NodeSpec], *, take_over: bool) -> None:
        rows = {node.name: node for node in boards}
        how = {"take_over": take_over, "service_user": SERVICE_USER}
        request = {"do": "claim", **self._claiming(make=True), **how}
        self._new_claims = []
        found, errors = each_node(rows, lambda name: self._claim_one(rows[name], request))
        try:
            raise_first(errors)
            self._refuse({name: row["now"] for name, row in found.items()})
        except BoardclusterError:
            self.release_unused()  # of two who begin at once neither may keep a part
            raise

    def _claim_one(self, node: NodeSpec, request: dict[str, Any]) -> dict[str, Any]:
        """Claim one board; one that nobody claimed must be idle."""
        admin = self.admin(node)
        answer: dict[str, Any] = rpc(admin, request)
        _refuse_login(node, answer)
        if "error" in answer:
            raise HostError(
                f"{node.name}: {request['path']} cannot be written: {answer['error']}",
                hint="free space there, or replace the card; `boardcluster doctor` looks closer",
            )
        if answer["before"] is not None:
            return answer
        self._new_claims.append(node)  # at once: Ctrl-C may come while others are asked
        if not request["take_over"] and rpc(admin, {"do": "of_user", "user": SERVICE_USER}):
            self._refuse({node.name: {}})
        return answer

    def _end_all_on(self, boards: Sequence[NodeSpec]) -> None:
        """End what this home, or whoever had the boards before, left running there."""
        rows = {node.name: node for node in boards}
        _, errors = each_node(rows, lambda name: self.end_on(rows[name]))
        raise_first(errors)

    def owners(self, boards: Sequence[NodeSpec | LiveNode]) -> dict[str, Owner]:
        """Return who else claimed boards, by name; nothing of boards that do not answer."""
        return self._others(self._asked_owners(boards)[0])

    def _asked_owners(
        self, boards: Sequence[NodeSpec | LiveNode]
    ) -> tuple[dict[str, dict[str, Any] | None], dict[str, BoardclusterError]]:
        """Ask boards whose they are; return what they said, and why others did not."""
        rows = {node.name: node for node in boards}
        asked = {"do": "owner", "path": CLAIM_FILE}
        return each_node(rows, lambda name: rpc(self._root_on(rows[name]), asked))

    def require_own(self, boards: Sequence[NodeSpec | LiveNode]) -> None:
        """Refuse to touch what another driver claimed, or may have.

        A board that cannot be reached is left as it is by whatever comes next.

        Raises:
            LockedError: names whose they are.
            RemoteError: a board that is there does not say whose it is; it may be busy.
        """
        found, errors = self._asked_owners(boards)
        if others := self._others(found):
            raise _locked(others, self._home)
        raise_first(
            {
                name: error
                for name, error in errors.items()
                if not isinstance(error, UnreachableError)
            }
        )

    def use_claims(self) -> None:
        """Keep what was claimed from now on: something is about to be changed there."""
        self._new_claims = []

    def release_unused(self) -> None:
        """Give up boards that were claimed and on which nothing was changed since."""
        if self._new_claims:
            self.release(self._new_claims)
        self._new_claims = []

    def release(self, boards: Sequence[NodeSpec]) -> None:
        """Give up boards that are this home's, as far as they answer."""
        rows = {node.name: node for node in boards}
        request = {"do": "release", **self._claiming(make=False)}
        each_node(rows, lambda name: rpc(self.admin(rows[name]), request))

    def _claiming(self, *, make: bool) -> dict[str, Any]:
        mine = home_owner(self._home) if make else known_owner(self._home)
        return {"path": CLAIM_FILE, "owner": asdict(mine or Owner(id="-", who="", since_utc=""))}

    def _refuse(self, found: Mapping[str, dict[str, Any] | None]) -> None:
        if others := self._others(found):
            raise _locked(others, self._home)

    def _others(self, found: Mapping[str, dict[str, Any] | None]) -> dict[str, Owner]:
        mine = known_owner(self._home)
        return {
            name: Owner(
                id=str(row.get("id", "")),
                who=str(row.get("who", "unknown"))[:_WHO_CHARACTERS],
                since_utc=str(row.get("since_utc", ""))[:_WHO_CHARACTERS],
            )
            for name, row in found.items()
            if row is not None and (mine is None or row.get("id") != mine.id)
        }

    def _root_on(self, node: NodeSpec | LiveNode) -> Remote:
        return self.reach(node.name, node.host, user=_ROOT, folder=node.folder)

    def end_on(self, node: NodeSpec | LiveNode) -> int:
        """End everything of the service user on a board; return how many processes ended.

        Also where none runs now: systemd may be about to start one again.

        Raises:
            ClusterError: something does not end.
            HostError: the login user is the service user.
            RemoteError: the board cannot be reached.
        """
        admin = self._root_on(node)
        stop_units(admin)
        answer = rpc(admin, _END_REQUEST, timeout_seconds=90)
        _refuse_login(node, answer)
        if answer["left"]:
            raise ClusterError(
                f"{node.name}: {answer['left']} processes of {SERVICE_USER} do not end",
                hint=f"on {node.name}: sudo pkill -KILL -u {SERVICE_USER}",
            )
        return int(answer["ended"])

    def create(self, spec: ClusterSpec, state: LiveState, needed: Sequence[Path] = ()) -> LiveState:
        """Return the state with the boards' boots."""
        del needed
        boots, errors = each_node(
            [node.name for node in spec.nodes],
            lambda name: boot_of(self.admin(_named(spec, name))),
        )
        raise_first(errors)
        nodes = tuple(replace(node, boot_id=boots[node.name]) for node in state.nodes)
        return replace(state, nodes=nodes)

    def remote_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to a board as the service user."""
        del state
        return self.reach(node.name, node.host, user=SERVICE_USER, folder=node.folder)

    def admin_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to a board as root."""
        del state
        return self._root_on(node)

    def alive(self, state: LiveState) -> list[LiveNode]:
        """Return the boards that answer, in the boot in which their daemons were started."""
        rows = {node.name: node for node in state.nodes}
        boots, _ = each_node(rows, lambda name: boot_of(self.admin_of(rows[name], state)))
        return [rows[name] for name, boot in boots.items() if boot == rows[name].boot_id]

    def has_leftovers(self, state: LiveState) -> bool:
        """Whether the service user runs anything; a board that does not answer may run anything.

        Raises:
            UnreachableError: a board does not answer.
        """
        rows = {node.name: node for node in state.nodes}
        request = {"do": "of_user", "user": SERVICE_USER}
        found, errors = each_node(
            rows, lambda name: bool(rpc(self.admin_of(rows[name], state), request))
        )
        raise_first(errors)
        return any(found.values())

    def destroy(self, state: LiveState) -> int:
        """End everything of the service user on every board: all of it is ours.

        Raises:
            ClusterError: a board does not answer, so that what runs there may go on running.
        """
        rows = {node.name: node for node in state.nodes}

        ended, errors = each_node(rows, lambda name: self.end_on(rows[name]))
        if errors:
            raise _not_ended(errors, self._home) from next(iter(errors.values()))
        return sum(ended.values())

    def limiter(self, spec: ClusterSpec, state: LiveState) -> None:
        """Return None: boards are limited by what they are."""
        del spec, state

    def page_hint(self, state: LiveState) -> str:
        """Name the command that opens the pages."""
        del state
        return "These pages open through `boardcluster tunnel`."


def _refuse_login(node: NodeSpec | LiveNode, answer: Mapping[str, Any]) -> None:
    """Refuse a board that answers that we log in as the service user.

    Raises:
        HostError: with what to do.
    """
    if answer.get("login") == SERVICE_USER:
        raise HostError(f"{node.name}: {SERVICE_LOGIN.reason}", hint=SERVICE_LOGIN.fix)


def stop_units(admin: Remote) -> None:
    """Let systemd, where it runs, stop the daemons: what is only killed it starts again."""
    # It fails if a unit is not there, after it has stopped the others.
    with contextlib.suppress(RemoteError):
        admin.run(["sh", "-c", _STOP_UNITS, "sh", *DAEMON_UNITS], timeout_seconds=_STOP_SECONDS)


@functools.cache
def board_nodes(home: Path) -> BoardNodes:
    """Return the boards of a cluster; they keep their connections for the life of this process."""
    return BoardNodes(home)


def _locked(others: Mapping[str, Owner], home: Path) -> LockedError:
    """Say whose boards are, and how they can become another's."""
    whose: dict[str, list[str]] = {}
    for name, owner in others.items():
        whose.setdefault(owner.words, []).append(name)
    said = "; ".join(f"{', '.join(names)}: {words}" for words, names in whose.items())
    without = "".join(f" --without {name}" for name in others)
    return LockedError(
        f"these boards belong to the cluster of another driver: {said}",
        hint="`boardcluster down --wipe` or `uninstall` there releases them; if that driver is "
        f"gone for good, `boardcluster up --home {home} --take-over` ends what runs on them and "
        f"makes them yours; `boardcluster down --home {home}{without}` only forgets them here",
    )


def _not_ended(errors: Mapping[str, BoardclusterError], home: Path) -> ClusterError:
    """Say on which boards something may still run, and what helps each of them."""
    told = {
        name: error.hint
        for name, error in errors.items()
        if error.hint and not isinstance(error, UnreachableError)
    }
    silent = [name for name in errors if name not in told]
    mends = [*dict.fromkeys(told.values())]
    if silent:
        mends.append(f"turn {', '.join(silent)} on, or repair the network")
    without = "".join(f" --without {name}" for name in errors)
    return ClusterError(
        f"not everything could be ended on {', '.join(errors)}\n"
        + "\n".join(error.message for error in errors.values()),
        hint=f"{'; '.join(mends)}; then run the command again, or continue without: "
        f"`boardcluster down --home {home}{without}`",
    )


def _remove_stale(folder: Path) -> None:
    """Remove what drivers left that were killed: their connections have ended by themselves."""
    for path in folder.glob(f"{_CONTROL}*-*"):
        pid = path.name.removeprefix(_CONTROL).partition("-")[0]
        with contextlib.suppress(OSError):
            mine = path.is_dir() and path.lstat().st_uid == os.geteuid()
            gone = pid.isdecimal() and not Path(f"/proc/{pid}").exists()
            # Somebody's own folder may be called so, in /tmp.
            if mine and gone and all(entry.is_socket() for entry in path.iterdir()):
                shutil.rmtree(path, ignore_errors=True)


def _named(spec: ClusterSpec, name: str) -> NodeSpec:
    return next(node for node in spec.nodes if node.name == name)
