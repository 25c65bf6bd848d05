"""The space of settings, ``space.toml``, made concrete for a cluster; what is ruled out of it."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TypeAlias

from boardcluster.records import ClusterSpec, Engine

__all__ = [
    "Dimension",
    "Level",
    "Params",
    "RuledOut",
    "Tunable",
    "dimensions",
    "level_words",
    "narrowed",
    "params_of",
    "read_space",
    "settings_of_params",
]

Level: TypeAlias = "str | int | float"
"""A value of a setting: a choice's text, a whole number in its unit, or a share."""
Params: TypeAlias = "Mapping[str, Level]"
"""Values by the settings' names."""

_MIB = 1 << 20
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30}
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": _MIB}
_LOOKS = 16
"""At so many values it is looked for one that can run, where the least cannot."""


def level_words(level: Level) -> str:
    """Return a value in words: of a class its own name alone."""
    text = level if isinstance(level, str) else f"{level:g}"
    return text.rpartition(".")[2] if text.startswith("org.") else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """One row of the space; the head of ``space.toml`` says what its fields mean."""

    name: str
    """What it is called."""
    properties: tuple[str, ...]
    """The properties that it sets."""
    engines: tuple[Engine, ...]
    """Whose jobs read it."""
    kind: str
    """``choice``, ``whole`` or ``share``."""
    why: str
    """What it trades for what."""
    values: tuple[str, ...] = ()
    """The values of a choice."""
    low: float = 0
    """Least number."""
    high: float = 0
    """Largest number, a multiple of ``high_per``."""
    high_per: str = ""
    """What ``high`` is counted in; empty for a plain number."""
    step: float = 0
    """Numbers are multiples of it; 0 for whole numbers."""
    log: bool = False
    """Whether ratios count and not differences."""
    unit: str = ""
    """``KiB`` or ``MiB`` of a whole number."""
    flags: bool = False
    """Whether the value joins others in a JVM's options."""
    unset: str = ""
    """What holds where nothing sets it."""
    only_for: tuple[str, ...] = ()
    """The workloads that it concerns; empty for all."""
    not_for: tuple[str, ...] = ()
    """Those that it does not."""
    fixed_by: tuple[str, ...] = ()
    """Parameters of workloads that set it on the command line."""

    def fixing(self, parameters: Mapping[str, str]) -> str:
        """Return the parameter that sets it already, as ``NAME=VALUE``; empty if none does.

        Parameters are named with their workload, as ``terasort.reduces``.
        """
        for entry in self.fixed_by:
            name, _, value = entry.partition("=")
            there = parameters.get(name, "0")
            if there == value if value else there != "0":
                return f"{name}={there}"
        return ""

    def concerns(self, engine: Engine, workload: str) -> bool:
        """Whether it can matter to a workload on an engine."""
        chosen = not self.only_for or workload in self.only_for
        return engine in self.engines and chosen and workload not in self.not_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A row of the space with the values that one cluster allows."""

    tunable: Tunable
    """The row."""
    values: tuple[str, ...] = ()
    """The values of a choice."""
    low: float = 0
    """Least number."""
    high: float = 0
    """Largest number."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.tunable.name

    @property
    def is_choice(self) -> bool:
        """Whether its values are words."""
        return self.tunable.kind == "choice"

    @property
    def words(self) -> str:
        """Its values in words."""
        if self.is_choice:
            return ", ".join(map(level_words, self.values))
        unit = f" {self.tunable.unit}" if self.tunable.unit else ""
        return f"{self.low:g} to {self.high:g}{unit}"

    def snapped(self, level: Level) -> Level:
        """Return the nearest value that it allows; a choice as it is."""
        if self.is_choice or isinstance(level, str):
            return level
        step = self.tunable.step or 1
        number = min(self.high, max(self.low, round(level / step) * step))
        return int(number) if self.tunable.kind == "whole" else round(number, 4)

    def allows(self, level: Level) -> bool:
        """Whether it is one of its values."""
        if self.is_choice or isinstance(level, str):
            return level in self.values
        return self.low <= level <= self.high

    def text(self, level: Level) -> str:
        """Return a value as text, with its unit."""
        if isinstance(level, str):
            return level
        return f"{level:g} {self.tunable.unit}".strip()

    def read(self, texts: Mapping[str, str]) -> Level | None:
        """Return the value that properties give it, at most its ends; None where it is unknown."""
        text = texts.get(self.tunable.properties[0], "")
        if self.tunable.flags:
            return next((value for value in self.values if value in text.split()), self._unset())
        if not text:
            return self._unset()
        if self.is_choice:
            return text if text in self.values else None
        number = _number(text, self.tunable)
        return None if number is None else self.snapped(number)

    def _unset(self) -> Level | None:
        tunable = self.tunable
        level = (
            tunable.unset if self.is_choice else _number(tunable.unset, replace(tunable, unit=""))
        )
        return level if level is not None and self.allows(level) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOut:
    """What is not tried, because it cannot run or would have no effect."""

    what: str
    """The values, or the combination."""
    reason: str
    """Why, with the arithmetic if there is one."""


@functools.cache
def read_space() -> tuple[Tunable, ...]:
    """Return every row of ``space.toml``."""
    text = resources.files("boardcluster.tuning").joinpath("space.toml").read_text()
    return tuple(_tunable(row) for row in tomllib.loads(text)["setting"])


