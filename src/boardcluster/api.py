"""The public Python API; ``import boardcluster as bc`` offers what is in ``__all__``.

Everything here is what the command line calls, too. Errors are ``bc.BoardclusterError`` and its
kinds in ``boardcluster.errors``; their ``hint`` says what to do next.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from boardcluster.analysis.result_sets import ResultSetComparison
from boardcluster.analysis.watched import WatchStanding
from boardcluster.bundle.facts import Authorship
from boardcluster.bundle.remake import RecomputedReport, recompute_report
from boardcluster.bundle.take import ImportedBundle, records_only, take_bundle
from boardcluster.bundle.write import WrittenBundle, write_bundle
from boardcluster.campaign.begin import CampaignRequest, Design, Start
from boardcluster.campaign.bisect import (
    BisectOrder,
    BisectOutcome,
    BisectPlan,
    plan_bisect,
    run_bisect,
)
from boardcluster.campaign.follow import Follower, LineProgress
from boardcluster.campaign.life import CampaignOutcome, Preview, run_campaign
from boardcluster.campaign.purchase import (
    PurchaseRequest,
    plan_for_request,
    read_limits,
    read_planned_size,
)
from boardcluster.campaign.request import campaign_file, names_a_file, refuse_given, single_workload
from boardcluster.campaign.tune import TuneOutcome, run_tuning
from boardcluster.campaign.tune_order import TuneOrder
from boardcluster.campaign.upkeep import bring_up, take_down
from boardcluster.campaign.watch_rounds import (
    WatchOrder,
    check_watch,
    notify_command,
    notify_once,
    notify_program,
    preview_round,
    run_round,
    watch_name,
    watch_timer,
)
from boardcluster.cluster.folders import (
    again,
    cache_folder,
    home_folder,
    require_cluster,
    require_home,
    sibling_homes,
)
from boardcluster.errors import BoardclusterError, EmptySelectionError, UsageError
from boardcluster.fetch.cache import refusals_told
from boardcluster.plan.candidates import WORKERS_MOST
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.plan.purchase import PurchasePlan
from boardcluster.queries.names import TableName
from boardcluster.queries.plan_model import learn_for_plan
from boardcluster.queries.predictions import AskedRun, choose_engine, predict_run, require_size
from boardcluster.queries.report import write_home_report
from boardcluster.queries.result_sets import compare_named
from boardcluster.queries.runs import find_run
from boardcluster.queries.tables import StoredTables
from boardcluster.queries.watches import watch_standing
from boardcluster.records import Engine
from boardcluster.report import Written
from boardcluster.report.compared import Compared, comparison_frame, describe, render_comparison
from boardcluster.report.export.frames import Field, Frame
from boardcluster.report.export.samples import sample_frame
from boardcluster.report.export.writers import (
    Format,
    arrow_table,
    pandas_frame,
    whole_file,
    write_frame,
)
from boardcluster.services.containers import copies_of, copies_of_profile, fit_of
from boardcluster.services.declaration import read_spec
from boardcluster.services.operation import spec_as_run
from boardcluster.services.settings import settings_of_jobs
from boardcluster.services.status import Status, status
from boardcluster.services.user_timer import TimerState, remove_timer, write_timer
from boardcluster.spec.campaign import REPETITIONS_MAX, SEED_MAX, STARTS_MAX
from boardcluster.spec.checks import REPLICATION_MAX, TIMEOUT_SECONDS_MAX, check_precision
from boardcluster.store import Store
from boardcluster.tuning.record import Objective
from boardcluster.units import parse_duration, parse_size
from boardcluster.workloads import changes_work, load_workload, parameter_defaults
from boardcluster.workloads.base import InputKind, check_parameters

__all__ = [
    "BisectOutcome",
    "BoardclusterError",
    "CampaignOutcome",
    "Cluster",
    "Comparison",
    "ImportedBundle",
    "PurchasePlan",
    "RecomputedReport",
    "Results",
    "RuntimePrediction",
    "Status",
    "Table",
    "TuneOutcome",
    "WatchRound",
    "WatchStanding",
    "Written",
    "WrittenBundle",
    "compare",
    "export_bundle",
    "import_bundle",
    "open_cluster",
    "plan",
    "predict",
    "recompute",
    "report",
    "require_ending",
    "results",
]

AnyPath: TypeAlias = "str | os.PathLike[str]"
_Number = TypeVar("_Number", int, float)
_UNNAMED = "a file of the cluster's folder or of the cache"


def open_cluster(
    name: str = "default",
    *,
    home: AnyPath | None = None,
    cache: AnyPath | None = None,
    tell: Callable[[str], object] | None = None,
) -> Cluster:
    """Return a cluster; nothing is started, read or written.

    Args:
        name: its name, as ``--cluster``.
        home: its state folder, as ``--home``; None for the one of its name.
        cache: folder of fetched engines and data, as ``--cache``; None for the user's own.
        tell: takes one line for each thing that happens, such as ``print``; None for silence.

    Raises:
        UsageError: the name is none, or Hadoop and Spark cannot work in the folder.
    """
    return Cluster(
        home_folder(_path(home), name),
        cache_folder(_path(cache)),
        follow=LineProgress(tell),
        options=again(_path(home), name),
    )


class Cluster:
    """A cluster of nodes of any kind; ``open`` returns one.

    Attributes:
        home: its state folder.
        cache: folder of fetched engines and data.
    """

    def __init__(self, home: Path, cache: Path, *, follow: Follower, options: str = "") -> None:
        self.home = home
        self.cache = cache
        self._follow = follow
        self._options = options

    def __repr__(self) -> str:
        return f"Cluster({str(self.home)!r})"

    @refusals_told(unnamed=_UNNAMED)
    def up(self, *, deep: bool = False, leave_safe_mode: bool = False) -> Status:
        """Bring the cluster up; return once all its daemons are healthy.

        A cluster that is up already is left as it is. Boards are installed first; the host keys of
        new ones must have been accepted with ``boardcluster up``.

        Args:
            deep: read every byte of what was copied to boards, not only names and sizes.
            leave_safe_mode: have HDFS leave a safe mode that would never end; files whose blocks no
                DataNode has are lost.

        Raises:
            SpecError: there is no valid ``cluster.toml``; ``boardcluster init`` writes one.
            ClusterError: it does not come up.
        """
        bring_up(
            self.home,
            cache=self.cache,
            follow=self._follow,
            deep=deep,
            leave_safe_mode=leave_safe_mode,
        )
        return self.status()

    @refusals_told(unnamed=_UNNAMED)
    def down(self, *, wipe: bool = False) -> int:
        """End every process of the cluster; return how many were ended.

        Args:
            wipe: whether HDFS, logs and settings are deleted, too. Results are always kept.
        """
        require_home(self.home)
        return take_down(self.home, follow=self._follow, wipe=wipe)

    def status(self) -> Status:
        """Look at the cluster: its phase, every daemon with its memory and web address."""
        return status(self.home, cache=self.cache)

    @refusals_told(unnamed=_UNNAMED)
    def run(
        self,
        what: AnyPath,
        *,
        engine: str | Sequence[str] | None = None,
        size: str | float | None = None,
        text: AnyPath | None = None,
        parameters: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
        repetitions: int | None = None,
        seed: int | None = None,
        starts: int | None = None,
        until: str | None = None,
        at_most: int | None = None,
        timeout_seconds: float | None = None,
        only: str | Sequence[str] = (),
        resume: bool = False,
        retry_failed: bool = False,
        new: bool = False,
    ) -> CampaignOutcome:
        """Run a campaign file, or one workload; verify and store each run.

        A campaign file brings the cluster up in each variant it needs, and leaves it up or down
        as it was found. A workload runs on the cluster as it is up.

        Args:
            what: a campaign file, or the name of a workload.
            engine: for a workload: ``spark``, ``mapreduce``, ``mpi`` or several; None for all.
            size: for a workload: size of its input, ``"256 MB"`` or bytes.
            text: for a workload: a text file of one's own to read instead of real flights.
            parameters: for a workload: values by name, ``{"seed": 2}``.
            settings: for a workload: engine properties of jobs, ``{"spark.executor.cores": 2}``.
            repetitions: for a workload: runs per engine, in each start; None for 3.
            seed: seed of the random order; None for the file's, or another one each time.
            starts: how often the daemons are started, each time for every repetition; None for
                the file's, or 1.
            until: further blocks run, or starts where there are several, until every 95 % interval
                is within so much of its result: ``"3 %"``; None for the file's, or none.
            at_most: with ``until``: most runs of a cell; None for the file's, or 10 x the fewest.
            timeout_seconds: for a workload: longest time of one run; None for 3600 s.
            only: run only trials with ``KEY=VALUE[,VALUE]``, for example ``"workload=grep"``.
            resume: for a file: start its campaign, resume it, or do nothing if it is finished.
            retry_failed: with ``resume``: run failed trials again, too.
            new: for a file: start a new campaign although an earlier one is unfinished.

        Returns:
            The campaign, its trials with their latest attempts, and the names of the runs that
            were made now. A failed run raises nothing: see ``unverified`` of what is returned.

        Raises:
            UsageError: arguments contradict each other, or an unfinished campaign is in the way.
            CapacityError: it cannot run here; with every reason.
            ClusterError: the cluster is not up, or a node or daemon was lost.
        """
        given: dict[str, Any] = {"engine": engine, "size": size, "text": text}
        given |= {"parameters": parameters, "settings": settings, "repetitions": repetitions}
        given |= {"timeout_seconds": timeout_seconds}
        design = _design(seed=seed, starts=starts, until=until, at_most=at_most)
        going = {"resume": resume, "retry_failed": retry_failed, "new": new}
        if names_a_file(os.fspath(what)):
            refuse_given(given, because="with a campaign file; set it in the file", hint=_LEAVE)
            return self._run(_file_request(Path(what), _words(only), design, **going))
        refuse_given(going, because="with a workload, only with a campaign file", hint=_LEAVE)
        return self._run(self._workload_request(os.fspath(what), design, _words(only), **given))

    def _workload_request(
        self,
        name: str,
        design: Design,
        only: tuple[str, ...],
        *,
        engine: str | Sequence[str] | None,
        size: str | float | None,
        text: AnyPath | None,
        parameters: Mapping[str, object] | None,
        settings: Mapping[str, object] | None,
        repetitions: int | None,
        timeout_seconds: float | None,
    ) -> CampaignRequest:
        return single_workload(
            name,
            cache=self.cache,
            progress=self._follow.progress,
            engines=_engines(engine),
            size_bytes=_size_bytes(size),
            text=_path(text),
            parameters={key: str(value) for key, value in (parameters or {}).items()},
            settings=settings_of_jobs(settings or {}),
            repetitions=_at_least_one(repetitions, "repetitions", default=3, most=REPETITIONS_MAX),
            design=design,
            timeout_seconds=_at_least_one(
                timeout_seconds, "timeout_seconds", default=3600.0, most=TIMEOUT_SECONDS_MAX
            ),
            only=only,
        )

    def _run(self, request: CampaignRequest) -> CampaignOutcome:
        self.require()
        return run_campaign(self.home, request, cache=self.cache, follow=self._follow)

    @refusals_told(unnamed=_UNNAMED)
    def tune(
        self,
        what: AnyPath,
        *,
        engine: str | None = None,
        objective: str = "time",
        budget: str | float | None = None,
        size: str | float | None = None,
        text: AnyPath | None = None,
        parameters: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        main: str = "",
        base: str = "",
        pairs: int | None = None,
        seed: int | None = None,
        out: AnyPath | None = None,
        tainted: bool = False,
        resume: bool = False,
        new: bool = False,
    ) -> TuneOutcome:
        """Search engine settings that make a workload or a program take less, and prove it.

        Args:
            what: the name of a workload, or one's own jar or Python file.
            engine: ``spark`` or ``mapreduce``; None for Spark where there is one.
            objective: what to make less of: ``time``, ``energy`` or ``both``, their product.
            budget: how long it may take: ``"1h"`` or seconds; None for the one before, or 1 h.
            size: for a workload: size of its input, ``"256 MB"`` or bytes.
            text: for a workload: a text file of one's own to read instead of real flights.
            parameters: for a workload: values by name, ``{"seed": 2}``.
            arguments: for a program: its arguments; ``{run}`` in one is another name each time.
            main: for a Spark jar: its main class.
            base: the profile to set things on top of; empty for the cluster's.
            pairs: fewest pairs of the proof, at least 5; None for 5.
            seed: seed of all that is drawn; None for another one each time.
            out: the profile to write; None for a file in the state folder.
            tainted: whether pairs that were too disturbed count, too.
            resume: go on with the same, show it if it is finished, or begin.
            new: begin although one of the same is unfinished.

        Returns:
            The history, the comparison of the best with the base, and the profile, which is None
            unless the best was shown to take less.

        Raises:
            UsageError: Optuna is not installed, the budget is too small for one proof, or an
                unfinished tuning of the same is in the way.
            RunError: one run after the other failed.
        """
        self.require()
        if resume and new:
            raise UsageError("resume and new contradict each other", hint="give one of them")
        order = TuneOrder(
            target=os.fspath(what),
            budget_seconds=None if budget is None else _budget_seconds(budget),
            engine=next(iter(_engines(engine)), None),
            objective=_objective(objective),
            size_bytes=_size_bytes(size),
            base=base,
            seed=seed,
            pairs=pairs,
            text=_path(text),
            parameters={key: str(value) for key, value in (parameters or {}).items()},
            arguments=tuple(arguments),
            main=main,
            start=Start.CONTINUE if resume else Start.NEW if new else Start.BEGIN,
            out=_path(out),
            tainted=tainted,
        )
        return run_tuning(self.home, order, cache=self.cache, follow=self._follow, cwd=Path.cwd())

    @refusals_told(unnamed=_UNNAMED)
    def watch_performance(
        self,
        file: AnyPath,
        *,
        baseline: int | None = None,
        new: bool = False,
        tainted: bool = False,
        notify: str = "",
    ) -> WatchRound:
        """Run a small campaign once more, and say which cells take more or less than they did.

        A round that was interrupted goes on first.

        Args:
            file: the campaign file.
            baseline: first rounds that make the limits, at least 5; None for those that it was
                begun with, or 10.
            new: begin another baseline with this round.
            tainted: count disturbed runs, too; chosen when a baseline begins.
            notify: command that is run without a shell, with one sentence as its last argument,
                when a cell leaves its limits or no run of it counts any more; empty for none.

        Returns:
            The round and how every cell stands. A cell out of its limits raises nothing.

        Raises:
            UsageError: the file means something else than the rounds so far.
            CapacityError: it cannot run here; with every reason.
            LockedError: another driver is at work.
        """
        self.require()
        order = WatchOrder(file=Path(file), baseline=baseline, new=new, tainted=tainted)
        command = notify_command(notify)
        outcome = run_round(self.home, order, cache=self.cache, follow=self._follow)
        standing = watch_standing(self.home, outcome.campaign.name)
        failure = notify_once(self.home, standing, command)
        return WatchRound(outcome=outcome, standing=standing, notify_failure=failure)

    def preview_round(
        self,
        file: AnyPath,
        *,
        baseline: int | None = None,
        new: bool = False,
        tainted: bool = False,
    ) -> Preview:
        """Return what ``watch_performance`` would run and need; changes nothing."""
        order = WatchOrder(file=Path(file), baseline=baseline, new=new, tainted=tainted)
        return preview_round(self.home, order, cache=self.cache)

    def watch_standing(self, file: AnyPath) -> WatchStanding:
        """Return how the watch of a campaign file stands; nothing is run.

        Raises:
            EmptySelectionError: no round of it was run yet.
            SpecError: the file is missing or wrong.
        """
        return watch_standing(self.home, watch_name(Path(file)))

    def write_watch_timer(self, file: AnyPath, calendar: str, *, notify: str = "") -> TimerState:
        """Write a systemd timer of the user's own for ``watch_performance``; nothing is enabled.

        Args:
            file: the campaign file.
            calendar: when, as systemd.time(7) says: ``"daily"``.
            notify: as of ``watch_performance``.

        Raises:
            UsageError: the calendar expression is none, or the file means something else than the
                rounds so far.
            SpecError: the campaign file is missing or wrong.
            HostError: the units cannot be written.
        """
        self.require()
        command = notify_program(notify)
        check_watch(self.home, WatchOrder(file=Path(file)))
        return write_timer(watch_timer(self.home, self.cache, Path(file), notify=command), calendar)

    def remove_watch_timer(self, file: AnyPath) -> TimerState:
        """Disable that timer, and delete its units; without one nothing is done."""
        return remove_timer(watch_timer(self.home, self.cache, Path(file)))

    @refusals_told(unnamed=_UNNAMED)
    def bisect(
        self,
        file: AnyPath,
        first: str,
        second: str,
        *,
        tainted: bool = False,
        new: bool = False,
    ) -> BisectOutcome:
        """Find which of the differences between two configurations makes a cell slower or faster.

        What an earlier call measured is taken from the store.

        Args:
            file: the campaign file with the cells to measure.
            first: a profile, the path of one's own, ``"KEY=VALUE,KEY=VALUE"``, ``"cluster"`` for
                what cluster.toml says, or an engine pair.
            second: the other side, likewise.
            tainted: count disturbed runs, too.
            new: measure everything again.

        Raises:
            UsageError: the sides cannot be compared.
            CapacityError: a side cannot run here; with every reason.
        """
        self.require()
        order = BisectOrder(file=Path(file), sides=(first, second), tainted=tainted, new=new)
        return run_bisect(self.home, order, cache=self.cache, follow=self._follow)

    def preview_bisect(self, file: AnyPath, first: str, second: str) -> BisectPlan:
        """Return what ``bisect`` would do and how many runs it may take; changes nothing."""
        return plan_bisect(self.home, BisectOrder(file=Path(file), sides=(first, second)))

    def require(self) -> None:
        """Refuse a cluster that was never declared.

        Raises:
            SpecError: there is no ``cluster.toml``.
        """
        require_cluster(self.home, options=self._options)

    def results(self, *, campaign: str | None = None) -> Results:
        """Return the results of this cluster; see the function ``results``."""
        return Results(self.home, campaign)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRound:
    """One round of a watch."""

    outcome: CampaignOutcome
    """The round as a campaign."""
    standing: WatchStanding
    """How every cell stands after it."""
    notify_failure: str
    """Why the notice could not be sent; empty if it was, or if none was due."""


class Table:
    """A table of named columns with units, which is read again each time.

    ``fields`` is its schema: each column's name, kind and meaning. What is unknown is None.
    """

    def __init__(self, frame: Callable[[], Frame]) -> None:
        self._frame = frame

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns: name, kind and meaning of each."""
        return self._frame().fields

    def rows(self) -> list[dict[str, Any]]:
        """Return each row as values by column; objects are dictionaries and lists."""
        frame = self._frame()
        names = [field.name for field in frame.fields]
        return [dict(zip(names, row, strict=True)) for row in frame.rows]

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; objects are JSON text, as in Parquet files.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return arrow_table(self._frame())

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``; whole numbers and truth values may be missing.

        Raises:
            UsageError: pandas is not installed.
        """
        return pandas_frame(self._frame())


class Results(Table):
    """What the store of a cluster holds; as a table, one row for each run, whatever its state."""

    def __init__(self, home: Path, campaign: str | None = None) -> None:
        super().__init__(lambda: self._stored(TableName.RUNS))
        self._home = home
        self._campaign = campaign

    def cells(self, *, tainted: bool = False) -> Table:
        """Return one row for each cell: mean, intervals and figures over its runs.

        Args:
            tainted: whether tainted runs count.
        """
        return Table(lambda: self._stored(TableName.CELLS, tainted=tainted))

    def probes(self) -> Table:
        """Return one row for each figure that a probe of a node measured."""
        return Table(lambda: self._stored(TableName.PROBES))

    def power(self) -> Table:
        """Return one row for each power meter of each run."""
        return Table(lambda: self._stored(TableName.POWER))

    def telemetry(self, run: str | None = None) -> Table:
        """Return every sample of every node during a run, one row for each value.

        Args:
            run: ``TRIAL/NUMBER``, as ``runs`` of what ``Cluster.run`` returns; ``TRIAL`` for its
                latest attempt; None for the latest run that has samples, of the campaign if one
                was given.

        Raises:
            EmptySelectionError: there is no such run or campaign, or it has no samples.
        """
        require_home(self._home)
        with Store.open(self._home, read_only=True) as store:
            result, attempt, telemetry = find_run(store, run, campaign_id=self._campaign)
            campaigns = {row.id: row for row in store.campaigns()}
        if telemetry is None:
            raise EmptySelectionError(
                f"{attempt.name} has no samples",
                hint="leave the name out to get the latest run that has samples",
            )
        return Table(lambda: sample_frame([(result, telemetry)], campaigns))

    def _stored(self, name: TableName, *, tainted: bool = False) -> Frame:
        require_home(self._home)
        with Store.open(self._home, read_only=True) as store:
            return StoredTables(store, self._campaign, tainted=tainted).frame(name)


def results(
    name: str = "default", *, home: AnyPath | None = None, campaign: str | None = None
) -> Results:
    """Return the results of a cluster; the cluster need not be up.

    Args:
        name: the cluster's name.
        home: its state folder; None for the one of its name.
        campaign: only this campaign, by its id.
    """
    return Results(home_folder(_path(home), name, only_read=True), campaign)


def predict(
    workload: str,
    *,
    engine: str | None = None,
    size: str | int | None = None,
    workers: int | None = None,
    board: str | None = None,
    medium: str | None = None,
    replication: int | None = None,
    parameters: Mapping[str, str] | None = None,
    name: str = "default",
    home: AnyPath | None = None,
    mixed: bool = False,
    tainted: bool = False,
) -> RuntimePrediction:
    """Predict how long a run takes, its intermediate bytes and energy, and how sure that is.

    What is left out is taken from the cluster, whose runs and probes are learned from where it has
    some. Of an answer that is not known, ``unknown`` says why and ``run_next`` what would help.

    Args:
        workload: its name.
        engine: its engine; may be left out where there is one only.
        size: input size, such as ``"4GB"``.
        workers: number of workers.
        board: a board of the catalog, or the path of a TOML file.
        medium: a medium, likewise.
        replication: copies of each HDFS block; None for what the profile keeps.
        parameters: values of the workload's parameters, by name.
        name: the cluster's name.
        home: its state folder; None for the one of its name.
        mixed: learn also from runs of other engine versions, security modes and settings.
        tainted: learn also from tainted runs.

    Raises:
        UsageError: something is missing, or there is no such workload, board or medium.
        SpecError: cluster.toml, or a file of a board or medium, is wrong.
        StoreError: the store is damaged.
    """
    found = load_workload(workload)
    defaults = parameter_defaults(workload)
    own = {
        key.removeprefix(f"{workload}."): str(value) for key, value in (parameters or {}).items()
    }
    check_parameters(found, own)
    given = {f"{workload}.{key}": value for key, value in own.items()}
    folder = home_folder(_path(home), name, only_read=True)
    asked = AskedRun(
        workload=workload,
        engine=choose_engine(workload, next(iter(_engines(engine or None)), None), found.engines),
        size_bytes=require_size(
            workload, size, takes_input=found.input_kind is not InputKind.NOTHING
        ),
        workers=_in_range(workers, "workers", 1, WORKERS_MOST),
        workers_least=found.workers_least,
        board=board,
        medium=medium,
        replication=_in_range(replication, "replication", 1, REPLICATION_MAX),
        parameters=given,
    )
    declared = folder / "cluster.toml"
    spec = read_spec(declared) if declared.exists() else None
    copies = partial(copies_of, declared=spec)
    answer = predict_run(
        asked, folder, spec, defaults=defaults, copies_of=copies, mixed=mixed, tainted=tainted
    )
    return replace(answer, fit=fit_of(answer, spec))


def report(
    name: str = "default",
    *,
    home: AnyPath | None = None,
    out: AnyPath | None = None,
    campaign: str | None = None,
    tainted: bool = False,
    figures: bool = False,
    follow: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Write the report of a cluster's results: one HTML file that opens offline, and Markdown.

    Args:
        name: the cluster's name.
        home: its state folder; None for the one of its name.
        out: folder to write to; None for ``report`` in the state folder.
        campaign: only this campaign, by its id.
        tainted: whether tainted runs count, labelled as such.
        figures: whether each figure is also written as a file for print.
        follow: told what is done, how much of it, and how much there is; None for silence.

    Returns:
        The files.

    Raises:
        ClusterError: there is no such cluster.
        EmptySelectionError: there is no such campaign.
    """
    folder = home_folder(_path(home), name, only_read=True)
    require_home(folder)
    return write_home_report(
        folder,
        _path(out) or folder / "report",
        cluster=spec_as_run(folder),
        campaign=campaign,
        tainted=tainted,
        figures=figures,
        changes_work=changes_work,
        follow=follow,
    )


