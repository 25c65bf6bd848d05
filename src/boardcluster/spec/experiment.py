"""``experiment.toml`` -> a validated ExperimentSpec: one campaign on one or more emulated clusters.

The file names other files and the papers' cells; what these hold is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from boardcluster.records import Engine, MasterPlacement
from boardcluster.spec.checks import (
    Allowed,
    check_campaign_name,
    check_choice,
    check_input_size,
    complaint,
    mix_jobs,
)
from boardcluster.spec.cluster import NODES_MAX
from boardcluster.spec.problems import (
    Problem,
    StrictTable,
    Text,
    key_text,
    read_model,
    repeated,
    word_of,
)
from boardcluster.spec.toml import KeyPath, TomlDocument, path_from

__all__ = ["ExperimentSpec", "PublishedSpec", "Vary", "load_experiment"]

_CREATE_HINT = "name an experiment file, or copy one of the project's folder examples/twin"


class Vary(StrEnum):
    """What the columns of an experiment's table are; all but TWIN are keys of a campaign."""

    TWIN = "twin"
    WORKERS = "workers"
    MASTER = "master"
    CONCURRENCY = "concurrency"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSpec:
    """A number of a paper to compare with one of ours; it is named here and never written."""

    place: str
    """Where it is in the file, for messages: ``FILE:LINE: published[0]``."""
    file: str
    """Id of a published table; empty where a ratio is named."""
    where: Mapping[str, str]
    """Columns of the table with the value that the cell has there."""
    quantity: str
    """What the cell is."""
    ratio: str
    """Id of a ratio that a paper states; empty where a cell is named."""
    of: Mapping[str, str | int]
    """Which of our cells it belongs to: names of a trial's attributes, and ``twin``, with the
    values that the cell has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSpec:
    """A validated ``experiment.toml``."""

    name: str
    """Its name."""
    question: str
    """What it is to answer, one sentence."""
    campaign: Path
    """The campaign file."""
    twins: tuple[Path, ...]
    """The files of the emulated clusters, in the order in which they run."""
    vary: Vary
    """What the columns of its table are."""
    published: tuple[PublishedSpec, ...]
    """What the papers say of its cells."""


class _Experiment(StrictTable):
    name: Annotated[str, BeforeValidator(check_campaign_name)] = Field(
        description=Allowed.CAMPAIGN_NAME
    )
    question: Text = Field(description="one sentence")
    campaign: Text = Field(description="the path of a campaign file, from this file's folder")
    twins: list[Text] = Field(
        min_length=1, description="one or more paths of twin files, from this file's folder"
    )
    vary: Annotated[Vary, word_of(Vary, "something to vary")] = Field(
        description=f"one of {', '.join(Vary)}"
    )


class _Of(StrictTable):
    """Which of our cells; a key that is left out may have any value."""

    twin: Text | None = Field(default=None, description="a twin file without its .toml")
    workload: Text | None = Field(default=None, description="a workload or a mix")
    engine: Annotated[Engine, word_of(Engine, "an engine")] | None = Field(
        default=None, description=f"one of {', '.join(Engine)}"
    )
    size: Annotated[int, BeforeValidator(check_input_size)] | None = Field(
        default=None, description=Allowed.INPUT_SIZE
    )
    workers: int | None = Field(
        default=None, ge=1, le=NODES_MAX, description=f"a whole number from 1 to {NODES_MAX}"
    )
    master: Annotated[MasterPlacement, word_of(MasterPlacement, "a place of the master")] | None = (
        Field(default=None, description=f"one of {', '.join(MasterPlacement)}")
    )
    concurrency: int | None = Field(default=None, ge=1, description="a whole number from 1")
    profile: Text | None = Field(default=None, description="a profile")


class _Published(StrictTable):
    file: str = Field(default="", description="the id of a published table")
    where: dict[str, str] = Field(
        default={}, description="a table of columns with the cell's values, all as text"
    )
    quantity: str = Field(default="", description="what the cell is, as execution_time")
    ratio: str = Field(default="", description="the id of a ratio that a paper states")
    of: _Of = Field(description="a table that says which of our cells it belongs to")


class _ExperimentFile(StrictTable):
    experiment: _Experiment = Field(description="one [experiment] table")
    published: list[_Published] = Field(default=[], description="any number of [[published]]")


def load_experiment(path: Path) -> ExperimentSpec:
    """Read and validate an ``experiment.toml``; the files it names are not opened.

    Relative paths in it start at its folder.

    Raises:
        SpecError: the file cannot be read, is not TOML, or is wrong; lists every problem with its
            line, key, value, what is allowed and the nearest valid name.
    """
    model, document = read_model(path, _ExperimentFile, create_hint=_CREATE_HINT, check=_problems)
    folder = path.expanduser().absolute().parent
    named = model.experiment
    return ExperimentSpec(
        name=named.name,
        question=named.question,
        campaign=path_from(folder, named.campaign),
        twins=tuple(path_from(folder, twin) for twin in named.twins),
        vary=named.vary,
        published=tuple(
            _to_record(document, place, row) for place, row in enumerate(model.published)
        ),
    )


def _problems(model: _ExperimentFile) -> list[Problem]:
    """Find twins that would have the same name, and published numbers that name nothing."""
    names = [Path(twin).stem for twin in model.experiment.twins]
    rows: list[tuple[KeyPath, str]] = [
        (("experiment", "twins", index), name) for index, name in enumerate(names)
    ]
    problems = [
        Problem(
            path=path,
            text=complaint(
                f'the name "{dict(rows)[path]}" is that of twins[{first[-1]}]',
                allowed="each twin once",
            ),
        )
        for path, first in repeated(rows)
    ]
    for index, row in enumerate(model.published):
        cell = bool(row.file and row.where and row.quantity)
        if cell == bool(row.ratio) or (row.ratio and (row.file or row.where or row.quantity)):
            text = complaint(
                "it names neither one cell nor one ratio",
                allowed="file, where and quantity together, or ratio alone",
            )
            problems.append(Problem(path=("published", index), text=text))
        if row.of.twin is not None:
            try:
                check_choice(row.of.twin, names, what="a twin of this experiment")
            except ValueError as error:
                path = ("published", index, "of", "twin")
                problems.append(Problem(path=path, text=str(error)))
        if row.of.workload is not None:
            try:
                mix_jobs(row.of.workload)
            except ValueError as error:
                path = ("published", index, "of", "workload")
                problems.append(Problem(path=path, text=str(error)))
    return problems


def _to_record(document: TomlDocument, index: int, row: _Published) -> PublishedSpec:
    of = row.of.model_dump(exclude_none=True)
    if "size" in of:
        of["size_bytes"] = of.pop("size")
    if "workload" in of:
        of["workload"] = "+".join(mix_jobs(of["workload"]))
    at = ("published", index)
    return PublishedSpec(
        place=f"{document.path}:{document.line_of(at)}: {key_text(at)}",
        file=row.file,
        where=row.where,
        quantity=row.quantity,
        ratio=row.ratio,
        of=of,
    )
