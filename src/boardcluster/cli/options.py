"""Options that several commands share, and the folders they stand for."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cluster.state import load_state
from boardcluster.errors import ClusterNotUpError, UsageError
from boardcluster.services.operation import read_spec

__all__ = [
    "INSECURE_WARNING",
    "CacheOption",
    "ClusterOption",
    "HomeOption",
    "JsonOption",
    "SettingOption",
    "WithoutOption",
    "again",
    "cache_folder",
    "home_folder",
    "named_nodes",
    "require_cluster",
]

INSECURE_WARNING = (
    "INSECURE LAB: everybody in its network can take this cluster over, and its boards with it"
)

_NAME = re.compile(r"(?![.-])[A-Za-z0-9._+@-]+")
_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9._/+@-]")
"""Hadoop's URIs and Spark's class paths break on spaces, on non-ASCII and on much between."""

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
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="Go on without this board, which is gone; repeat for several.",
        show_default=False,
    ),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--setting", help="A property of the engines for its jobs, KEY=VALUE; repeat for several."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path("~") / default


def _usable(folder: Path, *, options: str) -> Path:
    """Return the folder's whole path if Hadoop and Spark can work in it."""
    try:
        whole = folder.expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(
            f"{folder} has no meaning: {error}", hint=f"name another folder with {options}"
        ) from error
    if bad := sorted(set(_NOT_IN_PATHS.findall(str(whole)))):
        raise UsageError(
            f"Hadoop and Spark cannot work in the folder {str(whole)!r}: its path holds "
            f"{', '.join(map(repr, bad))}",
            hint=f"choose a path of letters a-z, digits and . _ / + @ - with {options}",
        )
    return whole


def again(home: Path | None, cluster: str) -> str:
    """Return the options that name the same cluster again; none for the default one."""
    if home is not None:
        return f" --home {shlex.quote(str(home))}"
    return "" if cluster == "default" else f" --cluster {shlex.quote(cluster)}"


def require_cluster(folder: Path, *, options: str) -> None:
    """Refuse a folder that holds no cluster before anything is written into it.

    Args:
        folder: the state folder.
        options: what ``again`` returned for it.

    Raises:
        ClusterNotUpError: nothing was made there.
    """
    if not any((folder / name).exists() for name in ("cluster.toml", "state.json")):
        raise ClusterNotUpError(
            f"there is no cluster in {folder}",
            hint=f"run `boardcluster init{options}` and `boardcluster up{options}` first, or name "
            "another cluster with --cluster or --home",
        )


def home_folder(home: Path | None, cluster: str) -> Path:
    """Return the state folder: ``--home``, or one per cluster in XDG_DATA_HOME.

    Raises:
        UsageError: the name would leave that folder, or Hadoop and Spark cannot work there.
    """
    if home is None and not _NAME.fullmatch(cluster):
        raise UsageError(
            f"{cluster!r} is not a name for a cluster", hint="use letters, digits and hyphens"
        )
    folder = home or _xdg("XDG_DATA_HOME", ".local/share") / "boardcluster" / cluster
    return _usable(folder, options="--home")


def cache_folder(cache: Path | None) -> Path:
    """Return the cache folder: ``--cache``, or the one in XDG_CACHE_HOME.

    Raises:
        UsageError: Hadoop and Spark cannot work there.
    """
    return _usable(cache or _xdg("XDG_CACHE_HOME", ".cache") / "boardcluster", options="--cache")


def named_nodes(folder: Path, names: Sequence[str] | None) -> frozenset[str]:
    """Return the nodes that an option names.

    Args:
        folder: the cluster's state folder.
        names: what the option says; None if it was not given.

    Raises:
        UsageError: the cluster has no such node; names those it has.
        SpecError: its specification is missing or wrong.
    """
    if not names:
        return frozenset()
    spec = read_spec(folder / "cluster.toml")
    if spec.kind != "boards":
        raise UsageError(
            "--without is for boards: emulated nodes end together", hint="leave it out"
        )
    known = [node.name for node in spec.nodes]
    if state := load_state(folder):  # a board may have been taken out of the file since
        known += [node.name for node in state.nodes if node.name not in known]
    for name in names:
        if name not in known:
            raise UsageError(
                f"the cluster has no node {name!r}", hint=f"its nodes: {', '.join(known)}"
            )
    return frozenset(names)
