"""Questions to whoever is at the terminal."""

from __future__ import annotations

import sys

import typer

from boardcluster.cli.console import say, say_last
from boardcluster.errors import UsageError
from boardcluster.foreign import visible

__all__ = ["ask_yes", "can_ask", "confirmed"]


def can_ask() -> bool:
    """Whether somebody is at the terminal to be asked."""
    return sys.stdin.isatty()


def ask_yes(question: str, *, default: bool = False) -> bool:
    """Ask a question that is answered by yes or no, beside the results; Ctrl-D is a no."""
    try:
        return typer.confirm(visible(question), default=default, err=True)
    except typer.Abort:
        say_last("")  # what follows begins in a line of its own
        return False


def confirmed(question: str) -> bool:
    """Ask before something is done that cannot be undone; say so if the answer is no.

    Raises:
        UsageError: nobody is here to answer.
    """
    if not can_ask():
        raise UsageError(
            "this needs confirmation, but there is no terminal to ask on", hint="add --yes"
        )
    if ask_yes(question):
        return True
    say("nothing was changed")
    return False
