"""What two fingerprints differ in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from boardcluster.records import Fingerprint

__all__ = ["differences", "differences_among"]

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


def differences(first: Fingerprint, second: Fingerprint) -> tuple[str, ...]:
    """Name what differs, one line each: ``kernel: 6.1 aarch64, 6.6 aarch64``.

    What earlier versions did not record is no difference where one of the two does not say it.
    Where nothing is named, the two may be compared without a remark.
    """
    found: list[str] = []
    for item in dataclasses.fields(Fingerprint):
        name = item.name
        one, other = getattr(first, name), getattr(second, name)
        if one == other or name in _SAID or (name in _LATER and not (one and other)):
            continue
        words = _WORDS.get(name, name.replace("_", " "))
        if name == "hardware":
            found += _by_node("board", first.hardware, second.hardware)
        elif name == "limits":
            found += _by_node("limits of", first.limits.splitlines(), second.limits.splitlines())
        elif name == "twin":
            found.append(f"{words}: {one or 'none'}; {other or 'none'}")
        elif name == "kernel_command_line":
            found.append(f"{words}: {_words_of_lines(one, other)}")
        elif name in _DIGESTS:
            found.append(words)
        else:
            found.append(f"{words}: {one}, {other}")
    return tuple(found)


def differences_among(fingerprints: Iterable[Fingerprint]) -> tuple[str, ...]:
    """Name what differs among several, each against the first; empty if none does."""
    rows = list(fingerprints)
    lines = [line for other in rows[1:] for line in differences(rows[0], other)]
    return tuple(dict.fromkeys(lines))


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
