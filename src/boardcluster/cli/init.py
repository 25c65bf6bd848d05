"""``boardcluster init``: write a commented cluster.toml, for this machine or for boards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.propose import propose, write_spec
from boardcluster.capabilities import Capabilities, Network, capabilities_of, every_kind
from boardcluster.cli.boards import boards_of, look_at_boards
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import ChosenCluster
from boardcluster.errors import UsageError
from boardcluster.records import Security
from boardcluster.services.pair import load_pair, pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.security import INSECURE_WARNING
from boardcluster.spec.cluster import DEFAULT_SUBNET

__all__ = ["EPILOG", "command"]

_KindOption = Annotated[
    str,
    typer.Option(
        "--kind",
        help=f"What the nodes are: {', '.join(every_kind())}. Default: boards with --hosts or "
        f"--inventory, else {next(iter(every_kind()))}.",
        show_default=False,
    ),
]

EPILOG = (
    "Examples: boardcluster init --workers 2 --profile upstream; "
    "boardcluster init --hosts pi@pi0,pi@pi1,pi@pi2; boardcluster init --kind local"
)


@dataclass(frozen=True, slots=True)
class _BoardOptions:
    """The boards of a cluster, as given on the command line."""

    hosts: Annotated[
        str,
        typer.Option(
            "--hosts",
            help="Boards instead of emulated nodes: their ssh destinations, separated by commas.",
            show_default=False,
        ),
    ] = ""
    inventory: Annotated[
        Path | None,
        typer.Option(
            "--inventory",
            help="Boards of an Ansible inventory, as `ansible-inventory --list` prints it.",
            show_default=False,
        ),
    ] = None
    master: Annotated[
        str,
        typer.Option(
            "--master", help="Board to use as the master. Default: the first.", show_default=False
        ),
    ] = ""
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the boards' host keys without asking.")
    ] = False
    insecure_lab: Annotated[
        bool,
        typer.Option(
            "--insecure-lab",
            help="Leave boards OPEN to their network, as in the papers; only for comparison.",
        ),
    ] = False


def command(
    context: typer.Context,
    board: _BoardOptions,
    at: ChosenCluster,
    kind: _KindOption = "",
    workers: Annotated[int, typer.Option(min=1, max=63, help="Number of emulated workers.")] = 4,
    profile: Annotated[
        str, typer.Option(help=f"Engine configuration: {', '.join(profile_names())}, or a file.")
    ] = "default",
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    subnet: Annotated[
        str,
        typer.Option(
            "--subnet",
            help=f"Network of emulated nodes, inside 198.18.0.0/15; default: {DEFAULT_SUBNET}. Or "
            "network through which boards reach each other; default: the fastest that all are in.",
            show_default=False,
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented cluster.toml for this machine, or for boards after inspecting each of them.

    Boards are only inspected: nothing on them is changed.
    """
    folder = at.folder()
    path = folder / "cluster.toml"
    if path.exists() and not force:
        raise UsageError(
            f"{path} already exists",
            hint=f"edit it, or replace it with `boardcluster init{at.again} --force`",
        )
    load_pair(engines)  # a wrong name is said before any board is reached
    if profile.endswith(".toml"):  # cluster.toml names it from another folder
        profile = str(Path(profile).absolute())
    name = at.cluster if at.home is None else "default"
    reporter = Reporter()
    boards = boards_of(board.hosts, board.inventory, reporter)
    known = _kind_asked_for(kind, named=bool(boards))
    _refuse_options(context, known)
    if boards:
        spec = look_at_boards(
            boards,
            home=folder,
            name=name,
            engines=engines,
            profile=profile,
            security=Security.INSECURE_LAB if board.insecure_lab else Security.CLOSED,
            master=board.master,
            subnet=subnet,
            accept=board.yes,
            reporter=reporter,
        )
    else:
        spec = propose(
            name=name,
            workers=workers,
            profile=profile,
            engines=engines,
            subnet=subnet or DEFAULT_SUBNET,
            kind=kind,
        )
    write_spec(spec, path)
    say(f"wrote {path}")
    if spec.security is Security.INSECURE_LAB:
        say(INSECURE_WARNING)
    say(f"next: edit it if you like, then run `boardcluster up{at.again}`")


def _kind_asked_for(kind: str, *, named: bool) -> Capabilities:
    """Return what the kind of node can do that --kind and the hosts, if any, ask for.

    Raises:
        UsageError: there is no such kind, or it does not go with the hosts.
    """
    known = every_kind()
    reached = next(row for row in known.values() if row.over_ssh)
    chosen = capabilities_of(kind) if kind else reached if named else next(iter(known.values()))
    if named and not chosen.over_ssh:
        raise UsageError(
            f"--hosts cannot be used with --kind {kind}",
            hint=f"leave --hosts out, or use --kind {reached.kind}",
        )
    if chosen.over_ssh and not named:
        raise UsageError(
            f"--kind {kind} needs the names of the nodes",
            hint="name them with --hosts or --inventory",
        )
    return chosen


def _refuse_options(context: typer.Context, kind: Capabilities) -> None:
    """Refuse options that have no effect on the kind of node.

    Raises:
        UsageError: names them.
    """
    own_network = kind.network is Network.OWN
    unheard = [] if own_network else ["workers"]
    unheard += [] if own_network or kind.over_ssh else ["subnet"]
    unheard += [] if kind.over_ssh else ["insecure_lab", "master"]
    given = []
    for name in unheard:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            given.append(f"--{name.replace('_', '-')}")
    if not given:
        return
    words = f"{' and '.join(given)} can only be used with "
    if kind.over_ssh:
        raise UsageError(f"{words}emulated nodes", hint="leave that out: each host is one node")
    if own_network:
        raise UsageError(f"{words}boards", hint="name the boards with --hosts")
    raise UsageError(
        f"{' and '.join(given)} cannot be used with --kind {kind.kind}",
        hint="leave that out: this machine is the one node",
    )
