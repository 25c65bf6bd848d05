"""What ``conditions.toml`` states of the papers' tables, and of times in their running text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from boardcluster.spec.problems import StrictTable, read_model

__all__ = ["CellConditions", "TableConditions", "read_cell_conditions", "read_conditions"]

_FILE = Path(__file__).parent / "conditions.toml"
_HINT = "restore the file from the package"


class TableConditions(StrictTable):
    """What the cells of one table are."""

    id: str = Field(min_length=1, description="the id of a published table")
    workload: str = Field(default="", description="the name of a workload")
    engine: str = Field(default="", description="the name of an engine")
    workers: int = Field(default=0, ge=0, description="a number from 1")
    size_times: int = Field(default=1, ge=1, description="a number from 1")
    parameters: dict[str, str] = Field(default_factory=dict, description="a table of texts")
    of_row: dict[str, str] = Field(default_factory=dict, description="a table of texts")
    board: str = Field(default="", description="the name of a board")
    media: dict[str, str] = Field(default_factory=dict, description="a table of texts")
    replication: int = Field(default=0, ge=0, description="a number from 1")
    settings: dict[str, str] = Field(default_factory=dict, description="a table of texts")
    quantities: dict[str, str] = Field(min_length=1, description="a table of texts")


class CellConditions(StrictTable):
    """What one time of the running text is of."""

    table: str = Field(min_length=1, description="the id of a published table")
    what: str = Field(min_length=1, description="its column `what`")
    workload: str = Field(min_length=1, description="the name of a workload")
    engine: str = Field(min_length=1, description="the name of an engine")
    size: str = Field(min_length=1, description="a size")
    workers: int = Field(ge=1, description="a number from 1")
    board: str = Field(min_length=1, description="the name of a board")
    medium: str = Field(min_length=1, description="the name of a medium")
    replication: int = Field(ge=1, description="a number from 1")


class _ConditionsFile(StrictTable):
    table: Annotated[list[TableConditions], Field(min_length=1, description="[[table]]")]
    cell: Annotated[list[CellConditions], Field(min_length=1, description="[[cell]]")]


@cache
def _conditions_file() -> _ConditionsFile:
    found, _ = read_model(_FILE, _ConditionsFile, create_hint=_HINT)
    return found


@cache
def read_conditions() -> Mapping[str, TableConditions]:
    """Read what ``conditions.toml`` says of tables; by the id of the table.

    Raises:
        SpecError: it is missing or wrong.
    """
    return {row.id: row for row in _conditions_file().table}


def read_cell_conditions() -> tuple[CellConditions, ...]:
    """Read what ``conditions.toml`` says of single times.

    Raises:
        SpecError: it is missing or wrong.
    """
    return tuple(_conditions_file().cell)
