"""``boardcluster run``: a workload, or a whole campaign, repeated, verified, stored."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.forms import Forms
from boardcluster.campaign.outlook import Outlook, free_bytes, look_ahead
from boardcluster.campaign.plan import spec_digest, workload_facts
from boardcluster.campaign.selection import parse_only, select
from boardcluster.cli.campaigns import (
    Texts,
    new_campaign,
    new_campaign_id,
    plan,
    print_outlook,
    run_trials,
    single_spec,
)
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.meters import meter_remotes
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    SettingOption,
    again,
    cache_folder,
    home_folder,
    require_cluster,
)
from boardcluster.cli.results import print_results
from boardcluster.cli.up import recover, reported_health
from boardcluster.cluster.lock import driver_lock
from boardcluster.datasets.text import check_text, from_file
from boardcluster.errors import (
    CapacityError,
    ClusterNotUpError,
    EmptySelectionError,
    RemoteError,
    RunError,
    UsageError,
)
from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignSpec,
    ClusterSpec,
    Engine,
    Policy,
    Result,
    Trial,
)
from boardcluster.services import operation
from boardcluster.services.boards import boards_free_bytes
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting, settings_of_submission
from boardcluster.spec import SEED_MAX, TIMEOUT_SECONDS_MAX, load_campaign
from boardcluster.store import Store, Summary
from boardcluster.telemetry.metering import check_meters
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.units import parse_size
from boardcluster.workloads import load_workload, workload_names
from boardcluster.workloads.base import Takes, check_parameters

__all__ = [
    "Performed",
    "Wanted",
    "left_of",
    "outlook_of",
    "parse_size_option",
    "perform",
    "register",
]

DEFAULT_SIZE = "256 MB"


def parse_size_option(text: str | None) -> int | None:
    """Parse ``--size``.

    Raises:
        UsageError: it is not a size.
    """
    if text is None:
        return None
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--size: {error}", hint="for example --size 256MB") from error
    if size_bytes < 1:
        raise UsageError("--size: must be at least 1 byte", hint="for example --size 256MB")
    return size_bytes


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="run",
        epilog=(
            "Examples: boardcluster run wordcount --size 1GB --engine spark --repetitions 5\n\n"
            "boardcluster run examples/quick.toml --dry-run\n\n"
            "boardcluster run examples/quick.toml --only workload=grep,pi --only engine=spark\n\n"
            "boardcluster run examples/quick.toml --resume"
        ),
    )(_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for.

    Attributes:
        spec: what to run.
        is_file: whether it is a campaign file, which may change the cluster's form.
        only: the selection, as given.
        resume: whether to go on with the latest campaign of that name.
        new: whether to start although an earlier one is not finished.
        retry_failed: whether a resume runs failed trials again.
        confirm: whether to ask before starting.
    """

    spec: CampaignSpec
    is_file: bool
    only: tuple[str, ...]
    resume: bool
    new: bool
    retry_failed: bool
    confirm: bool


_Target = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD|FILE", help=f"A campaign file, or one of: {', '.join(workload_names())}."
    ),
]
_EngineOption = Annotated[
    list[Engine] | None,
    typer.Option(help="An engine; repeat for several. Default: all of the workload."),
]
_SizeOption = Annotated[
    str | None,
    typer.Option(help=f"Input size; default {DEFAULT_SIZE}, or the whole of --input."),
]
_InputOption = Annotated[
    Path | None,
    typer.Option("--input", help="Your own text file. Default: real flights (see `data`)."),
]
_SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the workload, NAME=VALUE; repeat for several."),
]
_RepetitionsOption = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Runs per engine; default 3.")
]
_SeedOption = Annotated[
    int | None, typer.Option(min=0, max=SEED_MAX, help="Seed of the random order; default 1.")
]
_TimeoutOption = Annotated[
    float | None,
    typer.Option(
        min=1, max=TIMEOUT_SECONDS_MAX, help="Longest time of one run, in seconds; default 3600."
    ),
]
_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would run and what it takes; run nothing.")
]
_OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Run only trials with KEY=VALUE[,VALUE], for example workload=grep; repeat to "
        "narrow further. The others stay pending."
    ),
]
_ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the latest campaign of the file's name.")
]
_RetryOption = Annotated[
    bool, typer.Option("--retry-failed", help="With --resume: run failed trials again, too.")
]
_NewOption = Annotated[
    bool, typer.Option("--new", help="Start anew although an earlier campaign is unfinished.")
]
_YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before starting.")]


