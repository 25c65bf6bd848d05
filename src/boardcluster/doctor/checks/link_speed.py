"""The cluster's links run at 1 Gbit/s or more, over cables.

- Wireless, half duplex, or below 1 Gbit/s. Fix: a cable with all eight wires and a gigabit switch.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.records import Link
from boardcluster.units import format_rate

__all__ = ["CHECK"]

_WANTED_BITS_PER_SECOND = 10**9


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        own = [link for link in board.facts.links if _holds(link, board.spec.address)]
        if not own:
            continue
        link, rate = own[0], own[0].speed_bits_per_second
        if link.wireless:
            yield Fault(
                f"{link.name}, which has its address, is wireless",
                node=board.name,
                fix="plug in a cable, and declare the address of eth0 in cluster.toml",
            )
        elif link.duplex == "half" or (rate is not None and rate < _WANTED_BITS_PER_SECOND):
            half = ", half duplex" if link.duplex == "half" else ""
            yield Fault(
                f"{link.name} runs at {format_rate(rate or 0)}{half}",
                node=board.name,
                fix="use a cable with all eight wires (Cat 5e) and a gigabit switch; a Raspberry "
                "Pi 3 or older has no faster port",
            )


def _holds(link: Link, address: str) -> bool:
    return any(one.partition("/")[0] == address for one in link.addresses)


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Rate, duplex and kind of the interface that holds each board's address.",
    why="One bad wire makes a link fall back to 100 Mbit/s, 12 MB/s: replication and shuffle of "
    "the whole cluster wait for that board. Radio is slower and changes from minute to minute.",
    source="IEEE 802.3, clauses 28 and 40 (1000BASE-T uses four pairs); Linux, "
    "Documentation/ABI/testing/sysfs-class-net",
    severity=Severity.WARNING,
    look=_look,
    good="no link is wireless, half duplex or slow",
)
