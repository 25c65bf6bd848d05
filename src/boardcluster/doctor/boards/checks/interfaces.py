"""Each board has its declared address, on one interface in the cluster's network."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_interface, ip_network

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare declared addresses with those of the interfaces."""
    subnet = ip_network(view.spec.network.subnet)

    def judge(board: BoardView) -> Finding | None:
        here = {
            link.name: [one.ip for one in map(ip_interface, link.addresses) if one.ip in subnet]
            for link in board.facts.links
        }
        own = ip_address(board.spec.address)
        inside = [name for name, addresses in here.items() if addresses]
        if not any(own in addresses for addresses in here.values()):
            held = ", ".join(str(one) for addresses in here.values() for one in addresses)
            return fault(
                CHECK,
                board,
                f"{own}, its address in cluster.toml, is on no interface; in {subnet} it has "
                f"{held or 'none'}",
                severity=Severity.ERROR,
                fix="give the board that address (a fixed lease in the router, or a static one), "
                f"or correct `address` of {board.name} in cluster.toml",
            )
        if len(inside) > 1:
            others = [name for name in inside if own not in here[name]]
            return fault(
                CHECK,
                board,
                f"{' and '.join(inside)} are both in {subnet}",
                fix=board.there(f"sudo ip link set {(others or inside)[-1]} down")
                + "   (until the next boot; for good, switch it off in its configuration)",
            )
        return None

    yield from each(
        CHECK, view, judge, good=f"one interface in {subnet}, with the declared address"
    )


CHECK = Check(
    name="interfaces",
    looks_at="The addresses of every interface, against `address` and `subnet` in cluster.toml.",
    why="Daemons bind to the declared address and end if it is not there. With two interfaces in "
    "one network, Wi-Fi beside the cable, answers leave through either, and Open MPI opens "
    "connections on both and may wait for ever.",
    source='Open MPI FAQ, "Tuning the run-time characteristics of MPI TCP communications", '
    "btl_tcp_if_include; Linux, ip-sysctl, arp_filter",
    severity=Severity.ERROR,
    look=look,
)
