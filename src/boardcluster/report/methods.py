"""The methods paragraph: how the numbers came about, ready to paste into a paper.

Every word of it is from the records; what they do not say is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from boardcluster.analysis.efficiency import metered_parts
from boardcluster.analysis.inference import (
    ASSUMED_START_DEVIATION,
    ComparisonMethod,
    MeasuredRatio,
)
from boardcluster.analysis.statistics import CONFIDENCE
from boardcluster.factors import FACTORS, Acts, hashable
from boardcluster.records import (
    CampaignKind,
    Energy,
    EnergyMethod,
    Fingerprint,
    Power,
    Result,
    Verdict,
)
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part
from boardcluster.report.ratio_words import family_words
from boardcluster.report.source import Source, left_out, verified
from boardcluster.report.words import listed
from boardcluster.units import format_bytes, format_rate

__all__ = ["methods_section"]

_MANY = 4
_TIME = "Times were measured with the driver's monotonic clock around the engine's own submission."


def methods_section(material: Material) -> Iterator[Part]:
    """The paragraph; none where no run counts, because there is nothing to report."""
    source = material.source
    if not source.cells:
        return
    counted = [item for cell in source.cells for item in cell.results]
    setups = list(dict.fromkeys(item.attempt.fingerprint for item in counted if item.attempt))
    sentences = (
        *_machines(setups),
        *_engines(setups),
        *_design(source, counted),
        *_data(source, counted),
        *_time(counted),
        *_statistics(material),
        *_trust(source, counted),
        *_energy(counted),
    )
    yield Part(
        title="Methods, ready to paste into a paper",
        name="methods",
        contents="Methods",
        block="methods",
        data=" ".join(sentences),
    )


def _machines(setups: Sequence[Fingerprint]) -> Iterator[str]:
    numbers: dict[str, set[int]] = {}
    for setup in setups:
        numbers.setdefault(_nodes(setup), set()).add(setup.nodes)
    for place, (text, nodes) in enumerate(numbers.items()):
        noun = "node" if nodes == {1} else "nodes"
        clusters = "a cluster" if len(nodes) == 1 else "clusters"
        further = "Further measurements" if place else "Measurements"
        count = listed(map(str, sorted(nodes)), "or")
        yield f"{further} were made on {clusters} of {count} {noun}{text}."
    systems = list(dict.fromkeys(f"{setup.os} with kernel {setup.kernel}" for setup in setups))
    verb = "system was" if len(systems) == 1 else "systems were"
    yield f"The operating {verb} {listed(systems)}."


def _nodes(setup: Fingerprint) -> str:
    """What the nodes of a setup are, after their number."""
    cores = words.count(setup.node_cores, "core")
    memory = format_bytes(setup.node_memory_bytes, binary=True)
    rate = setup.link_bits_per_second
    link = f"linked at {format_rate(rate)}" if rate else "without a network link"
    each = f", {link}; the smallest worker had {cores} and {memory} of memory"
    host = format_bytes(setup.memory_bytes, binary=True)
    machine = f"{setup.cpu}, {words.count(setup.cpu_cores, 'core')}, {host}"
    if setup.emulated:
        stands = f", which stand for {setup.twin}" if setup.twin else ""
        return f" emulated as network namespaces on one machine ({machine}){stands}{each}"
    if setup.mark:
        return f" ({setup.kind}: the driver's own machine, {machine}){each}"
    boards = list(dict.fromkeys(line.partition(": ")[2] for line in setup.hardware))
    return f" ({'; '.join(boards)}){each}" if boards else each


def _engines(setups: Sequence[Fingerprint]) -> Iterator[str]:
    yield (
        f"The software was Hadoop {listed(setup.hadoop for setup in setups)}, Spark"
        f" {listed(setup.spark for setup in setups)} and Java"
        f" {listed(setup.java for setup in setups)}, driven by boardcluster"
        f" {listed(setup.boardcluster for setup in setups)}."
    )
    digests = list(dict.fromkeys(setup.config_sha256[:16] for setup in setups))
    several = "one configuration" if len(digests) == 1 else f"{len(digests)} configurations"
    shown = f", SHA-256 {listed(digests)}" if len(digests) <= _MANY else ""
    profiles = list(dict.fromkeys(setup.profile for setup in setups))
    word = "profile" if len(profiles) == 1 else "profiles"
    yield f"The engines were configured with {word} {listed(profiles)} ({several}{shown})."
    if blas := listed(setup.blas for setup in setups if setup.blas):
        yield f"The BLAS library was {blas}."


def _design(source: Source, counted: Sequence[Result]) -> Iterator[str]:
    names = listed(words.workload_name(cell.workload) for cell in source.cells)
    verb = "was" if len({cell.workload for cell in source.cells}) == 1 else "were"
    engines = listed(words.engine_name(cell.engine) for cell in source.cells)
    least = min(cell.count for cell in source.cells)
    most = max(cell.count for cell in source.cells)
    runs = words.count(most, "run") if least == most else f"{least} to {most} runs"
    cells = words.count(len(source.cells), "configuration")
    each = "" if len(source.cells) == 1 else f" each, {len(counted)} in total"
    ids = dict.fromkeys(item.trial.campaign_id for item in counted)
    known = [source.campaigns[name] for name in ids if name in source.campaigns]
    seeds = list(dict.fromkeys(str(row.seed) for row in known if row.kind is CampaignKind.RUN))
    yield f"{names} {verb} run on {engines}, in {cells} with {runs}{each}."
    if seeds and len(source.cells) > 1:
        word = "seed" if len(seeds) == 1 else "seeds"
        yield f"{_order(counted)} ({word} {listed(seeds)})."


def _order(counted: Sequence[Result]) -> str:
    """Say what of the order of runs was random: those of other daemons are never between them."""
    groups: dict[str, set[object]] = {}
    rows = [row for row in FACTORS if row.acts is not Acts.JOB]
    for trial in (item.trial for item in counted):
        daemons = tuple(hashable(row.level(trial)) for row in rows)
        groups.setdefault(trial.campaign_id, set()).add(daemons)
    within = "Within each campaign, c" if len(groups) > 1 else "C"
    if all(len(found) == 1 for found in groups.values()):
        return "Within each repetition, their order was random"
    return (
        f"{within}onfigurations that need the same daemons ran together; the order of these"
        " groups, and that within each repetition of a group, was random"
    )


def _data(source: Source, counted: Sequence[Result]) -> Iterator[str]:
    ids = {item.trial.campaign_id for item in counted}
    used = [row for name, row in source.campaigns.items() if name in ids and row.dataset]
    if used:
        inputs = (
            f"{row.dataset} ({row.dataset_source}, SHA-256 {row.dataset_sha256[:16]})"
            for row in used
        )
        yield f"The input was {listed(inputs)}."
    proofs = len(verified(source))
    if proofs:
        of = "The output of the run was" if proofs == 1 else f"The outputs of {proofs} runs were"
        also = " (including tainted runs)" if left_out(source) else ""
        yield f"{of} verified to be correct{also}."


def _time(counted: Sequence[Result]) -> Iterator[str]:
    yield _TIME
    yield words.timed(item.trial.engine for item in counted)
    dilations = {item.measurement.dilation for item in counted if item.measurement} - {1.0}
    if dilations:
        yield (
            "Emulated boards ran slower than the real ones by a time dilation of"
            f" {listed(f'{value:.4g}' for value in sorted(dilations))}; times are divided by it and"
            " rates multiplied by it."
        )


def _statistics(material: Material) -> Iterator[str]:
    cells = material.source.cells
    if all(cell.count == 1 for cell in cells):
        yield "Each configuration was run once, so no confidence intervals are given."
        return
    most = max(cell.starts for cell in cells)
    starts = f", computed from the means of up to {most} starts of the cluster" if most > 1 else ""
    yield (
        f"Means are given with {100 * CONFIDENCE:.0f} % confidence intervals by Student's"
        f" t-distribution{starts}."
    )
    yield from _comparisons(_ratios(material))
    if any(cell.count == 1 for cell in cells):
        yield "No interval is given for configurations that were run once."
    outliers = sum(len(cell.outliers) for cell in cells)
    if outliers:
        verb = (
            "lies beyond Tukey's fences and was"
            if outliers == 1
            else "lie beyond Tukey's fences and were"
        )
        yield f"{words.count(outliers, 'run')} {verb} kept."


def _ratios(material: Material) -> list[MeasuredRatio]:
    """Every comparison with an interval."""
    ratios = [row.ratio for row in material.effects]
    ratios += [point.speed_up for row in material.scalings for point in row.points[1:]]
    return [row for row in ratios if row.interval is not None]


def _comparisons(ratios: Sequence[MeasuredRatio]) -> Iterator[str]:
    """How cells were compared, as far as any were."""
    if not ratios:
        return
    methods = {row.method for row in ratios}
    how = [
        said
        for method, said in (
            (ComparisonMethod.PAIRED, "within blocks (Student's t of the logarithms of ratios)"),
            (ComparisonMethod.UNPAIRED, "as independent runs (Welch's t of logarithms)"),
        )
        if method in methods
    ]
    yield f"Times were compared {listed(how)}."
    if any(row.starts > 1 for row in ratios):
        yield (
            "Where there were several starts of the cluster, their means were the replicates"
            " (Kalibera and Jones)."
        )
    if any(row.allows_for_starts for row in ratios):
        yield (
            "For configurations with one start of the cluster, an allowance was made for a "
            f"standard deviation of {words.percent(ASSUMED_START_DEVIATION)} between starts."
        )
    if adjusted := listed(name for row in ratios for name in row.adjusted_for):
        yield f"Ratios were adjusted for {adjusted} where these varied."
    smallest = words.percent(ratios[0].smallest_effect)
    yield (
        f"Two one-sided tests decided whether a difference of {smallest} or more could be ruled"
        " out."
    )
    if found := dict.fromkeys(family_words(row) for row in ratios if row.family_size > 1):
        yield f"The p values were corrected for {listed(found)}."


def _trust(source: Source, counted: Sequence[Result]) -> Iterator[str]:
    found = [item.measurement for item in counted if item.measurement]
    verdicts = words.verdicts(item.verdict for item in found)
    judged = any(item.verdict is not Verdict.UNJUDGED for item in found)
    how = "was judged from the telemetry of the nodes" if judged else "was not judged by telemetry"
    yield f"The validity of each run {how} ({verdicts})."
    if out := len(left_out(source)):
        yield f"{words.count(out, 'tainted run')} {'was' if out == 1 else 'were'} excluded."


def _energy(counted: Sequence[Result]) -> Iterator[str]:
    found = [item.measurement.energy for item in counted if item.measurement]
    sums = [row for row in found if row is not None and row.energy_joules is not None]
    scope = "" if len(sums) == len(counted) else f" of {len(sums)} of {len(counted)} runs"
    yield (
        f"Energy{scope} was {listed(_energy_words(sums))}." if sums else "Energy was not measured."
    )


def _energy_words(sums: Sequence[Energy]) -> Iterator[str]:
    for method in EnergyMethod:
        rows = [row for row in sums if row.method is method]
        if rows and method is EnergyMethod.MODELLED:
            yield from _modelled_words(rows)
        elif rows:
            meters = _meters(power for row in rows for power in row.powers)
            levels = listed(str(row.level) for row in rows)
            yield f"metered by {meters} at EE HPC WG level {levels}"


def _modelled_words(rows: Sequence[Energy]) -> Iterator[str]:
    """How energies were come by of which at least a part was modelled."""
    how = "modelled from each node's idle and stress power and its CPU utilisation"
    parts = [metered_parts(row) for row in rows]
    if not all(parts):
        yield how
    if any(parts):
        meters = _meters(power for found in parts for power in found)
        yield f"metered in part by {meters} and otherwise {how}"


def _meters(powers: Iterable[Power]) -> str:
    return listed(f"{power.meter} ({power.kind})" for power in powers)
