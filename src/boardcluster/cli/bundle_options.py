"""The options of ``export --bundle``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import CacheOption, ChosenCluster
from boardcluster.errors import UsageError
from boardcluster.units import format_bytes, format_count

if TYPE_CHECKING:
    from boardcluster.api import WrittenBundle

__all__ = ["BundleOptions", "write_one_bundle"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What only a bundle has."""

    bundle: Annotated[
        bool,
        typer.Option(
            "--bundle",
            help="Write all that others need to check the results to one file: records, logs, "
            "telemetry, report, and a script that computes the report again. Secrets and names "
            "are replaced.",
        ),
    ] = False
    title: Annotated[str | None, typer.Option(help="Title of the bundle.", show_default=False)] = (
        None
    )
    author: Annotated[
        list[str] | None,
        typer.Option(
            help="An author of the bundle, with the ORCID after the name if there is one; repeat "
            "for several. Default: anonymous.",
            show_default=False,
        ),
    ] = None
    licence: Annotated[
        str | None,
        typer.Option(
            help="SPDX identifier of the licence of the bundle's data, such as CC-BY-4.0.",
            show_default=False,
        ),
    ] = None
    cache: CacheOption = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON about the bundle.")] = False

    def refuse(self) -> None:
        """Refuse what belongs to a bundle where none is asked for.

        Raises:
            UsageError: names it.
        """
        given = {"--title": self.title, "--author": self.author, "--licence": self.licence}
        used = [name for name, value in given.items() if value]
        used += ["--json"] if self.as_json else []
        if used:
            raise UsageError(
                f"{', '.join(used)} can only be used with --bundle", hint="add --bundle"
            )


def write_one_bundle(
    at: ChosenCluster,
    output: Path | None,
    options: BundleOptions,
    *,
    campaign: str | None,
    tainted: bool,
    force: bool,
) -> None:
    """Write a bundle, and say what is in it.

    Raises:
        UsageError: there is no file to write to.
    """
    if output is None:
        raise UsageError("a bundle needs a file to write to", hint="name it with --output")
    from boardcluster.api import export_bundle  # noqa: PLC0415  slow to load

    reporter = Reporter()
    with reporter.following():
        written = export_bundle(
            output / "bundle.zip" if output.is_dir() else output,
            at.cluster,
            home=at.home,
            cache=options.cache,
            campaign=campaign,
            tainted=tainted,
            title=options.title or "",
            authors=options.author or (),
            licence=options.licence or "",
            force=force,
            follow=reporter.progress,
        )
    print_json(written) if options.as_json else _print(written)


def _print(written: WrittenBundle) -> None:
    say(
        f"bundle: {written.path} ({format_bytes(written.size_bytes)}, "
        f"{format_count(written.files, 'file')}, {format_count(written.runs, 'run')} of "
        f"{format_count(written.campaigns, 'campaign')})"
    )
    say(f"SHA-256 of its manifest: {written.sha256}")
    counted = [f"{count} {sort}" for sort, count in sorted(written.replaced.items())]
    say(
        f"replaced: {', '.join(counted) or 'nothing'}; not everything can be recognised, so look "
        "through it before you publish it"
    )
    for what, names in (
        ("not searched for secrets, because they are not text", written.unread),
        ("left out, because they are larger than 1 GiB", written.left_out),
    ):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            say(f"{what}: {', '.join(names[:_SHOWN])}{more}")
