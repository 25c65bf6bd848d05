"""Which of many differences between two configurations makes a cell slower: measured, not guessed.

Each step is a campaign of its own, whose name follows from what it compares. So a step that is done
is never run again, one that was interrupted goes on, and what is in the store is the only record.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.analysis.bisecting import fewest_sets, most_sets, smallest_set
from boardcluster.analysis.inference import EffectVerdict, MeasuredRatio, compare, observe
from boardcluster.campaign.begin import CampaignRequest, Start
from boardcluster.campaign.bisect_sides import (
    BisectSides,
    PropertyDifference,
    bisect_sides,
    cell_key,
    cell_words,
    engine_pairs,
    matrix_of,
    refuse_overlap,
)
from boardcluster.campaign.engine_sides import EnginesRunner
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import run_campaign
from boardcluster.campaign.plan import plan
from boardcluster.campaign.request import campaign_file
from boardcluster.errors import UsageError
from boardcluster.factors import FACTORS
from boardcluster.records import (
    AttemptState,
    CampaignSpec,
    ClusterSpec,
    Result,
    Trial,
    in_cell,
)
from boardcluster.services.declaration import read_spec
from boardcluster.services.settings import of_engine, restarts_daemons
from boardcluster.store import Store
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.units import format_count

__all__ = ["BisectOrder", "BisectOutcome", "BisectPlan", "BisectStep", "plan_bisect", "run_bisect"]

_RUNS_LEAST = 3
"""Fewest runs of each side in a step: an interval of two reaches three times as far."""

_TRIES = 3
"""A step that cannot tell is measured so often in all: noise must not pass for an answer."""

_SHARE = 0.5
"""A set makes the difference if it makes at least this part of it, as a logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOrder:
    """What a user asks for."""

    file: Path
    """The campaign file, whose cells are measured."""
    sides: tuple[str, str]
    """Two engine pairs, or two configurations: see ``bisect_sides``."""
    tainted: bool = False
    """Whether runs that were too disturbed count, too."""
    new: bool = False
    """Whether everything is measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectPlan:
    """What a bisection would do."""

    sides: BisectSides | None
    """The two configurations; None for engine pairs, between which there is nothing."""
    cells: tuple[Trial, ...]
    """The cells of the first step; of later ones the cell that differs most."""
    runs_of_each: int
    """Runs of each side in a step."""
    runs_least: int
    """Runs in all, at least, if the sides differ."""
    runs_most: int
    """At most."""
    run_seconds: float | None
    """What a run takes on average; None if none of the cells was run before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectStep:
    """One comparison."""

    changed: tuple[PropertyDifference, ...]
    """What the second side sets differently; empty for engine pairs."""
    cell: str
    """The cell, in words."""
    ratio: MeasuredRatio | None
    """Second side against the first; None where one has no run that counts."""
    makes_it: bool
    """Whether this is what makes the difference, or enough of it."""
    reason: str = ""
    """Why there is no ratio, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOutcome:
    """What a bisection found."""

    sides: tuple[str, str]
    """What was compared."""
    steps: tuple[BisectStep, ...]
    """Every comparison, in order; the first ones are of all differences together, cell by cell."""
    found: tuple[PropertyDifference, ...]
    """The smallest set that makes the difference; empty where none was shown."""
    words: str
    """The same as a sentence."""


def plan_bisect(home: Path, order: BisectOrder) -> BisectPlan:
    """Return what ``run_bisect`` would do; changes nothing.

    Raises:
        UsageError: the sides cannot be compared, or the file has no cell for them.
        SpecError: the file or a profile is missing or wrong.
    """
    request = campaign_file(order.file)
    declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    sides = None if engine_pairs(order.sides) else bisect_sides(order.sides, declared)
    if sides is not None:
        refuse_overlap(request.spec, sides)
    cells = _cells(request.spec, declared, sides)
    each = max(_RUNS_LEAST, *(row.repetitions for row in request.spec.matrices))
    count = len(sides.differences) if sides else 1
    with Store.open(home, read_only=True) as store:
        typical = store.typical_seconds()
    took = [
        seconds
        for row in cells
        if (seconds := typical.get((row.workload, row.engine, row.size_bytes, row.workers)))
    ]
    first = 2 * each * len(cells)
    return BisectPlan(
        sides=sides,
        cells=cells,
        runs_of_each=each,
        runs_least=first + 2 * each * fewest_sets(count),
        runs_most=_TRIES * (first + 2 * each * most_sets(count)),
        run_seconds=sum(took) / len(took) if took else None,
    )


def _cells(
    spec: CampaignSpec, declared: ClusterSpec, sides: BisectSides | None
) -> tuple[Trial, ...]:
    """Return one trial of each cell that the differences can matter to."""
    planned = plan(replace(spec, seed=0), declared, campaign_id="bisect")
    found: dict[object, Trial] = {}
    for row in planned:
        if not row.warm_up and (sides is None or _own(sides.differences, row)):
            key = cell_key(row, sides) if sides else row.id.rpartition("-")[0]
            found.setdefault(key, row)
    if not found:
        raise UsageError(
            "no cell of the campaign file reads what the two sides set differently",
            hint="name settings of its engines, or give a file with other cells",
        )
    return tuple(found.values())


def _own(changed: Sequence[PropertyDifference], trial: Trial) -> tuple[PropertyDifference, ...]:
    """Those that jobs of a trial's engine can notice."""
    known = of_engine({row.key: row.new for row in changed}, trial.engine)
    return tuple(row for row in changed if row.key in known)


