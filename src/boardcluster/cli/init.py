"""``boardcluster init``: write a commented cluster.toml, for this machine or for boards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.boards import boards_of, look_at_boards
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import (
    INSECURE_WARNING,
    ClusterOption,
    HomeOption,
    again,
    home_folder,
)
from boardcluster.errors import UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import ClusterSpec, Security
from boardcluster.services.operation import available_memory_bytes
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import build_profile, profile_names
from boardcluster.spec import DEFAULT_SUBNET, propose_cluster, render_cluster

__all__ = ["propose", "register", "write_spec"]

_HostsOption = Annotated[
    str,
    typer.Option(
        "--hosts",
        help="Boards instead of emulated nodes: what ssh reaches them by, joined by commas.",
        show_default=False,
    ),
]
_InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory", help="Boards of an Ansible inventory (INI or YAML).", show_default=False
    ),
]
_MasterOption = Annotated[
    str,
    typer.Option(
        "--master", help="Which board is the master. Default: the first.", show_default=False
    ),
]
_YesOption = Annotated[
    bool, typer.Option("--yes", help="Accept the boards' host keys without asking.")
]
_InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure-lab",
        help="Leave boards OPEN to their network, as the papers had them; only to compare.",
    ),
]


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
    app.command(
        name="init",
        epilog="Examples: boardcluster init --workers 2 --profile upstream; "
        "boardcluster init --hosts pi@pi0,pi@pi1,pi@pi2",
    )(_init)


def _init(
    context: typer.Context,
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    workers: Annotated[
        int, typer.Option(min=1, max=63, help="Emulated workers beside the master.")
    ] = 4,
    profile: Annotated[
        str, typer.Option(help=f"Engine configuration: {', '.join(profile_names())}, or a file.")
    ] = "default",
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    subnet: Annotated[
        str, typer.Option(help="Network of emulated nodes, inside 198.18.0.0/15.")
    ] = DEFAULT_SUBNET,
    hosts: _HostsOption = "",
    inventory: _InventoryOption = None,
    master: _MasterOption = "",
    yes: _YesOption = False,
    insecure_lab: _InsecureOption = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented cluster.toml: for this machine, or for boards after looking at each.

    Boards are only looked at: nothing is changed on them.
    """
    folder = home_folder(home, cluster)
    path = folder / "cluster.toml"
    options = again(home, cluster)
    if path.exists() and not force:
        raise UsageError(
            f"{path} exists already",
            hint=f"edit it, or replace it with `boardcluster init{options} --force`",
        )
    if profile.endswith(".toml"):  # cluster.toml names it from another folder
        profile = str(Path(profile).absolute())
    name = cluster if home is None else "default"
    reporter = Reporter()
    boards = boards_of(hosts, inventory, reporter)
    _refuse_options(context, for_boards=bool(boards))
    if boards:
        spec = look_at_boards(
            boards,
            home=folder,
            name=name,
            engines=engines,
            profile=profile,
            security=Security.INSECURE_LAB if insecure_lab else Security.CLOSED,
            master=master,
            accept=yes,
            reporter=reporter,
        )
    else:
        spec = propose(name=name, workers=workers, profile=profile, engines=engines, subnet=subnet)
    write_spec(spec, path)
    say(f"wrote {path}")
    if spec.security is Security.INSECURE_LAB:
        say(INSECURE_WARNING)
    say(f"next: edit it if you like, then run `boardcluster up{options}`")


def _refuse_options(context: typer.Context, *, for_boards: bool) -> None:
    """Refuse options that would be left unheard.

    Raises:
        UsageError: names them.
    """
    unheard = ("workers", "subnet") if for_boards else ("insecure_lab", "master")
    given = []
    for name in unheard:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            given.append(f"--{name.replace('_', '-')}")
    if not given:
        return
    words = f"{' and '.join(given)}: only for "
    if for_boards:
        raise UsageError(
            f"{words}emulated nodes", hint="leave that out: each host is a node, in its own network"
        )
    raise UsageError(f"{words}boards", hint="name the boards with --hosts")