class Comparison(Table):
    """Two sides compared; as a table, one row for each quantity they share.

    Attributes:
        sides: the numbers.
    """

    def __init__(self, sides: ResultSetComparison) -> None:
        super().__init__(lambda: comparison_frame(sides))
        self.sides = sides

    @property
    def words(self) -> Compared:
        """The comparison in words: headline, tables, differences between machines, notes."""
        return describe(self.sides)

    def write(self, path: AnyPath) -> None:
        """Write it to a file, which is replaced if it is there.

        Args:
            path: a file that ends with ``.html``, ``.md`` or ``.csv``.

        Raises:
            UsageError: it has another ending.
        """
        file = Path(path)
        require_ending(file)
        if file.suffix == ".csv":
            write_frame(self._frame(), file, to=Format.CSV, force=True)
            return
        text = render_comparison(self.words, markdown=file.suffix == ".md")
        with whole_file(file, force=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="replace")


_LEAVE = "leave it out"
_ENDINGS = (".html", ".md", ".csv")


def require_ending(file: Path) -> None:
    """Refuse a file that a comparison cannot be written to.

    Raises:
        UsageError: names the endings there are.
    """
    if file.suffix not in _ENDINGS:
        raise UsageError(
            f"{file} does not end in one of {', '.join(_ENDINGS)}",
            hint="choose one of these endings",
        )


