"""The sections with every run: untrusted ones, all, own programs, counters, proofs and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from boardcluster.analysis.cells import Cell, Untrusted, verdict_if_ok
from boardcluster.analysis.statistics import mean
from boardcluster.records import Campaign, Measurement, Result
from boardcluster.report import words
from boardcluster.report.counters import COUNTERS, Unit, format_value
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, present
from boardcluster.report.source import (
    Source,
    left_out,
    named_cell,
    state_counts,
    state_of,
    trial_getters,
    verified,
)
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes, format_energy

__all__ = [
    "VerificationMethod",
    "counters_section",
    "data_section",
    "programs_section",
    "runs_section",
    "untrusted_section",
    "verification_section",
]

_COUNTER_NOTE = (
    "These are each engine's own counters under their own names, so they do not correspond line by"
    " line: MapReduce counts what its tasks moved through local disks, and Spark what crossed a"
    " shuffle (serialised, and compressed where the configuration says so). Neither includes HDFS"
    " replicas."
)
_PROGRAMS_NOTE = (
    "Here, `ok` means that the program ended with exit status 0. Its expected output is not known,"
    " so nothing was verified and no statistics are computed."
)
_OPEN_COUNTERS = 4
"""More tables of counters than this are folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationMethod:
    """One way of verification."""

    label: str
    """``V1`` and so on, as the tables refer to it."""
    method: str
    """The sentence that says how."""
    extent: str
    """How many outputs and records it covered."""


def counters_section(material: Material) -> Iterator[Part]:
    """One table of bytes and engine counters per cell; none for a cell without any."""
    source = material.source
    tables = present(*(_counter_table(source, cell) for cell in source.cells))
    if tables:
        many = len(tables) > _OPEN_COUNTERS
        yield Part(
            title="Bytes and counters",
            name="bytes",
            contents="Counters",
            text=(_COUNTER_NOTE,),
            fold=f"{len(tables)} tables of counters" if many else "",
            tables=tables,
        )


_Counted = tuple[str, Unit, str, list[int]]


def _counter_table(source: Source, cell: Cell) -> ReportTable | None:
    name = f"{named_cell(cell, source.cells)} on {words.engine_name(cell.engine)}"

    def meaning(row: _Counted) -> str:
        part = "" if len(row[3]) == cell.count else f" (in {len(row[3])} of {cell.count} runs)"
        return f"{row[0]}{part}"

    getters: Getters[_Counted] = (
        Getter("What was counted", meaning),
        Getter("Mean per run", lambda row: format_value(mean(row[3]), row[1]), Display.NUMBER),
        Getter("Range", lambda row: _span(row[3], row[1]), Display.NUMBER),
        Getter("Name of the counter", lambda row: row[2], Display.CODE),
    )
    return tabulate(
        _counted(cell),
        getters,
        caption=f"{name}: bytes and counters of {words.count(cell.count, 'run')}",
        emulated=source.are_emulated([cell]),
    )


def _counted(cell: Cell) -> Iterator[_Counted]:
    """What was counted, its unit, its name and the value of each run that has it."""
    found = [item.measurement for item in cell.results if item.measurement is not None]
    between = [item.intermediate_bytes for item in found if item.intermediate_bytes is not None]
    for meaning, name, values in (
        ("input given", "ours: input_bytes", [item.input_bytes for item in found]),
        ("final output in HDFS", "ours: output_bytes", [item.output_bytes for item in found]),
        ("intermediate, by the engine's counters", "ours: intermediate_bytes", between),
    ):
        if any(values):
            yield meaning, Unit.BYTES, name, values
    for counter in COUNTERS:
        values = [item.counters[counter.name] for item in found if counter.name in item.counters]
        if values and counter.engine is cell.engine:
            short = counter.name.removeprefix("org.apache.hadoop.mapreduce.")
            yield counter.meaning, counter.unit, short, values


def _span(values: Sequence[int], unit: Unit) -> str:
    if len(values) == 1:
        return words.NONE
    low, high = format_value(min(values), unit), format_value(max(values), unit)
    if min(values) == max(values):
        return "constant"
    if low == high:
        return f"within {format_value(max(values) - min(values), unit)}"
    return f"{low} to {high}"


