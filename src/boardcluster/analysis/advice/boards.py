"""Rules on boards that are slower than they could be: heat, a weak supply, a slow link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from boardcluster.analysis.advice.evidence import Advice, Certainty
from boardcluster.analysis.advice.published import published
from boardcluster.analysis.advice.rule import (
    LEAST_GAIN,
    Rule,
    advice,
    gain_words,
    percent,
    predicted_words,
    shrunk,
)
from boardcluster.analysis.advice.settings import network_key, policy_key
from boardcluster.analysis.advice.view import Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.bottleneck.limits import node_limits
from boardcluster.units import format_rate, format_rate_exact, format_seconds

__all__ = ["BOARD_RULES"]

_HELD_SHARE = 0.01  # of the run
_LINK_SHARE = 0.99  # of the declared rate: less is another rate
_LINK_STEP = 10  # a link of 100 Mbit/s where there could be 1 Gbit/s
_MODELLED = re.compile(r"modelled: (\S+) was slowed down by (\w+) for (\d+) % of the run")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slowed:
    """A node that was slowed down in a run."""

    run: RunView
    """The run."""
    node: str
    """Its name."""
    seen: str
    """How, with its numbers."""
    gain: float | None
    """How many times as fast the run would be without; None if not known."""
    share: float
    """Of the run."""


def _read(run: RunView, cause: str) -> Iterator[_Slowed]:
    """What the firmware of boards said; that of the machine below emulated nodes is not theirs."""
    if run.facts is None or run.fingerprint.emulated:
        return
    words = {"heat": "its firmware lowered the clock", "supply": "it had under-voltage"}[cause]
    for row in run.facts.nodes:
        seconds = (row.heat_seconds if cause == "heat" else row.weak_supply_seconds) or 0.0
        share = min(1.0, seconds / run.facts.duration_seconds)
        if share <= _HELD_SHARE:
            continue
        most = row.temperature_most_celsius
        ratio = row.slowed_clock_ratio
        # From the diagnosis, else from the clock: what was done at a lower clock takes less.
        gain = shrunk(share, ratio) if ratio is not None and 0 < ratio < 1 else None
        if run.twice(Bound.HEAT) > 1:
            gain = run.twice(Bound.HEAT)
        warm = f", {most:.0f} °C at most" if most is not None else ""
        clock = f", at {percent(ratio)} of its clock" if ratio is not None else ""
        yield _Slowed(
            run=run,
            node=row.node,
            seen=f"{row.node}: {words} for {format_seconds(seconds)} of"
            f" {format_seconds(run.facts.duration_seconds)}{clock}{warm}",
            gain=gain,
            share=share,
        )


def _modelled(run: RunView, cause: str) -> Iterator[_Slowed]:
    """What the model of heat and supply did to emulated boards, from the remarks on the run."""
    for line in run.measurement.remarks:
        match = _MODELLED.fullmatch(line)
        if match and match[2] == cause:
            gain = run.twice(Bound.HEAT)
            yield _Slowed(
                run=run,
                node=match[1],
                seen=line,
                gain=gain if gain > 1 else None,
                share=int(match[3]) / 100,
            )


def _slowed(
    rule: Rule, view: View, cause: str, *, title: str, setting: str, also: str, unknown: Certainty
) -> Iterator[Advice]:
    """Speak of the nodes that heat or a weak supply slowed, boards and models.

    Args:
        rule: whose advice it is.
        view: the runs.
        cause: ``heat`` or ``supply``.
        title: what to do; ``{node}`` stands for the node.
        setting: what to change on a board, likewise.
        also: what else it brings.
        unknown: how sure it is where no gain is known.
    """
    for group in view.groups:
        found: dict[str, list[_Slowed]] = {}
        for run in group.runs:
            for row in (*_read(run, cause), *_modelled(run, cause)):
                found.setdefault(row.node, []).append(row)
        for node, rows in found.items():
            worst = max(rows, key=lambda row: row.share)
            gain = worst.gain and gain_words(worst.gain, emulated=group.emulated)
            yield advice(
                rule,
                group,
                title=title.format(node=node),
                subject=node,
                seen=f"{worst.seen}; in {len(rows)} of {len(group.runs)} runs ({group.where})",
                setting=_of_model(node, cause) if group.is_twin else setting.format(node=node),
                brings=f"{gain or 'its full clock'}; {also}",
                gain=worst.gain,
                certainty=Certainty.COMPUTED if worst.gain else unknown,
                runs=[row.run.name for row in rows],
            )


def _of_model(node: str, cause: str) -> str:
    key, catalog = ("cooling", "cooling") if cause == "heat" else ("supply", "supplies")
    return (
        f"another `{key}` of {node} in its `[[node]]` of cluster.toml; `boardcluster catalog"
        f" {catalog}` lists them"
    )


def _cooling(rule: Rule, view: View) -> Iterator[Advice]:
    paper = published()["cooling-hadoop"]
    return _slowed(
        rule,
        view,
        "heat",
        title="Cool {node}",
        setting="a heat sink and a fan on {node}, or air around it; until then "
        f"{policy_key('cool_below_celsius = 60')} lets each run start cool",
        also=f"the 2021 paper saw {paper.value:g} times {paper.says}",
        unknown=Certainty.PUBLISHED,
    )


def _supply(rule: Rule, view: View) -> Iterator[Advice]:
    return _slowed(
        rule,
        view,
        "supply",
        title="Give {node} a stronger power supply",
        setting="the supply sold by the maker of {node}'s board, and a short, thick cable; "
        "`boardcluster catalog supplies` lists what the papers used",
        also="and the board no longer shuts down under load",
        unknown=Certainty.COMPUTED,
    )


def _link(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        if group.is_boards:
            yield from _slow_links(rule, group)
        else:
            yield from _narrow_link(rule, group)


def _slow_links(rule: Rule, group: Group) -> Iterator[Advice]:
    """Boards whose link is slower than the fastest of them, or than declared."""
    run = group.typical
    rates = {
        row.node: row.link_bits_per_second
        for row in run.nodes
        if row.link_bits_per_second is not None
    }
    best = max([*rates.values(), float(run.fingerprint.link_bits_per_second)])
    for node, rate in rates.items():
        if rate >= _LINK_SHARE * best:
            continue
        gain = run.twice(Bound.NETWORK)
        known = gain >= LEAST_GAIN
        yield advice(
            rule,
            group,
            title=f"Bring the link of {node} to {format_rate(best)}",
            subject=node,
            seen=f"{node} was linked at {format_rate(rate)}, where the others have, or cluster.toml"
            f" declares, {format_rate(best)} ({group.where})",
            setting=_better_link(rate, best),
            brings=f"{predicted_words(run, Bound.NETWORK)} if every link were twice as fast"
            if known
            else "no gain in these runs, which were bound by other resources",
            gain=gain if known else None,
        )


def _better_link(rate: float, best: float) -> str:
    if best < _LINK_STEP * rate:
        return "another cable, or another port of the switch"
    declared = network_key(f'link = "{format_rate_exact(round(rate))}"')
    return (
        "a cable with all eight wires (Cat 5e), another port, or a faster switch; where the board"
        f" itself has no faster port, {declared}"
    )


def _narrow_link(rule: Rule, group: Group) -> Iterator[Advice]:
    """Emulated nodes whose link bounds them: the declared one, or the port of their board."""
    run = group.typical
    gain, declared = run.twice(Bound.NETWORK), run.fingerprint.link_bits_per_second
    if run.first is not Bound.NETWORK or gain < LEAST_GAIN:
        return
    port = _slowest_port(run)
    is_port = port is not None and port < _LINK_SHARE * declared
    rate = port if port is not None and is_port else float(declared)
    twice = network_key(f'link = "{format_rate_exact(2 * declared)}"')
    yield advice(
        rule,
        group,
        title="Try boards with faster ports"
        if is_port
        else f"Try links of {format_rate(2 * rate)}",
        subject="links",
        seen=f"{run.bound_words}, with links of {format_rate(rate)} ({group.where})",
        setting="another `board` in each `[[node]]` of cluster.toml; `boardcluster catalog boards`"
        " lists them"
        if is_port
        else twice,
        brings=f"{predicted_words(run, Bound.NETWORK, emulated=group.emulated)} if every link were"
        " twice as fast",
        gain=gain,
    )


def _slowest_port(run: RunView) -> float | None:
    """Rate of the slowest link that the kernel gave emulated boards, as on the boards."""
    rates = [
        row.link_bits_per_second * run.measurement.dilation
        for row in node_limits(run.fingerprint).values()
        if row.link_bits_per_second is not None
    ]
    return min(rates, default=None)


BOARD_RULES = (
    Rule(
        name="cooling",
        source="Raspberry Pi documentation, vcgencmd get_throttled; "
        + published()["cooling-hadoop"].source,
        find=_cooling,
    ),
    Rule(
        name="supply",
        source="Raspberry Pi documentation, vcgencmd get_throttled; Lee and Park 2026, section"
        " Power Supply",
        find=_supply,
    ),
    Rule(
        name="link",
        source="IEEE 802.3, clauses 28 and 40; Linux, sysfs-class-net, speed",
        find=_link,
    ),
)
