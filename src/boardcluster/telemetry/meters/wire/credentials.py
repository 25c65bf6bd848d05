"""Secrets of meters: from a file or a variable, never from an option, never in a message."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from boardcluster.errors import MeterError, SpecError
from boardcluster.telemetry.meters.base import Option

__all__ = ["Secret", "secret_of", "secret_options"]

_LARGEST_BYTES = 4096
_OTHERS_BITS = 0o077


class Secret:
    """A secret that says itself only when asked; its text form hides it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(hidden)"


def secret_options(name: str, what: str) -> tuple[Option, Option]:
    """Return the two options that say where a secret is.

    Args:
        name: of the secret, e.g. ``password``.
        what: it is, for the help.
    """
    return (
        Option(name=f"{name}_file", help=f"file that holds {what}", default=""),
        Option(name=f"{name}_variable", help=f"environment variable with {what}", default=""),
    )


def secret_of(settings: Mapping[str, str], name: str) -> Secret:
    """Read a secret; empty if no option says where it is.

    Raises:
        SpecError: both options are given.
        MeterError: the file or the variable is not there, or others may read the file.
    """
    file, variable = settings[f"{name}_file"], settings[f"{name}_variable"]
    if file and variable:
        raise SpecError(
            f'a meter has both "{name}_file" and "{name}_variable"',
            hint="leave one of them out of cluster.toml",
        )
    if variable:
        if variable not in os.environ:
            raise MeterError(
                f"the environment variable {variable} is not set",
                hint=f"set it, or use {name}_file in cluster.toml",
            )
        return Secret(os.environ[variable])
    return Secret(_first_line(Path(file).expanduser())) if file else Secret("")


def _first_line(path: Path) -> str:
    try:
        if path.stat().st_mode & _OTHERS_BITS:
            raise MeterError(
                f"{path} holds a secret, but others may read it", hint=f"run `chmod 600 {path}`"
            )
        with path.open("rb") as stream:
            text = stream.read(_LARGEST_BYTES).decode(errors="replace")
    except OSError as error:
        raise MeterError(
            f"{path}: cannot be read: {error.strerror}", hint="write the secret into it"
        ) from error
    return text.partition("\n")[0].strip()
