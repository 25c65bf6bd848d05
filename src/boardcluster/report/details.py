"""Tables beside the times: counters, every run, own programs, setup, nodes, data, proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boardcluster.analysis import Cell, label_of, verdict_of
from boardcluster.analysis.statistics import mean
from boardcluster.records import Campaign, ClusterSpec, Fingerprint, Result
from boardcluster.report import words
from boardcluster.report.counters import COUNTERS, Unit, format_value
from boardcluster.report.source import (
    Source,
    configuration,
    left_out,
    letter,
    state_counts,
    state_of,
    verified,
)
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes, format_energy, format_rate

__all__ = [
    "Proof",
    "campaign_table",
    "counter_tables",
    "nodes_table",
    "programs_table",
    "proof_summary",
    "proofs",
    "run_tables",
    "setup_table",
    "setup_values",
    "untrusted_table",
]


_MAY_BE_UNKNOWN = ("Stands for", "Limits", "Kernel command line", "NUMA", "Governor", "BLAS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One way of verification.

    Attributes:
        label: ``V1`` and so on, as the tables refer to it.
        method: the sentence that says how.
        extent: how many outputs and records it covered.
    """

    label: str
    method: str
    extent: str


def counter_tables(source: Source) -> tuple[Table, ...]:
    """One table of bytes and engine counters per cell; none for a cell without any."""
    return tuple(
        Table(
            caption=_counter_caption(source, cell),
            columns=(
                Column("What was counted"),
                Column("Mean per run", Kind.NUMBER),
                Column("Range", Kind.NUMBER),
                Column("Name of the counter", Kind.CODE),
            ),
            rows=rows,
            emulated=source.is_emulated(cell.results),
        ).without_empty()
        for cell, rows in ((cell, tuple(_counter_rows(cell))) for cell in source.cells)
        if rows
    )


def _counter_caption(source: Source, cell: Cell) -> str:
    which = configuration(cell, source.cells)
    over = f" over {which}" if which else ""
    name = f"{words.workload_name(cell.workload)}{over} on {words.engine_name(cell.engine)}"
    return f"{name}: bytes and counters of {words.count(cell.count, 'run')}"


def _counter_rows(cell: Cell) -> list[tuple[str, ...]]:
    found = [item.measurement for item in cell.results if item.measurement is not None]
    sizes = (
        ("input given", "ours: input_bytes", [item.input_bytes for item in found]),
        ("final output in HDFS", "ours: output_bytes", [item.output_bytes for item in found]),
        (
            "intermediate, by the engine's counters",
            "ours: intermediate_bytes",
            [item.intermediate_bytes for item in found if item.intermediate_bytes is not None],
        ),
    )
    series: list[tuple[str, Unit, str, list[int]]] = [
        (meaning, Unit.BYTES, name, values) for meaning, name, values in sizes if any(values)
    ]
    for counter in COUNTERS:
        if counter.engine is cell.engine:
            values = [
                item.counters[counter.name] for item in found if counter.name in item.counters
            ]
            short = counter.name.removeprefix("org.apache.hadoop.mapreduce.")
            series.append((counter.meaning, counter.unit, short, values))
    rows: list[tuple[str, ...]] = []
    for meaning, unit, name, values in series:
        if values:
            note = "" if len(values) == len(found) else f" (in {len(values)} of {len(found)} runs)"
            rows.append(
                (meaning + note, format_value(mean(values), unit), _span(values, unit), name)
            )
    return rows


def _span(values: Sequence[int], unit: Unit) -> str:
    if len(values) == 1:
        return words.NONE
    low, high = format_value(min(values), unit), format_value(max(values), unit)
    if min(values) == max(values):
        return "the same"
    if low == high:
        return f"differ by {format_value(max(values) - min(values), unit)}"
    return f"{low} to {high}"


def run_tables(source: Source) -> tuple[Table, ...]:
    """One table of every attempt and every pending trial per campaign of workloads."""
    groups: dict[str, list[Result]] = {}
    for result in source.results:
        if not source.is_own_program(result):
            groups.setdefault(result.trial.campaign_id, []).append(result)
    return tuple(_run_table(source, group) for group in groups.values())


def _run_table(source: Source, group: Sequence[Result]) -> Table:
    campaign_id = group[0].trial.campaign_id
    campaign = source.campaigns.get(campaign_id)
    seed = f", random order of seed {campaign.seed}" if campaign else ""
    table = Table(
        caption=f"Campaign {campaign_id}{seed}: {state_counts(group)}",
        columns=(
            Column("Order", Kind.NUMBER),
            Column("Workload"),
            Column("Input", Kind.NUMBER),
            Column("Workers", Kind.NUMBER),
            Column("Profile"),
            Column("Settings"),
            Column("Engine", Kind.ENGINE),
            Column("Repetition", Kind.NUMBER),
            Column("Attempt", Kind.NUMBER),
            Column("Seconds", Kind.NUMBER),
            Column("State", Kind.STATE),
            Column("Verdict"),
            Column("Energy"),
            Column("Reason or remark"),
            Column("Output", Kind.NUMBER),
            Column("Verified", Kind.CODE),
            Column("YARN application", Kind.CODE),
        ),
        rows=tuple(_run_row(source, result) for result in group),
        emulated=source.is_emulated(group),
        links=tuple(source.page_of(result) for result in group),
    )
    varying = ("Workload", "Input", "Workers", "Profile", "Settings", "Attempt")
    return table.without_constant(*varying).without_empty()


