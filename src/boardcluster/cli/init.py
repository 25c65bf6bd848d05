"""``boardcluster init``: write a commented cluster.toml for this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import say
from boardcluster.cli.options import ClusterOption, HomeOption, again, home_folder
from boardcluster.errors import UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import available_memory_bytes
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.spec import DEFAULT_SUBNET, propose_cluster, render_cluster

__all__ = ["propose", "register", "write_spec"]


def propose(*, name: str, workers: int, profile: str, engines: str, subnet: str) -> ClusterSpec:
    """Return a cluster that fits this machine.

    Raises:
        UsageError: there is no such profile or engine pair.
        CapacityError: this machine cannot hold that many workers.
    """
    load_pair(engines)
    spec = propose_cluster(
        name=name,
        workers=workers,
        host_cores=os.cpu_count() or 1,
        host_available_bytes=available_memory_bytes(),
        engines=engines,
        profile=profile,
        subnet=subnet,
    )
    build_profile(profile, spec)
    return spec


def write_spec(spec: ClusterSpec, path: Path) -> None:
    """Write the commented file.

    Raises:
        HostError: it cannot be written.
    """
    make_folder(path.parent)
    with writing(path):
        path.write_text(render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names()))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="init", epilog="Example: boardcluster init --workers 2 --profile upstream")(
        _init
    )


def _init(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    workers: Annotated[int, typer.Option(min=1, max=63, help="Workers beside the master.")] = 4,
    profile: Annotated[
        str, typer.Option(help=f"Engine configuration: {', '.join(profile_names())}.")
    ] = "default",
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    subnet: Annotated[
        str, typer.Option(help="Network of the nodes, inside 198.18.0.0/15.")
    ] = DEFAULT_SUBNET,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Look at this machine and write a commented cluster.toml for it."""
    path = home_folder(home, cluster) / "cluster.toml"
    if path.exists() and not force:
        raise UsageError(
            f"{path} exists already",
            hint=f"edit it, or replace it with `boardcluster init{again(home, cluster)} --force`",
        )
    name = cluster if home is None else "default"
    spec = propose(name=name, workers=workers, profile=profile, engines=engines, subnet=subnet)
    write_spec(spec, path)
    say(f"wrote {path}")
    say(f"next: edit it if you like, then run `boardcluster up{again(home, cluster)}`")
