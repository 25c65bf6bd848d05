"""Rules on how HDFS keeps blocks: copies and checksums."""

from __future__ import annotations

import math
from collections.abc import Iterator

from boardcluster.analysis.advice.evidence import Advice, Certainty
from boardcluster.analysis.advice.published import published
from boardcluster.analysis.advice.rule import (
    LEAST_GAIN,
    Rule,
    advice,
    gain_words,
    measured,
    measured_advice,
    shrunk,
)
from boardcluster.analysis.advice.settings import matrix_key
from boardcluster.analysis.advice.view import RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.records import Checksum
from boardcluster.units import format_bytes, format_count

__all__ = ["BLOCK_RULES"]

_LEAST_OUTPUT_BYTES = 64 * 10**6  # below, start-up and metadata weigh more than blocks
_COPIES_SEEN = 1.5  # copies of the output on the nodes' disks: more than one
_CPU_SHARE = 0.50
_BLOCK_WORKLOADS = ("teragen", "terasort", "teravalidate", "dfsio")
"""Workloads whose CPU time is spent on moving bytes of blocks, which are all checked."""

_RISK_OF_ONE = "if a node is lost, so are its blocks"
_RISK_OF_NULL = "HDFS no longer notices corrupt blocks"


def _copies(rule: Rule, view: View) -> Iterator[Advice]:
    yield from _copies_measured(rule, view)
    for group in view.groups:
        run = group.typical
        output_bytes = run.measurement.output_bytes
        written_bytes = sum(run.measurement.node_written_bytes.values())
        if group.trial.replication == 1 or output_bytes < _LEAST_OUTPUT_BYTES or not written_bytes:
            continue
        between_bytes = run.measurement.intermediate_bytes
        if run.first not in (Bound.STORAGE, Bound.NETWORK) or between_bytes is None:
            continue
        copies = (written_bytes - between_bytes) / output_bytes
        if copies < _COPIES_SEEN:
            continue
        gain = _gain_of_one_copy(run, written_bytes, output_bytes, copies)
        if gain < LEAST_GAIN:
            continue
        yield advice(
            rule,
            group,
            title=f"Keep one copy of the output of {group.subject}",
            seen=(
                f"the nodes wrote {format_bytes(written_bytes)},"
                f" {format_bytes(between_bytes)} of it intermediate data, for"
                f" {format_bytes(output_bytes)} of output: {copies:.1f} copies; {run.bound_words}"
                f" ({group.where})"
            ),
            setting=matrix_key("replication = 1"),
            brings=f"{gain_words(gain, emulated=group.emulated)}; {_RISK_OF_ONE}",
            gain=gain,
        )


def _gain_of_one_copy(
    run: RunView, written_bytes: float, output_bytes: int, copies: float
) -> float:
    """What remains of writes to storage, and of traffic, when only the first copy is made."""
    saved_bytes = (copies - 1) * output_bytes
    storage = shrunk(run.share(Bound.STORAGE), 1 - saved_bytes / written_bytes)
    if run.first is Bound.STORAGE:
        return storage
    carried_bytes = _received_bytes(run)
    left = 1 - min(1.0, saved_bytes / carried_bytes) if carried_bytes else 1.0
    return shrunk(run.share(Bound.NETWORK), max(left, 1e-3))


def _received_bytes(run: RunView) -> float:
    """What all workers received over the run; 0 where it is unknown."""
    if run.facts is None:
        return 0.0
    rates = [row.received_bytes_per_second or 0.0 for row in run.nodes]
    return math.fsum(rates) * run.facts.duration_seconds


def _copies_measured(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "replication"):
        fewer = pair.faster.replication
        if 0 < fewer < (pair.slower.replication or math.inf):
            more = pair.slower.replication or "the profile's number of"
            yield measured_advice(
                rule,
                group,
                pair,
                title=f"Keep {format_count(fewer, 'copy', 'copies')} of the output of"
                f" {group.subject}",
                seen=f"{fewer} instead of {more} copies",
                level=f"replication = {fewer}",
                also=_RISK_OF_ONE if fewer == 1 else "fewer nodes may fail at once",
            )


def _checksums(rule: Rule, view: View) -> Iterator[Advice]:
    yield from _checksums_measured(rule, view)
    with_, without = published()["checksums-on"], published()["checksums-off"]
    for group in view.groups:
        run = group.typical
        share = run.share(Bound.CPU)
        known = group.trial.workload in _BLOCK_WORKLOADS
        on = group.trial.checksum is not Checksum.NULL
        if not (known and on) or run.first is not Bound.CPU or share < _CPU_SHARE:
            continue
        if group.emulated:  # checksums may cost this processor more or less than the paper's
            continue
        gain = shrunk(share, without.value / with_.value)
        yield advice(
            rule,
            group,
            title=f"Try {group.subject} without checksums of blocks",
            seen=f"{run.bound_words}; it moves blocks, all of which are checked ({group.where})",
            setting=matrix_key('checksum = "null"'),
            brings=(
                f"{gain_words(gain, emulated=group.emulated)}, if checksums cost as much as in the"
                f" paper: {with_.value:g} against {without.value:g} % of CPU; {_RISK_OF_NULL}"
            ),
            gain=gain,
            certainty=Certainty.PUBLISHED,
        )


def _checksums_measured(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "checksum"):
        if pair.faster.checksum is Checksum.NULL:
            yield measured_advice(
                rule,
                group,
                pair,
                title=f"Run {group.subject} without checksums of blocks",
                seen="without and with checksums",
                level='checksum = "null"',
                also=_RISK_OF_NULL,
            )


BLOCK_RULES = (
    Rule(
        name="replication",
        source="Lee and Park 2026, Table 9 (one copy); Lee, Oh and Park 2021, section VI-E",
        find=_copies,
    ),
    Rule(
        name="checksums",
        source=published()["checksums-on"].source,
        find=_checksums,
    ),
)
