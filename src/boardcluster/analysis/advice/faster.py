"""Rules on what was measured to be faster already: another profile, other settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from boardcluster.analysis.advice.evidence import Advice
from boardcluster.analysis.advice.rule import Rule, measured, measured_advice
from boardcluster.analysis.advice.settings import engine_settings
from boardcluster.analysis.advice.view import View
from boardcluster.analysis.cells import Cell
from boardcluster.factors import settings_words

__all__ = ["FASTER_RULES"]

_SOURCE = "measured here, in cells that differ in nothing else"


def _profile(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "profile"):
        fast, slow = pair.faster.profile, pair.slower.profile
        yield measured_advice(
            rule,
            group,
            pair,
            title=f"Use the profile {PurePath(fast).name} for {group.subject}",
            seen=f"profile {PurePath(fast).name} instead of {PurePath(slow).name}",
            level=f'profile = "{fast}"',
        )


def _settings(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "levels"):
        fast, slow = _settings_of(pair.faster), _settings_of(pair.slower)
        if fast == slow or _others_of(pair.faster) != _others_of(pair.slower):
            continue
        words = _words(fast)
        yield measured_advice(
            rule,
            group,
            pair,
            title=f"Run {group.subject} with {_title(fast)}",
            seen=f"{words} instead of {_words(slow)}",
            setting=engine_settings(fast),
        )


def _settings_of(cell: Cell) -> Mapping[str, str]:
    return dict(dict(cell.configuration.levels).get("settings", ()))


def _others_of(cell: Cell) -> list[tuple[str, object]]:
    """The later factors that are no setting, such as the variant: they may be what is faster."""
    return [row for row in cell.configuration.levels if row[0] != "settings"]


def _words(settings: Mapping[str, str]) -> str:
    return settings_words(settings) or "no settings"


def _title(fast: Mapping[str, str]) -> str:
    """Return the settings if they are few; of many, as a search finds them, their number."""
    return _words(fast) if len(fast) <= 2 else f"the {len(fast)} settings that were faster"


FASTER_RULES = (
    Rule(name="profile", source=_SOURCE, find=_profile),
    Rule(name="settings", source=_SOURCE, find=_settings),
)
