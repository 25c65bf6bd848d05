"""What can be bought: boards, media, switches and supplies of the catalog, with prices. Pure.

A price that the user names counts before that of the catalog. Of what has no price no price is
made up: of a kind of which some have
one, the others are left out; a kind of which none has one is in no price, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import PartEntry, entry_names, find_board, find_part, nearest
from boardcluster.catalog.prices import latest_price
from boardcluster.errors import UsageError

__all__ = [
    "PRICED_KINDS",
    "BoardOffer",
    "MediumOffer",
    "Offers",
    "OmittedPart",
    "SupplyOffer",
    "SwitchOffer",
    "UnitPrice",
    "boards_alike",
    "find_offers",
    "is_compatible",
    "read_prices",
    "switches_needed",
]

PRICED_KINDS = ("board", "medium", "supply", "switch", "cooling", "other")
"""Kinds of parts that ``--price`` can name; the last two are counted only if it does."""

_SUPPLY_FACTOR = 2.0
"""Least rated power of a supply over a board's mean power under stress. At 1.45 (15 W for a
Raspberry Pi 5B) the clock fell; at 2.6 it did not (Lee and Park 2026, section Power Supply)."""

_PORTS_LEAST = 3
"""A switch with fewer cannot be joined to others and have a port left for a node."""
_OVERCLOCKED = "overclocked"
_SAID = "you"
_EXTRA = ("cooling", "other")


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Price of one piece."""

    amount: float
    """In the plan's currency."""
    source: str
    """Who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplyOffer:
    """A power supply for one board."""

    name: str
    """Its name in the catalog; empty where any will do."""
    rated_watts: float
    """What it can give."""
    price: UnitPrice | None
    """None where nobody says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOffer:
    """A board."""

    name: str
    """Its name in the catalog, or the path of its file."""
    id: str
    """Its id."""
    title: str
    """As its maker calls it."""
    cores: int
    """CPUs."""
    memory_bytes: int
    """Memory."""
    link_bits_per_second: float
    """Rate of its Ethernet."""
    chip: str
    """What it is built on; empty where nobody says it."""
    supply: SupplyOffer | None
    """The smallest supply that is large enough; None where its power is not known."""
    price: UnitPrice | None
    """None where nobody says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediumOffer:
    """A storage medium."""

    name: str
    """Its name in the catalog, or the path of its file."""
    title: str
    """As its maker calls it."""
    capacity_bytes: float
    """Its size."""
    measured_in: frozenset[str]
    """The boards that it was measured in; empty for any."""
    price: UnitPrice | None
    """None where nobody says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOffer:
    """A switch."""

    name: str
    """Its name in the catalog, or the path of its file."""
    title: str
    """As its maker calls it."""
    link_bits_per_second: float
    """Rate of a port."""
    ports: int
    """How many."""
    price: UnitPrice | None
    """None where nobody says it."""


@dataclass(frozen=True, slots=True)
class OmittedPart:
    """What is not tried."""

    name: str
    """What it is."""
    why: str
    """Why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a plan chooses from."""

    boards: tuple[BoardOffer, ...]
    media: tuple[MediumOffer, ...]
    switches: tuple[SwitchOffer, ...]
    left_out: tuple[OmittedPart, ...]
    """Entries that are not tried, and why."""
    unpriced: tuple[str, ...]
    """Kinds of parts of which none has a price; no price of the plan counts them."""
    extra: Mapping[str, UnitPrice] = field(default_factory=dict)
    """Prices of ``cooling`` for each board and of ``other`` once; empty where not given."""