def _tunable(row: dict[str, object]) -> Tunable:
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    lists["engines"] = tuple(Engine(name) for name in lists["engines"])
    return Tunable(**{**row, **lists})  # type: ignore[arg-type]


def dimensions(
    spec: ClusterSpec, engine: Engine, workload: str, *, cores: int
) -> tuple[Dimension, ...]:
    """Return the rows that concern a workload, with their ranges on a cluster.

    Args:
        spec: the cluster.
        engine: the engine.
        workload: the workload's name; ``submit`` for the user's own program.
        cores: cores of all workers that are really there.
    """
    per = {
        "": 1,
        "cores": cores,
        "busy_workers": min(len(spec.workers), cores),
        "node_cores": min(worker.cores for worker in spec.workers),
        "node_mib": min(worker.memory_bytes for worker in spec.workers) // _MIB,
    }
    found = []
    for row in read_space():
        if not row.concerns(engine, workload):
            continue
        if row.kind == "choice":
            found.append(Dimension(tunable=row, values=row.values))
            continue
        step = row.step or 1
        high = row.high * per[row.high_per] // step * step if row.high_per else row.high
        if high > row.low:  # else there is nothing to choose
            found.append(Dimension(tunable=row, low=row.low, high=high))
    return tuple(found)


def settings_of_params(space: Sequence[Dimension], params: Params) -> dict[str, str]:
    """Return the properties that values stand for, as a user would write them."""
    found: dict[str, list[str]] = {}
    for row in space:
        if row.name not in params:
            continue
        for key in row.tunable.properties:
            found.setdefault(key, []).append(row.text(params[row.name]))
    return {key: " ".join(texts) for key, texts in found.items()}


def params_of(space: Sequence[Dimension], texts: Mapping[str, str]) -> dict[str, Level]:
    """Return the values that properties give, as far as they are in the space."""
    read = {row.name: row.read(texts) for row in space}
    return {name: level for name, level in read.items() if level is not None}


def narrowed(
    space: Sequence[Dimension], refusal_of: Callable[[Mapping[str, str]], str]
) -> tuple[tuple[Dimension, ...], tuple[RuledOut, ...]]:
    """Leave out the values that cannot run even if nothing else is changed.

    Args:
        space: the rows.
        refusal_of: says why properties cannot run on top of the base; empty if they can.
    """
    kept, out = [], []
    for row in space:
        new, gone = _narrow(row, lambda params: refusal_of(settings_of_params(space, params)))
        kept += [new] if new is not None else []
        out += gone
    return tuple(kept), tuple(out)


def _narrow(
    row: Dimension, refused: Callable[[Params], str]
) -> tuple[Dimension | None, list[RuledOut]]:
    if row.is_choice:
        why = {value: refused({row.name: value}) for value in row.values}
        values = tuple(value for value in row.values if not why[value])
        out = [RuledOut(what=f"{row.name} {v}", reason=why[v]) for v in row.values if why[v]]
        return (replace(row, values=values) if len(values) > 1 else None), out
    low, high = row.low, row.high
    out = []
    if reason := refused({row.name: row.snapped(low)}):
        fits = _first_that_fits(row, refused)
        if fits is None:
            return None, [RuledOut(what=f"{row.name} from {row.text(low)}", reason=reason)]
        low, fails, reason = _edge(row, fits, low, reason, refused)
        out = [RuledOut(what=f"{row.name} up to {row.text(fails)}", reason=reason)]
    if reason := refused({row.name: row.snapped(high)}):
        high, fails, reason = _edge(row, low, high, reason, refused)
        out.append(RuledOut(what=f"{row.name} from {row.text(fails)}", reason=reason))
    return (replace(row, low=low, high=high) if high > low else None), out


def _first_that_fits(row: Dimension, refused: Callable[[Params], str]) -> float | None:
    """Return one of the least values that can run, where the least of all cannot; None if none can.

    A container of a task has to hold what the base sets for its buffers.
    """
    for part in range(1, _LOOKS + 1):
        share = part / _LOOKS
        if row.tunable.log:
            number = row.low * (row.high / row.low) ** share
        else:
            number = row.low + (row.high - row.low) * share
        level = row.snapped(number)
        if not refused({row.name: level}):
            return float(level)
    return None


def _edge(
    row: Dimension, fits: float, fails: float, reason: str, refused: Callable[[Params], str]
) -> tuple[float, float, str]:
    """Return the last value that can run, and the next one with why it cannot.

    Args:
        row: the row.
        fits: a value that can run.
        fails: one that cannot, larger or smaller.
        reason: why.
        refused: says why a value cannot run.
    """
    while abs(fails - fits) > (row.tunable.step or 1):  # at most log2(range / step) times
        level = row.snapped((fits + fails) / 2)
        if level in {fits, fails}:
            break
        if found := refused({row.name: level}):
            fails, reason = float(level), found
        else:
            fits = float(level)
    return fits, fails, reason


def _number(text: str, tunable: Tunable) -> float | None:
    """Return a number in the row's unit; None for what is none."""
    if not (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", text.strip().lower())):
        return None
    number = float(found[1])
    if not tunable.unit:
        return None if found[2] else number
    plain = _MIB if tunable.properties[0].endswith((".mb", "-mb")) else 1
    size_bytes = number * (_BYTES[found[2]] if found[2] else plain)
    return size_bytes / _UNITS[tunable.unit]
