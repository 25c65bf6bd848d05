"""``[prices]`` of a ``cluster.toml``: what the cluster and its electricity cost. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from boardcluster.records import ClusterSpec, Prices
from boardcluster.spec.checks import complaint, refusal, shown
from boardcluster.spec.problems import Problem, StrictTable, key_text
from boardcluster.spec.toml import KeyPath, TomlDocument

__all__ = ["PRICES_TABLE", "PricesTable", "price_problems", "prices_of", "render_prices"]

PRICES_TABLE = "one [prices] table with currency and what is known of per_kwh, board, medium, ..."

_PRICE_MAX = 10_000_000
_PRICE_ALLOWED = f"a number from 0 to {_PRICE_MAX}, without a currency sign"
_SUPPLIES_MAX = 1000
_SUPPLIES_ALLOWED = f"a whole number from 1 to {_SUPPLIES_MAX}"
_CURRENCY = re.compile(r"[A-Z]{3}")
_CURRENCY_ALLOWED = 'three capital letters (ISO 4217), e.g. "USD" or "EUR"'
_PARTS = ("board", "medium", "supply", "cooling", "switch", "other")


def _check_price(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _PRICE_MAX:
        raise refusal(f"{shown(value)} is not a price", allowed=_PRICE_ALLOWED)
    return float(value)


def _check_currency(value: Any) -> str:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        text = value.upper() if isinstance(value, str) else ""
        raise refusal(
            f"{shown(value)} is not a currency",
            allowed=_CURRENCY_ALLOWED,
            nearest=text if _CURRENCY.fullmatch(text) else "",
        )
    return value


_Price = Annotated[float | None, BeforeValidator(_check_price)]


class PricesTable(StrictTable):
    """The ``[prices]`` table."""

    currency: Annotated[str, BeforeValidator(_check_currency)] = Field(
        description=_CURRENCY_ALLOWED
    )
    per_kwh: _Price = Field(default=None, description=_PRICE_ALLOWED)
    total: _Price = Field(default=None, description=_PRICE_ALLOWED)
    board: _Price = Field(default=None, description=_PRICE_ALLOWED)
    medium: _Price = Field(default=None, description=_PRICE_ALLOWED)
    supply: _Price = Field(default=None, description=_PRICE_ALLOWED)
    supplies: int | None = Field(
        default=None, ge=1, le=_SUPPLIES_MAX, description=_SUPPLIES_ALLOWED
    )
    cooling: _Price = Field(default=None, description=_PRICE_ALLOWED)
    switch: _Price = Field(default=None, description=_PRICE_ALLOWED)
    other: _Price = Field(default=None, description=_PRICE_ALLOWED)


def price_problems(document: TomlDocument, wrong: Collection[KeyPath]) -> list[Problem]:
    """Find prices that contradict each other or have no effect, but for keys known as wrong."""
    table = document.data.get("prices")
    if not isinstance(table, dict) or ("prices",) in wrong:
        return []
    problems = []
    if "total" in table:
        path: KeyPath = ("prices", "total")
        what = f"{key_text(path)} in line {document.line_of(path)} has the price of everything"
        problems += [
            Problem(
                path=("prices", key),
                text=complaint(what, allowed="either total, or the parts one by one"),
            )
            for key in (*_PARTS, "supplies")
            if key in table
        ]
    elif "supplies" in table and "supply" not in table:
        text = complaint("it has no effect without `supply`", allowed="with a supply only")
        problems.append(Problem(path=("prices", "supplies"), text=text))
    if not table.keys() - {"currency"} and "currency" in table:
        text = complaint("a currency, but no price", allowed=PRICES_TABLE)
        problems.append(Problem(path=("prices",), text=text))
    return problems


def prices_of(table: PricesTable | None) -> Prices | None:
    """Return the prices of a valid table; None where there is none."""
    return None if table is None else Prices(**table.model_dump())


def render_prices(spec: ClusterSpec) -> tuple[str, ...]:
    """Write the table of prices; loading it gives back the same. None where there are none."""
    if spec.prices is None:
        return ()
    said = {
        key: value for key, value in dataclasses.asdict(spec.prices).items() if value is not None
    }
    rows = "".join(
        f"{key} = {json.dumps(value) if key == 'currency' else repr(value)}\n"
        for key, value in said.items()
    )
    return (f"[prices]\n{rows}",)