def runs_section(material: Material) -> Iterator[Part]:
    """One table of every attempt and every pending trial per campaign of workloads."""
    groups: dict[str, list[Result]] = {}
    for result in material.source.of_workloads():
        groups.setdefault(result.trial.campaign_id, []).append(result)
    if groups:
        yield Part(
            title="Every run, in run order",
            name="runs",
            contents="Every run",
            tables=present(*(_run_table(material.source, group) for group in groups.values())),
        )


def _run_table(source: Source, group: Sequence[Result]) -> ReportTable | None:
    campaign_id = group[0].trial.campaign_id
    campaign = source.campaigns.get(campaign_id)
    seed = f", in an order drawn from seed {campaign.seed}" if campaign else ""
    getters: Getters[Result] = (
        Getter("Order", lambda row: str(row.trial.position + 1), Display.NUMBER),
        *trial_getters(lambda row: row),
        Getter("Engine", lambda row: words.engine_name(row.trial.engine), Display.ENGINE),
        Getter("Repetition", lambda row: words.repetition(row.trial), Display.NUMBER),
        Getter(
            "Attempt",
            lambda row: str(row.attempt.number if row.attempt else words.NONE),
            Display.NUMBER,
        ),
        Getter("Seconds", _measured(_seconds), Display.NUMBER),
        Getter("State", state_of, Display.STATE),
        Getter("Verdict", lambda row: verdict_if_ok(row) or words.NONE),
        Getter(
            "Energy", _measured(lambda found: format_energy(found.energy) if found.energy else "")
        ),
        Getter("Reason or remark", _remarks),
        Getter("Output", _measured(lambda found: format_bytes(found.output_bytes)), Display.NUMBER),
        Getter("Verified", _measured(lambda found: _proof_label(source, found)), Display.CODE),
        Getter("YARN application", _measured(lambda found: found.application_id), Display.CODE),
    )
    return tabulate(
        group,
        getters,
        caption=f"Campaign {campaign_id}{seed}: {state_counts(group)}",
        emulated=source.is_emulated(group),
        links=tuple(source.page_of(result) for result in group),
        hide=("Workload", "Input", "Workers", "Profile", "Settings", "Attempt"),
    )


def _measured(get: Callable[[Measurement], str]) -> Callable[[Result], str]:
    """A text of what a run yielded; a dash where there is none."""
    return lambda row: (get(row.measurement) if row.measurement else "") or words.NONE


def _seconds(found: Measurement) -> str:
    return words.seconds(found.duration_seconds)


def _remarks(row: Result) -> str:
    found = row.measurement
    remarks = (*found.verdict_reasons, *found.remarks) if found else ()
    return "; ".join(part for part in (row.attempt.reason if row.attempt else "", *remarks) if part)


def _proof_label(source: Source, found: Measurement) -> str:
    proof = found.verification
    if proof is None:
        return ""
    label = f"V{source.methods.index(proof.method) + 1}"
    if proof.expected_sha256 != proof.actual_sha256:
        return f"{label} wrong"
    return f"{label} {words.short_digest(proof.actual_sha256)}"


def untrusted_section(material: Material) -> Iterator[Part]:
    """Configurations of which every verified run is tainted."""
    source = material.source
    getters: Getters[Untrusted] = (
        *trial_getters(lambda row: row.results[0]),
        Getter("Engine", lambda row: words.engine_name(row.engine), Display.ENGINE),
        Getter("Runs", lambda row: words.verdicts(item.verdict for item in _all_measured(row))),
        Getter("Seconds, in run order", lambda row: ", ".join(map(_seconds, _all_measured(row)))),
        Getter("Why they are not counted", _first_reason),
    )
    table = tabulate(
        source.untrusted,
        getters,
        caption="Configurations without a valid run",
        emulated=source.is_emulated(item for row in source.untrusted for item in row.results),
        note=words.UNTRUSTED,
        hide=("Workers", "Profile", "Settings"),
    )
    if table is not None:
        yield Part(
            title="Runs that cannot be trusted",
            name="untrusted",
            contents="Not trusted",
            tables=(table,),
        )


def _all_measured(row: Untrusted) -> list[Measurement]:
    return [item.measurement for item in row.results if item.measurement]


