"""Loads the two sides of a comparison, each named by text, and compares them."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from boardcluster.analysis.cells import Cell, summarise, untrusted
from boardcluster.analysis.result_sets import (
    ResultPoint,
    ResultSet,
    ResultSetComparison,
    compare_result_sets,
    nearest_points,
    own_result_set,
)
from boardcluster.catalog.conditions import machine_of, published_result_set
from boardcluster.catalog.published import read_index
from boardcluster.errors import ClusterError, EmptySelectionError, UsageError
from boardcluster.factors import setting_value
from boardcluster.queries.names import SIDES
from boardcluster.queries.runs import nearest
from boardcluster.queries.searches import without_searches
from boardcluster.records import AttemptState, Campaign, Result, Verdict
from boardcluster.spec.twin import part_name
from boardcluster.store import Store
from boardcluster.units import format_bytes, format_count

__all__ = ["compare_named"]


class _Kind(StrEnum):
    """What a side may be; a side without one of these words is a campaign."""

    CAMPAIGN = "campaign"
    PROFILE = "profile"
    CLUSTER = "cluster"
    ENGINE = "engine"
    SETTING = "setting"
    BUNDLE = "bundle"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One side as it was asked for."""

    text: str
    """As it was written."""
    kind: _Kind
    """What it is."""
    name: str
    """The text after the colon."""
    where: Mapping[str, str]
    """Columns of a published table, with their values."""


def compare_named(
    first: str,
    second: str,
    home: Path,
    *,
    tainted: bool = False,
    homes: Callable[[str], Path],
    bundles: Callable[[Path], Path],
    defaults: Callable[[str], Mapping[str, str]],
) -> ResultSetComparison:
    """Compare two sides that are named by text.

    Args:
        first: one side.
        second: the other one.
        home: state folder of the cluster whose runs are meant where a side names no other.
        tainted: whether tainted runs count.
        homes: the state folder of a cluster by its name.
        bundles: a state folder with the records of a bundle, by the bundle's file.
        defaults: what a workload's parameters are where a trial does not set them, by its name.

    Raises:
        UsageError: a side cannot be read, or there is no such thing; the nearest is offered.
        ClusterError: there is no such cluster.
        EmptySelectionError: a side has no run that counts, or they have no cell in common.
    """
    asked = [_read(text) for text in (first, second)]
    against_paper = any(row.kind is _Kind.PUBLISHED for row in asked)
    loader = _Loader(
        home=home,
        homes=homes,
        bundles=bundles,
        defaults=defaults,
        tainted=tainted,
        against_paper=against_paper,
    )
    sides = [loader.side(row) for row in asked]
    comparison = compare_result_sets(*sides)
    if not comparison.matches:
        raise _nothing_in_common(*sides)
    return comparison


