"""What a node does now, and did in the last hour, from the lines of its agent."""

from __future__ import annotations

import json
import math
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from boardcluster.analysis.telemetry import own_interfaces
from boardcluster.records import PowerModel

__all__ = ["READINGS", "LiveReadings", "NodeFrame"]

READINGS = (
    *("user", "system", "iowait", "steal"),
    *("memory", "read", "written", "received", "sent"),
    *("celsius", "hertz", "throttled", "watts"),
)
"""What is shown of a node: cores by state; bytes; bytes per second; °C; Hz; the firmware's bits;
watts. NaN is unknown."""

_KEPT_SECONDS = 3600
_FIRST_COLUMNS = 1 << 16
_NEVER_NS = 1 << 63
"""Clocks end before, as they count in 64 bits; a node may write any number."""
_RECENT_LINES = 90
"""Enough for the minute over which bottlenecks are looked for."""
_STALE_SECONDS = 12.0
"""What agents read rarely, they read every 5 s; a state of longer ago is no longer known."""

_CPU = {
    "cpu_user_seconds": "user",
    "cpu_system_seconds": "system",
    "cpu_irq_seconds": "system",
    "cpu_iowait_seconds": "iowait",
    "cpu_steal_seconds": "steal",
}
_RATES = {
    "disk_read_bytes": "read",
    "disk_written_bytes": "written",
    "storage_read_bytes": "read",
    "storage_written_bytes": "written",
    "net_received_bytes": "received",
    "net_sent_bytes": "sent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFrame:
    """What is known of a node before it says anything."""

    name: str
    """Its name."""
    cores: float
    """CPU time per second that it can have."""
    memory_bytes: int
    """Its memory."""
    is_machine: bool
    """Whether all of a machine is meant; else only the processes of an emulated node."""
    power: PowerModel | None = None
    """Its power model, where nothing measures it."""


@dataclass(slots=True)
class _Amount:
    """A counter: what it said last, when, and how fast it went."""

    value: float
    at_ns: int
    rate: float = math.nan


@dataclass(slots=True)
class LiveReadings:
    """One node: what it does now, the last hour, and the last lines as they came."""

    frame: NodeFrame
    now: dict[str, float] = field(default_factory=lambda: dict.fromkeys(READINGS, math.nan))
    """The newest reading of each kind."""
    at_seconds: float = 0.0
    """When, since 1970, by the node's clock."""
    source: str = ""
    """``run`` where an agent of a run took them, ``own`` where the dashboard did."""
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT_LINES))
    """The last samples as the agent wrote them."""
    head: str = ""
    """The agent's line that names the columns of these."""
    _columns: tuple[str, ...] = ()
    _scales: tuple[float, ...] = ()
    _amounts: dict[str, _Amount] = field(default_factory=dict)
    _states: dict[str, tuple[float, int]] = field(default_factory=dict)
    _times: array[float] = field(default_factory=lambda: array("d"))
    _rows: array[float] = field(default_factory=lambda: array("f"))

    def feed(self, line: str) -> bool:
        """Take a line of the agent; return whether it was a sample. What is none is passed over."""
        if line.startswith("{"):
            self._begin(line)
            return False
        words = line.split(" ")
        if line.startswith("#") or len(words) != len(self._columns) + 2:
            return False
        try:
            wall_ns = int(words[1])
            known = [
                (name, int(word) * scale)
                for name, word, scale in zip(self._columns, words[2:], self._scales, strict=True)
                if word != "-"
            ]
        except (ValueError, OverflowError):
            return False
        if not 0 <= wall_ns < _NEVER_NS or not all(math.isfinite(value) for _, value in known):
            return False
        self._take(known, wall_ns)
        self.recent.append(line)
        return True

    def _begin(self, line: str) -> None:
        try:
            columns = json.loads(line)["columns"]
            names = tuple(str(name) for name, _, _ in columns)
            scales = tuple(float(scale) for _, _, scale in columns)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return
        if len(line) > _FIRST_COLUMNS or not all(map(math.isfinite, scales)):
            return
        if names != self._columns:
            self.recent.clear()
            known = set(names)  # of what is gone, such as a container's interface, nothing is kept
            self._amounts = {name: row for name, row in self._amounts.items() if name in known}
            self._states = {name: row for name, row in self._states.items() if name in known}
        self.head, self._columns, self._scales = line, names, scales

    def _take(self, known: Sequence[tuple[str, float]], wall_ns: int) -> None:
        sums: dict[str, float] = {}
        for name, value in known:
            base = name.partition("/")[0]
            if base in _CPU or base in _RATES:
                self._count(name, value, wall_ns)
            else:
                self._states[name] = (value, wall_ns)
        networks = {name.partition("/")[2] for name in self._amounts if name.startswith("net_")}
        own = {name for name in own_interfaces(networks) if not name.startswith("lo")}
        # Devices have what processes read and write, too.
        has_disks = any(name.startswith("disk_") for name in self._amounts)
        for name, amount in self._amounts.items():
            base, _, member = name.partition("/")
            if base.startswith("net_") and member not in own:
                continue
            if base.startswith("storage_") and has_disks:
                continue
            kind = _CPU.get(base) or _RATES[base]
            if not math.isnan(amount.rate) and wall_ns - amount.at_ns < _STALE_SECONDS * 1e9:
                sums[kind] = sums.get(kind, 0.0) + amount.rate
        for kind in ("user", "system", "iowait", "steal", *set(_RATES.values())):
            self.now[kind] = sums.get(kind, math.nan)
        self._take_states(wall_ns)
        self.at_seconds = wall_ns / 1e9
        self._times.append(self.at_seconds)
        self._rows.extend(self.now[kind] for kind in READINGS)
        if len(self._times) > _KEPT_SECONDS + 300:  # in pieces: each cut moves all that is left
            del self._times[:300]
            del self._rows[: 300 * len(READINGS)]

    def _count(self, name: str, value: float, wall_ns: int) -> None:
        before = self._amounts.get(name)
        if before is None or wall_ns <= before.at_ns or value < before.value:
            self._amounts[name] = _Amount(value, wall_ns)
            return
        rate = (value - before.value) / ((wall_ns - before.at_ns) / 1e9)
        self._amounts[name] = _Amount(value, wall_ns, rate)

    def _take_states(self, wall_ns: int) -> None:
        found = {
            name: value
            for name, (value, at_ns) in self._states.items()
            if wall_ns - at_ns < _STALE_SECONDS * 1e9
        }
        self.now["memory"] = self._memory(found)
        self.now["celsius"] = found.get("temperature_celsius", math.nan)
        clocks = [value for name, value in found.items() if name.startswith("clock_hertz/")]
        reported = max(clocks, default=math.nan)
        self.now["hertz"] = found.get("clock_measured_hertz", reported)
        self.now["throttled"] = found.get("throttle_bits", math.nan)
        model = self.frame.power
        if model is not None:
            share = math.nan if math.isnan(self.busy_share) else min(1.0, self.busy_share)
            self.now["watts"] = model.idle_watts + share * (model.stress_watts - model.idle_watts)

    def _memory(self, found: dict[str, float]) -> float:
        """Of a machine what is not available, of an emulated node what its processes have."""
        if self.frame.is_machine and "memory_available_bytes" in found:
            return max(0.0, self.frame.memory_bytes - found["memory_available_bytes"])
        own = [value for name, value in found.items() if name.startswith("group_memory_bytes/")]
        return sum(own) if own else math.nan

    @property
    def busy_share(self) -> float:
        """CPU time used of what it can have; NaN if unknown."""
        return (self.now["user"] + self.now["system"]) / max(0.01, self.frame.cores)

    def lost(self) -> None:
        """Forget what it does now: nobody knows."""
        self.now = dict.fromkeys(READINGS, math.nan)
        self._amounts.clear()
        self._states.clear()
        self.recent.clear()
        self.source = ""

    def history(
        self, *, since_seconds: float, step_seconds: float
    ) -> Iterator[tuple[float, list[float]]]:
        """Means of each step, with its begin; steps of which nothing is known are left out."""
        width = len(READINGS)
        step, sums, counts = -1, [0.0] * width, [0] * width
        for place, at in enumerate(self._times):
            if at < since_seconds:
                continue
            here = int(at // step_seconds)
            if here != step and step >= 0:
                yield step * step_seconds, _means(sums, counts)
                sums, counts = [0.0] * width, [0] * width
            step = here
            for index in range(width):
                value = self._rows[place * width + index]
                if not math.isnan(value):
                    sums[index] += value
                    counts[index] += 1
        if step >= 0:
            yield step * step_seconds, _means(sums, counts)


def _means(sums: Sequence[float], counts: Sequence[int]) -> list[float]:
    return [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]
