"""sysbench cpu: test numbers for being prime, on 1 to 16 threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from boardcluster.errors import ProbeOutputError
from boardcluster.probes.base import NodeTool, Probe, Site
from boardcluster.probes.document import only_line
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["PROBE", "CpuTest", "parse_cpu", "tests_of"]

THREADS = (1, 2, 4, 8, 16)
"""Of Baun 2016, Table 3; Lee 2021, Table 8; Lee 2026, Tables 4 and 23."""

EVENTS = 10_000
"""What sysbench before 1.0 ran by default, and so what Baun 2016, Table 3 timed."""

_SPARE_SECONDS = 60.0
_LONGEST_SECONDS = 3600.0
_RATE_TOLERANCE = 0.1
"""The printed rate is of a slightly shorter time than the printed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTest:
    """One call of sysbench."""

    threads: int
    """How many at once."""
    prime_limit: int
    """An event tests every number up to this one."""
    limit_seconds: int
    """It ends after this time; 0 is never."""
    events: int = 0
    """It ends after so many events; 0 is never."""

    @property
    def argv(self) -> list[str]:
        """The command line."""
        return [
            *("sysbench", "cpu", f"--threads={self.threads}"),
            *(f"--cpu-max-prime={self.prime_limit}", f"--time={self.limit_seconds}"),
            *(f"--events={self.events}", "run"),
        ]


def tests_of(mode: ProbeMode, cores: int) -> tuple[CpuTest, ...]:
    """Return the calls of a mode."""

    def row(threads: int, limit: int, seconds: int, events: int = 0) -> CpuTest:
        return CpuTest(threads=threads, prime_limit=limit, limit_seconds=seconds, events=events)

    if mode is ProbeMode.PAPER:
        return (
            *(row(threads, 2_000, 10) for threads in THREADS),
            *(row(threads, 10_000, 0, EVENTS) for threads in THREADS),
            *(row(threads, 20_000, 20) for threads in THREADS),
        )
    few = sorted({1, cores})
    return (
        *(row(threads, 2_000, 2) for threads in THREADS),
        *(row(threads, 10_000, 10, EVENTS) for threads in few),
        *(row(threads, 20_000, 2) for threads in few),
    )


def parse_cpu(text: str, test: CpuTest) -> tuple[ProbeFigure, ...]:
    """Read what sysbench 1.0 prints.

    Args:
        text: its standard output.
        test: what was asked for.

    Raises:
        ProbeOutputError: it is not such an output, or not of this test.
    """
    one = partial(only_line, text=text, tool="sysbench cpu")
    threads = int(one(r"^Number of threads: (\d+)$", what="Number of threads")[0])
    limit = int(one(r"^Prime numbers limit: (\d+)$", what="Prime numbers limit")[0])
    rate = float(one(r"^ +events per second: +(\d+\.\d+)$", what="events per second")[0])
    seconds = float(one(r"^ +total time: +(\d+\.\d+)s$", what="total time")[0])
    events = int(one(r"^ +total number of events: +(\d+)$", what="total number of events")[0])
    if (threads, limit) != (test.threads, test.prime_limit):
        raise ProbeOutputError(
            f"sysbench cpu ran {threads} threads up to {limit}, not {test.threads} up to "
            f"{test.prime_limit}"
        )
    if not rate > 0 or abs(events / seconds / rate - 1) > _RATE_TOLERANCE:
        raise ProbeOutputError(
            f"sysbench cpu says {rate:g} events per second, but {events} events in {seconds:g} s"
        )
    conditions = {"threads": str(threads), "prime_limit": str(limit)}
    figures = [
        ProbeFigure(name="sysbench_cpu_events_per_second", value=rate, conditions=conditions)
    ]
    if test.events and events == test.events:
        figures.append(
            ProbeFigure(
                name="sysbench_cpu_total_seconds",
                value=seconds,
                conditions={**conditions, "events": str(events)},
            )
        )
    return tuple(figures)


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    figures: list[ProbeFigure] = []
    for test in tests_of(site.mode, site.cores):
        site.tell(f"sysbench cpu, {test.threads} threads, primes up to {test.prime_limit}")
        limit = test.limit_seconds + _SPARE_SECONDS if test.limit_seconds else _LONGEST_SECONDS
        done = site.remote.run(test.argv, timeout_seconds=limit)
        figures.extend(parse_cpu(done.text, test))
    return tuple(figures)


PROBE = Probe(
    name="sysbench-cpu",
    area="cpu",
    summary="prime numbers on 1 to 16 threads: events per second, seconds for 10,000 events",
    matches=(
        "Baun 2016, Table 3",
        "Lee, Oh and Park 2021, Table 8",
        "Gamess and Hernandez 2022, Fig. 11",
        "Lee and Park 2026, Tables 4 and 23",
    ),
    tools=(NodeTool(program="sysbench", package="sysbench"),),
    measure=_measure,
    quick_seconds=22,
    paper_seconds=260,
)