def _read(text: str) -> _Asked:
    """Read one side.

    Raises:
        UsageError: it is empty, or a word before the colon is not known.
    """
    word, colon, name = text.partition(":")
    if not text.strip() or (colon and not name.strip()):
        raise UsageError(f"{text!r} does not name anything to compare", hint=f"name {SIDES}")
    if not colon or "/" in word:
        kind = _Kind.CLUSTER if "/" in text else _Kind.CAMPAIGN
        return _Asked(text, kind, text, {})
    if word not in set(_Kind):
        raise UsageError(
            f"{text!r}: {word!r} cannot be compared; did you mean"
            f' "{nearest(word, list(_Kind)).partition(",")[0]}"?',
            hint=f"name {SIDES}",
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
        self,
        *,
        home: Path,
        homes: Callable[[str], Path],
        bundles: Callable[[Path], Path],
        defaults: Callable[[str], Mapping[str, str]],
        tainted: bool,
        against_paper: bool,
    ) -> None:
        self._home = home
        self._homes = homes
        self._bundles = bundles
        self._defaults = defaults
        self._tainted = tainted
        self._against_paper = against_paper
        self._campaigns: dict[Path, tuple[Campaign, ...]] = {}
        self._results: dict[tuple[Path, str | None], tuple[Result, ...]] = {}

    def side(self, asked: _Asked) -> ResultSet:
        """Return one side.

        Raises:
            BoardclusterError: see ``compare``.
        """
        if asked.kind is _Kind.PUBLISHED:
            return published_result_set(
                asked.name, asked.where, index=read_index(), asked=asked.text
            )
        if asked.kind is _Kind.CLUSTER:
            return self._cluster_side(asked)
        if asked.kind is _Kind.BUNDLE:
            return self._bundle_side(asked)
        if asked.kind is _Kind.CAMPAIGN:
            return self._campaign_side(asked, self._home, asked.name)
        results = self._read(self._home, None)
        if asked.kind is _Kind.SETTING:
            return self._setting_side(asked, results)
        attribute = asked.kind.value
        there = sorted({str(getattr(row.trial, attribute)) for row in results})
        # A profile that is a file is stored by its whole path.
        paths = (part_name(asked.name, folder) for folder in (Path(), self._home))
        name = next((name for name in (asked.name, *paths) if name in there), None)
        if name is None:
            raise _unknown(attribute, asked.name, there, self._home)
        chosen = [row for row in results if str(getattr(row.trial, attribute)) == name]
        return self._own(asked.text, f"{attribute} {asked.name}", chosen, self._home)

    def _setting_side(self, asked: _Asked, results: Sequence[Result]) -> ResultSet:
        """Return the runs with one value of a setting; where none is named, those without one."""
        key, _, value = asked.name.partition("=")
        keys = {key for row in results for key in row.trial.settings}
        if results and not keys:
            raise EmptySelectionError(
                f"no run in {self._home} has an engine setting of its own",
                hint="set one with --setting, or vary it in [matrix.settings] of a campaign file",
            )
        if key not in keys:
            raise _unknown("setting", key, sorted(keys), self._home)
        by_value: dict[str, list[Result]] = {}
        for row in results:
            found = setting_value(key, row.trial.settings.get(key, ""))
            by_value.setdefault(found, []).append(row)
        value = setting_value(key, value)
        if value not in by_value:
            named = [f"{key}={each}" for each in sorted(by_value)]
            raise _unknown("setting", asked.name, named, self._home)
        chosen = by_value[value]
        title = f"{key} {value}" if value else f"{key} as the profile has it"
        return self._own(asked.text, title, chosen, self._home)

    def _cluster_side(self, asked: _Asked) -> ResultSet:
        home, campaign = self._place(asked.name)
        if campaign:
            return self._campaign_side(asked, home, campaign)
        results = self._read(home, None)
        return self._own(asked.text, f"cluster {self._cluster_name(home)}", results, home)

    def _bundle_side(self, asked: _Asked) -> ResultSet:
        home = self._bundles(Path(asked.name).expanduser())
        results = self._read(home, None)
        title = f"bundle {Path(asked.name).name} of the cluster {self._cluster_name(home)}"
        return self._own(asked.text, title, results, home)

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
                found = store.results(campaign, all_attempts=True)
            self._results[home, campaign] = without_searches(found, home, asked=campaign)
        return self._results[home, campaign]

    def _campaign_side(self, asked: _Asked, home: Path, name: str) -> ResultSet:
        campaigns = self._all_campaigns(home)
        found = [row for row in campaigns if row.id == name]
        found = found or [row for row in campaigns if row.name == name]
        if not found:
            there = [word for row in campaigns for word in (row.id, row.name) if word]
            raise _unknown("campaign", name, list(dict.fromkeys(there)), home)
        chosen = found[-1]
        others = ", ".join(row.id for row in found[:-1])
        ambiguous = (
            f"{len(found)} campaigns are called {name}; the latest, {chosen.id}, is used;"
            f" to choose another, give its id: {others}"
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
    ) -> ResultSet:
        cells = summarise(results, tainted=self._tainted)
        if not cells:
            raise _nothing_counts(name, results, home, tainted=self._tainted)
        aside = [run for cell in cells for run in cell.left_out]
        aside += [run for row in untrusted(results, tainted=self._tainted) for run in row.results]
        # Not runs that were repeated, and whose repeat counts.
        left_out = len({run.trial.id for run in aside} - _counted_trials(cells))
        if left_out:
            runs, them = ("run is", "it") if left_out == 1 else ("runs are", "them")
            notes = [*notes, f"{left_out} tainted {runs} left out; --tainted includes {them}"]
        if counted := sum(cell.counted(Verdict.TAINTED) for cell in cells):
            verb = "is" if counted == 1 else "are"
            notes = [*notes, f"{counted} of these runs {verb} tainted"]
        if not self._against_paper:
            return own_result_set(name, title, cells, notes=notes)
        workloads = {cell.workload for cell in cells if not cell.is_mix}
        return own_result_set(
            name,
            title,
            cells,
            defaults={workload: dict(self._defaults(workload)) for workload in workloads},
            machine_of=machine_of,
            notes=notes,
        )


