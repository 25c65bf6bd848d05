"""Names and numbers as the report writes them."""

from __future__ import annotations

import re
import shlex
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from boardcluster.analysis.statistics import Interval
from boardcluster.capabilities import every_kind
from boardcluster.factors import FACTORS_BY_NAME
from boardcluster.records import Engine, Security, Trial, Verdict
from boardcluster.redaction import HIDDEN, redact
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = [
    "DILATED",
    "EMULATED",
    "INSECURE",
    "NONE",
    "SECURITY",
    "TAINTED",
    "UNTRUSTED",
    "count",
    "emulated",
    "engine_name",
    "factor_name",
    "figure_name",
    "figure_value",
    "interval",
    "kind_mark",
    "level",
    "listed",
    "megabytes",
    "moment",
    "number",
    "p_value",
    "percent",
    "program",
    "ratio",
    "repetition",
    "seconds",
    "seconds_with_unit",
    "short_digest",
    "short_profiles",
    "size",
    "timed",
    "verdicts",
    "workload_name",
]

NONE = "\N{EN DASH}"
INSECURE = "insecure lab: anyone on the network could have taken this cluster over while it ran"
SECURITY = {
    Security.EMULATED: "reachable only from the machine that emulates it",
    Security.LOCAL: "reachable only from this machine, by any of its users",
    Security.CLOSED: "closed",
    Security.INSECURE_LAB: INSECURE,
}
TAINTED = "these numbers include tainted runs, which something disturbed; see every run"
UNTRUSTED = (
    "Something disturbed each of these runs, so no mean is computed. With `boardcluster report "
    "--tainted`, tainted runs are included and marked at each number."
)
_MARKS = {row.short_mark: row.mark for row in every_kind().values() if row.mark}
EMULATED = next(row.mark for row in every_kind().values() if row.emulated)
DILATED = (
    "Emulated boards may be slower than the boards they stand for by one factor, the time dilation,"
    " which applies to CPU, disk and link alike. Times are divided by it and rates are multiplied"
    " by it, so that they are those of the boards; the remark of each run says how long it took on"
    " this machine. The engines' own counters, telemetry and the reasons for verdicts use this"
    " machine's time."
)

_WORKLOADS = {
    "dfsio": "TestDFSIO",
    "filestore": "Replicated files",
    "grep": "Grep",
    "hpl": "HPL",
    "netpipe": "NetPIPE",
    "oltp": "Replicated database",
    "pi": "Pi",
    "teragen": "TeraGen",
    "terasort": "TeraSort",
    "teravalidate": "TeraValidate",
    "testdfsio": "TestDFSIO",
    "webserve": "HTTP farm",
    "wordcount": "WordCount",
}
_LEAST_P = 0.0001
_DECIDES = 0.05
_UNITS = {
    "_mebibytes_per_second": "MiB/s",
    "_megabytes_per_second": "MB/s",
    "_bytes_per_second": "B/s",
    "_bits_per_second": "bit/s",
    "gflops_per_second": "Gflop/s",
    "_megabits_per_second": "Mbit/s",
    "_microseconds": "µs",
    "_seconds": "s",
    "_bytes": "B",
    "_percent": "%",
    "_requests": "requests",
    "requests_per_second": "requests/s",
    "_transactions": "transactions",
    "transactions_per_second": "transactions/s",
    "operations_per_second": "operations/s",
    "files_per_second": "files/s",
    "_watts": "W",
}


def megabytes(rate_bytes_per_second: float | None) -> str:
    """A rate in MB/s without the unit, or a dash."""
    return NONE if rate_bytes_per_second is None else f"{rate_bytes_per_second / 1e6:.2f}"


def repetition(trial: Trial) -> str:
    """The number of a trial's repetition, and whether it is a warm-up."""
    return f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition)


def size(size_bytes: int) -> str:
    """The size of an input, or a dash where there is none."""
    return format_bytes(size_bytes) if size_bytes else NONE


def emulated(twins: str) -> str:
    """What is said of numbers of nodes that are no boards.

    Args:
        twins: what the nodes are, see ``analysis.node_words``; empty for emulated nodes that
            stand for no boards.
    """
    if not twins:
        return EMULATED
    if mark := kind_mark(twins):
        return f"partly {mark}" if twins.startswith("partly ") else mark
    return f"{twins}: nodes are network namespaces on one machine, with the limits of boards"


def kind_mark(twins: str) -> str:
    """The mark of a kind of node, from its short form with or without ``partly``; or empty."""
    return _MARKS.get(twins.removeprefix("partly "), "")


def workload_name(workload: str) -> str:
    """The workload's name as its papers write it; the names of a mix are joined."""
    return " + ".join(_WORKLOADS.get(name, name) for name in workload.split("+"))


