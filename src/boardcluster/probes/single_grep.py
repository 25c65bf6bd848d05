"""GNU grep on one node, for what the Grep workload searches: what one competent program takes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial

from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.single_machine import (
    LineSet,
    Text,
    check_lines,
    fitting_sizes,
    measure_program,
    put_text,
)
from boardcluster.records import ProbeFigure

__all__ = ["PATTERN", "PROBE", "expected_counts", "stages_of"]

PATTERN = "ATL"
"""What the Grep workload searches for unless it is told otherwise."""


def stages_of(form: str, path: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands that leave what an engine's job leaves.

    Args:
        form: ``counts``: each text found with its count, as Hadoop's example; ``lines``: every
            matching line, as our Spark job.
        path: the text.
    """
    if form == "lines":
        return (("grep", "-haE", "-e", PATTERN, "--", path),)
    found = ("grep", "-haoE", "-e", PATTERN, "--", path)
    return (found, ("sort", "--parallel=1"), ("uniq", "-c"))


def expected_counts(text: Text) -> LineSet:
    """Return what the form ``counts`` must be: one line, since the pattern is a plain text."""
    line = b"%7d %b" % (text.occurrences(PATTERN.encode()), PATTERN.encode())
    return LineSet(lines=1, checksum=zlib.crc32(line))


_EXPECTED: dict[str, Callable[[Text], LineSet]] = {
    "counts": expected_counts,
    "lines": lambda text: text.matching(PATTERN.encode()),
}


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Run grep in both forms; what must come out is found here, without grep."""
    figures: list[ProbeFigure] = []
    for size_bytes in fitting_sizes(site, "grep", copies=2):
        text = put_text(site, size_bytes)
        for form, expected in _EXPECTED.items():
            right = expected(text)
            figures += measure_program(
                site,
                *stages_of(form, f"{site.folder}/input"),
                name="single_grep",
                size_bytes=size_bytes,
                input_bytes=text.size_bytes,
                prove=partial(check_lines, site, "what grep found", right, size_bytes=size_bytes),
                conditions={"form": form, "pattern": PATTERN},
            )
    return tuple(figures)


PROBE = Probe(
    name="single-grep",
    area="whole",
    summary="GNU grep of the flights, for lines and for counts",
    matches=("the single-machine side of Grep: Lee, Oh and Park 2021; Lee and Park 2026",),
    tools=(
        NodeTool(program="grep", package="grep"),
        NodeTool(program="sort", package="coreutils"),
        NodeTool(program="uniq", package="coreutils"),
        NodeTool(program="python3", package="python3"),
    ),
    measure=_measure,
    quick_seconds=8,
    paper_seconds=40,
    default=False,
)
