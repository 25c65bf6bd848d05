"""``boardcluster inventory``: the boards of a cluster as an Ansible inventory."""

from __future__ import annotations

import sys

import typer

from boardcluster.cli.options import ClusterOption, HomeOption, home_folder
from boardcluster.errors import UsageError
from boardcluster.services import operation
from boardcluster.spec import render_inventory

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="inventory", epilog="Example: boardcluster inventory > hosts.yml")(_inventory)


def _inventory(home: HomeOption = None, cluster: ClusterOption = "default") -> None:
    """Print the boards of a cluster as an Ansible inventory (YAML), for other tools."""
    spec = operation.read_spec(home_folder(home, cluster) / "cluster.toml")
    if not spec.capabilities.over_ssh:
        raise UsageError(
            f"nodes of the kind {spec.kind} cannot be reached by other tools",
            hint="choose a cluster of boards with --cluster or --home",
        )
    sys.stdout.write(render_inventory(spec))
