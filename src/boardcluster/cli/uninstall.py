"""``boardcluster uninstall``: remove from boards what ``up`` installed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from boardcluster.campaign.upkeep import uninstall
from boardcluster.cli.console import Reporter, ask_yes, print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption, WithoutOption, named_nodes
from boardcluster.errors import UsageError
from boardcluster.services import operation

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster uninstall --keep-data"


def command(
    at: ChosenCluster,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep the nodes' data folders: HDFS and logs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    without: WithoutOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the cluster and remove exactly what was installed on its boards. Only for boards.

    Packages, users, files, settings and firewall become what they were before the first `up`.
    """
    folder = at.folder()
    spec = operation.read_spec(folder / "cluster.toml")
    if not spec.capabilities.provisioned:
        raise UsageError(
            "nothing was installed: the nodes of this cluster are on this machine",
            hint=f"run `boardcluster down{at.again} --wipe`",
        )
    gone = named_nodes(folder, without)
    chosen = [node for node in spec.nodes if node.name not in gone]
    reporter = Reporter()
    if not (yes or dry_run):
        what = "" if keep_data else ", and everything in HDFS"
        names = ", ".join(node.name for node in chosen)
        if not sys.stdin.isatty():
            raise UsageError(
                "this needs confirmation, and nobody is here to give it", hint="add --yes"
            )
        if not ask_yes(f"Remove what was installed on {names}{what}?"):
            say("nothing was removed")
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