def read_prices(texts: Iterable[str]) -> dict[str, float]:
    """Read ``--price NAME=AMOUNT``; a name is one of ``PRICED_KINDS`` or an entry's.

    Raises:
        UsageError: it is no such text, or there is no such name; the nearest is offered.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, amount = (part.strip() for part in text.partition("="))
        try:
            value = float(amount)
        except ValueError:
            value = -1.0
        if not name or not 0 <= value <= 1e7:
            raise UsageError(
                f"--price {text!r} is not NAME=AMOUNT",
                hint="for example --price sk-hynix-gold-p31-500gb=45, or --price switch=60",
            )
        known = [*PRICED_KINDS, *_all_names()]
        if name not in known and not name.endswith(".toml"):
            near = nearest(name, known)
            raise UsageError(
                f"--price {text}: nothing is called {name!r}",
                hint=f"did you mean {near!r}?"
                if near
                else f"name one of {', '.join(PRICED_KINDS)}",
            )
        found[name] = value
    return found


def find_offers(
    *,
    boards: Sequence[str] = (),
    media: Sequence[str] = (),
    switches: Sequence[str] = (),
    prices: Mapping[str, float] | None = None,
) -> Offers:
    """Return what can be bought.

    Args:
        boards: names or paths of files; none for all boards of the catalog that are not
            overclocked and have a price and Ethernet.
        media: likewise; none for all whose size is known.
        switches: likewise, of networks; none for all that have ports.
        prices: what the user says, by kind or name; counts before the catalog.

    Raises:
        UsageError: there is no such entry; the nearest is offered.
        SpecError: a file of one's own is missing or wrong.
    """
    said = dict(prices or {})
    left_out: _Omitted = []
    unpriced: list[str] = []
    found_boards = [
        offer
        for name in boards or entry_names("boards")
        if (offer := _board(name, said, left_out, named=bool(boards)))
    ]
    kept_boards = _priced("board", found_boards, left_out, unpriced)
    kept_media = _priced(
        "medium",
        [row for name in media or entry_names("media") if (row := _medium(name, said, left_out))],
        left_out,
        unpriced,
    )
    kept_switches = _priced(
        "switch",
        [
            switch
            for name in switches or entry_names("networks")
            if (switch := _switch(name, said, left_out))
        ],
        left_out,
        unpriced,
    )
    kept_boards = _priced("supply", kept_boards, left_out, unpriced, _supply_lack)
    return Offers(
        boards=kept_boards,
        media=kept_media,
        switches=kept_switches,
        left_out=tuple(left_out),
        unpriced=tuple(unpriced),
        extra={kind: UnitPrice(said[kind], _SAID) for kind in _EXTRA if kind in said},
    )


_Omitted: TypeAlias = "list[OmittedPart]"
_Offer = TypeVar("_Offer", BoardOffer, MediumOffer, SwitchOffer)


def _priced(
    kind: str,
    rows: Sequence[_Offer],
    left_out: _Omitted,
    unpriced: list[str],
    lack_of: Callable[[_Offer], str] = lambda row: "no price" if row.price is None else "",
) -> tuple[_Offer, ...]:
    """Return those with a price, which lack nothing; all of them where none has one."""
    lacks = [lack_of(row) for row in rows]
    if all(lacks):
        unpriced.append(kind)
        return tuple(rows)
    left_out += [OmittedPart(row.name, why) for row, why in zip(rows, lacks, strict=True) if why]
    return tuple(row for row, why in zip(rows, lacks, strict=True) if not why)


def _supply_lack(board: BoardOffer) -> str:
    if board.supply is None:
        return "its power is not known, so no supply is chosen"
    return "" if board.supply.price is not None else f"no price of its supply, {board.supply.name}"


def is_compatible(board: BoardOffer, medium: MediumOffer) -> bool:
    """Whether a medium was measured in a board, or in one with the same chip.

    That is how the catalog says which boards have a connector for it.
    """
    if not medium.measured_in or board.id in medium.measured_in:
        return True
    return bool(board.chip) and board.chip in {_chip_of(name) for name in medium.measured_in}


def boards_alike(name: str) -> tuple[str, ...]:
    """Return the other boards of the catalog with a board's chip and clock."""
    board = _found_board(name)
    return tuple(
        other
        for other in entry_names("boards")
        if (found := _catalogued_board(other)).id != board.id
        and _chip(found) == _chip(board)
        and found.clock_hertz == board.clock_hertz
    )


