"""``boardcluster uninstall``: remove from boards what ``up`` installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from boardcluster.campaign.upkeep import uninstall
from boardcluster.cli.asking import confirmed
from boardcluster.cli.boards import confirm_take_over
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption, WithoutOption, named_nodes
from boardcluster.errors import UsageError
from boardcluster.records import NodeSpec
from boardcluster.services.declaration import read_spec

__all__ = ["EPILOG", "command"]


_SUDOERS = "/etc/sudoers.d/010_boardcluster"
"""As docs/how-to/from-boxes-to-a-cluster.md has it written."""

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
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Include boards of another driver, which is named.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the cluster and remove exactly what was installed on its boards. Only for boards.

    Packages, users, files, settings and firewall become what they were before the first `up`.
    """
    folder = at.folder()
    spec = read_spec(folder / "cluster.toml")
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
        if take_over and not confirm_take_over(folder, chosen, yes=yes):
            return
        if not confirmed(f"Remove what was installed on {names}{what}?"):
            return
    done = uninstall(
        folder,
        chosen,
        follow=reporter,
        keep_data=keep_data,
        dry_run=dry_run,
        without=gone,
        take_over=take_over,
    )
    if as_json:
        print_json(done)
        return
    for node, changes in done.items():
        say(f"{node}: changes: {len(changes)}" if changes else f"{node}: nothing was installed")
        for change in changes:
            say(f"  {change}")
    if not dry_run:
        _say_what_stays(chosen)


def _say_what_stays(boards: Sequence[NodeSpec]) -> None:
    """Print the removal of what the documentation let a person set up by hand."""
    say("what you may have set up by hand stays: login with your key, and sudo without a password")
    say("to remove it, run on each board that no longer needs it:")
    for board in boards:
        say(f"  ssh -t {board.host} 'sudo rm -f {_SUDOERS}'")
        say(f"  ssh {board.host}   # then delete the line of your key in ~/.ssh/authorized_keys")
