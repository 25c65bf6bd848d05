"""What was different in rounds after a change from the rounds before it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from boardcluster.analysis.fingerprints import differences
from boardcluster.records import Fingerprint

__all__ = ["NUMBERS", "RoundFacts", "what_changed"]

NUMBERS: Mapping[str, tuple[str, float]] = {
    "temperature": ("°C", 2.0),
    "clock": ("GHz", 0.02),
    "foreign load": ("% of the time", 2.0),
    "steal": ("% of the time", 2.0),
    "throttled": ("% of the time", 2.0),
}
"""What a round is described by besides names and versions: its unit, and the least change that is
named."""

_CONFIGURATION = "generated configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFacts:
    """What a cell ran on in one round."""

    fingerprint: Fingerprint
    """Machine, engines and configuration."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """What the cluster, and not the campaign file, set: ``profile``, ``workers``, a property."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """By the names of ``NUMBERS``, as far as they are known."""


def what_changed(before: Sequence[RoundFacts], after: Sequence[RoundFacts]) -> tuple[str, ...]:
    """Name what is different after a change, one line each; empty where nothing is that is known.

    Names and versions are those of the last round before and the first round after. A number is
    named where its mean after the change is beyond every value before, by what ``NUMBERS`` says.

    Args:
        before: rounds before the change, in order; at least one.
        after: rounds after it, likewise.
    """
    one, other = before[-1], after[0]
    lines = [
        f"{key}: {one.levels.get(key, 'not set')}, then {other.levels.get(key, 'not set')}"
        for key in sorted({*one.levels, *other.levels})
        if one.levels.get(key) != other.levels.get(key)
    ]
    found = list(differences(one.fingerprint, other.fingerprint))
    lines += [line for line in found if line != _CONFIGURATION and not _said(line, lines)]
    if not lines and _CONFIGURATION in found:
        lines.append(_CONFIGURATION)
    for name, (unit, least) in NUMBERS.items():
        old = [row.numbers[name] for row in before if name in row.numbers]
        new = [row.numbers[name] for row in after if name in row.numbers]
        if old and new and (said := _number_words(name, unit, least, old, new)):
            lines.append(said)
    return tuple(lines)


def _said(line: str, lines: Sequence[str]) -> bool:
    """Whether a difference is named already, such as that of the profile."""
    key = line.partition(":")[0]
    return any(row.startswith(f"{key}: ") for row in lines)


def _number_words(
    name: str, unit: str, least: float, old: Sequence[float], new: Sequence[float]
) -> str:
    mean, usual = sum(new) / len(new), sum(old) / len(old)
    if min(old) - least <= mean <= max(old) + least:
        return ""
    return f"{name}: {usual:.3g} {unit} before, {mean:.3g} {unit} after"
