"""The table of rules, in the order in which their reasons are given."""

from __future__ import annotations

from boardcluster.analysis.trust.clocks import CLOCK_RULES
from boardcluster.analysis.trust.coverage import COVERAGE_RULES
from boardcluster.analysis.trust.foreign_load import OTHER_RULES
from boardcluster.analysis.trust.limited import LIMITED_RULES
from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule

__all__ = ["RULES", "FoundDisturbance", "RunTelemetry", "TrustRule"]

RULES: tuple[TrustRule, ...] = (*COVERAGE_RULES, *LIMITED_RULES, *CLOCK_RULES, *OTHER_RULES)
