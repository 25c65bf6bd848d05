"""A hash count of words by Perl on one node: what one competent program takes for WordCount."""

from __future__ import annotations

import zlib
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

__all__ = ["COUNT", "PROBE", "expected_words"]

COUNT = (
    r"$words{$_}++ for split /[ \t\n\r\f]+/; "
    r'END { delete $words{""}; print "$_\t$words{$_}\n" for keys %words }'
)
"""Words are divided as docs/decisions/0009-what-a-word-is.md says; Perl's own blanks differ."""

_MEMORY_BYTES = 150_000_000
"""Perl 5.36 took 110 MB for the 336,777 different words of the flights on a 64-bit system."""


def expected_words(text: Text) -> LineSet:
    """Return what must come out: one line for each word, with its count."""
    counts = text.words()
    lines = (b"%b\t%d" % (word, count) for word, count in counts.items())
    return LineSet(lines=len(counts), checksum=sum(map(zlib.crc32, lines)))


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Run the count; what must come out is counted here, without Perl."""
    figures: list[ProbeFigure] = []
    for size_bytes in fitting_sizes(site, "perl", copies=2, memory_bytes=_MEMORY_BYTES):
        text = put_text(site, size_bytes)
        right = expected_words(text)
        figures += measure_program(
            site,
            ("perl", "-n", "-e", COUNT, f"{site.folder}/input"),
            name="single_count",
            size_bytes=size_bytes,
            input_bytes=text.size_bytes,
            prove=partial(check_lines, site, "what perl counted", right, size_bytes=size_bytes),
        )
    return tuple(figures)


PROBE = Probe(
    name="single-count",
    area="whole",
    summary="a hash count by Perl of the words of the flights",
    matches=("the single-machine side of WordCount: Lee, Oh and Park 2021; Lee and Park 2026",),
    tools=(
        NodeTool(program="perl", package="perl-base"),
        NodeTool(program="python3", package="python3"),
    ),
    measure=_measure,
    quick_seconds=15,
    paper_seconds=60,
    default=False,
)
