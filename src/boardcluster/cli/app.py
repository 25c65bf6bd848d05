"""The program ``boardcluster``: its commands, its signals, its exit codes."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from boardcluster.cli import console
from boardcluster.cli.grouped import grouped
from boardcluster.errors import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    BoardclusterError,
)
from boardcluster.fetch.cache import refusals_told

__all__ = ["COMMANDS", "PANELS", "Stopped", "app", "main"]

PANELS = {
    "Start here": ("demo", "doctor", "init", "up", "status", "down"),
    "Run": (
        *("run", "submit", "experiment", "tune", "watch-performance", "probe", "data", "predict"),
        "plan",
    ),
    "Look": ("dashboard", "results", "telemetry", "report", "compare", "export", "import"),
    "Boards": ("inventory", "tunnel", "meters", "uninstall"),
    "More": ("catalog", "metrics"),
}
"""Every command in its part of the help, in order: ``command`` of the module of its name."""

_FILES = {"import": "import_bundle", "watch-performance": "watch_performance"}
"""The files of commands whose name no module can have."""

COMMANDS = tuple(name for names in PANELS.values() for name in names)

_EPILOG = (
    "Exit codes: 0 success, 2 usage, 3 cluster.toml, 4 input, 5 this machine, 6 download, "
    "7 cluster, 8 node, 9 run, 10 store, 11 not predictable, 12 out of limits, "
    "70 a bug in boardcluster, 130 Ctrl-C, 143 SIGTERM."
)


def _flowing(text: str) -> str:
    """Return paragraphs without line ends, which Typer would keep beside its own."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


class _Commands(TyperGroup):
    """The commands; each is loaded when it is asked for, since all of them take a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Every command, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command; None if there is no such."""
        del ctx
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            alone = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
            module = import_module(f"boardcluster.cli.{_FILES.get(cmd_name, cmd_name)}")
            if isinstance(module.command, typer.Typer):
                alone.add_typer(module.command, name=cmd_name)
            else:
                alone.command(cmd_name, epilog=module.EPILOG)(grouped(module.command))
            loaded: Any = get_group(alone).commands[cmd_name]
            for each in (loaded, *getattr(loaded, "commands", {}).values()):
                each.help = _flowing(each.help or "")
            loaded.rich_help_panel = next(part for part in PANELS if cmd_name in PANELS[part])
            self.commands[cmd_name] = loaded
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of a line; for one that does not exist the nearest is offered."""
        if args[0] not in COMMANDS:
            # Typer looks for the nearest name among these. None is called, so none is loaded.
            self.commands = dict.fromkeys(COMMANDS, self)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="boardcluster",
    cls=_Commands,
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
        from boardcluster import __version__  # noqa: PLC0415  slow to look up

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


def _handle_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    """Have signals that end the program handled; `nohup` has SIGHUP ignored, and it stays so."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, handler)


def _on_signal(signum: int, frame: FrameType | None) -> None:
    """Interrupt once; while cleaning up, further signals only get an answer."""
    del frame
    _handle_signals(_say_patience)
    raise Stopped(EXIT_INTERRUPTED if signum == signal.SIGINT else EXIT_TERMINATED)


def _say_patience(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    console.say_last("stopping what was started, please wait")


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its documented exit code."""
    _handle_signals(_on_signal)
    try:
        with refusals_told(unnamed="a file of --home or --cache"):
            app(args=arguments)
    except BoardclusterError as error:
        _end_with(error, notes=_notes(error))
    except Stopped as stopped:
        notes = _notes(stopped) or ["everything that this command started has been stopped"]
        console.say_last(f"\nstopped: {'; '.join(notes)}")
        raise
    except Exception:  # noqa: BLE001  the last resort: a bug of ours, reported as one
        console.say_last(
            f"{traceback.format_exc()}\nThis is a bug in boardcluster, not an error in your input. "
            "Please report it with the lines above."
        )
        sys.exit(EXIT_DEFECT)


def _notes(error: BaseException) -> list[str]:
    """Return what cleaning up had to add to an error."""
    return list(getattr(error, "__notes__", ()))


def _end_with(error: BoardclusterError, *, notes: list[str]) -> NoReturn:
    console.show_error(error)
    for note in notes:
        console.say_last(note)
    sys.exit(error.exit_code)
