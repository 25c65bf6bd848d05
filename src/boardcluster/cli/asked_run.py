"""What the options of ``predict`` ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.cli.predict_options import HardwareOptions, JobOptions, LearningOptions
from boardcluster.errors import SpecError, UsageError
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.queries.predictions import (
    AskedRun,
    choose_engine,
    predict_run,
    require_size,
)
from boardcluster.records import ClusterSpec, Engine
from boardcluster.units import parse_rate

if TYPE_CHECKING:
    from boardcluster.campaign.prediction import CampaignPrediction
    from boardcluster.queries.backtests import Backtests
    from boardcluster.workloads.base import Workload

__all__ = ["backtests", "campaign", "one", "refuse_options"]

_PROGRAM = "submit"
_OPTIONS = {"parameters": "--set"}
"""Fields with an option of another name."""


def refuse_options(*groups: JobOptions | HardwareOptions | LearningOptions, because: str) -> None:
    """Refuse the options of one run where no single run is asked about.

    Raises:
        UsageError: names those that were given.
    """
    from boardcluster.campaign.request import refuse_given  # noqa: PLC0415  slow to load

    given = {
        _OPTIONS.get(row.name, f"--{row.name}"): getattr(group, row.name) or None
        for group in groups
        for row in fields(group)
    }
    refuse_given(given, because=because, hint="leave them out")


def _spec(home: Path) -> ClusterSpec | None:
    """Read the cluster's declaration; None without one."""
    path = home / "cluster.toml"
    if not path.exists():
        return None
    from boardcluster.services.declaration import read_spec  # noqa: PLC0415  slow to load

    return read_spec(path)


def one(
    home: Path,
    workload: str,
    job: JobOptions,
    hardware: HardwareOptions,
    learning: LearningOptions,
) -> RuntimePrediction:
    """Answer one question.

    Raises:
        UsageError: an option is wrong or missing.
    """
    from boardcluster.campaign.submit import stored_arguments  # noqa: PLC0415  slow to load
    from boardcluster.services.containers import copies_of, fit_of  # noqa: PLC0415  slow to load
    from boardcluster.workloads import parameter_defaults  # noqa: PLC0415  slow to load

    found = _workload(workload)
    if found is not None and job.program:
        raise UsageError(
            f"--program can only be used with {_PROGRAM}, not with {workload}", hint="leave it out"
        )
    engines = (Engine.MAPREDUCE, Engine.SPARK) if found is None else found.engines
    chosen = choose_engine(workload, job.engine, engines)
    program = stored_arguments(Path(job.program[0]), "", job.program[1:]) if job.program else ()
    declared = None
    named = hardware.board and (hardware.medium or not chosen.on_yarn)
    is_named = bool(named and hardware.workers)
    # Of hardware that is named whole, the cluster only says with which settings it ran.
    with contextlib.suppress(*[SpecError] if is_named else []):
        declared = _spec(home)
    spec = None if is_named else declared
    asked = AskedRun(
        workload=workload,
        engine=chosen,
        size_bytes=_size(workload, job.size, found),
        workers=hardware.workers,
        workers_least=1 if found is None else found.workers_least,
        board=hardware.board,
        medium=hardware.medium,
        replication=job.replication,
        link_bits_per_second=_rate(hardware.link),
        profile=_profile(learning.profile),
        parameters=_parameters(workload, job.parameters or (), found),
        settings={**(declared.settings if declared else {}), **_settings(job.setting or ())},
        arguments=program,
    )
    defaults = {} if found is None else parameter_defaults(workload)
    answer = predict_run(
        asked,
        home,
        spec,
        defaults=defaults,
        copies_of=partial(copies_of, declared=spec),
        mixed=learning.mixed,
        tainted=learning.tainted,
    )
    return replace(answer, fit=fit_of(answer, spec))


def _workload(name: str) -> Workload | None:
    """Return a workload; None for the user's own program.

    Raises:
        UsageError: there is no such workload.
    """
    if name == _PROGRAM:
        return None
    from boardcluster.workloads import load_workload  # noqa: PLC0415  slow to load

    return load_workload(name)


def _size(name: str, size: str | None, found: Workload | None) -> int:
    from boardcluster.workloads.base import InputKind  # noqa: PLC0415  slow to load

    takes_input = found is not None and found.input_kind is not InputKind.NOTHING
    return require_size(name, size, takes_input=takes_input)


def _profile(name: str) -> str:
    """Return a profile as runs have it: one that is a file by its whole path."""
    return str(Path(name).resolve()) if name.endswith(".toml") else name


def _rate(link: str | None) -> int | None:
    if link is None:
        return None
    try:
        return parse_rate(link)
    except ValueError as error:
        raise UsageError(f"--link: {error}", hint='for example --link "1 Gbit/s"') from error


def _parameters(name: str, texts: Sequence[str], found: Workload | None) -> dict[str, str]:
    """Return what --set gave, checked as ``run`` checks it.

    Raises:
        UsageError: a parameter that there is not, or a wrong value.
    """
    if not texts:
        return {}
    from boardcluster.cli.workload_options import parse_parameters  # noqa: PLC0415  slow to load
    from boardcluster.workloads.base import check_parameters  # noqa: PLC0415

    if found is None:
        raise UsageError("--set has no effect on a program of your own", hint="leave it out")
    given = {key.removeprefix(f"{name}."): value for key, value in parse_parameters(texts).items()}
    check_parameters(found, given)
    return {f"{name}.{key}": value for key, value in given.items()}


def _settings(texts: Sequence[str]) -> dict[str, str]:
    if not texts:
        return {}
    from boardcluster.services.settings import settings_of_submission  # noqa: PLC0415

    return dict(settings_of_submission(texts))


def backtests(home: Path) -> Backtests:
    """Hold out cells of the published tables and of own runs."""
    from boardcluster.queries.backtests import run_backtests  # noqa: PLC0415  slow to load
    from boardcluster.workloads import parameter_defaults  # noqa: PLC0415  slow to load

    return run_backtests(home, parameter_defaults)


def campaign(home: Path, path: Path, *, cache: Path) -> CampaignPrediction:
    """Predict what a campaign file would run on the cluster, as ``run --dry-run`` plans it.

    Raises:
        BoardclusterError: as ``run --dry-run``.
    """
    from boardcluster.campaign.life import preview_campaign  # noqa: PLC0415  slow to load
    from boardcluster.campaign.request import campaign_file  # noqa: PLC0415

    return preview_campaign(home, campaign_file(path), cache=cache).prediction
