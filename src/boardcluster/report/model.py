"""What the report says: records in, sentences and tables out. No file and no drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis import security_of, twin_words
from boardcluster.records import Campaign, ClusterSpec, Result, Security, Verdict
from boardcluster.report import words
from boardcluster.report.details import (
    Proof,
    campaign_table,
    counter_tables,
    nodes_table,
    programs_table,
    proof_summary,
    proofs,
    run_tables,
    setup_table,
    untrusted_table,
)
from boardcluster.report.findings import Finding, find, headline
from boardcluster.report.source import Source, verified
from boardcluster.report.tables import Table
from boardcluster.report.times import TimeSection, time_sections

__all__ = ["Report", "build_report"]


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
        twins: which emulated boards they are, see ``analysis.twin_words``; may be empty.
        insecure: whether any number was measured while everybody could take the cluster over.
        times: one per workload.
        untrusted: configurations of which every verified run is tainted; None without any.
        tainted: whether some of the runs that count are tainted.
        counters: one table per configuration.
        runs: one table per campaign of workloads.
        programs: the user's own programs; None without any.
        proofs: how outputs were verified.
        proof_summary: one sentence over all of them.
        setup: what ran on what; None without any attempt.
        nodes: declared nodes; None without a cluster file.
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
    times: tuple[TimeSection, ...]
    untrusted: Table | None
    tainted: bool
    counters: tuple[Table, ...]
    runs: tuple[Table, ...]
    programs: Table | None
    proofs: tuple[Proof, ...]
    proof_summary: str
    setup: Table | None
    nodes: Table | None
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
    """Build the report of these results.

    Args:
        results: trials with their attempts; give every attempt, so that none is hidden.
        campaigns: their campaigns.
        cluster: the cluster's declaration, for the list of nodes.
        tainted: whether tainted runs count.
        pages: by trial and number of an attempt, the page of its curves.
    """
    source = Source.of(results, campaigns, tainted=tainted, pages=pages)
    ordered = source.results
    findings = find(source)
    sentence, note = headline(source, findings)
    emulated = source.is_emulated(ordered) or any(item.emulated for item in campaigns)
    if cluster is not None and not ordered:
        emulated = cluster.kind == "emulated"
    names = [item.cluster for item in campaigns] + ([cluster.name] if cluster else [])
    return Report(
        cluster=", ".join(dict.fromkeys(names)),
        headline=sentence,
        headline_note=note,
        headline_finding=findings[0] if findings else None,
        findings=findings,
        emulated=emulated,
        partly_emulated=emulated and bool(ordered) and not source.all_emulated(),
        twins=twin_words(ordered),
        insecure=any(security_of(item) is Security.INSECURE_LAB for item in ordered),
        times=time_sections(source),
        untrusted=untrusted_table(source),
        tainted=any(cell.counted(Verdict.TAINTED) for cell in source.cells),
        counters=counter_tables(source),
        runs=run_tables(source),
        programs=programs_table(source),
        proofs=proofs(source),
        proof_summary=proof_summary(source),
        setup=setup_table(source),
        nodes=nodes_table(cluster),
        campaigns=campaign_table(source),
        measured=_measured(ordered),
        one_run=any(cell.count == 1 for cell in source.cells),
        verified=len(verified(source)),
        attempted=sum(
            1
            for item in ordered
            if item.attempt
            and item.attempt.ended_utc
            and not item.trial.warm_up
            and not source.is_own_program(item)
        ),
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
