"""``boardcluster import``: the results of a bundle into a store of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import HomeOption, JsonOption, again
from boardcluster.units import format_count

__all__ = ["EPILOG", "command"]

EPILOG = (
    "Examples: boardcluster import paper.zip --cluster theirs\n\n"
    "boardcluster compare cluster:default cluster:theirs"
)


def command(
    bundle: Annotated[
        Path, typer.Argument(help="A file that `boardcluster export --bundle` wrote.")
    ],
    home: HomeOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            help="Name of the cluster for the imported store. Default: the name of the file.",
            show_default=False,
        ),
    ] = None,
    sha256: Annotated[
        str | None,
        typer.Option(
            help="Refuse the bundle unless its manifest has this SHA-256, which its authors "
            "published.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put the results of a bundle into a store of its own, to look at them like your own.

    Each file is first compared with the bundle's manifest. An import that is stopped leaves
    nothing; a second one does nothing.
    """
    from boardcluster.api import import_bundle  # noqa: PLC0415  slow to load

    reporter = Reporter()
    with reporter.following():
        found = import_bundle(
            bundle, cluster or "", home=home, sha256=sha256 or "", follow=reporter.progress
        )
    if as_json:
        print_json(found)
        return
    if found.already:
        say(f"this bundle is already in {found.home}; nothing was done")
        return
    options = again(home, cluster or bundle.stem)
    say(
        f"imported: {format_count(found.info.attempts, 'run')} of "
        f"{format_count(len(found.info.campaigns), 'campaign')} on the cluster "
        f"{found.info.cluster}, into {found.home}"
    )
    say(f"SHA-256 of its manifest: {found.sha256}")
    say(f"next: boardcluster results{options}, or boardcluster compare cluster:OWN bundle:{bundle}")
