"""Run probes on the nodes of a cluster, or on this machine, and store every figure."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boardcluster.analysis.trust import expect, judge
from boardcluster.campaign.awake import kept_awake
from boardcluster.campaign.fingerprint import hardware_line
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.upkeep import recover
from boardcluster.cluster.discovery import discover
from boardcluster.cluster.folders import require_cluster
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import ClusterNotUpError, EmptySelectionError, UsageError
from boardcluster.probes.base import Probe
from boardcluster.probes.registry import choose_probes
from boardcluster.probes.run import Judge, LiveSite, ProbePlan, plan_probes, run_probes
from boardcluster.probes.tagged_remote import PROBE_VARIABLE, PROBING_VARIABLE
from boardcluster.records import HOST, NodeFacts, ProbeMode, ProbeRun, Verdict
from boardcluster.remote.local import LocalRemote
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.telemetry.collector import Target, node_targets, recording_of
from boardcluster.telemetry.metering import open_meter, rise
from boardcluster.telemetry.meters.base import Meter, Reading
from boardcluster.units import format_bytes, format_seconds

__all__ = ["ProbeOutcome", "ProbeRequest", "ProbedMachine", "probe_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """What is asked for."""

    names: tuple[str, ...]
    """The probes; the usual set without any."""
    nodes: tuple[str, ...]
    """Only on these; on all without any."""
    mode: ProbeMode
    """Durations and repetitions."""
    here: bool
    """Whether this machine itself is probed, which needs no cluster."""
    at_once: bool
    """Whether all boards run at once, where that disturbs nobody."""
    skip_missing: bool
    """Whether probes whose tools are missing are left out."""
    one_node: bool
    """Whether it is wrong to probe more than one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedMachine:
    """What a catalog's entry says of a node beside its figures."""

    name: str
    """The board's name, or the node's."""
    cores: int
    """Its cores."""
    clock_hertz: float | None
    """Highest clock; None where nobody knows."""
    memory_bytes: int
    """Its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """What was measured."""

    runs: tuple[ProbeRun, ...]
    """Every run of a probe."""
    machine: ProbedMachine
    """The first node that was probed."""


def probe_nodes(
    home: Path, request: ProbeRequest, *, cache: Path, follow: Follower, options: str = ""
) -> ProbeOutcome:
    """Run probes as the only driver of the cluster, one node after the other.

    Raises:
        ClusterNotUpError: the cluster is not up.
        EmptySelectionError: there is no probe left to run.
        RemoteError: what an earlier driver submitted does not end.
        UsageError: a node or probe does not exist, or they do not go together.
    """
    if not request.here:
        try:
            require_cluster(home, options=options)
        except ClusterNotUpError as error:
            raise _or_here(error) from error
    facts: dict[str, NodeFacts] = {}
    live: LiveCluster | None = None
    with (
        driver_lock(home, doing="probe"),
        Store.open(home) as store,
        contextlib.ExitStack() as open_meters,
        kept_awake(),
    ):
        if request.here:
            sites = [_here(home, facts)]
            # Gigabytes, perhaps, of a driver that was killed; who holds the lock is alone here.
            shutil.rmtree(sites[0].folder, ignore_errors=True)
        else:
            live = _attached(home, cache, follow)
            recover(store, follow, live)
            sites = _live_sites(live, request, facts=facts, open_meters=open_meters)
        plan = plan_probes(sites, choose_probes(request.names), named=bool(request.names))
        if not plan.jobs:
            raise EmptySelectionError("there is no probe left to run", hint="name other probes")
        if request.one_node and len(sites) != 1:
            raise UsageError(
                f"--save-board writes one node, and {len(sites)} are to be probed",
                hint=f"name one with --node: {', '.join(site.node for site in sites)}",
            )
        _announce(plan, request, follow)
        runs = run_probes(
            plan,
            mode=request.mode,
            keep=store.add_probe_run,
            tell=follow.line,
            settings={"cache": str(cache)},
            at_once=request.at_once,
            skip_missing=request.skip_missing,
            watch=_ProbeWatch(home, live, facts),
        )
    return ProbeOutcome(runs=tuple(runs), machine=_machine(sites[0], facts.get(sites[0].node)))


def _attached(home: Path, cache: Path, follow: Follower) -> LiveCluster:
    try:
        return operation.attach(home, cache=cache, progress=follow.progress)
    except ClusterNotUpError as error:
        raise _or_here(error) from error


@dataclass(frozen=True, slots=True)
class _ProbeWatch:
    """Watches the nodes of a run of a probe as those of a job are watched, and judges it so."""

    home: Path
    live: LiveCluster | None
    facts: Mapping[str, NodeFacts]

    @contextlib.contextmanager
    def __call__(self, probe: Probe, sites: Sequence[LiveSite], identity: str) -> Iterator[Judge]:
        targets = _targets(self.home, self.live, sites, identity)
        limiter = self.live.limiter if self.live is not None else None
        mark = {PROBE_VARIABLE: identity}
        if self.live is not None:  # by which agents of a killed driver are found and ended
            mark[PROBING_VARIABLE] = self.live.state.identity
        with recording_of(targets, self.home, mark) as recorded:
            recorded.settle()

            def judged(started_seconds: float, ended_seconds: float) -> Mapping[str, Any]:
                recorded.end()
                telemetry = recorded.telemetry(
                    started_seconds=started_seconds,
                    duration_seconds=ended_seconds - started_seconds,
                    phases={},
                )
                limits = limiter.limits if limiter is not None else ()
                found = judge(
                    telemetry,
                    expectations=expect(targets, self.facts, limits=limits),
                    without=probe.shows,
                )
                faults = recorded.clocks.faults()
                return {
                    "verdict": Verdict.INVALID if faults else found.verdict,
                    "verdict_reasons": (*faults, *found.reasons),
                    "disturbances": found.disturbances,
                    "tolerated_share": found.tolerated_share,
                }

            yield judged


def _targets(
    home: Path, live: LiveCluster | None, sites: Sequence[LiveSite], identity: str
) -> dict[str, Target]:
    """Return the nodes of a run, and the machine below them, as telemetry watches them.

    On a machine of its own what carries the run's mark is the probe's; all else is foreign.
    """
    mark = {"mark": f"{PROBE_VARIABLE}={identity}"}
    if live is None:
        here = {"groups": {}, "trees": [os.getpid()], "lives_with": os.getpid(), **mark}
        return {
            site.node: Target(
                remote=site.remote,
                request={"scope": "machine", **here},
                folder=str(home.resolve()),
                cores=site.cores,
            )
            for site in sites
        }
    every = node_targets(live, home)
    chosen = [site.node for site in sites] + [HOST] * (HOST in every)
    return {
        name: every[name]
        if live.spec.capabilities.emulated
        else replace(every[name], request={**every[name].request, **mark})
        for name in chosen
    }


def _live_sites(
    live: LiveCluster,
    request: ProbeRequest,
    *,
    facts: dict[str, NodeFacts],
    open_meters: contextlib.ExitStack,
) -> list[LiveSite]:
    if live.limiter is not None:
        live.limiter.set()  # a driver that was killed while it prepared left them lifted
    sites = _sites(live, request, facts)
    if any(probe.area == "power" for probe in choose_probes(request.names)):
        watts = _meters(live, open_meters)
        sites = [replace(site, watts=watts.get(site.node)) for site in sites]
    return sites


def _or_here(error: ClusterNotUpError) -> ClusterNotUpError:
    return ClusterNotUpError(
        error.message, hint=f"{error.hint}; or probe this machine itself with --here"
    )


def _announce(plan: ProbePlan, request: ProbeRequest, follow: Follower) -> None:
    if plan.left_out:
        names = ", ".join(probe.name for probe in plan.left_out)
        follow.line(f"left out, because they need two nodes: {names}")
    names = ", ".join(probe.name for probe in plan.probes)
    follow.line(
        f"{request.mode} mode on {', '.join(site.node for site in plan.sites)}: {names}; "
        f"{len(plan.jobs)} in all, about "
        f"{format_seconds(plan.about_seconds(request.mode))} on fast boards"
    )


def _here(folder: Path, facts: dict[str, NodeFacts]) -> LiveSite:
    """Return this machine as a site."""
    remote = LocalRemote(socket.gethostname())
    found = discover(remote, folder=str(folder))
    facts[remote.name] = found
    return LiveSite(
        node=remote.name,
        remote=remote,
        admin=remote,
        cores=found.cores,
        memory_bytes=found.memory_bytes,
        folder=str(folder / "scratch"),
        address="127.0.0.1",
        hardware=hardware_line(remote.name, found),
        cluster="",
        emulated=False,
    )


def _sites(live: LiveCluster, request: ProbeRequest, facts: dict[str, NodeFacts]) -> list[LiveSite]:
    """Return the cluster's nodes as sites.

    Raises:
        UsageError: a node is not in the cluster, or emulated nodes are to run at once.
    """
    known = [node.name for node in live.spec.nodes]
    for name in request.nodes:
        if name not in known:
            raise UsageError(
                f"the cluster has no node {name!r}", hint=f"its nodes: {', '.join(known)}"
            )
    here, emulated = live.spec.capabilities.on_this_machine, live.spec.capabilities.emulated
    if emulated and request.at_once:
        raise UsageError(
            "--at-once can only be used with boards: emulated nodes share one machine, and what "
            "is measured",
            hint="leave --at-once out",
        )
    addresses = {node.name: node.address for node in live.state.nodes}
    host = discover(LocalRemote(socket.gethostname())) if here else None
    sites = []
    for node in live.spec.nodes:
        if request.nodes and node.name not in request.nodes:
            continue
        if host is not None and emulated:
            memory = format_bytes(node.memory_bytes, binary=True)
            hardware = (
                f"{node.name}: emulated, {node.cores} cores and {memory} of "
                f"{hardware_line(host.name, host)}"
            )
        else:
            facts[node.name] = host or live.facts[node.name]
            hardware = hardware_line(node.name, facts[node.name])
        sites.append(
            LiveSite(
                node=node.name,
                remote=live.remotes[node.name],
                admin=live.as_root[node.name],
                cores=node.cores,
                memory_bytes=node.memory_bytes,
                folder=live.layout.on_medium(node, "scratch"),
                dilation=live.state.dilation,
                identity=live.state.identity,
                address=addresses[node.name],
                hardware=hardware,
                cluster=live.spec.name,
                emulated=emulated,
            )
        )
    return sites


def _meters(
    live: LiveCluster, open_meters: contextlib.ExitStack
) -> dict[str, Callable[[], float | None]]:
    """Open the meters that cover one node alone; return what reads each, by node."""
    found: dict[str, Callable[[], float | None]] = {}
    for spec in live.spec.meters:
        if len(spec.nodes) != 1 or spec.switch:
            continue
        meter = open_meter(spec, live.metered)
        open_meters.callback(meter.close)
        found.setdefault(spec.nodes[0], _WattsNow(meter))
    return found


class _WattsNow:
    """Reads a meter; of one that only counts energy, the mean power since it was read before."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._before: Reading | None = None

    def __call__(self) -> float | None:
        now = self._meter.read()
        before, self._before = self._before, now
        if now.watts is not None or before is None:
            return now.watts
        return rise(before, now)


def _machine(site: LiveSite, facts: NodeFacts | None) -> ProbedMachine:
    if facts is None:
        name = f"Emulated node {site.node}" if site.emulated else site.node
        return ProbedMachine(
            name=name, cores=site.cores, clock_hertz=None, memory_bytes=site.memory_bytes
        )
    return ProbedMachine(
        name=facts.board or site.node,
        cores=facts.cores,
        clock_hertz=facts.clock_most_hertz,
        memory_bytes=facts.memory_bytes,
    )
