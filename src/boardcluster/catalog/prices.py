"""What a cluster cost: declared in ``cluster.toml``, else as the catalog has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from boardcluster.analysis.efficiency import PriceList, PricePart
from boardcluster.catalog.entry import SourcedFigure
from boardcluster.catalog.lookup import find_board, find_part
from boardcluster.records import ClusterSpec, NodeSpec, Prices

__all__ = ["CATALOG_CURRENCY", "DECLARED", "latest_price", "price_list"]

CATALOG_CURRENCY = "USD"
"""Prices of the catalog are figures that end in ``us_dollars``."""

DECLARED = "[prices] in cluster.toml"

_FIGURE = "price_us_dollars"


def price_list(spec: ClusterSpec, *, nodes: int | None = None) -> PriceList:
    """Return what the parts of a cluster cost, each with its source.

    What ``[prices]`` says counts. What it leaves out has the price of the catalog, where nodes are
    emulated boards that stand for something the catalog has the price of, and the currency is the
    catalog's. Of several prices the one of the latest year counts.

    Args:
        spec: the cluster.
        nodes: how many of its nodes took part, the first ones of the file; None for all.

    Raises:
        UsageError: a board or medium that nodes stand for is not in the catalog any more.
        SpecError: a file that describes one is missing or wrong.
    """
    said = spec.prices
    taking_part = spec.nodes if nodes is None else spec.nodes[:nodes]
    count = len(taking_part)
    if said is not None and said.total is not None:
        return _whole(said, all_nodes=count == len(spec.nodes))
    parts: list[PricePart] = []
    missing: list[str] = []
    currency = said.currency if said else CATALOG_CURRENCY
    for name, key, number, looked in (
        ("boards", "board", count, _by_twin(taking_part, "board")),
        ("media", "medium", count, _by_twin(taking_part, "medium")),
        ("supplies", "supply", (said.supplies if said else None) or count, None),
        ("switch", "switch", 1, None),
    ):
        if (price := getattr(said, key, None)) is not None:
            parts.append(_declared(name, number, price))
            continue
        found, why = _catalogued(name, looked, currency) if looked else ((), "")
        parts += found
        if not found:
            missing.append(f"no price of {name}{why}; set `{key}` in [prices] of cluster.toml")
    for name, number in (("cooling", count), ("other", 1)):
        if (price := getattr(said, name, None)) is not None:
            parts.append(_declared(name, number, price))
    return PriceList(
        currency=currency if said or parts else "",
        per_kwh=said.per_kwh if said else None,
        parts=tuple(parts),
        missing=tuple(missing),
    )


def _whole(said: Prices, *, all_nodes: bool) -> PriceList:
    part = _declared("everything", 1, said.total or 0.0)
    why = "the price is for the whole cluster, and not every node took part"
    return PriceList(
        currency=said.currency,
        per_kwh=said.per_kwh,
        parts=(part,) if all_nodes else (),
        missing=() if all_nodes else (why,),
    )


def _declared(name: str, count: int, each: float) -> PricePart:
    return PricePart(name=name, what="", count=count, each=each, source=DECLARED)


def _by_twin(nodes: Sequence[NodeSpec], key: str) -> Counter[str] | None:
    """Count what is emulated, by name; None where a node emulates nothing of the kind."""
    names = [getattr(node.twin, key) if node.twin else "" for node in nodes]
    return Counter(names) if all(names) else None


def _catalogued(
    name: str, counted: Counter[str], currency: str
) -> tuple[tuple[PricePart, ...], str]:
    """Return the catalog's prices; none with the reason, where one of the entries has no price."""
    parts = []
    for entry, count in counted.items():
        figures = find_board(entry).figures if name == "boards" else find_part(name, entry).figures
        latest = latest_price(figures)
        if latest is None:
            return (), f": the catalog has no price of {entry}"
        if currency != CATALOG_CURRENCY:
            return (), f": the catalog has it in {CATALOG_CURRENCY} only"
        parts.append(
            PricePart(
                name=name,
                what=entry,
                count=count,
                each=latest.figure.value,
                source=f"catalog: {entry}, {latest.source}",
            )
        )
    return tuple(parts), ""


def latest_price(figures: Sequence[SourcedFigure]) -> SourcedFigure | None:
    """Return the price of the latest year among the figures of an entry; None without any."""
    priced = [row for row in figures if row.figure.name == _FIGURE]
    return max(priced, key=lambda row: row.figure.conditions.get("year", ""), default=None)
