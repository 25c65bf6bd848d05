"""The methods paragraph: how the numbers came about, ready to paste into a paper.

Every word of it is from the records; what they do not say is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boardcluster.analysis import Cell
from boardcluster.analysis.statistics import CONFIDENCE, LEAST_RUNS
from boardcluster.records import CampaignKind, Energy, EnergyMethod, Fingerprint, Result, Verdict
from boardcluster.report import words
from boardcluster.report.latex import escape
from boardcluster.report.source import Source, verified
from boardcluster.units import format_bytes, format_rate

__all__ = ["Methods", "methods_of"]

_MANY = 4
_TIME = (
    "Time is the driver's monotonic clock around the engine's own submission, the start of the"
    " application on YARN included, preparation of input and verification of output not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """The paragraph in two forms.

    Attributes:
        text: plain text.
        latex: the same for LaTeX, its special characters escaped.
    """

    text: str
    latex: str


def methods_of(source: Source) -> Methods | None:
    """Write the paragraph; None where no run counts, because there is nothing to report."""
    if not source.cells:
        return None
    counted = [item for cell in source.cells for item in cell.results]
    setups = list(dict.fromkeys(item.attempt.fingerprint for item in counted if item.attempt))
    sentences = [
        *_machines(setups),
        *_engines(setups),
        *_design(source, counted),
        *_data(source),
        *_time(counted),
        *_statistics(source.cells),
        *_trust(source, counted),
        *_energy(counted),
    ]
    text = " ".join(sentences)
    return Methods(text=text, latex=escape(text))


def _machines(setups: Sequence[Fingerprint]) -> list[str]:
    numbers: dict[str, set[int]] = {}
    for setup in setups:
        numbers.setdefault(_nodes(setup), set()).add(setup.nodes)
    found = []
    for text, nodes in numbers.items():
        noun = "node" if nodes == {1} else "nodes"
        found.append(f"{_listed(map(str, sorted(nodes)), word='or')} {noun} {text}")
    systems = _listed(f"{setup.os}, kernel {setup.kernel}" for setup in setups)
    return [f"Measured on {_listed(found, word='and on')}, under {systems}."]


def _nodes(setup: Fingerprint) -> str:
    """What the nodes of a setup are."""
    cores = words.count(setup.node_cores, "core")
    memory = format_bytes(setup.node_memory_bytes, binary=True)
    each = f"the smallest worker with {cores} and {memory} of memory"
    rate = setup.link_bits_per_second
    link = f"linked at {format_rate(rate)}" if rate else "without a link"
    host = format_bytes(setup.memory_bytes, binary=True)
    machine = f"{setup.cpu}, {words.count(setup.cpu_cores, 'core')}, {host}"
    if setup.emulated:
        stands = f" that stand for {setup.twin}" if setup.twin else ""
        what = f"emulated as network namespaces{stands} on one machine ({machine})"
        return f"{what}, {each}, {link}"
    if setup.mark:
        return f"({setup.kind}: the driver's own machine, {machine}), {each}, {link}"
    boards = list(dict.fromkeys(line.partition(": ")[2] for line in setup.hardware))
    of = f"({'; '.join(boards)}), " if boards else ""
    return f"{of}{each}, {link}"


def _engines(setups: Sequence[Fingerprint]) -> list[str]:
    versions = [
        f"Hadoop {_listed(setup.hadoop for setup in setups)}",
        f"Spark {_listed(setup.spark for setup in setups)}",
        f"Java {_listed(setup.java for setup in setups)}",
    ]
    digests = list(dict.fromkeys(setup.config_sha256[:16] for setup in setups))
    profiles = _listed(setup.profile for setup in setups)
    several = "one configuration" if len(digests) == 1 else f"{len(digests)} configurations"
    shown = f" (SHA-256 {', '.join(digests)})" if len(digests) <= _MANY else ""
    driver = _listed(setup.boardcluster for setup in setups)
    blas = _listed(setup.blas for setup in setups if setup.blas)
    said = f"Engines were {', '.join(versions)}, profile {profiles}, {several}{shown}"
    return [f"{said}, driven by boardcluster {driver}{f'; BLAS: {blas}' if blas else ''}."]


def _design(source: Source, counted: Sequence[Result]) -> list[str]:
    names = _listed(words.workload_name(cell.workload) for cell in source.cells)
    engines = _listed(words.engine_name(cell.engine) for cell in source.cells)
    least = min(cell.count for cell in source.cells)
    most = max(cell.count for cell in source.cells)
    runs = words.count(most, "run") if least == most else f"{least} to {most} runs"
    cells = words.count(len(source.cells), "configuration")
    each = "" if len(source.cells) == 1 else " each"
    sentences = [f"{names} ran on {engines}: {cells} with {runs}{each}, {len(counted)} in all."]
    ids = dict.fromkeys(item.trial.campaign_id for item in counted)
    known = [source.campaigns[name] for name in ids if name in source.campaigns]
    seeds = [str(row.seed) for row in known if row.kind is CampaignKind.RUN]
    if seeds:
        word = "seed" if len(set(seeds)) == 1 else "seeds"
        sentences.append(f"Their order was random ({word} {_listed(seeds)}).")
    return sentences


def _data(source: Source) -> list[str]:
    used = [row for row in source.campaigns.values() if row.dataset]
    inputs = _listed(
        f"{row.dataset} ({row.dataset_source}, SHA-256 {row.dataset_sha256[:16]})" for row in used
    )
    proofs = len(verified(source))
    proved = f"The output of each of {proofs} runs was proved right" if proofs > 1 else ""
    proved = proved or ("The output of the run was proved right" if proofs else "")
    return [f"Input was {inputs}."] * bool(inputs) + [f"{proved}."] * bool(proved)


def _time(counted: Sequence[Result]) -> list[str]:
    sentences = [_TIME]
    dilations = {item.measurement.dilation for item in counted if item.measurement} - {1.0}
    if dilations:
        factors = _listed(f"{value:.4g}" for value in sorted(dilations))
        sentences.append(
            f"Emulated boards were slower than the real ones by a time dilation of {factors}; times"
            " are divided by it and rates multiplied."
        )
    return sentences


def _statistics(cells: Sequence[Cell]) -> list[str]:
    if all(cell.count == 1 for cell in cells):
        return ["Each configuration ran once, so there is no interval."]
    level = f"{100 * CONFIDENCE:.0f} %"
    sentences = [
        f"Means are given with {level} confidence intervals by Student's t"
        + (
            f", from {LEAST_RUNS} runs on also by the expanded-percentile bootstrap"
            if any(cell.bootstrap_seconds for cell in cells)
            else ""
        )
        + "; intervals of differences are Welch's, those of ratios Fieller's."
    ]
    if any(cell.count == 1 for cell in cells):
        sentences.append("Configurations that ran once have no interval.")
    outliers = sum(len(cell.outliers) for cell in cells)
    if outliers:
        verb = "lies" if outliers == 1 else "lie"
        sentences.append(
            f"{words.count(outliers, 'run')} {verb} beyond Tukey's fences; none was dropped."
        )
    return sentences


def _trust(source: Source, counted: Sequence[Result]) -> list[str]:
    found = [item.measurement for item in counted if item.measurement]
    verdicts = words.verdicts(item.verdict for item in found)
    judged = any(item.verdict is not Verdict.UNJUDGED for item in found)
    how = "judged by the telemetry of the nodes" if judged else "not judged by telemetry"
    out = sum(len(cell.left_out) for cell in source.cells)
    out += sum(len(row.results) for row in source.untrusted)
    left = f"; {words.count(out, 'tainted run')} left out" if out else ""
    return [f"Runs were {how}: {verdicts}{left}."]


def _energy(counted: Sequence[Result]) -> list[str]:
    found = [item.measurement.energy for item in counted if item.measurement]
    sums = [row for row in found if row is not None and row.energy_joules is not None]
    if not sums:
        return ["Energy was not measured."]
    scope = "" if len(sums) == len(counted) else f" of {len(sums)} of {len(counted)} runs"
    return [f"Energy{scope} was {_listed(_energy_words(sums))}."]


def _energy_words(sums: Sequence[Energy]) -> list[str]:
    said = []
    for method in EnergyMethod:
        rows = [row for row in sums if row.method is method]
        if not rows:
            continue
        levels = _listed(str(row.level) for row in rows)
        if method is EnergyMethod.MODELLED:
            said.append("modelled from each node's idle and stress power and its utilisation")
            continue
        meters = _listed(f"{power.meter} ({power.kind})" for row in rows for power in row.powers)
        said.append(f"metered by {meters}, EE HPC WG level {levels}")
    return said


def _listed(items: Iterable[str], *, word: str = "and") -> str:
    """Different texts in their order, in words."""
    found = list(dict.fromkeys(items))
    if len(found) < 2:
        return "".join(found)
    return f"{', '.join(found[:-1])} {word} {found[-1]}"
