"""Run probes on nodes: check, run, gather, clean up. One place for all of it."""

from __future__ import annotations

import contextlib
import math
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import permutations
from typing import Any

from boardcluster.analysis.twins import undilated_value
from boardcluster.errors import BoardclusterError, ProbeOutputError, UsageError
from boardcluster.probes.base import LiveSite, Probe, Site, Tell
from boardcluster.probes.tagged_remote import PROBE_VARIABLE, TaggedRemote
from boardcluster.probes.tools import Lack, lacks_of, refuse_lacks, tool_versions
from boardcluster.records import ProbeFigure, ProbeMode, ProbeRun
from boardcluster.remote.gate import end_programs
from boardcluster.remote.node_rpc import end_marked

__all__ = [
    "Judge",
    "LiveSite",
    "ProbePlan",
    "Watch",
    "check_figures",
    "plan_probes",
    "run_probes",
]

_GRACE_SECONDS = 3.0
_CLEAN_SECONDS = 60.0
_REASON_CHARACTERS = 400
_END_AGAIN_SECONDS = 0.2

Keep = Callable[[ProbeRun], None]
"""Takes each run as it ends, so that what was measured is kept whatever happens later."""

Judge = Callable[[float, float], Mapping[str, Any]]
"""Takes begin and end of a measurement by the driver's monotonic clock, and returns what telemetry
says of it, as fields of ``ProbeRun``."""

Watch = Callable[[Probe, Sequence[LiveSite], str], contextlib.AbstractContextManager[Judge]]
"""Watches the nodes of a run, which has an id, while a probe measures on them."""


@contextlib.contextmanager
def _unwatched(_: Probe, __: Sequence[LiveSite], ___: str) -> Iterator[Judge]:
    yield lambda _, __: {}


