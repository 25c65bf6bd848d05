"""The host firewall of a board: SSH, the cluster's own addresses, and who may reach them. Pure.

The addresses of the cluster are believed for TCP only. A source address can be forged on the same
network, but a TCP connection needs the answer, which goes to the address's real owner. Only who
also makes the switch believe to own that address (ARP spoofing) gets through. Nothing of ours
speaks UDP between nodes.

A member cannot tell which account of another one connects, so each board holds its own accounts
back: the sender's user is known only where a packet is sent. Nor can it tell a container or another
guest whose packets a board masquerades, so each board holds these back where it forwards them.

Loading the table again lets nobody in. The kernel activates the new rules in one step, but sets the
policy of a new chain later, when the old chain may be gone already: what only the policy drops gets
in for some microseconds, one packet per load in a flood. Hence each chain ends with a rule. A
packet that passed the new chain before that step may still meet the old chain, which is empty by
then: hence the policy of every chain is drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from boardcluster.records import Egress

__all__ = ["FIREWALL_FILE", "TAKE_BACK", "render_firewall"]

FIREWALL_FILE = "/etc/boardcluster/firewall.nft"

TAKE_BACK = (
    "read -r boot < /proc/sys/kernel/random/boot_id;"
    ' for mark in "$1".pending-*; do'
    ' case $mark in "$1".pending-"$boot"-*) continue;; esac;'
    ' rm "$mark" 2>/dev/null || continue;'
    ' if [ -e "$1.former" ]; then mv "$1.former" "$1"; else rm -f "$1"; fi;'
    ' rm -f "$1.loaded";'
    " done"
)
"""Brings back the rules before those, in the file that is named, that nobody confirmed in the boot
in which they were loaded: see ``node/guards.py``."""

_TABLE = "inet boardcluster"

_ICMP = "destination-unreachable, echo-request, parameter-problem, time-exceeded"
_ICMPV6 = (
    "destination-unreachable, echo-request, packet-too-big, parameter-problem, time-exceeded, "
    "mld-listener-query, nd-neighbor-advert, nd-neighbor-solicit, nd-router-advert"
)
"""Without neighbour discovery and "packet too big" IPv6 does not work (RFC 4890, section 4.4)."""


_EGRESS = {
    Egress.ANY: "",
    Egress.MEMBERS: """
        # daemons and jobs reach members only, and no resolver, which would ask others for them
        meta skuid SERVICE_USER meta l4proto { tcp, udp } th dport 53 reject
        meta skuid SERVICE_USER oif "lo" accept
        meta skuid SERVICE_USER ip daddr @members accept
        meta skuid SERVICE_USER ct direction original reject with icmpx type admin-prohibited
""",
}
"""A packet without a sender's socket, such as the last one of a closed connection, matches no user
and passes; so do answers."""


def render_firewall(
    addresses: Sequence[str],
    *,
    service_ports: Sequence[int],
    open_ports: Sequence[str] = (),
    ssh_from: Sequence[str] = (),
    egress: Egress = Egress.ANY,
) -> str:
    """Return the table as a file for ``nft -f``, which loads all of it or nothing.

    SSH_PORT in it is replaced on the node by the port by which it is reached, so that no firewall
    can lock us out; SSH_OF_ALL by that and 22, by which others may be reached; SERVICE_USER by the
    number of the user who runs the cluster, and TRUSTED_USERS by root's, that one's, the number of
    the user who logs in and apt's. What a node forwards is restricted only towards members; what it
    asks for elsewhere, only for the service user.

    Args:
        addresses: IPv4 addresses of the cluster's nodes.
        service_ports: what the daemons bind, which is closed to others on the loopback, too.
        open_ports: what else is open to all, as ``"53/udp"``.
        ssh_from: networks that may reach SSH; none for everybody.
        egress: what daemons and jobs may reach.
    """
    ssh = "\n        ".join(_ssh_rules(ssh_from))
    own = _own_services(open_ports)
    return f"""\
#!/usr/sbin/nft -f
# Written by boardcluster; `boardcluster up` writes it again.
# The first two lines make sure that loading it replaces what was loaded before.
table {_TABLE} {{}}
delete table {_TABLE}

table {_TABLE} {{
    set members {{
        type ipv4_addr
        elements = {{ {", ".join(addresses)} }}
    }}

    chain input {{
        type filter hook input priority filter; policy drop;

        iif "lo" accept
        ct state established,related accept
        ct state invalid drop

        # SSH, by IPv4 and IPv6
        {ssh}
{own}
        # the cluster itself
        ip saddr @members tcp dport 1-65535 accept

        # what keeps the network working: errors, ping, neighbours, multicast groups
        icmp type {{ {_ICMP} }} accept
        icmpv6 type {{ {_ICMPV6} }} accept
        ip protocol igmp accept

        # answers to this node's requests for an address (DHCP)
        udp sport 67 udp dport 68 accept
        ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept

        # names in .local (multicast DNS)
        ip daddr 224.0.0.251 udp dport 5353 accept
        ip6 daddr ff02::fb udp dport 5353 accept

        # not left to the policy: the kernel sets that only after the rules
        drop
    }}

{_held_back(service_ports, open_ports, egress)}}}
"""


def _held_back(service_ports: Sequence[int], open_ports: Sequence[str], egress: Egress) -> str:
    free = ", ".join(["SSH_OF_ALL", *map(str, _numbers(open_ports, "tcp"))])
    served = ", ".join(map(str, sorted(set(service_ports))))
    return f"""\
    chain output {{
        type filter hook output priority filter; policy drop;

        # other accounts of this node reach no member, this node included
        meta skuid != {{ TRUSTED_USERS }} ct direction original jump strangers
{_EGRESS[egress]}
        # with the policy drop, a packet between the old table and the new one is not sent
        accept
    }}

    # guests of this node, such as containers: other members would take them for this one
    chain forward {{
        type filter hook forward priority filter; policy drop;

        ip saddr != @members ip daddr @members ct direction original jump strangers
        accept
    }}

    chain strangers {{
        ip daddr @members tcp dport != {{ {free} }} reject with tcp reset
        oif "lo" tcp dport {{ {served} }} reject with tcp reset
    }}
"""


def _own_services(open_ports: Sequence[str]) -> str:
    rules = "".join(f"        {rule}\n" for rule in _port_rules(open_ports))
    return f"\n        # services of the boards' own\n{rules}" if rules else ""


def _ssh_rules(networks: Sequence[str]) -> list[str]:
    if not networks:
        return ["tcp dport { SSH_PORT } accept"]
    families = {"ip": 4, "ip6": 6}
    rows = {
        family: [row for row in networks if ip_network(row).version == version]
        for family, version in families.items()
    }
    return [
        f"{family} saddr {{ {', '.join(found)} }} tcp dport {{ SSH_PORT }} accept"
        for family, found in rows.items()
        if found
    ]


def _port_rules(ports: Sequence[str]) -> list[str]:
    numbers = {protocol: _numbers(ports, protocol) for protocol in ("tcp", "udp")}
    return [
        f"{protocol} dport {{ {', '.join(map(str, found))} }} accept"
        for protocol, found in numbers.items()
        if found
    ]


def _numbers(ports: Sequence[str], protocol: str) -> list[int]:
    return sorted({int(row.partition("/")[0]) for row in ports if row.endswith(protocol)})
