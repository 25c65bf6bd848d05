"""Pure: whether a number can be trusted, from the telemetry of its run.

A rule looks at the samples of a run, names what disturbed it, and says how much of the run's time
that explains at most. A run is valid if all of it together explains no more than it tolerates. The
rules stand in ``RULES`` of ``boardcluster.analysis.trust.rules``; docs/reference/verdicts.md lists
them, docs/explanation/trust.md says why they are as they are.
"""

from boardcluster.analysis.trust.expectations import Expectations, Thresholds, expect
from boardcluster.analysis.trust.failed_tasks import count_failed_tasks
from boardcluster.analysis.trust.judging import TOGETHER, Judgement, judge, judge_before
from boardcluster.analysis.trust.precision import precision_reached

__all__ = [
    "TOGETHER",
    "Expectations",
    "Judgement",
    "Thresholds",
    "count_failed_tasks",
    "expect",
    "judge",
    "judge_before",
    "precision_reached",
]
