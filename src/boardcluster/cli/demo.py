"""``boardcluster demo``: everything once, from nothing to a report, and nothing left running."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.capabilities import Capabilities, every_kind
from boardcluster.cli import report
from boardcluster.cli.campaigns import (
    Texts,
    new_campaign,
    new_campaign_id,
    plan,
    run_trials,
    single_spec,
)
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.init import propose, write_spec
from boardcluster.cli.options import CacheOption, HomeOption, JsonOption, cache_folder, home_folder
from boardcluster.cli.results import print_results
from boardcluster.cli.run import parse_size_option
from boardcluster.cli.up import bring_up, nodes_words, recover
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import AddressError, HostError, RunError
from boardcluster.records import (
    AttemptState,
    Campaign,
    ClusterSpec,
    Engine,
    Policy,
    Result,
    Trial,
)
from boardcluster.services import operation
from boardcluster.services.pair import pair_ids
from boardcluster.spec import DEFAULT_SUBNET, workers_that_fit
from boardcluster.store import Store

__all__ = ["register"]

_WORKERS = 4


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="demo", epilog="Example: boardcluster demo --workers 2 --size 64MB")(_demo)


def _demo(
    home: HomeOption = None,
    cache: CacheOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=63, help="Workers beside the master. Default: 4, or as many as memory holds."
        ),
    ] = None,
    size: Annotated[str, typer.Option(help="Input size.")] = "256MB",
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs per engine.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random order.")] = 1,
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    as_json: JsonOption = False,
) -> None:
    """Build a real cluster on this machine, count real flights on both engines, report, clean up.

    Results and report are kept in the cluster "demo"; its nodes and their data are deleted.
    """
    began = time.monotonic()
    folder, store_folder = home_folder(home, "demo"), cache_folder(cache)
    size_bytes = parse_size_option(size)
    wanted = single_spec(
        "wordcount",
        engines=(Engine.MAPREDUCE, Engine.SPARK),
        size_bytes=size_bytes or 0,
        repetitions=repetitions,
        seed=seed,
        policy=Policy(),
    )
    reporter = Reporter()
    with driver_lock(folder, doing="demo"), reporter.following():
        operation.down(folder)
        spec = _propose_runnable(folder, workers, engines, reporter)
        write_spec(spec, folder / "cluster.toml")
        trials = plan(wanted, spec, campaign_id=new_campaign_id())
        texts = Texts(store_folder, reporter.progress)
        campaign = new_campaign(
            wanted, spec, trials, campaign_id=trials[0].campaign_id, texts=texts
        )
        reporter.line(f"input: {campaign.dataset}, {campaign.dataset_source}")
        results, html = _build_and_run(folder, store_folder, campaign, trials, texts, reporter)
        reporter.line("the cluster is down and its nodes are deleted")
    if as_json:
        print_json({"campaign": campaign, "results": results, "report": str(html)})
    else:
        print_results(results)
        say(f"done after {time.monotonic() - began:.0f} s; report: {html}")
    bad = [r for r in results if r.attempt is None or r.attempt.state is not AttemptState.OK]
    if bad:
        raise RunError(f"{len(bad)} of {len(results)} runs have no verified result")


def _build_and_run(
    folder: Path,
    cache: Path,
    campaign: Campaign,
    trials: Sequence[Trial],
    texts: Texts,
    reporter: Reporter,
) -> tuple[tuple[Result, ...], Path]:
    """Bring the cluster up, run, report; whatever happens, nothing of the cluster is left."""
    try:
        live = bring_up(folder, cache=cache, reporter=reporter)
        reporter.line(f"up: {nodes_words(live)}, healthy")
        with Store.open(folder) as store:
            recover(store, reporter, live)
            store.add_campaign(campaign, trials)
            run_trials(
                store,
                campaign,
                trials,
                cluster=lambda _: live,
                policy=Policy(),
                cache=cache,
                texts=texts,
                reporter=reporter,
            )
            results = store.results(campaign.id)
        html, _ = report.write(folder, folder / "report", campaign=campaign.id)
    finally:
        operation.down(folder)
        operation.wipe(folder)
    return results, html


def _propose_runnable(
    folder: Path, workers: int | None, engines: str, reporter: Reporter
) -> ClusterSpec:
    """Propose emulated nodes; or, where this machine allows neither root nor namespaces, itself.

    Raises:
        HostError: workers were asked for, and this machine can hold none.
        CapacityError: its memory does not suffice.
    """

    def proposed(kind: Capabilities) -> ClusterSpec:
        return propose(
            name="demo",
            workers=(workers or _default_workers(reporter)) if kind.nodes_max > 1 else 0,
            profile="default",
            engines=engines,
            subnet=DEFAULT_SUBNET,
            kind=kind.kind,
        )

    here = [kind for kind in every_kind().values() if kind.on_this_machine]
    first, fallback = here[0], next(kind for kind in here if kind.nodes_max == 1)
    spec = proposed(first)
    try:
        operation.nodes_of(folder, spec.kind).check(spec)
    except AddressError:
        pass  # `up` says so: the machine could hold the nodes
    except HostError:
        if workers is not None:
            raise
        reporter.line(
            "this machine does not allow the namespaces that several nodes need, so the demo runs "
            "on one local node, which is this machine itself; its results say so, and "
            "`boardcluster doctor` says why"
        )
        return proposed(fallback)
    return spec


def _default_workers(reporter: Reporter) -> int:
    """Return 4, or fewer where memory does not hold 4; at least 1, which then is refused."""
    fitting = workers_that_fit(operation.available_memory_bytes())
    if fitting < _WORKERS:
        reporter.line(f"workers that this machine's memory holds: {fitting}, not {_WORKERS}")
    return max(1, min(_WORKERS, fitting))
