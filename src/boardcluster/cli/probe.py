"""``boardcluster probe``: what single nodes can do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.probing import ProbedMachine, ProbeRequest, probe_nodes
from boardcluster.campaign.request import refuse_given
from boardcluster.catalog.entry import entry_of, render_board
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import CacheOption, ChosenCluster, JsonOption, cache_folder
from boardcluster.cli.show_probes import print_probe_runs, print_probes
from boardcluster.errors import EmptySelectionError, RunError, UsageError
from boardcluster.fetch.cache import write_atomically
from boardcluster.probes.registry import choose_probes
from boardcluster.records import ProbeMode, ProbeRun
from boardcluster.store import Store
from boardcluster.units import format_count

__all__ = ["EPILOG", "command"]

_SKIPPED = "skipped: "

EPILOG = (
    "Examples: boardcluster probe --here\n\nboardcluster probe sysbench-cpu stream --node "
    "worker1 --paper"
)


def command(
    at: ChosenCluster,
    name: Annotated[
        list[str] | None, typer.Argument(help="Probes to run. Default: the standard set.")
    ] = None,
    cache: CacheOption = None,
    node: Annotated[
        list[str] | None, typer.Option(help="Only on this node; repeat for several.")
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Probe this machine itself; needs no cluster.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the papers' durations and repetitions.")
    ] = False,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Probe all boards at once where that does no harm.")
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out probes whose tools are missing.")
    ] = False,
    save_board: Annotated[
        Path | None,
        typer.Option(
            "--save-board",
            help="Write one node's figures to this file, as a board of the catalog.",
            show_default=False,
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the probes.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only show stored figures.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure what single nodes can do: processor, memory, storage, network, heat, power.

    Runs on the nodes of the cluster that is up, one after the other, and stores every figure.
    """
    request = ProbeRequest(
        names=tuple(name or ()),
        nodes=tuple(node or ()),
        mode=ProbeMode.PAPER if paper else ProbeMode.QUICK,
        here=here,
        at_once=at_once,
        skip_missing=skip_missing,
        one_node=save_board is not None,
    )
    choose_probes(request.names)  # a wrong name is reported before anything else
    if listing:
        print_probes(as_json=as_json)
        return
    _check(request, save_board)
    folder = at.folder()
    if show:
        _show(folder, request, as_json=as_json)
        return
    reporter = Reporter()
    done = probe_nodes(
        folder, request, cache=cache_folder(cache), follow=reporter, options=at.again
    )
    print_json({"runs": done.runs}) if as_json else print_probe_runs(done.runs)
    if save_board is not None:
        _save(save_board, done.runs, done.machine, reporter)
    _fail(done.runs)


def _check(request: ProbeRequest, save_board: Path | None) -> None:
    if request.here and (request.nodes or request.at_once):
        raise UsageError(
            "--here probes only this machine: --node and --at-once need a cluster",
            hint="leave them out",
        )
    if save_board is not None and save_board.is_dir():
        raise UsageError(f"{save_board} is a folder", hint="name a file, such as board.toml")


def _save(path: Path, runs: Sequence[ProbeRun], machine: ProbedMachine, reporter: Reporter) -> None:
    entry = entry_of(
        runs,
        name=machine.name,
        cores=machine.cores,
        clock_hertz=machine.clock_hertz,
        memory_bytes=machine.memory_bytes,
    )
    write_atomically(path, render_board(entry))
    reporter.line(f"{path}: {entry.name}, {format_count(len(entry.figures), 'figure')}")


def _show(folder: Path, request: ProbeRequest, *, as_json: bool) -> None:
    """Print the latest stored run of each probe on each node; with JSON, all of them."""
    if request.one_node:
        raise UsageError(
            "--save-board cannot be used with --show: it writes what is measured now",
            hint="leave --show out, and name a node",
        )
    given = {"--here": request.here, "--paper": request.mode is ProbeMode.PAPER}
    given |= {"--at-once": request.at_once, "--skip-missing": request.skip_missing}
    refuse_given(given, because="with --show, which measures nothing", hint="leave them out")
    with Store.open(folder, read_only=True) as store:
        stored = store.probe_runs()
    runs = [
        run
        for run in stored
        if (not request.names or run.probe in request.names)
        and (not request.nodes or run.node in request.nodes)
    ]
    if not runs:
        raise EmptySelectionError(
            f"no {'such ' if stored else ''}run of a probe is stored in {folder}",
            hint="run `boardcluster probe`, or `boardcluster probe --here`",
        )
    if as_json:
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
            hint="see the reasons above; they are stored as well",
        )
