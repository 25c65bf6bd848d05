"""Pure: what to change next, by rules with evidence.

A rule looks at the runs of a cluster: their counters, what bound them and what their nodes did. It
says what was seen, what to set and what that should bring, and is silent without evidence. The
rules stand in ``RULES`` of ``boardcluster.analysis.advice.rules``; docs/reference/advice.md lists
them.
"""

from boardcluster.analysis.advice.advising import advise, run_facts
from boardcluster.analysis.advice.evidence import (
    Advice,
    AdviceEvidence,
    Certainty,
    NodeUse,
    RunFacts,
)

__all__ = ["Advice", "AdviceEvidence", "Certainty", "NodeUse", "RunFacts", "advise", "run_facts"]
