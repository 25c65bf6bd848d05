"""What lies beside the chosen cluster, why it falls out, and what would change that. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from boardcluster.plan.candidates import CandidateSet
from boardcluster.plan.evaluation import EvaluatedSet
from boardcluster.plan.limits import shown_limit
from boardcluster.plan.offers import is_compatible
from boardcluster.plan.planning import PlanSpace, describe_cluster
from boardcluster.plan.purchase import NearChoice
from boardcluster.units import format_count, format_rate, format_seconds

__all__ = ["near_choices", "why_not", "would_change"]

_BOARDS_SHOWN = 4
_LONGER = 1.25
"""How much later a deadline is tried."""
_FASTER_LINK = 2.5
"""How much faster a link is tried."""
_PRICE_NOTICED = 0.5
_NOTICED = 0.01
"""Share of the time from which on a difference is told."""

_EXCEEDS = {
    "deadline": "takes up to {amount}, {over} over the deadline",
    "budget": "costs {amount}, {over} over the budget",
    "watts": "draws up to {amount}, {over} too much",
    "joules": "needs up to {amount}, {over} too much",
}


def why_not(found: EvaluatedSet, place: int, space: PlanSpace) -> str:
    """Return why a cluster cannot be chosen; empty if it could be."""
    if not found.prediction.known[place]:
        return f"its time is not known: {found.prediction.reason[place]}"
    if not found.feasible[place]:
        described = describe_cluster(found, place, space)
        words = described.disks if found.memory_margin[place] else described.memory
        return f"{words}; possible, but without margin" if found.fits[place] else words
    amounts = found.amounts()
    over = [
        _EXCEEDS[name].format(
            amount=shown_limit(name, float(amounts[name][place]), space.currency),
            over=shown_limit(name, float(amounts[name][place]) - most, space.currency),
        )
        for name, most in space.limits.given().items()
        if not amounts[name][place] <= most
    ]
    return "; ".join(over)


def near_choices(found: EvaluatedSet, best: int, space: PlanSpace) -> tuple[NearChoice, ...]:
    """Return the clusters that differ from the chosen one in one thing, and why each falls out."""
    one = found.candidates.take(np.array([best]))
    rows = list(_one_thing_else(one, space))
    if not rows:
        return ()
    whole = rows[0][1]
    for _, candidate in rows[1:]:
        whole = whole.joined(candidate)
    others = space.evaluate(whole)
    return tuple(
        NearChoice(
            change=change,
            why=why_not(others, place, space) or _against(found, best, others, place, space),
        )
        for place, (change, _) in enumerate(rows)
    )


def _one_thing_else(one: CandidateSet, space: PlanSpace) -> Iterator[tuple[str, CandidateSet]]:
    workers = int(one.workers[0])
    least = 0 if space.there.rows else 1
    for number in (workers - 1, workers + 1):
        if least <= number <= space.workers_most:
            yield format_count(number, "worker"), replace(one, workers=np.array([number]))
    if workers:
        yield from _other_parts(one, space)
    for key, names in (
        ("profile", [f"profile {name}" for name in space.profiles]),
        ("engine", [engine.value for engine in space.task.engines]),
    ):
        for place, name in enumerate(names):
            if place != getattr(one, key)[0]:
                yield name, replace(one, **{key: np.array([place])})


def _other_parts(one: CandidateSet, space: PlanSpace) -> Iterator[tuple[str, CandidateSet]]:
    """Yield the same number of workers of another medium or board, or at another switch."""
    offers = space.offers
    board, medium = offers.boards[one.board[0]], offers.media[one.medium[0]]
    for place, other in enumerate(offers.media):
        if other is not medium and is_compatible(board, other):
            yield other.name, replace(one, medium=np.array([place]))
    alike = [
        (
            abs(
                (row.price.amount if row.price else 0) - (board.price.amount if board.price else 0)
            ),
            place,
        )
        for place, row in enumerate(offers.boards)
        if row is not board and is_compatible(row, medium)
    ]
    for _, place in sorted(alike)[:_BOARDS_SHOWN]:
        yield offers.boards[place].name, replace(one, board=np.array([place]))
    for place, switch in enumerate(offers.switches):
        if place != one.switch[0]:
            yield switch.name, replace(one, switch=np.array([place]))


def _against(
    found: EvaluatedSet, best: int, others: EvaluatedSet, place: int, space: PlanSpace
) -> str:
    """Compare a cluster that keeps to the limits with the chosen one."""
    time = float(others.prediction.median_seconds[place] / found.prediction.median_seconds[best])
    price = float(others.price[place] - found.price[best])
    words = []
    if abs(time - 1) >= _NOTICED:
        words.append(f"{_percent(time)} {'slower' if time > 1 else 'faster'}")
    if abs(price) >= _PRICE_NOTICED:
        amount = shown_limit("budget", abs(price), space.currency)
        words.append(f"{amount} {'dearer' if price > 0 else 'cheaper'}")
    energy = float(others.prediction.joules[place] / found.prediction.joules[best])
    if not np.isnan(energy) and abs(energy - 1) >= _NOTICED:
        words.append(f"{_percent(energy)} {'more' if energy > 1 else 'less'} energy")
    return f"possible, too: {', '.join(words)}" if words else "also possible, and no different"


def _percent(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.0f} %"


def would_change(found: EvaluatedSet, best: int, space: PlanSpace) -> tuple[str, ...]:
    """Say what would change the answer: a run, a node, a price, a deadline, a link."""
    return (
        *_not_known(found, best, space),
        *_one_more(found, best, space),
        *_price(found, best, space),
        *_deadline(found, best, space),
        *_link(found, best, space),
    )


def _not_known(found: EvaluatedSet, best: int, space: PlanSpace) -> Iterator[str]:
    """Say which cheaper cluster might do, if its time were known."""
    might = ~found.prediction.known & found.feasible
    might &= found.price < found.price[best] - _PRICE_NOTICED
    amounts = found.amounts()
    for name, most in space.limits.given().items():
        might &= amounts[name] <= most
    if might.any():
        places = np.flatnonzero(might)
        cheapest = int(places[np.argmin(found.price[places])])
        cost = shown_limit("budget", float(found.price[cheapest]), space.currency)
        yield (
            f"{describe_cluster(found, cheapest, space).words} might be enough for {cost}, but its "
            f"time is not known: {found.prediction.reason[cheapest]}; `boardcluster predict` names "
            "the run that would show it"
        )


def _one_more(found: EvaluatedSet, best: int, space: PlanSpace) -> Iterator[str]:
    one = found.candidates.take(np.array([best]))
    if one.workers[0] >= space.workers_most:
        return
    more = space.evaluate(replace(one, workers=one.workers + 1))
    seconds = float(found.prediction.median_seconds[best] - more.prediction.median_seconds[0])
    if not more.prediction.known[0]:
        return
    amount = shown_limit("budget", float(more.price[0] - found.price[best]), space.currency)
    if seconds <= 0:
        yield f"one more worker costs {amount} and saves no time"
        return
    share = seconds / float(found.prediction.median_seconds[best])
    yield (
        f"one more worker costs {amount} and saves {format_seconds(seconds)},"
        f" {100 * share:.1f} % of the time"
    )


def _price(found: EvaluatedSet, best: int, space: PlanSpace) -> Iterator[str]:
    """Say at which price of its board another cluster would be cheaper, where price decided."""
    board_place = int(found.candidates.board[best])
    board = space.offers.boards[board_place]
    if space.limits.deadline_seconds is None or board.price is None:
        return
    others = found.meets(space.limits) & (found.candidates.board != board_place)
    if not others.any():
        yield f"at any price of {board.name}: no cluster of another board is within the limits"
        return
    places = np.flatnonzero(others)
    next_best = int(places[np.argmin(found.price[places])])
    count = int(found.candidates.workers[best]) + (0 if space.there.rows else 1)
    gap = float(found.price[next_best] - found.price[best])
    if count and gap >= _PRICE_NOTICED:
        other = describe_cluster(found, next_best, space)
        limit = shown_limit("budget", board.price.amount + gap / count, space.currency)
        now = shown_limit("budget", board.price.amount, space.currency)
        yield (
            f"if {board.name} cost over {limit} (now {now}), {other.workers} x {other.board} with"
            f" {other.medium} would be cheaper"
        )


def _deadline(found: EvaluatedSet, best: int, space: PlanSpace) -> Iterator[str]:
    deadline = space.limits.deadline_seconds
    if deadline is None:
        return
    later = replace(space.limits, deadline_seconds=deadline * _LONGER)
    places = np.flatnonzero(found.meets(later))
    cheapest = int(places[np.argmin(found.price[places])])
    saved = float(found.price[best] - found.price[cheapest])
    if saved >= _PRICE_NOTICED:
        described = describe_cluster(found, cheapest, space)
        yield (
            f"a deadline of {format_seconds(deadline * _LONGER)} would save"
            f" {shown_limit('budget', saved, space.currency)}: {described.words}"
        )


def _link(found: EvaluatedSet, best: int, space: PlanSpace) -> Iterator[str]:
    """Say what a faster link would bring, where the model knows."""
    one = found.candidates.take(np.array([best]))
    switch = space.offers.switches[one.switch[0]]
    rate = switch.link_bits_per_second * _FASTER_LINK
    offers = replace(
        space.offers,
        boards=tuple(replace(row, link_bits_per_second=rate) for row in space.offers.boards),
        switches=tuple(replace(row, link_bits_per_second=rate) for row in space.offers.switches),
    )
    faster = replace(space, offers=offers).evaluate(one)
    if not faster.prediction.known[0]:
        yield f"what links of {format_rate(rate)} would bring is not known"
        return
    ratio = float(faster.prediction.median_seconds[0] / found.prediction.median_seconds[best])
    if ratio < 1 - _NOTICED:
        yield f"links of {format_rate(rate)} would save {_percent(ratio)} of the time"
    else:
        now = format_rate(switch.link_bits_per_second)
        yield f"none of the runs behind this shows whether links faster than {now} help"
