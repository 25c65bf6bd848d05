"""How a user names what is read from a store; loads nothing, so that help texts are quick."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SIDES", "TableName"]

SIDES = (
    "a campaign by id or name, profile:NAME, engine:NAME, setting:KEY=VALUE, cluster:NAME or "
    "cluster:NAME/CAMPAIGN, bundle:FILE, or published:TABLE?column=value"
)
"""What a side may be, for help texts and errors."""


class TableName(StrEnum):
    """The tables that can be exported."""

    RUNS = "runs"
    CELLS = "cells"
    SAMPLES = "samples"
    PROBES = "probes"
    POWER = "power"
