"""Options that several commands share, and the folders they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.errors import UsageError

__all__ = [
    "CacheOption",
    "ClusterOption",
    "HomeOption",
    "JsonOption",
    "cache_folder",
    "home_folder",
]

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="BOARDCLUSTER_HOME",
        help="State folder of the cluster. Default: one per --cluster in the user's data folder.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option("--cluster", "-c", envvar="BOARDCLUSTER_CLUSTER", help="Which cluster, by name."),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        envvar="BOARDCLUSTER_CACHE",
        help="Folder of fetched engines and data. Default: the user's cache folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / default


def home_folder(home: Path | None, cluster: str) -> Path:
    """Return the state folder: ``--home``, or one per cluster in XDG_DATA_HOME.

    Raises:
        UsageError: the name would leave that folder.
    """
    if home is not None:
        return home.expanduser().absolute()
    if not cluster or "/" in cluster or cluster.startswith("."):
        raise UsageError(
            f"{cluster!r} is not a name for a cluster", hint="use letters, digits and hyphens"
        )
    return _xdg("XDG_DATA_HOME", ".local/share") / "boardcluster" / cluster


def cache_folder(cache: Path | None) -> Path:
    """Return the cache folder: ``--cache``, or the one in XDG_CACHE_HOME."""
    if cache is not None:
        return cache.expanduser().absolute()
    return _xdg("XDG_CACHE_HOME", ".cache") / "boardcluster"
