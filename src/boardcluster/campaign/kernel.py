"""How a node's kernel and its linear algebra are set up, for fingerprints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from boardcluster.errors import BoardclusterError
from boardcluster.redaction import redact
from boardcluster.remote.base import Remote
from boardcluster.units import format_count

__all__ = ["KernelSettings", "clean_command_line", "settings_on"]

_COMMAND_LINE = "/proc/cmdline"
_BALANCING = "/proc/sys/kernel/numa_balancing"
_NODES = "/sys/devices/system/node/online"
_ALTERNATIVES = "/etc/alternatives"
_BLAS = "libblas.so.3*"  # Debian: one link per architecture, which all programs load

_ID = "(id)"
_NAMED_IDS = re.compile(r"((?:part)?uuid|serial|macaddr|machine_id|hwaddr)=.*", re.IGNORECASE)
_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
    r"|\b[0-9a-f]{24,}\b",
    re.IGNORECASE,
)
_LONGEST_CHARACTERS = 2048  # as Linux allows on arm64 and x86


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """Settings of one machine; what could not be read is empty."""

    command_line: str
    """Of its kernel, cleaned."""
    blas: str
    """The library behind BLAS, by its folder and name."""
    numa: str
    """NUMA nodes and settings, in words."""


def settings_on(remote: Remote) -> KernelSettings:
    """Read a node's settings; a node that does not answer leaves them empty."""
    try:
        # Its status is not 0 where a file is missing; each line has its path before a colon.
        read = remote.run(["grep", "-sH", "", _COMMAND_LINE, _BALANCING, _NODES], check=False)
        found = remote.run(
            ["find", _ALTERNATIVES, "-maxdepth", "1", "-name", _BLAS, "-printf", "%f %l\\n"],
            check=False,
        )
    except BoardclusterError:
        return KernelSettings(command_line="", blas="", numa="")
    texts = dict(_parted(line, ":") for line in read.text.splitlines())
    links = dict(_parted(line, " ") for line in found.text.splitlines())
    return _settings(texts, links)


def _parted(line: str, mark: str) -> tuple[str, str]:
    first, _, rest = line.partition(mark)
    return first, rest


def _settings(texts: Mapping[str, str], links: Mapping[str, str]) -> KernelSettings:
    line = clean_command_line(texts.get(_COMMAND_LINE, ""))
    return KernelSettings(
        command_line=line,
        blas=_blas(links),
        numa=_numa(line, texts.get(_NODES, ""), texts.get(_BALANCING, "")),
    )


def clean_command_line(text: str) -> str:
    """A kernel's command line without secrets, and without what differs from card to card.

    Ids of disks, network cards and boards would make every board, and some every boot, a setup of
    its own; they say nothing about speed.
    """
    shown = [_without_ids(word) for word in redact(text.split())]
    return " ".join(shown)[:_LONGEST_CHARACTERS]


def _without_ids(word: str) -> str:
    return _IDS.sub(_ID, _NAMED_IDS.sub(rf"\1={_ID}", word))


def _blas(links: Mapping[str, str]) -> str:
    """The last folder names the build: ``openblas-pthread/libblas.so.3``."""
    places = {PurePosixPath(target) for target in links.values() if target}
    return ", ".join(sorted(f"{place.parent.name}/{place.name}" for place in places))


def _numa(command_line: str, nodes: str, balancing: str) -> str:
    count = _count(nodes.strip())
    parts = [format_count(count, "node")] if count else []
    if balancing.strip():
        parts.append("balancing off" if balancing.strip() == "0" else "balancing on")
    # A Raspberry Pi 4 or 5 adds numa=fake and policies by itself (raspberrypi/linux, pull 6273).
    parts += [word for word in command_line.split() if "numa" in word.partition("=")[0]]
    return ", ".join(parts)


def _count(ranges: str) -> int:
    """Count the numbers in ``0-3,7``; 0 if it is something else."""
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", ranges):
        return 0
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return max(0, total)
