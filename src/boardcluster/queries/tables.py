"""The tables that other programs read, from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from boardcluster.analysis.cells import summarise, untrusted
from boardcluster.errors import EmptySelectionError, StoreError
from boardcluster.queries.names import TableName
from boardcluster.queries.searches import without_searches
from boardcluster.records import Campaign, Result, Telemetry
from boardcluster.report.evidence import Evidence, work_parameters_of
from boardcluster.report.export.cells import cell_frame
from boardcluster.report.export.frames import Frame
from boardcluster.report.export.runs import power_frame, run_frame
from boardcluster.report.export.samples import probe_frame, sample_frame
from boardcluster.report.export.top500 import top500_lines
from boardcluster.report.model import report_of
from boardcluster.report.render import named_tables
from boardcluster.report.source import Source
from boardcluster.report.tables import ReportTable
from boardcluster.store import Store

__all__ = ["StoredTables"]


class StoredTables:
    """The tables of one store.

    Args:
        store: the store.
        campaign: only this campaign, by its id; None for all.
        tainted: whether tainted runs count in cells, lines and LaTeX tables.
        follow: told how many runs' samples were read.
    """

    def __init__(
        self,
        store: Store,
        campaign: str | None = None,
        *,
        tainted: bool = False,
        follow: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._store = store
        self._campaign = campaign
        self._follow = follow
        self._tainted = tainted
        self.damaged: list[str] = []
        """Artefacts that could not be read; they cost only themselves."""

    def frame(self, table: TableName) -> Frame:
        """Return one table.

        Raises:
            EmptySelectionError: it would be empty.
        """
        if table is TableName.PROBES:
            return self._probes()
        results, campaigns = self._results(), self._campaigns()
        if table is TableName.CELLS:
            results = self._counting(results)
            return cell_frame(
                summarise(results, tainted=self._tainted),
                untrusted(results, tainted=self._tainted),
            )
        if table is TableName.RUNS:
            return run_frame(results, campaigns)
        if table is TableName.POWER:
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

    def _counting(self, results: Sequence[Result]) -> tuple[Result, ...]:
        return without_searches(results, self._store.home, asked=self._campaign)

    def _campaigns(self) -> dict[str, Campaign]:
        return {row.id: row for row in self._store.campaigns()}

    def _probes(self) -> Frame:
        runs = self._store.probe_runs()
        if not runs:
            raise EmptySelectionError(
                "there are no probes to export", hint="run some first: `boardcluster probe`"
            )
        return probe_frame(runs)

    def _samples(self, results: Sequence[Result], campaigns: Mapping[str, Campaign]) -> Frame:
        streamed = self._with_samples(results)
        first = next(streamed, None)
        if first is None:
            raise EmptySelectionError(
                "\n".join(["no run has samples that can be read", *self.damaged]),
                hint="runs that were recorded before telemetry existed have no samples",
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
                    self.damaged.append(error.message)
            if telemetry is not None:
                yield result, telemetry
            if self._follow is not None:
                self._follow("samples of runs", done, len(results))

    def top500(self) -> tuple[str, ...]:
        """Return the lines.

        Raises:
            EmptySelectionError: no run of HPL counts.
        """
        counting = self._counting(self._results())
        lines = top500_lines(summarise(counting, tainted=self._tainted))
        if not lines:
            raise EmptySelectionError(
                "no run of HPL counts",
                hint="run it: `boardcluster run hpl`; use --tainted to include tainted runs",
            )
        return lines

    def latex(self, *, changes_work: Callable[[str], bool]) -> Mapping[str, ReportTable]:
        """Return the tables that belong into a paper, by name.

        Args:
            changes_work: whether another value of ``workload.parameter`` is other work.

        Raises:
            EmptySelectionError: there are none.
        """
        results = self._counting(self._results())
        campaigns = self._campaigns()
        chosen = [row for row in campaigns.values() if self._campaign in {None, row.id}]
        source = Source.of(results, chosen, tainted=self._tainted)
        evidence = Evidence(work_parameters=work_parameters_of(results, changes_work))
        report = report_of(source, cluster=None, evidence=evidence, probes=self._store.probe_runs())
        return named_tables(report)
