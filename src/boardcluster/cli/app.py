"""The program ``boardcluster``: its commands, its signals, its exit codes."""

from __future__ import annotations

import signal
import sys
import traceback
from importlib import import_module
from types import FrameType

import typer

from boardcluster import __version__
from boardcluster.cli import console
from boardcluster.errors import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    BoardclusterError,
)

__all__ = ["COMMANDS", "Stopped", "app", "main"]

COMMANDS = (
    "demo",
    "init",
    "up",
    "status",
    "run",
    "submit",
    "results",
    "report",
    "down",
    "data",
    "doctor",
)
"""Every command, in the order of the help; each is the module of its name."""

_EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 cluster.toml, 4 input, 5 this machine, 6 fetching, 7 cluster, "
    "8 a node, 9 a run, 10 the store, 70 a defect of boardcluster, 130 Ctrl-C, 143 SIGTERM."
)

app = typer.Typer(
    name="boardcluster",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Stopped(SystemExit):
    """Ctrl-C, SIGTERM or SIGHUP arrived; its code is the exit code after cleaning up."""


def _show_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"boardcluster {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """A real Hadoop + Spark cluster from boards, or from this machine, measured and verified.

    Begin with [bold]boardcluster demo[/bold], or make your own cluster:

        boardcluster init && boardcluster up && boardcluster run wordcount && boardcluster report
    """
    del version


for _name in COMMANDS:
    import_module(f"boardcluster.cli.{_name}").register(app)


def _on_signal(signum: int, frame: FrameType | None) -> None:
    """Interrupt once; while cleaning up, further signals only get an answer."""
    del frame
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _say_patience)
    raise Stopped(EXIT_INTERRUPTED if signum == signal.SIGINT else EXIT_TERMINATED)


def _say_patience(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    sys.stderr.write("stopping what was started, please wait\n")


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its documented exit code."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _on_signal)
    try:
        app(args=arguments)
    except BoardclusterError as error:
        console.show_error(error)
        sys.exit(error.exit_code)
    except Stopped:
        sys.stderr.write("\nstopped: everything that this command started has been ended\n")
        raise
    except Exception:  # noqa: BLE001  the last resort: a defect of ours, said as one
        traceback.print_exc()
        sys.stderr.write(
            "\nThis is a defect of boardcluster, not of your input. Please report it with the "
            "lines above.\n"
        )
        sys.exit(EXIT_DEFECT)
