"""The page of one run: what it was, whether it can be trusted, and what every node did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from boardcluster.analysis import is_twin, label_of, node_words, verdict_of
from boardcluster.analysis.phases import submissions
from boardcluster.analysis.telemetry import WHOLE_RUN, NodeSummary, node_summaries
from boardcluster.records import Attempt, Campaign, Result, Telemetry
from boardcluster.report import words
from boardcluster.report.curves import Chart, csv_link, draw
from boardcluster.report.details import setup_values
from boardcluster.report.render import STATE_MARKS, make_environment, style_sheets, write_texts
from boardcluster.report.run_curves import Section, sections
from boardcluster.report.run_marks import Disturbance, disturbances
from boardcluster.report.source import state_of
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["page_name", "write_run_page"]

_METHOD = (
    (
        "An agent on each node reads what its kernel counts, once a second unless said otherwise."
        " Times are seconds from the start of the run by the driver's clock; each node's clock was"
        " compared with it."
    ),
    (
        "Of an emulated node only its own processes and its own interface count. Of the machine"
        " that emulated nodes share, and of a board, everything counts."
    ),
    (
        "The measured clock is that of a loop of instructions that wait for each other, timed. It"
        " is what the core really did, whatever the kernel reports; other work on the same core"
        " makes it lower."
    ),
    (
        "Shaded parts are phases: those of the engine where it dates them, else our submissions."
        " Marks on the time axis show when something disturbed a node."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """A chart as the template shows it."""

    chart: Chart
    svg: Markup
    csv_link: str
    csv_name: str


def page_name(attempt: Attempt) -> str:
    """File name of the page of an attempt."""
    return f"run-{attempt.trial_id}-{attempt.number}.html"


def write_run_page(
    result: Result,
    attempt: Attempt,
    telemetry: Telemetry | None,
    *,
    folder: Path,
    campaign: Campaign | None = None,
    report: str = "",
) -> Path:
    """Write the page of one run; an earlier one there is replaced.

    The same records give the same bytes.

    Args:
        result: the run.
        attempt: its attempt.
        telemetry: its samples; None where it has none, which the page says.
        folder: where to write; made if there is none.
        campaign: what it belongs to.
        report: where the report is, relative to the page; empty for nowhere.

    Returns:
        The page.

    Raises:
        StoreError: the folder cannot be written.
    """
    path = folder / page_name(attempt)
    environment = make_environment()
    emulated = bool(attempt.fingerprint.mark)
    shown = telemetry or Telemetry(duration_seconds=0.0, nodes=())
    found = disturbances(shown, limited=is_twin(result))
    curves = sections(shown, found)
    text = environment.get_template("run.html.j2").render(
        result=result,
        attempt=attempt,
        measurement=result.measurement,
        run=attempt.name,
        headline=_headline(result),
        verdict=verdict_of(result).value if result.measurement else "",
        state=state_of(result),
        cluster=campaign.cluster if campaign else "",
        measured=words.moment(attempt.started_utc),
        report=report,
        facts=_facts(result, attempt),
        tables=_tables(shown, emulated=emulated),
        disturbed=_disturbed(found, emulated=emulated),
        sections=[
            (section, [_figure(chart, attempt) for chart in section.charts]) for section in curves
        ],
        setup=Table(
            caption="Machine, versions and settings",
            columns=(Column(""), Column("")),
            rows=tuple(setup_values(attempt.fingerprint).items()),
            emulated=emulated,
        ),
        emulated=emulated,
        emulated_text=words.emulated(node_words([result])),
        marks=STATE_MARKS,
        method=(*_METHOD, words.DILATED) if is_twin(result) else _METHOD,
        interval=_step_words(curves),
        style=style_sheets(environment, "style.css", "run.css"),
    )
    write_texts({path: text})
    return path


def _headline(result: Result) -> str:
    trial, found = result.trial, result.measurement
    size = f" over {format_bytes(trial.size_bytes)}" if trial.size_bytes else ""
    name = f"{words.workload_name(trial.workload)} on {words.engine_name(trial.engine)}{size}"
    if found is None:
        return f"{name}: {state_of(result)}"
    return f"{name}: {words.seconds_with_unit(found.duration_seconds)}"


def _facts(result: Result, attempt: Attempt) -> list[tuple[str, str]]:
    """What the run was, as pairs of a heading and a text."""
    trial, found = result.trial, result.measurement
    energy = found.energy if found else None
    pairs = [
        ("Campaign", f"{trial.campaign_id}, run {trial.position + 1}"),
        ("Repetition", f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition)),
        ("Workers", str(trial.workers)),
        ("Profile", trial.profile),
        ("Settings", label_of([result]) or "default"),
        ("State", f"{attempt.state.value}{': ' if attempt.reason else ''}{attempt.reason}"),
        ("Ended", words.moment(attempt.ended_utc) if attempt.ended_utc else ""),
    ]
    if found is not None:
        proof = found.verification
        pairs += [
            ("Output", format_bytes(found.output_bytes) if found.output_bytes else ""),
            ("Verified", proof.method if proof else "no: the program has no known answer"),
            ("YARN application", found.application_id),
        ]
    if energy is not None and energy.energy_joules is not None:
        pairs.append(("Energy", f"{words.number(energy.energy_joules)} J, {energy.method.value}"))
    return [(name, text) for name, text in pairs if text]


_COLUMNS = (
    Column("Node"),
    Column("CPU busy, cores", Kind.NUMBER),
    Column("At most", Kind.NUMBER),
    Column("I/O wait", Kind.NUMBER),
    Column("Steal", Kind.NUMBER),
    Column("Disk read, MB/s", Kind.NUMBER),
    Column("Written, MB/s", Kind.NUMBER),
    Column("Received, MB/s", Kind.NUMBER),
    Column("Sent, MB/s", Kind.NUMBER),
    Column("Lowest clock, GHz", Kind.NUMBER),
    Column("Hottest, °C", Kind.NUMBER),
    Column("Least memory, GiB", Kind.NUMBER),
    Column("Most used, GiB", Kind.NUMBER),
    Column("Throttled, s", Kind.NUMBER),
    Column("Held by quota, s", Kind.NUMBER),
    Column("Others' CPU, s", Kind.NUMBER),
)


def _tables(telemetry: Telemetry, *, emulated: bool) -> list[Table]:
    """One table for the run, one for each submission that is not all of it, one of all phases."""
    whole = (0.0, telemetry.duration_seconds)
    outer = submissions(telemetry.phases)
    parts = [(WHOLE_RUN, "Every node, over the whole run")]
    parts += [
        (name, f"Every node in phase {name}, {begin:.1f} to {end:.1f} s")
        for name, (begin, end) in outer.items()
        if (begin, end) != whole
    ]
    tables = []
    for span, caption in parts if telemetry.nodes else ():
        table = Table(
            caption=caption,
            columns=_COLUMNS,
            rows=tuple(_row(row) for row in node_summaries(telemetry, span)),
            emulated=emulated,
        )
        tables.append(table.without_empty())
    inner = [name for name in telemetry.phases if name not in outer] if telemetry.nodes else []
    return [*tables, _engine_table(telemetry, inner, emulated=emulated)] if inner else tables


_MOST_PHASES = 16

_PHASE_COLUMNS = (
    Column("Phase", Kind.LONG),
    Column("From, s", Kind.NUMBER),
    Column("To, s", Kind.NUMBER),
    Column("Took, s", Kind.NUMBER),
    Column("CPU busy, cores", Kind.NUMBER),
    Column("Busiest node", Kind.NUMBER),
    Column("I/O wait", Kind.NUMBER),
    Column("Disk read, MB/s", Kind.NUMBER),
    Column("Written, MB/s", Kind.NUMBER),
    Column("Received, MB/s", Kind.NUMBER),
)


def _engine_table(telemetry: Telemetry, names: Sequence[str], *, emulated: bool) -> Table:
    """What all nodes together did in each phase of the engine; the longest, in order of time."""
    took = {name: telemetry.phases[name][1] - telemetry.phases[name][0] for name in names}
    longest = set(sorted(names, key=lambda name: -took[name])[:_MOST_PHASES])
    shown = [name for name in names if name in longest]
    more = f", the {len(shown)} longest of {len(names)}" if len(shown) < len(names) else ""
    return Table(
        caption=f"All nodes together in each phase of the engine{more}; phases may overlap",
        columns=_PHASE_COLUMNS,
        rows=tuple(_phase_row(telemetry, name) for name in shown),
        emulated=emulated,
    ).without_empty()


def _phase_row(telemetry: Telemetry, name: str) -> tuple[str, ...]:
    begin, end = telemetry.phases[name]
    found = node_summaries(telemetry, name)
    emulated = [row for row in found if row.scope != "machine"]
    nodes = emulated or found  # the machine below emulated nodes counts what they did once more

    def total(values: Iterable[float | None], divisor: float = 1.0, decimals: int = 2) -> str:
        known = [value for value in values if value is not None]
        return _number(sum(known) if known else None, decimals, divisor)

    shares = [row.cpu_busy_mean_share for row in nodes if row.cpu_busy_mean_share is not None]
    waits = [row.cpu_iowait_mean_share for row in found if row.cpu_iowait_mean_share is not None]
    return (
        name,
        f"{begin:.1f}",
        f"{end:.1f}",
        f"{end - begin:.1f}",
        total(row.cpu_busy_mean_cores for row in nodes),
        _percent(max(shares, default=None)),
        _percent(sum(waits) / len(waits) if waits else None),
        total((row.disk_read_bytes_per_second for row in nodes), 1e6),
        total((row.disk_written_bytes_per_second for row in nodes), 1e6),
        total((row.net_received_bytes_per_second for row in nodes), 1e6),
    )


def _row(row: NodeSummary) -> tuple[str, ...]:
    return (
        row.node,
        f"{_number(row.cpu_busy_mean_cores, 2)} of {row.cores}",
        _number(row.cpu_busy_most_cores, 2),
        _percent(row.cpu_iowait_mean_share),
        _percent(row.cpu_steal_mean_share or None),
        _number(row.disk_read_bytes_per_second, 2, 1e6),
        _number(row.disk_written_bytes_per_second, 2, 1e6),
        _number(row.net_received_bytes_per_second, 2, 1e6),
        _number(row.net_sent_bytes_per_second, 2, 1e6),
        _number(row.clock_least_hertz, 2, 1e9),
        _number(row.temperature_most_celsius, 1),
        _number(row.memory_available_least_bytes, 2, 1 << 30),
        _number(row.memory_own_most_bytes, 2, 1 << 30),
        _number(row.throttled_seconds or None, 1),
        _number(row.quota_throttled_seconds or None, 1),
        _number(row.foreign_cpu_seconds, 1),
    )


def _number(value: float | None, decimals: int, divisor: float = 1.0) -> str:
    return words.NONE if value is None else f"{value / divisor:,.{decimals}f}"


def _percent(share: float | None) -> str:
    return words.NONE if share is None else words.percent(share)


def _disturbed(found: Iterable[Disturbance], *, emulated: bool) -> Table | None:
    """When something disturbed a node; None if nothing did."""
    rows = tuple((row.node, row.what, f"{row.seconds:.1f}", _when(row.spans)) for row in found)
    if not rows:
        return None
    return Table(
        caption="What disturbed the nodes, and when; the verdict says whether it was too much",
        columns=(
            Column("Node"),
            Column("What"),
            Column("Seconds", Kind.NUMBER),
            Column("From and to, seconds from the start", Kind.LONG),
        ),
        rows=rows,
        emulated=emulated,
    )


_SHOWN_SPANS = 8


def _when(spans: tuple[tuple[float, float], ...]) -> str:
    text = ", ".join(f"{begin:.1f} to {end:.1f}" for begin, end in spans[:_SHOWN_SPANS])
    rest = len(spans) - _SHOWN_SPANS
    return f"{text} and {rest} more" if rest > 0 else text


def _figure(chart: Chart, attempt: Attempt) -> _Figure:
    return _Figure(
        chart=chart,
        svg=Markup(draw(chart)),  # noqa: S704 - drawn by us; its texts are escaped there
        csv_link=csv_link(chart),
        csv_name=f"run-{attempt.trial_id}-{attempt.number}-{chart.name}.csv",
    )


def _step_words(found: Sequence[Section]) -> str:
    """How far apart the points of the curves are."""
    if not found:
        return ""
    edges = found[0].charts[0].edges
    return f"{edges[1] - edges[0]:.3g} s"