def compare(
    first: str,
    second: str,
    *,
    name: str = "default",
    home: AnyPath | None = None,
    tainted: bool = False,
) -> Comparison:
    """Compare campaigns, profiles, clusters, engines or published tables, two at a time.

    A cell of the first side is compared with the cell of the second that differs only in what
    distinguishes the sides.

    Args:
        first: a campaign by id or name, ``profile:NAME``, ``engine:NAME``, ``setting:KEY=VALUE``,
            ``cluster:NAME``, ``cluster:NAME/CAMPAIGN``, ``bundle:FILE`` or
            ``published:TABLE?column=value``.
        second: the other side, likewise.
        name: the cluster whose runs are meant where a side names no other.
        home: its state folder; None for the one of its name.
        tainted: whether tainted runs count, labelled as such.

    Raises:
        UsageError: a side cannot be read, or there is no such thing; the nearest is offered.
        ClusterError: there is no such cluster.
        EmptySelectionError: a side has no run that counts, or they have no cell in common.
        CapacityError: the disk cannot hold the records of a bundle.
    """
    with tempfile.TemporaryDirectory(prefix="boardcluster-compare-") as folder:
        return Comparison(
            compare_named(
                first,
                second,
                home_folder(_path(home), name, only_read=True),
                tainted=tainted,
                homes=sibling_homes(_path(home)),
                bundles=partial(_bundle_home, Path(folder)),
                defaults=_parameter_defaults,
            )
        )


