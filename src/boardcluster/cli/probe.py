"""``boardcluster probe``: what single nodes can do."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.fingerprint import hardware_line
from boardcluster.catalog.entry import entry_of, render_board
from boardcluster.catalog.shown import conditions_text, is_curve_point, show_figure
from boardcluster.cli.console import Reporter, print_json, print_table, say
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    again,
    cache_folder,
    home_folder,
    require_cluster,
)
from boardcluster.cluster.discovery import discover
from boardcluster.cluster.lock import driver_lock
from boardcluster.cluster.state import write_atomically
from boardcluster.errors import ClusterNotUpError, EmptySelectionError, RunError, UsageError
from boardcluster.probes.registry import all_probes, choose_probes
from boardcluster.probes.run import LiveSite, Plan, plan_probes, run_probes
from boardcluster.records import NodeFacts, ProbeMode, ProbeRun
from boardcluster.remote.local import LocalRemote
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.telemetry.metering import open_meter, rise
from boardcluster.telemetry.meters.base import Meter, Reading
from boardcluster.units import format_bytes, format_seconds

__all__ = ["register"]

_SKIPPED = "skipped: "


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="probe",
        epilog=(
            "Examples: boardcluster probe --here\n\nboardcluster probe sysbench-cpu stream --node "
            "worker1 --paper"
        ),
    )(_probe)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the options ask for."""

    names: tuple[str, ...]
    nodes: tuple[str, ...]
    mode: ProbeMode
    here: bool
    at_once: bool
    skip_missing: bool
    board_file: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """What a catalog's entry says of a node beside its figures."""

    name: str
    cores: int
    clock_hertz: float | None
    memory_bytes: int


def _probe(
    name: Annotated[
        list[str] | None, typer.Argument(help="Probes to run; without one, the usual set.")
    ] = None,
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    node: Annotated[
        list[str] | None, typer.Option(help="Only on this node; repeat for several.")
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Probe this machine itself; needs no cluster.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Durations and repetitions of the papers.")
    ] = False,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="All boards at once, where that disturbs nobody.")
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out probes whose tools are missing.")
    ] = False,
    save_board: Annotated[
        Path | None,
        typer.Option(
            "--save-board",
            help="Write one node's figures as a board of the catalog.",
            show_default=False,
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Show the probes; run none.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show stored figures; run none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure what single nodes can do: processor, memory, storage, network, heat, power.

    Runs on the nodes of the cluster that is up, one after the other, and stores every figure.
    """
    wanted = _Wanted(
        names=tuple(name or ()),
        nodes=tuple(node or ()),
        mode=ProbeMode.PAPER if paper else ProbeMode.QUICK,
        here=here,
        at_once=at_once,
        skip_missing=skip_missing,
        board_file=save_board,
        as_json=as_json,
    )
    choose_probes(wanted.names)  # a wrong name is said before anything else
    if listing:
        _list(as_json=as_json)
        return
    if here and (wanted.nodes or at_once):
        raise UsageError(
            "--here is this one machine: --node and --at-once are for a cluster",
            hint="leave them out",
        )
    if save_board is not None and save_board.is_dir():
        raise UsageError(f"{save_board} is a folder", hint="name a file, such as board.toml")
    folder = home_folder(home, cluster)
    if show:
        _show(folder, wanted)
        return
    _measure(folder, cache_folder(cache), wanted, options=again(home, cluster))


def _list(*, as_json: bool) -> None:
    probes = all_probes()
    if as_json:
        rows = [
            {
                "name": probe.name,
                "area": probe.area,
                "summary": probe.summary,
                "matches": probe.matches,
                "packages": sorted({tool.package for tool in probe.tools}),
                "pair": probe.pair,
                "needs_root": probe.needs_root,
                "default": probe.default,
                "quick_seconds": probe.quick_seconds,
                "paper_seconds": probe.paper_seconds,
            }
            for probe in probes
        ]
        print_json(rows)
        return
    columns = ["probe", "area", "runs", "quick", "paper", "measures"]
    print_table(
        "",
        columns,
        [
            [
                probe.name,
                probe.area,
                ("between two nodes" if probe.pair else "on one node")
                + ("" if probe.default else ", if named")
                + (", as root" if probe.needs_root else ""),
                f"about {format_seconds(probe.quick_seconds)}",
                f"about {format_seconds(probe.paper_seconds)}",
                probe.summary,
            ]
            for probe in probes
        ],
    )


def _measure(folder: Path, cache: Path, wanted: _Wanted, *, options: str) -> None:
    reporter = Reporter()
    if not wanted.here:
        try:
            require_cluster(folder, options=options)
        except ClusterNotUpError as error:
            raise _or_here(error) from error
    facts: dict[str, NodeFacts] = {}
    with (
        driver_lock(folder, doing="probe"),
        Store.open(folder) as store,
        contextlib.ExitStack() as open_meters,
    ):
        if wanted.here:
            sites = [_here(folder, facts)]
        else:
            try:
                live = operation.attach(folder, cache=cache, progress=reporter.progress)
            except ClusterNotUpError as error:
                raise _or_here(error) from error
            if live.limiter is not None:
                live.limiter.set()  # a driver that was killed while it prepared left them lifted
            sites = _sites(live, wanted, facts)
            if any(probe.area == "power" for probe in choose_probes(wanted.names)):
                watts = _meters(live, open_meters)
                sites = [replace(site, watts=watts.get(site.node)) for site in sites]
        plan = plan_probes(sites, choose_probes(wanted.names), named=bool(wanted.names))
        if not plan.jobs:
            raise EmptySelectionError("no probe is left to run", hint="name other probes")
        if wanted.board_file is not None and len(sites) != 1:
            raise UsageError(
                f"--save-board writes one node, and {len(sites)} are to be probed",
                hint=f"name one with --node: {', '.join(site.node for site in sites)}",
            )
        _announce(plan, wanted, reporter)
        runs = run_probes(
            plan,
            mode=wanted.mode,
            keep=store.add_probe_run,
            tell=reporter.line,
            settings={"cache": str(cache)},
            at_once=wanted.at_once,
            skip_missing=wanted.skip_missing,
        )
    if wanted.as_json:
        print_json({"runs": runs})
    else:
        _print_runs(runs)
    if wanted.board_file is not None:
        site = sites[0]
        _save(wanted.board_file, runs, _machine(site, facts.get(site.node)), reporter)
    _fail(runs)


def _or_here(error: ClusterNotUpError) -> ClusterNotUpError:
    return ClusterNotUpError(
        error.message, hint=f"{error.hint}; or probe this machine itself with --here"
    )


def _announce(plan: Plan, wanted: _Wanted, reporter: Reporter) -> None:
    if plan.left_out:
        names = ", ".join(probe.name for probe in plan.left_out)
        reporter.line(f"left out, because they need two nodes: {names}")
    names = ", ".join(probe.name for probe in plan.probes)
    reporter.line(
        f"{wanted.mode} mode on {', '.join(site.node for site in plan.sites)}: {names}; "
        f"{len(plan.jobs)} in all, about "
        f"{format_seconds(plan.about_seconds(wanted.mode))} on fast boards"
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


def _sites(live: LiveCluster, wanted: _Wanted, facts: dict[str, NodeFacts]) -> list[LiveSite]:
    """Return the cluster's nodes as sites.

    Raises:
        UsageError: a node is not in the cluster, or emulated nodes are to run at once.
    """
    known = [node.name for node in live.spec.nodes]
    for name in wanted.nodes:
        if name not in known:
            raise UsageError(
                f"the cluster has no node {name!r}", hint=f"its nodes: {', '.join(known)}"
            )
    here, emulated = live.spec.capabilities.on_this_machine, live.spec.capabilities.emulated
    if emulated and wanted.at_once:
        raise UsageError(
            "--at-once is for boards: emulated nodes share one machine, and would share what is "
            "measured",
            hint="leave --at-once out",
        )
    addresses = {node.name: node.address for node in live.state.nodes}
    host = discover(LocalRemote(socket.gethostname())) if here else None
    sites = []
    for node in live.spec.nodes:
        if wanted.nodes and node.name not in wanted.nodes:
            continue
        if host is not None and not emulated:
            facts[node.name] = host
            hardware = hardware_line(node.name, host)
        elif host is not None:
            hardware = (
                f"{node.name}: emulated, {node.cores} cores and "
                f"{format_bytes(node.memory_bytes, binary=True)} of "
                f"{hardware_line(host.name, host)}"
            )
        else:
            facts[node.name] = live.facts[node.name]
            hardware = hardware_line(node.name, live.facts[node.name])
        sites.append(
            LiveSite(
                node=node.name,
                remote=live.remotes[node.name],
                admin=live.as_root[node.name],
                cores=node.cores,
                memory_bytes=node.memory_bytes,
                folder=live.layout.on_medium(node, "scratch"),
                dilation=live.state.dilation,
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


def _machine(site: LiveSite, facts: NodeFacts | None) -> _Machine:
    if facts is None:
        name = f"Emulated node {site.node}" if site.emulated else site.node
        return _Machine(
            name=name, cores=site.cores, clock_hertz=None, memory_bytes=site.memory_bytes
        )
    return _Machine(
        name=facts.board or site.node,
        cores=facts.cores,
        clock_hertz=facts.clock_most_hertz,
        memory_bytes=facts.memory_bytes,
    )


def _save(path: Path, runs: Sequence[ProbeRun], machine: _Machine, reporter: Reporter) -> None:
    entry = entry_of(
        runs,
        name=machine.name,
        cores=machine.cores,
        clock_hertz=machine.clock_hertz,
        memory_bytes=machine.memory_bytes,
    )
    write_atomically(path, render_board(entry))
    reporter.line(f"{path}: {entry.name}, {len(entry.figures)} figures")


def _show(folder: Path, wanted: _Wanted) -> None:
    """Print the latest stored run of each probe on each node; with JSON, all of them."""
    if wanted.board_file is not None:
        raise UsageError(
            "--save-board writes what is measured now", hint="leave --show out, and name a node"
        )
    with Store.open(folder, read_only=True) as store:
        stored = store.probe_runs()
    runs = [
        run
        for run in stored
        if (not wanted.names or run.probe in wanted.names)
        and (not wanted.nodes or run.node in wanted.nodes)
    ]
    if not runs:
        raise EmptySelectionError(
            f"no run of a probe is stored in {folder}" + (" that was asked for" if stored else ""),
            hint="run `boardcluster probe`, or `boardcluster probe --here`",
        )
    if wanted.as_json:
        print_json({"runs": runs})
        return
    latest = {(run.node, run.peer, run.probe, run.mode): run for run in runs}
    _print_runs(tuple(latest.values()))


def _label(run: ProbeRun) -> str:
    place = f"{run.node} to {run.peer}" if run.peer else run.node
    return f"{place} (emulated)" if run.emulated else place


def _print_runs(runs: Sequence[ProbeRun]) -> None:
    columns = ["node", "probe", "figure", "conditions", "value", "unit"]
    rows: dict[str, list[list[str]]] = {}
    for run in runs:
        for figure in run.figures:
            if is_curve_point(figure):
                continue
            what, value, unit = show_figure(figure)
            row = [run.probe, what, conditions_text(figure.conditions), value, unit]
            rows.setdefault(_label(run), []).append([_label(run), *row])
    for place, table in rows.items():
        about = next(run.hardware for run in runs if _label(run) == place)
        print_table(about, columns, table)
    for run in runs:
        if points := sum(map(is_curve_point, run.figures)):
            say(f"{_label(run)}: {run.probe}: {points} points of its curves are in --json")
        if run.reason:
            say(f"{_label(run)}: {run.probe}: {run.reason}")


def _fail(runs: Sequence[ProbeRun]) -> None:
    """End with an error if a probe failed that was not left out on purpose.

    Raises:
        RunError: names how many.
    """
    bad = [run for run in runs if run.reason and not run.reason.startswith(_SKIPPED)]
    if bad:
        raise RunError(
            f"{len(bad)} of {len(runs)} probes measured nothing: "
            f"{', '.join(f'{run.probe} on {run.node}' for run in bad)}",
            hint="see the reasons above; they are stored, too",
        )
