"""``boardcluster up``: bring the cluster up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.twins import place_twin, read_twin, twin_home
from boardcluster.campaign.upkeep import bring_up, nodes_words, plan_changes
from boardcluster.cli.boards import accept_host_keys, confirm_take_over
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import CacheOption, ChosenCluster, cache_folder
from boardcluster.errors import UsageError
from boardcluster.records import Security
from boardcluster.services.boards import Ready
from boardcluster.services.declaration import read_spec
from boardcluster.services.operation import LiveCluster
from boardcluster.services.security import INSECURE_WARNING
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["EPILOG", "command"]


EPILOG = (
    "Examples: boardcluster up && boardcluster status; boardcluster up --dry-run; "
    "sudo boardcluster up --twin examples/twin/rpi5-nvme-8.toml"
)


def command(
    at: ChosenCluster,
    cache: CacheOption = None,
    twin: Annotated[
        Path | None,
        typer.Option(
            "--twin",
            help="A cluster.toml of emulated boards; its state folder is named like its cluster.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Boards: show each change that would be made, and make none."
        ),
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Boards: also read every byte of what was copied.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Boards: accept new host keys, and take over, without asking."),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Take over boards of another driver, ending what runs there."
        ),
    ] = False,
    leave_safe_mode: Annotated[
        bool,
        typer.Option("--leave-safe-mode", help="Give up the files whose blocks no DataNode has."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: print JSON instead of lines.")
    ] = False,
) -> None:
    """Bring the cluster up: nodes, HDFS, YARN and history servers, until all are healthy.

    Downloads the engines the first time. On boards it first installs, configures and secures
    whatever is not yet as it should be. A cluster that is already up is left as it is.
    """
    if as_json and not dry_run:
        raise UsageError(
            "--json can only be used with --dry-run",
            hint="run `boardcluster status --json` afterwards",
        )
    folder = at.folder()
    if twin is not None:
        at, folder = _placed(at, twin)
    spec = read_spec(folder / "cluster.toml", meter_kinds=meter_facts())
    reporter = Reporter()
    if spec.capabilities.over_ssh:
        accept_host_keys([node.host for node in spec.nodes], home=folder, accept=yes)
    if not spec.capabilities.provisioned:
        _refuse({"--dry-run": dry_run, "--deep": deep, "--take-over": take_over}, spec.kind)
    if dry_run:
        ready = plan_changes(folder, cache=cache_folder(cache), follow=reporter, deep=deep)
        print_json(ready.changes) if as_json else _print_changes(ready)
        return
    if not take_over or confirm_take_over(folder, spec.nodes, yes=yes):
        own = {"deep": deep, "take_over": take_over, "leave_safe_mode": leave_safe_mode}
        live = bring_up(folder, cache=cache_folder(cache), follow=reporter, **own)
        _say_up(live, at.again)


def _placed(at: ChosenCluster, twin: Path) -> tuple[ChosenCluster, Path]:
    """Copy a file of emulated boards into the state folder of its cluster; return that."""
    declared = read_twin(twin)
    at = replace(at, cluster=declared.name)
    folder = twin_home(at.home, declared)
    place_twin(declared, twin, folder)
    return at, folder


def _refuse(given: Mapping[str, bool], kind: str) -> None:
    """Refuse options that are for boards.

    Raises:
        UsageError: one of them was given.
    """
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(
            f"{option} can only be used with boards: nothing is installed for nodes of the kind "
            f"{kind}",
            hint="run `boardcluster doctor` to see whether this machine is ready",
        )


def _say_up(live: LiveCluster, options: str) -> None:
    """Show where the cluster's pages are, and how to continue."""
    say(f"up: {nodes_words(live)}, profile {live.spec.profile}")
    for name in ("namenode", "resourcemanager", "jobhistory", "sparkhistory"):
        say(f"  {name:<16} {_url(live, name)}")
    if live.spec.security is Security.INSECURE_LAB:
        say(INSECURE_WARNING)
    if live.spec.capabilities.over_ssh:
        say("  (open these pages through `boardcluster tunnel`)")
    elif live.limiter is not None:
        say(f"  emulated boards, dilation {live.state.dilation:g}")
        say(f"  (continue with: boardcluster run ...{options})")
    elif live.spec.security is Security.LOCAL:
        say("  (every user of this machine can reach them: see docs/how-to/run-on-this-machine.md)")
    elif not live.state.host_link:
        say("  (made without root: see `boardcluster status` for how to open these pages)")


def _print_changes(ready: Ready) -> None:
    """Show each change, and of files the lines."""
    for change in ready.changes:
        say(f"{change.node}: {change.words}")
        for line in change.detail.splitlines():
            say(f"    {line}")
    count = len(ready.changes)
    say(f"changes: {count}; `boardcluster up` makes them" if count else "nothing to change")


def _url(live: LiveCluster, daemon: str) -> str:
    return next(row.url for row in live.state.daemons if row.name == daemon)