def _bundle_home(folder: Path, bundle: Path) -> Path:
    """Return a home with the records of a bundle; each side has its own."""
    home = Path(tempfile.mkdtemp(dir=folder))
    records_only(bundle, home)
    return home


def export_bundle(
    path: AnyPath,
    name: str = "default",
    *,
    home: AnyPath | None = None,
    cache: AnyPath | None = None,
    campaign: str | None = None,
    tainted: bool = False,
    title: str = "",
    authors: Sequence[str] = (),
    licence: str = "",
    force: bool = False,
    follow: Callable[[str, int, int], None] | None = None,
) -> WrittenBundle:
    """Write what others need to check results into one file: an RO-Crate.

    Secrets and the names of people and machines are replaced. Nothing is started.

    Args:
        path: the file to write.
        name: the cluster's name.
        home: its state folder; None for the one of its name.
        cache: the cache folder, whose path is replaced in logs; None for the user's own.
        campaign: only this campaign, by its id.
        tainted: whether tainted runs count in the report, labelled as such.
        title: its title; empty for one made of the campaigns' names.
        authors: names, each with an ORCID behind it if there is one; none for anonymous ones.
        licence: SPDX identifier of the licence of the data; empty for none.
        force: whether a file that is there already may be replaced.
        follow: told what is done, how much of it, and how much there is; None for silence.

    Raises:
        UsageError: the file is there already, or a package of the extra `bundle` is not installed.
        ClusterError: there is no such cluster, or a run has not ended.
        EmptySelectionError: there is no such campaign, or no run.
        StoreError: the store, or an artefact, cannot be read.
        HostError: the file cannot be written.
    """
    folder = home_folder(_path(home), name, only_read=True)
    require_home(folder)
    return write_bundle(
        folder,
        Path(path),
        cluster=spec_as_run(folder),
        changes_work=changes_work,
        cache=cache_folder(_path(cache)),
        campaign=campaign,
        tainted=tainted,
        by=Authorship(title=title, authors=tuple(authors), licence=licence),
        force=force,
        follow=follow,
    )


