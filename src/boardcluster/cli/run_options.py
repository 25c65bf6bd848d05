"""The options of ``run``: those of a workload, and those of a campaign file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from boardcluster.campaign.begin import Design, Start
from boardcluster.cli.options import (
    SettingOption,
)
from boardcluster.cli.workload_options import (
    InputOption,
    InputSizeOption,
    ParameterOption,
    chosen_start,
)
from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.spec.campaign import REPETITIONS_MAX, SEED_MAX, STARTS_MAX
from boardcluster.spec.checks import TIMEOUT_SECONDS_MAX, check_precision

__all__ = ["DesignOptions", "FileOptions", "WorkloadOptions"]


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """The options of a workload; a campaign file sets these itself."""

    engine: Annotated[
        list[Engine] | None,
        typer.Option(help="An engine; repeat for several. Default: all that the workload has."),
    ] = None
    size: InputSizeOption = None
    input: InputOption = None
    set: ParameterOption = None
    setting: SettingOption = None
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=REPETITIONS_MAX,
            help="Runs per engine, in each start; with --until the minimum. Default: 3.",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=TIMEOUT_SECONDS_MAX,
            help="Longest time of one run, in seconds. Default: 3600.",
        ),
    ] = None

    def given(self) -> dict[str, object]:
        """Return the options with the values that were given."""
        return {f"--{row.name}": getattr(self, row.name) for row in fields(self)}


@dataclass(frozen=True, slots=True)
class DesignOptions:
    """How often and in which order a new campaign runs; for workloads and for campaign files."""

    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=SEED_MAX,
            help="Seed of the random order. Default: the file's, or a new one each time, which is "
            "printed.",
        ),
    ] = None
    starts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=STARTS_MAX,
            help="How often to start the cluster's daemons; each start runs every repetition. "
            "Default: the file's, or 1.",
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Run more blocks, or more starts if there are several, until every 95 % interval "
            'is within this much of its result, for example "3 %".',
        ),
    ] = None
    at_most: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=REPETITIONS_MAX,
            help="With --until: the most runs of each cell. Default: the file's, or ten times the "
            "minimum.",
        ),
    ] = None

    def design(self) -> Design:
        """Return what was given.

        Raises:
            UsageError: the precision is no percentage.
        """
        try:
            precision = None if self.until is None else check_precision(self.until)
        except ValueError as error:
            raise UsageError(f"--until: {error}", hint='for example --until "3 %"') from error
        return Design(
            seed=self.seed,
            starts=self.starts,
            precision=precision,
            repetitions_max=self.at_most,
        )


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How a campaign file is started or resumed."""

    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only trials with KEY=VALUE[,VALUE], for example workload=grep; repeat to "
            "narrow further. The others stay pending."
        ),
    ] = None
    go_on: Annotated[
        bool,
        typer.Option(
            "--continue",
            help="Start the file's campaign, resume it, or do nothing if it is finished.",
        ),
    ] = False
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the latest campaign with the file's name.")
    ] = False
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="With --resume or --continue: run failed trials again, too."
        ),
    ] = False
    new: Annotated[
        bool,
        typer.Option("--new", help="Start a new campaign although an earlier one is unfinished."),
    ] = False

    def given(self) -> dict[str, object]:
        """Return the options that a workload does not have, with the values that were given."""
        return {
            "--continue": self.go_on,
            "--resume": self.resume,
            "--retry-failed": self.retry_failed,
            "--new": self.new,
        }

    @property
    def start(self) -> Start:
        """How to begin.

        Raises:
            UsageError: the options contradict each other.
        """
        start = chosen_start(go_on=self.go_on, resume=self.resume, new=self.new)
        if self.retry_failed and not (self.resume or self.go_on):
            raise UsageError("--retry-failed needs --resume or --continue", hint="add one of them")
        return start
