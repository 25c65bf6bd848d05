"""The machine that was measured: nodes, what they stand for, engines, security, prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis.twins import dilation_words
from boardcluster.records import ClusterSpec, Fingerprint, NodeSpec
from boardcluster.report import words
from boardcluster.report.efficiency_part import Declared, prices_table
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, present
from boardcluster.report.source import Source, letter
from boardcluster.report.tables import Column, Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes, format_rate

__all__ = ["machine_section", "setup_values"]

_SETUPS_SHOWN = 4
_MAY_BE_UNKNOWN = ("Stands for", "Limits", "Kernel command line", "NUMA", "Governor", "BLAS")


def machine_section(material: Material) -> Iterator[Part]:
    """What ran on what; without runs, what is declared."""
    source, cluster = material.source, material.cluster
    declared = len(cluster.nodes) if cluster else 0
    nodes = max((setup.nodes for setup in source.fingerprints), default=declared)
    emulated = cluster is not None and bool(cluster.capabilities.mark)
    prices = prices_table(Declared(cluster=cluster).prices(nodes), emulated=emulated)
    tables = present(_setup_table(source), _nodes_table(cluster), prices)
    text = tuple(_sentences(source))
    if tables:
        costs = ", and what it costs" if len(tables) > 2 else ""
        yield Part(
            title="The machine",
            name="setup",
            contents="Machine",
            text=text,
            fold=f"Every version, setting and node{costs}" if text else "",
            tables=tables,
            paper=True,
        )


def _sentences(source: Source) -> list[str]:
    """What the cluster is, one sentence for each setup."""
    setups = source.fingerprints
    groups: dict[str, list[Fingerprint]] = {}
    for setup in setups:
        groups.setdefault(_setup(setup), []).append(setup)
    said = [_named(source, text, group) for text, group in list(groups.items())[:_SETUPS_SHOWN]]
    if len(groups) > _SETUPS_SHOWN:
        more = len(groups) - _SETUPS_SHOWN
        said.append(f"The table shows {words.count(more, 'more kind')} of setup.")
    dilations = {
        item.measurement.dilation for item in source.results if item.measurement is not None
    } - {1.0}
    if dilations:
        said.append(
            "Emulated boards ran slower than the real ones, by a time"
            f" {dilation_words(*dilations)}; times are those of the boards."
        )
    if len(setups) > 1:
        said.append(
            f"There are {len(setups)} different setups. The table marks what differs among them,"
            " and numbers that pool several setups say so."
        )
    return said


def _named(source: Source, text: str, group: Sequence[Fingerprint]) -> str:
    """A sentence with the numbers of nodes, and the letters of the setups that it is true of."""
    letters = ", ".join(source.setup_letter(setup) for setup in group)
    several = "Setups" if len(group) > 1 else "Setup"
    name = f"{several} {letters}: " if len(source.fingerprints) > 1 else ""
    return f"{name}{words.listed(map(str, sorted({row.nodes for row in group})), 'or')} {text}"


def _setup(setup: Fingerprint) -> str:
    """What a setup is, apart from its number of nodes."""
    link = f", linked at {format_rate(setup.link_bits_per_second)}"
    stands = f", which stand for {setup.twin}" if setup.twin else ""
    memory = format_bytes(setup.node_memory_bytes, binary=True)
    return (
        f"{setup.noun}{stands}{link if setup.link_bits_per_second else ''}; the smallest worker has"
        f" {words.count(setup.node_cores, 'core')} and {memory} of memory. Software: Hadoop"
        f" {setup.hadoop} and Spark {setup.spark} on Java {setup.java}, profile {setup.profile}."
        f" Access: {words.SECURITY[setup.security]}."
    )


def _setup_table(source: Source) -> ReportTable | None:
    """The machines, versions and settings of all attempts; None without any."""
    if not source.fingerprints:
        return None
    values = [setup_values(fingerprint) for fingerprint in source.fingerprints]
    single = len(values) == 1
    rows = []
    for name in values[0]:
        row = [item[name] for item in values]
        if name in _MAY_BE_UNKNOWN and set(row) == {words.NONE}:
            continue
        rows.append((name if len(set(row)) == 1 else f"{name} (differs)", *row))
    return ReportTable(
        caption="Machine, versions and settings of the runs",
        columns=(
            Column("" if single else "Setup"),
            *(Column("" if single else letter(index)) for index in range(len(values))),
        ),
        rows=tuple(rows),
        emulated=any(item.mark for item in source.fingerprints),
    )


def setup_values(found: Fingerprint) -> dict[str, str]:
    """The machine, versions and settings of a fingerprint, by heading."""
    link = format_rate(found.link_bits_per_second) if found.link_bits_per_second else ""
    values = {
        "Nodes": f"{found.nodes} {found.noun}",
        "Stands for": found.twin,
        "Limits": "; ".join(found.limits.splitlines()),
        "Smallest worker": f"{words.count(found.node_cores, 'core')},"
        f" {format_bytes(found.node_memory_bytes, binary=True)} declared",
        "Link of each node": link,
        "Host CPU": f"{found.cpu}, {words.count(found.cpu_cores, 'core')}",
        "Host memory": format_bytes(found.memory_bytes, binary=True),
        "Operating system": found.os,
        "Kernel": found.kernel,
        "Kernel command line": found.kernel_command_line,
        "NUMA": found.numa,
        "Governor": found.governor,
        "BLAS": found.blas,
        "Java": found.java,
        "Hadoop": found.hadoop,
        "Spark": found.spark,
        "Profile": found.profile,
        "Security": words.SECURITY[found.security],
        "Hardware": "; ".join(found.hardware),
        "Configuration": f"SHA-256 {found.config_sha256[:16]}",
        "boardcluster": found.boardcluster,
    }
    return {name: value or words.NONE for name, value in values.items()}


def _nodes_table(cluster: ClusterSpec | None) -> ReportTable | None:
    """The declared nodes; None without a declaration."""
    if cluster is None:
        return None
    rate = cluster.network.link_bits_per_second
    network = f"network {cluster.network.subnet} at {format_rate(rate)}" if rate else "no network"
    getters: Getters[NodeSpec] = (
        Getter("Node", lambda node: node.name),
        Getter("Roles", lambda node: ", ".join(sorted(node.roles))),
        Getter("Cores", lambda node: str(node.cores), Display.NUMBER),
        Getter("Memory", lambda node: format_bytes(node.memory_bytes, binary=True), Display.NUMBER),
    )
    return tabulate(
        cluster.nodes,
        getters,
        caption=f"Nodes of cluster {cluster.name} as declared (engines {cluster.engines}, profile"
        f" {cluster.profile}, {network})",
        emulated=bool(cluster.capabilities.mark),
    )
