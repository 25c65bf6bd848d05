"""The machine that was measured: nodes, what they stand for, engines, security, prices."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis import dilation_words
from boardcluster.records import Fingerprint
from boardcluster.report import words
from boardcluster.report.details import nodes_table, setup_table
from boardcluster.report.parts import Part
from boardcluster.report.source import Source
from boardcluster.report.worth_part import Declared, prices_table
from boardcluster.units import format_bytes, format_rate

__all__ = ["machine_part"]

_SETUPS_SHOWN = 4


def machine_part(source: Source, declared: Declared) -> Part:
    """What ran on what; without runs, what is declared."""
    cluster = declared.cluster
    nodes = max((setup.nodes for setup in source.fingerprints), default=0)
    emulated = cluster is not None and bool(cluster.capabilities.mark)
    tables = (
        setup_table(source),
        nodes_table(cluster),
        prices_table(declared.prices(nodes), emulated=emulated),
    )
    return Part(
        title="The machine",
        name="setup",
        text=tuple(_sentences(source)),
        tables=tuple(table for table in tables if table is not None),
    )


def _sentences(source: Source) -> list[str]:
    """What the cluster is, one sentence for each setup."""
    setups = source.fingerprints
    groups: dict[str, list[Fingerprint]] = {}
    for setup in setups:
        groups.setdefault(_setup(setup), []).append(setup)
    said = [_named(source, text, group) for text, group in list(groups.items())[:_SETUPS_SHOWN]]
    if len(groups) > _SETUPS_SHOWN:
        said.append(f"{len(groups) - _SETUPS_SHOWN} more kinds of setups are in the table.")
    dilations = {
        item.measurement.dilation for item in source.results if item.measurement is not None
    } - {1.0}
    if dilations:
        said.append(
            "Emulated boards ran slower than the real ones, by a time"
            f" {dilation_words(*dilations)}; times are the boards'."
        )
    if len(setups) > 1:
        said.append(
            f"There are {len(setups)} different setups; what differs among them is marked in the"
            " table, and numbers that pool them say so."
        )
    return said


def _named(source: Source, text: str, group: Sequence[Fingerprint]) -> str:
    """A sentence with the numbers of nodes, and the letters of the setups that it is true of."""
    letters = ", ".join(source.setup_letter(setup) for setup in group)
    several = "Setups" if len(group) > 1 else "Setup"
    name = f"{several} {letters}: " if len(source.fingerprints) > 1 else ""
    numbers = sorted({setup.nodes for setup in group})
    nodes = " or ".join(
        part for part in (", ".join(map(str, numbers[:-1])), str(numbers[-1])) if part
    )
    return f"{name}{nodes} {text}"


def _setup(setup: Fingerprint) -> str:
    """What a setup is, apart from its number of nodes."""
    link = f", linked at {format_rate(setup.link_bits_per_second)}"
    stands = f", which stand for {setup.twin}" if setup.twin else ""
    memory = format_bytes(setup.node_memory_bytes, binary=True)
    return (
        f"{setup.noun}{stands}{link if setup.link_bits_per_second else ''}, the smallest worker"
        f" with {words.count(setup.node_cores, 'core')} and {memory}; Hadoop {setup.hadoop} and"
        f" Spark {setup.spark} on Java {setup.java}, profile {setup.profile};"
        f" {words.SECURITY[setup.security]}."
    )
