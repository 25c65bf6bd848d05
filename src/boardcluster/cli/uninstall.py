"""``boardcluster uninstall``: take back from boards what ``up`` put on them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from boardcluster.campaign.upkeep import uninstall
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import (
    ClusterOption,
    HomeOption,
    JsonOption,
    WithoutOption,
    again,
    home_folder,
    named_nodes,
)
from boardcluster.errors import UsageError
from boardcluster.services import operation

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="uninstall",
        epilog="Example: boardcluster uninstall --keep-data",
    )(_uninstall)


def _uninstall(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Leave the nodes' data folders: HDFS and logs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken back.")
    ] = False,
    without: WithoutOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """End the cluster and take back from its boards exactly what was installed. Only for boards.

    Packages, users, files, settings and firewall become what they were before the first `up`.
    """
    folder = home_folder(home, cluster)
    spec = operation.read_spec(folder / "cluster.toml")
    if not spec.capabilities.provisioned:
        raise UsageError(
            "nothing was installed: the nodes of this cluster are on this machine",
            hint=f"run `boardcluster down{again(home, cluster)} --wipe`",
        )
    gone = named_nodes(folder, without)
    chosen = [node for node in spec.nodes if node.name not in gone]
    reporter = Reporter()
    if not (yes or dry_run):
        what = "" if keep_data else ", with everything in HDFS"
        names = ", ".join(node.name for node in chosen)
        if not sys.stdin.isatty():
            raise UsageError("nobody is here to confirm", hint="run the command again with --yes")
        if not typer.confirm(f"Take back what was installed on {names}{what}?"):
            say("nothing was taken back")
            return
    done = uninstall(
        folder, chosen, follow=reporter, keep_data=keep_data, dry_run=dry_run, without=gone
    )
    if as_json:
        print_json(done)
        return
    for node, changes in done.items():
        say(f"{node}: changes: {len(changes)}" if changes else f"{node}: nothing was installed")
        for change in changes:
            say(f"  {change}")