def run_bisect(home: Path, order: BisectOrder, *, cache: Path, follow: Follower) -> BisectOutcome:
    """Find the smallest set of differences that makes a cell slower, or faster.

    1. Measure every cell with all differences and with none, in turn.
    2. Go on with the cell that differs most, if one is shown to differ.
    3. Do so with halves of the differences, and smaller parts, until none can be left out.

    A step of an earlier call that is done is taken from the store. Between engine pairs there is
    nothing, so that they are compared and that is all.

    Raises:
        UsageError: the sides cannot be compared, or the file has no cell for them.
        ClusterError: a node or daemon was lost; the next call goes on.
    """
    planned = plan_bisect(home, order)
    request = campaign_file(order.file)
    if planned.sides is None:
        return _engines_compared(home, order, planned, request, cache=cache, follow=follow)
    search = _Search(home, order, planned, request, cache=cache, follow=follow)
    whole = search.compared(planned.sides.differences, planned.cells)
    shown = [row for row in whole if row.ratio is not None and row.ratio.is_shown]
    if not shown:
        return BisectOutcome(
            sides=order.sides, steps=whole, found=(), words=_not_shown_words(order.sides, whole)
        )
    most = max(shown, key=lambda row: abs(_log(row.ratio)))
    cell = planned.cells[whole.index(most)]
    own = _own(planned.sides.differences, cell)
    steps = [replace(row, makes_it=row in shown) for row in whole]

    def makes_it(changed: tuple[PropertyDifference, ...]) -> bool:
        [step] = search.compared(changed, (cell,), enough=_SHARE * abs(_log(most.ratio)))
        step = replace(step, makes_it=_is_enough(step.ratio, most.ratio))
        follow.line(_step_words(step))
        steps.append(step)
        return step.makes_it

    follow.line(_step_words(most))
    found = smallest_set(own, makes_it)
    parts = steps[len(whole) :]
    last = next((row for row in parts if row.changed == found), most)
    words = _found_words(found, last, most) + (_open_words(parts) if len(found) > 1 else "")
    return BisectOutcome(sides=order.sides, steps=tuple(steps), found=found, words=words)


def _log(ratio: MeasuredRatio | None) -> float:
    return math.log(ratio.value) if ratio else 0.0


def _is_enough(ratio: MeasuredRatio | None, whole: MeasuredRatio | None) -> bool:
    """Whether a set is shown to make the difference, in its direction and enough of it."""
    if ratio is None or whole is None or ratio.verdict is not whole.verdict:
        return False
    return abs(_log(ratio)) >= _SHARE * abs(_log(whole))


def _is_open(ratio: MeasuredRatio | None, enough: float) -> bool:
    """Whether runs do not tell, and a difference that is enough may hide in their scatter."""
    if ratio is None or ratio.verdict is not EffectVerdict.NOT_SHOWN:
        return False
    if ratio.interval is None:
        return True
    ends = (ratio.interval.low, ratio.interval.high)
    return max(abs(math.log(end)) for end in ends) >= enough


