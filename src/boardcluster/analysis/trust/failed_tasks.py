"""Tasks that failed and ran again: a disturbance that counters show, not telemetry."""

from __future__ import annotations

from dataclasses import replace

from boardcluster.records import Disturbance, Measurement, Verdict

__all__ = ["count_failed_tasks"]

_COUNTERS = ("JobCounter/NUM_FAILED_MAPS", "JobCounter/NUM_FAILED_REDUCES", "spark/failedTasks")
"""How the names of Hadoop's and our counters of failed attempts of tasks end; those of a mix begin
with the job."""


def count_failed_tasks(measurement: Measurement) -> Measurement:
    """Return a measurement that is tainted if attempts of tasks failed in its run. Pure.

    Engines run such a task again, so the output is right; but the time has the lost work, waiting
    and the second attempt in it, in any share. A verdict that is worse stays.
    """
    failed = sum(value for name, value in measurement.counters.items() if name.endswith(_COUNTERS))
    if not failed or measurement.verdict not in (Verdict.VALID, Verdict.TAINTED):
        return measurement
    tasks = "1 attempt of a task" if failed == 1 else f"{failed} attempts of tasks"
    words = f"{tasks} failed and ran again; explains at most 100 % of the time"
    lost = Disturbance(cause="failed tasks", node="", share=1.0, adjustable=False)
    return replace(
        measurement,
        verdict=Verdict.TAINTED,
        verdict_reasons=(*measurement.verdict_reasons, words),
        disturbances=(*measurement.disturbances, lost),
    )
