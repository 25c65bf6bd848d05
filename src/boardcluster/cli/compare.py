"""``boardcluster compare``: campaigns, profiles, clusters, engines, papers, two at a time."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.analysis import Cell, summarise, untrusted
from boardcluster.cli.console import print_json, print_table, say
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.errors import ClusterError, EmptySelectionError, UsageError
from boardcluster.records import AttemptState, Campaign, Result, Verdict
from boardcluster.store import Store

if TYPE_CHECKING:
    from boardcluster.analysis.sides import Point, Side, SideComparison
    from boardcluster.report.compared import Compared

__all__ = ["compare", "register"]

_SUFFIXES = (".html", ".md", ".csv")
_HOW = (
    "a campaign by id or name, profile:NAME, engine:NAME, cluster:NAME or cluster:NAME/CAMPAIGN, "
    "or published:TABLE?column=value"
)


class _Kind(StrEnum):
    """What a side may be; a side without one of these words is a campaign."""

    CAMPAIGN = "campaign"
    PROFILE = "profile"
    CLUSTER = "cluster"
    ENGINE = "engine"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One side as it was asked for.

    Attributes:
        text: as it was written.
        kind: what it is.
        name: what stands behind the colon.
        where: columns of a published table, with their values.
    """

    text: str
    kind: _Kind
    name: str
    where: Mapping[str, str]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="compare",
        epilog="Examples: boardcluster compare profile:default profile:upstream\n\n"
        "boardcluster compare quick 'published:lee-oh-park-2021-table-14?storage=UFS'",
    )(_compare)


