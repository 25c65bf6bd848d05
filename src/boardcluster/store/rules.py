"""What must hold before an attempt may end."""

from __future__ import annotations

import math

from boardcluster.errors import StoreError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Measurement,
    Telemetry,
    Verdict,
)

__all__ = ["check_end", "check_telemetry"]

_HINT = "report this: the driver broke the store's rules"


def check_end(campaign: Campaign, attempt: Attempt, measurement: Measurement | None) -> None:
    """Check that an attempt may end like this.

    Raises:
        StoreError: ok without a measurement or its proof, not ok without a reason, or a number
            that cannot be one.
    """
    name = f"attempt {attempt.number} of {attempt.trial_id}"
    if attempt.state is AttemptState.RUNNING or not attempt.ended_utc:
        raise StoreError(f"{name} has no end", hint=_HINT)
    if measurement is not None:
        _check_numbers(name, measurement)
    if attempt.state is not AttemptState.OK:
        if not attempt.reason.strip():
            raise StoreError(f"{name} is {attempt.state} without a reason", hint=_HINT)
        return
    if measurement is None:
        raise StoreError(f"{name} cannot be ok without a measurement", hint=_HINT)
    if measurement.exit_status != 0:
        raise StoreError(f"{name} cannot be ok: status {measurement.exit_status}", hint=_HINT)
    if measurement.verdict is Verdict.INVALID:
        raise StoreError(f"{name} cannot be ok: its verdict is invalid", hint=_HINT)
    proof = measurement.verification
    if proof is None and campaign.kind is not CampaignKind.SUBMIT:
        raise StoreError(f"{name} cannot be ok without a verified output", hint=_HINT)
    if proof is not None and proof.expected_sha256 != proof.actual_sha256:
        raise StoreError(f"{name} cannot be ok: its output is not the expected one", hint=_HINT)


def check_telemetry(
    attempt: Attempt, measurement: Measurement | None, telemetry: Telemetry | None
) -> None:
    """Check that a judged run comes with the samples that it was judged by.

    Raises:
        StoreError: it does not.
    """
    judged = measurement is not None and measurement.verdict is not Verdict.UNJUDGED
    if attempt.state is AttemptState.OK and judged and telemetry is None:
        name = f"attempt {attempt.number} of {attempt.trial_id}"
        raise StoreError(f"{name} cannot be ok: it was judged without telemetry", hint=_HINT)


def _check_numbers(name: str, found: Measurement) -> None:
    """Refuse what neither JSON nor SQLite can hold, and times and bytes below zero."""
    if not (math.isfinite(found.duration_seconds) and found.duration_seconds > 0):
        raise StoreError(f"{name} took {found.duration_seconds} s", hint=_HINT)
    if not (math.isfinite(found.dilation) and found.dilation >= 1):
        raise StoreError(f"{name} has a dilation of {found.dilation}", hint=_HINT)
    for phase, seconds in found.phases_seconds.items():
        if not (math.isfinite(seconds) and seconds >= 0):
            raise StoreError(f"{name}: phase {phase} took {seconds} s", hint=_HINT)
    for figure, value in found.figures.items():
        if not math.isfinite(value):
            raise StoreError(f"{name}: figure {figure} is {value}", hint=_HINT)
    sizes = {
        "intermediate_bytes": found.intermediate_bytes or 0,
        **{f"bytes written on {node}": size for node, size in found.node_written_bytes.items()},
        **{f"bytes read on {node}": size for node, size in found.node_read_bytes.items()},
    }
    for what, size in sizes.items():
        if size < 0:
            raise StoreError(f"{name}: {what} is {size}", hint=_HINT)
