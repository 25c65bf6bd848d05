"""``boardcluster telemetry``: what the nodes did during a run."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from boardcluster.cli.console import print_json, print_table, say
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.cli.runs import find_run, nearest
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.fetch.cache import writing
from boardcluster.records import Attempt, Result, Telemetry
from boardcluster.store import Store
from boardcluster.units import format_bytes

if TYPE_CHECKING:
    from boardcluster.analysis.telemetry import ColumnSummary, NodeSummary

__all__ = ["register"]

_CSV_COLUMNS = ("node", "seconds", "column", "value")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="telemetry", epilog="Example: boardcluster telemetry --csv samples.csv")(
        _telemetry
    )


def _telemetry(
    run: Annotated[
        str | None,
        typer.Argument(
            help="TRIAL/NUMBER, or TRIAL for its latest attempt. Default: the latest run."
        ),
    ] = None,
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    phase: Annotated[
        str | None, typer.Option(help="Only this phase, by its name.", show_default=False)
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Only this node; repeat for several.", show_default=False),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these columns, each with all behind its slash; commas between, or repeat.",
            show_default=False,
        ),
    ] = None,
    csv_file: Annotated[
        str | None,
        typer.Option("--csv", help="Write every sample to this file; - is standard output."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what each node did during a run: its verdict, and CPU, disk, network, clock, heat."""
    if csv_file is not None and as_json:
        raise UsageError("--csv and --json are two ways of one answer", hint="leave one out")
    folder = home_folder(home, cluster)
    with Store.open(folder, read_only=True) as store:
        result, attempt, found = find_run(store, run)
    if found is None:
        raise EmptySelectionError(
            f"{attempt.name} has no samples: it ran before there was telemetry, or ended "
            "before any were gathered",
            hint="leave the name out for the latest run that has some",
        )
    telemetry = _chosen(found, nodes=node or (), phase=phase)
    names = _chosen_columns(telemetry, columns or ())
    if csv_file is not None:
        _write_csv(csv_file, telemetry, names, phase)
    elif as_json:
        print_json(_document(result, attempt, telemetry, phase=phase, columns=names))
    else:
        _print(result, attempt, telemetry, phase=phase, columns=names)


def _chosen(telemetry: Telemetry, *, nodes: Collection[str], phase: str | None) -> Telemetry:
    """Return the telemetry of these nodes; check that they and the phase are there."""
    known = [row.node for row in telemetry.nodes]
    for name in nodes:
        if name not in known:
            raise UsageError(f"no samples of a node {name!r}", hint=f"known: {', '.join(known)}")
    if phase is not None and phase not in telemetry.phases:
        raise UsageError(
            f"the run has no phase {phase!r}",
            hint=f"known: {', '.join(telemetry.phases)}" if telemetry.phases else "it has none",
        )
    return Telemetry(
        duration_seconds=telemetry.duration_seconds,
        nodes=tuple(row for row in telemetry.nodes if not nodes or row.node in nodes),
        phases=telemetry.phases,
    )