def switches_needed(nodes: NDArray[np.int64], ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many switches connect so many nodes and the driver's machine.

    Several form a tree, in which each link between two takes a port of both: s switches of p ports
    have s p - 2 (s - 1) for nodes.
    """
    return np.asarray(np.maximum(1, -(-(nodes - 1) // (ports - 2))), dtype=np.int64)


@cache
def _all_names() -> tuple[str, ...]:
    kinds = ("boards", "media", "networks", "supplies")
    return tuple(name for kind in kinds for name in entry_names(kind))


@cache
def _chip_of(name: str) -> str:
    return _chip(_catalogued_board(name)) if name in entry_names("boards") else ""


@cache
def _catalogued_board(name: str) -> BoardEntry:
    """Return a board of the catalog, which does not change while we run."""
    return find_board(name)


@cache
def _catalogued_part(kind: str, name: str) -> PartEntry:
    return find_part(kind, name)


def _found_board(name: str) -> BoardEntry:
    """Return a board; a file of one's own is read each time."""
    return find_board(name) if name.endswith(".toml") else _catalogued_board(name)


def _found_part(kind: str, name: str) -> PartEntry:
    return find_part(kind, name) if name.endswith(".toml") else _catalogued_part(kind, name)


def _chip(board: BoardEntry) -> str:
    return re.split("[,;]", board.hardware)[0].strip()


def _value(figures: Sequence[SourcedFigure], name: str, **conditions: str) -> float | None:
    """Return the largest figure of a name and conditions; None without any."""
    values = [
        row.figure.value
        for row in figures
        if row.figure.name == name
        and all(row.figure.conditions.get(key) == text for key, text in conditions.items())
    ]
    return max(values, default=None)


def _price(
    names: Sequence[str], said: Mapping[str, float], figures: Sequence[SourcedFigure]
) -> UnitPrice | None:
    """Return what the user says of the first of some names, else the catalog's latest price."""
    for name in names:
        if name in said:
            return UnitPrice(said[name], _SAID)
    latest = latest_price(figures)
    return None if latest is None else UnitPrice(latest.figure.value, latest.source)


def _board(
    name: str, said: Mapping[str, float], left_out: _Omitted, *, named: bool
) -> BoardOffer | None:
    entry = _found_board(name)
    link = _value(entry.figures, "link_bits_per_second", interface="Ethernet")
    if _OVERCLOCKED in entry.hardware and not named:
        left_out.append(OmittedPart(name, "overclocked, tried only if named"))
        return None
    if link is None:
        left_out.append(OmittedPart(name, "no rate of its Ethernet"))
        return None
    return BoardOffer(
        name=name,
        id=entry.id,
        title=entry.name,
        cores=entry.cores,
        memory_bytes=entry.memory_bytes,
        link_bits_per_second=link,
        chip=_chip(entry),
        supply=_supply(entry, said),
        price=_price((name, entry.id, "board"), said, entry.figures),
    )


def _supply(board: BoardEntry, said: Mapping[str, float]) -> SupplyOffer | None:
    """Return the smallest supply that is large enough, by the power of boards with its chip."""
    alike = [board, *map(_catalogued_board, entry_names("boards"))]
    watts = [
        value
        for entry in alike
        if entry is board or (_chip(entry) and _chip(entry) == _chip(board))
        if (value := _value(entry.figures, "power_stress_mean_watts")) is not None
    ]
    found = []
    for name in entry_names("supplies") if watts else ():
        part = _catalogued_part("supplies", name)
        rated = _value(part.figures, "rated_watts")
        boards = {row.figure.conditions.get("nodes", "1") for row in part.figures}
        if rated is not None and boards == {"1"} and rated >= _SUPPLY_FACTOR * max(watts):
            price = _price((name, "supply"), said, part.figures)
            found.append(SupplyOffer(name=name, rated_watts=rated, price=price))
    if found:
        return min(found, key=lambda row: row.rated_watts)
    if "supply" in said:
        price = UnitPrice(said["supply"], _SAID)
        return SupplyOffer(name="", rated_watts=0.0, price=price)
    return None


def _medium(name: str, said: Mapping[str, float], left_out: _Omitted) -> MediumOffer | None:
    entry = _found_part("media", name)
    capacity = _value(entry.figures, "capacity_bytes")
    if capacity is None:
        left_out.append(OmittedPart(name, "no capacity"))
        return None
    measured_in = {row.figure.conditions.get("board", "") for row in entry.figures} - {""}
    if not measured_in and not name.endswith(".toml"):
        left_out.append(OmittedPart(name, "measured in no board"))
        return None
    return MediumOffer(
        name=name,
        title=entry.name,
        capacity_bytes=capacity,
        measured_in=frozenset(measured_in),
        price=_price((name, entry.id, "medium"), said, entry.figures),
    )


def _switch(name: str, said: Mapping[str, float], left_out: _Omitted) -> SwitchOffer | None:
    entry = _found_part("networks", name)
    ports = _value(entry.figures, "switch_ports")
    link = _value(entry.figures, "link_bits_per_second")
    if ports is None or link is None:
        left_out.append(OmittedPart(name, "no ports: only clusters on cables are planned"))
        return None
    if ports < _PORTS_LEAST:
        left_out.append(OmittedPart(name, f"fewer than {_PORTS_LEAST} ports, so several join none"))
        return None
    return SwitchOffer(
        name=name,
        title=entry.name,
        link_bits_per_second=link,
        ports=int(ports),
        price=_price((name, entry.id, "switch"), said, entry.figures),
    )
