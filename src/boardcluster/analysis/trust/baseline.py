"""What nodes are like before a run: only remarks, since its own samples show what lasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from boardcluster.analysis.trust.clocks import THROTTLE_BITS, ghz, throttle_flags
from boardcluster.analysis.trust.expectations import Expectations, Thresholds
from boardcluster.analysis.trust.foreign_load import foreign_words, steal_words
from boardcluster.analysis.trust.window import Window
from boardcluster.records import NodeFacts, NodeSamples, Telemetry
from boardcluster.units import format_bytes

__all__ = ["baseline_remarks"]

_STEADY = "performance"


def baseline_remarks(
    samples: Telemetry,
    *,
    facts: Mapping[str, NodeFacts],
    free_bytes: Mapping[str, int],
    expectations: Expectations,
) -> tuple[str, ...]:
    """Return what is worth knowing with the run that follows; see ``judge_before``."""
    given = {node.node for node in samples.nodes}
    remarks = [
        f"{name}: no samples before the run" for name in expectations.nodes if name not in given
    ]
    for node in samples.nodes:
        window = _whole(node)
        remarks += _throttled_now(window)
        remarks += _slow(window, facts.get(node.node), expectations)
        remarks += _warm(window, expectations.thresholds)
        remarks += foreign_words(window, expectations.thresholds.foreign_share)
        remarks += steal_words(window, expectations.thresholds.steal_share)
    for name, known in facts.items():
        remarks += _settings(name, known)
    for name, free in free_bytes.items():
        remarks += _space(name, free, facts.get(name), expectations.thresholds)
    return tuple(f"before the run: {line}" for line in dict.fromkeys(remarks))


def _whole(node: NodeSamples) -> Window:
    """All samples of a node as one window."""
    times = np.asarray(node.seconds, dtype=np.float64)
    times = times[np.isfinite(times)]
    if not len(times):
        return Window.of(node, start_seconds=0.0, end_seconds=0.0)
    first, last = float(times.min()), float(times.max())
    # Amounts are from the first sample on; of a lone one nothing but states is known.
    start = first if last > first else first - max(node.interval_seconds, 0.0)
    return Window.of(node, start_seconds=start, end_seconds=last)


def _throttled_now(window: Window) -> Iterator[str]:
    found = window.track("throttle_bits")
    if found is None:
        return
    for bit, words, cause in THROTTLE_BITS:
        if throttle_flags(found.values, bit).any():
            yield f"{window.node}: {words} (bit {bit}): {cause}"


def _slow(window: Window, found: NodeFacts | None, expectations: Expectations) -> Iterator[str]:
    """The best of the measured clocks is what counts: an idle clock needs a moment to rise."""
    measured = window.column("clock_measured_hertz")
    nominal_hertz = expectations.nominal_hertz.get(window.node)
    if measured is None or not nominal_hertz or window.node in expectations.mixed:
        return
    best = float(np.nanmax(measured))
    if best < expectations.thresholds.clock_nominal_ratio * nominal_hertz:
        governor = f", governor {found.governor}" if found and found.governor else ""
        yield (
            f"{window.node}: reaches only {ghz(best)}; its nominal clock is {ghz(nominal_hertz)}"
            f"{governor}"
        )


def _warm(window: Window, limits: Thresholds) -> Iterator[str]:
    found = window.track("temperature_celsius")
    if found is None:
        return
    last = float(found.values[-1])
    if last > limits.hot_celsius:
        yield (
            f"{window.node}: {last:.0f} \N{DEGREE SIGN}C, which leaves little margin: a Raspberry"
            " Pi lowers its clock from 80 \N{DEGREE SIGN}C on"
        )


def _settings(name: str, found: NodeFacts) -> Iterator[str]:
    if found.governor and found.governor != _STEADY:
        yield f"{name}: governor {found.governor}, not {_STEADY}: its clock rises only after load"
    if found.clock_synchronised is False:
        yield f"{name}: no time service synchronises its clock"


def _space(
    name: str, free_bytes: int, found: NodeFacts | None, limits: Thresholds
) -> Iterator[str]:
    mount = found.mount(found.folder_mount) if found else None
    size_bytes = (mount.size_bytes or 0) if mount else 0
    least_bytes = max(limits.low_space_bytes, limits.low_space_share * size_bytes)
    if free_bytes < least_bytes:
        yield (
            f"{name}: only {format_bytes(free_bytes)} free; YARN drops a node whose disk is 90 %"
            " full"
        )