def _chosen_columns(telemetry: Telemetry, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that were asked for, each name known."""
    from boardcluster.analysis.telemetry import base_name, column_names  # noqa: PLC0415

    there = column_names(telemetry)
    known = sorted({*there, *map(base_name, there)})
    names = tuple(word.strip() for text in wanted for word in text.split(",") if word.strip())
    for name in names:
        if name not in known:
            raise UsageError(
                f"no column {name!r} in these samples", hint=f"nearest: {nearest(name, known)}"
            )
    return names


def _write_csv(
    target: str, telemetry: Telemetry, columns: Collection[str], phase: str | None
) -> None:
    if target == "-":
        _write_rows(sys.stdout, telemetry, columns, phase)
        return
    path = Path(target)
    with writing(path), path.open("w", encoding="utf-8", newline="") as stream:
        count = _write_rows(stream, telemetry, columns, phase)
    say(f"{count} values: {path}")


def _write_rows(
    stream: TextIO, telemetry: Telemetry, columns: Collection[str], phase: str | None
) -> int:
    """Write one row per known value; return how many."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    count = 0
    for row in _values(telemetry, columns, phase):
        writer.writerow(row)
        count += 1
    return count


def _values(
    telemetry: Telemetry, columns: Collection[str], phase: str | None
) -> Iterator[tuple[str, str, str, str]]:
    from boardcluster.analysis.telemetry import (  # noqa: PLC0415
        WHOLE_RUN,
        base_name,
        samples_within,
        window_of,
    )

    for node in telemetry.nodes:
        window = window_of(node, telemetry, phase or WHOLE_RUN)
        inside = samples_within(window)
        moments = window.ends[inside]
        for name in sorted(window.columns):
            if columns and not {name, base_name(name)} & set(columns):
                continue
            for moment, value in zip(moments, window.columns[name][inside], strict=True):
                if not math.isnan(value):
                    yield node.node, f"{moment:.6f}", name, f"{value:.10g}"


def _document(
    result: Result,
    attempt: Attempt,
    telemetry: Telemetry,
    *,
    phase: str | None,
    columns: Sequence[str],
) -> dict[str, object]:
    from boardcluster.analysis.telemetry import column_summaries, node_summaries  # noqa: PLC0415

    found = result.measurement
    spans = _spans(telemetry, phase)
    return {
        "run": attempt.name,
        "workload": result.trial.workload,
        "engine": result.trial.engine.value,
        "state": attempt.state.value,
        "verdict": found.verdict.value if found else None,
        "verdict_reasons": found.verdict_reasons if found else (),
        "remarks": found.remarks if found else (),
        "duration_seconds": telemetry.duration_seconds,
        "phases": {name: list(span) for name, span in telemetry.phases.items()},
        "nodes": [row for span in spans for row in node_summaries(telemetry, span)],
        "columns": column_summaries(telemetry, columns, spans[0]) if columns else [],
    }


def _spans(telemetry: Telemetry, phase: str | None) -> list[str]:
    """The run and its submissions, without one that is the whole run; or one phase.

    The engine's own phases are too many for a table each: they are shown when asked for.
    """
    from boardcluster.analysis.phases import submissions  # noqa: PLC0415
    from boardcluster.analysis.telemetry import WHOLE_RUN  # noqa: PLC0415

    if phase is not None:
        return [phase]
    whole = (0.0, telemetry.duration_seconds)
    found = submissions(telemetry.phases)
    return [WHOLE_RUN, *(name for name, span in found.items() if span != whole)]


def _print(
    result: Result,
    attempt: Attempt,
    telemetry: Telemetry,
    *,
    phase: str | None,
    columns: Sequence[str],
) -> None:
    from boardcluster.analysis.telemetry import column_summaries, node_summaries  # noqa: PLC0415

    trial, found = result.trial, result.measurement
    say(f"run {attempt.name}: {trial.workload} on {trial.engine.value}")
    say(f"verdict: {found.verdict.value if found else f'none, {attempt.state.value}'}")
    for line in found.verdict_reasons if found else ():
        say(f"  {line}")
    for line in (attempt.reason, *(found.remarks if found else ())):
        if line:
            say(f"remark: {line}")
    for span in _spans(telemetry, phase):
        if columns:
            rows = [_column_row(row) for row in column_summaries(telemetry, columns, span)]
            _table(_title(telemetry, span), _COLUMN_TITLES, rows)
        else:
            rows = [_node_row(row) for row in node_summaries(telemetry, span)]
            _table(_title(telemetry, span), _NODE_TITLES, rows)
    if phase is None:
        _print_engine_phases(telemetry)


_MOST_PHASES = 20


def _print_engine_phases(telemetry: Telemetry) -> None:
    """List what can be asked for with ``--phase``; nothing where the engine gave no phases."""
    from boardcluster.analysis.phases import submissions  # noqa: PLC0415

    outer = submissions(telemetry.phases)
    rows = [(name, *span) for name, span in telemetry.phases.items() if name not in outer]
    shown = rows[:_MOST_PHASES]
    if shown:
        more = f", the first {len(shown)} of {len(rows)}" if len(rows) > len(shown) else ""
        print_table(
            f"the engine's phases{more}; --phase shows what the nodes did in one",
            ["phase", "from", "to", "took"],
            [
                [name, f"{begin:.1f} s", f"{end:.1f} s", f"{end - begin:.1f} s"]
                for name, begin, end in shown
            ],
        )


def _title(telemetry: Telemetry, span: str) -> str:
    if not span:
        return f"whole run: {telemetry.duration_seconds:.1f} s"
    begin, end = telemetry.phases[span]
    return f"phase {span}: {begin:.1f} to {end:.1f} s"


def _table(title: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without the columns that say nothing."""
    kept = [place for place in range(len(titles)) if not rows or any(row[place] for row in rows)]
    print_table(
        title,
        [titles[place] for place in kept],
        [[row[place] or "-" for place in kept] for row in rows],
    )


_NODE_TITLES = (
    "node",
    "CPU busy",
    "at most",
    "I/O wait",
    "steal",
    "disk read",
    "written",
    "received",
    "sent",
    "lowest clock",
    "hottest",
    "least memory free",
    "most of its own",
    "swap",
    "throttled",
    "quota held",
    "others' CPU",
)


def _node_row(row: NodeSummary) -> list[str]:
    mean, most = row.cpu_busy_mean_cores, row.cpu_busy_most_cores
    return [
        row.node,
        "" if mean is None else f"{mean:.2f} of {row.cores}",
        "" if most is None else f"{most:.2f}",
        _percent(row.cpu_iowait_mean_share),
        _percent(row.cpu_steal_mean_share or None),
        _rate(row.disk_read_bytes_per_second),
        _rate(row.disk_written_bytes_per_second),
        _rate(row.net_received_bytes_per_second),
        _rate(row.net_sent_bytes_per_second),
        "" if row.clock_least_hertz is None else f"{row.clock_least_hertz / 1e9:.2f} GHz",
        "" if row.temperature_most_celsius is None else f"{row.temperature_most_celsius:.1f} °C",
        _size(row.memory_available_least_bytes),
        _size(row.memory_own_most_bytes),
        _size(row.swap_used_most_bytes or None),
        _seconds(row.throttled_seconds),
        _seconds(row.quota_throttled_seconds),
        _seconds(row.foreign_cpu_seconds),
    ]


_COLUMN_TITLES = ("node", "column", "total", "mean", "lowest", "highest", "unit")


def _column_row(row: ColumnSummary) -> list[str]:
    unit = row.unit if row.total is None else f"{row.unit}, and per second".lstrip(", ")
    values = (row.total, row.mean, row.least, row.most)
    return [
        row.node,
        row.column,
        *("" if value is None else f"{value:.6g}" for value in values),
        unit,
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _rate(bytes_per_second: float | None) -> str:
    return "" if bytes_per_second is None else f"{format_bytes(round(bytes_per_second))}/s"


def _size(size_bytes: float | None) -> str:
    return "" if size_bytes is None else format_bytes(round(size_bytes), binary=True)


def _seconds(seconds: float | None) -> str:
    """Seconds, where there were any."""
    return f"{seconds:.1f} s" if seconds else ""
