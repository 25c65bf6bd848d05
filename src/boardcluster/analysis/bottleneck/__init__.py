"""What bound each run and phase, and what it would gain; by blocked time of its tasks. Pure.

The method, its limits and how near its predictions came: docs/explanation/bottleneck.md.
"""

from boardcluster.analysis.bottleneck.bounds import Bound, Diagnosis, PhaseDiagnosis
from boardcluster.analysis.bottleneck.diagnosis import diagnose

__all__ = ["Bound", "Diagnosis", "PhaseDiagnosis", "diagnose"]