@dataclass(frozen=True, slots=True)
class _ProbeJob:
    probe: Probe
    site: LiveSite
    peer: LiveSite | None = None

    @property
    def sites(self) -> tuple[LiveSite, ...]:
        return (self.site,) if self.peer is None else (self.site, self.peer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """What will run."""

    sites: tuple[LiveSite, ...]
    """The nodes."""
    probes: tuple[Probe, ...]
    """What runs, in order."""
    left_out: tuple[Probe, ...] = ()
    """Probes of the default set that need two nodes where there is only one."""

    @property
    def jobs(self) -> tuple[_ProbeJob, ...]:
        """Every run: node after node, then, of what needs two, every pair in both directions."""
        single = [
            _ProbeJob(probe, site) for site in self.sites for probe in self.probes if not probe.pair
        ]
        pairs = [
            _ProbeJob(probe, one, other)
            for probe in self.probes
            if probe.pair
            for one, other in permutations(self.sites, 2)
        ]
        return (*single, *pairs)

    def about_seconds(self, mode: ProbeMode) -> float:
        """Return about how long it takes, one after the other, on fast boards."""
        return sum(
            job.probe.paper_seconds if mode is ProbeMode.PAPER else job.probe.quick_seconds
            for job in self.jobs
        )


def plan_probes(sites: Sequence[LiveSite], probes: Sequence[Probe], *, named: bool) -> ProbePlan:
    """Decide what runs where.

    Args:
        sites: the nodes.
        probes: the probes.
        named: whether a person named them; then none may be left out.

    Raises:
        UsageError: a named probe needs two nodes, and there is one.
    """
    pairs = tuple(probe for probe in probes if probe.pair)
    if len(sites) > 1 or not pairs:
        return ProbePlan(sites=tuple(sites), probes=tuple(probes))
    if named:
        raise UsageError(
            f"{', '.join(probe.name for probe in pairs)} needs two nodes",
            hint="start a cluster, and name at least two of its nodes, or none",
        )
    rest = tuple(probe for probe in probes if not probe.pair)
    return ProbePlan(sites=tuple(sites), probes=rest, left_out=pairs)


def check_figures(figures: Sequence[ProbeFigure], *, probe: str) -> tuple[ProbeFigure, ...]:
    """Return figures that can be stored.

    Raises:
        ProbeOutputError: there are none, one is no number, or two cannot be told apart.
    """
    seen = set()
    for figure in figures:
        if not math.isfinite(figure.value):
            raise ProbeOutputError(f"{probe}: {figure.name} is {figure.value}")
        key = (figure.name, *sorted(figure.conditions.items()))
        if key in seen:
            raise ProbeOutputError(f"{probe}: {figure.name} twice for {figure.conditions}")
        seen.add(key)
    if not figures:
        raise ProbeOutputError(f"{probe}: it measured nothing")
    return tuple(figures)


def _of_board(figures: tuple[ProbeFigure, ...], dilation: float) -> tuple[ProbeFigure, ...]:
    """Return what the board would have shown that a slowed-down node stands for.

    The factor becomes a condition of each figure. What says nothing of the board, like this
    machine's clock, is left out.
    """
    if dilation == 1:
        return figures
    values = [(row, undilated_value(row.name, row.value, dilation)) for row in figures]
    return tuple(
        replace(row, value=value, conditions={**row.conditions, "dilation": f"{dilation:g}"})
        for row, value in values
        if value is not None
    )


@dataclass(kw_only=True)
class _Runner:
    """What all runs of one command share."""

    mode: ProbeMode
    tell: Tell
    settings: Mapping[str, str]
    lacks: Mapping[tuple[str, str], Lack]
    versions: Mapping[str, Mapping[str, str]]
    watch: Watch = _unwatched
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, job: _ProbeJob) -> ProbeRun:
        """Run one probe; a failure is a run, too."""
        moment = datetime.now(UTC)
        milliseconds = moment.microsecond // 1000
        identity = f"{moment:%Y%m%d-%H%M%S}-{milliseconds:03d}{secrets.token_hex(2)}"
        began = time.monotonic()
        figures: tuple[ProbeFigure, ...] = ()
        judged: Mapping[str, Any] = {}
        reason = self._skipped(job)
        if not reason:
            self.tell(f"{_name(job)}: {job.probe.name}")
            try:
                with (
                    self._site(job, identity) as site,
                    self.watch(job.probe, job.sites, identity) as judge,
                ):
                    started_seconds = time.monotonic()
                    found = job.probe.measure(site)
                    judged = judge(started_seconds, time.monotonic())
                    figures = _of_board(
                        check_figures(found, probe=job.probe.name), job.site.dilation
                    )
                    if not figures:
                        reason = "nothing that it measures here applies to emulated boards"
                        judged = {}
            except BoardclusterError as error:
                figures, reason, judged = (), _one_line(error), {}
        if reason:
            self.tell(f"{_name(job)}: {job.probe.name}: {reason}")
        programs = [tool.program for tool in job.probe.tools]
        return ProbeRun(
            id=identity,
            probe=job.probe.name,
            mode=self.mode,
            node=job.site.node,
            peer=job.peer.node if job.peer else "",
            started_utc=moment.isoformat(timespec="seconds"),
            duration_seconds=time.monotonic() - began,
            cluster=job.site.cluster,
            emulated=job.site.emulated,
            versions=tuple(
                said
                for program in programs
                if (said := self.versions.get(job.site.node, {}).get(program))
            ),
            hardware=job.site.hardware,
            figures=figures,
            reason=reason,
            **judged,
        )

    def _skipped(self, job: _ProbeJob) -> str:
        lacks = [self.lacks.get((site.node, job.probe.name)) for site in job.sites]
        words = [f"{lack.node} lacks {lack.words}" for lack in lacks if lack]
        return f"skipped: {'; '.join(words)}" if words else ""

    @contextlib.contextmanager
    def _site(self, job: _ProbeJob, identity: str) -> Iterator[Site]:
        """Give the probe its folder on each node; leave neither it nor a process behind."""
        try:
            peer = self._prepare(job.peer, identity, None) if job.peer else None
            yield self._prepare(job.site, identity, peer)
        except BaseException as error:
            for site in job.sites:
                for word in _clear(site, identity):
                    error.add_note(word)
            raise
        for site in job.sites:
            for word in _clear(site, identity):
                self.tell(word)

    def _prepare(self, live: LiveSite, identity: str, peer: Site | None) -> Site:
        folder = f"{live.folder}/{identity}"
        marked = partial(
            TaggedRemote,
            mark=identity,
            stopping=self.stopping,
            dilation=live.dilation,
            identity=live.identity,
        )
        remote = marked(live.remote)
        admin = remote if live.admin is live.remote else marked(live.admin)
        remote.run(["mkdir", "-p", folder])
        own = {each.name: getattr(live, each.name) for each in fields(LiveSite)}
        return Site(
            **{**own, "remote": remote, "admin": admin, "folder": folder},
            mode=self.mode,
            tell=lambda words: self.tell(f"{live.node}: {words}"),
            peer=peer,
            settings=self.settings,
        )


