"""The one layer that says whether times differ, by how much, and how sure that is. Pure.

Everything that states a difference asks here: the report's headline, findings, effects and tables,
the command ``compare``, advice, and ``run --until``. So no two of them can disagree.

    rows = observe(results)                    # runs of one cell, one for each trial
    estimate(rows) -> Estimate                 # mean, interval, variation between and within starts
    run_value(result, 2.5) -> RunValue         # any other number of a run: an energy, a rate
    compare(rows_a, rows_b) -> MeasuredRatio   # ratio a / b, adjusted and not, interval, p
    family([ratio, ...]) -> (ratio, ...)       # the same, corrected for their number
    ratio.verdict -> EffectVerdict             # what it shows; ratio.more_needed: how many blocks
    precision_of(rows), precision_of(rows_a, rows_b) -> Precision   # .half_width(): 0.03
    find_drift(cells) -> (CampaignDrift, ...)  # drift and change points, pooled over cells

The model: the logarithm of a time is the sum of what its cell takes, what its start of the cluster
draws by chance, what its block (one repetition) draws, what disturbed it, and chance.

- Cells that ran in turn are compared within blocks, so that starts and blocks cancel.
- With several starts, intervals come from the means of starts, which are the replicates
  (T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). With one start
  they are of that start; cells measured in a start each get an allowance for it.
- Steal and foreign load are covariates where they vary and there are runs enough.
- A difference counts from a smallest effect of interest on, 5 % unless told otherwise; two
  one-sided tests show that there is none worth while (D. J. Schuirmann, *Journal of
  Pharmacokinetics and Biopharmaceutics* 15, 1987).
- Comparisons that are read together are a family, corrected for their number: by S. Holm,
  *Scandinavian Journal of Statistics* 6, 1979, where they were declared beforehand; by Y. Benjamini
  and Y. Hochberg, *Journal of the Royal Statistical Society B* 57, 1995, where they are explored.

Values are in whatever they were measured in; ratios and shares have no unit.
"""

from boardcluster.analysis.inference.drifting import CampaignDrift, DriftKind, find_drift
from boardcluster.analysis.inference.families import Correction, family
from boardcluster.analysis.inference.model import (
    ASSUMED_START_DEVIATION,
    SMALLEST_EFFECT,
    ComparisonMethod,
    EffectVerdict,
    Estimate,
    MeasuredRatio,
    compare,
    compare_values,
    estimate,
)
from boardcluster.analysis.inference.observations import (
    RunValue,
    observe,
    observe_values,
    run_value,
)
from boardcluster.analysis.inference.precision import Precision, precision_of

__all__ = [
    "ASSUMED_START_DEVIATION",
    "SMALLEST_EFFECT",
    "CampaignDrift",
    "ComparisonMethod",
    "Correction",
    "DriftKind",
    "EffectVerdict",
    "Estimate",
    "MeasuredRatio",
    "Precision",
    "RunValue",
    "compare",
    "compare_values",
    "estimate",
    "family",
    "find_drift",
    "observe",
    "observe_values",
    "precision_of",
    "run_value",
]
