"""Options that belong together reach a command as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from boardcluster.cli.grouped import grouped


@dataclass(frozen=True, slots=True)
class Size:
    width: Annotated[int, typer.Option(min=1, help="How wide.")] = 2
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def command(
    what: Annotated[str, typer.Argument()],
    size: Size,
    loud: Annotated[bool, typer.Option("--loud")] = False,
) -> None:
    """Say what was given."""
    typer.echo(f"{what} {size.width} {size.names} {loud}")


def run(*words: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(grouped(command))
    done = CliRunner().invoke(app, [*words])
    return done.exit_code, done.output


def test_each_field_is_an_option_with_its_default() -> None:
    assert run("box") == (0, "box 2 None False\n")
    assert run("box", "--width", "5", "--name", "a", "--name", "b", "--loud") == (
        *(0, "box 5 ['a', 'b'] True\n"),
    )


def test_help_and_checks_are_those_of_the_fields() -> None:
    code, said = run("--help")
    assert code == 0
    assert "How wide." in said
    assert "Say what was given." in said
    assert run("box", "--width", "0")[0] == 2
