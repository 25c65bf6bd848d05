"""``boardcluster export``: results for other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.analysis import summarise, untrusted
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import ClusterOption, HomeOption, home_folder
from boardcluster.errors import ClusterError, EmptySelectionError, StoreError, UsageError
from boardcluster.records import Campaign, Result, Telemetry
from boardcluster.store import Store

if TYPE_CHECKING:
    from boardcluster.report.export.frames import Frame
    from boardcluster.report.tables import Table

__all__ = ["register"]


class _To(StrEnum):
    """Formats."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    TOP500 = "top500"
    LATEX = "latex"


class _What(StrEnum):
    """Tables."""

    RUNS = "runs"
    CELLS = "cells"
    SAMPLES = "samples"
    PROBES = "probes"
    POWER = "power"


_TABLES = (_To.CSV, _To.PARQUET, _To.JSON)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="export",
        epilog="Examples: boardcluster export --format parquet -o runs.parquet\n\n"
        "boardcluster export --format top500",
    )(_export)


def _export(
    to: Annotated[_To, typer.Option("--format", help="What to write.")],
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    what: Annotated[
        _What | None,
        typer.Option(
            "--what",
            help="Which table, for csv, parquet and json. Default: runs.",
            show_default=False,
        ),
    ] = None,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, or a folder to write into. Default: standard output.",
            show_default=False,
        ),
    ] = None,
    tainted: Annotated[
        bool,
        typer.Option("--tainted", help="Let tainted runs count in cells, top500 and latex."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there already.")
    ] = False,
) -> None:
    """Write results as tables for other programs, as LaTeX, or as a line of a list."""
    if what is not None and to not in _TABLES:
        raise UsageError(f"--what is for {', '.join(_TABLES)}, not for {to}", hint="leave it out")
    if what is _What.PROBES and campaign is not None:
        raise UsageError("probes belong to no campaign", hint="leave --campaign out")
    table = what or _What.RUNS
    path = _target(output, to, table)
    _check_target(path, to, force=force)
    folder = home_folder(home, cluster)
    if not folder.is_dir():
        raise ClusterError(
            f"there is no cluster in {folder}", hint="name it with --cluster or --home"
        )
    reporter = Reporter()
    with Store.open(folder, read_only=True) as store, reporter.following():
        exported = _Exported(store, campaign, reporter, tainted=tainted)
        if to is _To.LATEX:
            _write_tables(exported.latex(), path, force=force)
        elif to is _To.TOP500:
            _write_lines(exported.top500(), path, force=force)
        else:
            _write_table(exported.frame(table), to, path, force=force)
        exported.say_damaged()


def _target(output: Path | None, to: _To, table: _What) -> Path | None:
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
            raise UsageError(f"{path} is no folder", hint="name a folder for the tables")
        return
    require_free(path, force=force)


