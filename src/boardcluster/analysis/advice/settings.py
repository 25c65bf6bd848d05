"""Where the settings that advice speaks of are, in the words of the files and commands."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "DEFAULT_PROFILE",
    "engine_settings",
    "matrix_key",
    "network_key",
    "node_key",
    "parameter",
    "policy_key",
]

DEFAULT_PROFILE = '`profile = "default"` in `[cluster]` of cluster.toml'
"""The profile that sizes everything for the nodes."""


def matrix_key(assignment: str) -> str:
    """A key of the campaign's cells: ``replication = 1``."""
    return f"`{assignment}` in `[[matrix]]` of campaign.toml"


def policy_key(assignment: str) -> str:
    """A key of the whole campaign: ``trim = true``."""
    return f"`{assignment}` in `[campaign]` of campaign.toml"


def parameter(workload: str, name: str, value: int) -> str:
    """A parameter of a workload, in a campaign and on the command line."""
    return (
        f"`{name} = {value}` in `[matrix.parameters.{workload}]` of campaign.toml, or"
        f" `boardcluster run {workload} --set {name}={value}`"
    )


def engine_settings(settings: Mapping[str, str]) -> str:
    """Properties of the engines: in a campaign, in the cluster, or as a profile of one's own."""
    rows = ", ".join(f'`"{key}" = "{settings[key]}"`' for key in sorted(settings))
    places = "`[matrix.settings]` of campaign.toml or `[settings]` of cluster.toml"
    return f"{rows} in {places}" if rows else f"nothing in {places}"


def network_key(assignment: str) -> str:
    """A key of the network: ``link = "1 Gbit/s"``."""
    return f"`{assignment}` in `[network]` of cluster.toml"


def node_key(node: str, assignment: str) -> str:
    """A key of a node: ``memory = "3 GiB"``."""
    return f"`{assignment}` of {node} in its `[[node]]` of cluster.toml"