# What is wrong


def _unknown(what: str, name: str, there: Sequence[str], home: Path) -> EmptySelectionError:
    if not there:
        return EmptySelectionError(
            f"no runs in {home}", hint="run something first: `boardcluster run wordcount`"
        )
    return EmptySelectionError(
        f"no {what} {name!r} in {home}", hint=f"nearest: {nearest(name, list(there))}"
    )


def _counted_trials(cells: Iterable[Cell]) -> set[str]:
    return {run.trial.id for cell in cells for run in cell.results}


def _nothing_counts(
    name: str, results: Sequence[Result], home: Path, *, tainted: bool
) -> EmptySelectionError:
    """Say why a side has no run that counts."""
    if not results:
        return EmptySelectionError(
            f"{name}: no runs in {home}", hint="run something first: `boardcluster run wordcount`"
        )
    left_out = (run for row in untrusted(results, tainted=tainted) for run in row.results)
    spoilt = len({run.trial.id for run in left_out})
    latest = {row.trial.id: row for row in results}  # of several tries the last
    states = Tally(str(row.attempt.state) if row.attempt else "pending" for row in latest.values())
    if spoilt:
        return EmptySelectionError(
            f"{name}: no run counts: all {spoilt} verified runs are tainted or invalid",
            hint="use --tainted to include them, or see `boardcluster results` for reasons",
        )
    measured = states.pop(str(AttemptState.OK), 0)
    said = ", ".join(f"{count} {state}" for state, count in states.items())
    aside = f"{measured} ok, but warm-ups or your own programs" if measured else ""
    return EmptySelectionError(
        f"{name}: no run counts: {', '.join(part for part in (said, aside) if part)}",
        hint="see `boardcluster results` for the reasons",
    )


def _nothing_in_common(first: ResultSet, second: ResultSet) -> EmptySelectionError:
    """Say what each side has, and which two cells are nearest."""
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


def _has(side: ResultSet) -> str:
    """Workloads with engines and how often each is there."""
    tally = Tally(_named(point) for point in side.points)
    shown = [f"{name}" for name in list(tally)[:6]]
    more = len(tally) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _named(point: ResultPoint) -> str:
    at = point.conditions
    parts = [str(at[name]) for name in ("workload", "engine") if name in at]
    parts = parts or [point.quantity.replace("_", " ")]
    if at.get("size_bytes"):
        parts.append(format_bytes(int(at["size_bytes"])))
    if "workers" in at:
        parts.append(format_count(int(at["workers"]), "worker"))
    return " ".join(parts)


def _difference(name: str, one: ResultPoint, other: ResultPoint) -> str:
    if name == "quantity":
        return f"what was measured ({one.quantity} against {other.quantity})"
    words = re.sub(r"_bytes$", "", name).replace("_", " ")
    return f"{words} ({one.conditions[name]} against {other.conditions[name]})"
