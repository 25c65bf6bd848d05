"""``boardcluster down``: end the cluster."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import (
    ClusterOption,
    HomeOption,
    WithoutOption,
    home_folder,
    named_nodes,
)
from boardcluster.cli.up import recover
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import ClusterError
from boardcluster.services import operation
from boardcluster.store import Store

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="down",
        epilog="Example: boardcluster down --wipe   (also deletes everything in HDFS)",
    )(_down)


def _down(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    wipe: Annotated[
        bool, typer.Option("--wipe", help="Also delete the nodes' folders: HDFS, logs, settings.")
    ] = False,
    without: WithoutOption = None,
) -> None:
    """End every process of the cluster, also after a crash. HDFS and results are kept."""
    folder = home_folder(home, cluster)
    if not folder.is_dir():
        raise ClusterError(
            f"there is no cluster in {folder}", hint="name it with --cluster or --home"
        )
    began = time.monotonic()
    with driver_lock(folder, doing="down"):
        ended = operation.down(folder, without=named_nodes(folder, without))
        if wipe:
            operation.wipe(folder)
        if ended:
            seconds = time.monotonic() - began
            say(f"down after {seconds:.1f} s; HDFS was {'deleted' if wipe else 'kept'}")
        else:
            say("nothing was running" + ("; the nodes' folders were deleted" if wipe else ""))
        # Last: on a full disk the store cannot be written until the above has freed it.
        if (folder / "store.sqlite").exists():
            with Store.open(folder) as store:
                recover(store, Reporter())
