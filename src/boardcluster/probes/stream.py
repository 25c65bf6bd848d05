"""Memory bandwidth by the four kernels of STREAM: copy, scale, add, triad."""

from __future__ import annotations

import math
import re
from importlib import resources
from statistics import fmean

from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.units import format_bytes

__all__ = ["KERNELS", "PROBE", "elements_for", "parse_stream"]

KERNELS = ("copy", "scale", "add", "triad")
ELEMENTS = 10_000_000
"""Of each of the three arrays: Gamess and Hernandez 2022, Fig. 13."""

TIMES = 10
"""Passes: the same."""

_BYTES_PER_ELEMENT = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
_PAPER_RUNS = 5
_ARRAYS_BYTES = 3 * 8
_MEMORY_SHARE = 4
"""The arrays may take a quarter of a node's memory: the rest is the daemons'."""

_ELEMENTS_LEAST = 1_000_000
_COMPILE_SECONDS = 120.0
_LIMIT_SECONDS = 600.0
_RATE_TOLERANCE = 1e-4

_HEAD = re.compile(r"threads (\d+) elements (\d+) times (\d+)")
_ROW = re.compile(r"(\w+) (\d+) bytes per second, best of (\d+) in (\d+\.\d{9}) s")


def elements_for(memory_bytes: int) -> int:
    """Return how long each array is on a node.

    Raises:
        CapacityError: the node's memory holds no arrays that are larger than its caches.
    """
    elements = min(ELEMENTS, memory_bytes // _MEMORY_SHARE // _ARRAYS_BYTES)
    if elements < _ELEMENTS_LEAST:
        raise CapacityError(
            f"a quarter of {format_bytes(memory_bytes, binary=True)} cannot hold three arrays of "
            f"{_ELEMENTS_LEAST} numbers",
            hint="leave the probe out on this node",
        )
    return elements


def parse_stream(text: str, *, threads: int, elements: int, times: int = TIMES) -> dict[str, float]:
    """Read what the program prints: bytes per second by kernel.

    Args:
        text: its standard output.
        threads: how many were asked for.
        elements: length of each array.
        times: how many passes were asked for.

    Raises:
        ProbeOutputError: it is not such an output, not of this run, or the arrays are wrong.
    """
    lines = text.splitlines()
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or len(lines) != len(KERNELS) + 2 or lines[-1] != "the arrays are right":
        raise ProbeOutputError(f"the kernels of STREAM printed {text[:200]!r}")
    seen = tuple(int(word) for word in head.groups())
    if seen != (threads, elements, times):
        raise ProbeOutputError(
            f"the kernels of STREAM ran {seen[0]} threads, {seen[1]} elements, {seen[2]} times, "
            f"not {threads}, {elements}, {times}"
        )
    rates: dict[str, float] = {}
    for kernel, line in zip(KERNELS, lines[1:-1], strict=True):
        row = _ROW.fullmatch(line)
        if row is None or row[1] != kernel or int(row[3]) != times - 1:
            raise ProbeOutputError(f"the kernels of STREAM printed {line!r} for {kernel}")
        rate, seconds = float(row[2]), float(row[4])
        expected = _BYTES_PER_ELEMENT[kernel] * elements / seconds if seconds > 0 else math.inf
        if not rate > 0 or abs(expected / rate - 1) > _RATE_TOLERANCE:
            raise ProbeOutputError(f"the kernels of STREAM: rate and time disagree in {line!r}")
        rates[kernel] = rate
    return rates


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Compile the kernels on the node, for its own CPU, and run them."""
    elements = elements_for(site.memory_bytes)
    program = f"{site.folder}/stream_kernels"
    source = resources.files("boardcluster.probes").joinpath("stream_kernels.c")
    with resources.as_file(source) as path:
        site.remote.put(path, f"{program}.c")
    site.remote.run(
        [
            *("gcc", "-std=gnu11", "-O3", "-march=native", "-fopenmp", f"-DELEMENTS={elements}"),
            *(f"-DTIMES={TIMES}", f"{program}.c", "-lm", "-o", program),
        ],
        timeout_seconds=_COMPILE_SECONDS,
    )
    runs = _PAPER_RUNS if site.mode is ProbeMode.PAPER else 1
    figures: list[ProbeFigure] = []
    for threads in sorted({1, site.cores}):
        site.tell(f"the kernels of STREAM, {threads} threads")
        rates = []
        for _ in range(runs):
            done = site.remote.run(
                [program],
                env={"OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "false"},
                timeout_seconds=_LIMIT_SECONDS,
            )
            rates.append(parse_stream(done.text, threads=threads, elements=elements))
        conditions = {"threads": str(threads), "elements": str(elements), "runs": str(runs)}
        means = {
            f"stream_{kernel}_bytes_per_second": fmean(row[kernel] for row in rates)
            for kernel in KERNELS
        }
        figures += figures_from(means, conditions)
    return tuple(figures)


PROBE = Probe(
    name="stream",
    area="memory",
    summary="memory bandwidth: copy, scale, add and triad, as STREAM defines them",
    matches=("Gamess and Hernandez 2022, Fig. 14, with our own code",),
    tools=(NodeTool(program="gcc", package="build-essential"),),
    measure=_measure,
    quick_seconds=5,
    paper_seconds=20,
)
