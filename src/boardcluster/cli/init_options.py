"""The options of ``init`` that are about boards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["BoardOptions"]


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """What is said of boards on the command line."""

    hosts: Annotated[
        str,
        typer.Option(
            "--hosts",
            help="Boards instead of emulated nodes: what ssh reaches them by, joined by commas.",
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
            "--master", help="Which board is the master. Default: the first.", show_default=False
        ),
    ] = ""
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the boards' host keys without asking.")
    ] = False
    insecure_lab: Annotated[
        bool,
        typer.Option(
            "--insecure-lab",
            help="Leave boards OPEN to their network, as the papers had them; only to compare.",
        ),
    ] = False
