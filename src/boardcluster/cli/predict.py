"""``boardcluster predict``: how long a run would take, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from boardcluster.cli.console import print_json
from boardcluster.cli.options import CacheOption, ChosenCluster, JsonOption, cache_folder
from boardcluster.cli.predict_options import HardwareOptions, JobOptions, LearningOptions
from boardcluster.cli.show_predict import (
    print_backtest,
    print_campaign_prediction,
    print_prediction,
    unknown_error,
)
from boardcluster.errors import PredictionUnknownError, UsageError

__all__ = ["EPILOG", "command"]

_Found = TypeVar("_Found")

_OF_FILES = "with a campaign file, which is predicted for the cluster as it is declared"

EPILOG = (
    "Examples: boardcluster predict terasort --engine spark --size 4GB --workers 8"
    " --board rpi-5b-8gb-2400mhz --medium sk-hynix-gold-p31-500gb\n\n"
    "boardcluster predict examples/quick.toml\n\n"
    "boardcluster predict --backtest"
)


def command(
    at: ChosenCluster,
    job: JobOptions,
    hardware: HardwareOptions,
    learning: LearningOptions,
    target: Annotated[
        str, typer.Argument(metavar="[WORKLOAD|FILE]", help="A workload, or a campaign file.")
    ] = "",
    backtest: Annotated[
        bool,
        typer.Option(
            "--backtest", help="Show how good predictions are, for runs that were held out."
        ),
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict how long a run takes, its intermediate bytes and energy, and how sure that is.

    It learns from your own runs and probes, and from the published tables. If it does not know, it
    says so, names the run that would help, and ends with exit code 11.
    """
    from boardcluster.cli import asked_run  # noqa: PLC0415  slow to load

    home = at.folder(only_read=True)
    if backtest:
        if target:
            raise UsageError("--backtest takes no workload", hint="leave one of them out")
        asked_run.refuse_options(job, hardware, learning, because="with --backtest")
        _show(asked_run.backtests(home), print_backtest, as_json=as_json)
    elif not target:
        raise UsageError(
            "predict needs a workload or a campaign file",
            hint="for example `boardcluster predict terasort --engine spark --size 4GB`",
        )
    elif target.endswith(".toml"):
        asked_run.refuse_options(job, hardware, learning, because=_OF_FILES)
        found = asked_run.campaign(home, Path(target), cache=cache_folder(cache))
        _show(found, print_campaign_prediction, as_json=as_json)
        if found.unknown and not found.known_runs:
            raise PredictionUnknownError(
                "it is not known how long any of its runs takes",
                hint="see the reasons above",
            )
    else:
        answer = asked_run.one(home, target, job, hardware, learning)
        _show(answer, print_prediction, as_json=as_json)
        if not answer.is_known:
            raise unknown_error(answer)


def _show(found: _Found, print_it: Callable[[_Found], object], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_it(found)
