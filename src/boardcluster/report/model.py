"""What the report says: records in, sentences and tables out. No file and no drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis import node_words, security_of
from boardcluster.analysis.advice import Advice, Case, advise
from boardcluster.analysis.cost import cost
from boardcluster.analysis.scaling import factor_effects, node_scalings
from boardcluster.records import Campaign, ClusterSpec, ProbeRun, Result, Security, Verdict
from boardcluster.report import words
from boardcluster.report.cost_part import cost_part, loses
from boardcluster.report.details import (
    Proof,
    campaign_table,
    counter_tables,
    programs_table,
    proof_summary,
    proofs,
    run_tables,
    untrusted_table,
)
from boardcluster.report.evidence import Evidence
from boardcluster.report.findings import Finding, find, headline
from boardcluster.report.machine import machine_part
from boardcluster.report.methods import Methods, methods_of
from boardcluster.report.parts import Part
from boardcluster.report.published_part import published_part
from boardcluster.report.source import Source, verified
from boardcluster.report.summary import Summary, differences_of, summary_of
from boardcluster.report.tables import Table
from boardcluster.report.times import TimeSection, time_sections
from boardcluster.report.validity import validity_of, validity_part
from boardcluster.report.workload_parts import Analysed, workload_parts
from boardcluster.report.worth_part import Declared

__all__ = ["Report", "build_report", "report_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the templates show.

    Attributes:
        cluster: name of the cluster; may be empty.
        headline: the main finding in one sentence.
        headline_note: how sure it is, or what to do next.
        headline_finding: the finding of the headline; None without a verified result.
        findings: one per configuration, the headline's first.
        emulated: whether any number is of emulated nodes.
        partly_emulated: whether some are and some are not.
        twins: what the nodes are, see ``analysis.node_words``; may be empty.
        insecure: whether any number was measured while everybody could take the cluster over.
        summary: the findings that matter most, and how many runs can be trusted.
        machine: what ran on what, or what is declared.
        times: one per workload.
        parts: for each of ``times`` what stands below its times.
        advised: whether rules of advice had anything to look at.
        advice: what to change, best first.
        no_advice: what is said where there is none.
        cost: the cluster against one program on one node; None where nothing can be compared.
        published: our times beside published ones; None where none is of the same boards.
        validity: what became of every attempt, and which samples are damaged.
        methods: a paragraph for a paper; None where no run counts.
        untrusted: configurations of which every verified run is tainted; None without any.
        tainted: whether some of the runs that count are tainted.
        counters: one table per configuration.
        runs: one table per campaign of workloads.
        programs: the user's own programs; None without any.
        proofs: how outputs were verified.
        proof_summary: one sentence over all of them.
        campaigns: campaigns and where their data came from; None without any.
        measured: when the runs happened; may be empty.
        one_run: whether some cell has one run only.
        verified: how many attempts have a verified output.
        attempted: how many attempts at workloads have ended, without warm-ups.
    """

    cluster: str
    headline: str
    headline_note: str
    headline_finding: Finding | None
    findings: tuple[Finding, ...]
    emulated: bool
    partly_emulated: bool
    twins: str
    insecure: bool
    summary: Summary
    machine: Part
    times: tuple[TimeSection, ...]
    parts: tuple[tuple[Part, ...], ...]
    advised: bool
    advice: tuple[Advice, ...]
    no_advice: str
    cost: Part | None
    published: Part | None
    validity: Part
    methods: Methods | None
    untrusted: Table | None
    tainted: bool
    counters: tuple[Table, ...]
    runs: tuple[Table, ...]
    programs: Table | None
    proofs: tuple[Proof, ...]
    proof_summary: str
    campaigns: Table | None
    measured: str
    one_run: bool
    verified: int
    attempted: int


def build_report(
    results: Sequence[Result],
    campaigns: Sequence[Campaign],
    *,
    cluster: ClusterSpec | None,
    tainted: bool = False,
    pages: Mapping[tuple[str, int], str] | None = None,
) -> Report:
    """Build the report of these results without their telemetry: see ``report_of``.

    Args:
        results: trials with their attempts; give every attempt, so that none is hidden.
        campaigns: their campaigns.
        cluster: the cluster's declaration, for the list of nodes.
        tainted: whether tainted runs count.
        pages: by trial and number of an attempt, the page of its curves.
    """
    return report_of(Source.of(results, campaigns, tainted=tainted, pages=pages), cluster=cluster)


