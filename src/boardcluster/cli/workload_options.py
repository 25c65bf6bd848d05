"""Options of the commands that run a workload: its input and its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.request import DEFAULT_SIZE

__all__ = ["InputOption", "InputSizeOption", "ParameterOption"]

InputSizeOption = Annotated[
    str | None,
    typer.Option("--size", help=f"Input size. Default: {DEFAULT_SIZE}, or the whole of --input."),
]
InputOption = Annotated[
    Path | None,
    typer.Option("--input", help="Your own text file. Default: real flights (see `data`)."),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the workload, NAME=VALUE; repeat for several."),
]
