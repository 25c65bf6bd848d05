"""What the texts of a bundle say of its runs: counted once, from the records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from boardcluster.analysis.fingerprints import same_setup
from boardcluster.bundle.gather import Gathered
from boardcluster.records import AttemptState, CampaignKind

__all__ = ["Authorship", "BundledInput", "RunCounts", "count_runs", "inputs_of", "text_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """What only the authors know."""

    title: str = ""
    """Title of the bundle; empty for one made of the campaigns' names."""
    authors: tuple[str, ...] = ()
    """Names, each with an ORCID behind it if there is one: ``Ada Lovelace 0000-0001-2345-6789``;
    none for a bundle whose reviewers must not know them."""
    licence: str = ""
    """SPDX identifier of the licence of the data; empty if none was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Counts over all runs in a bundle."""

    planned: int
    """Planned trials."""
    verified: int
    """Attempts whose output was verified."""
    failed: int
    """Attempts that failed."""
    invalid: int
    """Attempts that say nothing about their trial."""
    pending: int
    """Trials without an ended attempt."""
    with_samples: int
    """Attempts with telemetry."""
    with_energy: int
    """Attempts with an energy."""
    own_programs: int
    """Attempts at a program of the user's own, whose output nobody verified."""
    setups: int
    """Different fingerprints."""
    registered: int
    """Campaigns whose file is the one whose digest was stored before the first run."""
    with_file: int
    """Campaigns that were begun from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledInput:
    """Data that runs read."""

    name: str
    """What it is, such as ``airline-256MB``."""
    sha256: str
    """Its content; empty if that was not recorded."""
    source: str
    """Where it came from."""
    size_bytes: int = 0
    """Its size; 0 if that was not recorded."""
    campaigns: tuple[str, ...] = field(default=())
    """Campaigns that read it, by their ids."""


def count_runs(gathered: Gathered, *, with_samples: int) -> RunCounts:
    """Count."""
    attempts = [(row, row.attempt) for row in gathered.results if row.attempt is not None]
    own = {
        row.campaign.id for row in gathered.campaigns if row.campaign.kind is CampaignKind.SUBMIT
    }
    states = [attempt.state for _, attempt in attempts]
    files = [row for row in gathered.campaigns if row.campaign.name]
    return RunCounts(
        planned=sum(row.summary.planned for row in gathered.campaigns),
        verified=sum(
            row.measurement is not None and row.measurement.verification is not None
            for row, attempt in attempts
            if attempt.state is AttemptState.OK
        ),
        failed=states.count(AttemptState.FAILED),
        invalid=states.count(AttemptState.INVALID),
        pending=sum(row.summary.pending for row in gathered.campaigns),
        with_samples=with_samples,
        with_energy=sum(
            row.measurement is not None
            and row.measurement.energy is not None
            and row.measurement.energy.energy_joules is not None
            for row, _ in attempts
        ),
        own_programs=sum(row.trial.campaign_id in own for row, _ in attempts),
        setups=len({same_setup(attempt.fingerprint) for _, attempt in attempts}),
        registered=sum(row.is_registered for row in files),
        with_file=len(files),
    )


def inputs_of(gathered: Gathered, cases: Sequence[tuple[str, bytes]]) -> tuple[BundledInput, ...]:
    """Return the data that runs read, each once.

    Args:
        gathered: the records, which name a campaign's data where all its runs read the same.
        cases: campaigns with what their runs were asked to do, ``case.json``; redacted.
    """
    read: list[tuple[str, BundledInput]] = [
        (
            row.campaign.id,
            BundledInput(
                name=row.campaign.dataset,
                sha256=row.campaign.dataset_sha256,
                source=row.campaign.dataset_source,
            ),
        )
        for row in gathered.campaigns
        if row.campaign.dataset
    ]
    for campaign, content in cases:
        text = text_of(content)
        if text is not None:
            read.append((campaign, text))
    found: dict[tuple[str, str], BundledInput] = {}
    for campaign, row in read:
        known = found.get((row.name, row.sha256), row)
        found[row.name, row.sha256] = replace(
            row,
            source=known.source or row.source,
            size_bytes=known.size_bytes or row.size_bytes,
            campaigns=tuple(dict.fromkeys((*known.campaigns, campaign))),
        )
    return tuple(row for _, row in sorted(found.items()))


def text_of(content: bytes) -> BundledInput | None:
    """Return the text that a case names (``case.json``); None without one."""
    try:
        text = json.loads(content)["dataset"]
        if not text["name"]:
            return None
        return BundledInput(
            name=str(text["name"]),
            sha256=str(text.get("sha256", "")),
            source=str(text.get("source", "")),
            size_bytes=int(text.get("size_bytes", 0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
