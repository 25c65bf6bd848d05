"""The options of ``predict``: the run, its hardware, and what is learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from boardcluster.cli.options import SettingOption
from boardcluster.records import Engine
from boardcluster.spec.checks import REPLICATION_MAX

__all__ = ["HardwareOptions", "JobOptions", "LearningOptions"]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What runs."""

    engine: Annotated[
        Engine | None, typer.Option(help="The engine. Default: the workload's only one.")
    ] = None
    size: Annotated[str | None, typer.Option(help="Input size with its unit, e.g. 4GB.")] = None
    replication: Annotated[
        int | None,
        typer.Option(min=1, max=REPLICATION_MAX, help="Copies of a block. Default: the profile's."),
    ] = None
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the workload, NAME=VALUE; repeat for several."),
    ] = None
    setting: SettingOption = None
    program: Annotated[
        list[str] | None,
        typer.Option(
            help="For `submit`: your program, its class if `--class` named one, and its arguments,"
            " given one by one."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class HardwareOptions:
    """On what it runs; what is left out is the cluster's."""

    workers: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Workers. Default: the cluster's.")
    ] = None
    board: Annotated[
        str | None,
        typer.Option(help="A board of the catalog, or a TOML file. Default: the cluster's."),
    ] = None
    medium: Annotated[
        str | None,
        typer.Option(help="A medium of the catalog, or a TOML file. Default: the cluster's."),
    ] = None
    link: Annotated[
        str | None,
        typer.Option(
            help="Rate of a worker's link, e.g. \"1 Gbit/s\". Default: the slower of cluster's and"
            " board's."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """What is learned from."""

    profile: Annotated[
        str, typer.Option(help="Learn from your own runs with this profile.", show_default=False)
    ] = ""
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed", help="Also learn from other versions, security modes and settings."
        ),
    ] = False
    tainted: Annotated[bool, typer.Option("--tainted", help="Also learn from tainted runs.")] = (
        False
    )
