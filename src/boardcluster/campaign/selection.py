"""``--only key=value[,value]``: a part of a campaign's trials. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.factors import FACTORS, Factor
from boardcluster.records import Trial
from boardcluster.services.settings import check_setting
from boardcluster.spec.checks import check_choice, mix_jobs, refusal, shown
from boardcluster.units import format_bytes_exact, parse_size

__all__ = ["SELECTION_KEYS", "Selection", "parse_only", "select"]

_EXAMPLE = "for example --only workload=grep,pi --only workers=4"


Selection: TypeAlias = Mapping[str, tuple[str | int, ...]]
"""For each key the values of which a trial must have one; no keys take every trial."""


def _mix(text: str) -> str:
    return "+".join(mix_jobs(text))


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) >= least):
            allowed = f"a whole number from {least}"
            raise refusal(f"{shown(text)} is not valid", allowed=allowed)
        return int(text)

    return read


def _reader(factor: Factor) -> Callable[[str], str | int]:
    """Return what reads a level of a factor."""
    if factor.name == "workload":
        return _mix
    if issubclass(factor.kind, StrEnum):
        words = list(factor.kind)
        return lambda text: check_choice(text, words, what=factor.noun)
    if factor.unit == "bytes":
        return parse_size
    if factor.kind is int:  # the default may stand for something else, as a replication of 0
        return _whole(factor.least if factor.default is None else min(factor.least, factor.default))
    return str


_FACTORS = {
    factor.file_key: factor
    for factor in FACTORS
    if factor.kind is not dict and factor.name != "input"
}
_READERS: Mapping[str, Callable[[str], str | int]] = {
    **{key: _reader(factor) for key, factor in _FACTORS.items()},
    "repetition": _whole(1),
}

SELECTION_KEYS = tuple(_READERS)
"""What trials can be chosen by, beside the engines' own properties."""


def parse_only(texts: Sequence[str]) -> Selection:
    """Read what ``--only`` says. Values of one key add up; different keys must all hold.

    Args:
        texts: each ``key=value`` or ``key=value,value``.

    Raises:
        UsageError: an unknown key or a wrong value; names what is allowed and the nearest.
    """
    values: dict[str, tuple[str | int, ...]] = {}
    for text in texts:
        key, equals, listed = text.partition("=")
        try:
            if "." not in key:  # a property of the engines has one, and is checked with its value
                check_choice(key.strip(), SELECTION_KEYS, what="a selection key")
            if not equals:
                raise refusal(f"{shown(text)} has no value", allowed=f"{key.strip()}=VALUE")
            read = tuple(_value(key.strip(), value.strip()) for value in listed.split(","))
        except ValueError as error:
            raise UsageError(f"--only {text}: {error}", hint=_EXAMPLE) from error
        values[key.strip()] = tuple(dict.fromkeys((*values.get(key.strip(), ()), *read)))
    return values


def _value(key: str, text: str) -> str | int:
    if not text:
        raise refusal("an empty value", allowed=f"{key}=VALUE or {key}=VALUE,VALUE")
    return check_setting(key, text) if "." in key else _READERS[key](text)


def select(trials: Sequence[Trial], selection: Selection) -> tuple[Trial, ...]:
    """Return the chosen trials in their order.

    ``repetition`` chooses among measured runs; the warm-ups of a chosen cell stay, since without
    them its measured runs would be colder than planned.

    Raises:
        EmptySelectionError: a value chooses nothing in the campaign, or the keys together choose
            nothing; names the values there are.
    """
    for key, wanted in selection.items():
        existing = _existing(trials, key)
        for value in wanted:
            if value not in existing:
                raise _empty(f"no run of the campaign has {_words(key, [value])}", key, existing)
    chosen = tuple(trials)
    taken: list[str] = []
    for key, wanted in selection.items():
        existing = _existing(chosen, key)
        chosen = tuple(trial for trial in chosen if _matches(trial, key, wanted))
        if all(trial.warm_up for trial in chosen):
            among = f" among those with {' and '.join(taken)}" if taken else ""
            raise _empty(f"no run has {_words(key, wanted)}{among}", key, existing)
        taken.append(_words(key, wanted))
    if not chosen:
        raise EmptySelectionError("the campaign has no runs", hint="add a matrix to its file")
    return chosen


def _value_of(trial: Trial, key: str) -> str | int:
    if "." in key:
        return trial.settings.get(key, "")
    value: str | int = _FACTORS[key].level(trial) if key in _FACTORS else getattr(trial, key)
    return value


def _existing(trials: Sequence[Trial], key: str) -> list[str | int]:
    """Return the values in use, of measured runs only."""
    return sorted({_value_of(trial, key) for trial in trials if not trial.warm_up})


def _matches(trial: Trial, key: str, wanted: Sequence[str | int]) -> bool:
    return (key == "repetition" and trial.warm_up) or _value_of(trial, key) in wanted


def _words(key: str, values: Sequence[str | int]) -> str:
    is_size = key in _FACTORS and _FACTORS[key].unit == "bytes"
    texts = [
        format_bytes_exact(value) if is_size and isinstance(value, int) else str(value) or "unset"
        for value in values
    ]
    return f"{key} {', '.join(texts)}"


def _empty(what: str, key: str, existing: Sequence[str | int]) -> EmptySelectionError:
    return EmptySelectionError(f"{what}; there is {_words(key, existing)}", hint=_EXAMPLE)
