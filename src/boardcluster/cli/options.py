"""Options that several commands share, and the folders they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cluster.folders import again, cache_folder, home_folder, require_cluster
from boardcluster.errors import UsageError
from boardcluster.units import parse_size

__all__ = [
    "CacheOption",
    "ChosenCluster",
    "ClusterOption",
    "HomeOption",
    "JsonOption",
    "SettingOption",
    "WithoutOption",
    "again",
    "cache_folder",
    "home_folder",
    "named_nodes",
    "parse_size_option",
    "require_cluster",
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
    typer.Option("--cluster", "-c", envvar="BOARDCLUSTER_CLUSTER", help="Name of the cluster."),
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
        help="Continue without this board, which is gone; repeat for several.",
        show_default=False,
    ),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--setting", help="An engine property for the jobs, KEY=VALUE; repeat for several."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@dataclass(frozen=True, slots=True)
class ChosenCluster:
    """Which cluster a command is about."""

    home: HomeOption = None
    cluster: ClusterOption = "default"

    def folder(self, *, only_read: bool = False) -> Path:
        """Return its state folder."""
        return home_folder(self.home, self.cluster, only_read=only_read)

    @property
    def again(self) -> str:
        """The options that name it again, for hints; empty for the default one."""
        return again(self.home, self.cluster)


def named_nodes(folder: Path, names: Sequence[str] | None) -> frozenset[str]:
    """Return the nodes that an option names.

    Raises:
        UsageError: the cluster has no such node; names those it has.
        SpecError: its specification is missing or wrong.
    """
    if not names:
        return frozenset()
    from boardcluster.cluster.state import load_state  # noqa: PLC0415  slow to load
    from boardcluster.services.declaration import read_spec  # noqa: PLC0415

    spec = read_spec(folder / "cluster.toml")
    if not spec.capabilities.over_ssh:
        raise UsageError(
            f"--without can only be used with boards: nodes of the kind {spec.kind} stop together",
            hint="leave it out",
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


def parse_size_option(text: str | None) -> int | None:
    """Parse ``--size``.

    Raises:
        UsageError: it is not a size.
    """
    if text is None:
        return None
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--size: {error}", hint="for example --size 256MB") from error
    if size_bytes < 1:
        raise UsageError("--size must be at least 1 byte", hint="for example --size 256MB")
    return size_bytes
