"""What a campaign does when a node, a daemon or a disk of its cluster is lost."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from boardcluster.campaign.heartbeat import away_now, lost_now
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.cluster.discovery import SKEW_MOST_SECONDS
from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.state import load_state
from boardcluster.errors import (
    BoardclusterError,
    ClusterError,
    HostKeyError,
    LockedError,
    LoginError,
    RemoteError,
    UnreachableError,
)
from boardcluster.fetch.cache import Progress
from boardcluster.records import ClusterSpec, OnLoss, Policy, Trial
from boardcluster.remote.base import Remote
from boardcluster.remote.node_clock import compare_clocks
from boardcluster.services import lifecycle, operation
from boardcluster.services.boards import current_daemons
from boardcluster.services.disk_space import sick_disks
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.variant import apply_variant
from boardcluster.units import format_seconds
from boardcluster.waiting import wait_until

__all__ = ["TRIES_MOST", "Recovery", "RestartableCluster", "absent_nodes", "cause_of"]

TRIES_MOST = 6
"""So often a trial is tried; by then something is wrong that waiting does not mend."""

_SAME_CAUSES = 3
"""What ends so many attempts at one trial, one after the other, ends the next one, too."""

_POLL_SECONDS = 2.0
_ANSWER_SECONDS = 15.0
_DAEMONS_SECONDS = 60.0
"""What a service manager starts again is there by then: it waits 5 s, and a daemon of a slow board
registers within half a minute."""


class RestartableCluster(Protocol):
    """The cluster of a campaign, as far as a recovery needs it."""

    @property
    def live(self) -> LiveCluster | None:
        """The cluster as it is up, or None."""

    def look_again(self) -> None:
        """Have the next trial look whether it is whole, and restart one that is not."""

    def end_without(self, names: tuple[str, ...]) -> None:
        """End it, but for nodes that do not answer."""


class Recovery:
    """Brings the cluster of a campaign back after a loss, as far as its policy says.

    What was lost is found by others: the heartbeat during a run, the judgement of an attempt after
    it, a look at the master's disk before it. The attempt is invalid then, whatever comes next.

    1. Wait until every node answers again and every disk can be written: no restart mends those.
       A node of this machine that is gone is made anew by a restart, and not waited for.
    2. Wait a short while for daemons that a service manager starts again.
    3. Have the next attempt look: what is not whole by then is restarted, with its HDFS.

    Args:
        home: the cluster's state folder.
        declared: the cluster as cluster.toml says.
        policy: what to do, and how long to wait.
        cluster: the running one.
        goes_on_without: whether the campaign continues, and may do so without workers that an
            earlier command lost.
        progress: told what is waited for.
        clock: tells the time in seconds.
        sleep: pauses for so many seconds.

    Attributes:
        left_out: the workers without which the campaign goes on, each with why.
        skipped: the trials that were not run because they need one of them.
    """

    def __init__(
        self,
        home: Path,
        declared: ClusterSpec,
        policy: Policy,
        cluster: RestartableCluster,
        *,
        goes_on_without: bool = False,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._home = home
        self._declared = declared
        self._policy = policy
        self._cluster = cluster
        self._goes_on_without = goes_on_without
        self._progress = progress
        self._clock = clock
        self._sleep = sleep
        self._causes: list[str] = []
        self.left_out: dict[str, str] = {}
        self.skipped: list[Trial] = []

    @property
    def is_up(self) -> bool:
        """Whether the cluster came up, so that what does not do so now was lost."""
        return self._cluster.live is not None

    def is_of_before(self, error: BoardclusterError) -> bool:
        """Whether what keeps the cluster from coming up may have been lost by an earlier command.

        A person who has just begun is told of it at once; a campaign that continues goes on as far
        as it can.
        """
        return self._goes_on_without and isinstance(error, UnreachableError)

    def skips(self, trial: Trial) -> bool:
        """Whether a trial must wait because its cell needs a worker that was left out.

        Never is it run on fewer or other workers than its cell says.
        """
        if not self.left_out:
            return False
        variant = apply_variant(self._declared, variant_of(trial))
        needed = [node.name for node in variant.nodes if node.name in self.left_out]
        if needed:
            self.skipped.append(trial)
            self._progress(f"a run is skipped, because it needs {', '.join(needed)}", 0, 0)
            return True
        self._end_strays()
        return False

    def after(self, trial: Trial, lost: str, *, tries: int) -> str:
        """Bring the cluster back after a loss, so that a trial can be tried again.

        Args:
            trial: the trial.
            lost: what was lost, in words.
            tries: how many attempts at the trial were lost.

        Returns:
            Why the campaign must stop: it is the policy, something stays away, or it was lost too
            often. Empty if it goes on.
        """
        if self._policy.on_loss is OnLoss.STOP:
            return lost
        if too_often := self._too_often(lost, tries):
            return f"{lost}; {too_often}"
        self._progress(f"lost: {lost}", 0, 0)
        if absent := self._await_nodes(trial):
            return self._go_on_without(absent, lost)
        seconds = _DAEMONS_SECONDS
        if self._policy.on_loss is OnLoss.WAIT:
            seconds = self._policy.loss_wait_seconds
        live = self._cluster.live  # one that did not come up is started by the next attempt
        broken = "" if live is None else self._await_daemons(live, seconds)
        if broken and self._policy.on_loss is OnLoss.WAIT:
            return f"{lost}; still not whole: {broken}"
        self._cluster.look_again()
        return ""

    def _too_often(self, lost: str, tries: int) -> str:
        """Say that a trial is not worth another try; empty if it is."""
        self._causes = [*(self._causes if tries > 1 else ()), cause_of(lost)]
        latest = self._causes[-_SAME_CAUSES:]
        if len(latest) == _SAME_CAUSES and len(set(latest)) == 1:
            return f"this ended {_SAME_CAUSES} attempts in a row"
        return f"{tries} attempts at one run were lost" if tries >= TRIES_MOST else ""

    def _await_nodes(self, trial: Trial) -> Mapping[str, str]:
        """Wait until no node and no disk is away; return those that still are."""

        def look() -> dict[str, str]:
            live = self._cluster.live
            if live is None:
                return _silent_boards(self._home, apply_variant(self._declared, variant_of(trial)))
            return absent_nodes(live)

        def ready(absent: Mapping[str, str]) -> bool:
            if absent:
                self._progress(f"waiting for {_named(absent)}", 0, 0)
            return not absent

        return wait_until(
            look,
            ready=ready,
            timeout_seconds=self._policy.loss_wait_seconds,
            poll_seconds=_POLL_SECONDS,
            clock=self._clock,
            sleep=self._sleep,
        )

    def _await_daemons(self, live: LiveCluster, seconds: float) -> str:
        """Wait for daemons that somebody starts again; return what is not whole, in words."""
        managed = any(facts.service_manager == "systemd" for facts in live.facts.values())
        return wait_until(
            lambda: _not_whole(live),
            ready=lambda words: not words,
            timeout_seconds=seconds * live.layout.dilation if managed else 0.0,
            poll_seconds=_POLL_SECONDS,
            clock=self._clock,
            sleep=self._sleep,
        )

    def _go_on_without(self, absent: Mapping[str, str], lost: str) -> str:
        """Go on without workers, if that is asked for; else say what did not come back.

        What still answers of them is ended with the others.
        """
        workers = {worker.name for worker in self._declared.workers} - {self._declared.master.name}
        if self._policy.on_loss is not OnLoss.WITHOUT or not absent.keys() <= workers:
            seconds = self._policy.loss_wait_seconds
            return f"{lost}; after {seconds:g} s still not back: {_named(absent)}"
        self.left_out |= absent
        words = f"continuing without {', '.join(absent)}: runs that need it stay pending"
        self._progress(words, 0, 0)
        for without in ((), tuple(self.left_out)):
            try:
                self._cluster.end_without(without)
            except LockedError:
                raise
            except (ClusterError, RemoteError) as error:
                failure = _first_line(error)
            else:
                return ""
        return f"{lost}; the other nodes could not be ended: {failure}"

    def _end_strays(self) -> None:
        """End what runs on workers that were left out and have come back: it would join in."""
        if not self._declared.capabilities.provisioned:
            return
        nodes = operation.nodes_of(self._home, self._declared.kind)
        for worker in self._declared.workers:
            if worker.name in self.left_out:
                # It is still away, or somebody else has it now.
                with contextlib.suppress(BoardclusterError):
                    nodes.check(replace(self._declared, nodes=(worker,)))


def cause_of(words: str) -> str:
    """Return why something has no result, without what differs each time."""
    return re.sub(r"[0-9a-f]*\d[0-9a-f_:.-]*", "#", words.lower())


def absent_nodes(live: LiveCluster) -> dict[str, str]:
    """Say which nodes are away or cannot work with their disk, and why; by name.

    Left out are nodes of this machine that are gone for good: a restart makes them anew.
    """
    nodes = operation.nodes_of(live.home, live.spec.kind)
    here = [node.name for node in live.state.nodes]
    if live.spec.capabilities.on_this_machine:
        here = [node.name for node in nodes.alive(live.state)]
    patience = _ANSWER_SECONDS * live.layout.dilation
    # As root: a board that was replaced has no user of ours yet, but a start makes it ready.
    _, silent = each_node(
        here, lambda name: live.as_root[name].run(["true"], timeout_seconds=patience)
    )
    absent = {name: _absence(error) for name, error in silent.items()}
    if live.spec.master.name in here and live.spec.master.name not in absent:
        away = [name for name in away_now(live) if name in here and name not in absent]
        absent |= dict.fromkeys(away, f"not reached from {live.spec.master.name}")
    sick = sick_disks(live.layout, live.remotes, live.as_root)
    absent |= {name: words for name, words in sick.items() if name in here and name not in absent}
    return absent


def _silent_boards(home: Path, spec: ClusterSpec) -> dict[str, str]:
    """Say which boards of a cluster that is not up are away; other nodes are made by a start.

    Those that were up in another variant count, too: what runs there must end before a start. A
    board whose clock is not set yet, as after a power cut without a network, is away: a start
    would refuse it. Disks are looked at when they start.
    """
    if not spec.capabilities.provisioned:
        return {}
    nodes = operation.nodes_of(home, spec.kind)
    state = nodes.new_state(spec, identity="")
    rows = {node.name: node for node in state.nodes}
    left = load_state(home)
    if left is not None and left.kind == spec.kind:
        rows = {node.name: node for node in left.nodes} | rows
    _, silent = each_node(rows, lambda name: _require_board(nodes.admin_of(rows[name], state)))
    return {name: _absence(error) for name, error in silent.items()}


def _absence(error: BoardclusterError) -> str:
    """Say why a node is away; what only a person can mend with how, since it is waited for."""
    words = _first_line(error)
    mendable = isinstance(error, HostKeyError | LoginError) and error.hint
    return f"{words}; {error.hint}" if mendable else words


def _require_board(board: Remote) -> None:
    board.run(["true"], timeout_seconds=_ANSWER_SECONDS)
    clock = compare_clocks(board)
    if abs(clock.wall_offset_seconds) - clock.error_seconds > SKEW_MOST_SECONDS:
        apart = format_seconds(abs(clock.wall_offset_seconds))
        raise RemoteError(f"its clock is {apart} away from this machine's")


def _not_whole(live: LiveCluster) -> str:
    """Say what is not whole of a cluster whose nodes are all there; empty if all is."""
    if live.spec.capabilities.provisioned:
        daemons = current_daemons(live.home, live.state)
        live = replace(live, state=replace(live.state, daemons=daemons))
    try:
        if lost := operation.dead_daemons(live):
            return ", ".join(lost)
        if words := lost_now(live):
            return words
        seen = lifecycle.health(live.layout, live.master)
    except BoardclusterError as error:
        return _first_line(error)
    workers = len(live.spec.workers)
    if seen.is_good(workers):
        return ""
    safe = ", HDFS in safe mode" if seen.safe_mode else ""
    return (
        f"{seen.live_datanodes} DataNodes and {seen.live_nodemanagers} NodeManagers of {workers} "
        f"live{safe}"
    )


def _named(absent: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({why})" for name, why in absent.items())


def _first_line(error: BoardclusterError) -> str:
    return " ".join(error.message.split())[:200]
