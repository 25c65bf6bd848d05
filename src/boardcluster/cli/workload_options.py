"""Options of the commands that run a workload: its input, its parameters, and how to begin."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.begin import Start
from boardcluster.campaign.request import DEFAULT_SIZE
from boardcluster.errors import UsageError

__all__ = [
    "InputOption",
    "InputSizeOption",
    "ParameterOption",
    "chosen_start",
    "parse_parameters",
]

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


def parse_parameters(texts: Iterable[str] | None) -> dict[str, str]:
    """Return the parameters that --set gave.

    Raises:
        UsageError: one is not NAME=VALUE, or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--set {text!r} is not NAME=VALUE", hint="for example --set seed=2")
        if name.strip() in found:
            raise UsageError(
                f"--set: {name.strip()} is given twice",
                hint="give one value; a campaign file can vary it, in [matrix.parameters]",
            )
        found[name.strip()] = value
    return found


def chosen_start(*, go_on: bool, resume: bool, new: bool) -> Start:
    """Return how to begin, by --continue, --resume and --new.

    Raises:
        UsageError: the options contradict each other.
    """
    given = {Start.CONTINUE: go_on, Start.RESUME: resume, Start.NEW: new}
    asked = [start for start, said in given.items() if said]
    if len(asked) > 1:
        names = " and ".join(f"--{start}" for start in asked)
        raise UsageError(f"{names} contradict each other", hint="give one of them")
    return asked[0] if asked else Start.BEGIN
