"""What the options of ``predict`` ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.cli.options import parse_size_option
from boardcluster.cli.predict_options import HardwareOptions, JobOptions, LearningOptions
from boardcluster.errors import UsageError
from boardcluster.plan.prediction import RuntimePrediction
from boardcluster.queries.backtests import Backtests, run_backtests
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

__all__ = ["backtests", "campaign", "one", "with_unit"]

_PROGRAM = "submit"


def with_unit(size: str | None) -> str | None:
    """Refuse a size without a unit, which is bytes elsewhere and never meant here.

    Raises:
        UsageError: it is a bare number.
    """
    if size is not None and size.strip().replace(".", "", 1).isdigit():
        raise UsageError(f"--size {size} has no unit", hint=f"for example --size {size}GB")
    return size


def _spec(home: Path) -> ClusterSpec | None:
    """Read the cluster's declaration; None without one."""
    path = home / "cluster.toml"
    if not path.exists():
        return None
    from boardcluster.services.operation import read_spec  # noqa: PLC0415  slow to load

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
    engines, defaults, known = _engines(workload)
    chosen = choose_engine(workload, job.engine, engines)
    size_bytes = require_size(workload, parse_size_option(with_unit(job.size)))
    named = hardware.board and (hardware.medium or chosen is Engine.MPI)
    spec = None if named and hardware.workers else _spec(home)
    asked = AskedRun(
        workload=workload,
        engine=chosen,
        size_bytes=size_bytes,
        workers=hardware.workers,
        board=hardware.board,
        medium=hardware.medium,
        replication=job.replication,
        link_bits_per_second=_rate(hardware.link),
        profile=learning.profile,
        parameters=dict(_parameter(workload, text, known) for text in job.parameters or ()),
        settings=_settings(job.setting or ()),
        arguments=tuple(job.program or ()),
    )
    answer = predict_run(
        asked, home, spec, defaults=defaults, mixed=learning.mixed, tainted=learning.tainted
    )
    from boardcluster.services.containers import fit_of  # noqa: PLC0415  slow to load

    return replace(answer, fit=fit_of(answer, spec))


def _engines(workload: str) -> tuple[tuple[Engine, ...], dict[str, str], tuple[str, ...]]:
    """Return a workload's engines, its parameters' defaults, and their names."""
    if workload == _PROGRAM:
        return (Engine.MAPREDUCE, Engine.SPARK), {}, ()
    from boardcluster.workloads import load_workload  # noqa: PLC0415  slow to load

    found = load_workload(workload)
    defaults = {f"{workload}.{key}": row.default for key, row in found.parameters.items()}
    return found.engines, defaults, tuple(found.parameters)


def _rate(link: str | None) -> int | None:
    if link is None:
        return None
    try:
        return parse_rate(link)
    except ValueError as error:
        raise UsageError(f"--link: {error}", hint='for example --link "1 Gbit/s"') from error


def _parameter(workload: str, text: str, known: Sequence[str]) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    name = key.strip().removeprefix(f"{workload}.")
    if not separator or name not in known:
        raise UsageError(
            f"--set {text!r} is not NAME=VALUE of {workload}",
            hint=f"its parameters: {', '.join(known) or 'none'}",
        )
    return f"{workload}.{name}", value


def _settings(texts: Sequence[str]) -> dict[str, str]:
    if not texts:
        return {}
    from boardcluster.services.settings import settings_of_submission  # noqa: PLC0415

    return dict(settings_of_submission(texts))


def backtests(home: Path) -> Backtests:
    """Hold out cells of the published tables and of own runs."""
    return run_backtests(home)


def campaign(home: Path, path: Path, *, cache: Path) -> CampaignPrediction:
    """Predict what a campaign file would run on the cluster, as ``run --dry-run`` plans it.

    Raises:
        BoardclusterError: as ``run --dry-run``.
    """
    from boardcluster.campaign.life import preview_campaign  # noqa: PLC0415  slow to load
    from boardcluster.campaign.request import campaign_file  # noqa: PLC0415

    return preview_campaign(home, campaign_file(path), cache=cache).prediction
