"""``boardcluster run``: run a workload, repeat it, verify it, store it."""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.driver import Watch, now_utc, run_campaign
from boardcluster.campaign.plan import plan_trials
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    JsonOption,
    again,
    cache_folder,
    home_folder,
    require_cluster,
)
from boardcluster.cli.results import print_results
from boardcluster.cli.up import recover
from boardcluster.cluster.lock import driver_lock
from boardcluster.datasets.airline import prepare_airline
from boardcluster.datasets.text import from_file
from boardcluster.errors import RunError, UsageError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Dataset,
    Engine,
    Measurement,
    Trial,
)
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.units import parse_size
from boardcluster.workloads import load_workload, workload_names

__all__ = [
    "Request",
    "check_spark_fits",
    "execute",
    "new_campaign_id",
    "parse_size_option",
    "register",
]

DEFAULT_SIZE = "256 MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to run.

    Attributes:
        workload: its name.
        engines: the engines to run it on.
        repetitions: of each.
        seed: of the random order.
        timeout_seconds: for one attempt.
    """

    workload: str
    engines: tuple[Engine, ...]
    repetitions: int
    seed: int
    timeout_seconds: float


def new_campaign_id() -> str:
    """Return an id that sorts by time and is unique."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return f"{moment}-{secrets.token_hex(2)}"


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


def check_spark_fits(live: LiveCluster, engines: tuple[Engine, ...]) -> None:
    """Refuse Spark on nodes that hold no executor.

    Raises:
        UsageError: with the arithmetic.
    """
    refusal = live.layout.profile.spark_refusal
    if Engine.SPARK in engines and refusal:
        raise UsageError(
            f"Spark does not fit on these nodes: {refusal}",
            hint="use MapReduce, or give the nodes more memory",
        )


def execute(
    live: LiveCluster,
    store: Store,
    dataset: Dataset,
    request: Request,
    *,
    cache: Path,
    reporter: Reporter,
) -> Campaign:
    """Run a request as a campaign and follow it.

    Raises:
        UsageError: Spark does not fit on the cluster's nodes.
        ClusterError: the cluster is no longer whole.
    """
    check_spark_fits(live, request.engines)
    campaign = Campaign(
        id=new_campaign_id(),
        kind=CampaignKind.RUN,
        created_utc=now_utc(),
        seed=request.seed,
        cluster=live.spec.name,
        emulated=live.spec.kind == "emulated",
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        dataset_source=dataset.source,
    )
    trials = plan_trials(
        campaign,
        workload=request.workload,
        engines=request.engines,
        profile=live.layout.profile.name,
        size_bytes=dataset.size_bytes,
        workers=len(live.spec.workers),
        repetitions=request.repetitions,
    )
    total = len(trials)
    reporter.line(
        f"campaign {campaign.id}: {total} runs of {request.workload}, seed {campaign.seed}"
    )

    def began(trial: Trial) -> None:
        reporter.progress(f"runs of campaign {campaign.id}", trial.position, total)
        reporter.line(f"run {trial.position + 1} of {total}: {trial.workload} on {trial.engine}")

    def ended(trial: Trial, attempt: Attempt, measurement: Measurement | None) -> None:
        words = f"{attempt.state}"
        if measurement is not None:
            words += f", {measurement.duration_seconds:.1f} s"
            if measurement.verification is not None:
                words += f", {measurement.verification.records:,} records verified"
        if attempt.reason:
            words += f": {attempt.reason}"
        reporter.line(f"run {trial.position + 1} of {total}: {words}")
        reporter.progress(f"runs of campaign {campaign.id}", trial.position + 1, total)

    run_campaign(
        live,
        store,
        campaign,
        trials,
        workload=load_workload(request.workload),
        dataset=dataset,
        cache=cache,
        timeout_seconds=request.timeout_seconds,
        watch=Watch(progress=reporter.progress, began=began, ended=ended),
    )
    return campaign


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="run",
        epilog="Example: boardcluster run wordcount --size 1GB --engine spark --repetitions 5",
    )(_run)


def _run(
    workload: Annotated[str, typer.Argument(help=f"One of: {', '.join(workload_names())}.")],
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    engine: Annotated[
        list[Engine] | None, typer.Option(help="An engine; repeat for several. Default: all.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help=f"Input size; default {DEFAULT_SIZE}, or the whole of --input."),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", help="Your own text file. Default: real flights (see `data`)."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, max=1000, help="Runs per engine.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random order.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=1, help="Longest time of one run, in seconds.")
    ] = 3600,
    as_json: JsonOption = False,
) -> None:
    """Run a workload on the running cluster: repeated, in seeded random order, verified, stored."""
    folder, store_folder = home_folder(home, cluster), cache_folder(cache)
    chosen = load_workload(workload)
    request = Request(
        workload=workload,
        engines=tuple(dict.fromkeys(engine or chosen.engines)),
        repetitions=repetitions,
        seed=seed,
        timeout_seconds=timeout,
    )
    size_bytes = parse_size_option(size)
    reporter = Reporter()
    require_cluster(folder, options=again(home, cluster))
    with driver_lock(folder, doing="run"), reporter.following():
        live = operation.attach(folder, cache=store_folder, progress=reporter.progress)
        dataset = _dataset(input_file, size_bytes, store_folder, reporter)
        with Store.open(folder) as store:
            recover(store, reporter, live)
            campaign = execute(live, store, dataset, request, cache=store_folder, reporter=reporter)
            results = store.results(campaign.id)
            summary = store.summary(campaign.id)
    if as_json:
        print_json({"campaign": campaign, "summary": summary, "results": results})
    else:
        print_results(results)
    bad = [r for r in results if r.attempt is None or r.attempt.state is not AttemptState.OK]
    if bad:
        raise RunError(
            f"{len(bad)} of {len(results)} runs have no verified result",
            hint="see the reasons above and the artefacts under the cluster's attempts folder",
        )


def _dataset(
    source: Path | None, size_bytes: int | None, cache: Path, reporter: Reporter
) -> Dataset:
    if source is not None:
        return from_file(source, size_bytes=size_bytes, cache=cache, progress=reporter.progress)
    wanted = size_bytes or parse_size(DEFAULT_SIZE)
    return prepare_airline(size_bytes=wanted, cache=cache, progress=reporter.progress)