def _clear(live: LiveSite, identity: str) -> list[str]:
    """End what a run left on a node, and delete its folder; return what could not be done."""
    words = []
    try:
        end_marked(
            live.admin,
            f"{PROBE_VARIABLE}={identity}",
            grace_seconds=_GRACE_SECONDS,
            timeout_seconds=_CLEAN_SECONDS,
        )
        live.admin.run(["rm", "-rf", f"{live.folder}/{identity}"], timeout_seconds=_CLEAN_SECONDS)
    except BoardclusterError as error:
        words.append(
            f"{live.node}: {live.folder}/{identity} may have been left behind: {_one_line(error)}"
        )
    return words


def _name(job: _ProbeJob) -> str:
    return job.site.node if job.peer is None else f"{job.site.node} to {job.peer.node}"


def _one_line(error: BoardclusterError) -> str:
    return " ".join(error.message.split())[:_REASON_CHARACTERS]


def run_probes(
    plan: ProbePlan,
    *,
    mode: ProbeMode,
    keep: Keep,
    tell: Tell,
    settings: Mapping[str, str],
    at_once: bool = False,
    skip_missing: bool = False,
    watch: Watch = _unwatched,
) -> tuple[ProbeRun, ...]:
    """Run the probes of a plan; one node at a time, because they disturb each other.

    1. see on every node which tools are there, and refuse to begin if one is missing;
    2. ask the tools for their versions;
    3. run, handing over each run as it ends, also one that failed;
    4. leave no process and no folder behind, also when interrupted.

    Args:
        plan: what runs where.
        mode: quick or paper.
        keep: takes each run as it ends; called from this thread only.
        tell: told what is being done.
        settings: handed to the probes; ``cache`` is the folder of what is fetched.
        at_once: run on all nodes at once what needs one node; for boards that share nothing.
        skip_missing: keep, with the reason, what cannot run, instead of refusing to begin.
        watch: watches the nodes of each run and judges it; by default nothing does.

    Raises:
        HostError: something is missing on a node.
        RemoteError: a node cannot be reached.
    """
    runner = _make_runner(plan, mode, tell, settings, skip_missing=skip_missing)
    runner.watch = watch
    done: list[ProbeRun] = []

    def kept(run: ProbeRun) -> None:
        keep(run)
        done.append(run)

    jobs = list(plan.jobs)
    if at_once:
        _run_at_once(runner, [job for job in jobs if job.peer is None], kept)
        jobs = [job for job in jobs if job.peer is not None]
    for job in jobs:
        kept(runner.run(job))
    return tuple(done)


def _make_runner(
    plan: ProbePlan, mode: ProbeMode, tell: Tell, settings: Mapping[str, str], *, skip_missing: bool
) -> _Runner:
    lacks: list[Lack] = []
    versions: dict[str, Mapping[str, str]] = {}
    for site in plan.sites:
        lacks += lacks_of(site.node, site.remote, site.admin, plan.probes)
    if not skip_missing:
        refuse_lacks(lacks)
    by_key = {(lack.node, lack.probe): lack for lack in lacks}
    for site in plan.sites:
        able = [probe for probe in plan.probes if (site.node, probe.name) not in by_key]
        tools = [tool for probe in able for tool in probe.tools]
        versions[site.node] = tool_versions(site.remote, tools)
    return _Runner(mode=mode, tell=tell, settings=settings, lacks=by_key, versions=versions)


def _run_at_once(runner: _Runner, jobs: Sequence[_ProbeJob], keep: Keep) -> None:
    """Run each node's jobs one after the other, and all nodes at once."""
    by_node: dict[str, list[_ProbeJob]] = {}
    for job in jobs:
        by_node.setdefault(job.site.node, []).append(job)
    ended: queue.SimpleQueue[ProbeRun] = queue.SimpleQueue()

    def work(mine: Sequence[_ProbeJob]) -> None:
        for job in mine:
            if runner.stopping.is_set():
                return
            run = runner.run(job)
            if not runner.stopping.is_set():
                ended.put(run)

    with ThreadPoolExecutor(max(1, len(by_node))) as pool:
        workers = [pool.submit(work, mine) for mine in by_node.values()]
        try:
            left = len(jobs)
            while left and not (all(worker.done() for worker in workers) and ended.empty()):
                with contextlib.suppress(queue.Empty):
                    keep(ended.get(timeout=_END_AGAIN_SECONDS))
                    left -= 1
        except BaseException:  # Ctrl-C reaches only this thread
            runner.stopping.set()
            end_programs()
            raise
        for worker in workers:
            worker.result()
