"""Columns of telemetry as metrics of Prometheus: names, types and the text format 0.0.4. Pure.

Names follow Prometheus' own rules: base units at the end, ``_total`` for what counts up. Counters
are the kernel's own; after a reboot or a new agent they begin again, as Prometheus expects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boardcluster.errors import ProbeOutputError

__all__ = ["CONTENT_TYPE", "METRICS", "Latest", "Metric", "NodeState", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_THROTTLE_REASONS = ("under_voltage", "clock_capped", "throttled", "soft_temperature_limit")
"""Bits 0 to 3 of the Raspberry Pi's ``get_throttled``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric."""

    name: str
    """Its name."""
    kind: str
    """``counter`` or ``gauge``."""
    help: str
    """What it is, in one line."""
    label: str = ""
    """Name of the label for what is behind a column's slash; empty if there is nothing."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Labels that tell the columns of one metric apart."""
    factor: float = 1.0
    """From the column's unit to the metric's."""


def _counter(name: str, text: str, **more: object) -> Metric:
    return Metric(name=f"boardcluster_{name}_total", kind="counter", help=text, **more)  # type: ignore[arg-type]


def _gauge(name: str, text: str, **more: object) -> Metric:
    return Metric(name=f"boardcluster_{name}", kind="gauge", help=text, **more)  # type: ignore[arg-type]


UP = _gauge("up", "1 if the node sent a sample recently, else 0.")
CORES = _gauge("cpu_cores", "CPUs that the node may use.")
INFO = _gauge("node_info", "Always 1; scope says whose counters these are.")
THROTTLED = _gauge(
    "throttled", "1 while the firmware of a Raspberry Pi holds the clock back, by reason."
)

METRICS: Mapping[str, Metric] = {
    **{
        f"cpu_{state}_seconds": _counter(
            "cpu_seconds",
            "CPU time by state, summed over the cores; of an emulated node its processes'.",
            fixed=(("state", state),),
        )
        for state in ("user", "system", "idle", "iowait", "irq", "steal")
    },
    "clock_hertz": _gauge("cpu_clock_hertz", "Clock that the kernel reports.", label="cpu"),
    "clock_measured_hertz": _gauge("cpu_clock_measured_hertz", "Clock of a timed loop."),
    "clock_nominal_hertz": _gauge("cpu_clock_nominal_hertz", "Highest clock by the kernel."),
    "clock_nominal_least_hertz": _gauge(
        "cpu_clock_nominal_least_hertz", "Highest clock of the slowest CPU by the kernel."
    ),
    "temperature_celsius": _gauge("temperature_celsius", "Temperature of the hottest sensor."),
    "throttle_bits": THROTTLED,
    "memory_available_bytes": _gauge("memory_available_bytes", "Memory that is available."),
    "memory_cached_bytes": _gauge("memory_cached_bytes", "Page cache and buffers."),
    "memory_dirty_bytes": _gauge("memory_dirty_bytes", "Page cache that waits to be written."),
    "swap_used_bytes": _gauge("swap_used_bytes", "Swap in use."),
    "swap_in_bytes": _counter("swap_in_bytes", "Read from swap."),
    "swap_out_bytes": _counter("swap_out_bytes", "Written to swap."),
    **{
        f"pressure_{resource}{suffix}_seconds": _counter(
            "pressure_seconds",
            "Time that some or all tasks waited for a resource (pressure stall information).",
            fixed=(("kind", kind), ("resource", resource)),
        )
        for resource, suffix, kind in (
            ("cpu", "", "some"),
            ("io", "", "some"),
            ("io", "_full", "full"),
            ("memory", "", "some"),
            ("memory", "_full", "full"),
        )
    },
    "disk_read_bytes": _counter("disk_read_bytes", "Read from a device.", label="device"),
    "disk_written_bytes": _counter("disk_written_bytes", "Written to a device.", label="device"),
    "disk_reads": _counter("disk_reads", "Reads that a device completed.", label="device"),
    "disk_writes": _counter("disk_writes", "Writes that a device completed.", label="device"),
    "disk_busy_seconds": _counter("disk_busy_seconds", "Time it was busy.", label="device"),
    "net_received_bytes": _counter("network_received_bytes", "Received.", label="interface"),
    "net_sent_bytes": _counter("network_sent_bytes", "Sent.", label="interface"),
    "net_dropped_packets": _counter(
        "network_dropped_packets", "Packets dropped or in error.", label="interface"
    ),
    "link_bits_per_second": _gauge(
        "network_speed_bytes",
        "Rate of the link, in bytes per second.",
        label="interface",
        factor=1 / 8,
    ),
    "group_cpu_seconds": _counter("daemon_cpu_seconds", "CPU time of a daemon.", label="daemon"),
    "group_memory_bytes": _gauge("daemon_memory_bytes", "Memory of a daemon.", label="daemon"),
    "storage_read_bytes": _counter("storage_read_bytes", "Read by the cluster's processes."),
    "storage_written_bytes": _counter(
        "storage_written_bytes", "Written by the cluster's processes."
    ),
    "quota_cores": _gauge("cpu_quota_cores", "The tightest CPU quota; none without one."),
    "quota_throttled_seconds": _counter(
        "cpu_quota_throttled_seconds", "Time that a CPU quota held processes back."
    ),
    "foreign_cpu_seconds": _counter("foreign_cpu_seconds", "CPU time of other programs."),
    "agent_cpu_seconds": _counter("agent_cpu_seconds", "CPU time of the agent."),
}
"""The metric of each column, by its name before the slash."""


