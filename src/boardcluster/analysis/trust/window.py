"""The samples of one node, cut to the time that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boardcluster.records import NodeSamples

__all__ = ["Flags", "Series", "Window", "seconds_text"]

Series: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

_LONGEST_STANDING_INTERVALS = 3.5  # for longer, one sample does not say what was going on


def seconds_text(value_seconds: float) -> str:
    """A moment or a duration of a run, always in seconds: ``14 s``, ``0.35 s``, ``4210 s``."""
    if abs(value_seconds) >= 100:
        return f"{value_seconds:.0f} s"
    return f"{value_seconds:.3g} s"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """One node's samples over a span of time; what is unreadable counts as unknown.

    Attributes:
        node: its name.
        scope: ``machine`` or ``node``.
        cores: CPUs that the node may use, at least 1.
        interval_seconds: pause between samples as asked for, more than 0.
        start_seconds: begin of the span.
        end_seconds: end of the span.
        ends: end of each sample's interval, in seconds, rising.
        begins: begin of each sample's interval, in seconds: the end of the one before.
        shares: share of each sample's interval that lies within the span, 0 to 1.
        columns: by name; as long as ``ends``; infinite values are NaN.
        notes: what the agent had to say.
    """

    node: str
    scope: str
    cores: int
    interval_seconds: float
    start_seconds: float
    end_seconds: float
    ends: Series
    begins: Series
    shares: Series
    columns: Mapping[str, Series]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, samples: NodeSamples, *, start_seconds: float, end_seconds: float) -> Self:
        """Cut samples to a span. Samples may be unsorted, twice the same, or have no time."""
        times = np.asarray(samples.seconds, dtype=np.float64)
        asked_seconds = float(samples.interval_seconds)
        interval_seconds = asked_seconds if 0 < asked_seconds < np.inf else 1.0
        order = np.argsort(times, kind="stable")
        order = order[np.isfinite(times[order])]
        ends = times[order]
        fresh = np.diff(ends, prepend=-np.inf) > 0
        order, ends = order[fresh], ends[fresh]
        begins = np.concatenate((ends[:1] - interval_seconds, ends[:-1]))
        inside = np.minimum(ends, end_seconds) - np.maximum(begins, start_seconds)
        return cls(
            node=samples.node,
            scope=samples.scope,
            cores=max(1, samples.cores),
            interval_seconds=interval_seconds,
            start_seconds=start_seconds,
            end_seconds=end_seconds,
            ends=ends,
            begins=begins,
            shares=np.clip(inside, 0.0, None) / (ends - begins),
            columns={
                name: _readable(values)[order]
                for name, values in samples.columns.items()
                if len(values) == len(times)
            },
            notes=samples.notes,
        )

    @property
    def span_seconds(self) -> float:
        """Length of the span."""
        return self.end_seconds - self.start_seconds

    @property
    def cpu_seconds(self) -> float:
        """CPU time that all of its cores have in the span."""
        return self.cores * self.span_seconds

    def column(self, name: str) -> Series | None:
        """A column; None if it is missing or has no known value."""
        values = self.columns.get(name)
        return None if values is None or bool(np.isnan(values).all()) else values

    def family(self, name: str) -> dict[str, Series]:
        """The columns ``name/MEMBER`` that have a known value, by member, in their order."""
        start = f"{name}/"
        return {
            key.removeprefix(start): values
            for key in self.columns
            if key.startswith(start) and (values := self.column(key)) is not None
        }

    def total(self, name: str) -> float | None:
        """Sum of an amount over the span; None if it is not known. A negative amount is unknown."""
        values = self.column(name)
        if values is None:
            return None
        return float(np.sum(self.shares * np.where(values > 0, values, 0.0)))

    def seconds(self, flags: Flags) -> float:
        """How long something held, by the samples that say so."""
        return float(np.sum(self._standing_seconds() * flags))

    def when(self, flags: Flags) -> str:
        """From when to when something held: ``from 14 s on``, ``at 20 s``, ``all the time``."""
        places = np.flatnonzero(flags & (self.shares > 0))
        if not len(places):
            return "at no sample"
        first = max(self.start_seconds, float(self.begins[places[0]]))
        last = min(self.end_seconds, float(self.ends[places[-1]]))
        from_start = first <= self.start_seconds + self.interval_seconds
        to_end = last >= self.end_seconds - self.interval_seconds
        if from_start and to_end:
            return (
                "all the time" if self.seconds(flags) >= 0.9 * self.span_seconds else "on and off"
            )
        if to_end:
            return f"from {seconds_text(first)} on"
        if len(places) == 1:
            return f"at {seconds_text(last)}"
        return f"from {seconds_text(first)} to {seconds_text(last)}"

    def busy(self, share: float) -> Flags:
        """Where more than a share of its CPU time was used, I/O wait and steal left out."""
        lengths = self.ends - self.begins
        used = sum(
            (
                np.nan_to_num(found)
                for name in ("user", "system", "irq")
                if (found := self.column(f"cpu_{name}_seconds")) is not None
            ),
            start=np.zeros(len(self.ends)),
        )
        return np.asarray(used > share * self.cores * lengths)

    def median(self, values: Series, flags: Flags) -> float:
        """Middle of the known values where something held; NaN if there is none."""
        known = values[flags & ~np.isnan(values)]
        return float(np.median(known)) if len(known) else float("nan")

    def _standing_seconds(self) -> Series:
        """How long each sample's state is taken to have lasted within the span."""
        longest = self.ends - _LONGEST_STANDING_INTERVALS * self.interval_seconds
        begins = np.maximum(np.maximum(self.begins, longest), self.start_seconds)
        lengths: Series = np.minimum(self.ends, self.end_seconds) - begins
        return np.maximum(lengths, 0.0)


def _readable(values: Series) -> Series:
    numbers = np.array(values, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers
