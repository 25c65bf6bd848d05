"""GNU sort on one node, of as many records as TeraSort sorts: what one competent program takes."""

from __future__ import annotations

from functools import partial

from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.single_machine import (
    ask_node,
    check_equal,
    fitting_sizes,
    measure_program,
)
from boardcluster.records import ProbeFigure
from boardcluster.units import MIB, format_bytes

__all__ = ["PROBE", "sort_argv"]

_RECORD_BYTES = 100
_SEED = 2015
_BUFFER_SHARE = 2
_COPIES = 3
"""Input, output, and once more what does not fit into the buffer. Sort ends in any memory."""


def sort_argv(site: Site, threads: int) -> tuple[str, ...]:
    """Return the command: in the order of bytes, with half of the node's memory as its buffer.

    The buffer is said in bytes, since sort would take its share of the machine's memory, which an
    emulated node does not have. The first ten bytes of a line are the key; what follows decides
    between equal keys only.
    """
    buffer_mib = max(1, site.memory_bytes // _BUFFER_SHARE // MIB)
    return (
        *("sort", f"--parallel={threads}", "-S", f"{buffer_mib}M"),
        *("-T", site.folder, "--", f"{site.folder}/input"),
    )


def _prove(site: Site, size_bytes: int, made: dict[str, int]) -> None:
    """Refuse an output that is not the input in order."""
    request = {"do": "sorted", "path": f"{site.folder}/output"}
    found = ask_node(site, request, size_bytes=size_bytes)
    check_equal("what sort wrote", found, {**made, "descents": 0})


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    figures: list[ProbeFigure] = []
    for size_bytes in fitting_sizes(site, "sort", copies=_COPIES):
        site.tell(f"making {format_bytes(size_bytes)} of records")
        request = {"do": "records", "path": f"{site.folder}/input", "seed": _SEED}
        count = size_bytes // _RECORD_BYTES
        made = ask_node(site, {**request, "count": count}, size_bytes=size_bytes)
        for threads in sorted({1, site.cores}):
            figures += measure_program(
                site,
                sort_argv(site, threads),
                name="single_sort",
                size_bytes=size_bytes,
                input_bytes=count * _RECORD_BYTES,
                prove=partial(_prove, site, size_bytes, made),
                threads=threads,
            )
    return tuple(figures)


PROBE = Probe(
    name="single-sort",
    area="whole",
    summary="GNU sort of 100-byte records, on one thread and on all cores",
    matches=("the single-machine side of TeraSort: Lee, Oh and Park 2021; Lee and Park 2026",),
    tools=(
        NodeTool(program="sort", package="coreutils"),
        NodeTool(program="python3", package="python3"),
    ),
    measure=_measure,
    quick_seconds=15,
    paper_seconds=150,
    default=False,
)
