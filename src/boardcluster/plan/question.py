"""What is asked: one run that may not have been made, or many that differ in size and hardware."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boardcluster.errors import UsageError
from boardcluster.records import Engine, Security
from boardcluster.units import parse_size_with_unit

__all__ = ["Question", "QuestionBatch", "read_input_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One run: what it computes and on what."""

    workload: str
    """Name of the workload, or ``submit`` for the user's own program."""
    engine: Engine
    """The engine it runs on."""
    size_bytes: int
    """Input size; 0 where the workload takes none (pi, hpl, netpipe)."""
    workers: int
    """Number of workers, at least 1."""
    board: str
    """Every worker's board: a name of the catalog, or the path of a TOML file."""
    medium: str
    """Every worker's medium: a name of the catalog, or the path of a TOML file."""
    replication: int = 3
    """Copies of each HDFS block."""
    workers_least: int = 1
    """Fewest workers that the workload runs on: a run on fewer is not advised."""
    link_bits_per_second: float = 1e9
    """What a worker's link can carry in each direction; 0 for a node alone, which has none."""
    slots: int = 0
    """Tasks that one worker runs at once; 0 as the learned runs had it. Nothing was learned yet
    that says what another number does, so any other is not known."""
    parameters: dict[str, str] = field(default_factory=dict)
    """``workload.parameter`` to value as text; only what is set."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines to values; only what is set."""
    arguments: tuple[str, ...] = ()
    """The user's own program and its arguments; empty for workloads."""
    profile: str = ""
    """The engine configuration; empty takes the one that most runs had."""
    engines: str = ""
    """Versions of the engines, as ``RunObservation`` has them; empty takes the ones that most runs
    had."""
    security: Security | None = None
    """Who may reach the cluster; None takes the mode that most runs had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBatch:
    """Many runs of one workload on one engine. Arrays have one element for each run."""

    workload: str
    """Name of the workload."""
    engine: Engine
    """The engine."""
    boards: tuple[str, ...]
    """Names of the boards that occur."""
    media: tuple[str, ...]
    """Names of the media that occur."""
    size_bytes: NDArray[np.float64]
    """Input size."""
    workers: NDArray[np.float64]
    """Number of workers."""
    board: NDArray[np.intp]
    """Place in ``boards``."""
    medium: NDArray[np.intp]
    """Place in ``media``."""
    replication: NDArray[np.float64]
    """Copies of each HDFS block."""
    link_bits_per_second: NDArray[np.float64]
    """What a worker's link can carry in each direction."""
    slots: NDArray[np.float64]
    """Tasks that one worker runs at once; 0 as the learned runs had it."""
    parameters: dict[str, str] = field(default_factory=dict)
    """``workload.parameter`` to value as text, of all of them."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines to values, of all of them."""


def read_input_size(size: str | int, *, example: str) -> int:
    """Return the size of an input in bytes; a text needs its unit.

    Args:
        size: ``"4 GB"``, or bytes.
        example: what is given as an example to whoever wrote another one.

    Raises:
        UsageError: it is no size of at least 1 byte, or has no unit.
    """
    hint = f"for example --size {example}"
    try:
        size_bytes = parse_size_with_unit(size)
    except ValueError as error:
        raise UsageError(f"--size: {error}", hint=hint) from error
    if size_bytes < 1:
        raise UsageError("--size must be at least 1 byte", hint=hint)
    return size_bytes
