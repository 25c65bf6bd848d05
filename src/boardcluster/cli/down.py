"""``boardcluster down``: stop the cluster."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from boardcluster.campaign.upkeep import take_down
from boardcluster.cli.asking import can_ask, confirmed
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import ChosenCluster, WithoutOption, named_nodes
from boardcluster.cluster.folders import require_home
from boardcluster.services.boards import boards_were_reached

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster down --wipe   (also deletes everything in HDFS)"


def command(
    at: ChosenCluster,
    wipe: Annotated[
        bool, typer.Option("--wipe", help="Also delete the nodes' folders: HDFS, logs, settings.")
    ] = False,
    without: WithoutOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --wipe: do not ask.")] = False,
) -> None:
    """Stop every process of the cluster, even after a crash. HDFS and results are kept.

    `--wipe` asks first. Without a terminal it does not ask where the nodes are on this machine,
    and needs `--yes` for boards.
    """
    folder = at.folder()
    require_home(folder)
    asks = wipe and not yes and (can_ask() or boards_were_reached(folder))
    if asks and not confirmed(f"Delete everything in HDFS of the cluster in {folder}?"):
        return
    began = time.monotonic()

    def tell(ended: int) -> None:
        if ended:
            seconds = time.monotonic() - began
            say(f"down after {seconds:.1f} s; HDFS was {'deleted' if wipe else 'kept'}")
        else:
            say("the nodes' folders were deleted" if wipe else "nothing was running")

    take_down(folder, follow=Reporter(), wipe=wipe, without=named_nodes(folder, without), told=tell)
