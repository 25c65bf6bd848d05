"""``boardcluster experiment``: a campaign on emulated boards, beside what the papers have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.analysis.experiments import (
    FAR_PERCENT,
    Entry,
    ExperimentTable,
    LeftOut,
    Row,
    column_words,
    tabulate,
)
from boardcluster.analysis.twins import dilation_words, twin_words
from boardcluster.cli.campaigns import print_outlook
from boardcluster.cli.console import Reporter, print_json, print_table, say
from boardcluster.cli.options import CacheOption, JsonOption, cache_folder
from boardcluster.cli.run import Wanted, perform
from boardcluster.cli.twin import place_twin
from boardcluster.cluster.lock import driver_lock
from boardcluster.cluster.state import load_state
from boardcluster.errors import RunError
from boardcluster.records import CampaignSpec, Result
from boardcluster.services import operation
from boardcluster.store import Store
from boardcluster.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from boardcluster.cli.experiments import Checked, Stand
    from boardcluster.spec.experiment import ExperimentSpec

__all__ = ["register"]

_EXAMPLE = "examples/twin/microsd-against-nvme.toml"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="experiment",
        epilog=f"Examples: boardcluster experiment {_EXAMPLE} --dry-run\n\n"
        f"sudo boardcluster experiment {_EXAMPLE}",
    )(_experiment)


def _experiment(
    file: Annotated[Path, typer.Argument(help="An experiment file, as in examples/twin.")],
    home_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the twins' state folders. Default: the user's data folder.",
            show_default=False,
        ),
    ] = None,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run and what it takes; run nothing.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the nodes' disks with their data for next time.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign on one or more twins in turn, and put the results beside the papers'.

    An experiment that was stopped goes on where it was; a finished one shows its results again.
    """
    # Other commands need not wait until all that an experiment is checked with is loaded.
    from boardcluster.cli.experiments import check_experiment  # noqa: PLC0415
    from boardcluster.spec.experiment import load_experiment  # noqa: PLC0415

    experiment = load_experiment(file)
    checked = check_experiment(experiment, home_root)
    if dry_run:
        _show(experiment, checked, as_json=as_json)
        return
    reporter = Reporter()
    results: dict[str, tuple[Result, ...]] = {}
    for stand in checked.stands:
        reporter.line(f"twin {stand.name}: {_left_words(stand)}")
        results[stand.name] = _results_of(
            stand, checked.campaign, cache_folder(cache), reporter, keep=keep
        )
    table = tabulate(
        results,
        vary=experiment.vary,
        columns=checked.columns,
        published=checked.published,
    )
    _print(experiment, table, results, as_json=as_json)
    missing = [row for row in table.left_out if row.state in {"failed", "invalid", "pending"}]
    if missing:
        raise RunError(
            f"{len(missing)} runs have no verified result",
            hint="see the reasons above; the same command runs again what is invalid or pending",
        )


# Running


def _results_of(
    stand: Stand, campaign: CampaignSpec, cache: Path, reporter: Reporter, *, keep: bool
) -> tuple[Result, ...]:
    """Run what is left on a twin; whatever happens, it is down afterwards."""
    if stand.campaign is not None and not stand.left:
        with Store.open(stand.home, read_only=True) as store:
            return store.results(stand.campaign.id)
    wanted = Wanted(
        spec=campaign,
        is_file=True,
        only=(),
        resume=stand.campaign is not None,
        new=stand.campaign is None,
        retry_failed=False,
        confirm=False,
    )
    own_data = keep or (stand.home / "nodes").exists()  # what was there is the user's
    place_twin(stand.spec, stand.file, stand.home)
    try:
        return perform(stand.home, cache, wanted, reporter).results
    finally:
        if not own_data and load_state(stand.home) is None:
            with driver_lock(stand.home, doing="experiment"):
                operation.wipe(stand.home)


# Showing


def _left_words(stand: Stand) -> str:
    if stand.campaign is None:
        return f"{len(stand.left)} runs"
    if stand.left:
        return f"{len(stand.left)} of {len(stand.trials)} runs of {stand.campaign.id} are left"
    return f"all runs of {stand.campaign.id} were made"


