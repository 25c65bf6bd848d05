"""The profile that a tuning writes: what is set on top of which profile, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from boardcluster.records import ClusterSpec, Engine
from boardcluster.spec.toml import toml_key, toml_text
from boardcluster.tuning.record import ProofResult, TuningRequest
from boardcluster.units import format_bytes

__all__ = ["ProfileParts", "tuned_profile"]

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileParts:
    """What a profile's file says."""

    base: str
    """The profile that it is on top of; empty for none."""
    class_data_archives: Sequence[Engine] | None = None
    """The engines whose jobs have class-data archives; nothing where its base decides."""
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Its properties by configuration file."""


def tuned_profile(
    parts: ProfileParts,
    request: TuningRequest,
    spec: ClusterSpec,
    proof: ProofResult,
    *,
    day: str,
    campaign: str,
) -> str:
    """Return the text of the file.

    Args:
        parts: what is set.
        request: what was tuned.
        spec: the cluster that it was tuned on.
        proof: what was shown.
        day: the date.
        campaign: the campaign that proves it.
    """
    worker = min(spec.workers, key=lambda node: (node.memory_bytes, node.cores))
    facts: dict[str, str | int | float] = {
        "workload": request.target,
        "engine": request.engine,
        "size": format_bytes(request.size_bytes) if request.size_bytes else "",
        "objective": request.objective,
        "kind": spec.kind,
        "workers": len(spec.workers),
        "cores": worker.cores,
        "memory_mib": worker.memory_bytes // _MIB,
        "engines": spec.engines,
        "date": day,
        "version": request.version,
        "against": request.base,
        "ratio": round(proof.ratio, 4),
        "low": round(proof.low, 4),
        "high": round(proof.high, 4),
        "pairs": proof.pairs,
        "campaign": campaign,
    }
    archives = parts.class_data_archives
    source = (
        f"tuned on {day} for {request.target} on {request.engine}: {proof.ratio:.2f} times the"
        f" {request.objective} of {request.base} ({proof.low:.2f} to {proof.high:.2f}, 95 %,"
        f" {proof.pairs} pairs)"
    )
    lines = [
        '# Written by `boardcluster tune`. Use it as profile = "..." in cluster.toml or in a',
        "# [[matrix]]. [tuned] says what it was measured on; elsewhere it may be no better.",
        f"source = {toml_text(source)}",
        *([f"base = {toml_text(parts.base)}"] if parts.base else []),
        *(
            []
            if archives is None
            else [f"class_data_archives = [{', '.join(map(toml_text, archives))}]"]
        ),
        "",
        "[tuned]",
        *(
            f"{key} = {toml_text(str(value)) if isinstance(value, str) else value}"
            for key, value in facts.items()
        ),
    ]
    for file, rows in parts.tables.items():
        if rows:
            lines += ["", f"[{toml_key(file)}]"]
            lines += [f"{toml_text(key)} = {toml_text(rows[key])}" for key in sorted(rows)]
    return "\n".join(lines) + "\n"
