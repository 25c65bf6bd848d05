"""What the papers say a change brought: data with its source in the paper."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

__all__ = ["PaperNumber", "published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumber:
    """One number of a paper."""

    value: float
    """As printed."""
    says: str
    """What it is, with its unit where it has one."""
    source: str
    """Paper and section."""
    of: str
    """The same number in the catalog of published numbers."""


@functools.cache
def published() -> dict[str, PaperNumber]:
    """Return the numbers by their short names."""
    place = resources.files("boardcluster.analysis.advice").joinpath("published.toml")
    return {
        name: PaperNumber(**row)
        for name, row in tomllib.loads(place.read_text(encoding="utf-8")).items()
    }
