"""``boardcluster tunnel``: open the web pages of boards through SSH."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from boardcluster.cli.console import say
from boardcluster.cli.options import ChosenCluster
from boardcluster.errors import AddressError, UsageError
from boardcluster.services.boards import WEB_PAGES, hold_tunnel
from boardcluster.services.declaration import read_spec

__all__ = ["EPILOG", "command"]

_HERE = "127.0.0.1"


EPILOG = "Example: boardcluster tunnel --socks 1080"


def command(
    at: ChosenCluster,
    offset: Annotated[
        int,
        typer.Option(min=0, max=40_000, help="Number to add to each port on this machine."),
    ] = 0,
    socks: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            help="Also open a SOCKS proxy on this port, through which links to every node work.",
        ),
    ] = 0,
) -> None:
    """Open the cluster's web pages on this machine until Ctrl-C. Only for boards.

    Boards show their pages only to each other. The tunnel opens those of the master to this
    machine, and to no other.
    """
    folder = at.folder()
    spec = read_spec(folder / "cluster.toml")
    if not spec.capabilities.over_ssh:
        raise UsageError(
            "the nodes of this cluster are on this machine, so no tunnel is needed",
            hint="open the addresses that `boardcluster status` shows",
        )
    pages = {name: port + offset for name, port in WEB_PAGES.items()}
    if socks in pages.values():
        raise UsageError(
            f"--socks {socks} is the port of one of the pages", hint="choose another, such as 1080"
        )
    _require_free([*pages.values(), *([socks] if socks else [])])
    for name, port in pages.items():
        say(f"  {name:<16} http://{_HERE}:{port}")
    if socks:
        say(f"  proxy            socks5h://{_HERE}:{socks}  (names of nodes resolve on the master)")
    say("open until Ctrl-C")
    hold_tunnel(folder, spec, pages=pages, socks=socks)


def _require_free(ports: list[int]) -> None:
    """Refuse ports that something on this machine listens on.

    Raises:
        AddressError: names the first.
    """
    for port in ports:
        try:
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((_HERE, port))
        except (OSError, OverflowError) as error:
            raise AddressError(
                f"port {port} of this machine cannot be used: {error}",
                hint="choose others, for example with --offset 1000 or --socks 1081",
            ) from error