def _run_row(source: Source, result: Result) -> tuple[str, ...]:
    trial, attempt, found = result.trial, result.attempt, result.measurement
    remarks = (*found.verdict_reasons, *found.remarks) if found else ()
    return (
        str(trial.position + 1),
        words.workload_name(trial.workload),
        format_bytes(trial.size_bytes) if trial.size_bytes else words.NONE,
        str(trial.workers),
        trial.profile,
        label_of([result]) or "default",
        words.engine_name(trial.engine),
        f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition),
        str(attempt.number) if attempt else words.NONE,
        words.seconds(found.duration_seconds) if found else words.NONE,
        state_of(result),
        verdict_of(result).value if found else words.NONE,
        format_energy(found.energy) if found and found.energy else words.NONE,
        "; ".join(part for part in (attempt.reason if attempt else "", *remarks) if part),
        format_bytes(found.output_bytes) if found else words.NONE,
        _proof_label(source, result),
        (found.application_id if found else "") or words.NONE,
    )


def _proof_label(source: Source, result: Result) -> str:
    proof = result.measurement.verification if result.measurement else None
    if proof is None:
        return words.NONE
    label = f"V{source.methods.index(proof.method) + 1}"
    if proof.expected_sha256 != proof.actual_sha256:
        return f"{label} wrong"
    return f"{label} {words.short_digest(proof.actual_sha256)}"


def untrusted_table(source: Source) -> Table | None:
    """Configurations of which every verified run is tainted; None if there is none."""
    rows = []
    for row in source.untrusted:
        trial = row.results[0].trial
        found = [item.measurement for item in row.results if item.measurement]
        reasons = list(dict.fromkeys(line for item in found for line in item.verdict_reasons))
        more = f"; and {len(reasons) - 1} more, see every run" if len(reasons) > 1 else ""
        rows.append(
            (
                words.workload_name(trial.workload),
                format_bytes(trial.size_bytes) if trial.size_bytes else words.NONE,
                str(trial.workers),
                trial.profile,
                row.label or "default",
                words.engine_name(row.engine),
                words.verdicts(item.verdict for item in found),
                ", ".join(words.seconds(item.duration_seconds) for item in found),
                f"{reasons[0]}{more}" if reasons else "",
            )
        )
    if not rows:
        return None
    return Table(
        caption="Configurations without a valid run",
        columns=(
            Column("Workload"),
            Column("Input", Kind.NUMBER),
            Column("Workers", Kind.NUMBER),
            Column("Profile"),
            Column("Settings"),
            Column("Engine", Kind.ENGINE),
            Column("Runs"),
            Column("Seconds, in run order"),
            Column("Why they do not count"),
        ),
        rows=tuple(rows),
        emulated=source.is_emulated([item for row in source.untrusted for item in row.results]),
        note=words.UNTRUSTED,
    ).without_constant("Workers", "Profile", "Settings")


def programs_table(source: Source) -> Table | None:
    """The user's own programs; None without any."""
    group = [item for item in source.results if source.is_own_program(item)]
    if not group:
        return None
    rows = []
    for result in group:
        attempt, found = result.attempt, result.measurement
        rows.append(
            (
                words.engine_name(result.trial.engine),
                words.program(result.trial.arguments),
                words.moment(attempt.started_utc).removesuffix(" UTC") if attempt else words.NONE,
                words.seconds(found.duration_seconds) if found else words.NONE,
                state_of(result),
                str(found.exit_status) if found else words.NONE,
                attempt.reason if attempt else "",
                (found.application_id if found else "") or words.NONE,
            )
        )
    return Table(
        caption="What you submitted, as it was run",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Program and arguments", Kind.LONG),
            Column("Started (UTC)", Kind.MOMENT),
            Column("Seconds", Kind.NUMBER),
            Column("State", Kind.STATE),
            Column("Exit status", Kind.NUMBER),
            Column("Reason or remark"),
            Column("YARN application", Kind.CODE),
        ),
        rows=tuple(rows),
        emulated=source.is_emulated(group),
        note="Here ok means that the program ended with status 0. What it should have written is"
        " not known, so nothing was verified, and no statistics are made of it.",
    ).without_empty()


