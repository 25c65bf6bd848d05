"""sysbench memory: read and write one buffer again and again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from boardcluster.errors import ProbeOutputError
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.document import only_line
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.units import MIB

__all__ = ["PROBE", "MemoryTest", "parse_memory", "tests_of"]

_SPARE_SECONDS = 60.0
_RATE_TOLERANCE = 0.1
_BLOCKS_KIB = {"1K": 1, "1M": 1024, "64M": 65536}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTest:
    """One call of sysbench."""

    threads: int
    """How many at once."""
    block: str
    """Size of the buffer, as sysbench takes it."""
    operation: str
    """``read`` or ``write``."""
    access: str
    """``seq`` or ``rnd``."""
    limit_seconds: int
    """It ends after this time."""

    @property
    def argv(self) -> list[str]:
        """The command line; more is to be moved than any memory can in that time."""
        return [
            *("sysbench", "memory", f"--threads={self.threads}", "--memory-total-size=1024T"),
            *(f"--memory-block-size={self.block}", f"--memory-oper={self.operation}"),
            *(f"--memory-access-mode={self.access}", f"--time={self.limit_seconds}", "run"),
        ]


def tests_of(mode: ProbeMode, cores: int) -> tuple[MemoryTest, ...]:
    """Return the calls of a mode."""
    paper = mode is ProbeMode.PAPER
    return tuple(
        MemoryTest(
            threads=threads,
            block=block,
            operation=operation,
            access=access,
            limit_seconds=10 if paper else 1,
        )
        for block in (("1K", "1M", "64M") if paper else ("1M",))
        for access in (("seq", "rnd") if paper else ("seq",))
        for operation in ("read", "write")
        for threads in sorted({1, cores})
    )


def parse_memory(text: str, test: MemoryTest) -> ProbeFigure:
    """Read what sysbench 1.0 prints.

    Args:
        text: its standard output.
        test: what was asked for.

    Raises:
        ProbeOutputError: it is not such an output, or not of this test.
    """
    one = partial(only_line, text=text, tool="sysbench memory")
    (threads,) = one(r"^Number of threads: (\d+)$", what="Number of threads")
    (block_kib,) = one(r"^ +block size: (\d+)KiB$", what="block size")
    (operation,) = one(r"^ +operation: (\w+)$", what="operation")
    moved, rate = one(
        r"^(\d+\.\d+) MiB transferred \((\d+\.\d+) MiB/sec\)$", what="MiB transferred"
    )
    (seconds,) = one(r"^ +total time: +(\d+\.\d+)s$", what="total time")
    seen = (int(threads), int(block_kib), operation)
    wanted = (test.threads, _BLOCKS_KIB[test.block], test.operation)
    if seen != wanted:
        raise ProbeOutputError(f"sysbench memory ran {seen}, not {wanted}")
    if not float(rate) > 0 or abs(float(moved) / float(seconds) / float(rate) - 1) > (
        _RATE_TOLERANCE
    ):
        raise ProbeOutputError(f"sysbench memory says {rate} MiB/s, but {moved} MiB in {seconds} s")
    return ProbeFigure(
        name="sysbench_memory_bytes_per_second",
        value=float(rate) * MIB,
        conditions={
            "operation": test.operation,
            "access": test.access,
            "block": f"{test.block}iB",
            "threads": threads,
        },
    )


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    figures: list[ProbeFigure] = []
    for test in tests_of(site.mode, site.cores):
        site.tell(f"sysbench memory, {test.operation} {test.block}, {test.threads} threads")
        done = site.remote.run(test.argv, timeout_seconds=test.limit_seconds + _SPARE_SECONDS)
        figures.append(parse_memory(done.text, test))
    return tuple(figures)


PROBE = Probe(
    name="sysbench-memory",
    area="memory",
    summary="read and write one buffer: bytes per second, mostly of the caches",
    matches=("Gamess and Hernandez 2022, Section IV.D, which gives no numbers",),
    tools=(NodeTool(program="sysbench", package="sysbench"),),
    measure=_measure,
    quick_seconds=5,
    paper_seconds=245,
)
