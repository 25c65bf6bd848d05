"""``boardcluster dashboard``: the cluster and its runs on a page that stays open."""

from __future__ import annotations

import os
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import say
from boardcluster.cli.options import CacheOption, ChosenCluster, cache_folder
from boardcluster.web.server import LOOPBACK, Serving, serve

__all__ = ["EPILOG", "command"]


EPILOG = "Examples: boardcluster dashboard\n\nboardcluster dashboard --no-browser --control"


def command(
    at: ChosenCluster,
    cache: CacheOption = None,
    port: Annotated[
        int,
        typer.Option(min=1, max=65_535, help="Port to listen on, or the next free one."),
    ] = 8470,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening it.")
    ] = False,
    control: Annotated[
        bool,
        typer.Option(
            "--control", help="Let the page start and stop work, with a token that is printed."
        ),
    ] = False,
    address: Annotated[
        str,
        typer.Option(
            help="Address of this machine to listen on; any but loopback needs --certificate."
        ),
    ] = LOOPBACK,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file of a TLS certificate.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="PEM file of its private key. Default: in the same file.", show_default=False
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Listen on another address without encryption: others can read along."
        ),
    ] = False,
) -> None:
    """Show the cluster, the current run and all earlier runs on one page, until Ctrl-C.

    It also works without a network, and without a cluster: then it shows the store. It is read-only
    unless --control is given.
    """
    serving = Serving(
        home=at.folder(only_read=True),
        cache=cache_folder(cache),
        port=port,
        address=address,
        certificate=certificate,
        key=key,
        plain=plain,
        control=control,
    )
    try:
        serve(serving, say=say, opened=_nobody if no_browser else _open)
    except SystemExit as stopped:
        started = "; what was started from it continues" if control else ""
        stopped.add_note(f"the page is no longer served{started}")
        raise


def _nobody(_: str) -> None:
    """Open nothing."""


def _open(address: str) -> None:
    """Open the page, if there is a screen: in a terminal a text browser would take it over."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
