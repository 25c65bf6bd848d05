"""What the probes of one competent program on one node share: sizes, space, timing, the text.

The programs do on one node what a workload does on the cluster, on the same kind of input, so that
the two can be compared: see docs/explanation/cost.md.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from boardcluster.datasets.airline import prepare_airline
from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes.base import Site, figures_from
from boardcluster.probes.fio import FioTarget, parse_target
from boardcluster.probes.node import ask_program
from boardcluster.probes.timing import time_program
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.remote.node_rpc import drop_caches
from boardcluster.units import format_bytes, format_count

__all__ = [
    "REPEATS",
    "SIZES_BYTES",
    "LineSet",
    "Text",
    "ask_node",
    "check_equal",
    "check_lines",
    "fitting_sizes",
    "measure_program",
    "put_text",
    "text_of",
]

SIZES_BYTES: Mapping[ProbeMode, tuple[int, ...]] = {
    ProbeMode.QUICK: (64_000_000, 256_000_000),
    ProbeMode.PAPER: (256_000_000, 1_000_000_000),
}
"""The paper's smallest inputs are 256 MB and 1 GB (Lee, Oh and Park 2021; Lee and Park 2026)."""

REPEATS: Mapping[ProbeMode, int] = {ProbeMode.QUICK: 2, ProbeMode.PAPER: 3}

_NODE_PROGRAM = "single_machine"
_SLOWEST_BYTES_PER_SECOND = 500_000
_PATIENCE_SECONDS = 120.0
_FREE_SHARE = 0.9
_MEMORY_SHARE = 0.5
"""The rest is for the daemons that run beside, and for the page cache."""

