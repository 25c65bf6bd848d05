"""``boardcluster inventory``: the boards of a cluster as an Ansible inventory."""

from __future__ import annotations

import sys

from boardcluster.cli.options import ChosenCluster
from boardcluster.errors import UsageError
from boardcluster.services.declaration import read_spec
from boardcluster.spec.inventory import render_inventory

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster inventory > hosts.yml"


def command(at: ChosenCluster) -> None:
    """Print the boards of a cluster as an Ansible inventory (YAML), for other tools."""
    spec = read_spec(at.folder() / "cluster.toml")
    if not spec.capabilities.over_ssh:
        raise UsageError(
            f"nodes of the kind {spec.kind} cannot be reached by other tools",
            hint="choose a cluster of boards with --cluster or --home",
        )
    sys.stdout.write(render_inventory(spec))