def _run(
    target: _Target,
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    engine: _EngineOption = None,
    size: _SizeOption = None,
    input_file: _InputOption = None,
    parameter: _SetOption = None,
    setting: SettingOption = None,
    repetitions: _RepetitionsOption = None,
    seed: _SeedOption = None,
    timeout: _TimeoutOption = None,
    dry_run: _DryRunOption = False,
    only: _OnlyOption = None,
    resume: _ResumeOption = False,
    retry_failed: _RetryOption = False,
    new: _NewOption = False,
    yes: _YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a workload, or a campaign of many, in seeded random order; verify and store each run.

    A workload runs on the cluster as it is up. A campaign FILE brings the cluster up in each form
    that it needs, and leaves it up or down as it was found. See docs/reference/campaign-toml.md.
    """
    folder, store_folder = home_folder(home, cluster), cache_folder(cache)
    is_file = _names_a_file(target)
    single = {
        "--engine": engine,
        "--size": size,
        "--input": input_file,
        "--set": parameter,
        "--setting": setting,
        "--repetitions": repetitions,
        "--seed": seed,
        "--timeout": timeout,
    }
    if is_file:
        _refuse_options(single, because="a campaign file says it itself")
        spec = _campaign_file(Path(target))
    else:
        given = {"--resume": resume, "--retry-failed": retry_failed, "--new": new}
        _refuse_options(given, because="it is for campaign files")
        spec = _spec_of(
            target,
            engines=tuple(engine or ()),
            size_bytes=parse_size_option(size) or _whole(target, input_file, store_folder),
            text=input_file,
            parameters=tuple(parameter or ()),
            settings=settings_of_submission(setting or ()),
            repetitions=repetitions or 3,
            seed=1 if seed is None else seed,
            policy=Policy(timeout_seconds=timeout or 3600.0),
        )
    _refuse_contradictions(resume=resume, new=new, retry_failed=retry_failed)
    wanted = Wanted(
        spec=spec,
        is_file=is_file,
        only=tuple(only or ()),
        resume=resume,
        new=new,
        retry_failed=retry_failed,
        confirm=is_file and not yes and sys.stdin.isatty() and sys.stderr.isatty(),
    )
    require_cluster(folder, options=again(home, cluster))
    if dry_run:
        _show(folder, wanted, as_json=as_json)
    else:
        _perform(folder, store_folder, wanted, as_json=as_json)


def _campaign_file(path: Path) -> CampaignSpec:
    return load_campaign(
        path,
        workloads=workload_facts(),
        profiles=profile_names(),
        check_setting=check_setting,
    )


def _refuse_contradictions(*, resume: bool, new: bool, retry_failed: bool) -> None:
    if retry_failed and not resume:
        raise UsageError("--retry-failed goes with --resume", hint="give both")
    if resume and new:
        raise UsageError("--resume and --new contradict each other", hint="give one of them")


def _names_a_file(target: str) -> bool:
    """Whether it is a campaign file; a workload's name is one, whatever lies in the folder."""
    return target not in workload_names() and (target.endswith(".toml") or Path(target).is_file())


def _refuse_options(given: Mapping[str, object], *, because: str) -> None:
    used = [name for name, value in given.items() if value is not None and value is not False]
    if used:
        raise UsageError(
            f"{', '.join(used)}: not with this WORKLOAD or FILE, {because}",
            hint="see `boardcluster run --help`",
        )


def _spec_of(
    name: str,
    *,
    engines: tuple[Engine, ...],
    size_bytes: int | None,
    text: Path | None,
    parameters: tuple[str, ...],
    settings: Mapping[str, str],
    repetitions: int,
    seed: int,
    policy: Policy,
) -> CampaignSpec:
    """Return the specification of one workload.

    Raises:
        UsageError: there is no such workload, engine or parameter.
    """
    workload = load_workload(name)
    chosen = engines or workload.engines
    for one in chosen:
        if one not in workload.engines:
            raise UsageError(
                f"{name} does not run on {one}", hint=f"its engines: {', '.join(workload.engines)}"
            )
    if size_bytes is not None and workload.takes is Takes.NOTHING:
        raise UsageError(f"{name} has no input, so --size says nothing", hint="leave it out")
    if text is not None and workload.takes is not Takes.TEXT:
        raise UsageError(f"{name} reads no text, so --input says nothing", hint="leave it out")
    if size_bytes is None:
        sizeless = workload.takes in {Takes.NOTHING, Takes.MATRIX}
        size_bytes = 0 if sizeless else parse_size(DEFAULT_SIZE)
    given = dict(_parameter(name, one) for one in parameters)
    check_parameters(
        workload, {key.removeprefix(f"{name}."): value for key, value in given.items()}
    )
    return single_spec(
        name,
        engines=chosen,
        size_bytes=size_bytes,
        repetitions=repetitions,
        seed=seed,
        policy=policy,
        text=str(text.absolute()) if text else "",
        parameters=given,
        settings=settings,
    )


def _parameter(workload: str, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise UsageError(
            f"--set {text!r} is not NAME=VALUE", hint=f"for example --set {workload}.seed=2"
        )
    name = key.strip()
    return (name if name.startswith(f"{workload}.") else f"{workload}.{name}"), value


def _whole(name: str, text: Path | None, cache: Path) -> int | None:
    """Return the size of a text that is to be read whole; it may have to be unpacked for that."""
    if text is None or load_workload(name).takes is not Takes.TEXT:
        return None
    progress = Reporter().progress
    return from_file(text, size_bytes=None, cache=cache, progress=progress).size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is to be done now.

    Attributes:
        campaign: the stored campaign to go on with; None for a new one.
        planned: all its trials.
        chosen: those to run now.
    """

    campaign: Campaign | None
    planned: tuple[Trial, ...]
    chosen: tuple[Trial, ...]


def _work(store: Store, wanted: Wanted, declared: ClusterSpec, *, campaign_id: str) -> _Work:
    """Find the place to begin or to go on.

    Raises:
        UsageError: there is nothing to resume, the file was edited, or an unfinished campaign is
            in the way.
        EmptySelectionError: nothing is left or selected.
    """
    earlier = store.find_campaigns(wanted.spec.name) if wanted.is_file else ()
    digest = spec_digest(wanted.spec, declared)
    if wanted.resume:
        return _resumed(store, wanted, earlier[-1] if earlier else None, digest)
    if earlier and not wanted.new:
        summary = store.summary(earlier[-1].id)
        if summary.pending + summary.invalid:
            same = "" if earlier[-1].spec_sha256 == digest else ", though the file was edited since"
            raise UsageError(
                f"campaign {earlier[-1].id} of {wanted.spec.name!r} is not finished: "
                f"{summary.ok} of {summary.planned} runs are ok{same}",
                hint="go on with --resume, or start anew with --new",
            )
    planned = plan(wanted.spec, declared, campaign_id=campaign_id)
    return _Work(campaign=None, planned=planned, chosen=select(planned, parse_only(wanted.only)))


def _resumed(store: Store, wanted: Wanted, campaign: Campaign | None, digest: str) -> _Work:
    if campaign is None:
        raise UsageError(
            f"there is no campaign {wanted.spec.name!r} to resume", hint="run it without --resume"
        )
    if campaign.spec_sha256 != digest:
        raise UsageError(
            f"the file or cluster.toml was edited since campaign {campaign.id} began: its runs "
            "would not be alike",
            hint="restore it, or start a new campaign with --new",
        )
    left = left_of(store, campaign, wanted.spec.policy, retry_failed=wanted.retry_failed)
    if not left:
        raise EmptySelectionError(
            f"nothing is left of campaign {campaign.id}",
            hint=f"see `boardcluster results --campaign {campaign.id}`, or start anew with --new",
        )
    return _Work(
        campaign=campaign,
        planned=store.trials(campaign.id),
        chosen=select(left, parse_only(wanted.only)),
    )


def left_of(
    store: Store, campaign: Campaign, policy: Policy, *, retry_failed: bool = False
) -> tuple[Trial, ...]:
    """Return what a resume of a campaign runs, in run order; none if it is finished.

    Args:
        store: the results.
        campaign: one of its campaigns.
        policy: says how often a disturbed run is repeated.
        retry_failed: whether failed trials are run again.
    """
    states = store.states(campaign.id)
    done = {AttemptState.OK} if retry_failed else {AttemptState.OK, AttemptState.FAILED}
    again = store.tainted(campaign.id, attempts_most=policy.repeat_tainted)
    return tuple(
        trial
        for trial in store.trials(campaign.id)
        if states[trial.id] not in done or trial.id in again
    )


def outlook_of(
    folder: Path, declared: ClusterSpec, store: Store, chosen: Sequence[Trial]
) -> Outlook:
    """Say what trials will take.

    Args:
        folder: the cluster's state folder.
        declared: the cluster as its file says it.
        store: its results.
        chosen: the trials.

    Raises:
        InputError: a text that they read is missing or cannot be read.
    """
    for source in sorted({trial.input for trial in chosen} - {""}):
        check_text(Path(source))
    boards = declared.kind == "boards"
    return look_ahead(
        declared,
        chosen,
        typical_seconds=store.typical_seconds(),
        free=boards_free_bytes(folder, declared) if boards else free_bytes(folder),
        # On boards `up` installs what the workloads need.
        has_tool=lambda program: boards or shutil.which(program) is not None,
    )


def _refuse(outlook: Outlook) -> None:
    """Refuse what cannot run.

    Raises:
        CapacityError: with every reason.
    """
    if outlook.problems:
        raise CapacityError(
            "this cannot run:\n" + "\n".join(f"  {problem}" for problem in outlook.problems),
            hint="change the campaign or cluster.toml; `--dry-run` checks without running",
        )


def _show(folder: Path, wanted: Wanted, *, as_json: bool) -> None:
    declared = operation.read_spec(folder / "cluster.toml", meter_kinds=meter_facts())
    with Store.open(folder, read_only=True) as store:
        work = _work(store, wanted, declared, campaign_id="dry-run")
        outlook = outlook_of(folder, declared, store, work.chosen)
    if as_json:
        print_json({"outlook": outlook, "trials": work.chosen, "policy": wanted.spec.policy})
    else:
        print_outlook(outlook, reporter=None)
    _refuse(outlook)


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """What was done.

    Attributes:
        campaign: the campaign.
        chosen: the trials that ran now.
        summary: how many of its trials are in which state.
        results: all its trials with their latest attempts.
    """

    campaign: Campaign
    chosen: tuple[Trial, ...]
    summary: Summary
    results: tuple[Result, ...]


def perform(folder: Path, cache: Path, wanted: Wanted, reporter: Reporter) -> Performed:
    """Run what is asked for, as the only driver of the cluster.

    A campaign file brings the cluster up in each form that it needs, and whatever happens, Ctrl-C
    included, leaves it up or down as it was found.

    Args:
        folder: the cluster's state folder.
        cache: folder of fetched engines and data.
        wanted: what is asked for.
        reporter: told what is done.
    """
    with driver_lock(folder, doing="run"):
        declared = operation.read_spec(folder / "cluster.toml", meter_kinds=meter_facts())
        if declared.meters:  # reaching boards makes a folder for their connections
            check_meters(declared.meters, meter_remotes(folder, declared))
        with Store.open(folder) as store:
            if wanted.is_file:
                campaign, chosen = _run_file(folder, cache, wanted, declared, store, reporter)
            else:
                with reporter.following():
                    campaign, chosen = _run_single(folder, cache, wanted, store, reporter)
            return Performed(
                campaign=campaign,
                chosen=chosen,
                summary=store.summary(campaign.id),
                results=store.results(campaign.id),
            )


def _unverified(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the trials whose latest attempt has no verified result."""
    return tuple(
        row for row in results if row.attempt is None or row.attempt.state is not AttemptState.OK
    )


def _perform(folder: Path, cache: Path, wanted: Wanted, *, as_json: bool) -> None:
    done = perform(folder, cache, wanted, Reporter())
    if as_json:
        print_json({"campaign": done.campaign, "summary": done.summary, "results": done.results})
    else:
        print_results(done.results)
    ran = {trial.id for trial in done.chosen}
    if bad := [row for row in _unverified(done.results) if row.trial.id in ran]:
        raise RunError(
            f"{len(bad)} of {len(ran)} runs have no verified result",
            hint="see the reasons above and the artefacts under the cluster's attempts folder",
        )


def _run_single(
    folder: Path, cache: Path, wanted: Wanted, store: Store, reporter: Reporter
) -> tuple[Campaign, tuple[Trial, ...]]:
    """Run a workload on the cluster as it is up."""
    live = operation.attach(folder, cache=cache, progress=reporter.progress)
    recover(store, reporter, live)
    work = _work(store, wanted, live.spec, campaign_id=new_campaign_id())
    outlook = outlook_of(folder, live.spec, store, work.chosen)
    for note in outlook.notes:
        reporter.line(note)
    _refuse(outlook)
    texts = Texts(cache, reporter.progress)
    campaign = new_campaign(
        wanted.spec, live.spec, work.planned, campaign_id=work.planned[0].campaign_id, texts=texts
    )
    store.add_campaign(campaign, work.planned)
    run_trials(
        store,
        campaign,
        work.chosen,
        cluster=lambda _: live,
        policy=wanted.spec.policy,
        cache=cache,
        texts=texts,
        reporter=reporter,
    )
    return campaign, work.chosen


def _recover(folder: Path, cache: Path, store: Store, reporter: Reporter) -> None:
    """Deal with what a killed driver left, in whatever form its cluster is; it may be down."""
    live = None
    with contextlib.suppress(ClusterNotUpError):
        live = operation.attach(folder, cache=cache, progress=reporter.progress, any_form=True)
    try:
        recover(store, reporter, live)
    except RemoteError as error:
        reporter.line(f"{error.message}; bringing the cluster down")
        operation.down(folder)
        recover(store, reporter)


def _run_file(
    folder: Path,
    cache: Path,
    wanted: Wanted,
    declared: ClusterSpec,
    store: Store,
    reporter: Reporter,
) -> tuple[Campaign, tuple[Trial, ...]]:
    """Run a campaign file in every form of the cluster that it needs."""
    _recover(folder, cache, store, reporter)
    work = _work(store, wanted, declared, campaign_id=new_campaign_id())
    outlook = outlook_of(folder, declared, store, work.chosen)
    print_outlook(outlook, reporter=reporter)
    _refuse(outlook)
    if wanted.confirm and not typer.confirm("start?", default=True, err=True):
        raise typer.Exit(0)
    with reporter.following():  # only now: progress bars and a question do not go together
        return _run_forms(folder, cache, wanted, declared, store, work, reporter)


def _run_forms(
    folder: Path,
    cache: Path,
    wanted: Wanted,
    declared: ClusterSpec,
    store: Store,
    work: _Work,
    reporter: Reporter,
) -> tuple[Campaign, tuple[Trial, ...]]:
    texts = Texts(cache, reporter.progress)
    campaign = work.campaign
    if campaign is None:
        campaign = new_campaign(
            wanted.spec,
            declared,
            work.planned,
            campaign_id=work.planned[0].campaign_id,
            texts=texts,
        )
        store.add_campaign(campaign, work.planned)
    forms = Forms(
        folder,
        cache=cache,
        progress=reporter.progress,
        seen=reported_health(reporter),
    )
    try:
        run_trials(
            store,
            campaign,
            work.chosen,
            cluster=forms,
            policy=wanted.spec.policy,
            cache=cache,
            texts=texts,
            reporter=reporter,
        )
    except BaseException:
        forms.abandon()
        raise
    forms.leave()
    return campaign, work.chosen