def _show(experiment: ExperimentSpec, checked: Checked, *, as_json: bool) -> None:
    """Show what would run."""
    if as_json:
        rows = [
            {
                "twin": stand.name,
                "home": str(stand.home),
                "campaign": stand.campaign,
                "left": stand.left,
                "outlook": stand.outlook,
                "words": stand.words,
            }
            for stand in checked.stands
        ]
        columns = list(checked.columns)
        print_json({"name": experiment.name, "columns": columns, "twins": rows})
        return
    say(f"{experiment.name}: {experiment.question}")
    for stand in checked.stands:
        say(f"twin {stand.name}: {_left_words(stand)}; results in {stand.home}")
        for line in stand.words:
            say(line)
        if stand.outlook is not None:
            print_outlook(stand.outlook, reporter=None)
    names = ", ".join(column_words(experiment.vary, column) for column in checked.columns)
    say(f"columns: {names}; {len(checked.published)} published numbers beside them")


def _print(
    experiment: ExperimentSpec,
    table: ExperimentTable,
    results: Mapping[str, Sequence[Result]],
    *,
    as_json: bool,
) -> None:
    words = twin_words(row for rows in results.values() for row in rows) or "emulated boards"
    if as_json:
        head = {"name": experiment.name, "question": experiment.question, "of": words}
        print_json({**head, "table": table})
        return
    say(f"{experiment.name}: {experiment.question}")
    say(f"{words}; times are those of the boards: divided by the dilation")
    first = column_words(table.vary, table.columns[0])
    columns = [
        *("cell", str(table.vary), "time", "runs", "95 % interval", "dilation", f"against {first}"),
        *("published", "published ratio", "difference"),
    ]
    rows = [
        [_cell_words(row) if place == 0 else "", *_entry_row(table, entry)]
        for row in table.rows
        for place, entry in enumerate(row.entries)
    ]
    if rows:
        print_table("emulated boards", columns, rows)
        say(f'"against {first}" is how many times as fast; ! is more than {FAR_PERCENT:.0f} % away')
    sources = dict.fromkeys(
        entry.published_source
        for row in table.rows
        for entry in row.entries
        if entry.published_source
    )
    for source in sources:
        say(f"published: {source}")
    for row in table.rows:
        for entry in row.entries:
            for warning in entry.warnings:
                say(f"warning: {_cell_words(row)}, {entry.column}: {warning}")
    if table.left_out:
        _print_left_out(table.left_out)


def _cell_words(row: Row) -> str:
    size = format_bytes(row.size_bytes) if row.size_bytes else ""
    workers = f"{row.workers} workers" if row.workers else ""
    parts = (row.twin, f"{row.workload} on {row.engine}", size, workers, row.profile, row.settings)
    return ", ".join(part for part in parts if part)


def _entry_row(table: ExperimentTable, entry: Entry) -> list[str]:
    interval = entry.interval_seconds
    difference = ""
    if entry.difference_percent is not None:
        difference = f"{entry.difference_percent:+.1f} %{' !' if entry.is_far else ''}"
    return [
        column_words(table.vary, entry.column),
        _seconds(entry.mean_seconds),
        str(entry.count),
        f"± {format_seconds(interval.half_width)}" if interval else "",
        dilation_words(*entry.dilations).removeprefix("dilation ") if entry.dilations else "-",
        _ratio(entry.ratio),
        _seconds(entry.published_seconds),
        _ratio(entry.published_ratio),
        difference,
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_seconds(value)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _print_left_out(rows: Sequence[LeftOut]) -> None:
    print_table(
        "in no mean",
        ["twin", "workload", "engine", "workers", "repetition", "state", "reason"],
        [
            [
                row.twin,
                row.trial.workload,
                str(row.trial.engine),
                str(row.trial.workers),
                f"warm-up {row.trial.repetition}"
                if row.trial.warm_up
                else str(row.trial.repetition),
                row.state,
                row.reason,
            ]
            for row in rows
        ],
    )
