"""The page of one run: what it was, whether it can be trusted, and what every node did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from markupsafe import Markup

from boardcluster.analysis.cells import label_of
from boardcluster.analysis.phases import submissions
from boardcluster.analysis.telemetry import WHOLE_RUN, NodeSummary, node_summaries
from boardcluster.analysis.twins import is_twin, node_words
from boardcluster.records import Attempt, Campaign, Result, Telemetry
from boardcluster.report import words
from boardcluster.report.curves import Chart, csv_link, draw
from boardcluster.report.machine import setup_values
from boardcluster.report.parts import present
from boardcluster.report.render import STATE_MARKS, make_environment, style_sheets, write_texts
from boardcluster.report.run_curves import Section, sections
from boardcluster.report.run_marks import DisturbedTimes, disturbances
from boardcluster.report.source import outcome_of, state_of
from boardcluster.report.tables import Column, Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

__all__ = ["page_name", "write_run_page"]

_METHOD = (
    (
        "An agent on each node reads the kernel's counters, once a second unless stated otherwise."
        " Times are seconds from the start of the run by the driver's clock, with which each "
        "node's clock was compared."
    ),
    (
        "The numbers of an emulated node cover only its own processes and its own network"
        " interface. Those of a board, and of the machine that emulated nodes share, cover"
        " everything."
    ),
    (
        "The clock is measured by timing a loop of instructions that wait for each other. It is"
        " the real clock of the core, whatever the kernel reports; other work on the same core"
        " lowers it."
    ),
    (
        "Shaded areas are phases: those of the engine where it records their times, else our"
        " submissions. Marks on the time axis show when something disturbed a node."
    ),
)


_Nodes: TypeAlias = Sequence[NodeSummary]


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
        verdict=outcome_of(result),
        reason=attempt.reason,
        cluster=campaign.cluster if campaign else "",
        measured=words.moment(attempt.started_utc),
        report=report,
        facts=_facts(result, attempt),
        tables=_tables(shown, emulated=emulated),
        disturbed=tabulate(
            found,
            _DISTURBED,
            caption="What disturbed the nodes, and when; the verdict says whether it was too much",
            emulated=emulated,
        ),
        sections=[
            (section, [_figure(chart, attempt) for chart in section.charts]) for section in curves
        ],
        setup=ReportTable(
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
        ("Repetition", words.repetition(trial)),
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
            (
                "Verified",
                proof.method if proof else "no: the expected output of the program is not known",
            ),
            ("YARN application", found.application_id),
        ]
    if energy is not None and energy.energy_joules is not None:
        pairs.append(("Energy", f"{words.number(energy.energy_joules)} J, {energy.method.value}"))
    return [(name, text) for name, text in pairs if text]


def _sum(title: str, attribute: str, divisor: float = 1.0) -> Getter[_Nodes]:
    """A column of an attribute of nodes, added up where several are in a row."""

    def get(nodes: _Nodes) -> str:
        known = [value for node in nodes if (value := getattr(node, attribute)) is not None]
        return _number(sum(known) if known else None, 2, divisor)

    return Getter(title, get, Display.NUMBER)


def _own(title: str, attribute: str, decimals: int = 2, divisor: float = 1.0) -> Getter[_Nodes]:
    """A column of an attribute of one node; a dash where it is 0 and counts a disturbance."""

    def get(nodes: _Nodes) -> str:
        value = getattr(nodes[0], attribute)
        return _number(value or None if "throttled" in attribute else value, decimals, divisor)

    return Getter(title, get, Display.NUMBER)


def _busy(nodes: _Nodes) -> str:
    return f"{_number(nodes[0].cpu_busy_mean_cores)} of {nodes[0].cores}"


_RATES = (
    _sum("Disk read, MB/s", "disk_read_bytes_per_second", 1e6),
    _sum("Written, MB/s", "disk_written_bytes_per_second", 1e6),
    _sum("Received, MB/s", "net_received_bytes_per_second", 1e6),
)
_NODES: Getters[_Nodes] = (
    Getter("Node", lambda nodes: nodes[0].node),
    Getter("CPU busy, cores", _busy, Display.NUMBER),
    _own("At most", "cpu_busy_most_cores"),
    Getter("I/O wait", lambda row: words.percent(row[0].cpu_iowait_mean_share), Display.NUMBER),
    Getter("Steal", lambda row: words.percent(row[0].cpu_steal_mean_share or None), Display.NUMBER),
    *_RATES,
    _own("Sent, MB/s", "net_sent_bytes_per_second", 2, 1e6),
    _own("Lowest clock, GHz", "clock_least_hertz", 2, 1e9),
    _own("Hottest, °C", "temperature_most_celsius", 1),
    _own("Least memory, GiB", "memory_available_least_bytes", 2, 1 << 30),
    _own("Most used, GiB", "memory_own_most_bytes", 2, 1 << 30),
    _own("Throttled, s", "throttled_seconds", 1),
    _own("Held by quota, s", "quota_throttled_seconds", 1),
    _own("Others' CPU, s", "foreign_cpu_seconds", 1),
)


def _tables(telemetry: Telemetry, *, emulated: bool) -> tuple[ReportTable, ...]:
    """One table for the run, one for each submission that is not all of it, one of all phases."""
    if not telemetry.nodes:
        return ()
    whole = (0.0, telemetry.duration_seconds)
    outer = submissions(telemetry.phases)
    parts = [(WHOLE_RUN, "Every node, over the whole run")]
    parts += [
        (name, f"Every node in phase {name}, {begin:.1f} to {end:.1f} s")
        for name, (begin, end) in outer.items()
        if (begin, end) != whole
    ]
    tables = (
        tabulate(
            [(node,) for node in node_summaries(telemetry, span)],
            _NODES,
            caption=caption,
            emulated=emulated,
        )
        for span, caption in parts
    )
    inner = [name for name in telemetry.phases if name not in outer]
    return present(*tables, _engine_table(telemetry, inner, emulated=emulated))


_MOST_PHASES = 16


def _engine_table(
    telemetry: Telemetry, names: Sequence[str], *, emulated: bool
) -> ReportTable | None:
    """What all nodes together did in each phase of the engine; the longest, in order of time."""
    took = {name: telemetry.phases[name][1] - telemetry.phases[name][0] for name in names}
    longest = set(sorted(names, key=lambda name: -took[name])[:_MOST_PHASES])
    shown = [name for name in names if name in longest]
    more = f", the {len(shown)} longest of {len(names)}" if len(shown) < len(names) else ""
    found = {name: node_summaries(telemetry, name) for name in shown}

    def nodes(name: str) -> _Nodes:
        """Without the machine below emulated nodes, which counts what they did once more."""
        return [row for row in found[name] if row.scope != "machine"] or found[name]

    def busiest(name: str) -> str:
        shares = [row.cpu_busy_mean_share for row in nodes(name)]
        return words.percent(max((share for share in shares if share is not None), default=None))

    def waited(name: str) -> str:
        shares = [row.cpu_iowait_mean_share for row in found[name]]
        known = [share for share in shares if share is not None]
        return words.percent(sum(known) / len(known) if known else None)

    def over(getter: Getter[_Nodes]) -> Getter[str]:
        return Getter(getter.title, lambda name: getter.get(nodes(name)), getter.kind)

    getters: Getters[str] = (
        Getter("Phase", lambda name: name, Display.LONG),
        Getter("From, s", lambda name: f"{telemetry.phases[name][0]:.1f}", Display.NUMBER),
        Getter("To, s", lambda name: f"{telemetry.phases[name][1]:.1f}", Display.NUMBER),
        Getter("Took, s", lambda name: f"{took[name]:.1f}", Display.NUMBER),
        over(_sum("CPU busy, cores", "cpu_busy_mean_cores")),
        Getter("Busiest node", busiest, Display.NUMBER),
        Getter("I/O wait", waited, Display.NUMBER),
        *map(over, _RATES),
    )
    return tabulate(
        shown,
        getters,
        caption=f"All nodes together in each phase of the engine{more}; phases may overlap",
        emulated=emulated,
    )


def _number(value: float | None, decimals: int = 2, divisor: float = 1.0) -> str:
    return words.NONE if value is None else f"{value / divisor:,.{decimals}f}"


_DISTURBED: Getters[DisturbedTimes] = (
    Getter("Node", lambda row: row.node),
    Getter("What", lambda row: row.what),
    Getter("Seconds", lambda row: f"{row.seconds:.1f}", Display.NUMBER),
    Getter("From and to, seconds from the start", lambda row: _when(row.spans), Display.LONG),
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