_IN_MEMORY = ("tmpfs", "ramfs")
_DELIMITERS = bytes.maketrans(b"\t\n\r\f", b"    ")
"""Of words, beside the space: docs/decisions/0009-what-a-word-is.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSet:
    """A set of lines, whatever their order."""

    lines: int
    """How many."""
    checksum: int
    """Sum of the CRC-32 of each, without its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The flights, repeated to a size and cut after the last whole line, as campaigns do it."""

    unit: bytes
    """What is repeated; ends with a newline."""
    copies: int
    """How often it is there as a whole."""
    rest: bytes
    """What follows."""

    @property
    def size_bytes(self) -> int:
        """Bytes in all."""
        return len(self.unit) * self.copies + len(self.rest)

    def words(self) -> dict[bytes, int]:
        """Count each word."""
        counts = Counter({word: self.copies * count for word, count in _words(self.unit).items()})
        counts.update(_words(self.rest))
        return {word: count for word, count in counts.items() if count}

    def matching(self, text: bytes) -> LineSet:
        """Return the lines that hold a text."""
        number = checksum = 0
        for part, times in ((self.unit, self.copies), (self.rest, 1)):
            found = [line for line in part.split(b"\n") if text in line]
            number += times * len(found)
            checksum += times * sum(map(zlib.crc32, found))
        return LineSet(lines=number, checksum=checksum)

    def occurrences(self, text: bytes) -> int:
        """Count how often a text without a newline stands in it, none overlapping another."""
        return self.copies * self.unit.count(text) + self.rest.count(text)


def _words(text: bytes) -> Counter[bytes]:
    words = Counter(text.translate(_DELIMITERS).split(b" "))
    del words[b""]
    return words


def text_of(unit: bytes, size_bytes: int) -> Text:
    """Return a text of at most a size.

    Raises:
        ProbeOutputError: the unit does not end with a newline.
    """
    if not unit.endswith(b"\n"):
        raise ProbeOutputError("the flights do not end with a newline")
    copies, rest = divmod(size_bytes, len(unit))
    return Text(unit=unit, copies=copies, rest=unit[: unit.rfind(b"\n", 0, rest) + 1])


@cache
def _flights(path: Path) -> bytes:
    return path.read_bytes()


def put_text(site: Site, size_bytes: int) -> Text:
    """Make the text of a size on the node, as ``input`` in the site's folder; return what it is.

    Raises:
        InstallError: the flights could not be fetched.
        ProbeOutputError: the node made another text.
    """
    dataset = prepare_airline(size_bytes=None, cache=Path(site.settings["cache"]))
    text = text_of(_flights(dataset.path), size_bytes)
    site.tell(f"making {format_bytes(size_bytes)} of flights")
    unit = f"{site.folder}/unit"
    site.remote.put(dataset.path, unit)
    request = {"do": "grow", "source": unit, "path": f"{site.folder}/input"}
    made = ask_node(site, {**request, "size_bytes": size_bytes}, size_bytes=size_bytes)
    if made != {"size_bytes": text.size_bytes}:
        raise ProbeOutputError(f"the text has {made} bytes, not {text.size_bytes}")
    return text


def ask_node(site: Site, request: Mapping[str, Any], *, size_bytes: int) -> Any:
    """Run a verb of the node's program; one that reads or writes so many bytes.

    Raises:
        ProbeOutputError: the answer is not JSON.
        RemoteError: it failed or did not end in time.
    """
    limit_seconds = _limit_seconds(size_bytes)
    return ask_program(site.remote, _NODE_PROGRAM, request, timeout_seconds=limit_seconds)


def _limit_seconds(size_bytes: int) -> float:
    return _PATIENCE_SECONDS + size_bytes / _SLOWEST_BYTES_PER_SECOND


def check_lines(site: Site, what: str, expected: LineSet, *, size_bytes: int) -> None:
    """Refuse a file ``output`` on the node that does not hold these lines, whatever their order.

    Raises:
        ProbeOutputError: it holds others.
    """
    path = f"{site.folder}/output"
    answer = ask_node(site, {"do": "lines", "path": path}, size_bytes=size_bytes)
    try:
        found = LineSet(lines=int(answer["lines"]), checksum=int(answer["checksum"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeOutputError(f"the lines of {path} are {str(answer)[:80]!r}") from error
    check_equal(what, found, expected)


def fitting_sizes(
    site: Site, program: str, *, copies: int, memory_bytes: int = 0
) -> tuple[int, ...]:
    """Return the sizes of the site's mode that fit; those that do not are told, with the sums.

    Args:
        site: where.
        program: its name, for messages.
        copies: how much there is on the disk at most, as a multiple of the input: the input, the
            output, and what is written between.
        memory_bytes: what it must have in memory, whatever the size of the input.

    Raises:
        CapacityError: none fits.
    """
    found = site.remote.run(["df", "-B1", "--output=avail,fstype", site.folder])
    place = parse_target(found.text)
    fitting, refused = [], []
    for size_bytes in SIZES_BYTES[site.mode]:
        words = _does_not_fit(site, place, size_bytes, copies, memory_bytes)
        if words:
            refused.append(f"{program} on {format_bytes(size_bytes)}: {words}")
        else:
            fitting.append(size_bytes)
    if not fitting:
        raise CapacityError(
            f"{site.node}: {'; '.join(refused)}",
            hint="free some space on that medium, omit --paper, or probe a larger node",
        )
    for row in refused:
        site.tell(f"left out: {row}")
    return tuple(fitting)


def _does_not_fit(
    site: Site, place: FioTarget, size_bytes: int, copies: int, memory_bytes: int
) -> str:
    """Return why an input is too large, with the sums; empty if it is not."""
    disk_bytes = copies * size_bytes
    words = format_bytes(memory_bytes)
    disk_words = f"{copies} x {format_bytes(size_bytes)} = {format_bytes(disk_bytes)}"
    if place.file_system in _IN_MEMORY:
        memory_bytes += disk_bytes
        words = f"{disk_words} and {words}"
    lacks = []
    if disk_bytes > _FREE_SHARE * place.free_bytes:
        lacks.append(
            f"{disk_words} on disk is more than {_FREE_SHARE:.0%} of the "
            f"{format_bytes(place.free_bytes)} that are free in {site.folder}"
        )
    if memory_bytes > _MEMORY_SHARE * site.memory_bytes:
        lacks.append(
            f"{words} in memory is more than {_MEMORY_SHARE:.0%} of its "
            f"{format_bytes(site.memory_bytes)}"
        )
    return " and ".join(lacks)


def measure_program(
    site: Site,
    *stages: Sequence[str],
    name: str,
    size_bytes: int,
    input_bytes: int,
    prove: Callable[[], None],
    threads: int = 1,
    conditions: Mapping[str, str] | None = None,
) -> list[ProbeFigure]:
    """Run a program as often as the mode asks for; prove each output; return time and rate.

    Before each run the page cache is dropped, where that is allowed.

    Args:
        site: where.
        stages: argument lists of a program, or of a pipeline, that reads ``input``; what it prints
            goes to ``output`` in the site's folder.
        name: beginning of its figures' names: ``single_sort``.
        size_bytes: size of the input, as a campaign names it.
        input_bytes: bytes in it; less where a text was cut at a line's end.
        prove: raises ``ProbeOutputError`` if what the program wrote is wrong.
        threads: how many it may use.
        conditions: what else tells its figures apart.

    Raises:
        ProbeOutputError: an output is wrong.
        RemoteError: the program failed, or did not end in time.
    """
    words = format_count(threads, "thread")
    took: list[float] = []
    dropped = True
    for _ in range(REPEATS[site.mode]):
        dropped = drop_caches(site.admin).dropped and dropped
        names = " | ".join(argv[0] for argv in stages)
        site.tell(f"{names}, {format_bytes(size_bytes)}, {words}")
        seconds = time_program(
            site.remote,
            *stages,
            folder=site.folder,
            timeout_seconds=_limit_seconds(size_bytes),
            output="output",
        )
        took.append(seconds)
        prove()
    mean = fmean(took)
    values = {f"{name}_seconds": mean, f"{name}_bytes_per_second": input_bytes / mean}
    common = {
        "size_bytes": str(size_bytes),
        "threads": str(threads),
        **(conditions or {}),
        "cache": "dropped" if dropped else "kept",
        "repeats": str(len(took)),
    }
    return figures_from(values, common)


def check_equal(what: str, found: object, expected: object) -> None:
    """Refuse an output that is not the expected one."""
    if found != expected:
        raise ProbeOutputError(f"{what}: {found}, expected {expected}")
