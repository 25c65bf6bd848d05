"""What fingerprints differ in, and which of them may be pooled."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from boardcluster.records import Fingerprint
from boardcluster.units import format_bytes_exact, format_rate_exact

__all__ = [
    "OF_A_BOARD",
    "OF_NODES",
    "OWN_FILES",
    "board_and_medium",
    "boards_among",
    "compared",
    "differences",
    "differences_among",
    "machines_among",
    "same_setup",
    "setups_among",
]

_Key = TypeVar("_Key", bound=Hashable)

_MEDIA = re.compile(r"(?i)\b(?:nvme|ssd|microsd|sd|emmc|usb|hdd|ufs|disk|virtio)\b.*")

_WORDS = {
    "config_sha256": "generated configuration",
    "cpu": "CPU",
    "cpu_cores": "number of cores",
    "java": "Java",
    "hadoop": "Hadoop",
    "spark": "Spark",
    "os": "operating system",
    "memory_bytes": "memory",
    "nodes": "number of nodes",
    "node_memory_bytes": "memory of the smallest worker",
    "node_cores": "cores of the smallest worker",
    "link_bits_per_second": "rate of the links",
    "kind": "kind of nodes",
    "blas": "BLAS",
    "numa": "NUMA setting",
    "twin": "boards that nodes stand for",
}
_DIGESTS = ("config_sha256",)  # whose values say nothing to a person
_SAID = ("emulated",)  # which the kind of nodes says already
_LATER = ("kernel_command_line", "blas", "numa", "governor")
OF_NODES = ("nodes", "hardware", "limits", "twin", "config_sha256")
"""What follows from the number of workers, say, so that it tells setups of one cell apart only."""
OF_A_BOARD = "; of a board with "
"""What stands in a line of ``Fingerprint.limits`` between what the kernel gives and what the board
has. The first follows from the speed of this machine, which is measured anew at each start: only
the second tells setups apart. Lines of earlier versions have the first alone."""
OWN_FILES = ", of own files "
"""What stands at the end of what the board has, before the names and digests of users' own files
that say so; not there where all parts are of the catalog."""
_APART = ("boardcluster", "profile", "security", "emulated")
"""Our own version, which by itself changes no job, and what cells are told apart by already."""
_FOLLOWING = ("config_sha256", "limits", "nodes", "node_memory_bytes", "node_cores")
"""What mostly follows from other properties, so that it is named only where these are the same."""


def differences(first: Fingerprint, second: Fingerprint) -> tuple[str, ...]:
    """Name what differs, one line each: ``kernel: 6.1 aarch64, 6.6 aarch64``.

    What earlier versions did not record is no difference where one of the two does not say it.
    Where nothing is named, the two may be compared without a remark.
    """
    found: list[str] = []
    for item in dataclasses.fields(Fingerprint):
        name = item.name
        one, other = compared(first, name), compared(second, name)
        if one == other or name in _SAID or (name in _LATER and not (one and other)):
            continue
        words = _WORDS.get(name, name.replace("_", " "))
        if name == "hardware":
            found += _by_node("board", first.hardware, second.hardware)
        elif name == "limits":
            found += _by_node("limits of", one.splitlines(), other.splitlines())
        elif name == "twin":
            found.append(f"{words}: {one or 'none'}; {other or 'none'}")
        elif name == "kernel_command_line":
            found.append(f"{words}: {_words_of_lines(one, other)}")
        elif name in _DIGESTS:
            found.append(words)
        else:
            found.append(f"{words}: {_value_words(name, one)}, {_value_words(name, other)}")
    return tuple(found)


def _value_words(name: str, value: Any) -> str:
    """One property in words: amounts with their unit, and exactly, as they tell setups apart."""
    if name.endswith("_bytes"):
        return format_bytes_exact(value)
    return format_rate_exact(value) if name.endswith("_bits_per_second") else str(value)


def differences_among(fingerprints: Iterable[Fingerprint]) -> tuple[str, ...]:
    """Name what differs among several, each against the first; empty if none does."""
    rows = list(fingerprints)
    lines = [line for other in rows[1:] for line in differences(rows[0], other)]
    return tuple(dict.fromkeys(lines))


def machines_among(fingerprints: Iterable[Fingerprint]) -> tuple[str, ...]:
    """Name what of the machine and its software differs among several; that of nodes is left out.

    For results of emulated boards, whose nodes differ on purpose.
    """
    rows = tuple(fingerprints)
    of_nodes = {*OF_NODES, *_FOLLOWING, *_APART, "link_bits_per_second"}
    names = (item.name for item in dataclasses.fields(Fingerprint) if item.name not in of_nodes)
    return tuple(_WORDS.get(name, name.replace("_", " ")) for name in names if _divides(name, rows))


def boards_among(fingerprints: Iterable[Fingerprint]) -> tuple[str, ...]:
    """Name the emulated nodes whose boards had other figures or files in some of several.

    A node that only some have is no difference, as one variant of a cluster has fewer. What lines
    of earlier versions do not say is none either.
    """
    had: dict[str, set[str]] = {}
    for found in fingerprints:
        for line in found.limits.splitlines():
            given, is_said, board = line.partition(OF_A_BOARD)
            if is_said:
                had.setdefault(given.partition(": ")[0], set()).add(board)
    return tuple(name for name, boards in had.items() if len(boards) > 1)


def board_and_medium(line: str) -> tuple[str, str]:
    """Return what a line of ``Fingerprint.hardware`` says of a board and its medium; "" for none.

    Its clock, its memory as the kernel counts it, and its link are not in it.
    """
    board, *parts = line.partition(": ")[2].split(", ")
    return board, next((part for part in parts if _MEDIA.match(part)), "")


def setups_among(
    groups: Mapping[_Key, Iterable[Fingerprint]],
) -> dict[tuple[_Key, Fingerprint], tuple[tuple[str, str], ...]]:
    """Say of each fingerprint what tells its setup from others that are in a group with it.

    Runs of one group whose setups differ in anything that can change the number must not be pooled.
    A property of the machine or the software by which any group is divided is named in all groups,
    so that cells of the same setup find each other, or in none if it follows from others in all;
    one of the nodes only in the groups that it divides. What earlier versions did not record is no
    difference, where all others say the same.

    Args:
        groups: fingerprints of runs that are otherwise alike.

    Returns:
        By group and fingerprint, what it is by the name of the field; empty where nothing differs.
    """
    rows = {key: tuple(dict.fromkeys(group)) for key, group in groups.items()}
    names = [item.name for item in dataclasses.fields(Fingerprint) if item.name not in _APART]
    dividing = {key: [name for name in names if _divides(name, row)] for key, row in rows.items()}
    common = {name for found in dividing.values() for name in found if name not in OF_NODES}
    own = {key: [name for name in names if name in common or name in dividing[key]] for key in rows}
    for name in _FOLLOWING:
        following = [key for key, row in rows.items() if _follows(name, own[key], row)]
        if name not in common or len(following) == len(rows):
            for key in following:
                own[key] = [other for other in own[key] if other != name]
    return {
        (key, found): tuple((name, _setup_words(name, found, row)) for name in own[key])
        for key, row in rows.items()
        for found in row
    }


def _follows(name: str, names: Sequence[str], row: Sequence[Fingerprint]) -> bool:
    """Whether the other properties tell as many setups apart as with this one."""
    others = [other for other in names if other != name]
    return len({_values(found, others) for found in row}) == len(
        {_values(found, names) for found in row}
    )


def _divides(name: str, row: Sequence[Fingerprint]) -> bool:
    values = {compared(found, name) for found in row}
    return len(values - {""} if name in _LATER else values) > 1


def _values(found: Fingerprint, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(compared(found, name) for name in names)


def compared(found: Fingerprint, name: str) -> Any:
    """Return a property as far as it tells setups apart."""
    value = getattr(found, name)
    if name != "limits":
        return value
    parts = (line.partition(": ") for line in value.splitlines())
    return "\n".join(
        f"{node}{colon}{rest.partition(OF_A_BOARD)[2] or rest}" for node, colon, rest in parts
    )


@functools.lru_cache(maxsize=1024)  # a report asks for each of many runs
def same_setup(found: Fingerprint) -> tuple[Any, ...]:
    """Return what is equal for fingerprints of one setup."""
    return tuple(compared(found, item.name) for item in dataclasses.fields(Fingerprint))


def _setup_words(name: str, found: Fingerprint, row: Sequence[Fingerprint]) -> str:
    """Words for one property of a setup; empty where it has nothing that others lack."""
    value = compared(found, name)
    words = _WORDS.get(name, name.replace("_", " "))
    if name == "twin":
        return str(value)
    if name in _DIGESTS:
        return f"{words} {value[:8]}"
    if name in ("hardware", "limits"):
        lines = {other: _lines(compared(other, name)) for other in row}
        common = set.intersection(*(set(own) for own in lines.values()))
        return "; ".join(line for line in lines[found] if line not in common)
    return f"{words} {_value_words(name, value)}" if value else f"{words} not recorded"


def _lines(value: str | tuple[str, ...]) -> Sequence[str]:
    return value.splitlines() if isinstance(value, str) else value


def _by_node(what: str, first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Name the nodes whose lines differ."""
    one, other = (dict(_parted(line) for line in lines) for lines in (first, second))
    return [
        f"{what} {name}: {one.get(name, 'not there')}; {other.get(name, 'not there')}"
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    ]


def _parted(line: str) -> tuple[str, str]:
    name, _, rest = line.partition(": ")
    return name, rest


def _words_of_lines(first: str, second: str) -> str:
    """What only one of two command lines has."""
    one, other = first.split(), second.split()
    only = [f"{word} only in the first" for word in one if word not in other]
    only += [f"{word} only in the second" for word in other if word not in one]
    return ", ".join(only) or "another order of the same words"