class _Search:
    """Makes the comparisons of a bisection: campaigns of the first side and of another one."""

    def __init__(
        self,
        home: Path,
        order: BisectOrder,
        planned: BisectPlan,
        request: CampaignRequest,
        *,
        cache: Path,
        follow: Follower,
    ) -> None:
        if planned.sides is None:
            raise ValueError("engine pairs have no differences to search")
        self._home = home
        self._order = order
        self._sides = planned.sides
        self._cells = planned.cells
        self._each = planned.runs_of_each
        self._request = request
        self._cache = cache
        self._follow = follow
        self._number = self._series()

    def _series(self) -> int:
        """Number of the series of measurements: the latest, or with ``new`` another one."""
        with Store.open(self._home, read_only=True) as store:
            names = [row.name for row in store.campaigns()]
        begun = [row.split("-") for row in names if row.startswith(f"{self._stem()}-")]
        last = max((int(row[-2]) for row in begun), default=0)
        return last + 1 if self._order.new or not last else last

    def _stem(self) -> str:
        said = [*self._order.sides, self._request.spec.name]
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        return f"bisect-{digest[:8]}"

    def compared(
        self,
        changed: tuple[PropertyDifference, ...],
        cells: Sequence[Trial],
        *,
        enough: float = 0.0,
    ) -> tuple[BisectStep, ...]:
        """Compare cells with some differences to the same cells with none; those that read them.

        Where the runs do not tell, and may hide a logarithm of ``enough``, more are made.
        """
        cells = [row for row in cells if _own(changed, row)]
        results: list[Result] = []
        steps: tuple[BisectStep, ...] = ()
        for number in range(_TRIES):
            results += self._measured(changed, cells, number)
            steps = tuple(self._step(changed, row, results) for row in cells)
            if not any(_is_open(row.ratio, enough) for row in steps):
                break
        return steps

    def _measured(
        self, changed: tuple[PropertyDifference, ...], cells: Sequence[Trial], number: int
    ) -> Sequence[Result]:
        """Run both sides of some cells, or take what an earlier call has run."""
        spec = self._spec(changed, cells, number)
        request = CampaignRequest(
            spec=spec, start=Start.CONTINUE, file_bytes=self._request.file_bytes
        )
        done = run_campaign(self._home, request, cache=self._cache, follow=self._follow)
        return done.results

    def _spec(
        self, changed: tuple[PropertyDifference, ...], cells: Sequence[Trial], number: int
    ) -> CampaignSpec:
        restarts = any(restarts_daemons(row.key) for row in changed)
        settings = {row.key: row.new for row in changed}
        matrices = tuple(
            matrix_of(
                cell,
                profile=self._sides.profile,
                settings={**cell.settings, **self._sides.settings, **own},
                repetitions=1 if restarts else self._each,
            )
            for cell in cells
            for own in ({}, settings)
        )
        keys = [cell_key(row, self._sides) for row in cells]
        what = json.dumps([sorted(settings.items()), keys, *([number] if number else [])])
        digest = hashlib.sha256(what.encode()).hexdigest()
        return CampaignSpec(
            name=f"{self._stem()}-{self._number}-{digest[:8]}",
            seed=None,
            policy=self._request.spec.policy,
            matrices=matrices,
            starts=self._each if restarts else 1,
        )

    def _step(
        self, changed: tuple[PropertyDifference, ...], cell: Trial, results: Sequence[Result]
    ) -> BisectStep:
        words = cell_words(cell, self._cells)
        key = cell_key(cell, self._sides)
        rows = [row for row in results if cell_key(row.trial, self._sides) == key]
        new = {row.key: row.new for row in _own(changed, cell)}
        second = [row for row in rows if new.items() <= row.trial.settings.items()]
        first = [row for row in rows if row not in second]
        counted = [
            [row for row in side if _counts(row, tainted=self._order.tainted)]
            for side in (first, second)
        ]
        if not all(counted):
            reasons = [row.attempt.reason for row in rows if row.attempt and row.attempt.reason]
            reasons += [
                why for row in rows if row.measurement for why in row.measurement.verdict_reasons
            ]
            return BisectStep(
                changed=changed,
                cell=words,
                ratio=None,
                makes_it=False,
                reason=f"no run counts of one side: {next(iter(reasons), 'none was made')}",
            )
        ratio = compare(observe(counted[1]), observe(counted[0]))
        return BisectStep(changed=changed, cell=words, ratio=ratio, makes_it=False)


