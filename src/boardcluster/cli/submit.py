"""``boardcluster submit``: the user's own program."""

from __future__ import annotations

import codecs
import contextlib
import glob
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.submit import UserProgram, check_program, run_program, secrets_of
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import (
    CacheOption,
    ChosenCluster,
    JsonOption,
    SettingOption,
    cache_folder,
    require_cluster,
)
from boardcluster.errors import RunError, UsageError
from boardcluster.records import AttemptState, Engine
from boardcluster.services.settings import settings_of_submission
from boardcluster.spec.checks import TIMEOUT_SECONDS_MAX

__all__ = ["EPILOG", "command"]

_POLL_SECONDS = 0.2
_Timeout = Annotated[
    float, typer.Option(min=1, max=TIMEOUT_SECONDS_MAX, help="Longest run time, in seconds.")
]


EPILOG = (
    "Examples: boardcluster submit spark -- app.py 10\n\n"
    "boardcluster submit mapreduce -- job.jar my.Main /in /out"
)


def command(
    engine: Annotated[Engine, typer.Argument(help="The engine the program is for.")],
    program: Annotated[
        list[str], typer.Argument(help="After `--`: a jar or .py file and its arguments.")
    ],
    at: ChosenCluster,
    cache: CacheOption = None,
    main_class: Annotated[str, typer.Option("--class", help="Main class of a Spark jar.")] = "",
    conf: Annotated[
        list[str] | None, typer.Option(help="A Spark property KEY=VALUE; repeat for several.")
    ] = None,
    setting: SettingOption = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE: a file that is neither shown nor stored. The program opens it at "
            "the path that its variable NAME holds, and other jobs of the cluster can read it in "
            "the meantime; repeat for several."
        ),
    ] = None,
    py_files: Annotated[str, typer.Option(help="Further Python files, comma-separated.")] = "",
    timeout: _Timeout = 86400,
    as_json: JsonOption = False,
) -> None:
    """Run your own program on the running cluster and record its time, counters, logs and status.

    Its output appears as it is printed; the engine's log is kept with the artefacts.
    """
    options = [part for pair in conf or [] for part in ("--conf", pair)]
    if not engine.on_yarn:
        raise UsageError(
            f"submit cannot run programs of {engine.own_name}",
            hint="choose mapreduce or spark; run an MPI program with mpirun",
        )
    if engine is Engine.MAPREDUCE and (options or main_class or py_files):
        raise UsageError(
            "--class, --conf and --py-files can only be used with Spark",
            hint="for MapReduce give the main class and -D options after the jar",
        )
    wanted = UserProgram(
        engine=engine,
        path=Path(program[0]),
        arguments=tuple(program[1:]),
        main=main_class,
        options=tuple(options),
        py_files=_py_files(py_files),
        settings=settings_of_submission(setting or ()),
        secrets=secrets_of(secret or ()),
    )
    check_program(wanted)
    folder, store_folder = at.folder(), cache_folder(cache)
    reporter = Reporter()
    require_cluster(folder, options=at.again)
    done = run_program(
        folder,
        wanted,
        cache=store_folder,
        follow=reporter,
        timeout_seconds=timeout,
        cwd=Path.cwd(),
        printing=partial(_following, quiet=as_json),
    )
    attempt, outcome = done.attempt, done.outcome
    if as_json:
        print_json({"trial": done.trial, "attempt": attempt, "artefacts": str(done.artefacts)})
    seconds = f" after {outcome.duration_seconds:.1f} s" if outcome else ""
    reporter.line(f"{attempt.state}{seconds}; logs and counters: {done.artefacts}")
    if attempt.state is not AttemptState.OK:
        raise RunError(attempt.reason, hint=f"see {done.artefacts}/stderr.txt")


def _py_files(text: str) -> tuple[str, ...]:
    """Return what a list with commas names, patterns resolved as Spark does."""
    parts = filter(None, map(str.strip, text.split(",")))
    # Path.glob takes no whole paths.
    found = ((part, sorted(glob.glob(part))) for part in parts)  # noqa: PTH207
    return tuple(place for part, places in found for place in places or [part])


@contextlib.contextmanager
def _following(path: Path, *, quiet: bool) -> Iterator[None]:
    """Copy what the program prints to standard output (or error, with ``--json``) as it appears."""
    done = threading.Event()
    target = sys.stderr if quiet else sys.stdout
    # A look may find only the first bytes of a character.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def copy(position: int, *, last: bool) -> int:
        with path.open("rb") as stream:
            stream.seek(position)
            while chunk := stream.read(1 << 16):
                position += len(chunk)
                target.write(decoder.decode(chunk))
        target.write(decoder.decode(b"", final=last))
        target.flush()
        return position

    def follow() -> None:
        position, last = 0, False
        try:
            while not last:
                last = done.wait(_POLL_SECONDS)
                if path.exists():
                    position = copy(position, last=last)
        except BrokenPipeError:  # `| head` reads no more; the program goes on
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, target.fileno())  # or what is written last, at exit, would fail, too
            os.close(nowhere)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
