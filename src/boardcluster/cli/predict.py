"""``boardcluster predict``: how long a run would take, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import print_json
from boardcluster.cli.options import (
    CacheOption,
    ChosenCluster,
    JsonOption,
    SettingOption,
    cache_folder,
    parse_size_option,
)
from boardcluster.cli.show_predict import (
    print_backtest,
    print_campaign_prediction,
    print_prediction,
    unknown_error,
)
from boardcluster.errors import UsageError
from boardcluster.records import Engine

__all__ = ["EPILOG", "command"]

EPILOG = (
    "Examples: boardcluster predict terasort --engine spark --size 4GB --workers 8"
    " --board rpi-5b-8gb-2400mhz --medium sk-hynix-gold-p31-500gb\n\n"
    "boardcluster predict examples/quick.toml\n\n"
    "boardcluster predict --backtest"
)


def command(
    at: ChosenCluster,
    target: Annotated[
        str, typer.Argument(metavar="[WORKLOAD|FILE]", help="A workload, or a campaign file.")
    ] = "",
    engine: Annotated[
        Engine | None, typer.Option(help="The engine. Default: the workload's only one.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="Input size with its unit, e.g. 4GB.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Workers. Default: the cluster's.")
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(help="A board of the catalog, or a TOML file. Default: the cluster's."),
    ] = None,
    medium: Annotated[
        str | None,
        typer.Option(help="A medium of the catalog, or a TOML file. Default: the cluster's."),
    ] = None,
    replication: Annotated[
        int | None, typer.Option(min=1, max=512, help="Copies of each block. Default: 3.")
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="Rate of a worker's link. Default: the cluster's, or 1Gbps.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Learn from own runs with this profile.", show_default=False)
    ] = "",
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the workload, NAME=VALUE; repeat for several."),
    ] = None,
    setting: SettingOption = None,
    program: Annotated[
        list[str] | None,
        typer.Option(help="Of `submit`: your program and its arguments; repeat for each."),
    ] = None,
    mixed: Annotated[
        bool,
        typer.Option("--mixed", help="Learn also from other versions, security modes, settings."),
    ] = False,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Show how good predictions are, by holding out runs.")
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict how long a run takes, its intermediate bytes and energy, and how sure that is.

    It learns from your own runs and probes, and from the published tables. What it does not know it
    says, with the run that would help, and ends with exit code 11.
    """
    from boardcluster.cli import asked_run  # noqa: PLC0415  slow to load

    home = at.folder(only_read=True)
    if backtest:
        if target:
            raise UsageError("--backtest takes no workload", hint="leave one of them out")
        done = asked_run.backtests(home)
        if as_json:
            print_json(done)
        else:
            print_backtest(done)
        return
    if not target:
        raise UsageError(
            "predict needs a workload or a campaign file",
            hint="for example `boardcluster predict terasort --engine spark --size 4GB`",
        )
    if target.endswith(".toml"):
        found = asked_run.campaign(home, Path(target), cache=cache_folder(cache))
        if as_json:
            print_json(found)
        else:
            print_campaign_prediction(found)
        return
    answer = asked_run.one(
        home,
        workload=target,
        engine=engine,
        size_bytes=parse_size_option(asked_run.with_unit(size)),
        workers=workers,
        board=board,
        medium=medium,
        replication=replication,
        link=link,
        profile=profile,
        parameters=parameters or (),
        setting=setting or (),
        program=tuple(program or ()),
        mixed=mixed,
    )
    if as_json:
        print_json(answer)
    else:
        print_prediction(answer)
    if not answer.is_known:
        raise unknown_error(answer)