def proofs(source: Source) -> tuple[Proof, ...]:
    """How outputs were verified, one entry per method."""
    proofs = []
    for index, method in enumerate(source.methods):
        found = [
            item.measurement.verification
            for item in verified(source)
            if item.measurement
            and item.measurement.verification
            and item.measurement.verification.method == method
        ]
        records = sorted({proof.records for proof in found})
        span = " or ".join(f"{number:,}" for number in records)
        if len(records) > 3:
            span = f"{records[0]:,} to {records[-1]:,}"
        extent = f"{words.count(len(found), 'output')}, {span} records each" if found else ""
        proofs.append(Proof(label=f"V{index + 1}", method=method, extent=extent))
    return tuple(proofs)


def proof_summary(source: Source) -> str:
    """One sentence over all verified results."""
    out = left_out(source)
    total = len(verified(source)) - len(out)
    if not total and not out:
        return "No verified result yet."
    if not total:
        return (
            f"{words.count(len(out), 'tainted run')}: their outputs were proved right in a way"
            " named here, so it is only their times that cannot be trusted."
        )
    each = "its output was" if total == 1 else "every one of their outputs was"
    runs = "The 1 run" if total == 1 else f"The {total} runs"
    verb = "is" if total == 1 else "are"
    return (
        f"{runs} in the statistics {verb} verified: {each} proved right in a way named here. A run"
        " whose output is wrong or unproved never becomes a result."
        + (f" Verified, too: {words.count(len(out), 'tainted run')} left out of it." if out else "")
    )


def setup_table(source: Source) -> Table | None:
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
    return Table(
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
    return {
        "Nodes": f"{found.nodes} {found.noun}",
        "Stands for": found.twin or words.NONE,
        "Limits": "; ".join(found.limits.splitlines()) or words.NONE,
        "Smallest worker": f"{words.count(found.node_cores, 'core')},"
        f" {format_bytes(found.node_memory_bytes, binary=True)} declared",
        "Link of each node": format_rate(found.link_bits_per_second)
        if found.link_bits_per_second
        else words.NONE,
        "Host CPU": f"{found.cpu}, {words.count(found.cpu_cores, 'core')}",
        "Host memory": format_bytes(found.memory_bytes, binary=True),
        "Operating system": found.os,
        "Kernel": found.kernel,
        "Kernel command line": found.kernel_command_line or words.NONE,
        "NUMA": found.numa or words.NONE,
        "Governor": found.governor or words.NONE,
        "BLAS": found.blas or words.NONE,
        "Java": found.java,
        "Hadoop": found.hadoop,
        "Spark": found.spark,
        "Profile": found.profile,
        "Security": words.SECURITY[found.security],
        "Hardware": "; ".join(found.hardware) or words.NONE,
        "Configuration": f"SHA-256 {found.config_sha256[:16]}",
        "boardcluster": found.boardcluster,
    }


def nodes_table(cluster: ClusterSpec | None) -> Table | None:
    """The declared nodes; None without a declaration."""
    if cluster is None:
        return None
    rate = cluster.network.link_bits_per_second
    network = f"network {cluster.network.subnet} at {format_rate(rate)}" if rate else "no network"
    return Table(
        caption=f"Nodes of cluster {cluster.name} as declared (engines {cluster.engines}, profile"
        f" {cluster.profile}, {network})",
        columns=(
            Column("Node"),
            Column("Roles"),
            Column("Cores", Kind.NUMBER),
            Column("Memory", Kind.NUMBER),
        ),
        rows=tuple(
            (
                node.name,
                ", ".join(sorted(node.roles)),
                str(node.cores),
                format_bytes(node.memory_bytes, binary=True),
            )
            for node in cluster.nodes
        ),
        emulated=bool(cluster.capabilities.mark),
    )


def _marked(source: Source, campaign: Campaign) -> str:
    """The kind of nodes that a campaign ran on, in brackets; nothing for boards."""
    kinds = dict.fromkeys(
        item.attempt.fingerprint.kind
        for item in source.results
        if item.trial.campaign_id == campaign.id
        and item.attempt is not None
        and item.attempt.fingerprint.mark
    )
    names = ", ".join(kinds) or ("emulated" if campaign.emulated else "")
    return f" ({names})" if names else ""


def campaign_table(source: Source) -> Table | None:
    """Campaigns and the origin of their input; None without any."""
    if not source.campaigns:
        return None
    return Table(
        caption="Campaigns and where their data came from",
        columns=(
            Column("Campaign", Kind.CODE),
            Column("Name"),
            Column("Created", Kind.MOMENT),
            Column("Cluster"),
            Column("Seed", Kind.NUMBER),
            Column("Data"),
            Column("Origin"),
            Column("SHA-256 of the input", Kind.LONG),
        ),
        rows=tuple(
            (
                campaign.id,
                campaign.name,
                words.moment(campaign.created_utc),
                campaign.cluster + _marked(source, campaign),
                str(campaign.seed),
                campaign.dataset or words.NONE,
                campaign.dataset_source or words.NONE,
                campaign.dataset_sha256 or words.NONE,
            )
            for campaign in sorted(source.campaigns.values(), key=lambda item: item.id)
        ),
    ).without_empty()