def import_bundle(
    bundle: AnyPath,
    name: str = "",
    *,
    home: AnyPath | None = None,
    sha256: str = "",
    follow: Callable[[str, int, int], None] | None = None,
) -> ImportedBundle:
    """Put the results of a bundle into a store of its own; a second time does nothing.

    Args:
        bundle: the file.
        name: name of the cluster that the store is to have; empty for that of the file.
        home: its state folder; None for the one of its name.
        sha256: what the SHA-256 of its manifest must be; empty for any.
        follow: told what is done, how much of it, and how much there is; None for silence.

    Raises:
        InputError: it is no bundle, of a newer version, was changed, or is another one.
        UsageError: the folder holds something else.
        CapacityError: the disk cannot hold it.
        HostError: the folder cannot be written.
    """
    file = Path(bundle)
    folder = home_folder(_path(home), name or file.stem, only_read=True)
    return take_bundle(file, folder, sha256=sha256, follow=follow)


def recompute(bundle: AnyPath) -> RecomputedReport:
    """Compute every number of a bundle's report again from its records, and compare.

    Args:
        bundle: the file, or the folder that it was unpacked into.

    Raises:
        InputError: it is no bundle, of a newer version, or was changed.
        CapacityError: the disk cannot hold what is unpacked.
        StoreError: a record in it cannot be used.
    """
    return recompute_report(Path(bundle), changes_work=changes_work)


