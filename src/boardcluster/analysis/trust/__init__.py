"""Pure: whether a number can be trusted, from the telemetry of its run.

A rule looks at the samples of a run and names what disturbed it. What no rule names is valid. The
rules stand in ``RULES`` of ``boardcluster.analysis.trust.rules``; docs/reference/verdicts.md lists
them, docs/explanation/trust.md says why they are as they are.
"""

from boardcluster.analysis.trust.expectations import Expectations, Thresholds, expect
from boardcluster.analysis.trust.judging import Baseline, Judgement, judge, judge_before

__all__ = [
    "Baseline",
    "Expectations",
    "Judgement",
    "Thresholds",
    "expect",
    "judge",
    "judge_before",
]