def report_of(
    source: Source,
    *,
    cluster: ClusterSpec | None,
    evidence: Evidence | None = None,
    probes: Sequence[ProbeRun] = (),
) -> Report:
    """Build the report.

    Args:
        source: the records.
        cluster: the cluster's declaration, for the list of nodes and prices.
        evidence: what the telemetry of the runs gave.
        probes: runs of probes on the cluster's nodes, oldest first.
    """
    seen = evidence or Evidence()
    ordered = source.results
    findings = find(source)
    sentence, note = headline(source, findings)
    emulated = _is_emulated(source, cluster)
    analysed = Analysed(
        scalings=node_scalings(source.cells),
        effects=factor_effects(source.cells),
        evidence=seen,
        declared=Declared(cluster=cluster),
    )
    advice = _advice(source, cluster, seen)
    costs = cost(source.cells, probes)
    validity, times = validity_of(source), time_sections(source)
    return Report(
        cluster=_cluster_names(source, cluster),
        headline=sentence,
        headline_note=note,
        headline_finding=findings[0] if findings else None,
        findings=findings,
        emulated=emulated,
        partly_emulated=emulated and bool(ordered) and not source.all_emulated(),
        twins=_node_words(ordered, cluster),
        insecure=_is_insecure(ordered),
        summary=summary_of(
            source,
            seen,
            validity=validity,
            differences=differences_of(analysed.effects, analysed.scalings),
            advice=advice,
            loses=loses(costs),
        ),
        machine=machine_part(source, analysed.declared),
        times=times,
        parts=tuple(workload_parts(source, row.workload, analysed) for row in times),
        advised=bool(source.cells),
        advice=advice,
        no_advice=_no_advice(seen),
        cost=cost_part(costs),
        published=published_part(source),
        validity=validity_part(source, validity, seen),
        methods=methods_of(source),
        untrusted=untrusted_table(source),
        tainted=any(cell.counted(Verdict.TAINTED) for cell in source.cells),
        counters=counter_tables(source),
        runs=run_tables(source),
        programs=programs_table(source),
        proofs=proofs(source),
        proof_summary=proof_summary(source),
        campaigns=campaign_table(source),
        measured=_measured(ordered),
        one_run=any(cell.count == 1 for cell in source.cells),
        verified=len(verified(source)),
        attempted=_attempted(source),
    )


def _is_emulated(source: Source, cluster: ClusterSpec | None) -> bool:
    """Whether any number is of nodes that are no boards; without any, whether there would be."""
    if cluster is not None and not source.results:
        return bool(cluster.capabilities.mark)
    campaigns = source.campaigns.values()
    return source.is_emulated(source.results) or any(item.emulated for item in campaigns)


def _node_words(results: Sequence[Result], cluster: ClusterSpec | None) -> str:
    """What the nodes are, see ``analysis.node_words``; without results, as declared."""
    if results or cluster is None or cluster.capabilities.emulated:
        return node_words(results)
    return cluster.capabilities.short_mark


def _cluster_names(source: Source, cluster: ClusterSpec | None) -> str:
    names = [item.cluster for item in source.campaigns.values()]
    return ", ".join(dict.fromkeys(names + ([cluster.name] if cluster else [])))


def _is_insecure(results: Sequence[Result]) -> bool:
    return any(security_of(item) is Security.INSECURE_LAB for item in results)


def _advice(source: Source, cluster: ClusterSpec | None, evidence: Evidence) -> tuple[Advice, ...]:
    return advise(
        Case(
            results=source.results,
            diagnoses=evidence.diagnoses,
            facts=evidence.facts,
            cluster=cluster,
        )
    )


def _no_advice(evidence: Evidence) -> str:
    if not evidence.facts:
        return (
            "No rule found anything in the engines' counters. There is no telemetry of these runs,"
            " without which most rules are silent."
        )
    watched = words.count(len(evidence.facts), "run")
    return f"No rule found anything to change in the counters and the samples of {watched}."


def _attempted(source: Source) -> int:
    return sum(
        1
        for item in source.results
        if item.attempt
        and item.attempt.ended_utc
        and not item.trial.warm_up
        and not source.is_own_program(item)
    )


def _measured(results: Sequence[Result]) -> str:
    ended = [item.attempt for item in results if item.attempt and item.attempt.ended_utc]
    if not ended:
        return ""
    first = words.moment(min(item.started_utc for item in ended))
    last = words.moment(max(item.ended_utc for item in ended))
    if first[:10] == last[:10] and first.endswith(" UTC"):
        return f"measured {first[:10]}, {first[11:16]} to {last[11:16]} UTC"
    return f"measured {first} to {last}"
