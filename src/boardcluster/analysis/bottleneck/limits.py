"""What the kernel let each emulated board have, read back from a result's fingerprint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from boardcluster.analysis.fingerprints import OF_A_BOARD
from boardcluster.records import Fingerprint
from boardcluster.units import parse_rate, parse_size

__all__ = ["NodeLimit", "node_limits", "parallel_disks"]

_NUMBER = r"(?<![0-9.])[0-9]+(?:\.[0-9]+)?"
_CORES = re.compile(rf"({_NUMBER}(?:e-[0-9]+)?) cores of this machine\b")
_BOARD_CORES = re.compile(r" cores of this machine as ([1-9][0-9]*) of the board\b")
_LINK = re.compile(rf"\blink ({_NUMBER} [kMG]?bit/s)")
_PARALLEL = re.compile(r"^([^:]+): .*, (?:nvme|ssd|usb-ssd)\b")
_DISK = re.compile(
    rf"\breading ({_NUMBER} [KMGT]?B)/s and [0-9]+ requests/s,"
    rf" writing ({_NUMBER} [KMGT]?B)/s and [0-9]+ requests/s"
)
_UNWRITTEN = re.compile(rf", at most ({_NUMBER} [KMGT]?B) unwritten\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimit:
    """What one emulated board could have, in the run's own time. None is no limit, or unknown."""

    cpu_cores: float | None = None
    """CPU time per second."""
    board_cores: int = 1
    """How many cores share it, of which a thread can have one. Older runs have 1: there a thread
    could have all of it."""
    read_bytes_per_second: float | None = None
    """Of its disk."""
    write_bytes_per_second: float | None = None
    """Of its disk."""
    unwritten_bytes: float | None = None
    """What may wait in memory to be written to it."""
    link_bits_per_second: float | None = None
    """In each direction."""


def node_limits(fingerprint: Fingerprint | None) -> Mapping[str, NodeLimit]:
    """Return the limits of emulated boards by node; empty for other nodes.

    The text is that of ``Fingerprint.limits``, rounded there to three digits. What a line does not
    say, or says in other words, is None.
    """
    lines = fingerprint.limits.splitlines() if fingerprint else []
    parted = (line.partition(OF_A_BOARD)[0].partition(": ") for line in lines)
    return {name: _limit(words) for name, _, words in parted if words}


def parallel_disks(fingerprint: Fingerprint | None) -> frozenset[str]:
    """Return the boards whose medium serves many requests at once: an SSD, by NVMe, SATA or USB.

    An SD card and a disk that turns serve one after the other. The lines are those of
    ``Fingerprint.hardware``; a board without one, or of unknown medium, is not in the set.
    """
    lines = fingerprint.hardware if fingerprint else ()
    return frozenset(found[1] for line in lines if (found := _PARALLEL.match(line)))


def _limit(words: str) -> NodeLimit:
    parts = _BOARD_CORES.search(words)
    cores, link, disk = _CORES.search(words), _LINK.search(words), _DISK.search(words)
    unwritten = _UNWRITTEN.search(words)
    return NodeLimit(
        cpu_cores=_positive(float(cores[1])) if cores else None,
        board_cores=int(parts[1]) if parts else 1,
        read_bytes_per_second=_positive(parse_size(disk[1])) if disk else None,
        write_bytes_per_second=_positive(parse_size(disk[2])) if disk else None,
        unwritten_bytes=_positive(parse_size(unwritten[1])) if unwritten else None,
        link_bits_per_second=_positive(parse_rate(link[1])) if link else None,
    )


def _positive(value: float) -> float | None:
    return value if value > 0 else None
