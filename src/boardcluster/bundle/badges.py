"""The checklist of the ACM badges, filled in from what is in a bundle.

Source: ACM, "Artifact Review and Badging", version 1.1 (2020). What only reviewers can do stays
open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from boardcluster.bundle.facts import Authorship, BundledInput, RunCounts
from boardcluster.bundle.layout import BundleInfo

__all__ = ["badges"]

_Item: TypeAlias = tuple[str, bool]


def badges(
    facts: RunCounts, info: BundleInfo, inputs: Sequence[BundledInput], by: Authorship
) -> Mapping[str, Sequence[_Item]]:
    """Return for each badge what it asks for, in words, and whether it is there."""
    reviewers = "by the reviewers"
    return {
        "Artifacts Evaluated: Functional": _functional(facts, info),
        "Artifacts Evaluated: Reusable": [
            (f"licence: {by.licence or 'none was given'}", bool(by.licence)),
            ("described for machines: ro-crate-metadata.json", True),
            (
                "the source of all data that was read is in DATA.md",
                all(row.source for row in inputs),
            ),
        ],
        "Artifacts Available": [
            ("others may use it: LICENSE.txt", bool(by.licence)),
            ("its authors are named: CITATION.cff", bool(by.authors)),
            ("it is in an archive that keeps it, with a DOI: by the authors", False),
        ],
        "Results Reproduced": [(f"others repeated the runs with this bundle: {reviewers}", False)],
        "Results Replicated": [(f"others repeated them without it: {reviewers}", False)],
    }


def _functional(facts: RunCounts, info: BundleInfo) -> Sequence[_Item]:
    ended = facts.planned - facts.pending
    accounted = facts.verified + facts.failed + facts.invalid + facts.own_programs
    return [
        ("documented: README.md, and a record of each run", True),
        (
            (
                f"consistent: {facts.registered} of {facts.with_file} campaigns of a file have the "
                "file whose digest was stored before their first run"
            ),
            facts.registered == facts.with_file,
        ),
        (
            (
                f"complete: {ended} of {facts.planned} planned runs have ended; {facts.failed} "
                f"failed and {facts.invalid} invalid attempts are in it, too"
            ),
            facts.pending == 0,
        ),
        (
            f"complete: {facts.with_samples} of {info.attempts} runs have raw telemetry",
            facts.with_samples == info.attempts,
        ),
        ("exercisable: recompute.py computes every number of the report again", True),
        (
            (
                f"verified: the output of {facts.verified} runs was compared with an independent "
                "computation"
            ),
            accounted >= info.attempts,
        ),
    ]