def _counts(row: Result, *, tainted: bool) -> bool:
    """Whether a run is a value of its cell; a warm-up is none."""
    if row.trial.warm_up:
        return False
    ended_well = row.attempt is not None and row.attempt.state is AttemptState.OK
    found = row.measurement
    return ended_well and found is not None and (tainted or in_cell(found))


# Words


def _ratio_words(ratio: MeasuredRatio) -> str:
    span = ratio.interval
    said = f"{ratio.value:.2f} times"
    return f"{said} ({span.low:.2f} to {span.high:.2f}, 95 %)" if span else said


def _step_words(step: BisectStep) -> str:
    if len(step.changed) == 1:
        what = step.changed[0].words
    else:
        what = f"{len(step.changed)} differences" if step.changed else "the second pair"
    if step.ratio is None:
        return f"{step.cell}, {what}: cannot tell, {step.reason}"
    said = f"{step.cell}, {what}: {_ratio_words(step.ratio)}"
    if step.makes_it or step.ratio.is_shown:
        return said
    if step.ratio.verdict is EffectVerdict.NOT_WORTHWHILE:
        return f"{said}, no worthwhile difference"
    return f"{said}, cannot tell"


def _not_shown_words(sides: tuple[str, str], whole: Sequence[BisectStep]) -> str:
    said = "; ".join(_step_words(row) for row in whole)
    open_ = [row.ratio for row in whole if row.ratio is not None]
    more = [row.more_needed for row in open_ if row.verdict is EffectVerdict.NOT_SHOWN]
    known = [row for row in more if row is not None]
    runs = format_count(max(known, default=0), "more run")
    hint = f"; {runs} of each side would show a difference of 5 %" if known else ""
    return f"{sides[1]} is not shown to differ from {sides[0]}: {said}{hint}"


def _found_words(found: Sequence[PropertyDifference], last: BisectStep, most: BisectStep) -> str:
    if last.ratio is None or most.ratio is None:
        raise ValueError("what was found was measured")
    what = " and ".join(row.words for row in found)
    verb = "takes" if len(found) == 1 else "take"
    said = f"{most.cell}: {what} {verb} {_ratio_words(last.ratio)} as long"
    if last is most:
        return said
    return f"{said}; all {len(most.changed)} differences together {_ratio_words(most.ratio)}"


def _open_words(parts: Sequence[BisectStep]) -> str:
    """Say how many smaller sets the runs told nothing of, so that they may be enough, too."""
    count = sum(row.ratio is None or row.ratio.verdict is EffectVerdict.NOT_SHOWN for row in parts)
    if not count:
        return ""
    steps = format_count(count, "step")
    return (
        f"; {steps} could not tell, so fewer of these may be enough; more `repetitions` make this "
        "more certain"
    )


# Engine pairs


def _engines_compared(
    home: Path,
    order: BisectOrder,
    planned: BisectPlan,
    request: CampaignRequest,
    *,
    cache: Path,
    follow: Follower,
) -> BisectOutcome:
    """Compare two engine pairs, as there is nothing between them."""
    runner = EnginesRunner(home, order.sides, cache=cache, follow=follow)
    follow.line(f"nothing lies between {order.sides[0]} and {order.sides[1]}: comparing the two")
    both = runner.run(request, planned.runs_of_each, new=order.new)
    steps = []
    for cell in planned.cells:
        sides: list[Sequence[Result]] = [
            [row for row in side if _same_cell(row.trial, cell)] for side in both
        ]
        counted = [[row for row in side if _counts(row, tainted=order.tainted)] for side in sides]
        ratio = compare(observe(counted[1]), observe(counted[0])) if all(counted) else None
        shown = ratio is not None and ratio.is_shown
        reason = "" if ratio else "no run of one pair counts"
        step = BisectStep(
            changed=(),
            cell=cell_words(cell, planned.cells),
            ratio=ratio,
            makes_it=shown,
            reason=reason,
        )
        steps.append(step)
    shown_words = "; ".join(_step_words(row) for row in steps)
    words = f"{order.sides[1]} against {order.sides[0]}, with nothing between them: {shown_words}"
    return BisectOutcome(sides=order.sides, steps=tuple(steps), found=(), words=words)


def _same_cell(one: Trial, other: Trial) -> bool:
    """Whether trials of two clusters are of the same cell: their ids differ in the campaign."""
    return all(row.level(one) == row.level(other) for row in FACTORS)
