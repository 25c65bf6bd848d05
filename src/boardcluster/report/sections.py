"""The sections of the report, in their order: the one list that says what is in it.

A new section is a function that yields parts, and a line here: the table of contents, HTML,
Markdown, data files and LaTeX tables are made from the parts. A section yields nothing where it has
nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boardcluster.analysis.advice import Certainty
from boardcluster.analysis.twins import is_twin
from boardcluster.report import words
from boardcluster.report.cost_part import cost_section
from boardcluster.report.details import (
    counters_section,
    data_section,
    programs_section,
    runs_section,
    untrusted_section,
    verification_section,
)
from boardcluster.report.expected_part import expected_section
from boardcluster.report.findings import findings_section
from boardcluster.report.machine import machine_section
from boardcluster.report.material import Material
from boardcluster.report.methods import methods_section
from boardcluster.report.parts import Part
from boardcluster.report.published_part import published_section
from boardcluster.report.summary import summary_section
from boardcluster.report.tuning_part import tuning_section
from boardcluster.report.validity import validity_section
from boardcluster.report.watch_part import watch_section
from boardcluster.report.workload_parts import workload_sections

__all__ = ["CERTAINTIES", "SECTIONS"]

CERTAINTIES = {
    Certainty.PUBLISHED: "reported for other boards, not measured here",
    Certainty.COMPUTED: "computed from these runs, not measured",
    Certainty.COMPARED: "both were measured here",
}
_METHOD = (
    (
        "The 95 % confidence interval of a mean is by Student's t: mean ± t(0.975, n-1) · s / √n."
        " It assumes independent runs from one normal distribution. Where runs are from several"
        " starts of the cluster, the means of the starts take the place of the runs. Outliers lie"
        " beyond Tukey's fences; they are shown, never dropped."
        " CV is the standard deviation divided by the mean. Throughput is input size divided by"
        " time; 1 MB is 10⁶ bytes."
    ),
    (
        "Times are compared by their ratio, with one method for the whole report: within blocks "
        "where both alternated, else as independent runs, always by logarithms. A difference is "
        "shown where p, corrected for the number of comparisons in the report, is below 0.05. "
        "There is no worthwhile difference where the runs rule out one of 5 % or more. Otherwise "
        "the report says how many more blocks would be needed."
    ),
    (
        "Failed and invalid attempts are listed with their reason. They are excluded from every"
        " mean, and so are warm-up runs."
    ),
    (
        "The verdict on a run is based on the telemetry of its nodes: tainted if disturbances may "
        "explain more of its time than can be told from noise in its configuration, else valid; "
        "unjudged if the run was recorded before verdicts existed. Runs that were tainted by steal "
        "or other programs count up to a quarter of their time, since comparisons can adjust for "
        "that. Other tainted runs are excluded from every mean unless they were asked for."
    ),
)


def _advice_section(material: Material) -> Iterator[Part]:
    """What to change; where runs count and there is nothing, the section says so."""
    if not (material.source.cells or material.advice):
        return
    facts = material.evidence.facts
    nothing = (
        "The rules found nothing to change in the counters and the samples of"
        f" {words.count(len(facts), 'run')}."
        if facts
        else "The rules found nothing to change in the engines' counters. These runs have no"
        " telemetry, which most rules need."
    )
    yield Part(
        title="What to change",
        name="advice",
        contents="Advice",
        text=() if material.advice else (nothing,),
        block="advice",
        data=material.advice,
    )


def _reading_section(material: Material) -> Iterator[Part]:
    """How the numbers came about."""
    results = material.source.results
    if results:
        timed = (
            "Time is measured by the driver's monotonic clock around the engine's own submission."
            f" {words.timed(row.trial.engine for row in results)}"
        )
        dilated = [words.DILATED] if any(map(is_twin, results)) else []
        yield Part(title="How to read this", name="method", text=(timed, *_METHOD, *dilated))


SECTIONS: tuple[Callable[[Material], Iterator[Part]], ...] = (
    summary_section,
    findings_section,
    machine_section,
    workload_sections,
    watch_section,
    untrusted_section,
    _advice_section,
    tuning_section,
    expected_section,
    cost_section,
    published_section,
    validity_section,
    runs_section,
    programs_section,
    counters_section,
    verification_section,
    data_section,
    methods_section,
    _reading_section,
)
