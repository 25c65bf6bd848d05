"""``boardcluster experiment``: a campaign on emulated boards, compared with the papers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.analysis.experiments import column_words, tabulate
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import CacheOption, JsonOption, cache_folder
from boardcluster.cli.show_experiment import print_experiment
from boardcluster.cli.show_preflight import print_preflight
from boardcluster.errors import BoardclusterError, RunError
from boardcluster.records import Result
from boardcluster.units import format_count, format_seconds

if TYPE_CHECKING:
    from boardcluster.campaign.experiment import Checked, Stand
    from boardcluster.spec.experiment import ExperimentSpec

__all__ = ["EPILOG", "command"]

_EXAMPLE = "examples/twin/microsd-against-nvme.toml"


EPILOG = (
    f"Examples: boardcluster experiment {_EXAMPLE} --dry-run\n\n"
    f"sudo boardcluster experiment {_EXAMPLE}"
)


def command(
    file: Annotated[Path, typer.Argument(help="An experiment file, as in examples/twin.")],
    home_root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that holds the twins' state folders. Default: the user's data folder.",
            show_default=False,
        ),
    ] = None,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would run and what it needs, without running it."
        ),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the nodes' disks with their data for next time.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign on one or more twins, one by one, and compare the results with the papers'.

    An interrupted experiment continues where it stopped; a finished one shows its results again.
    """
    # Other commands need not wait until all that an experiment is checked with is loaded.
    from boardcluster.campaign import experiment as twins  # noqa: PLC0415
    from boardcluster.spec.experiment import load_experiment  # noqa: PLC0415

    experiment = load_experiment(file)
    if not dry_run:
        twins.end_leftovers(experiment, home_root)
    checked = twins.check_experiment(experiment, home_root, keep=keep)
    if dry_run:
        _show(experiment, checked, as_json=as_json)
        return
    results, broken = _run_all(checked, cache=cache_folder(cache), keep=keep)
    if broken and not results:
        raise broken[0]
    table = tabulate(
        results,
        vary=experiment.vary,
        columns=checked.columns,
        published=checked.published,
    )
    print_experiment(experiment, table, results, as_json=as_json)
    missing = [row for row in table.left_out if row.state in {"failed", "invalid", "pending"}]
    if missing or broken:
        lost = [f"{len(missing)} runs have no verified result"] if missing else []
        raise RunError(
            "; ".join([*lost, *(error.message for error in broken)]),
            hint="see the reasons above; the same command runs what is invalid or pending",
        )


def _run_all(
    checked: Checked, *, cache: Path, keep: bool
) -> tuple[dict[str, tuple[Result, ...]], list[BoardclusterError]]:
    """Run the twins one after the other; return the results by twin, and why others broke off."""
    from boardcluster.campaign import experiment as twins  # noqa: PLC0415

    reporter = Reporter()
    results: dict[str, tuple[Result, ...]] = {}
    broken: list[BoardclusterError] = []
    for place, stand in enumerate(checked.stands):
        rest = _rest(checked.stands[place + 1 :])
        reporter.line(f"twin {stand.name}: {_left_words(stand)}{rest}")
        try:
            results[stand.name] = twins.run_stand(
                stand, checked, cache=cache, follow=reporter, keep=keep
            )
        except BoardclusterError as error:  # a night must not end with its first twin
            if not twins.may_go_on(stand):
                raise
            reporter.line(f"twin {stand.name} is skipped for now: {error.message}")
            broken.append(error)
            with contextlib.suppress(BoardclusterError):  # its store may be what is broken
                if found := twins.verified_so_far(stand, checked):
                    results[stand.name] = found
    return results, broken


# Showing


def _left_words(stand: Stand) -> str:
    if stand.campaign is None:
        return f"{format_count(len(stand.left), 'run')}{_duration_words([stand])}"
    if stand.left:
        done = f"{len(stand.left)} of {len(stand.trials)} runs of {stand.campaign.id} are left"
        return f"{done}{_duration_words([stand])}"
    return f"all runs of {stand.campaign.id} are done"


def _duration_words(stands: Sequence[Stand]) -> str:
    """Say how long what is left of twins takes on this machine, as far as earlier runs tell."""
    seconds = sum(stand.known_seconds for stand in stands)
    unknown = sum(stand.unknown_runs for stand in stands)
    if unknown == sum(len(stand.left) for stand in stands):
        return " of unknown length" if unknown else ""
    more = f" and {format_count(unknown, 'run')} of unknown length" if unknown else ""
    return f", about {format_seconds(seconds)} of this machine{more}"


def _rest(later: Sequence[Stand]) -> str:
    """Say what is left on the twins that come later."""
    count = sum(len(stand.left) for stand in later)
    if not count:
        return ""
    twins = format_count(len(later), "twin")
    return f"; then {format_count(count, 'run')} on {twins}{_duration_words(later)}"


def _show(experiment: ExperimentSpec, checked: Checked, *, as_json: bool) -> None:
    """Show what would run."""
    if as_json:
        rows = [
            {
                "twin": stand.name,
                "home": str(stand.home),
                "campaign": stand.campaign,
                "left": stand.left,
                "outlook": stand.preflight,
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
        if stand.preflight is not None:
            print_preflight(stand.preflight, reporter=None)
    names = ", ".join(column_words(experiment.vary, column) for column in checked.columns)
    say(f"columns: {names}; {len(checked.published)} published numbers to compare with")