def _parameter_defaults(workload: str) -> dict[str, str]:
    """What parameters are where a trial does not set them; papers name them one by one."""
    parameters = load_workload(workload).parameters
    return {f"{workload}.{key}": parameter.default for key, parameter in parameters.items()}


def _path(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)


def _file_request(
    path: Path,
    only: tuple[str, ...],
    design: Design,
    *,
    resume: bool,
    new: bool,
    retry_failed: bool,
) -> CampaignRequest:
    if resume and new:
        raise UsageError("resume and new contradict each other", hint="give one of them")
    if retry_failed and not resume:
        raise UsageError("retry_failed needs resume=True", hint="give both")
    start = Start.CONTINUE if resume else Start.NEW if new else Start.BEGIN
    return campaign_file(path, start=start, only=only, retry_failed=retry_failed, design=design)


def plan(
    workload: str,
    *,
    size: str | int | None = None,
    engine: str | None = None,
    deadline: str | None = None,
    budget: float | None = None,
    watts: float | None = None,
    joules: float | None = None,
    boards: Sequence[str] = (),
    media: Sequence[str] = (),
    networks: Sequence[str] = (),
    profiles: Sequence[str] = (),
    prices: Mapping[str, float] | None = None,
    have: Sequence[str] = (),
    workers_most: int = WORKERS_MOST,
    replication: int | None = None,
    name: str = "default",
    home: AnyPath | None = None,
) -> PurchasePlan:
    """Say what to buy for a run. Nothing is started.

    Args:
        workload: the name of a workload of Hadoop or Spark.
        size: size of its input, ``"100 GB"`` or bytes; None for pi.
        engine: ``spark`` or ``mapreduce``; None for both.
        deadline: longest time of a run, ``"3h"``.
        budget: highest price of what is bought, in US dollars.
        watts: highest mean power of the workers during a run.
        joules: highest energy of the workers in a run.
        boards: boards to choose from, names of the catalog or files; none for all with a price.
        media: media, likewise.
        networks: switches, likewise.
        profiles: engine configurations to try; none for ``default``.
        prices: of one piece, by name or as ``board``, ``medium``, ``supply``, ``switch``.
        have: what is there already, ``"4 x BOARD, MEDIUM"`` or a ``cluster.toml``.
        workers_most: most workers to buy.
        replication: copies of each block of HDFS; None for what each profile keeps.
        name: a cluster whose own runs are learned from, too.
        home: its state folder; None for the one of its name.

    Returns:
        The choice, the front of time, energy and price, what is beside the choice and why it falls
        out, and what would change the answer.

    Raises:
        UsageError: a name does not exist, or the limits exclude everything; says which binds.
        PredictionUnknownError: the model knows the time of none.
        CapacityError: no cluster holds the data or has the memory.
    """
    _in_range(workers_most, "workers_most", 1, WORKERS_MOST)
    request = PurchaseRequest(
        workload=workload,
        size_bytes=read_planned_size(workload, size),
        engine=next(iter(_engines(engine)), None),
        limits=read_limits(deadline=deadline, budget=budget, watts=watts, joules=joules),
        boards=boards,
        media=media,
        networks=networks,
        profiles=profiles,
        prices=[f"{key}={value}" for key, value in (prices or {}).items()],
        there=have,
        workers_most=workers_most,
        replication=_in_range(replication, "replication", 1, REPLICATION_MAX),
    )
    folder = home_folder(_path(home), name, only_read=True)
    defaults = parameter_defaults(workload)
    return plan_for_request(
        request, partial(learn_for_plan, folder, defaults=defaults, copies_of=copies_of_profile)
    )