def _first_reason(row: Untrusted) -> str:
    found = _all_measured(row)
    reasons = list(dict.fromkeys(line for item in found for line in item.verdict_reasons))
    more = f"; and {len(reasons) - 1} more, see every run" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def programs_section(material: Material) -> Iterator[Part]:
    """The user's own programs."""
    group = [item for item in material.source.results if material.source.is_own_program(item)]
    known: Getters[Result] = trial_getters(lambda row: row)
    setup = known[2:]  # it has neither a workload nor a size
    getters: Getters[Result] = (
        Getter("Engine", lambda row: words.engine_name(row.trial.engine), Display.ENGINE),
        Getter(
            "Program and arguments", lambda row: words.program(row.trial.arguments), Display.LONG
        ),
        *setup,
        Getter(
            "Started (UTC)",
            lambda row: (
                words.moment(row.attempt.started_utc).removesuffix(" UTC")
                if row.attempt
                else words.NONE
            ),
            Display.MOMENT,
        ),
        Getter("Seconds", _measured(_seconds), Display.NUMBER),
        Getter("State", state_of, Display.STATE),
        Getter("Exit status", _measured(lambda found: str(found.exit_status)), Display.NUMBER),
        Getter("Reason or remark", lambda row: row.attempt.reason if row.attempt else ""),
        Getter("YARN application", _measured(lambda found: found.application_id), Display.CODE),
    )
    table = tabulate(
        group,
        getters,
        caption="What you submitted, as it was run",
        emulated=material.source.is_emulated(group),
        note=_PROGRAMS_NOTE,
        hide=tuple(getter.title for getter in setup),
    )
    if table is not None:
        yield Part(
            title="Your own programs", name="programs", contents="Own programs", tables=(table,)
        )


def verification_section(material: Material) -> Iterator[Part]:
    """How outputs were verified, one entry per method."""
    source = material.source
    if source.of_workloads():
        yield Part(
            title="Verification",
            name="verification",
            contents="Verification",
            text=(_proof_summary(source),),
            block="proofs",
            data=tuple(_proof(source, index) for index in range(len(source.methods))),
        )


def _proof(source: Source, index: int) -> VerificationMethod:
    method = source.methods[index]
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
    return VerificationMethod(label=f"V{index + 1}", method=method, extent=extent)


def _proof_summary(source: Source) -> str:
    """One sentence over all verified results."""
    out = len(left_out(source))
    total = len(verified(source)) - out
    if not total and not out:
        return "No verified result yet."
    tainted = words.count(out, "tainted run")
    if not total:
        whose, outputs, times = (
            ("its", "output was", "time") if out == 1 else ("their", "outputs were", "times")
        )
        return (
            f"{tainted}: {whose} {outputs} proved right by a method named here, so only {whose}"
            f" {times} cannot be trusted."
        )
    runs = f"The {words.count(total, 'run')}"
    each = "its output was" if total == 1 else "each of their outputs was"
    also = f" Also verified, but left out of the statistics: {tainted}." if out else ""
    return (
        f"{runs} in the statistics {'is' if total == 1 else 'are'} verified: {each} proved right by"
        " a method named here. A run whose output is wrong or unproved never becomes a"
        f" result.{also}"
    )


def data_section(material: Material) -> Iterator[Part]:
    """Campaigns and the origin of their input."""
    source = material.source
    getters: Getters[Campaign] = (
        Getter("Campaign", lambda row: row.id, Display.CODE),
        Getter("Name", lambda row: row.name),
        Getter("Created", lambda row: words.moment(row.created_utc), Display.MOMENT),
        Getter("Cluster", lambda row: row.cluster + _marked(source, row)),
        Getter("Seed", lambda row: str(row.seed), Display.NUMBER),
        Getter("Data", lambda row: row.dataset),
        Getter("Origin", lambda row: row.dataset_source),
        Getter("SHA-256 of the input", lambda row: row.dataset_sha256, Display.LONG),
    )
    table = tabulate(
        sorted(source.campaigns.values(), key=lambda row: row.id),
        getters,
        caption="Campaigns and where their data came from",
    )
    if table is not None:
        yield Part(title="Data", name="data", contents="Data", tables=(table,))


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
