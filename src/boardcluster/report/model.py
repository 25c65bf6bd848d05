"""What the report says: records in, sentences and tables out. No file and no drawing here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boardcluster.analysis.cells import security_of
from boardcluster.analysis.watched import WatchStanding
from boardcluster.records import ClusterSpec, ProbeRun, Result, Security, Verdict
from boardcluster.report import words
from boardcluster.report.evidence import Evidence
from boardcluster.report.findings import CellFinding, find, headline
from boardcluster.report.material import Material
from boardcluster.report.parts import Part
from boardcluster.report.sections import SECTIONS
from boardcluster.report.source import Source, has_ended, verified
from boardcluster.tuning.summary import TuningSummary

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the templates show."""

    cluster: str
    """Name of the cluster; may be empty."""
    headline: str
    """The main finding in one sentence."""
    headline_note: str
    """How sure it is, or what to do next."""
    headline_finding: CellFinding | None
    """The finding of the headline; None without a verified result."""
    emulated: bool
    """Whether any number is of emulated nodes."""
    partly_emulated: bool
    """Whether some are and some are not."""
    twins: str
    """What the nodes are, see ``analysis.node_words``; may be empty."""
    insecure: bool
    """Whether any number was measured while anyone could take the cluster over."""
    tainted: bool
    """Whether some of the runs that count are tainted."""
    measured: str
    """When the runs happened; may be empty."""
    verified: int
    """How many attempts have a verified output."""
    attempted: int
    """How many attempts at workloads have ended, without warm-ups."""
    sections: tuple[Part, ...]
    """What is below, in the order of ``sections.SECTIONS``."""

    def walk(self) -> Iterator[Part]:
        """Every part, each before those below it."""
        for section in self.sections:
            yield from section.walk()


def report_of(
    source: Source,
    *,
    cluster: ClusterSpec | None,
    evidence: Evidence | None = None,
    probes: Sequence[ProbeRun] = (),
    tunings: Sequence[TuningSummary] = (),
    watches: Sequence[WatchStanding] = (),
) -> Report:
    """Build the report.

    Args:
        source: the records.
        cluster: the cluster's declaration, for the list of nodes and prices.
        evidence: what the telemetry of the runs gave.
        probes: runs of probes on the cluster's nodes, oldest first.
        tunings: what tunings found, oldest first.
        watches: how watches of the performance stand.
    """
    material = Material(
        source=source,
        cluster=cluster,
        evidence=evidence or Evidence(),
        probes=tuple(probes),
        tunings=tuple(tunings),
        watches=tuple(watches),
    )
    findings = find(source, material.effects)
    sentence, note = headline(source, findings)
    emulated = _is_emulated(source, cluster)
    names = [item.cluster for item in source.campaigns.values()]
    names += [cluster.name] if cluster else []
    attempted = [row for row in source.of_workloads() if has_ended(row) and not row.trial.warm_up]
    return Report(
        cluster=", ".join(dict.fromkeys(names)),
        headline=sentence,
        headline_note=note,
        headline_finding=findings[0] if findings else None,
        emulated=emulated,
        partly_emulated=emulated and bool(source.results) and not source.all_emulated(),
        twins=material.twins,
        insecure=any(security_of(row) is Security.INSECURE_LAB for row in source.results),
        tainted=any(cell.counted(Verdict.TAINTED) for cell in source.cells),
        measured=_measured(source.results),
        verified=len(verified(source)),
        attempted=len(attempted),
        sections=tuple(part for section in SECTIONS for part in section(material)),
    )


def _is_emulated(source: Source, cluster: ClusterSpec | None) -> bool:
    """Whether any number is of nodes that are no boards; without any, whether there would be."""
    if cluster is not None and not source.results:
        return bool(cluster.capabilities.mark)
    campaigns = source.campaigns.values()
    return source.is_emulated(source.results) or any(item.emulated for item in campaigns)


def _measured(results: Sequence[Result]) -> str:
    ended = [item.attempt for item in results if item.attempt and item.attempt.ended_utc]
    if not ended:
        return ""
    first = words.moment(min(item.started_utc for item in ended))
    last = words.moment(max(item.ended_utc for item in ended))
    if first[:10] == last[:10] and first.endswith(" UTC"):
        return f"measured {first[:10]}, {first[11:16]} to {last[11:16]} UTC"
    return f"measured {first} to {last}"
