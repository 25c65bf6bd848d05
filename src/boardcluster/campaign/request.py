"""What is asked for as a request: a campaign file, or one workload at one size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from boardcluster.campaign.begin import CampaignRequest, Design, Start, single_spec
from boardcluster.campaign.plan import workload_facts
from boardcluster.datasets.text import whole_size_bytes
from boardcluster.errors import UsageError
from boardcluster.fetch.cache import Progress
from boardcluster.records import Engine, Policy
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting, refuse_idle
from boardcluster.spec.campaign import load_campaign
from boardcluster.units import parse_size
from boardcluster.workloads import load_workload, workload_names
from boardcluster.workloads.base import InputKind, check_parameters

__all__ = ["DEFAULT_SIZE", "campaign_file", "names_a_file", "refuse_given", "single_workload"]

DEFAULT_SIZE = "256 MB"


def refuse_given(given: Mapping[str, object], *, because: str, hint: str) -> None:
    """Refuse options that were given but do not apply.

    Raises:
        UsageError: names them.
    """
    used = [name for name, value in given.items() if value is not None and value is not False]
    if used:
        raise UsageError(f"{', '.join(used)} cannot be used {because}", hint=hint)


def names_a_file(target: str) -> bool:
    """Whether it is a campaign file; a workload's name is one, whatever lies in the folder."""
    return target not in workload_names() and (target.endswith(".toml") or Path(target).is_file())


def campaign_file(
    path: Path,
    *,
    start: Start = Start.BEGIN,
    only: tuple[str, ...] = (),
    retry_failed: bool = False,
    design: Design | None = None,
) -> CampaignRequest:
    """Read a campaign file.

    Args:
        path: the file.
        start: how to begin.
        only: run only trials with KEY=VALUE[,VALUE].
        retry_failed: whether continuing runs failed trials again.
        design: what differs from the file in a new campaign; None for nothing.

    Raises:
        SpecError: it is missing or wrong; names each problem with its line.
    """
    spec = load_campaign(
        path,
        workloads=workload_facts(),
        profiles=profile_names(),
        check_setting=check_setting,
    )
    return CampaignRequest(
        spec=spec,
        design=design or Design(),
        only=only,
        start=start,
        retry_failed=retry_failed,
        file_bytes=path.read_bytes(),
    )


def single_workload(
    name: str,
    *,
    cache: Path,
    progress: Progress,
    engines: Sequence[Engine] = (),
    size_bytes: int | None = None,
    text: Path | None = None,
    parameters: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    repetitions: int = 3,
    design: Design | None = None,
    timeout_seconds: float = 3600.0,
    only: tuple[str, ...] = (),
) -> CampaignRequest:
    """Return the request for one workload on the cluster as it is up.

    Args:
        name: the workload.
        cache: the cache folder; a text that is read whole may have to be unpacked there.
        progress: told of that.
        engines: the engines; all of the workload without any.
        size_bytes: size of the input; None for the default, or for the whole text.
        text: a text file to read instead of the flights.
        parameters: values of the workload's parameters, by name, with or without ``NAME.``.
        settings: properties of the engines for its jobs, as ``services.settings`` checked them.
        repetitions: runs per engine, in each start.
        design: seed of the random order, starts, and a precision; None draws a seed, and runs in
            one start what is planned.
        timeout_seconds: longest time of one run.
        only: run only trials with KEY=VALUE[,VALUE].

    Raises:
        UsageError: there is no such workload, engine or parameter, or an option has no effect.
        InputError: the text cannot be read.
    """
    workload = load_workload(name)
    chosen = tuple(engines) or workload.engines
    for one in chosen:
        if one not in workload.engines:
            raise UsageError(
                f"{name} does not run on {one}", hint=f"its engines: {', '.join(workload.engines)}"
            )
    if size_bytes is not None and workload.input_kind is InputKind.NOTHING:
        raise UsageError(f"a size has no effect: {name} takes no input", hint="leave it out")
    if text is not None and workload.input_kind is not InputKind.TEXT:
        raise UsageError(f"an input has no effect: {name} reads no text", hint="leave it out")
    given = {key.removeprefix(f"{name}."): value for key, value in (parameters or {}).items()}
    check_parameters(workload, given)
    refuse_idle(settings or (), chosen)
    if size_bytes is None and text is not None:
        size_bytes = whole_size_bytes(text, cache=cache, progress=progress)
    if size_bytes is None:
        sizeless = workload.input_kind in {InputKind.NOTHING, InputKind.MATRIX}
        size_bytes = 0 if sizeless else parse_size(DEFAULT_SIZE)
    spec = single_spec(
        name,
        engines=chosen,
        size_bytes=size_bytes,
        repetitions=repetitions,
        seed=None,
        policy=Policy(timeout_seconds=timeout_seconds),
        text=str(text.absolute()) if text else "",
        parameters={f"{name}.{key}": value for key, value in given.items()},
        settings=settings,
    )
    return CampaignRequest(spec=spec, design=design or Design(), is_file=False, only=only)
