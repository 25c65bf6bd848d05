"""From what was measured on slowed-down nodes to what it says of the boards they stand for. Pure.

Nodes that stand for boards may be slower than those by one factor, the time dilation: CPU, disk and
link alike. A time measured on them is then divided by it, and a rate multiplied (Gupta, Vishwanath
and Vahdat, "DieCast: Testing Distributed Systems with an Accurate Scale Model", NSDI 2008).
docs/reference/dilation.md says what is slowed down, and what cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boardcluster.analysis.energy import undilated_energy
from boardcluster.analysis.twins import dilation_words, undilated_value
from boardcluster.records import Measurement

__all__ = ["correct_for_dilation"]


def correct_for_dilation(measurement: Measurement, dilation: float) -> Measurement:
    """Return what the boards would have measured, of a run that was slower by a factor.

    Its duration and those of its phases are divided, and its figures converted by the unit that
    each name ends with. Modelled energy is divided, metered energy removed. A remark says how long
    the run took on this machine.

    What stays as it was: bytes and counts; the engine's own counters, also those that are times
    (``MILLIS_MAPS``, ``GC_TIME_MILLIS``, ``CPU_MILLISECONDS``), because they are kept unchanged as
    the engine wrote them; reasons of the verdict and other remarks, which speak of this machine;
    exit status and verification.

    Args:
        measurement: of the run on this machine.
        dilation: by how much the nodes were slower than the boards they stand for; at least 1.

    Returns:
        At dilation 1 the same object.
    """
    if dilation == 1:
        return measurement
    figures, lost = _figures(measurement.figures, dilation)
    took = f"{measurement.duration_seconds:.1f} s on this machine"
    remarks = [f"time {dilation_words(dilation)}: {took}"]
    if lost:
        remarks.append(f"left out, because they do not apply to the boards: {', '.join(lost)}")
    energy = measurement.energy
    return replace(
        measurement,
        duration_seconds=measurement.duration_seconds / dilation,
        phases_seconds={
            name: seconds / dilation for name, seconds in measurement.phases_seconds.items()
        },
        figures=figures,
        remarks=(*measurement.remarks, *remarks),
        energy=None if energy is None else undilated_energy(energy, dilation),
        dilation=dilation,
    )


def _figures(
    figures: Mapping[str, float], dilation: float
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the figures that can be converted, and the names of the others."""
    found = {name: undilated_value(name, value, dilation) for name, value in figures.items()}
    kept = {name: value for name, value in found.items() if value is not None}
    return kept, tuple(name for name in found if name not in kept)
