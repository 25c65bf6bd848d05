"""``boardcluster submit``: the user's own program."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.submit import Program, check_program, submit_program
from boardcluster.cli.campaigns import new_campaign_id
from boardcluster.cli.console import Reporter, print_json
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
from boardcluster.cli.up import recover
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import RunError, UsageError
from boardcluster.records import AttemptState, Campaign, CampaignKind, Engine, Trial
from boardcluster.redaction import redact
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from boardcluster.services.profile import Profile, with_settings
from boardcluster.services.settings import settings_of_submission
from boardcluster.store import Store
from boardcluster.telemetry.metering import check_meters

__all__ = ["register"]

_POLL_SECONDS = 0.2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="submit",
        epilog=(
            "Examples: boardcluster submit spark -- app.py 10\n\n"
            "boardcluster submit mapreduce -- job.jar my.Main /in /out"
        ),
    )(_submit)


def _submit(
    engine: Annotated[Engine, typer.Argument(help="The engine the program is for.")],
    program: Annotated[
        list[str], typer.Argument(help="After `--`: a jar or .py file and its arguments.")
    ],
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    main_class: Annotated[str, typer.Option("--class", help="Main class of a Spark jar.")] = "",
    conf: Annotated[
        list[str] | None, typer.Option(help="A Spark property KEY=VALUE; repeat for several.")
    ] = None,
    setting: SettingOption = None,
    py_files: Annotated[str, typer.Option(help="Further Python files, comma-separated.")] = "",
    timeout: Annotated[float, typer.Option(min=1, help="Longest time, in seconds.")] = 86400,
    as_json: JsonOption = False,
) -> None:
    """Run your own program on the running cluster and record it: time, counters, logs, status.

    Its output appears as it is printed; the engine's log goes to the artefacts.
    """
    options = [part for pair in conf or [] for part in ("--conf", pair)]
    options += ["--py-files", py_files] if py_files else []
    if engine is Engine.MPI:
        raise UsageError(
            "submit takes Spark and MapReduce programs", hint="run an MPI program with mpirun"
        )
    if engine is Engine.MAPREDUCE and (options or main_class):
        raise UsageError(
            "--class, --conf and --py-files are for Spark",
            hint="for MapReduce give the main class and -D options after the jar",
        )
    wanted = Program(
        engine=engine,
        path=Path(program[0]),
        arguments=tuple(program[1:]),
        main=main_class,
        options=tuple(options),
        settings=settings_of_submission(setting or ()),
    )
    check_program(wanted)
    folder, store_folder = home_folder(home, cluster), cache_folder(cache)
    reporter = Reporter()
    require_cluster(folder, options=again(home, cluster))
    with driver_lock(folder, doing="submit"):
        live = operation.attach(folder, cache=store_folder, progress=reporter.progress)
        built = with_settings(live.layout.profile, wanted.settings, live.spec)
        _check_spark_fits(built, engine)
        check_meters(live.spec.meters, live.metered)
        campaign, trial = _record(live, engine, program, wanted.settings)
        reporter.line(f"submitting to {engine}, recorded as {campaign.id}")
        with (
            Store.open(folder) as store,
            _following(folder / "attempts" / trial.id / "1" / "stdout.txt", quiet=as_json),
        ):
            recover(store, reporter, live)
            attempt, outcome = submit_program(
                live, store, campaign, trial, wanted, timeout_seconds=timeout, cwd=Path.cwd()
            )
    artefacts = folder / attempt.artefacts
    if as_json:
        print_json({"trial": trial, "attempt": attempt, "artefacts": str(artefacts)})
    seconds = f" after {outcome.duration_seconds:.1f} s" if outcome else ""
    reporter.line(f"{attempt.state}{seconds}; logs and counters: {artefacts}")
    if attempt.state is not AttemptState.OK:
        raise RunError(attempt.reason, hint=f"see {artefacts}/stderr.txt")


def _check_spark_fits(profile: Profile, engine: Engine) -> None:
    """Refuse Spark on nodes that hold no executor.

    Raises:
        UsageError: with the arithmetic.
    """
    refusal = profile.spark_refusal
    if engine is Engine.SPARK and refusal:
        raise UsageError(
            f"Spark does not fit on these nodes: {refusal}",
            hint="use MapReduce, or give the nodes more memory",
        )


def _record(
    live: LiveCluster, engine: Engine, program: list[str], settings: Mapping[str, str]
) -> tuple[Campaign, Trial]:
    campaign = Campaign(
        id=new_campaign_id(),
        kind=CampaignKind.SUBMIT,
        created_utc=now_utc(),
        seed=0,
        cluster=live.spec.name,
        emulated=live.spec.kind == "emulated",
    )
    trial = Trial(
        id=f"{campaign.id}-submit-{engine}",
        campaign_id=campaign.id,
        position=0,
        workload="submit",
        engine=engine,
        profile=live.layout.profile.name,
        size_bytes=0,
        workers=len(live.spec.workers),
        repetition=1,
        arguments=redact(program),
        settings={**live.spec.settings, **settings},
    )
    return campaign, trial


@contextlib.contextmanager
def _following(path: Path, *, quiet: bool) -> Iterator[None]:
    """Copy what the program prints to standard output (or error, beside JSON) as it appears."""
    done = threading.Event()
    target = sys.stderr if quiet else sys.stdout

    def follow() -> None:
        position = 0
        while True:
            last = done.wait(_POLL_SECONDS)
            if path.exists():
                with path.open("rb") as stream:
                    stream.seek(position)
                    while chunk := stream.read(1 << 16):
                        position += len(chunk)
                        target.write(chunk.decode(errors="replace"))
                target.flush()
            if last:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