@dataclass(slots=True)
class Latest:
    """The last known raw value of each column of one agent's file, read piece by piece."""

    values: dict[str, float] = field(default_factory=dict)
    """By column, in the column's unit."""
    samples: int = 0
    """How many lines were read."""
    rest: str = ""
    """The begin of a line whose end was not there yet."""
    _order: tuple[str, ...] = ()
    _scales: dict[str, float] = field(default_factory=dict)

    def feed(self, text: str) -> None:
        """Read on.

        Raises:
            ProbeOutputError: a line is not what the agent writes.
        """
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            try:
                self._take(line)
            except (KeyError, TypeError, ValueError) as error:
                raise ProbeOutputError(
                    f"a line of telemetry is not a sample: {line[:80]!r}",
                    hint="check the node's medium",
                ) from error

    def _take(self, line: str) -> None:
        if line.startswith("{"):
            columns = json.loads(line)["columns"]
            self._order = tuple(str(name) for name, _, _ in columns)
            self._scales = {str(name): float(scale) for name, _, scale in columns}
            gone = set(self.values) - set(self._order)
            for name in gone:
                del self.values[name]
        elif line and not line.startswith("#"):
            _, _, *words = line.split(" ")
            for name, word in zip(self._order, words, strict=True):
                if word != "-":
                    self.values[name] = int(word) * self._scales[name]
            self.samples += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """What is known of a node now."""

    node: str
    """Its name."""
    scope: str
    """``machine`` or ``node``."""
    cores: int
    """CPUs that it may use."""
    up: bool
    """Whether it sent a sample recently."""
    values: Mapping[str, float]
    """Its columns; empty if it is not up."""


def exposition(nodes: Iterable[NodeState]) -> str:
    """Write the state of all nodes in Prometheus' text format 0.0.4."""
    families: dict[str, tuple[Metric, list[str]]] = {}

    def add(metric: Metric, labels: Mapping[str, str], value: float) -> None:
        words = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
        _, lines = families.setdefault(metric.name, (metric, []))
        lines.append(f"{metric.name}{{{words}}} {_number(value)}")

    for state in nodes:
        node = {"node": state.node}
        add(UP, node, 1.0 if state.up else 0.0)
        add(CORES, node, float(state.cores))
        add(INFO, {**node, "scope": state.scope}, 1.0)
        for column, value in state.values.items() if state.up else ():
            base, _, member = column.partition("/")
            metric = METRICS.get(base)
            if metric is THROTTLED:
                for bit, reason in enumerate(_THROTTLE_REASONS):
                    add(THROTTLED, {**node, "reason": reason}, float(int(value) >> bit & 1))
            elif metric is not None:
                labels = dict(metric.fixed)
                if metric.label:
                    labels[metric.label] = member
                add(metric, {**node, **labels}, value * metric.factor)
    return "".join(
        f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
        + "".join(f"{line}\n" for line in lines)
        for metric, lines in families.values()
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
