"""Run by the driver of test boards: provisions one board over real SSH, as boardcluster does.

The request stands on standard input: the verb, the node, the cluster. The changes are printed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boardcluster.errors import BoardclusterError
from boardcluster.records import ClusterSpec, Egress, NetworkSpec, NodeSpec, Role, Security
from boardcluster.remote.hostkeys import HostKey, learn, trust
from boardcluster.remote.ssh import SshRemote, SshRoute
from boardcluster.services.provision import provisioning
from boardcluster.services.provision.desired import Ground, desired
from boardcluster.services.provision.node.guards import CONFIRM_SECONDS
from boardcluster.services.provision.provisioning import Change, apply, plan, uninstall
from boardcluster.services.provision.resources import tree_of

FOLDER = "/var/lib/boardcluster"


def cluster(request: dict[str, Any]) -> ClusterSpec:
    nodes = tuple(
        NodeSpec(
            name=name,
            roles=frozenset({Role.WORKER, *([Role.MASTER] if place == 0 else [])}),
            cores=2,
            memory_bytes=1 << 32,
            host=name,
            address=address,
            folder=FOLDER,
        )
        for place, (name, address) in enumerate(request["nodes"].items())
    )
    return ClusterSpec(
        name="lab",
        kind="boards",
        engines="none",
        profile="default",
        network=NetworkSpec(
            subnet=request["subnet"],
            link_bits_per_second=10**9,
            open_ports=tuple(request.get("open_ports", ())),
            ssh_from=tuple(request.get("ssh_from", ())),
            egress=Egress(request.get("egress", Egress.ANY)),
        ),
        security=Security(request["security"]),
        nodes=nodes,
    )


def perform(request: dict[str, Any], remote: SshRemote) -> list[Change]:
    verb = request["verb"]
    if verb in ("uninstall", "plan_uninstall"):
        dry = verb == "plan_uninstall"
        return uninstall(remote, keep_data=request["keep_data"], dry_run=dry)
    spec = cluster(request)
    node = next(node for node in spec.nodes if node.name == request["node"])
    trees = [tree_of(Path(path), f"/opt/boardcluster/{name}") for name, path in request["trees"]]
    ground = Ground(architecture=request["architecture"], systemd=False)
    wanted = desired(spec, node, ground, packages=request["packages"], trees=trees)
    if verb == "plan":
        return plan(remote, wanted)
    return apply(remote, wanted)


def hurry(seconds: int) -> None:
    """Have a firewall taken back after less time than a user gets."""
    modules = provisioning._modules()
    written = f"CONFIRM_SECONDS = {CONFIRM_SECONDS}\n"
    assert any(written in text for _, text in modules)
    made = [
        (name, text.replace(written, f"CONFIRM_SECONDS = {seconds}\n")) for name, text in modules
    ]
    provisioning._modules = lambda: made  # type: ignore[assignment]


def main() -> None:
    request = json.load(sys.stdin)
    if "confirm_seconds" in request:
        hurry(request["confirm_seconds"])
    name = request["node"]
    known_hosts = Path(request["known_hosts"])
    if not known_hosts.exists():
        trust(known_hosts, [key for key in learn([name]).values() if isinstance(key, HostKey)])
    # Named as drivers name theirs, which remove what killed ones left.
    with tempfile.TemporaryDirectory(prefix=f"bc-{os.getpid()}-") as control:
        route = SshRoute(host=name, known_hosts=known_hosts, control=Path(control))
        remote = SshRemote(name, route, user="root", jobs="/run/boardcluster")
        close = remote.close
        if before := request.get("before_coming_back"):
            remote.close = lambda: (close(), os.system(before))  # type: ignore[method-assign,assignment]
        try:
            answer: dict[str, Any] = {"changes": [asdict(row) for row in perform(request, remote)]}
        except BoardclusterError as error:
            answer = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
        finally:
            remote.close()
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