def _budget_seconds(given: str | float) -> float:
    try:
        return parse_duration(given)
    except ValueError as error:
        raise UsageError(f"budget: {error}", hint='for example budget="1h"') from error


def _objective(given: str) -> Objective:
    try:
        return Objective(given)
    except ValueError as error:
        raise UsageError(
            f"there is no objective {given!r}", hint=f"choose one of {', '.join(Objective)}"
        ) from error


def _words(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _engines(given: str | Sequence[str] | None) -> tuple[Engine, ...]:
    names = _words(given)
    known = [engine.value for engine in Engine]
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no engine {name!r}", hint=f"choose one of {', '.join(known)}"
            )
    return tuple(Engine(name) for name in names)


def _size_bytes(given: str | float | None) -> int | None:
    if given is None:
        return None
    if isinstance(given, float):  # such as 1e9
        if not given.is_integer():
            raise UsageError(f"size: {given} is no whole number", hint='for example size="256 MB"')
        given = int(given)
    try:
        size_bytes = parse_size(given) if isinstance(given, str) else given
    except ValueError as error:
        raise UsageError(f"size: {error}", hint='for example size="256 MB"') from error
    return _at_least_one(size_bytes, "size", default=1)


def _design(
    *, seed: int | None, starts: int | None, until: str | None, at_most: int | None
) -> Design:
    return Design(
        seed=_in_range(seed, "seed", 0, SEED_MAX),
        starts=_in_range(starts, "starts", 1, STARTS_MAX),
        precision=_precision(until),
        repetitions_max=_in_range(at_most, "at_most", 1, REPETITIONS_MAX),
    )


def _in_range(given: int | None, what: str, least: int, most: int) -> int | None:
    if given is not None and not least <= given <= most:
        raise UsageError(
            f"{what} must be from {least} to {most}, not {given}", hint="give another number"
        )
    return given


def _precision(given: str | None) -> float | None:
    try:
        return None if given is None else check_precision(given)
    except ValueError as error:
        raise UsageError(f"until: {error}", hint='for example until="3 %"') from error


def _at_least_one(
    given: _Number | None, what: str, *, default: _Number, most: float = math.inf
) -> _Number:
    if given is None:
        return default
    if not given >= 1:  # NaN is no number of anything either
        raise UsageError(f"{what} must be at least 1, not {given}", hint="give a larger one")
    if given > most:
        raise UsageError(f"{what} must be at most {most}, not {given}", hint="give a smaller one")
    return given
