"""Each board has its declared address, on one interface in the cluster's network.

- The declared address is on no interface (error). Fix: a fixed lease, or `address` in cluster.toml.
- Two interfaces in the cluster's network (error). Fix: switch one off.
"""

from ipaddress import ip_address, ip_interface, ip_network

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    subnet = ip_network(facts.declared.network.subnet)
    for board in facts.boards:
        here = {
            link.name: [one.ip for one in map(ip_interface, link.addresses) if one.ip in subnet]
            for link in board.facts.links
        }
        own = ip_address(board.spec.address)
        inside = [name for name, addresses in here.items() if addresses]
        if not any(own in addresses for addresses in here.values()):
            held = ", ".join(str(one) for addresses in here.values() for one in addresses)
            yield Fault(
                f"{own}, its address in cluster.toml, is on no interface; in {subnet} it has "
                f"{held or 'none'}",
                node=board.name,
                fix="give the board that address (a fixed lease in the router, or a static one), "
                f"or correct `address` of {board.name} in cluster.toml",
            )
        elif len(inside) > 1:
            others = [name for name in inside if own not in here[name]]
            yield Fault(
                f"{' and '.join(inside)} are both in {subnet}",
                node=board.name,
                fix=board.there(f"sudo ip link set {(others or inside)[-1]} down")
                + "   (until the next boot; permanently: switch it off in its configuration)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The addresses of every interface, against `address` and `subnet` in cluster.toml.",
    why="Daemons bind to the declared address and end if it is not there. With two interfaces in "
    "one network, such as Wi-Fi and cable, replies leave through either, and Open MPI opens "
    "connections on both and may wait forever.",
    source='Open MPI FAQ, "Tuning the run-time characteristics of MPI TCP communications", '
    "btl_tcp_if_include; Linux, ip-sysctl, arp_filter",
    severity=Severity.ERROR,
    look=_look,
    good="one interface in the cluster's network, with the declared address",
)
