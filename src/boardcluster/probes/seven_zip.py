"""7-Zip's own benchmark: compress and decompress with LZMA, in MIPS."""

from __future__ import annotations

import re
from statistics import fmean

from boardcluster.errors import ProbeOutputError
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.units import MIB

__all__ = ["PROBE", "parse_seven_zip"]

THREADS = (1, 2, 4)
"""Of Gamess and Hernandez 2022, Fig. 7."""

_QUICK_BITS = 22
"""The smallest dictionary that 7-Zip begins with when it is not told to use less: 4 MiB."""

_PAPER_BITS = 23
"""8 MB: Gamess and Hernandez 2022, Section IV.B."""

_LIMIT_SECONDS = 1200.0

_HEADING = re.compile(
    r"^ +Compressing +\| +Decompressing *\n"
    r"Dict +Speed +Usage +R/U +Rating +\| +Speed +Usage +R/U +Rating *\n"
    r" +Ki?B/s +% +MIPS +MIPS +\| +Ki?B/s +% +MIPS +MIPS *$",
    re.MULTILINE,
)
_ROW = re.compile(r"^(\d\d): +(\d+) +(\d+) +(\d+) +(\d+) +\| +(\d+) +(\d+) +(\d+) +(\d+) *$", re.M)
_MEAN = re.compile(r"^Avr: +(?:\d+ +)?\d+ +\d+ +(\d+) +\| +(?:\d+ +)?\d+ +\d+ +(\d+) *$", re.M)
_TOTAL = re.compile(r"^Tot: +\d+ +\d+ +(\d+) *$", re.M)
_THREADS = re.compile(r"# Benchmark threads: +(\d+)\b")
_KINDS = ("compress", "decompress")
_ROUNDING_MIPS = 2.0
_HINT = "run `7z b -mmt1` on the node; p7zip 16.02 and 7-Zip 22 to 26 are supported"


def parse_seven_zip(text: str, *, threads: int, largest_bits: int) -> tuple[ProbeFigure, ...]:
    """Read what ``7z b`` prints.

    Args:
        text: its standard output.
        threads: how many were asked for.
        largest_bits: binary logarithm of the largest dictionary that was asked for.

    Raises:
        ProbeOutputError: it is not such an output, or not of this run.
    """
    if not _HEADING.search(text):
        raise ProbeOutputError("7z b printed no heading of its table", hint=_HINT)
    used = _THREADS.findall(text)
    if used != [str(threads)]:
        raise ProbeOutputError(f"7z b ran {used} threads, not {threads}", hint=_HINT)
    mips = {int(row[0]): (int(row[4]), int(row[8])) for row in _ROW.findall(text)}
    if list(mips) != list(range(_QUICK_BITS, largest_bits + 1)):
        raise ProbeOutputError(
            f"7z b printed dictionaries {list(mips)}, not {_QUICK_BITS} to {largest_bits}",
            hint=_HINT,
        )
    means, totals = _MEAN.findall(text), _TOTAL.findall(text)
    if len(means) != 1 or len(totals) != 1:
        raise ProbeOutputError("7z b printed no line 'Avr:' or no line 'Tot:'", hint=_HINT)
    for place, kind in enumerate(_KINDS):
        own = fmean(row[place] for row in mips.values())
        if abs(own - int(means[0][place])) > _ROUNDING_MIPS or own <= 0:
            raise ProbeOutputError(
                f"7z b: the mean of its {kind} ratings is {own:g}, not {means[0][place]}",
                hint=_HINT,
            )
    same = {"threads": str(threads)}
    figures = [
        ProbeFigure(
            name=f"seven_zip_{kind}_mips",
            value=float(value),
            conditions={**same, "dictionary": f"{(1 << bits) // MIB}MiB"},
        )
        for bits, row in mips.items()
        for kind, value in zip(_KINDS, row, strict=True)
    ]
    largest = {**same, "largest_dictionary": f"{(1 << largest_bits) // MIB}MiB"}
    total = ProbeFigure(name="seven_zip_total_mips", value=float(totals[0]), conditions=largest)
    return (*figures, total)


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    paper = site.mode is ProbeMode.PAPER
    bits = _PAPER_BITS if paper else _QUICK_BITS
    figures: list[ProbeFigure] = []
    for threads in THREADS if paper else sorted({1, site.cores}):
        site.tell(f"7z b, {threads} threads")
        done = site.remote.run(
            ["7z", "b", f"-mmt{threads}", f"-md{bits}"], timeout_seconds=_LIMIT_SECONDS
        )
        figures.extend(parse_seven_zip(done.text, threads=threads, largest_bits=bits))
    return tuple(figures)


PROBE = Probe(
    name="seven-zip",
    area="cpu",
    summary="7-Zip's benchmark: MIPS of compressing and decompressing",
    matches=("Gamess and Hernandez 2022, Figs. 8 and 9",),
    tools=(NodeTool(program="7z", package="p7zip-full", version=()),),
    measure=_measure,
    quick_seconds=20,
    paper_seconds=60,
)