class _Exported:
    """What is exported from one store."""

    def __init__(
        self, store: Store, campaign: str | None, reporter: Reporter, *, tainted: bool
    ) -> None:
        self._store = store
        self._campaign = campaign
        self._reporter = reporter
        self._tainted = tainted
        self._damaged: list[str] = []

    def say_damaged(self) -> None:
        """Name the artefacts that could not be read; they cost only themselves."""
        for line in self._damaged:
            self._reporter.line(f"left out: {line}")

    def frame(self, table: _What) -> Frame:
        """Return one table.

        Raises:
            EmptySelectionError: it would be empty.
        """
        if table is _What.PROBES:
            return self._probes()
        results, campaigns = self._results(), self._campaigns()
        if table is _What.CELLS:
            from boardcluster.report.export.cells import cell_frame  # noqa: PLC0415

            return cell_frame(
                summarise(results, tainted=self._tainted),
                untrusted(results, tainted=self._tainted),
            )
        from boardcluster.report.export.runs import power_frame, run_frame  # noqa: PLC0415

        if table is _What.RUNS:
            return run_frame(results, campaigns)
        if table is _What.POWER:
            if not any(row.measurement and row.measurement.energy for row in results):
                raise EmptySelectionError(
                    "no power was measured or modelled in these runs",
                    hint="see docs/how-to/measure-energy.md",
                )
            return power_frame(results, campaigns)
        return self._samples(results, campaigns)

    def _results(self) -> tuple[Result, ...]:
        results = self._store.results(self._campaign, all_attempts=True)
        if not results:
            raise EmptySelectionError(
                "there are no runs to export",
                hint="run something first: `boardcluster run wordcount`",
            )
        return results

    def _campaigns(self) -> dict[str, Campaign]:
        return {row.id: row for row in self._store.campaigns()}

    def _probes(self) -> Frame:
        from boardcluster.report.export.samples import probe_frame  # noqa: PLC0415

        runs = self._store.probe_runs()
        if not runs:
            raise EmptySelectionError(
                "there are no probes to export", hint="run some first: `boardcluster probe`"
            )
        return probe_frame(runs)

    def _samples(self, results: Sequence[Result], campaigns: Mapping[str, Campaign]) -> Frame:
        from boardcluster.report.export.samples import sample_frame  # noqa: PLC0415

        streamed = self._with_samples(results)
        first = next(streamed, None)
        if first is None:
            self.say_damaged()
            raise EmptySelectionError(
                "no run has samples that can be read",
                hint="runs from before there was telemetry have none",
            )

        def all_of_them() -> Iterator[tuple[Result, Telemetry]]:
            yield first
            yield from streamed

        return sample_frame(all_of_them(), campaigns)

    def _with_samples(self, results: Sequence[Result]) -> Iterator[tuple[Result, Telemetry]]:
        """Yield the runs that have samples, one at a time; damaged ones are noted."""
        for done, result in enumerate(results, start=1):
            telemetry = None
            if result.attempt is not None:
                try:
                    telemetry = self._store.telemetry(result.attempt)
                except StoreError as error:
                    self._damaged.append(error.message)
            if telemetry is not None:
                yield result, telemetry
            self._reporter.progress("samples of runs", done, len(results))

    def top500(self) -> tuple[str, ...]:
        """Return the lines.

        Raises:
            EmptySelectionError: no run of HPL counts.
        """
        from boardcluster.report.export.top500 import top500_lines  # noqa: PLC0415

        lines = top500_lines(summarise(self._latest(), tainted=self._tainted))
        if not lines:
            raise EmptySelectionError(
                "no run of HPL counts",
                hint="run it: `boardcluster run hpl`; tainted ones count with --tainted",
            )
        return lines

    def _latest(self) -> tuple[Result, ...]:
        return self._store.results(self._campaign)

    def latex(self) -> Mapping[str, Table]:
        """Return the tables that belong into a paper, by name.

        Raises:
            EmptySelectionError: there are none.
        """
        from boardcluster.report.model import report_of  # noqa: PLC0415
        from boardcluster.report.render import named_tables  # noqa: PLC0415
        from boardcluster.report.source import Source  # noqa: PLC0415

        results = self._results()
        campaigns = self._campaigns()
        chosen = [row for row in campaigns.values() if self._campaign in {None, row.id}]
        source = Source.of(results, chosen, tainted=self._tainted)
        report = report_of(source, cluster=None, probes=self._store.probe_runs())
        return named_tables(report)


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
    say(f"{count} rows: {path}")


def _write_lines(lines: Sequence[str], path: Path | None, *, force: bool) -> None:
    from boardcluster.report.export.writers import whole_file  # noqa: PLC0415

    if path is None:
        for line in lines:
            say(line)
        return
    with whole_file(path, force=force) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    say(f"{len(lines)} lines: {path}")


def _write_tables(tables: Mapping[str, Table], folder: Path | None, *, force: bool) -> None:
    from boardcluster.report.latex import write_latex  # noqa: PLC0415

    if folder is None:
        raise UsageError("latex needs a folder to write to", hint="name it with --output")
    for path in write_latex(tables, folder, force=force):
        say(f"table: {path}")
