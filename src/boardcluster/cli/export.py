"""``boardcluster export``: results for other programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.cli.bundle_options import BundleOptions, write_one_bundle
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import ChosenCluster
from boardcluster.cluster.folders import require_home
from boardcluster.errors import UsageError
from boardcluster.queries.names import TableName
from boardcluster.store import Store
from boardcluster.units import format_count

if TYPE_CHECKING:
    from boardcluster.report.export.frames import Frame
    from boardcluster.report.tables import ReportTable

__all__ = ["EPILOG", "command"]


class _To(StrEnum):
    """Formats."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    TOP500 = "top500"
    LATEX = "latex"


_TABLES = (_To.CSV, _To.PARQUET, _To.JSON)


EPILOG = (
    "Examples: boardcluster export --format parquet -o runs.parquet\n\n"
    "boardcluster export --format top500\n\n"
    "boardcluster export --bundle -o paper.zip --author 'Ada Lovelace' --licence CC-BY-4.0"
)


def command(
    at: ChosenCluster,
    of_bundle: BundleOptions,
    to: Annotated[
        _To | None,
        typer.Option(
            "--format", help="Format to write; not used with --bundle.", show_default=False
        ),
    ] = None,
    what: Annotated[
        TableName | None,
        typer.Option(
            "--what",
            help="Table to write as csv, parquet or json. Default: runs.",
            show_default=False,
        ),
    ] = None,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File or folder to write to. Default: standard output.",
            show_default=False,
        ),
    ] = None,
    tainted: Annotated[
        bool,
        typer.Option("--tainted", help="Include tainted runs in cells, top500 and latex."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Export results as tables for other programs, LaTeX, lines for the TOP500 list, or a bundle.

    A bundle is one file with everything that others need to check the results.
    """
    if of_bundle.bundle:
        if to is not None or what is not None:
            raise UsageError("--bundle takes neither --format nor --what", hint="leave them out")
        write_one_bundle(at, output, of_bundle, campaign=campaign, tainted=tainted, force=force)
        return
    of_bundle.refuse()
    if to is None:
        raise UsageError("no --format was given", hint="choose one, or write a --bundle")
    if what is not None and to not in _TABLES:
        raise UsageError(f"--what cannot be used with --format {to}", hint="leave it out")
    if what is TableName.PROBES and campaign is not None:
        raise UsageError(
            "--campaign cannot be used with --what probes", hint="probes belong to no campaign"
        )
    table = what or TableName.RUNS
    path = _target(output, to, table)
    _check_target(path, to, force=force)
    folder = at.folder(only_read=True)
    require_home(folder)
    from boardcluster.queries.tables import StoredTables  # noqa: PLC0415  slow to load
    from boardcluster.workloads import changes_work  # noqa: PLC0415  slow to load

    reporter = Reporter()
    with Store.open(folder, read_only=True) as store, reporter.following():
        exported = StoredTables(store, campaign, tainted=tainted, follow=reporter.progress)
        if to is _To.LATEX:
            _write_tables(exported.latex(changes_work=changes_work), path, force=force)
        elif to is _To.TOP500:
            _write_lines(exported.top500(), path, force=force)
        else:
            _write_table(exported.frame(table), to, path, force=force)
        for line in exported.damaged:
            reporter.line(f"left out: {line}")


def _target(output: Path | None, to: _To, table: TableName) -> Path | None:
    """Return the file that is meant; for LaTeX the folder."""
    if output is None or to is _To.LATEX:
        return output
    if output.is_dir():
        name = "top500.txt" if to is _To.TOP500 else f"{table}.{to}"
        return output / name
    return output


def _check_target(path: Path | None, to: _To, *, force: bool) -> None:
    """Refuse before anything is read."""
    from boardcluster.report.export.writers import require_free, require_parquet  # noqa: PLC0415

    if to is _To.PARQUET:
        require_parquet()
    if path is None:
        if to in {_To.PARQUET, _To.LATEX}:
            what = "a folder" if to is _To.LATEX else "a file"
            raise UsageError(f"{to} needs {what} to write to", hint="name it with --output")
        return
    if to is _To.LATEX:
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is not a folder", hint="name a folder for the tables")
        return
    require_free(path, force=force)


def _write_table(frame: Frame, to: _To, path: Path | None, *, force: bool) -> None:
    from boardcluster.report.export.writers import (  # noqa: PLC0415
        Format,
        write_frame,
        write_stream,
    )

    if path is None:
        write_stream(frame, sys.stdout, to=Format(to.value))
        return
    count = write_frame(frame, path, to=Format(to.value), force=force)
    say(f"{format_count(count, 'row')}: {path}")


def _write_lines(lines: Sequence[str], path: Path | None, *, force: bool) -> None:
    from boardcluster.report.export.writers import whole_file  # noqa: PLC0415

    if path is None:
        for line in lines:
            say(line)
        return
    with whole_file(path, force=force) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    say(f"{format_count(len(lines), 'line')}: {path}")


def _write_tables(tables: Mapping[str, ReportTable], folder: Path | None, *, force: bool) -> None:
    from boardcluster.report.latex import write_latex  # noqa: PLC0415

    if folder is None:
        raise UsageError("latex needs a folder to write to", hint="name it with --output")
    for path in write_latex(tables, folder, force=force):
        say(f"table: {path}")
