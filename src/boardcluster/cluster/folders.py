"""Where clusters and the cache are: named by the user, or the user's own folders."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from boardcluster.errors import ClusterError, ClusterNotUpError, UsageError

__all__ = [
    "again",
    "cache_folder",
    "home_folder",
    "require_cluster",
    "require_home",
    "sibling_homes",
]

_NAME = re.compile(r"(?![.-])[A-Za-z0-9._+@-]+")
_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9._/+@-]")
"""Hadoop's URIs and Spark's class paths break on spaces, on non-ASCII and on much between."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path("~") / default


def _absolute(folder: Path, *, options: str) -> Path:
    try:
        return folder.expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(
            f"cannot resolve {folder}: {error}", hint=f"name another folder with {options}"
        ) from error


def _usable(folder: Path, *, options: str) -> Path:
    """Return the folder's whole path if Hadoop and Spark can work in it."""
    whole = _absolute(folder, options=options)
    if bad := sorted(set(_NOT_IN_PATHS.findall(str(whole)))):
        raise UsageError(
            f"Hadoop and Spark cannot work in the folder {str(whole)!r}: its path contains "
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
    """Refuse a state folder without a cluster before anything is written into it.

    ``options`` name the folder, as ``again`` returns them.

    Raises:
        ClusterNotUpError: nothing was made there.
    """
    if not any((folder / name).exists() for name in ("cluster.toml", "state.json")):
        raise ClusterNotUpError(
            f"there is no cluster in {folder}",
            hint=f"run `boardcluster init{options}` and `boardcluster up{options}` first, or name "
            "another cluster with --cluster or --home",
        )


def require_home(folder: Path) -> None:
    """Refuse a state folder that does not exist, so that a misspelt name is not an empty store.

    Raises:
        ClusterError: it does not exist.
    """
    if not folder.is_dir():
        raise ClusterError(
            f"there is no cluster in {folder}", hint="name it with --cluster or --home"
        )


def home_folder(home: Path | None, cluster: str, *, only_read: bool = False) -> Path:
    """Return the state folder: ``--home``, or one per cluster in XDG_DATA_HOME.

    If it is ``only_read``, any path will do, such as that of a copy: no engine works there.

    Raises:
        UsageError: the name would leave that folder, or Hadoop and Spark cannot work there.
    """
    if home is None and not _NAME.fullmatch(cluster):
        raise UsageError(
            f"{cluster!r} is not a valid cluster name", hint="use letters, digits and hyphens"
        )
    folder = home or _xdg("XDG_DATA_HOME", ".local/share") / "boardcluster" / cluster
    return _absolute(folder, options="--home") if only_read else _usable(folder, options="--home")


def sibling_homes(home: Path | None) -> Callable[[str], Path]:
    """Return what finds the state folder of a cluster by its name.

    Args:
        home: the state folder that was named; others are sought beside it first. None where none
            was named, and all clusters have their usual place.
    """

    def found(name: str) -> Path:
        if home is not None and (home.absolute().parent / name).is_dir():
            return home.absolute().parent / name
        return home_folder(None, name)

    return found


def cache_folder(cache: Path | None) -> Path:
    """Return the cache folder: ``--cache``, or the one in XDG_CACHE_HOME.

    Raises:
        UsageError: Hadoop and Spark cannot work there.
    """
    return _usable(cache or _xdg("XDG_CACHE_HOME", ".cache") / "boardcluster", options="--cache")
