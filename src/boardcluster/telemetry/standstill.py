"""Whether a node or a disk of it stood still during a run, as a card does that is about to fail.

While a disk does nothing, the node's daemons still accept connections and its kernel reports no
error. What a job meets are time-outs of the engines, which look like a fault of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from boardcluster.records import NodeSamples
from boardcluster.units import format_seconds

__all__ = ["STILL_SECONDS", "standstills"]

STILL_SECONDS = 20.0
"""Shorter pauses are those of cards that collect garbage, which the engines wait for."""

_BUSY_SHARE = 0.95
_DISK_COLUMN = "disk_busy_seconds/"


def standstills(
    samples: Mapping[str, NodeSamples], *, still_seconds: float = STILL_SECONDS
) -> dict[str, str]:
    """Say of each node how long it, or a disk of it, did nothing at a stretch; by name.

    Args:
        samples: the samples of each node.
        still_seconds: shorter stretches are not told.
    """
    found: dict[str, str] = {}
    for name, node in samples.items():
        if len(node.seconds) < 2:
            continue
        pauses = np.diff(node.seconds)
        # An agent that has run for long takes samples more rarely, but evenly.
        usual = float(np.median(pauses[max(0, int(pauses.argmax()) - 20) :]))
        longest = float(pauses.max())
        if longest >= max(still_seconds, 4 * usual):
            words = f"no sample could be written for {format_seconds(longest)}"
            found[name] = f"{words}, so its disk or the whole node had stopped"
            continue
        for column in node.columns:
            if column.startswith(_DISK_COLUMN):
                disk = column.removeprefix(_DISK_COLUMN)
                stuck = _longest_stretch(node, _is_stuck(node, disk))
                if stuck >= still_seconds:
                    found[name] = f"its disk {disk} did nothing for {format_seconds(stuck)}"
    return found


def _is_stuck(node: NodeSamples, disk: str) -> npt.NDArray[np.bool_]:
    """Return in which samples a disk had work all the time and completed none of it."""
    spans = np.concatenate([[np.nan], np.diff(node.seconds)])
    busy = node.columns[f"{_DISK_COLUMN}{disk}"]
    done = sum(
        (
            np.nan_to_num(node.columns[f"{kind}/{disk}"], nan=1.0)
            for kind in ("disk_reads", "disk_writes")
            if f"{kind}/{disk}" in node.columns
        ),
        start=np.zeros(len(busy)),
    )
    return np.asarray((busy >= _BUSY_SHARE * spans) & (done == 0))


def _longest_stretch(node: NodeSamples, marked: npt.NDArray[np.bool_]) -> float:
    """Return the seconds of the longest row of marked samples."""
    longest = current = 0.0
    spans = np.concatenate([[0.0], np.diff(node.seconds)])
    for span, is_marked in zip(spans.tolist(), marked.tolist(), strict=True):
        current = current + span if is_marked else 0.0
        longest = max(longest, current)
    return longest
