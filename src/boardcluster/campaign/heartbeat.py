"""Find within seconds that a node or daemon was lost while a job runs.

HDFS misses a DataNode after 630 s and YARN a NodeManager after 600 s, by their own defaults. So the
master tries, every few seconds, the ports that the cluster's own traffic uses: a daemon that ended
refuses, a node that is off or cut from the network does not answer. Less often it asks YARN which
nodes get no more work, because a disk is full or broken: a job may wait for such a node for ever.
And it looks at the master's own disk, of which YARN knows nothing. On nodes that are slower than
their boards by a dilation, all its times are so many times longer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from boardcluster.errors import BoardclusterError, UnreachableError
from boardcluster.remote.node_rpc import Reached, Reaching, reach
from boardcluster.services.daemons import daemons_of
from boardcluster.services.disk_space import full_disk
from boardcluster.services.layout import PORTS
from boardcluster.services.operation import LiveCluster
from boardcluster.services.yarn import unhealthy_nodes

__all__ = ["Heartbeat", "away_now", "lost_now"]

_FIRST_LOOK_SECONDS = 2.0
"""Long enough for one more SYN after 1 s, should a busy link have dropped the first."""

_SECOND_LOOK_SECONDS = 2.5
_PAUSE_SECONDS = 1.0
_PATIENCE_BEATS = 3
_HEALTH_BEATS = 5
"""YARN is asked at every fifth beat: it looks at disks only every two minutes itself."""
_AFTER_SILENCE_SECONDS = 11.0
"""Longer than a host is taken to be silent, see remote/ssh_route.py: until then each further beat
would only be told what this one was."""
_JOIN_SECONDS = 15.0
_CANNOT_ASK = (BoardclusterError, OSError, ValueError)
"""What asking a node can raise; ValueError means that its answer was cut."""


@dataclass(frozen=True, slots=True)
class _Target:
    daemon: str
    node: str
    port: int


class _Looks:
    """Looks at every daemon from the master, again and again.

    Args:
        live: the cluster.
        most_mute: so many looks in a row without an answer lose a daemon whose node does answer,
            because a full backlog may come from a busy moment.
        wait: waits so many seconds and tells whether to give up.
    """

    def __init__(
        self, live: LiveCluster, *, most_mute: int, wait: Callable[[float], object]
    ) -> None:
        self._master = live.master
        self._most_mute = most_mute
        self._wait = wait
        self._dilation = live.layout.dilation
        self._targets = [  # with the first port that each daemon binds, where its work arrives
            _Target(daemon=kind.name, node=node.name, port=PORTS[kind.ports[0]])
            for kind, node in daemons_of(live.spec)
        ]
        self._mute: dict[_Target, int] = {}

    def lost(self) -> str:
        """Return what is lost, in words, or nothing; a miss counts if a second look confirms it.

        Raises:
            RemoteError: the master cannot be asked.
        """
        missed = self._look(self._targets, _FIRST_LOOK_SECONDS)
        if missed:
            if self._wait(_PAUSE_SECONDS * self._dilation):
                return ""
            missed = self._look(list(missed), _SECOND_LOOK_SECONDS)
        self._mute = {
            target: self._mute.get(target, 0) + 1
            for target, view in missed.items()
            if view.state is Reached.UNREACHABLE
        }
        return ", ".join([*self._lost_nodes(missed), *self._lost_daemons(missed)])

    def _look(self, targets: Sequence[_Target], timeout_seconds: float) -> dict[_Target, Reaching]:
        """Return the targets that could not be reached."""
        addresses = [(target.node, target.port) for target in targets]
        views = reach(self._master, addresses, timeout_seconds=timeout_seconds * self._dilation)
        return {
            target: view
            for target, view in zip(targets, views, strict=True)
            if view.state is not Reached.OK
        }

    def away(self) -> list[str]:
        """Name the nodes of which nothing answers."""
        answering = {target.node for target in self._targets if target not in self._mute}
        nodes = dict.fromkeys(target.node for target in self._targets)
        return [node for node in nodes if node not in answering]

    def _lost_nodes(self, missed: Mapping[_Target, Reaching]) -> list[str]:
        away = self.away()
        if not away:
            return []
        words = next(view.words for target, view in missed.items() if target.node in away)
        others = {target.node for target in self._targets} - {self._master.name}
        named = f"node{'s' if len(away) > 1 else ''} {', '.join(away)}"
        if len(others) > 1 and others == set(away):
            named = "every other node"
        return [f"{named} unreachable from {self._master.name} ({words})"]

    def _lost_daemons(self, missed: Mapping[_Target, Reaching]) -> list[str]:
        away = self.away()
        losses = []
        for target, view in missed.items():
            name = f"{target.daemon} on {target.node}"
            if view.state is Reached.REFUSED:
                losses.append(f"{name} refuses connections")
            elif target.node not in away and self._mute[target] >= self._most_mute:
                losses.append(f"{name} does not answer")
        return losses


def lost_now(live: LiveCluster, *, wait: Callable[[float], object] = time.sleep) -> str:
    """Look once, and a second time at what is missed; return what is lost in words, or nothing."""
    try:
        return _Looks(live, most_mute=1, wait=wait).lost()
    except _CANNOT_ASK as error:
        return _unreachable(live, error)


def away_now(live: LiveCluster) -> list[str]:
    """Name the nodes that the master does not reach at all; the master if it cannot be asked."""
    looks = _Looks(live, most_mute=1, wait=time.sleep)
    try:
        looks.lost()
    except _CANNOT_ASK:
        return [live.spec.master.name]
    return looks.away()


def _unreachable(live: LiveCluster, error: Exception) -> str:
    words = error.message if isinstance(error, BoardclusterError) else str(error)
    return f"master {live.master.name} unreachable ({' '.join(words.split())[:200]})"


def _unhealthy(live: LiveCluster) -> list[str]:
    """Name nodes that get no more work, and the master if its disk is full."""
    master = live.spec.master
    full = full_disk(live.layout, live.master, master)
    named = [] if not full else [f"{master.name}: {full}"]
    return named + list(unhealthy_nodes(live.layout, live.master))


class Heartbeat:
    """Watches a cluster from its master while the block runs.

    Args:
        live: the cluster.
        on_loss: called once, from the watching thread, with what was lost in words.
        interval_seconds: pause between two beats, in seconds of the boards.
        wait: waits so many seconds and tells whether the block has ended.
        unhealthy: names what YARN gives no more work to, and what its own node cannot tell it:
            a full disk of the master; None asks them.

    Attributes:
        lost: what was lost in words; empty if nothing was.
        is_storage: whether that is a disk and not a node or daemon.
    """

    def __init__(
        self,
        live: LiveCluster,
        *,
        on_loss: Callable[[str], None],
        interval_seconds: float = 4.0,
        wait: Callable[[float], bool] | None = None,
        unhealthy: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self._unhealthy = unhealthy or partial(_unhealthy, live)
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._live = live
        self._on_loss = on_loss
        self._interval_seconds = interval_seconds * live.layout.dilation
        self._looks = _Looks(live, most_mute=_PATIENCE_BEATS, wait=self._wait)
        self._thread = threading.Thread(target=self._watch, name="heartbeat", daemon=True)
        self.lost = ""
        self.is_storage = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_JOIN_SECONDS * self._live.layout.dilation)

    def _watch(self) -> None:
        silent_beats, beats, pause_seconds = 0, 0, self._interval_seconds
        while not self._wait(pause_seconds):
            lost, pause_seconds = "", self._interval_seconds
            beats += 1
            try:
                lost = self._looks.lost()
                if not lost and beats % _HEALTH_BEATS == 0:
                    lost = ", ".join(self._unhealthy())
                    self.is_storage = bool(lost)
                silent_beats = 0
            except _CANNOT_ASK as error:  # one failure may be this machine's busy moment
                silent_beats += 1
                if isinstance(error, UnreachableError):
                    pause_seconds = max(pause_seconds, _AFTER_SILENCE_SECONDS)
                if silent_beats == _PATIENCE_BEATS:
                    lost = _unreachable(self._live, error)
            if self._ended.is_set():
                return
            if lost:
                self.lost = lost
                with contextlib.suppress(BoardclusterError):
                    self._on_loss(lost)
                return
