"""``boardcluster telemetry``: what the nodes did during a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TextIO

import typer

from boardcluster.cli.console import print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.fetch.cache import writing
from boardcluster.foreign import write_csv
from boardcluster.queries.runs import find_run, nearest
from boardcluster.records import Telemetry
from boardcluster.store import Store
from boardcluster.units import format_count

__all__ = ["EPILOG", "command"]

_CSV_COLUMNS = ("node", "seconds", "column", "value")


EPILOG = "Example: boardcluster telemetry --csv samples.csv"


def command(
    at: ChosenCluster,
    run: Annotated[
        str | None,
        typer.Argument(
            help="TRIAL/NUMBER, or TRIAL for its latest attempt. Default: the latest run."
        ),
    ] = None,
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
            help="Only these columns and their parts after a slash; separate by commas or repeat.",
            show_default=False,
        ),
    ] = None,
    csv_file: Annotated[
        str | None,
        typer.Option(
            "--csv", help="Write every sample to this file, or to standard output with -."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what each node did during a run: its verdict, and CPU, disk, network, clock, heat."""
    # Other commands need not wait for what computes summaries.
    from boardcluster.cli.show_telemetry import (  # noqa: PLC0415
        print_telemetry,
        telemetry_document,
    )

    if csv_file is not None and as_json:
        raise UsageError("--csv cannot be used with --json", hint="leave one of them out")
    folder = at.folder(only_read=True)
    with Store.open(folder, read_only=True) as store:
        result, attempt, found = find_run(store, run)
    if found is None:
        raise EmptySelectionError(
            f"{attempt.name} has no samples: it ran before telemetry was recorded, or ended "
            "before any sample was taken",
            hint="leave the name out to see the latest run that has samples",
        )
    telemetry = _chosen(found, nodes=node or (), phase=phase)
    names = _chosen_columns(telemetry, columns or ())
    if csv_file is not None:
        _write_csv(csv_file, telemetry, names, phase)
    elif as_json:
        print_json(telemetry_document(result, attempt, telemetry, phase=phase, columns=names))
    else:
        print_telemetry(result, attempt, telemetry, phase=phase, columns=names)


def _chosen(telemetry: Telemetry, *, nodes: Collection[str], phase: str | None) -> Telemetry:
    """Return the telemetry of these nodes; check that they and the phase are there."""
    known = [row.node for row in telemetry.nodes]
    for name in nodes:
        if name not in known:
            raise UsageError(
                f"there are no samples of node {name!r}", hint=f"known: {', '.join(known)}"
            )
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
    say(f"{format_count(count, 'value')}: {path}")


def _write_rows(
    stream: TextIO, telemetry: Telemetry, columns: Collection[str], phase: str | None
) -> int:
    """Write one row per known value; return how many."""
    write_csv(stream, [_CSV_COLUMNS])
    return write_csv(stream, _values(telemetry, columns, phase))


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
