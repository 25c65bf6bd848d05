"""Rpeak of the boards that a result was measured on, from what is known of their processors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from boardcluster.analysis.efficiency import Peak, hpl_peak_gflops
from boardcluster.catalog.lookup import find_board
from boardcluster.records import Fingerprint, NodeSpec
from boardcluster.spec.problems import StrictTable, Text, read_model

__all__ = ["Processor", "peak_of", "read_processors"]

_FILE = Path(__file__).parent / "processors.toml"
_HARDWARE = re.compile(r"\b(\d+) x (.+?) at (\d+(?:\.\d+)?) GHz")
_SEVERAL = " + "
"""Joins the kinds of cores of a processor that has several: ``Cortex-A55 + Cortex-A76``."""


class Processor(StrictTable):
    """A processor, as ``processors.toml`` has it."""

    names: list[Text] = Field(min_length=1, description="a list of texts")
    operations_per_cycle: float = Field(gt=0, le=1024, description="a number above 0")
    source: Text


class _Processors(StrictTable):
    processor: list[Processor] = Field(min_length=1, description="at least one [[processor]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PeakNode:
    """One worker: its processor in words, its cores, and its highest clock."""

    processor: str
    cores: int
    clock_hertz: float


@cache
def read_processors(path: Path = _FILE) -> tuple[Processor, ...]:
    """Read ``processors.toml``.

    Raises:
        SpecError: it is missing or wrong.
    """
    found, _ = read_model(path, _Processors, create_hint="restore the file from the package")
    return tuple(found.processor)


def peak_of(nodes: Sequence[NodeSpec], setup: Fingerprint) -> Peak:
    """Return the sum of clock * cores * operations per cycle over the workers of a result.

    Of emulated boards it is the peak of what they stand for, of boards what the fingerprint says of
    each.

    Args:
        nodes: the workers that took part.
        setup: what the result was measured on.

    Raises:
        UsageError: a board that nodes stand for is not in the catalog any more.
        SpecError: a file that describes one is missing or wrong.
    """
    lines = dict(line.split(": ", 1) for line in setup.hardware if ": " in line)
    gflops: list[float] = []
    sources: Counter[str] = Counter()
    for node in nodes:
        found = _board(node) if node.twin else _measured(lines.get(node.name, ""))
        if found is None:
            what = node.twin.board if node.twin else node.name
            return Peak(gflops=None, reason=f"processor and clock of {what} are not known")
        processor = _processor(found.processor)
        if processor is None:
            why = f"the catalog has no operations per cycle of {found.processor}"
            return Peak(gflops=None, reason=why)
        gflops.append(
            hpl_peak_gflops(found.clock_hertz, found.cores, processor.operations_per_cycle)
        )
        sources[
            f"{found.cores} x {found.processor} at {found.clock_hertz / 1e9:g} GHz, "
            f"{processor.operations_per_cycle:g} operations per cycle ({processor.source})"
        ] += 1
    if not gflops:
        return Peak(gflops=None, reason="no worker took part")
    source = " + ".join(f"{count} x ({words})" for words, count in sources.items())
    return Peak(gflops=math.fsum(gflops), source=source)


def _board(node: NodeSpec) -> _PeakNode | None:
    if node.twin is None:
        return None
    board = find_board(node.twin.board)
    if board.clock_hertz is None or not board.hardware:
        return None
    known = () if _SEVERAL in board.hardware else _known()
    name = next((name for name in known if name in board.hardware), board.hardware)
    return _PeakNode(processor=name, cores=board.cores, clock_hertz=board.clock_hertz)


def _measured(line: str) -> _PeakNode | None:
    """Read what a fingerprint says of one board: ``4 x Cortex-A76 at 2.40 GHz``."""
    found = _HARDWARE.search(line)
    if not found:
        return None
    return _PeakNode(
        processor=found[2], cores=int(found[1]), clock_hertz=round(float(found[3]) * 1e9)
    )


def _known() -> list[str]:
    return [name for processor in read_processors() for name in processor.names]


def _processor(words: str) -> Processor | None:
    if _SEVERAL in words:
        return None  # how many cores are of which kind, and at which clock, is not said
    fitting = (row for row in read_processors() if any(name in words for name in row.names))
    return next(fitting, None)