def _compare(
    first: Annotated[str, typer.Argument(metavar="A", help=f"One side: {_HOW}.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other side, likewise.")],
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Let tainted runs count, named as such.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write it to a file, replaced if there, that ends with .html, .md or .csv.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put two sides beside each other: each mean with its interval, and their ratios.

    A cell of A is compared with the cell of B that is equal in all but what tells the sides apart.
    """
    if output is not None and as_json:
        raise UsageError("--output and --json are two ways of one answer", hint="leave one out")
    if output is not None and output.suffix not in _SUFFIXES:
        raise UsageError(
            f"{output} ends with none of {', '.join(_SUFFIXES)}", hint="choose one of these endings"
        )
    comparison = compare(
        first, second, home_folder(home, cluster), tainted=tainted, homes=_home_of(home)
    )
    if as_json:
        print_json(_document(comparison))
    elif output is not None:
        _write(comparison, output)
        say(f"comparison: {output}")
    else:
        _print(comparison)


def _home_of(home: Path | None) -> Callable[[str], Path]:
    """Where other clusters are: beside the one of --home, or where all clusters have theirs."""

    def found(name: str) -> Path:
        if home is not None and (home.absolute().parent / name).is_dir():
            return home.absolute().parent / name
        return home_folder(None, name)

    return found


def compare(
    first: str,
    second: str,
    home: Path,
    *,
    tainted: bool = False,
    homes: Callable[[str], Path] = lambda name: home_folder(None, name),
) -> SideComparison:
    """Compare two sides that are named as on the command line.

    Args:
        first: one side.
        second: the other one.
        home: state folder of the cluster whose runs are meant where a side names no other.
        tainted: whether tainted runs count.
        homes: the state folder of a cluster by its name.

    Raises:
        UsageError: a side cannot be read, or there is no such thing; the nearest is offered.
        ClusterError: there is no such cluster.
        EmptySelectionError: a side has no run that counts, or they have no cell in common.
    """
    from boardcluster.analysis.sides import compare_sides  # noqa: PLC0415

    asked = [_read(text) for text in (first, second)]
    against_paper = any(row.kind is _Kind.PUBLISHED for row in asked)
    loader = _Loader(home=home, homes=homes, tainted=tainted, against_paper=against_paper)
    sides = [loader.side(row) for row in asked]
    comparison = compare_sides(*sides)
    if not comparison.matches:
        raise _nothing_in_common(*sides)
    return comparison


def _read(text: str) -> _Asked:
    """Read one side.

    Raises:
        UsageError: it is empty, or a word before the colon is not known.
    """
    from boardcluster.cli.runs import nearest  # noqa: PLC0415

    word, colon, name = text.partition(":")
    if not text.strip() or (colon and not name.strip()):
        raise UsageError(f"{text!r} names nothing to compare", hint=f"name {_HOW}")
    if not colon or "/" in word:
        kind = _Kind.CLUSTER if "/" in text else _Kind.CAMPAIGN
        return _Asked(text, kind, text, {})
    if word not in set(_Kind):
        raise UsageError(
            f"{text!r}: {word!r} is nothing that can be compared; did you mean"
            f' "{nearest(word, list(_Kind)).partition(",")[0]}"?',
            hint=f"name {_HOW}",
        )
    if word != _Kind.PUBLISHED:
        return _Asked(text, _Kind(word), name, {})
    table, _, query = name.partition("?")
    where = {}
    for part in filter(None, query.split("&")):
        column, equals, value = part.partition("=")
        if not equals or not column:
            raise UsageError(
                f"{text!r}: {part!r} is not column=value",
                hint="write it as published:TABLE?column=value&column=value",
            )
        where[column] = value
    return _Asked(text, _Kind.PUBLISHED, table, where)


class _Loader:
    """Reads sides; each store once."""

    def __init__(
        self, *, home: Path, homes: Callable[[str], Path], tainted: bool, against_paper: bool
    ) -> None:
        self._home = home
        self._homes = homes
        self._tainted = tainted
        self._against_paper = against_paper
        self._campaigns: dict[Path, tuple[Campaign, ...]] = {}
        self._results: dict[tuple[Path, str | None], tuple[Result, ...]] = {}

    def side(self, asked: _Asked) -> Side:
        """Return one side.

        Raises:
            BoardclusterError: see ``compare``.
        """
        if asked.kind is _Kind.PUBLISHED:
            from boardcluster.catalog.conditions import published_side  # noqa: PLC0415
            from boardcluster.catalog.published import read_index  # noqa: PLC0415

            return published_side(asked.name, asked.where, index=read_index(), asked=asked.text)
        if asked.kind is _Kind.CLUSTER:
            return self._cluster_side(asked)
        if asked.kind is _Kind.CAMPAIGN:
            return self._campaign_side(asked, self._home, asked.name)
        results = self._read(self._home, None)
        attribute = asked.kind.value
        there = sorted({str(getattr(row.trial, attribute)) for row in results})
        if asked.name not in there:
            raise _unknown(attribute, asked.name, there, self._home)
        chosen = [row for row in results if str(getattr(row.trial, attribute)) == asked.name]
        return self._own(asked.text, f"{attribute} {asked.name}", chosen, self._home)

    def _cluster_side(self, asked: _Asked) -> Side:
        home, campaign = self._place(asked.name)
        if campaign:
            return self._campaign_side(asked, home, campaign)
        results = self._read(home, None)
        return self._own(asked.text, f"cluster {self._cluster_name(home)}", results, home)

    def _place(self, name: str) -> tuple[Path, str]:
        """Part ``NAME/CAMPAIGN`` or ``FOLDER/CAMPAIGN`` into the home and the campaign."""
        if name.startswith(("/", ".", "~")):
            try:
                folder = Path(name).expanduser()
            except RuntimeError as error:  # a user that this machine does not know
                raise ClusterError(
                    f"there is no cluster in {name}", hint="name a folder, or a cluster by its name"
                ) from error
            if folder.is_dir() or not folder.parent.is_dir():
                return folder, ""
            return folder.parent, folder.name
        cluster, _, campaign = name.partition("/")
        return self._homes(cluster), campaign

    def _cluster_name(self, home: Path) -> str:
        names = dict.fromkeys(row.cluster for row in self._all_campaigns(home))
        return ", ".join(names) or home.name

    def _all_campaigns(self, home: Path) -> tuple[Campaign, ...]:
        if home not in self._campaigns:
            if not home.is_dir():
                raise ClusterError(
                    f"there is no cluster in {home}",
                    hint="name one with --cluster, --home, cluster:NAME or the path of its home",
                )
            with Store.open(home, read_only=True) as store:
                self._campaigns[home] = store.campaigns()
        return self._campaigns[home]

    def _read(self, home: Path, campaign: str | None) -> tuple[Result, ...]:
        self._all_campaigns(home)  # says that there is no cluster
        if (home, campaign) not in self._results:
            with Store.open(home, read_only=True) as store:
                self._results[home, campaign] = store.results(campaign)
        return self._results[home, campaign]

    def _campaign_side(self, asked: _Asked, home: Path, name: str) -> Side:
        campaigns = self._all_campaigns(home)
        found = [row for row in campaigns if row.id == name]
        found = found or [row for row in campaigns if row.name == name]
        if not found:
            there = [word for row in campaigns for word in (row.id, row.name) if word]
            raise _unknown("campaign", name, list(dict.fromkeys(there)), home)
        chosen = found[-1]
        others = ", ".join(row.id for row in found[:-1])
        ambiguous = (
            f"{len(found)} campaigns are called {name}: this is the latest, {chosen.id};"
            f" name another by its id: {others}"
        )
        notes = [ambiguous] if others else []
        named = f"{chosen.name} ({chosen.id})" if chosen.name else chosen.id
        title = f"campaign {named} on cluster {chosen.cluster}"
        return self._own(asked.text, title, self._read(home, chosen.id), home, notes=notes)

    def _own(
        self,
        name: str,
        title: str,
        results: Sequence[Result],
        home: Path,
        *,
        notes: Sequence[str] = (),
    ) -> Side:
        from boardcluster.analysis.sides import own_side  # noqa: PLC0415

        cells = summarise(results, tainted=self._tainted)
        if not cells:
            raise _nothing_counts(name, results, home, tainted=self._tainted)
        left_out = sum(len(cell.left_out) for cell in cells)
        left_out += sum(len(row.results) for row in untrusted(results, tainted=self._tainted))
        if left_out:
            notes = [*notes, f"{left_out} tainted runs are left out; --tainted lets them count"]
        if counted := sum(cell.counted(Verdict.TAINTED) for cell in cells):
            notes = [*notes, f"{counted} of these runs are tainted"]
        if not self._against_paper:
            return own_side(name, title, cells, notes=notes)
        from boardcluster.catalog.conditions import machine_of  # noqa: PLC0415

        return own_side(
            name, title, cells, defaults=_defaults(cells), machine_of=machine_of, notes=notes
        )


def _defaults(cells: Sequence[Cell]) -> dict[str, dict[str, str]]:
    """What parameters are where a trial does not set them; papers name them one by one."""
    from boardcluster.workloads import load_workload  # noqa: PLC0415

    return {
        name: {
            f"{name}.{key}": parameter.default
            for key, parameter in load_workload(name).parameters.items()
        }
        for name in {cell.workload for cell in cells if not cell.is_mix}
    }


# What is wrong


def _unknown(what: str, name: str, there: Sequence[str], home: Path) -> EmptySelectionError:
    from boardcluster.cli.runs import nearest  # noqa: PLC0415

    if not there:
        return EmptySelectionError(
            f"no runs in {home}", hint="run something first: `boardcluster run wordcount`"
        )
    return EmptySelectionError(
        f"no {what} {name!r} in {home}", hint=f"nearest: {nearest(name, list(there))}"
    )


def _nothing_counts(
    name: str, results: Sequence[Result], home: Path, *, tainted: bool
) -> EmptySelectionError:
    """Say why a side has no run that counts."""
    if not results:
        return EmptySelectionError(
            f"{name}: no runs in {home}", hint="run something first: `boardcluster run wordcount`"
        )
    spoilt = sum(len(row.results) for row in untrusted(results, tainted=tainted))
    states = Tally(str(row.attempt.state) if row.attempt else "pending" for row in results)
    if spoilt:
        return EmptySelectionError(
            f"{name}: no run counts: all {spoilt} verified runs are tainted or invalid",
            hint="let tainted ones count with --tainted, or see `boardcluster results` for why",
        )
    measured = states.pop(str(AttemptState.OK), 0)
    said = ", ".join(f"{count} {state}" for state, count in states.items())
    aside = f"{measured} ok are warm-ups or own programs" if measured else ""
    return EmptySelectionError(
        f"{name}: no run counts: {', '.join(part for part in (said, aside) if part)}",
        hint="see `boardcluster results` for the reasons",
    )


def _nothing_in_common(first: Side, second: Side) -> EmptySelectionError:
    """Say what each side has, and which two cells are nearest."""
    from boardcluster.analysis.sides import nearest_points  # noqa: PLC0415

    lines = [
        "A and B have no cell in common",
        *(f"{letter} has {_has(side)}" for letter, side in (("A", first), ("B", second))),
    ]
    near = nearest_points(first, second)
    if near is not None:
        one, other, names = near
        differ = ", ".join(_difference(name, one, other) for name in names)
        lines.append(f"nearest: {_named(one)} and {_named(other)} differ in {differ}")
    return EmptySelectionError(
        "\n".join(lines), hint="choose sides that ran the same work, or run what is missing"
    )


def _has(side: Side) -> str:
    """Workloads with engines and how often each is there."""
    tally = Tally(_named(point) for point in side.points)
    shown = [f"{name}" for name in list(tally)[:6]]
    more = len(tally) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _named(point: Point) -> str:
    at = point.conditions
    parts = [str(at[name]) for name in ("workload", "engine") if name in at]
    parts = parts or [point.quantity.replace("_", " ")]
    if at.get("size_bytes"):
        from boardcluster.units import format_bytes  # noqa: PLC0415

        parts.append(format_bytes(int(at["size_bytes"])))
    if "workers" in at:
        parts.append("1 worker" if at["workers"] == 1 else f"{at['workers']} workers")
    return " ".join(parts)


def _difference(name: str, one: Point, other: Point) -> str:
    if name == "quantity":
        return f"what was measured ({one.quantity} against {other.quantity})"
    words = re.sub(r"_bytes$", "", name).replace("_", " ")
    return f"{words} ({one.conditions[name]} against {other.conditions[name]})"


# Showing


def _print(comparison: SideComparison) -> None:
    compared = _described(comparison)
    say(compared.headline)
    for line in compared.sides:
        say(line)
    for line in compared.apart:
        say(f"apart by {line}")
    for table in compared.tables:
        print_table(
            table.caption,
            [column.title for column in table.columns],
            [list(row) for row in table.rows],
        )
        if table.note:
            say(table.note)
    if compared.machines:
        say("what differs between the machines and settings:")
        for line in compared.machines:
            say(f"  {line}")
    for line in compared.notes:
        say(f"note: {line}")


def _described(comparison: SideComparison) -> Compared:
    from boardcluster.report.compared import describe  # noqa: PLC0415

    return describe(comparison)


def _write(comparison: SideComparison, path: Path) -> None:
    from boardcluster.report.compared import (  # noqa: PLC0415
        comparison_frame,
        render_comparison,
    )
    from boardcluster.report.export.writers import (  # noqa: PLC0415
        Format,
        whole_file,
        write_frame,
    )

    if path.suffix == ".csv":
        write_frame(comparison_frame(comparison), path, to=Format.CSV, force=True)
        return
    text = render_comparison(_described(comparison), markdown=path.suffix == ".md")
    with whole_file(path, force=True) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _document(comparison: SideComparison) -> dict[str, object]:
    """What ``--json`` prints: numbers as they are, and the words beside them."""
    from boardcluster.report.compared import comparison_frame  # noqa: PLC0415

    compared = _described(comparison)
    frame = comparison_frame(comparison)
    names = [field.name for field in frame.fields]
    return {
        "headline": compared.headline,
        "sides": [
            {
                "name": side.name,
                "title": side.title,
                "published": side.is_published,
                "emulated": side.emulated,
                "twins": side.twins,
                "runs": len(side.results),
            }
            for side in (comparison.first, comparison.second)
        ],
        "apart": comparison.apart,
        "rows": [dict(zip(names, row, strict=True)) for row in frame.rows],
        "machines": comparison.machines,
        "notes": compared.notes,
        "method": compared.method,
    }