def figure_name(name: str) -> str:
    """A figure's name in words, with the unit that its name ends with in brackets."""
    label, unit = _parted(name)
    return f"{label} ({unit})" if unit else label


def figure_value(name: str, mean: float) -> str:
    """A figure with its name and unit, for a sentence: ``latency mean 5.350 µs``."""
    label, unit = _parted(name)
    return f"{label} {number(mean)} {unit}".strip()


def _parted(name: str) -> tuple[str, str]:
    """Part a figure's name into words and the unit it ends with."""
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " ").strip() or "rate", unit
    return name.replace("_", " "), ""


def number(value: float) -> str:
    """A figure with at least four significant digits; thousands are separated."""
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 1:
        return f"{value:.{4 - len(str(int(size)))}f}"
    return f"{value:.4g}"


def engine_name(engine: Engine) -> str:
    """The engine's own spelling of its name."""
    return engine.own_name


def factor_name(name: str) -> str:
    """What the table of factors calls a factor; what is not in it keeps its own name."""
    return FACTORS_BY_NAME[name].label if name in FACTORS_BY_NAME else name


def level(name: str, value: object, other: object) -> str:
    """A level of a factor of the table, beside the factor's name.

    Where the words of another level are the same, as of two files of one name, it is said in full.
    """
    if isinstance(value, Engine):
        return engine_name(value)
    said, others = map(FACTORS_BY_NAME[name].words_alone, (value, other))
    return said if said != others else str(value)


def short_profiles(names: Iterable[str]) -> dict[str, str]:
    """Own profiles by the names of their files, unless two share one; others by their own names."""
    files = {name: PurePath(name).name for name in names}
    shared = Tally(files.values())
    return {name: file if shared[file] == 1 else name for name, file in files.items()}


def seconds(value: float) -> str:
    """Seconds without the unit, with at least three significant digits."""
    decimals = 1 if value >= 9.95 else 2 if value >= 0.995 else 3
    return f"{value:.{decimals}f}"


def seconds_with_unit(value: float) -> str:
    """Seconds with the unit; from ten minutes on in hours and minutes."""
    return f"{seconds(value)} s" if value < 600 else format_seconds(value)


def interval(value: Interval | None) -> str:
    """An interval of seconds, or a dash; a duration is never below 0."""
    if value is None:
        return NONE
    return f"{seconds(max(0.0, value.low))} to {seconds(value.high)}"


def percent(value: float | None) -> str:
    """A fraction as per cent, or a dash."""
    return NONE if value is None else f"{100 * value:.1f} %"


def ratio(value: float, interval: Interval | None = None) -> str:
    """A ratio of at least 1 in few digits; in more where it would lie outside of its interval."""
    exact = f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"
    if value < 1.495:
        return exact
    short = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
    is_outside = interval is not None and not interval.low <= float(short) <= interval.high
    return exact if is_outside else short


def count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return format_count(number, singular, plural)


def verdicts(found: Iterable[Verdict]) -> str:
    """How many of each verdict, in the order of the verdicts: ``4 valid, 1 tainted``."""
    tally = Tally(found)
    return ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict])


def timed(engines: Iterable[Engine]) -> str:
    """What is in the times of these engines, and what is not: a sentence."""
    found = dict.fromkeys(engines)
    on_yarn = [engine_name(engine) for engine in found if engine.on_yarn]
    out = "exclude input preparation and output verification"
    if not on_yarn:
        return f"Times {out}."
    if len(on_yarn) == len(found):
        return f"Times include YARN application start-up and {out}."
    return f"Times of {listed(on_yarn)} include YARN application start-up; all times {out}."


def listed(items: Iterable[str], word: str = "and") -> str:
    """Different texts in their order, in words: ``a, b and c``."""
    found = list(dict.fromkeys(items))
    return f" {word} ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def p_value(value: float) -> str:
    """A p value; one that is below what any model of a few runs can vouch for says only that.

    It has digits enough to be on that side of 0.05 on which what is shown is decided.
    """
    if value < _LEAST_P:
        return f"below {_LEAST_P:g}"
    texts = (f"{value:.{digits}g}" for digits in range(2, 18))
    return next(text for text in texts if (float(text) < _DECIDES) is (value < _DECIDES))


def moment(utc: str) -> str:
    """An ISO 8601 time in UTC as people write it; anything else unchanged."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)", utc)
    return f"{found[1]} {found[2]} UTC" if found else utc


def short_digest(digest: str) -> str:
    """The first eight digits of a digest, enough to tell two apart by eye."""
    return digest[:8]


def program(arguments: Sequence[str]) -> str:
    """A command line that a shell would read back; values named like a secret are hidden."""
    return " ".join(
        argument if HIDDEN in argument else shlex.quote(argument) for argument in redact(arguments)
    )
