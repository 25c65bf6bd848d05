"""The samples of one node, cut to the time that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boardcluster.records import NodeSamples

__all__ = ["Flags", "Series", "Track", "Window", "seconds_text"]

Series: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

_STANDING = 3.5  # for more readings than this, one does not say what was going on
_PACE_SAMPLES = 15
_STEADY_SAMPLES = 2000


def seconds_text(value_seconds: float) -> str:
    """A moment or a duration of a run, always in seconds: ``14 s``, ``0.35 s``, ``4210 s``."""
    if abs(value_seconds) >= 100:
        return f"{value_seconds:.0f} s"
    return f"{value_seconds:.3g} s"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """The known values of one column. Some are read less often than samples are taken."""

    values: Series
    """Those that are known."""
    ends: Series
    """When each was read, in seconds, rising."""
    begins: Series
    """When the one before it was read: an amount is from then on."""
    start_seconds: float
    """Begin of the span that is judged."""
    end_seconds: float
    """End of the span."""

    @property
    def shares(self) -> Series:
        """Share of each value's interval that lies within the span, 0 to 1."""
        inside: Series = np.minimum(self.ends, self.end_seconds) - np.maximum(
            self.begins, self.start_seconds
        )
        return np.maximum(inside, 0.0) / (self.ends - self.begins)

    def total(self) -> float:
        """Sum of an amount over the span; a negative one is unknown."""
        return float(np.sum(self.shares * np.maximum(self.values, 0.0)))

    def sums(self) -> tuple[Series, Series]:
        """Moments, and the sum of an amount until each of them; a negative one is unknown."""
        return (
            np.concatenate((self.begins[:1], self.ends)),
            np.concatenate(([0.0], np.cumsum(np.maximum(self.values, 0.0)))),
        )

    def rates(self) -> Series:
        """Amounts per second."""
        return self.values / (self.ends - self.begins)

    @property
    def stands_from(self) -> Series:
        """Since when each value is taken to have held; a long pause says little."""
        longest = _STANDING * float(np.median(self.ends - self.begins))
        since: Series = np.maximum(self.begins, self.ends - longest)
        return since

    def seconds(self, flags: Flags) -> float:
        """How long something held, by the readings that say so."""
        begins = np.maximum(self.stands_from, self.start_seconds)
        lengths = np.minimum(self.ends, self.end_seconds) - begins
        return float(np.sum(np.maximum(lengths, 0.0) * flags))

    def when(self, flags: Flags) -> str:
        """From when to when something held: ``from 14 s on``, ``at 20 s``, ``all the time``."""
        places = np.flatnonzero(flags & (self.shares > 0))
        if not len(places):
            return "in parts of it"
        span_seconds = self.end_seconds - self.start_seconds
        beat_seconds = float(np.median(self.ends - self.begins))
        first = max(self.start_seconds, float(self.begins[places[0]]))
        last = min(self.end_seconds, float(self.ends[places[-1]]))
        to_end = last >= self.end_seconds - beat_seconds
        if first <= self.start_seconds + beat_seconds and to_end:
            whole = self.seconds(flags) >= 0.9 * span_seconds
            return "all the time" if whole else "on and off"
        if to_end:
            return f"from {seconds_text(first)} on"
        if len(places) == 1:
            return f"at {seconds_text(last)}"
        return f"from {seconds_text(first)} to {seconds_text(last)}"

    def changes(self, *, tolerance: float = 0.0) -> list[int]:
        """Places within the span whose value differs from that of the reading before."""
        same = np.isclose(self.values[1:], self.values[:-1], rtol=tolerance, atol=0.0)
        return [int(place) + 1 for place in np.flatnonzero(~same) if self.shares[place + 1] > 0]

    def moment(self, place: int) -> str:
        """When a value was read, as ``14 s of 60 s``."""
        moment = min(float(self.ends[place]), self.end_seconds)
        return f"{seconds_text(moment)} of {seconds_text(self.end_seconds - self.start_seconds)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """One node's samples over a span of time; what is unreadable counts as unknown."""

    node: str
    """Its name."""
    scope: str
    """``machine`` or ``node``."""
    cores: int
    """CPUs that the node may use, at least 1."""
    start_seconds: float
    """Begin of the span."""
    end_seconds: float
    """End of the span."""
    ends: Series
    """End of each sample's interval, in seconds, rising."""
    paces: Series
    """The pause between samples that the agent kept then, in seconds."""
    columns: Mapping[str, Series]
    """By name; as long as ``ends``; infinite values are NaN."""
    notes: tuple[str, ...]
    """What the agent had to say."""

    @classmethod
    def of(cls, samples: NodeSamples, *, start_seconds: float, end_seconds: float) -> Self:
        """Cut samples to a span. Samples may be unsorted, twice the same, or have no time."""
        times = np.asarray(samples.seconds, dtype=np.float64)
        order = np.argsort(times, kind="stable")
        order = order[np.isfinite(times[order])]
        fresh = np.diff(times[order], prepend=-np.inf) > 0
        order = order[fresh]
        asked_seconds = float(samples.interval_seconds)
        return cls(
            node=samples.node,
            scope=samples.scope,
            cores=max(1, samples.cores),
            start_seconds=start_seconds,
            end_seconds=end_seconds,
            ends=times[order],
            paces=_paces(times[order], asked_seconds if 0 < asked_seconds < np.inf else 1.0),
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

    @property
    def moments(self) -> Track:
        """Every sample, for what is told by several columns together."""
        return self._track(np.ones(len(self.ends), dtype=np.bool_), np.ones(len(self.ends)))

    def column(self, name: str) -> Series | None:
        """A column, sample by sample; None if it is missing or has no known value."""
        values = self.columns.get(name)
        return None if values is None or bool(np.isnan(values).all()) else values

    def track(self, name: str) -> Track | None:
        """The known values of a column; None if there are none."""
        values = self.column(name)
        return None if values is None else self._track(~np.isnan(values), values)

    def family(self, name: str) -> dict[str, Track]:
        """The columns ``name/MEMBER`` that have a known value, by member, in their order."""
        start = f"{name}/"
        return {
            key.removeprefix(start): found
            for key in self.columns
            if key.startswith(start) and (found := self.track(key)) is not None
        }

    def total(self, name: str) -> float:
        """Sum of an amount over the span; 0 if it is not known."""
        found = self.track(name)
        return found.total() if found else 0.0

    def track_where(self, known: Flags, values: Series) -> Track | None:
        """The values of some samples as a track; None if there are none."""
        return self._track(known, values) if known.any() else None

    def busy(self, share: float) -> Flags:
        """Where at least a share of its CPU time was used, I/O wait and steal left out."""
        used = np.zeros(len(self.ends))
        for name in ("user", "system", "irq"):
            found = self.column(f"cpu_{name}_seconds")
            used += 0.0 if found is None else np.nan_to_num(found)
        lengths = np.diff(self.ends, prepend=self._before_first())
        return np.asarray(used >= share * self.cores * lengths)

    def median(self, values: Series, flags: Flags) -> float:
        """Middle of the known values where something held; NaN if there is none."""
        known = values[flags & ~np.isnan(values)]
        return float(np.median(known)) if len(known) else float("nan")

    def _before_first(self) -> Series:
        return self.ends[:1] - self.paces[:1]

    def _track(self, known: Flags, values: Series) -> Track:
        """An agent reads everything in its first sample, so the first amount is from then on."""
        ends = self.ends[known]
        first = self._before_first() if known[:1].all() else self.ends[:1]
        return Track(
            values=values[known],
            ends=ends,
            begins=np.concatenate((first, ends[:-1])),
            start_seconds=self.start_seconds,
            end_seconds=self.end_seconds,
        )


def _paces(ends: Series, asked_seconds: float) -> Series:
    """The pause that an agent kept at each sample.

    It doubles the pause whenever half of the room for its file is gone, which is after thousands of
    samples, and never goes back. Longer pauses before that, or for a while, are gaps.
    """
    paces = np.full(len(ends), asked_seconds)
    if len(ends) <= _STEADY_SAMPLES + _PACE_SAMPLES:
        return paces
    near = np.lib.stride_tricks.sliding_window_view(np.diff(ends), _PACE_SAMPLES)
    usual = np.median(near, axis=1)
    tail = np.concatenate((usual, np.full(len(ends) - len(usual), usual[-1])))
    doublings = np.floor(np.log2(np.maximum(tail, asked_seconds) / asked_seconds) + 0.1)
    doublings[:_STEADY_SAMPLES] = 0
    paces *= 2 ** np.minimum.accumulate(doublings[::-1])[::-1]
    return paces


def _readable(values: Series) -> Series:
    numbers = np.array(values, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers
