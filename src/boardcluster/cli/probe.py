"""``boardcluster probe``: what single nodes can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.probing import ProbedMachine, ProbeRequest, probe_nodes
from boardcluster.catalog.entry import entry_of, render_board
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    again,
    cache_folder,
    home_folder,
)
from boardcluster.cli.show_probes import print_probe_runs, print_probes
from boardcluster.cluster.state import write_atomically
from boardcluster.errors import EmptySelectionError, RunError, UsageError
from boardcluster.probes.registry import choose_probes
from boardcluster.records import ProbeMode, ProbeRun
from boardcluster.store import Store

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
        print_probes(as_json=as_json)
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


def _measure(folder: Path, cache: Path, wanted: _Wanted, *, options: str) -> None:
    reporter = Reporter()
    request = ProbeRequest(
        names=wanted.names,
        nodes=wanted.nodes,
        mode=wanted.mode,
        here=wanted.here,
        at_once=wanted.at_once,
        skip_missing=wanted.skip_missing,
        one_node=wanted.board_file is not None,
    )
    done = probe_nodes(folder, request, cache=cache, follow=reporter, options=options)
    if wanted.as_json:
        print_json({"runs": done.runs})
    else:
        print_probe_runs(done.runs)
    if wanted.board_file is not None:
        _save(wanted.board_file, done.runs, done.machine, reporter)
    _fail(done.runs)


def _save(path: Path, runs: Sequence[ProbeRun], machine: ProbedMachine, reporter: Reporter) -> None:
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
    print_probe_runs(tuple(latest.values()))


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
